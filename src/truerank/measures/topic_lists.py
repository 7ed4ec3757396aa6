"""The results of a run on some topics, looked at once: where topics begin, and whether ranks order their results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import polars as pl

from truerank.arrays import Ints
from truerank.measures.rankings import topic_starts


class TopicLists:
    """A run by topic; of its rows, which may be many, none are copied but those that are asked for.

    Args:
        run: columns topic_id, doc_id and rank, and what else is asked for.
        stretches: where the stretches of equal topics begin, and how long they are, shape (stretches,) each; None: all.

    Attributes:
        lengths: the rows of each stretch.
    """

    def __init__(self, run: pl.DataFrame, stretches: tuple[Ints, Ints] | None = None) -> None:
        if stretches is None:
            starts = topic_starts(run["topic_id"])
            stretches = starts, np.diff(np.append(starts, len(run)))
        self._run = run
        self._begins, self.lengths = stretches
        self.names = run["topic_id"].gather(self._begins)

    def __len__(self) -> int:
        return int(self.lengths.sum())

    def on(self, topics: pl.Series) -> TopicLists:
        """The rows on some topics, in their order."""
        kept = self.names.is_in(topics.implode()).to_numpy()
        return self if kept.all() else TopicLists(self._run, (self._begins[kept], self.lengths[kept]))

    def select(self, *columns: str) -> pl.DataFrame:
        """Some columns of all rows, copied where these are some of the run."""
        run = self._run.select(columns)
        return run if len(self) == len(run) else run[self._rows(self.lengths)]

    @property
    def starts(self) -> Ints:
        """Where the stretches begin among the rows, shape (stretches,)."""
        found: Ints = np.cumsum(self.lengths) - self.lengths
        return found

    @cached_property
    def topics(self) -> pl.Series:
        """The topics in the order of their coming."""
        return self.names.unique(maintain_order=True)

    @cached_property
    def ordered(self) -> bool:
        """Whether equal topics stand together and ranks rise within them."""
        rising = np.diff(self.select("rank")["rank"].to_numpy()) > 0
        rising[self.starts[1:] - 1] = True
        return bool(rising.all()) and len(self.topics) == len(self.names)

    def by_rank(self) -> TopicLists:
        """The same with rows in the order of ranks, topic after topic."""
        if self.ordered:
            return self
        return TopicLists(self.select(*self._run.columns).sort("topic_id", "rank", maintain_order=True))

    @property
    def places(self) -> pl.Series:
        """The place of each row in its topic by the rank column, from 1; equal ranks in the order of the rows."""
        if self.ordered:
            return pl.Series("place", np.arange(1, len(self) + 1) - np.repeat(self.starts, self.lengths))
        place = pl.col("rank").rank("ordinal").over("topic_id").cast(pl.Int64)
        return self.select("topic_id", "rank").select(place.alias("place")).to_series()

    def first(self, depth: int, columns: Sequence[str] = ("topic_id", "doc_id")) -> pl.DataFrame:
        """Some columns of the rows at the first places of their topics, in their order, with the place."""
        if not self.ordered:
            return self.select(*columns).with_columns(self.places).filter(pl.col("place") <= depth)
        lengths = np.minimum(self.lengths, depth)
        rows = self._rows(lengths)
        place = rows - np.repeat(self._begins, lengths) + 1
        return self._run.select(columns)[rows].with_columns(pl.Series("place", place))

    def _rows(self, lengths: Ints) -> Ints:
        """The places in the run of the first rows of each stretch, so many of each."""
        found: Ints = np.arange(lengths.sum()) + np.repeat(self._begins - np.cumsum(lengths) + lengths, lengths)
        return found

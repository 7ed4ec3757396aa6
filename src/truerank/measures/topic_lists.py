"""The results of a run on some topics, looked at once: where topics begin, and whether ranks order their results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import polars as pl

from truerank.arrays import Ints
from truerank.measures.rankings import topic_starts


class TopicLists:
    """A run by topic.

    Args:
        rows: columns topic_id, doc_id and rank, and what else is asked for.
        starts: where another topic begins than in the row before, where that is known.

    Attributes:
        rows: as given.
        starts: where the stretches of equal topics begin, shape (stretches,).
        lengths: the rows of each stretch.
        names: the topic of each stretch.
    """

    def __init__(self, rows: pl.DataFrame, starts: Ints | None = None) -> None:
        self.rows = rows
        self.starts = topic_starts(rows["topic_id"]) if starts is None else starts
        self.lengths: Ints = np.diff(np.append(self.starts, len(rows)))
        self.names = rows["topic_id"].gather(self.starts)

    def on(self, topics: pl.Series) -> TopicLists:
        """The rows on some topics, in their order."""
        kept = self.names.is_in(topics.implode())
        if kept.all():
            return self
        stretches = kept.to_numpy()
        lengths = self.lengths[stretches]
        # Where what stood between two stretches is gone, they are one.
        starts = (np.cumsum(lengths) - lengths)[topic_starts(self.names.filter(kept))]
        return TopicLists(self.rows.filter(pl.Series(np.repeat(stretches, self.lengths))), starts)

    @cached_property
    def topics(self) -> pl.Series:
        """The topics in the order of their coming."""
        return self.names.unique(maintain_order=True)

    @cached_property
    def ordered(self) -> bool:
        """Whether equal topics stand together and ranks rise within them."""
        rising = np.diff(self.rows["rank"].to_numpy()) > 0
        rising[self.starts[1:] - 1] = True
        return bool(rising.all()) and len(self.topics) == len(self.names)

    @cached_property
    def by_rank(self) -> TopicLists:
        """The same with rows in the order of ranks, topic after topic."""
        return self if self.ordered else TopicLists(self.rows.sort("topic_id", "rank", maintain_order=True))

    @cached_property
    def places(self) -> pl.Series:
        """The place of each result in its topic by the rank column, from 1; equal ranks in the order of the rows."""
        if self.ordered:
            return pl.Series("place", np.arange(1, len(self.rows) + 1) - np.repeat(self.starts, self.lengths))
        place = pl.col("rank").rank("ordinal").over("topic_id").cast(pl.Int64)
        return self.rows.select(place.alias("place")).to_series()

    def first(self, depth: int, columns: Sequence[str] = ("topic_id", "doc_id")) -> pl.DataFrame:
        """Some columns of the rows at the first places of their topics, in their order, with the place."""
        rows = np.flatnonzero(self.places.to_numpy() <= depth)
        return self.rows.select(columns)[rows].with_columns(self.places.gather(rows))

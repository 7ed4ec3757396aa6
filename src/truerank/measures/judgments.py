"""Relevance judgments made ready for scoring many runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.errors import OptionError

_BITS_PER_JUDGMENT: Final = 32
_FEWEST_BITS: Final = 1 << 16
_MOST_BITS: Final = 1 << 27


class GradeTable:
    """The judgments by topic number, and a quick test whether a document is judged at all.

    Args:
        frame: columns topic_id, doc_id and relevance; a pair of topic and document stands there once.

    Attributes:
        topics: the ids of the topics in the order of the frame; a topic's number is its place there.
        topic: the number of each judgment's topic, shape (judgments,).
        relevance: the grade of each judgment, shape (judgments,). Negative grades stand for pooled but not judged.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        if not len(frame):
            raise OptionError("qrels", "no relevance judgments", "give qrels that hold some")
        names = frame["topic_id"].unique(maintain_order=True)
        self.topics: tuple[str, ...] = tuple(names.to_list())
        self._numbers = {name: number for number, name in enumerate(self.topics)}
        self._table = frame.select("topic_id", "doc_id", "relevance").join(
            pl.DataFrame({"topic_id": names, "topic": pl.int_range(len(names), dtype=pl.Int32, eager=True)}),
            on="topic_id",
            how="left",
            maintain_order="left",
        )
        self.topic: NDArray[np.int32] = self._table["topic"].to_numpy()
        self.relevance: NDArray[np.int64] = self._table["relevance"].to_numpy().astype(np.int64)
        self._table = self._table.select("topic", "doc_id", "relevance")
        self._made: dict[Hashable, NDArray[Any]] = {}
        bits = 1 << (_BITS_PER_JUDGMENT * len(frame) - 1).bit_length()
        self._mask = np.uint64(min(max(bits, _FEWEST_BITS), _MOST_BITS) - 1)
        self._judged = np.zeros(int(self._mask) + 1, np.bool_)
        self._judged[frame["doc_id"].hash().to_numpy() & self._mask] = True

    def __len__(self) -> int:
        return len(self.topic)

    def once(self, key: Hashable, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """What depends on the judgments alone, such as the ideal gain: made for the first run, kept for the others."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def best_first(self, gains: NDArray[np.float64]) -> NDArray[np.int64]:
        """The places of the judgments by topic, those with the highest gains first; shape (judgments,)."""
        return np.lexsort((-gains, self.topic))

    def numbers(self, topic_ids: pl.Series) -> NDArray[np.int32]:
        """The number of each topic, -1 for one that has no judgments; shape (n,)."""
        return np.array([self._numbers.get(topic_id, -1) for topic_id in topic_ids.to_list()], np.int32)

    def likely(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The places of the documents that may be judged for some topic; one that is judged is always among them.

        Args:
            hashes: what `Series.hash()` gives for the documents' ids, shape (n,).
        """
        return np.flatnonzero(self._judged[hashes & self._mask])

    def find(self, topics: NDArray[np.int32], documents: pl.Series) -> pl.DataFrame:
        """The judged ones of some results.

        Args:
            topics: the number of each result's topic, shape (n,).
        """
        rows = pl.int_range(len(documents), dtype=pl.Int64, eager=True)
        results = pl.DataFrame({"topic": topics, "doc_id": documents, "row": rows})
        found = results.join(self._table, on=["topic", "doc_id"], how="inner", maintain_order="left")
        return found.select("row", "relevance")

"""Drawing queries from sources of any size in one pass."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.records import Query
from truerank.sources.blocks import QueryBlock, SourceCounts
from truerank.sources.grammar import SourceSpec
from truerank.text.normalising import normalise

_STEP: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_MIX: Final = (
    (np.uint64(30), np.uint64(0xBF58_476D_1CE4_E5B9)),
    (np.uint64(27), np.uint64(0x94D0_49BB_1331_11EB)),
)


class Keyed:
    """Turns texts into pseudo-random numbers that depend on the seed and on what they are drawn for.

    A choice by the smallest numbers is a random sample, does not depend on the order of the stream, and the sample of
    a smaller size is a part of that of a larger one.

    Args:
        seed: of the set.
        purpose: numbers for different purposes have nothing to do with each other.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self._salt = hashlib.blake2b(f"{purpose}\0{seed}".encode(), digest_size=16).digest()

    def __call__(self, text: str) -> int:
        """The number of one text."""
        return int.from_bytes(self._hash(text), "big")

    def many(self, texts: Sequence[str]) -> NDArray[np.uint64]:
        """The numbers of several texts, shape (n,)."""
        joined = b"".join(map(self._hash, texts))
        return np.frombuffer(joined, ">u8").astype(np.uint64)

    def of_places(self, text: str, places: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Numbers of places in a list that belongs to the text, shape (n,); the finaliser of SplitMix64 makes them."""
        with np.errstate(over="ignore"):
            mixed = np.uint64(self(text)) + places.astype(np.uint64) * _STEP
            for shift, factor in _MIX:
                mixed = (mixed ^ (mixed >> shift)) * factor
            return np.asarray(mixed ^ (mixed >> np.uint64(31)), np.uint64)

    def _hash(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, salt=self._salt).digest()


#: The columns of `instances.parquet`.
SCHEMA: Final[dict[str, Any]] = {
    "number": pl.Int64,
    "role": pl.String,
    "topic_id": pl.String,
    "source": pl.String,
    "query_id": pl.String,
    "query": pl.String,
    "relevant_id": pl.String,
    "relevant": pl.String,
    "nonrelevant_id": pl.String,
    "nonrelevant": pl.String,
    "origin": pl.String,
}


class RowDraft(NamedTuple):
    """A row with ids only.

    `origin` says where the relevant and the non-relevant document come from; `of_test` whether their texts are looked
    up in the test collection; `cut` whether they stand without the words that make a query.
    """

    role: str
    topic_id: str | None
    source: str
    query_id: str
    query: str
    relevant_id: str
    nonrelevant_id: str
    origin: str
    of_test: bool = False
    cut: bool = False


_BLOCK: Final = 1 << 15


class Queries(Protocol):
    """A source of queries that can be streamed as often as needed."""

    @property
    def name(self) -> str:
        """The file name without endings, or the id."""

    @property
    def spec(self) -> SourceSpec:
        """Where it is."""

    @property
    def counts(self) -> SourceCounts:
        """What the last pass read."""

    @property
    def fingerprint(self) -> str:
        """The identity of the content."""

    def batches(self, size: int = ...) -> Iterator[QueryBlock]:
        """The queries in blocks."""


@dataclass(frozen=True)
class Excluded:
    """Queries that must not be drawn.

    Attributes:
        texts: normalised texts.
        ids: ids by the name of the source.
    """

    texts: Collection[str] = frozenset()
    ids: Mapping[str, Collection[str]] = field(default_factory=dict)


class QueryKeys(NamedTuple):
    """Queries that are looked for: normalised texts, and ids where no text is known."""

    texts: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()


class SourcePass(NamedTuple):
    """What one pass over a source gave.

    `drawn` are distinct texts (normalised) in random order; `complete` says that the source holds no others; `found`
    are the queries that were looked for, by text and by id (the first of several).
    """

    drawn: list[Query]
    complete: bool
    by_text: dict[str, Query]
    by_id: dict[str, Query]
    read: int
    excluded: int


def scan(source: Queries, seed: int, room: int, excluded: Excluded, wanted: QueryKeys) -> SourcePass:
    """Draws queries at random and looks for others, in one pass and in memory that grows with `room` only.

    A query is its normalised text; of a text that stands there several times the first id counts.
    """
    numbers, kept = Keyed(seed, "queries"), _Smallest(room)
    own_ids = frozenset(excluded.ids.get(source.name, ()))
    by_text: dict[str, Query] = {}
    by_id: dict[str, Query] = {}
    left_out = 0
    for ids, raw in source.batches(_BLOCK):
        texts = [normalise(text) for text in raw]
        for place, text in enumerate(texts):
            if text in wanted.texts:
                by_text.setdefault(text, Query(ids[place], text))
        if wanted.ids:
            for place, identifier in enumerate(ids):
                if identifier in wanted.ids:
                    by_id.setdefault(identifier, Query(identifier, texts[place]))
        barred = {place for place, text in enumerate(texts) if text in excluded.texts}
        if own_ids:
            barred.update(place for place, identifier in enumerate(ids) if identifier in own_ids)
        left_out += len(barred)
        if not room:
            continue
        keys = numbers.many(texts)
        places = [place for place in np.flatnonzero(keys < kept.bound).tolist() if place not in barred]
        kept.add(keys[places], [Query(ids[place], texts[place]) for place in places])
    return SourcePass(kept.queries(), kept.complete, by_text, by_id, source.counts.read, left_out)


class _Smallest:
    """The queries with the smallest keys, each key once."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._keys = np.empty(0, np.uint64)
        self._queries: list[Query] = []
        self._waiting: list[np.ndarray] = []
        #: Keys from here on are not kept.
        self.bound = np.uint64(np.iinfo(np.uint64).max)
        self.complete = True

    def add(self, keys: np.ndarray, queries: list[Query]) -> None:
        self._waiting.append(keys)
        self._queries += queries
        if len(self._queries) > 2 * self._room + _BLOCK:
            self._prune()

    def queries(self) -> list[Query]:
        self._prune()
        return self._queries

    def _prune(self) -> None:
        keys = np.concatenate([self._keys, *self._waiting])
        # `unique` gives the first place of each key: the first query of a text stays.
        ordered, places = np.unique(keys, return_index=True)
        if len(ordered) > self._room:
            self.complete = False
            ordered, places = ordered[: self._room], places[: self._room]
            self.bound = ordered[-1] if self._room else np.uint64(0)
        self._queries = [self._queries[place] for place in places.tolist()]
        self._keys, self._waiting = ordered, []

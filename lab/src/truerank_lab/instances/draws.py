"""Draws in one pass: queries from sources of any size, non-relevant documents from the best of a first stage."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank import lexical
from truerank.arrays import SPREAD, frame_schema, mixed
from truerank.records import Query
from truerank.text.normalising import normalise
from truerank.work.artifacts import digest
from truerank.work.kept import keep_frame, kept_frame
from truerank.work.progress import Progress

if TYPE_CHECKING:
    from truerank.sources.queries import QuerySource
    from truerank_lab.instances.document_queries import DocumentQueries


class Keyed:
    """Turns texts into pseudo-random numbers that depend on the seed and on the purpose they are drawn for.

    A choice by the smallest numbers is a random sample, does not depend on the order of the stream, and the sample of
    a smaller size is a part of that of a larger one.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self._salt = hashlib.blake2b(f"{purpose}\0{seed}".encode(), digest_size=16).digest()

    def __call__(self, text: str) -> int:
        return int.from_bytes(self._hash(text), "big")

    def many(self, texts: Sequence[str]) -> NDArray[np.uint64]:
        joined = b"".join(map(self._hash, texts))
        return np.frombuffer(joined, ">u8").astype(np.uint64)

    def of_places(self, text: str, places: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Numbers of places in a list that belongs to the text, shape (n,); the finaliser of SplitMix64 makes them."""
        return mixed(np.uint64(self(text)) + places.astype(np.uint64) * SPREAD)

    def _hash(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, salt=self._salt).digest()


#: The columns of `instances.parquet`.
SCHEMA: Final[dict[str, Any]] = frame_schema(
    "number: Int64, role topic_id source query_id query relevant_id relevant nonrelevant_id nonrelevant origin: String"
)


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


@dataclass(frozen=True)
class Excluded:
    """Queries that must not be drawn: normalised texts, and ids by the name of the source."""

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


def scan(
    source: QuerySource | DocumentQueries, seed: int, room: int, excluded: Excluded, wanted: QueryKeys
) -> SourcePass:
    """Draws queries at random and looks for others, in one pass and in memory that grows with `room` only.

    A query is its normalised text; of a text that is there several times the first id counts.
    """
    numbers, kept = Keyed(seed, "queries"), _Smallest(room)
    own_ids = frozenset(excluded.ids.get(source.name, ()))
    by_text: dict[str, Query] = {}
    by_id: dict[str, Query] = {}
    left_out = 0
    for ids, raw in source.batches(_BLOCK):
        texts = [normalise(text) for text in raw]
        barred = set()
        for place, (identifier, text) in enumerate(zip(ids, texts, strict=True)):
            if text in wanted.texts:
                by_text.setdefault(text, Query(identifier, text))
            if identifier in wanted.ids:
                by_id.setdefault(identifier, Query(identifier, text))
            if text in excluded.texts or identifier in own_ids:
                barred.add(place)
        left_out += len(barred)
        if not room:
            continue
        keys = numbers.many(texts)
        places = [place for place in np.flatnonzero(keys < kept.bound).tolist() if place not in barred]
        kept.add(keys[places], [Query(ids[place], texts[place]) for place in places])
    return SourcePass(kept.queries(), kept.complete, by_text, by_id, source.counts.read, left_out)


class _Smallest:
    """The queries with the smallest keys; of each key the first."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: dict[int, Query] = {}
        #: Keys from here on are not kept.
        self.bound = np.uint64(np.iinfo(np.uint64).max)
        self.complete = True

    def add(self, keys: np.ndarray, queries: list[Query]) -> None:
        for key, query in zip(keys.tolist(), queries, strict=True):
            self._kept.setdefault(key, query)
        if len(self._kept) > 2 * self._room + _BLOCK:
            self.queries()

    def queries(self) -> list[Query]:
        """What is kept, the smallest key first."""
        ordered = sorted(self._kept)
        if len(ordered) > self._room:
            self.complete, ordered = False, ordered[: self._room]
            self.bound = np.uint64(ordered[-1] if ordered else 0)
        self._kept = {key: self._kept[key] for key in ordered}
        return list(self._kept.values())


#: Queries that are searched, and saved, at a time.
_STAGE_BLOCK: Final = 2000
_IDS: Final = 1 << 16
_FOUND: Final = {"query_id": pl.String, "doc_id": pl.String, "rank": pl.Int64}
#: Which of some documents may be in a row.
Usable: TypeAlias = Callable[[Sequence[str]], Sequence[bool]]


class Asked(NamedTuple):
    """A query that needs a non-relevant document, and the documents that it must not be."""

    query_id: str
    text: str
    barred: Collection[str]


class FoundNegative(NamedTuple):
    """A document, and where it is in the ranking, counted from 1."""

    doc_id: str
    rank: int


Negatives: TypeAlias = dict[str, tuple[FoundNegative, ...]]


class FirstStage:
    """Rankings to depth `top_k`, searched in the index of `folder` for the queries that were drawn.

    They are kept in blocks in `cache`, whose name stands for all that they depend on, until the set is built.
    """

    def __init__(
        self, folder: Path, model: lexical.Model | lexical.Expansion, top_k: int, *, cache: Path, progress: Progress
    ) -> None:
        self._index = lexical.open_index(folder)
        self._searcher = lexical.Searcher(self._index)
        self._model, self._top_k, self._cache, self._progress = model, top_k, cache, progress

    def negatives(self, asked: Sequence[Asked], keys: Keyed, usable: Usable, count: int = 1) -> Negatives:
        """For each query some of its best documents, at random; queries without any are absent."""
        self._progress.start("searching for non-relevant documents", len(asked))
        found: Negatives = {}
        for start in range(0, len(asked), _STAGE_BLOCK):
            some = asked[start : start + _STAGE_BLOCK]
            for query_id, doc_id, rank in self._block(some, keys, usable, count).iter_rows():
                found[query_id] = (*found.get(query_id, ()), FoundNegative(doc_id, rank))
            self._progress.advance(len(some))
        return found

    def known(self, doc_ids: Collection[str]) -> Collection[str]:
        """Which of these documents the collection holds."""
        wanted, total = frozenset(doc_ids), len(self._index)
        there: set[str] = set()
        for start in range(0, total, _IDS):
            there.update(wanted.intersection(self._index.doc_ids(range(start, min(total, start + _IDS)))))
        return there

    def _block(self, asked: Sequence[Asked], keys: Keyed, usable: Usable, count: int) -> pl.DataFrame:
        name = digest([count, *((one.query_id, one.text, sorted(one.barred)) for one in asked)])
        path = self._cache / f"negatives-{name[:32]}.arrow"
        if (known := kept_frame(path)) is not None:
            return known
        rows = [(one.query_id, *best) for one in asked for best in islice(self._drawn(one, keys, usable), count)]
        frame = pl.DataFrame(rows, schema=_FOUND, orient="row")
        keep_frame(path, frame)
        return frame

    def _drawn(self, asked: Asked, keys: Keyed, usable: Usable) -> Iterator[FoundNegative]:
        """The documents that may be drawn, in random order; their ids are looked up when they are drawn."""
        best = lexical.retrieve(self._searcher, self._model, asked.text, self._top_k)
        ranking = [] if best is None else best.documents.tolist()
        numbers = keys.of_places(asked.text, np.arange(1, len(ranking) + 1))
        for place in np.argsort(numbers, kind="stable").tolist():
            doc_id = self._index.doc_id(ranking[place])
            if doc_id not in asked.barred and usable([doc_id])[0]:
                yield FoundNegative(doc_id, place + 1)


def everything(doc_ids: Sequence[str]) -> Sequence[bool]:
    return [True] * len(doc_ids)

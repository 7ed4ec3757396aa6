"""The non-relevant document of a query, drawn from the first stage's best documents that nobody judged relevant."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import polars as pl

from truerank import lexical
from truerank.errors import InputError
from truerank.experiments.instances.drawing import Keyed
from truerank.sources.runs import run_frames
from truerank.work.artifacts import digest
from truerank.work.kept import keep_frame, kept_frame
from truerank.work.progress import Progress

#: Queries that are searched, and saved, at a time.
_BLOCK: Final = 2000
_IDS: Final = 1 << 16
_FOUND: Final = {"query_id": pl.String, "doc_id": pl.String, "rank": pl.Int64}
#: Which of some documents may stand in a row.
Usable: TypeAlias = Callable[[Sequence[str]], Sequence[bool]]


class Asked(NamedTuple):
    """A query that needs a non-relevant document, and the documents that it must not be."""

    query_id: str
    text: str
    barred: Collection[str]


class FoundNegative(NamedTuple):
    """A document, and where it stands in the ranking, counted from 1."""

    doc_id: str
    rank: int


Negatives: TypeAlias = dict[str, tuple[FoundNegative, ...]]


class FirstStage(Protocol):
    """A ranking of documents for queries."""

    def negatives(self, asked: Sequence[Asked], keys: Keyed, usable: Usable, count: int = 1) -> Negatives:
        """For each query some of its best documents, at random; queries without any are absent."""

    def known(self, doc_ids: Collection[str]) -> Collection[str]:
        """Which of these documents the collection holds; all of them where the first stage does not know."""


class _Ranking(NamedTuple):
    """How many documents a ranking has, and the id of the one at a place: ids are looked up when they are drawn."""

    size: int
    doc_id: Callable[[int], str]


class RunStage:
    """The rankings of a run file, which is read once for all queries.

    Args:
        path: the run.
        top_k: how many documents of each query count.
    """

    def __init__(self, path: str, top_k: int) -> None:
        self._path, self._top_k = path, top_k

    def negatives(self, asked: Sequence[Asked], keys: Keyed, usable: Usable, count: int = 1) -> Negatives:
        """See `FirstStage`."""
        by_id = {one.query_id: one for one in asked}
        ids = pl.Series(sorted(by_id), dtype=pl.String).implode()
        best: defaultdict[str, list[tuple[int, FoundNegative]]] = defaultdict(list)
        first: int | None = None
        for frame in run_frames(self._path, ("topic_id", "doc_id", "rank")):
            if first is None:
                first = 0 if frame["rank"].min() == 0 else 1  # some runs count ranks from 0
            own = frame.filter(pl.col("topic_id").is_in(ids), pl.col("rank") < self._top_k + first)
            own = own.filter(pl.Series(usable(own["doc_id"].to_list()), dtype=pl.Boolean)) if len(own) else own
            for (query_id,), part in own.group_by("topic_id", maintain_order=True):
                query, kept = by_id[str(query_id)], best[str(query_id)]
                ranks = part["rank"].to_numpy() + (1 - first)
                numbers = keys.of_places(query.text, ranks)
                for place in np.argsort(numbers, kind="stable").tolist():
                    doc_id = part["doc_id"][place]
                    number = int(numbers[place])
                    if len(kept) == count and kept[-1][0] <= number:
                        break
                    if doc_id not in query.barred:
                        insort(kept, (number, FoundNegative(doc_id, int(ranks[place]))))
                        del kept[count:]
        return {query_id: tuple(one for _, one in best[query_id]) for query_id in by_id if query_id in best}

    def known(self, doc_ids: Collection[str]) -> Collection[str]:
        """See `FirstStage`."""
        return doc_ids


class IndexStage:
    """Rankings searched for the queries that were drawn, in blocks that are kept until the set is built.

    Args:
        folder: of the index.
        model: what ranks.
        top_k: how many documents of each query count.
        cache: where finished blocks lie; its name stands for all that the blocks depend on.
        workers: processes that search.
        progress: is told how many queries were searched.
    """

    def __init__(
        self,
        folder: Path,
        model: lexical.Model | lexical.Expansion,
        top_k: int,
        *,
        cache: Path,
        workers: int,
        progress: Progress,
    ) -> None:
        self._index = lexical.open_index(folder)
        self._searcher = lexical.Searcher(self._index)
        self._model, self._top_k, self._cache = model, top_k, cache
        self._workers, self._progress = workers, progress

    def negatives(self, asked: Sequence[Asked], keys: Keyed, usable: Usable, count: int = 1) -> Negatives:
        """See `FirstStage`."""
        self._progress.start("searching for non-relevant documents", len(asked))
        found: Negatives = {}
        for start in range(0, len(asked), _BLOCK):
            some = asked[start : start + _BLOCK]
            for query_id, doc_id, rank in self._block(some, keys, usable, count).iter_rows():
                found[query_id] = (*found.get(query_id, ()), FoundNegative(doc_id, rank))
            self._progress.advance(len(some))
        return found

    def known(self, doc_ids: Collection[str]) -> Collection[str]:
        """See `FirstStage`."""
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
        rows = [
            (one.query_id, *best)
            for one, ranking in zip(asked, self._rankings(asked), strict=True)
            for best in islice(_drawn(one, ranking, keys, usable), count)
        ]
        frame = pl.DataFrame(rows, schema=_FOUND, orient="row")
        keep_frame(path, frame)
        return frame

    def _rankings(self, asked: Sequence[Asked]) -> Iterator[_Ranking]:
        if self._workers == 1:
            for one in asked:
                found = lexical.retrieve(self._searcher, self._model, one.text, self._top_k)
                numbers = [] if found is None else found.documents.tolist()
                yield _Ranking(len(numbers), partial(_id_at, self._index, numbers))
            return
        queries = [lexical.TopicQuery(str(place), one.text) for place, one in enumerate(asked)]
        try:
            run = lexical.search(self._searcher, queries, self._model, k=self._top_k, workers=self._workers).run
        except InputError:  # not one of these queries has a term of the collection
            run = pl.DataFrame(schema={"topic_id": pl.String, "doc_id": pl.String})
        lists: Mapping[str, list[str]] = dict(run.group_by("topic_id", maintain_order=True).agg("doc_id").iter_rows())
        for query in queries:
            doc_ids = lists.get(query.topic_id, [])
            yield _Ranking(len(doc_ids), doc_ids.__getitem__)


def _id_at(index: lexical.Index, numbers: Sequence[int], place: int) -> str:
    return index.doc_id(numbers[place])


def everything(doc_ids: Sequence[str]) -> Sequence[bool]:
    """Every document may stand in a row."""
    return [True] * len(doc_ids)


def _drawn(asked: Asked, ranking: _Ranking, keys: Keyed, usable: Usable) -> Iterator[FoundNegative]:
    """The documents that may be drawn, in random order."""
    numbers = keys.of_places(asked.text, np.arange(1, ranking.size + 1))
    for place in np.argsort(numbers, kind="stable").tolist():
        doc_id = ranking.doc_id(place)
        if doc_id not in asked.barred and usable([doc_id])[0]:
            yield FoundNegative(doc_id, place + 1)

"""Training queries as rows: those of random queries that do not leak, and those of leaking ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from truerank.experiments.instances.document_queries import DocumentQueries
from truerank.experiments.instances.drawing import Excluded, Keyed, Queries, QueryKeys, RowDraft, SourcePass, scan
from truerank.experiments.instances.first_stage import Asked, FirstStage, Usable, everything
from truerank.experiments.instances.leaks import Leak
from truerank.experiments.instances.options import BuildOptions
from truerank.records import Query
from truerank.sources.qrels import QREL_SCHEMA, qrel_frames


class QueryGrades(NamedTuple):
    """The judged documents of a query with their grades, in the order of the judgments."""

    relevant: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, int], ...] = ()

    def without(self, doc_ids: Collection[str]) -> QueryGrades:
        """Those of other documents only."""
        return QueryGrades(*(tuple(pair for pair in pairs if pair[0] not in doc_ids) for pairs in self))


def judged_documents(
    specs: Sequence[str], wanted: Sequence[Collection[str]], relevant_from: int
) -> list[dict[str, QueryGrades]]:
    """Looks up the judgments of some queries; each source of judgments is read once, as a stream."""
    tables: dict[str, pl.DataFrame] = {}
    for spec in dict.fromkeys(specs):
        ids = {one for own, some in zip(specs, wanted, strict=True) if own == spec for one in some}
        asked = pl.Series(sorted(ids), dtype=pl.String).implode()
        parts = [frame.filter(pl.col("topic_id").is_in(asked)) for frame in qrel_frames(spec)]
        tables[spec] = pl.concat([pl.DataFrame(schema=QREL_SCHEMA), *parts])
    return [_by_query(tables[spec], some, relevant_from) for spec, some in zip(specs, wanted, strict=True)]


def _by_query(table: pl.DataFrame, wanted: Collection[str], relevant_from: int) -> dict[str, QueryGrades]:
    own = table.filter(pl.col("topic_id").is_in(pl.Series(list(wanted), dtype=pl.String).implode()))
    lists = (
        own.unique(("topic_id", "doc_id"), keep="first", maintain_order=True)
        .group_by("topic_id", maintain_order=True)
        .agg("doc_id", "relevance")
    )
    found: dict[str, QueryGrades] = {}
    for query_id, doc_ids, grades in lists.iter_rows():
        pairs = tuple(zip(doc_ids, grades, strict=True))
        found[query_id] = QueryGrades(
            tuple(pair for pair in pairs if pair[1] >= relevant_from),
            tuple(pair for pair in pairs if pair[1] < relevant_from),
        )
    return found


class Lane(NamedTuple):
    """A source of training queries with its name in the rows, its judgments (None where its documents are the queries),
    and its first stage (None where non-relevant documents are judged ones)."""

    source: Queries
    name: str
    qrels: str | None
    stage: FirstStage | None


@dataclass(frozen=True)
class Prepared:
    """What a lane gave.

    Attributes:
        drafts: rows in random order.
        complete: whether the source holds no others.
        skipped: how many queries that were drawn made no row, by reason.
    """

    drafts: tuple[RowDraft, ...]
    complete: bool
    skipped: dict[str, int] = field(default_factory=dict)


class TrainingSources:
    """The sources of training queries.

    Args:
        lanes: the sources in order.
        options: `relevant_from`, `negatives`.
        seed: of all choices.
        excluded: queries that must not stand in a row without a leak.
        barred: documents that must not.
    """

    def __init__(
        self,
        lanes: Sequence[Lane],
        options: BuildOptions,
        seed: int,
        excluded: Excluded,
        barred: Collection[str] = frozenset(),
    ) -> None:
        self.lanes, self._barred = tuple(lanes), barred
        self._options, self._seed, self._excluded = options, seed, excluded
        self.scanned: list[SourcePass] = []
        self._relevant, self._negative = Keyed(seed, "relevant documents"), Keyed(seed, "non-relevant documents")

    def scan(self, room: int, wanted: QueryKeys, told: Callable[[str], None]) -> None:
        """Reads every source once: draws so many queries, and looks for others."""
        self.scanned = []
        for lane in self.lanes:
            told(f"reading queries of {lane.name}")
            self.scanned.append(scan(lane.source, self._seed, room, self._excluded, wanted))

    def rows(self, count: int) -> list[Prepared]:
        """Rows of the queries that were drawn: at least so many of each source, or all there are."""
        queries = [scanned.drawn for scanned in self.scanned]
        judged = self._judged(queries)
        return [
            self._prepared(lane, scanned, own, count)
            for lane, scanned, own in zip(self.lanes, self.scanned, judged, strict=True)
        ]

    def leaking(self, leaks: Sequence[Leak]) -> tuple[list[tuple[Leak, RowDraft]], dict[str, int]]:
        """Rows of leaking queries, in their order, and why others are missing; a query is taken from the first source
        that has a relevant document for it."""
        found: list[list[tuple[int, Query]]] = []
        for scanned in self.scanned:
            hits = [(place, self._find(scanned, leak)) for place, leak in enumerate(leaks)]
            found.append([(place, query) for place, query in hits if query is not None])
        judged = self._judged([[query for _, query in own] for own in found])
        rows: dict[int, RowDraft] = {}
        seen: set[int] = set()
        for lane, own, documents in zip(self.lanes, found, judged, strict=True):
            seen.update(place for place, _ in own)
            asked = [(place, query) for place, query in own if place not in rows]
            drafts = self._drafts(lane, [query for _, query in asked], documents, "leak")
            rows.update(
                (place, draft._replace(topic_id=leaks[place].topic_id))
                for (place, _), draft in zip(asked, drafts, strict=True)
                if draft is not None
            )
        skipped = {
            "leaks that no source of queries holds": len(leaks) - len(seen),
            "leaks without a relevant or a non-relevant document": len(seen) - len(rows),
        }
        ordered = [(leaks[place], rows[place]) for place in sorted(rows)]
        return ordered, {reason: number for reason, number in skipped.items() if number}

    def _prepared(self, lane: Lane, scanned: SourcePass, judged: dict[str, QueryGrades], count: int) -> Prepared:
        judged = {query_id: own.without(self._barred) for query_id, own in judged.items()} if self._barred else judged
        queries = [query for query in scanned.drawn if judged.get(query.query_id, QueryGrades()).relevant]
        drafts: list[RowDraft] = []
        at = 0
        while at < len(queries) and len(drafts) < count:
            missing = count - len(drafts)
            some = queries[at : at + missing + missing // 8 + 64]
            at += len(some)
            drafts += [draft for draft in self._drafts(lane, some, judged, "none") if draft is not None]
        skipped = {
            "drawn queries without a relevant document": len(scanned.drawn) - len(queries),
            "drawn queries without a non-relevant document": at - len(drafts),
        }
        return Prepared(
            tuple(drafts),
            scanned.complete and at == len(queries),
            {f"{lane.name}: {reason}": number for reason, number in skipped.items() if number},
        )

    def _judged(self, queries: Sequence[Sequence[Query]]) -> list[dict[str, QueryGrades]]:
        """The judgments of queries by source, without relevant documents that the collection is known to lack."""
        specs = [(place, lane.qrels) for place, lane in enumerate(self.lanes) if lane.qrels is not None]
        ids = [[query.query_id for query in queries[place]] for place, _ in specs]
        read = judged_documents([spec for _, spec in specs], ids, self._options.rel) if specs else []
        by_place = {place: own for (place, _), own in zip(specs, read, strict=True)}
        return [
            _there(lane, by_place[place] if place in by_place else _own_documents(queries[place]))
            for place, lane in enumerate(self.lanes)
        ]

    def _drafts(
        self, lane: Lane, queries: Sequence[Query], judged: dict[str, QueryGrades], role: str
    ) -> list[RowDraft | None]:
        """A row for each query, None where it lacks a relevant or a non-relevant document."""
        distinct = {query.query_id: query for query in queries}.values()
        answerable = [query for query in distinct if judged.get(query.query_id, QueryGrades()).relevant]
        others = self._others(lane, answerable, judged, role)
        drafts: dict[str, RowDraft] = {}
        for query_id, text in answerable:
            if query_id not in others:
                continue
            documents = judged[query_id].relevant
            doc_id, grade = min(documents, key=lambda pair: (self._relevant(f"{text}\0{pair[0]}"), pair))
            other_id, origin = others[query_id]
            came = "its own document" if lane.qrels is None else f"qrels {grade}"
            drafts[query_id] = RowDraft(
                role, None, lane.name, query_id, text, doc_id, other_id, f"{came}; {origin}", cut=lane.qrels is None
            )
        return [drafts.get(query.query_id) for query in queries]

    def _others(
        self, lane: Lane, queries: Sequence[Query], judged: dict[str, QueryGrades], role: str
    ) -> dict[str, tuple[str, str]]:
        """A non-relevant document for each query, and where it comes from."""
        if lane.stage is None:
            found: dict[str, tuple[str, str]] = {}
            for query_id, text in queries:
                documents = judged[query_id].others
                if documents:
                    pair = min(documents, key=lambda one: (self._negative(f"{text}\0{one[0]}"), one))
                    found[query_id] = (pair[0], f"judged {pair[1]}")
            return found
        asked = [
            Asked(query.query_id, query.text, frozenset(doc_id for doc_id, _ in judged[query.query_id].relevant))
            for query in queries
        ]
        usable: Usable = lane.source.usable if isinstance(lane.source, DocumentQueries) else everything
        if self._barred and role == "none":
            usable = _without(usable, self._barred)
        negatives = lane.stage.negatives(asked, self._negative, usable)
        return {query_id: (one[0].doc_id, f"first-stage rank {one[0].rank}") for query_id, one in negatives.items()}

    @staticmethod
    def _find(scanned: SourcePass, leak: Leak) -> Query | None:
        return scanned.by_text.get(leak.text) if leak.text else scanned.by_id.get(leak.query_id)


def _without(usable: Usable, barred: Collection[str]) -> Usable:
    return lambda doc_ids: [
        kept and doc_id not in barred for doc_id, kept in zip(doc_ids, usable(doc_ids), strict=True)
    ]


def _own_documents(queries: Sequence[Query]) -> dict[str, QueryGrades]:
    return {query.query_id: QueryGrades(((DocumentQueries.document_of(query.query_id), 1),)) for query in queries}


def _there(lane: Lane, judged: dict[str, QueryGrades]) -> dict[str, QueryGrades]:
    if lane.stage is None or lane.qrels is None:
        return judged
    known = lane.stage.known({doc_id for own in judged.values() for doc_id, _ in own.relevant})
    return {
        query_id: own._replace(relevant=tuple(pair for pair in own.relevant if pair[0] in known))
        for query_id, own in judged.items()
    }

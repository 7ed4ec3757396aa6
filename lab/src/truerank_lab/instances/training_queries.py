"""Training queries as rows, those that leak and random others; the leaks: candidates of audits, or verified."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.judging.labels import Judgments, open_judgments
from truerank.options import Votes
from truerank.records import Query
from truerank.sources.qrels import QREL_SCHEMA, qrel_frames
from truerank.text.normalising import normalise
from truerank.work.artifacts import hash_file, written_by
from truerank_lab.instances.document_queries import DocumentQueries
from truerank_lab.instances.draws import (
    Asked,
    Excluded,
    FirstStage,
    Keyed,
    Queries,
    QueryKeys,
    RowDraft,
    SourcePass,
    Usable,
    everything,
    scan,
)
from truerank_lab.instances.options import BuildOptions

_FILE: Final = "candidates.parquet"
_COLUMNS: Final = ("test", "topic_id", "source", "query_id", "query_text", "similarity")
_SCHEMA: Final[Any] = dict.fromkeys(_COLUMNS[:5], pl.String) | {"similarity": pl.Float32}
_HASHED: Final = re.compile(r"hmac:[0-9a-f]{8}:[0-9a-f]{16}")


class Leak(NamedTuple):
    """A training query that leaks a topic; `text` is normalised, and empty where only the id is known."""

    topic_id: str
    query_id: str
    text: str
    verified: bool


@dataclass(frozen=True)
class LeakCandidates:
    """The candidates of several audits, with folder and hash of each audit for provenance.

    Columns: test, topic_id, source, query_id, query_text, similarity.
    """

    table: pl.DataFrame
    inputs: tuple[dict[str, Any], ...] = ()


def read_candidates(folders: Sequence[str]) -> LeakCandidates:
    """Reads what `leakage audit` wrote: every pair down to its floor."""
    tables, inputs = [pl.DataFrame(schema=_SCHEMA)], []
    for folder in folders:
        path = Path(folder) / _FILE
        with written_by("leakage audit", path.parent, _FILE):
            table = pl.read_parquet(path, columns=list(_COLUMNS), glob=False).cast(_SCHEMA)
        if len(table) and _HASHED.fullmatch(str(table["query_text"][0])):
            raise InputError("the audit is redacted", "give the audit that holds the texts", where=folder)
        tables.append(table)
        inputs.append({"folder": str(folder), "sha256": hash_file(path), "pairs": len(table)})
    return LeakCandidates(pl.concat(tables), tuple(inputs))


def excluded(candidates: LeakCandidates, judgments: Judgments | None, sources: Sequence[str]) -> Excluded:
    """The queries that must not be in a row without a leak: every candidate, and what was judged a leak.

    Candidates are known by text, and by id in the source of that name; where the audits know no source of a name, by
    id in any.
    """
    texts = {normalise(text) for text in candidates.table["query_text"].unique()}
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for source, query_id in candidates.table.select("source", "query_id").unique().iter_rows():
        ids[source].add(query_id)
    everywhere: set[str] = set().union(*ids.values())
    by_source: dict[str, set[str]] = {name: set(ids.get(name, everywhere)) for name in sources}
    for pair in () if judgments is None else judgments.pairs:
        if pair.leak and pair.text:
            texts.add(pair.text)
        elif pair.leak:
            for name in sources:
                by_source[name].add(pair.query_id)
    return Excluded(frozenset(texts - {""}), by_source)


def verified_leaks(
    labels: Sequence[str], topics: Collection[str] | None, votes: Votes = "majority"
) -> tuple[Judgments, list[Leak]]:
    judgments = open_judgments(list(labels), votes=votes)
    leaks = [
        Leak(pair.topic_id, pair.query_id, pair.text, True)
        for pair in judgments.pairs
        if pair.leak and (topics is None or pair.topic_id in topics)
    ]
    return judgments, leaks


def leaks_above(
    candidates: LeakCandidates, threshold: float, judgments: Judgments | None, topics: Collection[str] | None
) -> list[Leak]:
    """The candidates above a threshold, which nobody need have verified; what was judged to be no leak is left out."""
    above = candidates.table.filter(pl.col("similarity") > pl.lit(threshold, pl.Float32))
    leaks: dict[tuple[str, str], Leak] = {}
    for topic_id, query_id, raw in above.select("topic_id", "query_id", "query_text").iter_rows():
        pair = None if judgments is None else judgments.find(topic_id, raw, query_id)
        verdict = None if pair is None else pair.leak
        if verdict is not False and (topics is None or topic_id in topics):
            text = normalise(raw)
            leaks.setdefault((topic_id, text), Leak(topic_id, query_id, text, verdict is True))
    return list(leaks.values())


def wanted(leaks: Iterable[Leak]) -> QueryKeys:
    """What has to be looked up in the sources of queries: the leaks' texts, and ids where there is no text."""
    known = list(leaks)
    texts = frozenset(leak.text for leak in known if leak.text)
    return QueryKeys(texts, frozenset(leak.query_id for leak in known if not leak.text))


def spread(leaks: Iterable[Leak], seed: int) -> list[Leak]:
    """The leaks in a random order in which the topics take turns; a query that leaks several topics stands once.

    Any number of them from the beginning is a sample spread over the topics.
    """
    of_query, of_topic = Keyed(seed, "leaks"), Keyed(seed, "topics")
    by_topic: defaultdict[str, list[Leak]] = defaultdict(list)
    for leak in sorted(set(leaks), key=lambda leak: (of_query(leak.text or leak.query_id), leak)):
        by_topic[leak.topic_id].append(leak)
    turns = [by_topic[topic] for topic in sorted(by_topic, key=lambda topic: (of_topic(topic), topic))]
    taken: set[str] = set()
    ordered: list[Leak] = []
    while turns:
        for queue in turns:
            while queue and (queue[0].text or queue[0].query_id) in taken:
                queue.pop(0)
            if queue:
                leak = queue.pop(0)
                taken.add(leak.text or leak.query_id)
                ordered.append(leak)
        turns = [queue for queue in turns if queue]
    return ordered


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
    """What a lane gave: rows in random order, and whether the source holds no others.

    `skipped` counts by reason the queries that were drawn and made no row.
    """

    drafts: tuple[RowDraft, ...]
    complete: bool
    skipped: dict[str, int] = field(default_factory=dict)


class TrainingSources:
    """The sources of training queries, in order.

    Queries of `excluded` and documents of `barred` must not be in a row without a leak.
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

    def scan(self, room: int, wanted: QueryKeys, progress: Callable[[str], None]) -> None:
        """Reads every source once: draws so many queries, and looks for others."""
        self.scanned = []
        for lane in self.lanes:
            progress(f"reading queries of {lane.name}")
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
            hits = (scanned.by_text.get(leak.text) if leak.text else scanned.by_id.get(leak.query_id) for leak in leaks)
            found.append([(place, query) for place, query in enumerate(hits) if query is not None])
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
        reasons = {f"{lane.name}: {reason}": number for reason, number in skipped.items() if number}
        return Prepared(tuple(drafts), scanned.complete and at == len(queries), reasons)

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
            own = lane.qrels is None
            came = f"{'its own document' if own else f'qrels {grade}'}; {origin}"
            drafts[query_id] = RowDraft(role, None, lane.name, query_id, text, doc_id, other_id, came, cut=own)
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
        asked = [Asked(*query, frozenset(doc_id for doc_id, _ in judged[query.query_id].relevant)) for query in queries]
        usable: Usable = lane.source.usable if isinstance(lane.source, DocumentQueries) else everything
        if self._barred and role == "none":
            usable = _without(usable, self._barred)
        negatives = lane.stage.negatives(asked, self._negative, usable)
        return {query_id: (one[0].doc_id, f"first-stage rank {one[0].rank}") for query_id, one in negatives.items()}


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

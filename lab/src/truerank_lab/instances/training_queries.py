"""Training queries as rows, those that leak and random others; the candidates of audits, and verified leaks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.judging.labels import Judgments
from truerank.records import Query
from truerank.sources.qrels import QREL_SCHEMA, qrel_frames
from truerank.sources.queries import QuerySource
from truerank.text.normalising import normalise
from truerank.work.artifacts import written_by
from truerank_lab.instances.document_queries import DocumentQueries
from truerank_lab.instances.draws import (
    Asked,
    Excluded,
    FirstStage,
    Keyed,
    QueryKeys,
    RowDraft,
    SourcePass,
    Usable,
    everything,
    scan,
)

#: What `leakage audit` writes.
CANDIDATES: Final = "candidates.parquet"
_COLUMNS: Final = ("source", "query_id", "query_text")
_HASHED: Final = re.compile(r"hmac:[0-9a-f]{8}:[0-9a-f]{16}")
#: The judged documents of queries with their grades, in the order of the judgments.
Grades = dict[str, tuple[tuple[str, int], ...]]


class Leak(NamedTuple):
    """A training query that was judged to leak a topic; `text` is normalised, and empty where only the id is known."""

    topic_id: str
    query_id: str
    text: str


def read_candidates(folders: Sequence[str]) -> pl.DataFrame:
    """Reads what `leakage audit` wrote, every pair down to its floor; columns source, query_id, query_text."""
    schema = dict.fromkeys(_COLUMNS, pl.String)
    tables = [pl.DataFrame(schema=schema)]
    for folder in folders:
        path = Path(folder) / CANDIDATES
        with written_by("leakage audit", path.parent, CANDIDATES):
            table = pl.read_parquet(path, columns=list(_COLUMNS), glob=False).cast(schema)  # type: ignore[arg-type]
        if len(table) and _HASHED.fullmatch(str(table["query_text"][0])):
            raise InputError("the audit is redacted", "give the audit that holds the texts", where=folder)
        tables.append(table)
    return pl.concat(tables)


def excluded(candidates: pl.DataFrame, judgments: Judgments | None, sources: Sequence[str]) -> Excluded:
    """The queries that must not be in a row without a leak: every candidate, and what was judged a leak.

    Candidates are known by text, and by id in the source of that name; where the audits know no source of a name, by
    id in any.
    """
    texts = {normalise(text) for text in candidates["query_text"].unique()}
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for source, query_id in candidates.select("source", "query_id").unique().iter_rows():
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


def verified_leaks(judgments: Judgments, topics: Collection[str] | None) -> list[Leak]:
    return [
        Leak(pair.topic_id, pair.query_id, pair.text)
        for pair in judgments.pairs
        if pair.leak and (topics is None or pair.topic_id in topics)
    ]


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


def relevant_documents(specs: Sequence[str], wanted: Sequence[Collection[str]]) -> list[Grades]:
    """Looks up the relevant documents of some queries; each source of judgments is read once, as a stream."""
    tables: dict[str, pl.DataFrame] = {}
    for spec in dict.fromkeys(specs):
        ids = {one for own, some in zip(specs, wanted, strict=True) if own == spec for one in some}
        asked = pl.Series(sorted(ids), dtype=pl.String).implode()
        parts = [frame.filter(pl.col("topic_id").is_in(asked)) for frame in qrel_frames(spec)]
        tables[spec] = pl.concat([pl.DataFrame(schema=QREL_SCHEMA), *parts])
    return [_by_query(tables[spec], some) for spec, some in zip(specs, wanted, strict=True)]


def _by_query(table: pl.DataFrame, wanted: Collection[str]) -> Grades:
    own = table.filter(pl.col("topic_id").is_in(pl.Series(list(wanted), dtype=pl.String).implode()))
    first = own.unique(("topic_id", "doc_id"), keep="first", maintain_order=True).filter(pl.col("relevance") > 0)
    lists = first.group_by("topic_id", maintain_order=True).agg("doc_id", "relevance")
    return {query_id: tuple(zip(doc_ids, grades, strict=True)) for query_id, doc_ids, grades in lists.iter_rows()}


class Lane(NamedTuple):
    """A source of training queries with its name in the rows and its judgments (None where its documents are the
    queries)."""

    source: QuerySource | DocumentQueries
    name: str
    qrels: str | None


@dataclass(frozen=True)
class Prepared:
    """What a lane gave: rows in random order, and whether the source holds no others.

    `skipped` counts by reason the queries that were drawn and made no row.
    """

    drafts: tuple[RowDraft, ...]
    complete: bool
    skipped: dict[str, int] = field(default_factory=dict)


class TrainingSources:
    """The sources of training queries, in order; those of `excluded` must not be in a row without a leak."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        stage: Callable[[], FirstStage],
        seed: int,
        excluded: Excluded,
    ) -> None:
        self.lanes, self._stage = tuple(lanes), stage
        self._seed, self._excluded = seed, excluded
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

    def _prepared(self, lane: Lane, scanned: SourcePass, judged: Grades, count: int) -> Prepared:
        queries = [query for query in scanned.drawn if judged.get(query.query_id)]
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

    def _judged(self, queries: Sequence[Sequence[Query]]) -> list[Grades]:
        """The relevant documents of queries by source, without those that the collection is known to lack."""
        specs = [(place, lane.qrels) for place, lane in enumerate(self.lanes) if lane.qrels is not None]
        ids = [[query.query_id for query in queries[place]] for place, _ in specs]
        read = relevant_documents([spec for _, spec in specs], ids)
        by_place = {place: self._there(own) for (place, _), own in zip(specs, read, strict=True)}
        return [
            by_place[place]
            if place in by_place
            else {query.query_id: ((DocumentQueries.document_of(query.query_id), 1),) for query in queries[place]}
            for place in range(len(self.lanes))
        ]

    def _there(self, judged: Grades) -> Grades:
        known = self._stage().known({doc_id for pairs in judged.values() for doc_id, _ in pairs})
        return {query_id: tuple(pair for pair in pairs if pair[0] in known) for query_id, pairs in judged.items()}

    def _drafts(self, lane: Lane, queries: Sequence[Query], judged: Grades, role: str) -> list[RowDraft | None]:
        """A row for each query, None where it lacks a relevant or a non-relevant document."""
        distinct = {query.query_id: query for query in queries}.values()
        answerable = [query for query in distinct if judged.get(query.query_id)]
        asked = [Asked(*query, frozenset(doc_id for doc_id, _ in judged[query.query_id])) for query in answerable]
        usable: Usable = lane.source.usable if isinstance(lane.source, DocumentQueries) else everything
        others = self._stage().negatives(asked, self._negative, usable)
        drafts: dict[str, RowDraft] = {}
        for query_id, text in answerable:
            if query_id not in others:
                continue
            doc_id, grade = min(judged[query_id], key=lambda pair: (self._relevant(f"{text}\0{pair[0]}"), pair))
            other, own = others[query_id][0], lane.qrels is None
            came = f"{'its own document' if own else f'qrels {grade}'}; first-stage rank {other.rank}"
            drafts[query_id] = RowDraft(role, None, lane.name, query_id, text, doc_id, other.doc_id, came, cut=own)
        return [drafts.get(query.query_id) for query in queries]

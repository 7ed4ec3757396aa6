"""Propose: judgments and runs beside the documents and topics that they name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import polars as pl

from truerank.audits.collection.documents import DocumentTable
from truerank.audits.collection.instances import Instances, instances
from truerank.audits.collection.run_faults import Files
from truerank.audits.collection.run_origins import run_origins
from truerank.audits.collection.topics import TopicTable
from truerank.measures.run_faults import score_faults
from truerank.options import Scoring
from truerank.text.identifiers import likely, what_differs


def swapped_rows(frame: pl.DataFrame, topics: TopicTable | None, documents: DocumentTable | None) -> pl.DataFrame:
    """Judgments with topic and document in each other's place."""
    if topics is None or documents is None:
        return frame.clear()
    # Where topics and documents are both numbered, a number alone says nothing: as they stand, neither side exists.
    known, there = frozenset(topics.ids), documents.present
    rows = frame.filter(~pl.col("topic_id").is_in(known) & ~pl.col("doc_id").is_in(there))
    return rows.filter(pl.col("doc_id").is_in(known) & pl.col("topic_id").is_in(there))


def reference_instances(
    frame: pl.DataFrame, topics: TopicTable | None, documents: DocumentTable | None
) -> Iterator[Instances]:
    """Judgments of documents or topics that do not exist, and topics without judgments."""
    known = None if topics is None else frozenset(topics.ids)
    rows = swapped_rows(frame, topics, documents)
    detail = pl.lit("the topic's id is a document's, and the other way round").alias("detail")
    yield instances("swapped-ids", rows.with_columns(detail), len(frame))
    rest = frame.filter(~pl.col("row").is_in(rows["row"].to_list()))
    if documents is not None:
        missing = [one for one in rest["doc_id"].unique(maintain_order=True) if one not in documents.present]
        yield from _lost("document", rest, "doc_id", missing, likely(missing, documents.ids()) if missing else {})
    if topics is not None and known is not None:
        absent = [one for one in rest["topic_id"].unique(maintain_order=True) if one not in known]
        lost = list(_lost("topic", rest, "topic_id", absent, likely(absent, known)))
        if documents is not None:
            # `other` is the document that has the topic's id, where the id may mean either.
            namesake = pl.when(pl.col("topic_id").is_in(documents.present)).then("topic_id").otherwise(pl.lit(""))
            lost[1] = replace(lost[1], rows=lost[1].rows.with_columns(namesake.alias("other")))
        yield from lost
        judged = frozenset(rest["topic_id"]).union(rows["doc_id"])
        yield instances("unjudged-topic", [{"topic_id": one} for one in topics.ids if one not in judged], len(known))


def _lost(
    what: str, frame: pl.DataFrame, column: str, missing: Collection[str], meant: Mapping[str, str]
) -> Iterator[Instances]:
    """Judgments of what does not exist, and those among them for which the likely one is known."""
    rows, known = frame.filter(pl.col(column).is_in(list(missing))), pl.col(column).is_in(list(meant))
    steps = {one: f"differs in {what_differs(one, other)}" for one, other in meant.items()}
    respelt = rows.filter(known).with_columns(
        pl.col(column).replace_strict(values, default="", return_dtype=pl.String).alias(name)
        for name, values in (("other", dict(meant)), ("detail", steps))
    )
    yield instances(f"respelt-{what}", respelt, len(frame))
    unknown = rows.filter(~known).with_columns(pl.format("grade {}", "relevance").alias("detail"))
    yield instances("missing-document" if what == "document" else "unknown-topic", unknown, len(frame))


def unreachable(found: Collection[Instances]) -> frozenset[str]:
    """The judged documents that no system can return."""
    kinds = ("missing-document", "respelt-document")
    return frozenset(one for part in found if part.kind in kinds for one in part.rows["doc_id"])


_DEPTH: Final = 10
#: The kinds of findings on runs, by what the files show.
_RUN_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "odd-scores": ("rising-scores", "constant-scores", "constant-ranks"),
    "odd-origin": ("no-order", "other-numbers", "other-index", "misplaced-run", "lost-documents", "failed-topics"),
    "judgments-in-run": ("judgments-in-sight",),
}


def run_instances(
    runs: Mapping[str, pl.DataFrame], pairs: pl.DataFrame, rel: int, documents: DocumentTable | None
) -> Iterator[Instances]:
    """Relevant documents that runs do not hold, and results that are not documents."""
    relevant = pairs.filter(pl.col("relevance") >= rel).select("topic_id", "doc_id")
    lost, foreign, results = [], [], 0
    for name, run in runs.items():
        absent = relevant.join(run, on=["topic_id", "doc_id"], how="anti", maintain_order="left")
        lost.append(absent.with_columns(pl.lit(name).alias("other"), pl.lit("not in this run").alias("detail")))
        results += len(run)
        if documents is not None:
            strange = run.filter(~pl.col("doc_id").is_in(documents.present)).select("topic_id", "doc_id")
            foreign.append(strange.with_columns(pl.lit(name).alias("other")))
    if lost:
        yield instances("relevant-not-retrieved", pl.concat(lost), len(relevant) * len(runs))
    if foreign:
        yield instances("run-of-other-documents", pl.concat(foreign), results)


def run_fault_instances(runs: Mapping[str, pl.DataFrame], pairs: pl.DataFrame, scoring: Scoring) -> Iterator[Instances]:
    """What runs show without any document: scores that contradict ranks, and how they were made."""
    one = next(iter(runs))
    files = Files(runs, (one, one), pairs, None, None, _DEPTH, scoring.ties == "rank")
    scores = (score_faults(name, own, by_rank=files.by_rank) for name, own in files.judged_lists.items())
    faults = (*chain.from_iterable(scores), *run_origins(files, scoring.rel, runs))
    for kind, of in _RUN_KINDS.items():
        found = [{"other": fault.run, "detail": fault.reason} for fault in faults if fault.kind in of]
        yield instances(kind, found, len(runs), len({row["other"] for row in found}))


def asked_for(frame: pl.DataFrame | None, runs: Mapping[str, pl.DataFrame], topics: TopicTable | None) -> set[str]:
    """The ids of which has to be known whether documents have them."""
    asked: set[Any] = set()
    if frame is not None:
        asked.update(frame["doc_id"].unique(), frame["topic_id"].unique())
    for run in runs.values():
        asked.update(run["doc_id"].unique())
    if topics is not None:
        asked.update(topics.ids)
    return asked

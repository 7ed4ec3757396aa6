"""The leaks of whole examples in the form of `leakage audit`, for the commands that take the topics out."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

import polars as pl

from truerank.audits.leakage.results import CANDIDATE_SCHEMA, NEIGHBOUR_SCHEMA, AuditResult, AuditSummary, TestSummary
from truerank.audits.leakage.training_examples.results import ExampleAudit, load_examples
from truerank.errors import OptionError
from truerank.judging.labels import Judgments

#: Kinds of leak that count where nobody says which: those that change what a score of these topics means.
DEFAULT_KINDS: Final = ("pair", "query-query", "positive-relevant", "negative-relevant")
#: There is no similarity: every pair of the audit counts, and none does above 1.
_THRESHOLD: Final = 0.5


def holds_examples(audit: object) -> bool:
    """Whether this is an audit of whole examples, or the folder of one."""
    return isinstance(audit, ExampleAudit) or (
        isinstance(audit, str | Path) and (Path(audit) / "leaks.parquet").is_file()
    )


def chosen_leaks(found: ExampleAudit | str | Path, kinds: Collection[str]) -> tuple[ExampleAudit, pl.DataFrame]:
    """An audit, opened, and its leaks of some kinds."""
    audit = found if isinstance(found, ExampleAudit) else load_examples(found)
    return audit, audit.leaks.filter(pl.col("kind").is_in(list(kinds or DEFAULT_KINDS)))


def leaks_that_count(audit: ExampleAudit, leaks: pl.DataFrame, judgments: Judgments | None, basis: str) -> pl.DataFrame:
    """The leaks that count by what people said of them, with a column `judged`: true where a label says so.

    A pair of query and answer is no leak where either half of it was judged none.
    """
    if basis == "labels-only" and judgments is None:
        raise OptionError("basis", "labels-only needs labels", "give `labels`, or choose another")
    columns = ("kind", "topic_id", "doc_id", "training_text", "training_document", "example_id")
    said = [_said(row, judgments, str(audit.test["name"])) for row in leaks.select(columns).iter_rows()]
    counts = {"labels-first": (True, None), "labels-only": (True,), "either": (True, None, False)}[basis]
    kept = pl.Series([one in counts for one in said], dtype=pl.Boolean)
    return leaks.with_columns(judged=pl.Series(said, dtype=pl.Boolean).fill_null(value=False)).filter(kept)


def _said(row: tuple[str, ...], judgments: Judgments | None, name: str) -> bool | None:
    """What people said of a leak."""
    if judgments is None:
        return None
    kind, topic, doc, text, answer, example = row
    halves = [(topic, text), (doc, answer)] if kind == "pair" else [(topic or doc, text)]
    found = [judgments.find(one, read or "", example or "", name) for one, read in halves]
    answers = [None if pair is None else pair.leak for pair in found]
    return False if False in answers else (True if True in answers else None)


def as_candidates(found: ExampleAudit | str | Path, kinds: Collection[str] = ()) -> AuditResult:
    """The leaks of topics as candidates: those of queries, and of queries together with their answers."""
    audit, leaks = chosen_leaks(found, kinds)
    leaks = leaks.filter(pl.col("topic_id").is_not_null())
    given = {
        "test": pl.lit(audit.test["name"]),
        "variant_no": pl.lit(0),
        "topic_text": pl.col("test_text"),
        "query_id": pl.col("example_id"),
        "query_text": pl.col("training_text"),
        "similarity": pl.lit(1.0),
        "rank": pl.lit(1),
        "type": pl.lit(""),
        "title_type": pl.lit(""),
        "shared": pl.lit(None),
    }
    frame = leaks.with_columns(**given)
    frame = frame.select(pl.col(name).cast(kind) for name, kind in CANDIDATE_SCHEMA.items())
    summary = AuditSummary(
        threshold=_THRESHOLD,
        floor=_THRESHOLD,
        calibrated_for="",
        calibrated=False,
        encoder="",
        mode="exhaustive",
        top_k=0,
        sources={},
        tests={
            audit.test["name"]: TestSummary(
                topics=audit.test["topics"],
                verdict="CONTAMINATED" if frame.height else "UNKNOWN",
                why="",
                evidence=[],
                settle=[],
                leaked_topics=frame["topic_id"].unique(maintain_order=True).to_list(),
                below={"topics": 0, "queries": 0, "pairs": 0, "fields": {}},
                fields={},
                sensitivity=[],
                other_topics={},
            )
        },
        prefilter=None,
    )
    return AuditResult(summary, frame, pl.DataFrame(schema=NEIGHBOUR_SCHEMA), audit.folder)

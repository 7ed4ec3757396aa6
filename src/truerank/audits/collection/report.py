"""How the results of the collection commands are shown and written."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from truerank.audits.collection.results import CollectionAudit, PartVerdict, Word
from truerank.reports.pages import Tone
from truerank.reports.report import Verdict
from truerank.reports.results import Summary, summarises, writes
from truerank.reports.tables import Column, Table
from truerank.work.runs import Run

__all__ = ["findings_table"]

TONES: Final[dict[Word, Tone]] = {"FAULTY": "bad", "SOUND": "good", "UNKNOWN": "open"}
_WIDTH: Final = 100


@summarises(CollectionAudit)
def _summary(result: CollectionAudit) -> Summary:
    notes = () if result.folder is None else (f"report: {result.folder / 'report.html'}",)
    return Summary(tuple(_parts(result)), result.json(), tuple(_verdict(result.verdicts[0])), notes, width=_WIDTH)


@writes(CollectionAudit)
def _write(result: CollectionAudit, job: Run) -> None:
    job.parquet("findings.parquet", result.instances)
    job.parquet("pairs.parquet", result.pairs)
    job.parquet("groups.parquet", result.groups)
    if result.items:
        job.text("items.jsonl", "".join(result.items))
    job.json("summary.json", result.json())


def findings_table(result: CollectionAudit) -> Table:
    """The findings with their counts and their first example."""
    rows = [
        (one.kind.title, one.kind.part, one.kind.severity, one.count, one.of, _example(one.examples))
        for one in result.findings
    ]
    return Table(
        "What was found." if rows else "Nothing was found.",
        (
            Column("Finding"),
            Column("Part"),
            Column("Severity"),
            Column("Count", align="right", format=",d"),
            Column("Of", align="right", format=",d"),
            Column("Example"),
        ),
        tuple(rows),
    )


def _example(examples: tuple[object, ...]) -> str:
    if not examples:
        return ""
    first: dict[str, object] = dict(examples[0])  # type: ignore[call-overload]
    ids = [str(first[name]) for name in ("topic_id", "doc_id", "other") if name in first]
    place = [f"line {first['line']}"] if "line" in first else []
    return ": ".join(part for part in (" · ".join([*place, *ids]), str(first.get("detail", ""))) if part)


def _parts(result: CollectionAudit) -> Iterator[Table | str]:
    for verdict in result.verdicts:
        sentences = " ".join(part for part in (verdict.reason, verdict.evidence, verdict.settle) if part)
        lines = textwrap.wrap(sentences, _WIDTH - 4)
        yield "\n".join([f"{verdict.word}: {verdict.part}", *(f"    {line}" for line in lines)])
    yield findings_table(result)


def _verdict(verdict: PartVerdict) -> Iterator[Verdict]:
    yield Verdict(
        word=verdict.word,
        reason=verdict.reason,
        evidence=verdict.evidence,
        what_would_change_it=verdict.settle,
        subject=verdict.part,
        tone=TONES[verdict.word],
    )

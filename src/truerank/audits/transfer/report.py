"""How the results of the transfer commands are shown and written, except the scan, which has a page of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import polars as pl

from truerank.audits.transfer.carrying import COMBINE, Carrying
from truerank.audits.transfer.cleaning import TRUST, JudgmentCleaning
from truerank.audits.transfer.experts import Comparison
from truerank.audits.transfer.matching.versions import Matched
from truerank.reports.results import Summary, summarises, writes
from truerank.reports.tables import Column, Table
from truerank.work.runs import Run

__all__ = ["matched_table"]

#: Turns what would break a line of TSV into blanks.
_BREAKS: Final = str.maketrans("\t\r\n", "   ")
_AT_ONCE: Final = 1 << 16
_COUNTS: Final = (Column("what"), Column("of these, because"), Column("number", align="right", format=",d"))


@summarises(Matched)
def _matched_summary(result: Matched) -> Summary:
    return Summary((matched_table(result),), result.json(), notes=_note("matched", result.folder))


@writes(Matched)
def _write_matched(result: Matched, job: Run) -> None:
    job.skipped = {
        name: {key: result.status(name)[key] for key in ("lost", "ambiguous")} for name in result.versions[1:]
    }
    job.parquet("matched.parquet", result.frame)
    job.parquet("pairs.parquet", result.pairs)
    for status, columns in (
        ("lost", ("doc_id", "key", "version", "reason")),
        ("ambiguous", ("doc_id", "key", "version", "candidates", "listed", "reason")),
    ):
        job.text(f"{status}.tsv", "".join(_tsv(result.pairs.filter(pl.col("status") == status).select(columns))))
    job.json("summary.json", {**result.json(), "version_names": result.versions, "counts": result.counts})


@summarises(Carrying)
def _carrying_summary(result: Carrying) -> Summary:
    tables = (_carrying_table(result), *(() if result.experts is None else (_experts_table(result.experts),)))
    return Summary(tables, result.json(), notes=_note("judgments", result.out))


@writes(Carrying)
def _write_carrying(result: Carrying, job: Run) -> None:
    for name, part in result.parts.items():
        with job.output(result.files[name].name) as stream:
            _write_tsv(stream, part)
    if result.out is not None:
        with job.output(result.out.name) as stream:
            _write_qrels(stream, result.qrels)


def matched_table(result: Matched) -> Table:
    """Matched, lost and ambiguous per version, with the reasons."""
    rows: list[tuple[str | int | float | None, ...]] = []
    rules = []
    reasons = result.reasons()
    for name in result.versions[1:]:
        rules.append(len(rows))
        total = max(1, len(result.frame))
        for status, number in result.status(name).items():
            rows.append((name, status, "", number, 100 * number / total))
            some = reasons.filter((pl.col("version") == name) & (pl.col("status") == status))
            rows += [("", "", reason, n, 100 * n / total) for _, _, reason, n in some.iter_rows()]
    return Table(
        title=f"{len(result.frame):,d} judged documents of {result.judged}, matched by {result.by}.",
        columns=(
            Column("version"),
            Column("what became of them"),
            Column("of these, because"),
            Column("documents", align="right", format=",d"),
            Column("%", align="right", format=".1f"),
        ),
        rows=tuple(rows),
        notes=result.warnings,
        rules=tuple(rules[1:]),
    )


def _carrying_table(result: Carrying) -> Table:
    """The counts."""
    reasons = {
        state: [(reason, n) for of, reason, n in result.reasons if of == state] for state in ("lost", "ambiguous")
    }
    rows: list[tuple[str, str, int]] = [
        ("judgments read", "", result.read),
        ("carried", "", result.carried),
        ("lost", "", result.lost),
        *(("", reason, n) for reason, n in reasons["lost"]),
        ("ambiguous", "", result.ambiguous),
        *(("", reason, n) for reason, n in reasons["ambiguous"]),
        ("documents with several judgments, put together", "", result.merged),
        ("", "their grades differ", result.differing),
        ("judgments written", "", result.written),
        ("topics read", "", result.topics["read"]),
        ("topics written", "", result.topics["written"]),
        ("topics whose relevant documents are all gone", "", result.topics["without_relevant"]),
    ]
    return Table(
        title=f"{_named(result.out)}judgments carried over.",
        columns=_COUNTS,
        rows=tuple(rows),
        notes=(f"Several judgments of one document: {COMBINE[result.combine]}.", *result.warnings),
    )


def _experts_table(experts: Comparison) -> Table:
    """The shares with their intervals."""
    lines = (
        ("carried as relevant, judged not relevant", experts.relevant),
        ("carried as not relevant, judged relevant", experts.non_relevant),
        ("topics with a document of the first kind", experts.topics),
    )
    heading = (f"{experts.confidence:.0%} interval",)
    return Table(
        title="What experts say of the carried judgments.",
        columns=(
            Column(""),
            Column("number", align="right", format=",d"),
            Column("of", align="right", format=",d"),
            Column("share", align="right", format=".3f"),
            Column("from", heading, align="right", format=".3f"),
            Column("to", heading, align="right", format=".3f"),
        ),
        rows=tuple((name, *one) if one.n else (name, 0, 0, None, None, None) for name, one in lines),
        notes=(
            f"Relevant: from grade {experts.grades[0]} (carried) and {experts.grades[1]} (experts). The intervals are "
            "Clopper and Pearson's.",
            f"Experts said nothing about {experts.unjudged:,d} carried judgments of their topics, and nothing about "
            f"{experts.other_topics:,d} topics.",
        ),
    )


@summarises(JudgmentCleaning)
def _cleaning_summary(result: JudgmentCleaning) -> Summary:
    return Summary((_cleaning_table(result),), result.json(), notes=_note("judgments", result.out))


def _cleaning_table(result: JudgmentCleaning) -> Table:
    """The counts."""
    rows: list[tuple[str, str, int]] = [
        ("judgments read", "", result.read),
        ("removed", "", sum(result.removed.values())),
        *(("", why, number) for why, number in result.removed.items()),
        ("flagged, but judged sound", "", result.reprieved),
        ("judgments written", "", result.kept),
        ("not among the judgments", "", result.not_found),
        ("topics read", "", result.topics["read"]),
        ("topics whose relevant documents are all gone", "", result.topics["without_relevant"]),
    ]
    return Table(
        title=f"{_named(result.out)}the judgments that still hold for {result.version}.",
        columns=_COUNTS,
        rows=tuple(rows),
        notes=(f"Removed: {TRUST[result.trust]}.", *result.warnings),
    )


def _named(out: Path | None) -> str:
    return "" if out is None else f"{out.name}: "


def _note(what: str, place: Path | None) -> tuple[str, ...]:
    return () if place is None else (f"{what}: {place}",)


def _tsv(frame: pl.DataFrame) -> Iterator[str]:
    """The lines of a frame as TSV with a header; tabs and line ends in texts become blanks."""
    yield "\t".join(frame.columns) + "\n"
    for part in frame.iter_slices(_AT_ONCE):
        for row in part.iter_rows():
            yield "\t".join("" if cell is None else str(cell).translate(_BREAKS) for cell in row) + "\n"


def _write_tsv(stream: IO[bytes], frame: pl.DataFrame) -> None:
    for line in _tsv(frame):
        stream.write(line.encode("utf-8", "replace"))


def _write_qrels(stream: IO[bytes], frame: pl.DataFrame) -> None:
    """Writes judgments (columns as in `QREL_SCHEMA`) as TREC lines."""
    for part in frame.iter_slices(_AT_ONCE):
        lines = part.select(pl.format("{} 0 {} {}\n", "topic_id", "doc_id", "relevance").alias("line"))["line"]
        stream.write("".join(lines).encode("utf-8", "replace"))

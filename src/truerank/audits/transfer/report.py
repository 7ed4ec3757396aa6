"""How the results of the transfer commands are shown and written, except the scan, which has a page of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import polars as pl

from truerank.audits.transfer.captures import Snapshots
from truerank.audits.transfer.descriptions import Description, TransferCard
from truerank.audits.transfer.estimates import COMBINATIONS, Estimate, Estimates, PrecisionInterval
from truerank.audits.transfer.matching.versions import Matched
from truerank.audits.transfer.removal import TRUST, JudgmentCleaning
from truerank.audits.transfer.routes import COMBINE, Carrying, ExpertComparison
from truerank.audits.transfer.scanning.report import below_table, sets_table
from truerank.audits.transfer.selection import Selection
from truerank.core.result import Format, Summary, place_note, summarises, writes
from truerank.core.tables import Cell, Column, Table, escape_markdown
from truerank.sources.qrels import qrel_text
from truerank.work.runs import Run

#: Turns what would break a line of TSV into blanks.
_BREAKS: Final = str.maketrans("\t\r\n", "   ")
_AT_ONCE: Final = 1 << 16
_COUNTS: Final = (Column("what"), Column("of these, because"), Column("number", align="right", format=",d"))


@summarises(Matched)
def _matched_summary(result: Matched) -> Summary:
    return Summary((matched_table(result),), result.json(), notes=place_note("matched", result.folder))


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
    return Summary(tables, result.json(), notes=place_note("judgments", result.out))


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
    ]
    note = f"Several judgments of one document: {COMBINE[result.combine]}."
    return _counts_table("judgments carried over.", rows, result, note)


def _experts_table(experts: ExpertComparison) -> Table:
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
            *Column.numbers(",d", "number", "of"),
            Column("share", align="right", format=".3f"),
            *Column.numbers(".3f", "from", "to", above=heading),
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
    return Summary((_cleaning_table(result),), result.json(), notes=place_note("judgments", result.out))


def _cleaning_table(result: JudgmentCleaning) -> Table:
    """The counts."""
    rows: list[tuple[str, str, int]] = [
        ("judgments read", "", result.read),
        ("removed", "", sum(result.removed.values())),
        *(("", why, number) for why, number in result.removed.items()),
        ("flagged, but judged sound", "", result.reprieved),
        ("judgments written", "", result.kept),
        ("not among the judgments", "", result.not_found),
    ]
    title = f"the judgments that still hold for {result.version}."
    return _counts_table(title, rows, result, f"Removed: {TRUST[result.trust]}.")


def _counts_table(
    title: str, judgments: Sequence[tuple[str, str, int]], result: Carrying | JudgmentCleaning, note: str
) -> Table:
    """Counts of judgments and, below them, of topics."""
    labels = {
        "read": "topics read",
        "written": "topics written",
        "without_relevant": "topics whose relevant documents are all gone",
    }
    topics = [(label, "", result.topics[kind]) for kind, label in labels.items() if kind in result.topics]
    return Table(
        title=f"{_named(result.out)}{title}",
        columns=_COUNTS,
        rows=(*judgments, *topics),
        notes=(note, *result.warnings),
    )


@summarises(Description)
def _description_summary(result: Description) -> Summary:
    return Summary((_description_table(result),), result.json(), width=120)


def _description_table(result: Description) -> Table:
    rows = tuple(
        (
            part.name,
            part.documents,
            part.path_length if part.with_url else None,
            part.parameters if part.with_url else None,
            part.similar or None,
            part.similarity if part.similar else None,
            part.domain or None,
            100 * part.domain_share if part.domain else None,
        )
        for part in result.parts
    )
    lacking = result.parts[-1].documents - result.parts[-1].with_url
    notes = (f"URLs are those of {result.version}; {lacking:,d} documents have none there.",)
    return Table(
        "The documents of the data sets.",
        (
            Column("set"),
            Column("documents", align="right", format=",d"),
            *Column.numbers(".2f", "path length", "parameters", above=("URLs",)),
            Column("set", ("most similar by topics",)),
            Column("Jaccard", ("most similar by topics",), align="right", format=".2f"),
            Column("domain", ("most frequent",)),
            Column("%", ("most frequent",), align="right", format=".2f"),
        ),
        rows,
        notes,
        rules=(len(rows) - 1,),
    )


@summarises(Estimates)
def _estimates_summary(result: Estimates) -> Summary:
    return Summary((estimates_table(result),), result.json(), width=130)


def estimates_table(result: Estimates) -> Table:
    """Table 3: counts, precision, documents, errors."""
    above = f"relevance {'/'.join(result.versions)}"
    columns = [Column("set")]
    columns += Column.numbers(",d", *(f"{pair[0]}/{pair[1]}" for pair in COMBINATIONS.values()), above=(above,))
    columns += [Column("precision", align="right", format=".2f"), Column("interval", align="right")]
    columns += [*Column.numbers(",d", "documents", "errors"), Column("interval", ("",), align="right")]
    if any(part.stratified for part in result.parts):
        columns += [Column("by bands", align="right", format=",d"), Column("interval", ("by bands",), align="right")]
    rows = tuple(tuple(_estimate_row(part))[: len(columns)] for part in result.parts)
    notes = (
        "2: relevant, and better than the other version. Errors: precision times documents; an error is a pair "
        "whose worse version is not relevant while the better one is.",
        f"Intervals: {result.confidence:.0%}, Wilson; by bands: each band of the difference by its own precision, "
        "with intervals from draws of the posterior (Jeffreys' prior).",
        *result.notes,
    )
    return Table("How many judgments broke.", tuple(columns), rows, notes)


def _estimate_row(part: Estimate) -> list[Cell]:
    row: list[Cell] = [part.counts.name, *(part.counts.labels.get(pair, 0) for pair in COMBINATIONS.values())]
    row += [None if part.precision is None else part.precision.value, _ends(part.precision, ".2f")]
    row.append(part.counts.documents)
    for found in (part.errors, part.stratified):
        row += [None if found is None else round(found.value), _ends(found, ",.0f")]
    return row


def _ends(found: PrecisionInterval | None, form: str) -> str | None:
    return None if found is None else f"{found.low:{form}}–{found.high:{form}}"


@dataclass(frozen=True)
class _Statement(Summary):
    """A card: people and README files get the same Markdown."""

    def show(self, form: Format = "text") -> str:
        """The card as one text; as LaTeX and CSV its tables."""
        if form not in ("text", "markdown"):
            return super().show(form)
        shown = (part.markdown().strip() if isinstance(part, Table) else part for part in self.parts)
        return "\n\n".join(shown) + "\n"


@summarises(TransferCard)
def _card_summary(result: TransferCard) -> Summary:
    content, scan = result.content, result.scan
    date = f" on {content['date']}" if "date" in content else ""
    names = ", ".join(escape_markdown(name) for name in content["versions"])
    parts: list[Table | str] = [
        "## Judgments and versions of the documents",
        f"Checked with truerank {content['truerank']}{date}: {content['compared']:,d} judged documents in the "
        f"versions {names}, scored by {escape_markdown(content['ranker'])} "
        f"({escape_markdown(content['policy'])} passages).",
        sets_table(scan),
    ]
    if scan.summary["below"]:
        parts.append(below_table(scan))
    if result.estimates is None:
        parts.append("Nobody judged these candidates: they are no errors yet.")
    else:
        parts.append(estimates_table(result.estimates))
    return _Statement(tuple(parts), result.json())


@summarises(Selection)
def _selection_summary(result: Selection) -> Summary:
    return Summary((_selection_table(result),), result.json(), notes=place_note("tables", result.folder), width=100)


@writes(Selection)
def _write_selection(result: Selection, job: Run) -> None:
    job.skipped = dict(result.skipped)
    job.json("summary.json", {key: value for key, value in result.json().items() if key != "folder"})


def _selection_table(result: Selection) -> Table:
    """Which versions each strategy chose."""
    versions = list(dict.fromkeys(name for counts in result.chosen.values() for name in counts))
    notes = [f"Not used: {count:,d}: {reason}." for reason, count in result.skipped.items()]
    if result.wanted is not None and result.wanted > result.rows:
        notes.append(f"There are fewer rows than the {result.wanted:,d} that were asked for.")
    each = "for each strategy"
    if result.seeds:
        each += f" and each of {len(result.seeds)} draws (seeds {result.seeds[0]} to {result.seeds[-1]})"
    return Table(
        f"{result.rows:,d} training rows ({2 * result.rows:,d} instances) {each}, by chosen version.",
        (
            Column("strategy"),
            *Column.numbers(",d", *versions),
            Column("by rule", align="right", format=",d"),
        ),
        tuple(
            (name, *(counts.get(version, 0) for version in versions), result.fallbacks[name])
            for name, counts in result.chosen.items()
        ),
        (*notes, "By rule: a version lacks the document."),
    )


@summarises(Snapshots)
def _snapshots_summary(result: Snapshots) -> Summary:
    return Summary((_snapshots_table(result),), result.json(), notes=place_note("snapshots", result.folder))


@writes(Snapshots)
def _write_snapshots(result: Snapshots, job: Run) -> None:
    counts = result.counts()
    job.skipped = {year: {key: found[key] for key in ("missed", "failed")} for year, found in counts["years"].items()}
    job.parquet("snapshots.parquet", result.frame)
    missed = result.frame.filter(pl.col("status") != "found").select("doc_id", "url", "year", "status", "reason")
    job.text("misses.tsv", "".join(_tsv(missed)))
    job.json("summary.json", {name: value for name, value in result.json().items() if name not in ("folder", "files")})


def _snapshots_table(result: Snapshots) -> Table:
    """Found and missed per year, with the reasons."""
    counts, rows, rules = result.counts(), list[tuple[str | int, ...]](), list[int]()
    reasons = result.reasons()
    for year, found in counts["years"].items():
        rules.append(len(rows))
        rows.append((year, "found", "", found["found"]))
        for status in ("missed", "failed"):
            if found[status]:
                some = reasons.filter((pl.col("year") == int(year)) & (pl.col("status") == status))
                rows.append((year, status, "", found[status]))
                rows += [("", "", reason, number) for *_, reason, number in some.iter_rows()]
    return Table(
        title=f"Snapshots of {counts['documents']:,d} judged documents.",
        columns=(
            Column("year"),
            Column("what became of them"),
            Column("of these, because"),
            Column("documents", align="right", format=",d"),
        ),
        rows=tuple(rows),
        notes=(
            f"A snapshot of all years: {counts['all_years']:,d} documents; of any: {counts['any_year']:,d}.",
            *result.warnings,
        ),
        rules=tuple(rules[1:]),
    )


def _named(out: Path | None) -> str:
    return "" if out is None else f"{out.name}: "


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
        stream.write(qrel_text(part).encode("utf-8", "replace"))

"""How the results of the transfer commands are shown and written, except the scan, which has a page of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from truerank.audits.transfer.captures import Snapshots
from truerank.audits.transfer.estimates import COMBINATIONS, Estimate, Estimates, PrecisionInterval
from truerank.audits.transfer.matching.versions import Matched
from truerank.audits.transfer.removal import TRUST, JudgmentCleaning
from truerank.audits.transfer.routes import COMBINE, Carrying, ExpertComparison
from truerank.audits.transfer.selection import Selection
from truerank.core.result import Summary, place_note, shows, summarises, writes
from truerank.core.tables import Cell, Column, Table
from truerank.core.views import heads
from truerank.sources.qrels import qrel_text
from truerank.work.runs import Run

#: Turns what would break a line of TSV into blanks.
_BREAKS: Final = str.maketrans("\t\r\n", "   ")
_AT_ONCE: Final = 1 << 16
#: Above reasons.
_BECAUSE: Final = Column("of these, because")
_STATUS: Final = (Column("what became of them"), _BECAUSE)


@summarises(Matched)
def _matched_summary(result: Matched) -> Summary:
    """Matched, lost and ambiguous per version, with the reasons."""
    rows: list[tuple[Cell, ...]] = []
    rules, reasons = [], result.reasons()
    for name in result.versions[1:]:
        rules.append(len(rows))
        total = max(1, len(result.frame))
        for status, number in result.status(name).items():
            rows.append((name, status, "", number, 100 * number / total))
            some = reasons.filter((pl.col("version") == name) & (pl.col("status") == status))
            rows += [("", "", reason, n, 100 * n / total) for _, _, reason, n in some.iter_rows()]
    title = f"{len(result.frame):,d} judged documents of {result.judged}, matched by {result.by}."
    columns = (Column("version"), *_STATUS, *heads("documents:,d"), *Column.numbers(".1f", "%"))
    table = Table(title, columns, tuple(rows), result.warnings, tuple(rules[1:]))
    return Summary((table,), result.json(), notes=place_note("matched", result.folder))


@writes(Matched)
def _write_matched(result: Matched, job: Run) -> None:
    lists = {
        "lost": ("doc_id", "key", "version", "reason"),
        "ambiguous": ("doc_id", "key", "version", "candidates", "listed", "reason"),
    }
    job.skipped = {name: {key: result.status(name)[key] for key in lists} for name in result.versions[1:]}
    job.parquet("matched.parquet", result.frame)
    job.parquet("pairs.parquet", result.pairs)
    for status, columns in lists.items():
        job.text(f"{status}.tsv", "".join(_tsv(result.pairs.filter(pl.col("status") == status).select(columns))))
    job.json("summary.json", {**result.json(), "version_names": result.versions, "counts": result.counts})


@summarises(Carrying)
def _carrying_summary(result: Carrying) -> Summary:
    reasons = {state: [("", why, n) for of, why, n in result.reasons if of == state] for state in ("lost", "ambiguous")}
    rows: list[tuple[str, str, int]] = [
        ("judgments read", "", result.read),
        ("carried", "", result.carried),
        ("lost", "", result.lost),
        *reasons["lost"],
        ("ambiguous", "", result.ambiguous),
        *reasons["ambiguous"],
        ("documents with several judgments, put together", "", result.merged),
        ("", "their grades differ", result.differing),
        ("judgments written", "", result.written),
    ]
    if result.doubtful is not None:
        rows.append(("new chunks to judge", f"found by {result.by}", len(result.doubtful)))
        if result.inside:
            rows.append(("", "of relevant words only", result.inside))
    note = f"Several judgments of one document: {COMBINE[result.combine]}."
    tables = [_counts_table("judgments carried over.", rows, result, note)]
    if result.experts is not None:
        tables.append(_experts_table(result.experts))
    return Summary(tuple(tables), result.json(), notes=place_note("judgments", result.out))


@writes(Carrying)
def _write_carrying(result: Carrying, job: Run) -> None:
    for name, part in result.parts.items():
        with job.output(result.files[name].name) as stream:
            stream.writelines(line.encode("utf-8", "replace") for line in _tsv(part))
    if result.doubtful is not None:
        lines = (f"{topic} Q0 {doc} {at} {score:.4f} carried\n"
                 for at, (topic, doc, score) in enumerate(result.doubtful.iter_rows(), 1))  # fmt: skip
        with job.output(result.files["doubtful"].name) as stream:
            stream.writelines(line.encode("utf-8", "replace") for line in lines)
    if result.out is not None:
        with job.output(result.out.name) as stream:
            for part in result.qrels.iter_slices(_AT_ONCE):
                stream.write(qrel_text(part).encode("utf-8", "replace"))


def _experts_table(experts: ExpertComparison) -> Table:
    """The shares with their intervals."""
    lines = (
        ("carried as relevant, judged not relevant", experts.relevant),
        ("carried as not relevant, judged relevant", experts.non_relevant),
        ("topics with a document of the first kind", experts.topics),
    )
    interval = Column.numbers(".3f", "from", "to", above=(f"{experts.confidence:.0%} interval",))
    return Table(
        title="What experts say of the carried judgments.",
        columns=(Column(""), *heads("number:,d, of:,d, share:.3f"), *interval),
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
    rows: list[tuple[str, str, int]] = [
        ("judgments read", "", result.read),
        ("removed", "", sum(result.removed.values())),
        *(("", why, number) for why, number in result.removed.items()),
        ("flagged, but judged sound", "", result.reprieved),
        ("judgments written", "", result.kept),
        ("not among the judgments", "", result.not_found),
    ]
    title = f"the judgments that still hold for {result.version}."
    table = _counts_table(title, rows, result, f"Removed: {TRUST[result.trust]}.")
    return Summary((table,), result.json(), notes=place_note("judgments", result.out))


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
    named = "" if result.out is None else f"{result.out.name}: "
    columns = (Column("what"), _BECAUSE, *heads("number:,d"))
    return Table(f"{named}{title}", columns, (*judgments, *topics), (note, *result.warnings))


@shows(Estimates, width=130)
def estimates_table(result: Estimates) -> Table:
    """Table 3: counts, precision, documents, errors."""
    above = f"relevance {'/'.join(result.versions)}"
    interval = Column("interval", align="right")
    columns = [Column("set")]
    columns += Column.numbers(",d", *(f"{pair[0]}/{pair[1]}" for pair in COMBINATIONS.values()), above=(above,))
    columns += [*heads("precision:.2f"), interval, *heads("documents:,d, errors:,d"), replace(interval, above=("",))]
    if any(part.stratified for part in result.parts):
        columns += [*Column.numbers(",d", "by bands"), replace(interval, above=("by bands",))]
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
    def ends(found: PrecisionInterval | None, form: str) -> str | None:
        return None if found is None else f"{found.low:{form}}–{found.high:{form}}"

    row: list[Cell] = [part.counts.name, *(part.counts.labels.get(pair, 0) for pair in COMBINATIONS.values())]
    row += [None if part.precision is None else part.precision.value, ends(part.precision, ".2f")]
    row.append(part.counts.documents)
    for found in (part.errors, part.stratified):
        row += [None if found is None else round(found.value), ends(found, ",.0f")]
    return row


@summarises(Selection)
def _selection_summary(result: Selection) -> Summary:
    """Which versions each strategy chose."""
    versions = list(dict.fromkeys(name for counts in result.chosen.values() for name in counts))
    notes = [f"Not used: {count:,d}: {reason}." for reason, count in result.skipped.items()]
    if result.wanted is not None and result.wanted > result.rows:
        notes.append(f"There are fewer rows than the {result.wanted:,d} that were asked for.")
    each = "for each strategy"
    if result.seeds:
        each += f" and each of {len(result.seeds)} draws (seeds {result.seeds[0]} to {result.seeds[-1]})"
    table = Table(
        f"{result.rows:,d} training rows ({2 * result.rows:,d} instances) {each}, by chosen version.",
        (Column("strategy"), *Column.numbers(",d", *versions, "by rule")),
        tuple(
            (name, *(counts.get(version, 0) for version in versions), result.fallbacks[name])
            for name, counts in result.chosen.items()
        ),
        (*notes, "By rule: a version lacks the document."),
    )
    return Summary((table,), result.json(), notes=place_note("tables", result.folder), width=100)


@writes(Selection)
def _write_selection(result: Selection, job: Run) -> None:
    job.skipped = dict(result.skipped)
    job.json("summary.json", {key: value for key, value in result.json().items() if key != "folder"})


@summarises(Snapshots)
def _snapshots_summary(result: Snapshots) -> Summary:
    """Found and missed per year, with the reasons."""
    counts, reasons, rows, rules = result.counts(), result.reasons(), list[tuple[str | int, ...]](), list[int]()
    for year, found in counts["years"].items():
        rules.append(len(rows))
        rows.append((year, "found", "", found["found"]))
        for status in ("missed", "failed"):
            if found[status]:
                some = reasons.filter((pl.col("year") == int(year)) & (pl.col("status") == status))
                rows.append((year, status, "", found[status]))
                rows += [("", "", reason, number) for *_, reason, number in some.iter_rows()]
    note = f"A snapshot of all years: {counts['all_years']:,d} documents; of any: {counts['any_year']:,d}."
    table = Table(
        f"Snapshots of {counts['documents']:,d} judged documents.",
        (Column("year"), *_STATUS, *heads("documents:,d")),
        tuple(rows),
        (note, *result.warnings),
        tuple(rules[1:]),
    )
    return Summary((table,), result.json(), notes=place_note("snapshots", result.folder))


@writes(Snapshots)
def _write_snapshots(result: Snapshots, job: Run) -> None:
    counts = result.counts()
    job.skipped = {year: {key: found[key] for key in ("missed", "failed")} for year, found in counts["years"].items()}
    job.parquet("snapshots.parquet", result.frame)
    missed = result.frame.filter(pl.col("status") != "found").select("doc_id", "url", "year", "status", "reason")
    job.text("misses.tsv", "".join(_tsv(missed)))
    job.json("summary.json", {name: value for name, value in result.json().items() if name not in ("folder", "files")})


def _tsv(frame: pl.DataFrame) -> Iterator[str]:
    """The lines of a frame as TSV with a header; tabs and line ends in texts become blanks."""
    yield "\t".join(frame.columns) + "\n"
    for part in frame.iter_slices(_AT_ONCE):
        for row in part.iter_rows():
            yield "\t".join("" if cell is None else str(cell).translate(_BREAKS) for cell in row) + "\n"

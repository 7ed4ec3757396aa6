"""How the results of the track's commands are shown: tables, candidates, validation, selection, the report."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from truerank.audits.track.analysis import SUBTASKS, Agreement, Analysis, Duel, agrees, statements_table
from truerank.audits.track.audit import TrackReport
from truerank.audits.track.candidates import Candidates
from truerank.audits.track.figures import duel_names, paired_measures, pictures
from truerank.audits.track.file_counts import FileStatistics
from truerank.audits.track.scores import Scores
from truerank.audits.track.selection import TopicSelection
from truerank.audits.track.validation import Validation
from truerank.core.figures.export import Picture
from truerank.core.page import Prose
from truerank.core.plain import picked, plain
from truerank.core.report import Report, ReportSection
from truerank.core.result import Summary, page_note, reports, summarises
from truerank.core.tables import Cell, Column, Table
from truerank.core.verdict import Verdict
from truerank.core.views import heads
from truerank.measures.comparison import MARK, Comparison, Difference
from truerank.measures.report import difference_picture, difference_table, order_picture
from truerank.measures.significance import CORRECTIONS, TESTS
from truerank.options import Scoring
from truerank.text.printable import and_more

_SECTION: Final = "differences"


def best_differences(comparison: Comparison) -> tuple[Difference, ...]:
    """The differences of all other runs to the best one, in their order."""
    best = comparison.runs[0]
    return tuple(row for row in comparison.differences if row.baseline == best)


def finding(comparison: Comparison) -> Verdict:
    """Whether the best run is significantly better than the others, and by how much."""
    rows = best_differences(comparison)
    best, measure = comparison.runs[0], comparison.measures[0]
    worse, alike = [row for row in rows if row.significant], [row for row in rows if not row.significant]
    mean, topics = rows[0].baseline_mean, rows[0].n[0]
    head = f"{best} has the highest {measure}{'' if mean is None else f' ({mean:.4f})'}"
    if alike:
        others = f"{len(alike):,} of the {len(rows):,} other runs" if len(rows) > 1 else "the other run"
        nearest = f"the nearest is {_named(alike[0])}"
        reason = f"{head}, but these {topics:,} topics do not distinguish it from {others}; {nearest}."
    else:
        others = "the other run" if len(rows) == 1 else f"all {len(rows):,} other runs"
        reason = f"{head} and is significantly better than {others}, {_amounts(worse)}."
    differ = sum(row.significant for row in comparison.differences)
    evidence = [f"It is significantly better than {len(worse):,}, {_amounts(worse)}."] if alike and worse else []
    pairs = len(comparison.differences)
    evidence.append(
        f"Of {'the one pair' if pairs == 1 else f'all {pairs:,} pairs'} of runs, {differ:,} "
        f"differ{'s' if differ == 1 else ''} significantly ({method_sentence(comparison)})."
    )
    return Verdict(
        subject="the best run",
        word="CANNOT TELL" if alike else "AHEAD",
        level="unknown" if alike else "good",
        sentence=reason,
        rests_on=" ".join(evidence),
        settles=_reach(alike, topics, comparison.method.power),
    )


def method_sentence(comparison: Comparison) -> str:
    """The test and its correction in words."""
    method, pairs = comparison.method, len(comparison.differences)
    over = f"{CORRECTIONS[method.correction]} over {pairs:,} pair{'' if pairs == 1 else 's'}"
    return f"{TESTS[method.significance]}, {over}, α = {method.alpha:g}"


def told_apart(comparison: Comparison | None, run: str, other: str) -> str:
    """What the test says of two runs, one sentence; empty where they were not compared."""
    found = [] if comparison is None else comparison.differences
    for row in found:
        if {row.run, row.baseline} == {run, other} and row.p_corrected is not None:
            p = f"p = {row.p_corrected:.2g}, corrected for all pairs of runs"
            return f"The difference is significant ({p})." if row.significant else f"No significant difference ({p})."
    return ""


def difference_tables(comparison: Comparison) -> Iterator[tuple[str, Table]]:
    """The differences to the best run, and those of all pairs, by the names of their files."""
    yield "differences", _table(comparison)
    if len(comparison.runs) > 2:
        yield "pairs", difference_table(comparison)


def difference_pictures(comparison: Comparison) -> Iterator[Picture]:
    """The differences to the best run with their intervals, and the order with what no test tells apart."""
    measure = comparison.measures[0]
    to_best = difference_picture(_to_best(comparison), measure)
    yield replace(to_best, name="differences", section=_SECTION)
    if len(comparison.runs) > 2:
        yield replace(order_picture(comparison, measure), name="order", section=_SECTION)


def _table(comparison: Comparison) -> Table:
    """One row for each other run."""
    columns = heads(
        "run, mean:.4f, difference|mean:+.4f, difference|low:+.4f, difference|high:+.4f, p|raw:.2g, p|corrected:.2g, "
        f"p|{MARK}, win / tie / loss:, detectable:.4f"
    )
    rows = tuple(
        (
            row.run, row.mean, row.difference, row.low, row.high, row.p, row.p_corrected,
            MARK if row.significant else "", f"{row.wins} / {row.ties} / {row.losses}", row.detectable,
        )
        for row in best_differences(comparison)
    )  # fmt: skip
    title = f"{comparison.measures[0]} of the other runs, and their differences to {comparison.runs[0]}."
    # The table has no effect sizes.
    notes = [note for note in _to_best(comparison).method.sentences() if not note.startswith("Effect:")]
    return Table(title, columns, rows, notes=tuple(notes))


def _to_best(comparison: Comparison) -> Comparison:
    """The same with the differences to the best run only; they stay corrected for all pairs."""
    family = replace(comparison.method, family=len(comparison.differences))
    return replace(comparison, baseline=comparison.runs[0], differences=best_differences(comparison), method=family)


def _amounts(rows: list[Difference]) -> str:
    sizes = sorted((abs(row.difference or 0.0), row.run) for row in rows)
    if len(sizes) == 1:
        return f"by {sizes[0][0]:.4f} ({sizes[0][1]})"
    return f"by {sizes[0][0]:.4f} ({sizes[0][1]}) to {sizes[-1][0]:.4f} ({sizes[-1][1]})"


def _named(row: Difference) -> str:
    ends = "" if row.low is None or row.high is None else f", interval {row.low:+.4f} to {row.high:+.4f}"
    return f"{row.run} ({row.difference or 0.0:+.4f}{ends})"


def _reach(alike: list[Difference], topics: int, power: float) -> str:
    """What size of a difference so many topics can show."""
    known = sorted(row.detectable for row in alike if row.detectable is not None)
    if not known:
        return ""
    sizes = f"{known[0]:.4f}" if len(known) == 1 else f"{known[0]:.4f} to {known[-1]:.4f}, depending on the run"
    return (
        f"More topics would: {topics:,} show a true difference of {sizes}, with a power of {power:.0%} before "
        "correction. Runs that no test distinguishes are not shown to be equal."
    )


_NAMED: Final = 10
#: Tables that are for files, not for reading through.
_LONG: Final = ("agreement", "measures", "differences", "pairs")

_TITLES = {
    "differences": "Which runs differ",
    "data": "The data set",
    "runs": "The runs",
    "categories": "Categories of runs",
    "topics": "Topic by topic",
    "similarity": "Runs that resemble each other",
    "subtasks": "Full ranking and reranking",
    "agreement": "Do the measures agree?",
    "statements": "What follows from the runs",
}


@summarises(TrackReport)
def _track_summary(result: TrackReport) -> Summary:
    shown = [table for name, table in _tables(result) if name not in _LONG and not name.startswith("topics-")]
    if result.analysis.agreements:
        shown.append(agreement_table(_first_agreements(result)))
    opening = []
    if result.comparison is not None:
        found = finding(result.comparison)
        opening.append("\n".join(textwrap.wrap(f"{found.word}: {found.sentence} {found.rests_on}", 100)))
    return Summary((*opening, *shown, *result.left_out), _facts(result), notes=page_note(result.out), width=120)


@reports(TrackReport)
def _track_report(result: TrackReport) -> Report:
    scores = result.analysis.scores
    named = dict(_tables(result))
    parts: dict[str, list[Any]] = {name: [] for name in _TITLES}
    for name, table in named.items():
        section = {"collection": "data", "counts": "runs", "results": "runs"}.get(name, name)
        if section in ("data", "runs", "categories", "subtasks"):
            parts[section].append(table)
    if result.left_out:
        parts["runs"].append(Prose(result.left_out))
    if result.comparison is not None:
        parts["differences"] += [*difference_pictures(result.comparison), named["differences"]]
        if "pairs" in named:
            parts["differences"].append(Prose(("All pairs of runs are in tables/pairs.",)))
    if result.analysis.agreements:
        parts["agreement"].append(agreement_table(_first_agreements(result)))
        parts["agreement"].append(Prose(("All pairs of measures are in tables/agreement.",)))
    for picture in pictures(result.analysis, result.run_map or result.similarities, result.topics):
        parts[picture.section].append(picture)
        if picture.section == "topics":
            parts["topics"].append(Prose((f"The scores of every topic are in tables/{picture.name}.",)))
    parts["statements"].append(statements_table(result.statements))
    over = "" if scores.topics is None else f", means over {scores.topics:,} topics"
    groups = len({run.group for run in scores.runs if run.group})
    by = f" by {groups:,} groups" if groups else ""
    return Report(
        title=f"Track report{f': {result.options.title}' if result.options.title else ''}",
        lead=f"{len(scores.runs):,} runs{by}, compared by {scores.main}{over}.",
        verdicts=tuple(_verdicts(result)),
        sections=tuple(ReportSection(name, _TITLES[name], tuple(found)) for name, found in parts.items()),
        tables=named,
        json=_facts(result),
        footer=(
            "Percentages compare the best runs of two kinds, chosen by these scores. This page asks the network for "
            "nothing.",
        ),
    )


@summarises(Candidates)
def _candidates(found: Candidates) -> Summary:
    facts = {"out": str(found.out), "manifest_file": str(found.manifest_file), **found.content()}
    return Summary((candidate_table(found),), facts, notes=(f"candidates: {found.out}",))


@summarises(TopicSelection)
def _selection(found: TopicSelection) -> Summary:
    return Summary((selection_table(found),), {"out": None if found.out is None else str(found.out), **found.content()})


@summarises(Validation)
def _validation(found: Validation) -> Summary:
    lines: list[str] = []
    verdicts = []
    for run in found.runs:
        errors, warnings = found.totals(run)
        word = "error" if errors else "warning" if warnings else "valid"
        verdicts.append(Verdict(word, f"{errors:,} errors and {warnings:,} warnings.", subject=run.name))
        for kind, count in run.counts.items():
            faults = [fault for fault in run.faults if fault.kind == kind]
            lines += [fault.text() for fault in faults]
            if count > len(faults):
                lines.append(f"{run.file}: {count - len(faults):,d} more of this kind. [{found.levels[kind]} {kind}]")
    clause = ("\n".join(lines),) if lines else ()
    broken = next((run.broken for run in found.runs if run.broken is not None), None)
    return Summary((*clause, validation_table(found)), _validation_facts(found), tuple(verdicts), fault=broken)


def _validation_facts(found: Validation) -> dict[str, Any]:
    return {
        **picked(found, "valid, errors, warnings, limits, levels, checked"),
        "runs": [
            {
                **picked(run, "run=name, file, results, topics, tied, tag"),
                **found.totals(run)._asdict(),
                "counts": dict(run.counts),
                "faults": [plain(fault, "file") for fault in run.faults],
            }
            for run in found.runs
        ],
    }


def _verdicts(result: TrackReport) -> Iterator[Verdict]:
    analysis, main = result.analysis, result.analysis.scores.main
    if result.comparison is not None:
        yield finding(result.comparison)
    base = next((one for one in analysis.best if one.category == analysis.baseline), None)
    duels = {duel.first.category: duel for duel in analysis.duels}
    for one in analysis.best:
        if base is None or one.gain is None:
            continue
        duel = duels.get(one.category)
        yield Verdict(
            subject=f"{one.category} over {base.category}",
            word=f"{one.gain:+.1f} %",
            level="good" if one.gain > 0 else "bad",
            sentence=f"{main}: {one.run} {one.value:.4f}, {base.run} {base.value:.4f}.",
            rests_on=""
            if duel is None
            else f"It wins {duel.wins} of {len(duel.topics):,} topics, ties {duel.ties}, loses {duel.losses}. "
            + told_apart(result.comparison, duel.first.run, duel.second.run),
        )
    for gap in analysis.gaps[:1]:
        if gap.gain is not None:
            yield Verdict(
                subject="fullrank over rerank",
                word=f"{gap.gain:+.1f} %",
                level="good" if gap.gain > 0 else "bad",
                sentence=f"{main}: {gap.fullrank} {gap.fullrank_value:.4f}, {gap.rerank} {gap.rerank_value:.4f}.",
                rests_on=told_apart(result.comparison, gap.fullrank, gap.rerank),
            )
    scores = result.analysis.scores
    found = None if scores.sparse is None else result.analysis.agreement(scores.sparse, scores.main)
    if found is not None and found.tau is not None:
        yield Verdict(
            subject="sparse and full judgments",
            word=f"τ = {found.tau:.2f}",
            level="unknown",
            sentence=f"Kendall's τ‑b of {scores.sparse} with {scores.main} over {found.n:,} runs.",
        )
    yield from _stated_verdicts(result)


def _stated_verdicts(result: TrackReport) -> Iterator[Verdict]:
    stated = [one for one in result.statements if one.stated]
    if not stated:
        return
    differing = [one for one in stated if not agrees(one)]
    listed = "; ".join(f"{one.name}: {one.shown}, stated {one.stated}" for one in differing)
    yield Verdict(
        subject="stated figures",
        word=f"{len(stated) - len(differing)} of {len(stated)} follow",
        level="bad" if differing else "good",
        sentence=f"{listed}." if differing else "Every stated figure follows from the runs.",
    )


def _first_agreements(result: TrackReport) -> list[Agreement]:
    """The agreements that people read first.

    Those of the main measure with all others over all runs, and within each category those of the measures that
    are drawn, and of NCG@k with recall@k.
    """
    scores = result.analysis.scores
    drawn = [*paired_measures(result.analysis)]
    within = [{first, second} for first in drawn for second in drawn if first != second]
    within += [{scores.gain, other} for other in (scores.main, scores.recall) if scores.gain and other]
    return [
        one
        for one in result.analysis.agreements
        if {one.first, one.second} in within or (scores.main in (one.first, one.second) and not one.category)
    ]


def _tables(result: TrackReport) -> Iterator[tuple[str, Table]]:
    analysis = result.analysis
    if result.files:
        yield "collection", collection_table(result.files)
    if result.comparison is not None:
        yield from difference_tables(result.comparison)
    if any(run.category or run.subtask or run.group for run in analysis.scores.runs):
        yield "counts", counts_table(analysis)
    yield "results", results_table(analysis.scores).filled()
    if analysis.scores.printed not in ((), analysis.scores.measures):
        yield "measures", results_table(analysis.scores, whole=True)
    if analysis.best:
        yield "categories", best_table(analysis)
    if analysis.gaps:
        yield "subtasks", subtask_table(analysis)
    for name, duel in zip(duel_names(analysis), analysis.duels, strict=True):
        yield name, duel_table(duel)
    if analysis.agreements:
        yield "agreement", agreement_table(analysis.agreements)
    yield "statements", statements_table(result.statements)


def _facts(result: TrackReport) -> dict[str, Any]:
    """What `summary.json` holds."""
    analysis, scores = result.analysis, result.analysis.scores
    return {
        "name": result.options.title,
        "main": scores.main,
        "baseline": analysis.baseline,
        "topics": scores.topics,
        "measures": list(scores.measures),
        "runs": _runs(scores),
        "counts": [
            {"category": category or None, "subtask": subtask or None, "runs": number}
            for (category, subtask), number in sorted(analysis.counts().items())
        ],
        **picked(analysis, "best, subtasks=gaps, candidates"),
        "duels": [
            {
                **picked(duel, "first=first.run, second=second.run, measure"),
                "topics": len(duel.topics),
                **picked(duel, "wins, ties, losses"),
            }
            for duel in analysis.duels
        ],
        "agreement": [one._asdict() | {"category": one.category or None} for one in analysis.agreements],
        "gain_and_recall": None if analysis.recall is None else analysis.recall._asdict() | {"category": None},
        "finding": None if result.comparison is None else _finding(result.comparison),
        "statements": [
            {**one._asdict(), "stated": one.stated or None, "difference": one.difference, "agrees": agrees(one)}
            for one in result.statements
        ],
        "files": [one._asdict() for one in result.files],
        "notes": list(scores.notes),
        "left_out": list(result.left_out),
    }


def _finding(comparison: Comparison) -> dict[str, Any]:
    found = finding(comparison)
    return {
        "verdict": found.word,
        "sentences": [found.sentence, found.rests_on, found.settles],
        "method": comparison.method.json(),
        "pairs": len(comparison.differences),
        "significant": sum(row.significant for row in comparison.differences),
        "to_best": [{**row._asdict(), "n": list(row.n)} for row in best_differences(comparison)],
    }


def candidate_table(found: Candidates) -> Table:
    """The counts, with the topics that fall short in the notes."""
    rows: list[tuple[str, int]] = [
        ("results read", found.read),
        ("topics written", found.topics),
        ("results written", found.results),
        (f"topics with fewer than {found.k:,d} results", len(found.short)),
        (f"topics where results {found.k:,d} and {found.k + 1:,d} have equal scores", found.cut_ties),
        ("topics that the run lacks", len(found.missing)),
        ("topics of the run that are unknown, left out", len(found.unknown)),
    ]
    return Table(
        f"{found.out.name}: the first {found.k:,d} results of each topic.",
        (Column("what"), Column("number", align="right", format=",d")),
        tuple(rows),
        notes=(
            Scoring(ties=found.ties).sentences()[0],
            *_listed("Fewer results", [f"{topic} ({results:,d})" for topic, results in found.short]),
            *_listed("Lacking in the run", found.missing),
            *_listed("Unknown and left out", found.unknown),
        ),
    )


def validation_table(found: Validation) -> Table:
    """One row per run."""
    columns = heads("run, results:,d, topics:,d, tied:,d, tag, errors:,d, warnings:,d, verdict")
    rows: list[tuple[Cell, ...]] = []
    for run in found.runs:
        totals = found.totals(run)
        word = "not readable" if run.broken else "not valid" if totals.errors else "valid"
        rows.append((run.name, run.results, run.topics, run.tied, run.tag, *totals, word))
    against = ", ".join(f"{what.replace('_', '-')} {name}" for what, name in found.checked.items())
    return Table(
        f"{sum(not found.totals(run).errors for run in found.runs):,d} of {len(found.runs):,d} runs are valid.",
        columns,
        tuple(rows),
        notes=(
            f"At most {found.limits.max_results:,d} results for each topic; checked against: "
            f"{against or 'no list of topics, candidates or documents'}.",
            "Tied: results with the score of the rank before (as 32-bit numbers); the evaluation orders them.",
        ),
    )


def selection_table(found: TopicSelection) -> Table:
    """One row per topic."""
    columns = heads(
        f"topic, median_RR:.4f, runs_that_found_it|of {len(found.runs):,d}:,d, rank|best:,d, rank|median:g, decision"
    )
    counts = ", ".join(f"{decision} {count:,d}" for decision, count in found.decisions.items())
    drawn = "" if found.n is None else f" {found.n:,d} of the eligible topics were drawn with seed {found.seed}."
    return Table(
        f"{len(found.chosen):,d} of {len(found.topics):,d} topics are chosen.",
        columns,
        tuple(tuple(row) for row in found.topics),
        notes=(
            f"Eligible: {found.low:g} < median ≤ {found.high:g}.{drawn} Topics: {counts}.",
            f"Median of {found.measure} over {len(found.runs):,d} runs; of an even number of runs the mean of the "
            "middle two.",
            *found.policy.sentences()[:2],
        ),
    )


def _listed(what: str, names: Iterable[str]) -> Iterator[str]:
    """A note that names the first few, None where there is nothing to name."""
    names = list(names)
    if names:
        yield f"{what}: {and_more(names, _NAMED)}."


def _runs(scores: Scores) -> list[dict[str, Any]]:
    table = results_table(scores, whole=True)
    names = [column.title for column in table.columns]
    described = len(names) - len(scores.measures)
    return [
        dict(zip(names[:described], row[:described], strict=True))
        | {"measures": dict(zip(names[described:], row[described:], strict=True))}
        for row in table.rows
    ]


_NOT_STATED = "not stated"
_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "KB"))


def collection_table(found: Sequence[FileStatistics]) -> Table:
    """Table 1: records and sizes of the files of the collection."""
    return Table(
        "The data set: records and file sizes.",
        heads("file, records:,d, size:, bytes:,d, location"),
        tuple(
            (one.description, one.records, None if one.size is None else _size(one.size), one.size, one.location)
            for one in found
        ),
        notes=("Sizes are those on the disk, compressed where the file is; 1 MB is 1,000,000 bytes.",),
    )


def counts_table(analysis: Analysis) -> Table:
    """Table 2: runs by category and subtask, and the groups that made them."""
    counts = analysis.counts()
    categories = [*analysis.categories, *sorted({category for category, _ in counts} - {*analysis.categories, ""})]
    categories += [""] if any(category == "" for category, _ in counts) else []
    infos = analysis.scores.runs
    stated = any(run.subtask for run in infos)
    subtasks = [one for one in (*SUBTASKS, "") if stated and any(run.subtask == one for run in infos)]
    columns = [Column("category")]
    columns += Column.numbers(",d", *(subtask or _NOT_STATED for subtask in subtasks), above=("runs",))
    columns += [Column("all", ("runs",), "right", ",d"), Column("groups", (), "right", ",d")]
    rows: list[tuple[Cell, ...]] = []
    for category in categories:
        cells = [counts.get((category, subtask), 0) for subtask in subtasks]
        groups = {run.group for run in infos if run.category == category and run.group}
        runs = sum(run.category == category for run in infos)
        rows.append((category or _NOT_STATED, *cells, runs, len(groups) or None))
    totals = [sum(run.subtask == subtask for run in infos) for subtask in subtasks]
    groups = {run.group for run in infos if run.group}
    rows.append(("all", *totals, len(infos), len(groups) or None))
    notes = ["A group with runs of several categories counts in each of them, and once in the last row."]
    baselines = sorted(name for name in groups if name.lower() in ("baseline", "baselines"))
    if baselines:
        notes.append(f"{len(groups) - len(baselines)} groups without {' and '.join(baselines)}.")
    title = "Runs by category and subtask." if subtasks else "Runs by category."
    found = Table(title, tuple(columns), tuple(rows), tuple(notes if groups else ()), rules=(len(rows) - 1,))
    return found.filled()


def results_table(scores: Scores, *, whole: bool = False) -> Table:
    """Tables 3 and 4: every run with its means, best first by the main measure."""
    columns = [Column("run"), Column("group"), Column("subtask"), Column("category")]
    measures = scores.measures if whole or not scores.printed else scores.printed
    columns += Column.numbers(".4f", *measures)
    chosen = [scores.measures.index(measure) for measure in measures]
    rows = tuple(
        (info.run, info.group or None, info.subtask or None, info.category or None, *plain(means))
        for info, means in zip(scores.runs, scores.means[:, chosen], strict=True)
    )
    over = "" if scores.topics is None else f" Means over {scores.topics:,} topics."
    return Table(f"Runs sorted by {scores.main}, n = {len(rows):,}.{over}", tuple(columns), rows, notes=scores.notes)


def best_table(analysis: Analysis) -> Table:
    """The best run of each category, beside the best of the baseline."""
    main = analysis.scores.main
    return Table(
        f"The best run of each category by {main}, and by how much it is above the best {analysis.baseline} run.",
        (
            *heads("category, runs:,d, best_run"),
            Column(main, align="right", format=".4f"),
            Column(f"% over {analysis.baseline}", align="right", format="+.2f"),
        ),
        tuple((one.category, one.runs, one.run, one.value, one.gain) for one in analysis.best),
    )


def subtask_table(analysis: Analysis) -> Table:
    """Fullrank against rerank, and the best cumulated gain against that of the candidates."""
    rows: list[tuple[Cell, ...]] = [
        (gap.measure, gap.fullrank, gap.fullrank_value, gap.rerank, gap.rerank_value, gap.gain) for gap in analysis.gaps
    ]
    notes = []
    found = analysis.candidates
    if found is not None:
        notes.append(
            f"{found.measure} of the reranking candidates is taken from the rerank runs, which reorder them: "
            f"{found.candidates:.4f} ({found.sharing} of {found.reranks} have it; a run that dropped candidates has "
            f"less). The best run of all, {found.run}, has {found.value:.4f}"
            f"{'' if found.gain is None else f', {found.gain:+.2f} %'}."
        )
    return Table(
        "The best fullrank run beside the best rerank run.",
        heads("measure, fullrank|run, fullrank|value:.4f, rerank|run, rerank|value:.4f, % over rerank:+.2f"),
        tuple(rows),
        notes=tuple(notes),
    )


def duel_table(duel: Duel) -> Table:
    """The best runs of two categories topic by topic, the largest win of the first one first."""
    first, second = duel.first, duel.second
    return Table(
        f"{duel.measure} by topic: {first.run} ({first.category}) wins {duel.wins} of {len(duel.topics)} topics "
        f"against {second.run} ({second.category}), ties {duel.ties}, loses {duel.losses}.",
        (
            Column("topic"),
            *Column.numbers(".4f", first.run, second.run),
            *heads("difference:+.4f"),
        ),
        tuple(
            (topic, float(a), float(b), float(a - b))
            for topic, a, b in zip(duel.topics, duel.first_values, duel.second_values, strict=True)
        ),
    )


def agreement_table(agreements: Sequence[Agreement]) -> Table:
    """Kendall's tau of each pair of measures, over all runs and within each category."""
    return Table(
        "How far two measures order the runs alike.",
        heads("measure, and, runs, n:,d, Kendall's τ-b:.4f, p:.2g, Pearson's r:.4f"),
        tuple((one.first, one.second, one.category or "all", one.n, one.tau, one.p, one.pearson) for one in agreements),
        notes=("n: the runs that both measures are known for. Fewer than three are left out.",),
    )


def _size(count: int) -> str:
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} B"

"""How the results of the track's commands are shown: candidates, validation, selection, and the report of a track."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from truerank.audits.track import tables
from truerank.audits.track.analysis import Agreement, Duel
from truerank.audits.track.candidates import Candidates
from truerank.audits.track.differing import (
    best_differences,
    difference_pictures,
    difference_tables,
    finding,
    told_apart,
)
from truerank.audits.track.figures import duel_names, paired_measures, pictures
from truerank.audits.track.reporting import TrackReport
from truerank.audits.track.scores import Scores
from truerank.audits.track.selecting import TopicSelection
from truerank.audits.track.statements import Statement, agrees, statements_table
from truerank.audits.track.validating import RunCheck, Validation
from truerank.core.verdict import Verdict
from truerank.measures.comparison import Comparison
from truerank.options import Scoring
from truerank.reports.figures.export import Picture
from truerank.reports.pages import Prose
from truerank.reports.report import Report, ReportSection
from truerank.reports.results import Summary, page_note, reports, summarises
from truerank.reports.tables import Column, Table
from truerank.text.printable import and_more

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
        shown.append(tables.agreement_table(_first_agreements(result)))
    opening = () if result.comparison is None else (_opening(result.comparison),)
    return Summary((*opening, *shown, *result.left_out), _facts(result), notes=page_note(result.out), width=120)


def _opening(comparison: Comparison) -> str:
    """The finding for a terminal."""
    found = finding(comparison)
    return "\n".join(textwrap.wrap(f"{found.word}: {found.sentence} {found.rests_on}", 100))


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
        parts["agreement"].append(tables.agreement_table(_first_agreements(result)))
        parts["agreement"].append(Prose(("All pairs of measures are in tables/agreement.",)))
    for picture in _pictures(result):
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
    for run in found.runs:
        for kind, count in run.counts.items():
            faults = [fault for fault in run.faults if fault.kind == kind]
            lines += [fault.text() for fault in faults]
            if count > len(faults):
                lines.append(f"{run.file}: {count - len(faults):,d} more of this kind. [{found.levels[kind]} {kind}]")
    told = ("\n".join(lines),) if lines else ()
    broken = next((run.broken for run in found.runs if run.broken is not None), None)
    return Summary(
        (*told, validation_table(found)), _validation_facts(found), tuple(_run_verdicts(found)), fault=broken
    )


def _run_verdicts(found: Validation) -> Iterator[Verdict]:
    for run in found.runs:
        errors, warnings = found.totals(run)
        word = "error" if errors else "warning" if warnings else "valid"
        yield Verdict(word, f"{errors:,} errors and {warnings:,} warnings.", subject=run.name)


def _pictures(result: TrackReport) -> tuple[Picture, ...]:
    """The figures beside those of the finding, in reading order."""
    return tuple(pictures(result.analysis, result.run_map or result.similarities, result.topics))


def _validation_facts(found: Validation) -> dict[str, Any]:
    return {
        "valid": found.valid,
        "errors": found.errors,
        "warnings": found.warnings,
        "limits": asdict(found.limits),
        "levels": dict(found.levels),
        "checked": dict(found.checked),
        "runs": [
            {
                "run": run.name,
                "file": run.file,
                "results": run.results,
                "topics": run.topics,
                "tied": run.tied,
                "tag": run.tag,
                **found.totals(run)._asdict(),
                "counts": dict(run.counts),
                "faults": [
                    {name: value for name, value in fault._asdict().items() if name != "file"} for fault in run.faults
                ],
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
            rests_on=" ".join(_duel_sentences(result, duel)),
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
    yield from _agreement_verdicts(result)
    yield from _stated_verdicts(result)


def _duel_sentences(result: TrackReport, duel: Duel | None) -> Iterator[str]:
    if duel is not None:
        yield f"It wins {duel.wins} of {len(duel.topics):,} topics, ties {duel.ties}, loses {duel.losses}."
        yield told_apart(result.comparison, duel.first.run, duel.second.run)


def _agreement_verdicts(result: TrackReport) -> Iterator[Verdict]:
    scores = result.analysis.scores
    found = None if scores.sparse is None else result.analysis.agreement(scores.sparse, scores.main)
    if found is not None and found.tau is not None:
        yield Verdict(
            subject="sparse and full judgments",
            word=f"τ = {found.tau:.2f}",
            level="unknown",
            sentence=f"Kendall's τ‑b of {scores.sparse} with {scores.main} over {found.n:,} runs.",
        )


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
        yield "collection", tables.collection_table(result.files)
    if result.comparison is not None:
        yield from difference_tables(result.comparison)
    if any(run.category or run.subtask or run.group for run in analysis.scores.runs):
        yield "counts", tables.counts_table(analysis)
    yield "results", tables.results_table(analysis.scores).filled()
    if analysis.scores.printed not in ((), analysis.scores.measures):
        yield "measures", tables.results_table(analysis.scores, whole=True)
    if analysis.best:
        yield "categories", tables.best_table(analysis)
    if analysis.gaps:
        yield "subtasks", tables.subtask_table(analysis)
    for name, duel in zip(duel_names(analysis), analysis.duels, strict=True):
        yield name, tables.duel_table(duel)
    if analysis.agreements:
        yield "agreement", tables.agreement_table(analysis.agreements)
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
        "best": [one._asdict() for one in analysis.best],
        "subtasks": [gap._asdict() for gap in analysis.gaps],
        "candidates": None if analysis.candidates is None else analysis.candidates._asdict(),
        "duels": [
            {
                "first": duel.first.run,
                "second": duel.second.run,
                "measure": duel.measure,
                "topics": len(duel.topics),
                "wins": duel.wins,
                "ties": duel.ties,
                "losses": duel.losses,
            }
            for duel in analysis.duels
        ],
        "agreement": [one._asdict() | {"category": one.category or None} for one in analysis.agreements],
        "gain_and_recall": None if analysis.recall is None else analysis.recall._asdict() | {"category": None},
        "finding": None if result.comparison is None else _finding(result.comparison),
        "statements": [_statement(one) for one in result.statements],
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
    columns = (
        Column("run"),
        *Column.numbers(",d", "results", "topics", "tied"),
        Column("tag"),
        *Column.numbers(",d", "errors", "warnings"),
        Column("verdict"),
    )
    rows = tuple(
        (run.name, run.results, run.topics, run.tied, run.tag, *found.totals(run), _verdict(found, run))
        for run in found.runs
    )
    against = ", ".join(f"{what.replace('_', '-')} {name}" for what, name in found.checked.items())
    return Table(
        f"{sum(not found.totals(run).errors for run in found.runs):,d} of {len(found.runs):,d} runs are valid.",
        columns,
        rows,
        notes=(
            f"At most {found.limits.max_results:,d} results for each topic; checked against: "
            f"{against or 'no list of topics, candidates or documents'}.",
            "Tied: results with the score of the rank before (as 32-bit numbers); the evaluation orders them.",
        ),
    )


def _verdict(found: Validation, run: RunCheck) -> str:
    return "not readable" if run.broken else "valid" if not found.totals(run).errors else "not valid"


def selection_table(found: TopicSelection) -> Table:
    """One row per topic."""
    columns = (
        Column("topic"),
        Column("median RR", align="right", format=".4f"),
        Column(f"of {len(found.runs):,d}", ("runs that found it",), align="right", format=",d"),
        Column("best", ("rank",), align="right", format=",d"),
        Column("median", ("rank",), align="right", format="g"),
        Column("decision"),
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
    table = tables.results_table(scores, whole=True)
    names = [column.title for column in table.columns]
    described = len(names) - len(scores.measures)
    return [
        dict(zip(names[:described], row[:described], strict=True))
        | {"measures": dict(zip(names[described:], row[described:], strict=True))}
        for row in table.rows
    ]


def _statement(one: Statement) -> dict[str, Any]:
    return {
        "name": one.name,
        "value": one.value,
        "unit": one.unit,
        "stated": one.stated or None,
        "difference": one.difference,
        "agrees": agrees(one),
    }

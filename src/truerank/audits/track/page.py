"""The track report as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import truerank
from truerank.audits.track import tables
from truerank.audits.track.statements import agrees, statements_table
from truerank.reports.figures import page_svg
from truerank.reports.pages import Drawing, Facts, Finding, Page, Part, Prose, Section

if TYPE_CHECKING:
    from truerank.audits.track.report import TrackReport

__all__ = ["render"]

_TITLES = {
    "data": "The data set",
    "runs": "The runs",
    "categories": "Categories of runs",
    "topics": "Topic by topic",
    "similarity": "Runs that resemble each other",
    "subtasks": "Full ranking and reranking",
    "agreement": "Do the measures agree?",
    "statements": "What follows from the runs",
    "provenance": "Where this comes from",
}


def render(result: TrackReport, svgs: Mapping[str, str]) -> str:
    """The report as HTML; the same report gives the same text.

    Args:
        result: the report.
        svgs: the figures as texts of SVG files, by name.

    Returns:
        The page.
    """
    scores = result.analysis.scores
    parts: dict[str, list[Part]] = {name: [] for name in _TITLES}
    for name, table in result.tables.items():
        section = {"collection": "data", "counts": "runs", "results": "runs"}.get(name, name)
        if section in ("data", "runs", "categories", "subtasks"):
            parts[section].append(table)
    if result.left_out:
        parts["runs"].append(Prose(result.left_out))
    if result.analysis.agreements:
        parts["agreement"].append(tables.agreement_table(result.agreements()))
        parts["agreement"].append(Prose(("All pairs of measures are in tables/agreement.",)))
    for picture in result.pictures:
        parts[picture.section].append(Drawing(page_svg(svgs[picture.name]), picture.caption, dense=True))
        if picture.section == "topics":
            parts["topics"].append(Prose((f"The scores of every topic are in tables/{picture.name}.",)))
    parts["statements"].append(statements_table(result.statements))
    parts["provenance"].append(Facts("Inputs, options and versions", result.provenance()))
    over = "" if scores.topics is None else f", means over {scores.topics:,} topics"
    groups = len({run.group for run in scores.runs if run.group})
    by = f" by {groups:,} groups" if groups else ""
    return Page(
        title=f"Track report{f': {result.options.name}' if result.options.name else ''}",
        kicker="truerank",
        lead=f"{len(scores.runs):,} runs{by}, compared by {scores.main}{over}.",
        findings=tuple(_findings(result)),
        sections=tuple(Section(name, _TITLES[name], tuple(found)) for name, found in parts.items() if found),
        footer=(
            "Percentages compare the best runs of two kinds and say nothing about chance; 'truerank compare' tests the "
            "difference. This page asks the network for nothing.",
            f"truerank {truerank.__version__}",
        ),
    ).html()


def _findings(result: TrackReport) -> Iterator[Finding]:
    analysis, main = result.analysis, result.analysis.scores.main
    base = next((one for one in analysis.best if one.category == analysis.baseline), None)
    duels = {duel.first.category: duel for duel in analysis.duels}
    for one in analysis.best:
        if base is None or one.gain is None:
            continue
        duel = duels.get(one.category)
        yield Finding(
            subject=f"{one.category} over {base.category}",
            verdict=f"{one.gain:+.1f} %",
            tone="good" if one.gain > 0 else "bad",
            headline=f"{main}: {one.run} {one.value:.4f}, {base.run} {base.value:.4f}.",
            why=""
            if duel is None
            else f"It wins {duel.wins} of {len(duel.topics):,} topics, ties {duel.ties}, loses {duel.losses}.",
            share=None if duel is None or not duel.topics else duel.wins / len(duel.topics),
        )
    for gap in analysis.gaps[:1]:
        if gap.gain is not None:
            yield Finding(
                subject="fullrank over rerank",
                verdict=f"{gap.gain:+.1f} %",
                tone="good" if gap.gain > 0 else "bad",
                headline=f"{main}: {gap.fullrank} {gap.fullrank_value:.4f}, {gap.rerank} {gap.rerank_value:.4f}.",
            )
    yield from _agreement_findings(result)
    yield from _stated_findings(result)


def _agreement_findings(result: TrackReport) -> Iterator[Finding]:
    scores = result.analysis.scores
    found = None if scores.sparse is None else result.analysis.agreement(scores.sparse, scores.main)
    if found is not None and found.tau is not None:
        yield Finding(
            subject="sparse and full judgments",
            verdict=f"τ = {found.tau:.2f}",
            tone="open",
            headline=f"Kendall's τ‑b of {scores.sparse} with {scores.main} over {found.n:,} runs.",
        )


def _stated_findings(result: TrackReport) -> Iterator[Finding]:
    stated = [one for one in result.statements if one.stated]
    if not stated:
        return
    differing = [one for one in stated if not agrees(one)]
    listed = "; ".join(f"{one.name}: {one.shown}, stated {one.stated}" for one in differing)
    yield Finding(
        subject="stated figures",
        verdict=f"{len(stated) - len(differing)} of {len(stated)} follow",
        tone="bad" if differing else "good",
        headline=f"{listed}." if differing else "Every stated figure follows from the runs.",
        share=(len(stated) - len(differing)) / len(stated),
    )

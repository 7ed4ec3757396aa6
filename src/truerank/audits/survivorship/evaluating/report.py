"""What the page of `survivorship evaluate` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.audits.survivorship.page import Draft, DraftSection
from truerank.reports.figures import Picture
from truerank.reports.figures.lines import Line, LinePanel, line_panels
from truerank.reports.pages import Facts, Finding, Part

if TYPE_CHECKING:
    from truerank.audits.survivorship.evaluating.results import DepthEvaluation
    from truerank.audits.survivorship.evaluating.statistics import Contrast

__all__ = ["evaluation_draft"]


def evaluation_draft(result: DepthEvaluation) -> Draft:
    """The page of `survivorship evaluate`."""
    sections: list[DraftSection] = []
    for number, measure in enumerate(result.measures, start=1):
        end = f"-{number}" if len(result.measures) > 1 else ""
        tables = tuple(result.table(measure, variant) for variant in result.variants)
        parts: tuple[Part | Picture, ...] = (_picture(result, measure, f"scores{end}"), *tables)
        sections.append(DraftSection(f"scores{end}", f"{measure} by annotation depth", parts))
        sections.append(DraftSection(f"trend{end}", f"{measure}: the trend", (result.trend_table(measure),)))
        differences = tuple(result.difference_table(measure, variant) for variant in result.variants)
        sections.append(DraftSection(f"differences{end}", f"{measure}: against the full set", differences))
    if result.orders:
        sections.append(DraftSection("order", "Do the systems change order?", (result.order_table(),)))
    return Draft(
        title=f"Scores by annotation depth: {result.name}",
        lead=(
            f"{len(result.systems):,} runs scored by the judgments there would be, had fewer documents been shown; the "
            f"full set has {result.variants['all'].queries[-1]:,} queries."
        ),
        findings=(*(_finding(result, system) for system in result.systems), *_order_finding(result)),
        sections=tuple(sections),
        facts=Facts("Inputs, options and versions", result.provenance()),
        footer=("Depths are simulated: a document shown deeper is taken for one that nobody would have selected.",),
    )


def _finding(result: DepthEvaluation, system: str) -> Finding:
    measure, shallow, full = result.measures[0], result.labels[0], result.labels[-1]
    trend = next(one for one in result.trends if one.system == system)
    first = next(one for one in result.trends if one.system == system and one.judgments == "first")
    ends = [result.cell(system, label, measure).mean for label in (shallow, full)]
    if None in ends:
        return Finding(system, "no scores", "open", "A depth has no query that the run has.")
    moved = trend.change.known
    low, high = trend.change.low, trend.change.high
    interval = (
        "" if low is None or high is None else f", a change of {trend.change.value:+.4f} ({low:+.4f} to {high:+.4f})"
    )
    headline = f"{measure} is {ends[0]:.3f} at depth {shallow} and {ends[1]:.3f} in the full set{interval}."
    relative = "" if trend.relative_to_full is None else f"{trend.relative_to_full:+.1%} of the full set's score. "
    return Finding(
        subject=system,
        verdict="moves with depth" if moved else "cannot tell",
        tone="bad" if moved else "open",
        headline=headline,
        why=f"{relative}{'' if moved else _untold(trend.change)}By the first judgment of each query only: "
        f"{first.change.value:+.4f}. {_first(first.change)}".strip(),
    )


def _first(change: Contrast) -> str:
    return "The interval is clear of zero there, too." if change.known else _untold(change).strip()


def _untold(change: Contrast) -> str:
    """What these queries could have shown, where the interval holds zero or there is none."""
    if change.detectable is None:
        return "There are too few queries, or no spread, for an interval. "
    return (
        f"The interval holds zero: of a true change of {change.detectable:.4f} or more these queries would show four "
        "in five. "
    )


def _order_finding(result: DepthEvaluation) -> tuple[Finding, ...]:
    if not result.orders:
        return ()
    changed = {key[2]: len(found.swaps) for key, found in result.orders.items() if key[0] == "all" and found.swaps}
    if not changed:
        headline = "The means of the systems stand in the same order at every depth."
        why = f"{len(result.systems):,} systems were compared; whether other queries would order them so is not tested."
        return (Finding("order", "same order here", "open", headline, why),)
    shown = ", ".join(f"depth {label}: {number:,}" for label, number in changed.items())
    headline = "Pairs of systems change places between a depth and the full set."
    return (Finding("order", "changes", "bad", headline, f"Pairs that change: {shown}."),)


def _picture(result: DepthEvaluation, measure: str, name: str) -> Picture:
    titles = {"all": "all judgments", "first": "first judgment only"}
    panels = []
    for variant in result.variants:
        lines = []
        for system in result.systems:
            cells = [result.cell(system, label, measure, variant) for label in result.labels]
            values = tuple(None if one.mean is None else (one.mean, one.low, one.high) for one in cells)
            lines.append(Line(system, values))
        panels.append(LinePanel(titles[variant], result.labels, tuple(lines)))
    caption = (
        f"{measure} by the number of documents that would have been shown, with {1 - result.options.alpha:.0%} "
        "intervals of the means; beside it the same with one judgment a query."
    )
    return Picture(name, caption, line_panels(panels, x_label="documents shown", y_label=measure))

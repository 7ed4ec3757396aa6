"""How scores by annotation depth are shown, and rankers that were trained at several depths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truerank.audits.survivorship.evaluation import VARIANTS, Contrast, DepthEvaluation
from truerank.audits.survivorship.report import FOOTER
from truerank.core.figures.export import Picture
from truerank.core.figures.lines import LinePanel, LineSeries, line_panels
from truerank.core.report import Report, ReportSection
from truerank.core.result import Summary, page_note, reports, summarises
from truerank.core.tables import Cell, Column, Table
from truerank.core.verdict import Verdict
from truerank.core.views import heads


@summarises(DepthEvaluation)
def _evaluation_summary(result: DepthEvaluation) -> Summary:
    tables = []
    for measure in result.measures:
        tables += [depth_table(result, measure, variant) for variant in result.variants]
        tables.append(trend_table(result, measure))
    if result.orders:
        tables.append(order_table(result))
    return Summary(tuple(tables), result.json(), notes=page_note(result.out), width=120)


@reports(DepthEvaluation)
def _evaluation_report(result: DepthEvaluation) -> Report:
    sections: list[ReportSection] = []
    for number, measure in enumerate(result.measures, start=1):
        end = f"-{number}" if len(result.measures) > 1 else ""
        tables = tuple(depth_table(result, measure, variant) for variant in result.variants)
        parts: tuple[Any, ...] = (_picture(result, measure, f"scores{end}"), *tables)
        sections.append(ReportSection(f"scores{end}", f"{measure} by annotation depth", parts))
        sections.append(ReportSection(f"trend{end}", f"{measure}: the trend", (trend_table(result, measure),)))
        differences = tuple(difference_table(result, measure, variant) for variant in result.variants)
        sections.append(ReportSection(f"differences{end}", f"{measure}: against the full set", differences))
    if result.orders:
        sections.append(ReportSection("order", "Do the systems change order?", (order_table(result),)))
    return Report(
        title=f"Do scores move with the depth of annotation? {result.name}",
        lead=(
            f"{len(result.systems):,} runs scored by the judgments there would be, had fewer documents been shown; the "
            f"full set has {result.variants['all'].queries[-1]:,} queries."
        ),
        verdicts=(*(_verdict(result, system) for system in result.systems), *_order_verdict(result)),
        sections=tuple(sections),
        tables=_tables(result),
        json=result.json(),
        footer=(
            "Depths are simulated: a document shown deeper is taken for one that nobody would have selected.",
            FOOTER,
        ),
    )


def _verdict(result: DepthEvaluation, system: str) -> Verdict:
    measure, shallow, full = result.measures[0], result.labels[0], result.labels[-1]
    trend = next(one for one in result.trends if one.system == system)
    first = next(one for one in result.trends if one.system == system and one.judgments == "first")
    ends = [result.cell(system, label, measure).mean for label in (shallow, full)]
    if None in ends:
        return Verdict("no scores", "At one depth the run has none of the queries.", subject=system)
    moved = trend.change.known
    low, high = trend.change.low, trend.change.high
    interval = "" if low is None or high is None else f": {trend.change.value:+.4f} ({low:+.4f} to {high:+.4f})"
    headline = f"{measure} goes from {ends[0]:.3f} at depth {shallow} to {ends[1]:.3f} in the full set{interval}."
    there = "Chance hardly explains that, either." if first.change.known else _untold(first.change).strip()
    relative = "" if trend.relative_to_full is None else f"{trend.relative_to_full:+.1%} of the full set's score. "
    return Verdict(
        subject=system,
        word="moves with depth" if moved else "cannot tell",
        level="bad" if moved else "unknown",
        sentence=headline,
        rests_on=f"{relative}{'' if moved else _untold(trend.change)}By the first judgment of each query only: "
        f"{first.change.value:+.4f}. {there}".strip(),
    )


def _untold(change: Contrast) -> str:
    if change.detectable is None:
        return "There are too few queries, or no spread, for an interval. "
    return f"Chance can explain it: these queries reveal a change of {change.detectable:.4f} four times in five. "


def _order_verdict(result: DepthEvaluation) -> tuple[Verdict, ...]:
    if not result.orders:
        return ()
    changed = {key[2]: len(found.swaps) for key, found in result.orders.items() if key[0] == "all" and found.swaps}
    if not changed:
        headline = f"The means of {len(result.systems):,} systems are in the same order at every depth."
        why = "Whether other queries would order them so was not tested."
        return (Verdict("same order here", headline, why, subject="order"),)
    shown = ", ".join(f"{number:,} at depth {label}" for label, number in changed.items())
    headline = f"Pairs of systems that are in another order than in the full set: {shown}."
    return (Verdict("changes", headline, subject="order", level="bad"),)


def _picture(result: DepthEvaluation, measure: str, name: str) -> Picture:
    titles = {"all": "all judgments", "first": "first judgment only"}
    panels = []
    for variant in result.variants:
        lines = []
        for system in result.systems:
            cells = [result.cell(system, label, measure, variant) for label in result.labels]
            values = tuple(None if one.mean is None else (one.mean, one.low, one.high) for one in cells)
            lines.append(LineSeries(system, values))
        panels.append(LinePanel(titles[variant], result.labels, tuple(lines)))
    caption = (
        f"{measure} by the number of documents that would have been shown, with {result.options.confidence:.0%} "
        "intervals of the means; beside it the same with one judgment a query."
    )
    return Picture(name, caption, line_panels(panels, x_label="documents shown", y_label=measure))


def depth_table(result: DepthEvaluation, measure: str, judgments: str) -> Table:
    """Means by depth and system, and both counts of queries, as in the paper's Table 4."""
    scores = result.variants[judgments]
    columns = [Column("depth", align="right"), *(Column(name, (measure,), "right") for name in result.systems)]
    for above in ("queries judged", "queries in all runs"):
        columns += [
            Column("n", (above,), align="right", format=",d"),
            Column("gained", (above,), align="right", format="+,d"),
        ]
    rows = []
    for place, label in enumerate(result.labels):
        cells = (result.cell(system, label, measure, judgments) for system in result.systems)
        shown = (None if one.mean is None else f"{'*' if one.significant else ''}{one.mean:.3f}" for one in cells)
        counts = (*_gain(scores.queries, place), *_gain(scores.together, place))
        rows.append((label, *shown, *counts))
    title = f"{result.name}: {measure} by annotation depth, {VARIANTS[judgments]}"
    return Table(title, tuple(columns), tuple(rows), tuple(_notes(result, judgments)))


def difference_table(result: DepthEvaluation, measure: str, judgments: str) -> Table:
    interval = f"{result.options.confidence:.0%} interval"
    columns = heads(
        f"system, depth:, n:,d, mean:.4f, depth − full:+.4f, {interval}|low:+.4f, {interval}|high:+.4f, p:.3g, "
        "corrected:.3g"
    )
    rows: list[tuple[Cell, ...]] = []
    rules, strong = [], set()
    for system in result.systems:
        rules.append(len(rows))
        for label in result.labels[:-1]:
            one = result.cell(system, label, measure, judgments)
            strong |= {(len(rows), 8)} if one.significant else set()
            rows.append((system, label, one.n, one.mean, *one[8:13]))
    title = f"{measure}: each depth against the full set, {VARIANTS[judgments]}"
    interval = "Intervals are not corrected."
    notes = (result.options.sentence(), interval)
    return Table(title, columns, tuple(rows), notes, tuple(rules[1:]), frozenset(strong))


def trend_table(result: DepthEvaluation, measure: str) -> Table:
    above = ("slope per document shown",)
    change = ("full set − shallowest",)
    columns = (
        *heads("judgments, system"),
        *Column.numbers("+.5f", "slope", "low", "high", above=above),
        *Column.numbers("+.4f", "change", "low", "high", above=change),
        *Column.numbers("+.1%", "of the full set", "of the shallowest", above=("relative change",)),
    )
    rows = tuple(
        (one.judgments, one.system, *one.slope[:3], *one.change[:3], *one[5:])
        for one in result.trends
        if one.measure == measure
    )
    notes = (
        f"Slopes: least squares through the means at {', '.join(result.labels)}"
        + (f", '{result.labels[-1]}' taken for {result.places[-1]:g}." if not result.labels[-1].isdigit() else "."),
        f"{result.options.confidence:.0%} intervals by linearisation; queries that depths share are allowed for.",
    )
    return Table(f"{measure}: the trend with depth", columns, rows, notes, (len(result.systems),))


def order_table(result: DepthEvaluation) -> Table:
    columns = heads("judgments, measure, depth:, pairs_that_change:,d, τ:.3f, which")
    rows = tuple(
        (
            variant,
            measure,
            label,
            len(found.swaps),
            found.tau.tau,
            "; ".join(f"{swap.better} over {swap.worse}" for swap in found.swaps) or "none",
        )
        for (variant, measure, label), found in result.orders.items()
    )
    note = "'a over b': a is better than b at this depth, and worse in the full set."
    return Table("The order of the systems at each depth, and in the full set", columns, rows, (note,))


def _notes(result: DepthEvaluation, judgments: str) -> Iterator[str]:
    yield result.options.sentence()
    yield from result.scoring.sentences()
    if result.options.significance != "nested":
        yield (
            "The shallow queries are a part of the full set, which an unpaired test does not allow for: it finds "
            "less than there is. The test 'nested' does."
        )
    if judgments == "first" and result.derived:
        yield "First judgments: those that appear at the smallest depth, in the order of the file."
    if result.strays:
        yield f"{result.strays:,} judgments of shallower depths are not in the full set."
    scores = result.variants[judgments]
    lacking = {name: scores.queries[-1] - there[-1] for name, there in scores.present.items()}
    if any(lacking.values()):
        shown = ", ".join(f"{name} {number:,}" for name, number in lacking.items() if number)
        yield f"Queries of the full set that runs lack: {shown}."


def _tables(result: DepthEvaluation) -> dict[str, Table]:
    found: dict[str, Table] = {}
    for number, measure in enumerate(result.measures, start=1):
        end = f"-{number}" if len(result.measures) > 1 else ""
        for variant in result.variants:
            found[f"{variant}{end}"] = depth_table(result, measure, variant)
            found[f"{variant}-differences{end}"] = difference_table(result, measure, variant)
        found[f"trend{end}"] = trend_table(result, measure)
    if result.orders:
        found["order"] = order_table(result)
    return found


def _gain(numbers: tuple[int, ...], place: int) -> tuple[int, int | None]:
    return numbers[place], numbers[place] - numbers[place - 1] if place else None

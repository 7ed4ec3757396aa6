"""Figure 1 of the survivorship paper: effectiveness by the depth at which training queries were annotated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from truerank.experiments.reporting.effectiveness import Effectiveness, EffectivenessEstimate
from truerank.measures import Comparison, compare_evaluations, lower_is_better
from truerank.reports.figures import LinePanel, LineSeries
from truerank.reports.tables import Column, Table


def depth_table(found: Sequence[Effectiveness]) -> Table:
    """One row per benchmark, measure, model and depth: the mean, the difference to the full set, and the loss.

    A loss is given twice, with its base: as a share of the full set's mean, and of the smaller set's.

    Source: survivorship paper, section 5, Figure 1.
    """
    baseline = found[0].board.baseline
    columns = (
        Column("benchmark"),
        Column("measure"),
        Column("model"),
        Column("trained on"),
        Column("topics", align="right", format=",d"),
        Column("mean", align="right"),
        *Column.numbers("+.4f", "mean", "low", "high", above=(f"difference to {baseline}",)),
        Column("p corrected", align="right", format=".4g"),
        *Column.numbers("+.1%", f"of {baseline}", "of the smaller set", above=("relative difference",)),
    )
    rows: list[tuple[Any, ...]] = []
    firsts: list[int] = []
    for one in found:
        for measure in one.measures:
            firsts.append(len(rows))
            for row in one.shown_rows():
                for name in one.board.designed:
                    estimate = one.estimates.get((row, name, measure))
                    if estimate is not None:
                        shown = one.cell(row, name, measure)
                        base = one.estimates.get((row, baseline, measure))
                        rows.append((one.board.collection, measure, row.name, name, *_cells(estimate, base, shown)))
    notes = (
        f"Relative differences: mean minus that of {baseline}, as a share of that of {baseline} or of the own mean.",
        *dict.fromkeys(note for one in found for note in one.notes() if not note.startswith(("Bold", "What is"))),
    )
    rules = tuple(place for place in firsts if place)
    return Table(
        "Effectiveness by depth of the annotation behind the training set.", columns, tuple(rows), notes, rules
    )


def depths_compared(one: Effectiveness) -> dict[str, Comparison]:
    """All pairs of depths of each model of a benchmark, by model; corrected by measure over those of all models."""
    kinds = one.board.scores.aggregates or ("mean",) * len(one.measures)
    means = [measure for measure, kind in zip(one.measures, kinds, strict=True) if kind == "mean"]
    held = {row: [name for name in one.board.designed if (row, name) in one.values] for row in one.shown_rows()}
    held = {row: names for row, names in held.items() if len(names) > 1}
    if not means:
        return {}
    method = one.options.method
    if method.family == "measure" and held:
        method = replace(method, family=sum(math.comb(len(names), 2) for names in held.values()))
    found = {}
    for row, names in held.items():
        scores = one.board.evaluation(names, [one.values[row, name] for name in names])
        found[row.name] = compare_evaluations(scores, None, measures=means, method=method)
    return found


def depth_panels(found: Sequence[Effectiveness]) -> tuple[LinePanel, ...]:
    """One plot per benchmark and measure, one line per model: the mean by depth with its interval over topics."""
    panels = []
    for one in found:
        for measure in one.measures:
            lines = []
            for row in one.shown_rows():
                points = [one.estimates.get((row, name, measure)) for name in one.board.designed]
                lines.append(LineSeries(row.name, tuple(map(_point, points))))
            lower = ", lower is better" if lower_is_better(measure) else ""
            panels.append(LinePanel(f"{one.board.collection}: {measure}{lower}", one.board.designed, tuple(lines)))
    return tuple(panels)


def _point(one: EffectivenessEstimate | None) -> tuple[float, float | None, float | None] | None:
    if one is None or one.mean.mean is None:
        return None
    return one.mean.mean, one.mean.low, one.mean.high


def _cells(one: EffectivenessEstimate, base: EffectivenessEstimate | None, shown: str | None) -> tuple[Any, ...]:
    found = one.difference
    differences = (None,) * 4 if found is None else (found.difference, found.low, found.high, found.p_corrected)
    shares: tuple[float | None, float | None] = (None, None)
    if base is not None and base is not one and one.mean.mean and base.mean.mean:
        change = one.mean.mean - base.mean.mean
        shares = (change / base.mean.mean, change / one.mean.mean)
    return (one.mean.n, shown, *differences, *shares)

"""The figures of a simulation: where runs stood (Figure 9), and what further judgments bring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from truerank.reports.figures import Picture
from truerank.reports.figures.heat_maps import HeatMap, heat_maps
from truerank.reports.figures.scatters import Panel, Series, scatter_panels

if TYPE_CHECKING:
    from truerank.audits.reusability.simulation.report import Simulation

__all__ = ["pictures"]


def pictures(simulation: Simulation) -> Iterator[Picture]:
    """The figures.

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, Figure 9, for the heat maps.
    """
    yield _positions(simulation)
    yield _cost(simulation)


def _positions(simulation: Simulation) -> Picture:
    scorer = simulation.standing.scorer
    maps = []
    for measure in scorer.names:
        order = simulation.order(measure)
        systems = tuple(scorer.ranks.runs[run] for run in order)
        places = simulation.positions(measure)[order]
        maps.append(HeatMap(measure, systems, simulation.position_counts(measure)[order], places))
    total = int(maps[0].counts[0].sum())
    return Picture(
        "positions",
        f"Where every run stood in {total:,} trials: {simulation.options.trials:,} with all teams, and as many with "
        f"each of {len(simulation.standing.teams):,} teams left out. Runs stand in official order from the top; the "
        "darker a cell, the more often the run stood there. The line goes through the official ranks.",
        heat_maps(maps, x_label="position"),
        section="teams",
    )


def _cost(simulation: Simulation) -> Picture:
    budgets = list(simulation.budgets())
    measures = simulation.standing.scorer.names
    spent = np.array([np.mean([one.judgments for one in simulation.judgings_of(name)]) for _, name in budgets])
    found = np.array([np.mean([one.relevant for one in simulation.judgings_of(name)]) for _, name in budgets])
    official = sum(simulation.standing.official.sizes.values())
    at = sum(row.relevant for row in simulation.judged_topics())
    relevant = Panel(
        "Relevant documents found",
        "judgments over all topics",
        "relevant documents",
        (Series("constant budgets", spent, found), Series("official", [official], [at])),
    )
    series = []
    for measure in measures:
        worst = [
            min((one.tau for one in simulation.of_rule(name, measure) if one.tau is not None), default=np.nan)
            for _, name in budgets
        ]
        series.append(Series(measure, spent, np.array(worst, np.float64)))
    order = Panel("Order of the runs", "judgments over all topics", "smallest τ of a trial", tuple(series))
    return Picture(
        "cost",
        "What judgments bring: constant budgets of each topic, means over the trials with all teams. Right: the "
        "smallest τ of a trial against the official order.",
        scatter_panels([relevant, order], columns=2),
        section="cost",
    )

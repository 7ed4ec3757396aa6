"""Scatter plots of runs in one or more panels, one mark per series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from truerank.reports.figures.marks import Mark, legend_below, marks
from truerank.reports.figures.style import new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Panel", "Series", "scatter_panels"]


@dataclass(frozen=True, eq=False)
class Series:
    """Points that share a mark: their name and coordinates, shape (n,) each."""

    name: str
    x: ArrayLike
    y: ArrayLike


@dataclass(frozen=True)
class Panel:
    """One plot: its title (lines are kept), the labels of its axes, its series; `ticks` False for axes without unit."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    ticks: bool = True


def scatter_panels(panels: Sequence[Panel], *, columns: int = 2, height: float = 3.0) -> Figure:
    """Scatter plots beside and below each other; a series has the same mark in all of them.

    Plots that share a series have one legend; plots that share none have each their own.

    Args:
        panels: the plots, from left to right.
        columns: how many stand in a row.
        height: of one plot, in inches.

    Returns:
        The figure.
    """
    everything = [series.name for panel in panels for series in panel.series]
    names = list(dict.fromkeys(everything))
    apart = len(panels) > 1 and len(everything) == len(names)
    looks = marks(names)
    columns = max(1, min(columns, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    with settings():
        legend = 0.2 * -(-len(names) // (3 if apart else 5)) + 0.1
        figure = new_figure(height * rows + legend)
        plots = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(plots, panels, strict=False):
            own = marks([series.name for series in panel.series]) if apart else looks
            _draw(axes, panel, own)
            if apart:
                legend_below(axes, list(own.items()), share=1 / columns)
        for axes in plots[len(panels) :]:
            axes.set_axis_off()
        if not apart:
            legend_below(figure, list(looks.items()))
    return figure


def _draw(axes: Any, panel: Panel, looks: dict[str, Mark]) -> None:
    for series in panel.series:
        x, y = (np.asarray(part, dtype=np.float64) for part in (series.x, series.y))
        axes.plot(x, y, alpha=0.9, **looks[series.name].style())
    axes.set_title(plain(panel.title), loc="left", fontsize=8.5)
    axes.set_xlabel(plain(panel.x_label))
    axes.set_ylabel(plain(panel.y_label))
    axes.margins(0.08)
    if not panel.ticks:
        axes.set_xticks([])
        axes.set_yticks([])
        for side in ("top", "right"):
            axes.spines[side].set_visible(True)

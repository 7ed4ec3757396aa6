"""Differences of two systems by topic, with their mean and its interval, in panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truerank.reports.figures.style import ACCENT, INK, QUIET, new_figure, new_grid, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class DifferencePanel:
    """One plot.

    Attributes:
        title: lines are kept.
        values: one difference per topic in the order in which they are drawn, shape (topics,).
        low: lower end of the interval of their mean; None where unknown.
        high: upper end.
    """

    title: str
    values: ArrayLike
    low: float | None = None
    high: float | None = None


def difference_panels(panels: Sequence[DifferencePanel], *, y_label: str, columns: int = 2) -> Figure:
    """Plots beside and below each other that share the axis of the differences."""
    with settings():
        figure, plots = new_grid(len(panels), columns, lambda rows: 2.4 * rows + 0.4, sharey=True)
        for axes, panel in zip(plots.ravel(), panels, strict=False):
            _draw(axes, panel)
        for axes in plots[:, 0]:
            axes.set_ylabel(plain(y_label), fontsize=8.5)
    return figure


def draw_differences(axes: Any, values: NDArray[np.float64]) -> None:
    """Gains as a filled and losses as a hatched area, one step for each topic."""
    places = np.arange(len(values) + 1)
    for chosen, style in (
        (values > 0, {"facecolor": QUIET, "alpha": 0.6, "edgecolor": "none"}),
        (values < 0, {"facecolor": "none", "edgecolor": ACCENT, "hatch": "////"}),
    ):
        axes.stairs(np.where(chosen, values, 0.0), places, fill=True, **style)
    axes.axhline(0, color=INK, linewidth=0.7)


def _draw(axes: Any, panel: DifferencePanel) -> None:
    values = np.asarray(panel.values, dtype=np.float64)
    draw_differences(axes, np.where(np.isfinite(values), values, 0.0))
    if panel.low is not None and panel.high is not None:
        axes.axhspan(panel.low, panel.high, facecolor=INK, alpha=0.14, edgecolor="none")
        for end in (panel.low, panel.high):
            axes.axhline(end, color=INK, linewidth=0.6, linestyle=(0, (1.5, 1.5)))
    if len(values) and np.isfinite(values).all():
        axes.axhline(float(values.mean()), color=INK, linewidth=1.3, linestyle=(0, (5, 2)))
    axes.set_title(plain(panel.title), loc="left", fontsize=8)
    axes.set_xlabel(f"topics by difference, n = {len(values):,d}", fontsize=8)
    axes.tick_params(labelsize=7.5)


_NAMED: Final = 120
_LONGEST_NAME: Final = 42


def topic_pairs(
    topics: Sequence[str], first: ArrayLike, second: ArrayLike, *, names: tuple[str, str], x_label: str
) -> Figure:
    """Each topic with the scores of two systems, in the order given; beyond 120 topics their differences as one area.

    Args:
        first: scores of the first system, shape (n,).
        second: scores of the second, shape (n,).
    """
    one, other = (np.asarray(part, dtype=np.float64) for part in (first, second))
    with settings():
        if len(topics) > _NAMED:
            return _area(one - other, names, x_label)
        figure = new_figure(1.3 + 0.145 * len(topics))
        axes = figure.add_subplot()
        places = np.arange(len(topics))
        wins, losses = one > other, one < other
        for chosen, colour, dashes in ((wins, INK, "-"), (losses, ACCENT, (0, (2, 1.2)))):
            axes.hlines(places[chosen], one[chosen], other[chosen], color=colour, linewidth=1.0, linestyle=dashes)
        axes.plot(one, places, linestyle="none", marker="o", markersize=4.5, color=INK)
        # The page behind a hollow mark is not known: it is drawn as a cross that needs no filling.
        axes.plot(other, places, linestyle="none", marker="x", markersize=4.5, color=QUIET, markeredgewidth=1.3)
        axes.set_yticks(places, [plain(_shortened(topic)) for topic in topics], fontsize=7)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(topics) - 0.3, -0.7)
        axes.grid(axis="x", color=QUIET, linewidth=0.4, alpha=0.5)
        axes.set_axisbelow(True)
        axes.set_xlabel(plain(f"{x_label}, n = {len(topics):,d} topics"))
        _legend(figure, names)
    return figure


def _area(differences: NDArray[np.float64], names: tuple[str, str], x_label: str) -> Figure:
    figure = new_figure(3.2)
    axes = figure.add_subplot()
    draw_differences(axes, differences)
    axes.set_xlabel(f"topics by difference, n = {len(differences):,d}")
    axes.set_ylabel(plain(f"{x_label}: {names[0]} − {names[1]}"), fontsize=8.5)
    return figure


def _legend(figure: Any, names: tuple[str, str]) -> None:
    from matplotlib.lines import Line2D

    entries = [
        Line2D([], [], linestyle="none", marker="o", markersize=4.5, color=INK, label=plain(names[0])),
        Line2D([], [], linestyle="none", marker="x", markersize=4.5, color=QUIET, label=plain(names[1])),
        Line2D([], [], color=INK, linewidth=1.0, label="first is better"),
        Line2D([], [], color=ACCENT, linewidth=1.0, linestyle=(0, (2, 1.2)), label="second is better"),
    ]
    figure.legend(handles=entries, loc="outside upper left", ncols=2, frameon=False, fontsize=8)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"

"""Scatter plots of runs in one or more panels, one mark per series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from truerank.reports.figures.marks import Mark, legend_below, marks
from truerank.reports.figures.style import new_grid, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Of the words beside points, in points of typography.
_LABEL_SIZE: Final = 6.5
_LETTER_WIDTH: Final = 3.7
#: Where words can stand: how far from the point, and which share of them lies to the left of and below that place.
_SIDES: Final = {
    (5.0, 0.0): (0.0, 0.5), (-5.0, 0.0): (1.0, 0.5), (0.0, 5.0): (0.5, 0.0), (0.0, -5.0): (0.5, 1.0),
    (4.0, 4.0): (0.0, 0.0), (-4.0, 4.0): (1.0, 0.0), (4.0, -4.0): (0.0, 1.0), (-4.0, -4.0): (1.0, 1.0),
}  # fmt: skip
_HORIZONTAL: Final = {0.0: "left", 0.5: "center", 1.0: "right"}
_VERTICAL: Final = {0.0: "bottom", 0.5: "center", 1.0: "top"}


@dataclass(frozen=True, eq=False)
class Series:
    """Points that share a mark: their name and coordinates, shape (n,) each; `labels` are words for each point."""

    name: str
    x: ArrayLike
    y: ArrayLike
    labels: tuple[str, ...] = ()


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
    """
    everything = [series.name for panel in panels for series in panel.series]
    names = list(dict.fromkeys(everything))
    apart = len(panels) > 1 and len(everything) == len(names)
    looks = marks(names)
    with settings():
        legend = 0.2 * -(-len(names) // (3 if apart else 5)) + 0.1
        figure, plots = new_grid(len(panels), columns, lambda rows: height * rows + legend)
        for axes, panel in zip(plots.ravel(), panels, strict=False):
            own = marks([series.name for series in panel.series]) if apart else looks
            _draw(axes, panel, own)
            if apart:
                # The words of ticks need room of their own.
                distance = 0.22 if panel.ticks else 0.12
                legend_below(axes, list(own.items()), share=1 / plots.shape[1], distance=distance)
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
    if any(series.labels for series in panel.series):
        axes.margins(0.14)
        _label(axes, panel)
    if not panel.ticks:
        axes.set_xticks([])
        axes.set_yticks([])
        for side in ("top", "right"):
            axes.spines[side].set_visible(True)


def _label(axes: Any, panel: Panel) -> None:
    """Words beside the points, each where it covers the least of the other words and points."""
    x = np.concatenate([np.asarray(series.x, dtype=np.float64) for series in panel.series])
    y = np.concatenate([np.asarray(series.y, dtype=np.float64) for series in panel.series])
    words = [word for series in panel.series for word in series.labels]
    if not words:
        return
    figure = axes.get_figure()
    figure.draw_without_rendering()
    points = axes.transData.transform(np.stack([x, y], axis=1)) * 72 / figure.dpi
    boxes: list[tuple[float, float, float, float]] = [(px - 3, py - 3, px + 3, py + 3) for px, py in points]
    for number, (word, (px, py)) in enumerate(zip(words, points.tolist(), strict=True)):
        width, height = _LETTER_WIDTH * len(word), _LABEL_SIZE
        tried = []
        for (dx, dy), (left, below) in _SIDES.items():
            corner = px + dx - left * width, py + dy - below * height
            box = (corner[0], corner[1], corner[0] + width, corner[1] + height)
            tried.append((sum(_covered(box, other) for n, other in enumerate(boxes) if n != number), (dx, dy), box))
        _, (dx, dy), box = min(tried, key=lambda one: one[0])
        boxes.append(box)
        left, below = _SIDES[dx, dy]
        axes.annotate(
            plain(word), (x[number], y[number]), xytext=(dx, dy), textcoords="offset points", fontsize=_LABEL_SIZE,
            ha=_HORIZONTAL[left], va=_VERTICAL[below],
        )  # fmt: skip


def _covered(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)

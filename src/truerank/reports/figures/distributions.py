"""How values are distributed: cumulative curves, and histograms of several series side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike

from truerank.reports.figures.style import ACCENT, INK, QUIET, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Named = tuple[str, ArrayLike]

_INKS: Final = (INK, ACCENT, QUIET)
_DASHES: Final = ((0, ()), (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)))
_HATCHES: Final = ("", "////", "....", "xxxx")
#: Steps of a curve at most: a file with a million of them would show no more.
_STEPS: Final = 2000


def cumulative_curves(series: Sequence[Named], *, x_label: str, counted: str, at: float | None = None) -> Figure:
    """For each series, the share of its values up to each value."""
    with settings():
        figure = new_figure(3.3)
        axes = figure.add_subplot()
        for number, (name, values) in enumerate(series):
            x = np.sort(np.asarray(values, dtype=np.float64))
            y = np.arange(1, len(x) + 1) / max(1, len(x))
            dashes, ink = _DASHES[number % len(_DASHES)], _INKS[number // len(_DASHES) % len(_INKS)]
            x, y = _thinned(x, y)
            label = plain(f"{name}, n = {len(np.asarray(values)):,d}")
            axes.step(x, y, where="post", color=ink, linestyle=dashes, linewidth=1.3, label=label)
        if at is not None:
            axes.axvline(at, color=QUIET, linewidth=0.7)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(x_label)
        axes.set_ylabel(f"share of {counted}")
        axes.legend(loc="best", frameon=False, fontsize=8, handlelength=3.2)
    return figure


def side_by_side_histograms(
    panels: Sequence[tuple[str, Sequence[Named]]], *, edges: ArrayLike, x_label: str, counted: str
) -> Figure:
    """Plots below each other on one axis of values; in each, bars of several series stand side by side."""
    borders = np.asarray(edges, dtype=np.float64)
    with settings():
        figure = new_figure(0.9 + 1.6 * max(1, len(panels)))
        plots = figure.subplots(max(1, len(panels)), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (title, series) in zip(plots, panels, strict=False):
            width = np.diff(borders) * 0.84 / max(1, len(series))
            for number, (name, values) in enumerate(series):
                places = np.searchsorted(borders, np.asarray(values, dtype=np.float64), side="left")
                counts = np.bincount(places, minlength=len(borders) + 1)[1 : len(borders)]
                left = borders[:-1] + np.diff(borders) * 0.08 + number * width
                fill = {"facecolor": QUIET if number % 2 == 0 else "none", "edgecolor": INK, "linewidth": 0.6}
                label = plain(f"{name}, n = {int(counts.sum()):,d}")
                axes.bar(left, counts, width, align="edge", hatch=_HATCHES[number % len(_HATCHES)], label=label, **fill)
            axes.set_title(plain(title), loc="left", fontsize=9.5)
            axes.set_ylabel(counted)
            axes.yaxis.get_major_locator().set_params(integer=True)
            axes.legend(loc="upper right", frameon=False, fontsize=8)
        plots[-1].set_xlabel(x_label)
    return figure


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most so many steps, at equal distances."""
    if len(x) <= _STEPS:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, _STEPS).round().astype(np.int64))
    return x[kept], y[kept]


def order_overview(
    names: Sequence[str], values: Sequence[float], groups: Sequence[tuple[int, int]], *, x_label: str
) -> Figure:
    """Systems below one another, each with its value; a line at the right joins each group.

    Source: Demšar (2006), Statistical comparisons of classifiers over multiple data sets, section 3.2.2, for the
        diagram; the lines here follow the tests of the pairs, not a critical difference of mean ranks.
    """
    with settings():
        figure = new_figure(0.23 * max(1, len(names)) + 0.8)
        axes = figure.add_subplot()
        places = range(len(names))
        axes.hlines(places, min(values, default=0.0), values, color=QUIET, linewidth=0.5)
        axes.plot(values, places, linestyle="none", marker="o", markersize=4.5, color=INK)
        for row, value in enumerate(values):
            axes.annotate(
                f"{value:.4f}", (value, row), xytext=(5, 0), textcoords="offset points", va="center", fontsize=7.5
            )
        ends: list[int] = []
        for first, last in groups:
            # Groups that do not overlap share a column.
            column = next((number for number, end in enumerate(ends) if end < first), len(ends))
            ends[column : column + 1] = [last]
            axes.plot(
                [1.03 + 0.022 * column] * 2, [first - 0.25, last + 0.25], transform=axes.get_yaxis_transform(),
                color=ACCENT, linewidth=2.4, clip_on=False, solid_capstyle="butt",
            )  # fmt: skip
        axes.set_yticks(places, [plain(name) for name in names], fontsize=8)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.12)
        axes.set_xlabel(plain(x_label))
    return figure

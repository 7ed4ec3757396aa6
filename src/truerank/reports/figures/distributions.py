"""How values are distributed: cumulative curves, and histograms of several series side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike

from truerank.reports.figures.style import ACCENT, INK, QUIET, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["cumulative_curves", "side_by_side_histograms"]

Named = tuple[str, ArrayLike]

_INKS: Final = (INK, ACCENT, QUIET)
_DASHES: Final = ((0, ()), (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)))
_HATCHES: Final = ("", "////", "....", "xxxx")


def cumulative_curves(series: Sequence[Named], *, x_label: str, counted: str, at: float | None = None) -> Figure:
    """For each series, the share of its values up to each value.

    Args:
        series: name and values of each; their lines differ in dashes first, in ink after that.
        x_label: what the values are, with their unit.
        counted: what one value stands for, in the plural.
        at: a value at which a thin line stands.

    Returns:
        The figure.
    """
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
    """Plots below each other on one axis of values; in each, bars of several series stand side by side.

    Args:
        panels: title, and the series as name and values, of each plot.
        edges: borders of the bins, rising; a bin holds what is above its lower and at most at its upper border.
        x_label: what the values are, with their unit.
        counted: what one value stands for, in the plural.

    Returns:
        The figure.
    """
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


def _thinned(x: np.ndarray, y: np.ndarray, most: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Steps for the eye: a file with a million of them would show no more."""
    if len(x) <= most:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, most).round().astype(np.int64))
    return x[kept], y[kept]

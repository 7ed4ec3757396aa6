"""Changes of scores beside what random changes do, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from truerank.reports.figures.style import ACCENT, QUIET, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ChangeRow(NamedTuple):
    """One row: what it is, its change, and the ends of the interval in which random changes lie."""

    name: str
    change: float
    low: float
    high: float


def change_rows(rows: Sequence[ChangeRow], *, x_label: str) -> Figure:
    """Changes below one another, the first on top; a bar shows where random changes lie."""
    with settings():
        figure = new_figure(0.32 * max(1, len(rows)) + 0.9)
        axes = figure.add_subplot()
        places = np.arange(len(rows))
        low, high = (np.array([getattr(row, end) for row in rows]) for end in ("low", "high"))
        axes.barh(places, high - low, left=low, height=0.5, facecolor="none", edgecolor=QUIET, hatch="////")
        axes.plot([row.change for row in rows], places, linestyle="none", marker="o", markersize=5, color=ACCENT)
        for row, place in zip(rows, places.tolist(), strict=True):
            axes.annotate(
                f"{row.change:+.4f}",
                (max(row.change, row.high), place),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.axvline(0, color=QUIET, linewidth=0.8)
        axes.set_yticks(places, [plain(row.name) for row in rows], fontsize=8)
        axes.set_ylim(len(rows) - 0.5, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.use_sticky_edges = False
        axes.margins(x=0.16)
        axes.set_xlabel(plain(x_label))
    return figure

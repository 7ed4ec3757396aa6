"""Shares with their intervals, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from truerank.reports.figures.style import ACCENT, INK, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ShareRow", "share_rows"]


class ShareRow(NamedTuple):
    """One row: what it is, its share between 0 and 1, and the ends of its interval."""

    name: str
    value: float
    low: float
    high: float


def share_rows(
    rows: Sequence[ShareRow], *, x_label: str, reference: float | None = None, reference_label: str = ""
) -> Figure:
    """Shares below one another, the first on top, each with its interval and its figure.

    Args:
        rows: from top to bottom.
        x_label: what the shares are of.
        reference: a share that is drawn as a dashed line through all rows.
        reference_label: what that line is.

    Returns:
        The figure.
    """
    with settings():
        figure = new_figure(0.32 * max(1, len(rows)) + 0.9)
        axes = figure.add_subplot()
        places = np.arange(len(rows))
        values = np.array([row.value for row in rows])
        ends = np.abs(np.array([(row.low, row.high) for row in rows]).reshape(-1, 2).T - values)
        axes.errorbar(values, places, xerr=ends, fmt="o", color=INK, markersize=4.5, elinewidth=1.0, capsize=2.2)
        for row, place in zip(rows, places.tolist(), strict=True):
            axes.annotate(
                f"{row.value:.1%}",
                (row.high, place),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.set_yticks(places, [plain(row.name) for row in rows], fontsize=8)
        axes.set_ylim(len(rows) - 0.5, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter("{x:.0%}")
        axes.margins(x=0.14)
        if reference is not None:
            axes.axvline(reference, color=ACCENT, linewidth=1.0, linestyle=(0, (4, 2)))
            axes.set_title(plain(f"dashed: {reference_label} {reference:.1%}"), loc="left", fontsize=8, color=ACCENT)
        axes.set_xlabel(plain(x_label))
    return figure

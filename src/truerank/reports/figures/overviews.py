"""Systems in order, with lines that join those that no test tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from truerank.reports.figures.style import ACCENT, INK, QUIET, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["order_overview"]


def order_overview(
    names: Sequence[str], values: Sequence[float], groups: Sequence[tuple[int, int]], *, x_label: str
) -> Figure:
    """Systems below one another, each with its value; a line at the right joins each group.

    Args:
        names: from the top.
        values: one per system.
        groups: the first and the last place of each, which may overlap.
        x_label: what the values are.

    Returns:
        The figure.

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

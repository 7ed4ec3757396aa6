"""Scores of runs in order: by group with the best of each marked, and in panels along one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truerank.reports.figures.marks import Mark, legend_below, marks
from truerank.reports.figures.style import ACCENT, INK, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class RunGroup:
    """Runs of one kind.

    Attributes:
        name: the kind.
        values: their scores, shape (n,), best first.
        best: what stands beside the best of them, lines separated by line ends.
    """

    name: str
    values: ArrayLike
    best: str


def grouped_scores(
    groups: Sequence[RunGroup], *, y_label: str, reference: float | None, reference_label: str
) -> Figure:
    """The scores of runs side by side by group, best first, the best ringed and named."""
    looks = marks([group.name for group in groups])
    with settings():
        figure = new_figure(3.8)
        axes = figure.add_subplot()
        arrays = [np.asarray(group.values, dtype=np.float64) for group in groups]
        # A group is as wide as it has runs, but never narrower than the words beside its best run.
        total = max(1, sum(map(len, arrays)))
        widths = [max(len(array), total * 0.3) for array in arrays]
        edge, centres = 0.0, []
        for group, array, width in zip(groups, arrays, widths, strict=True):
            x = edge + (np.arange(len(array)) + 0.5) * width / max(1, len(array))
            axes.plot(x, array, **looks[group.name].style())
            _mark_best(axes, x, array, group.best)
            centres.append(edge + width / 2)
            if edge:
                axes.axvline(edge, color=INK, linewidth=0.5, linestyle=(0, (1, 3)))
            edge += width
        _label_groups(axes, groups, arrays, centres, edge)
        if reference is not None:
            axes.axhline(reference, color=ACCENT, linewidth=1.0, linestyle=(0, (4, 2)))
            axes.annotate(
                plain(reference_label),
                (edge, reference),
                xytext=(-2, -3),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=8,
                color=ACCENT,
            )
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.16 * (high - low))
        axes.set_ylabel(plain(y_label))
    return figure


def ordered_scores(
    panels: Sequence[tuple[str, ArrayLike]], kinds: Sequence[str], *, x_label: str, counted: str
) -> Figure:
    """Scores along one order of runs, one panel per measure, the best of each kind with a line at its height.

    The labels of two such lines stand on the outer sides of the two, so that they never meet.

    Args:
        panels: measure and its scores in the order of the runs, shape (n,); NaN where unknown.
    """
    names = list(dict.fromkeys(sorted(kinds)))
    looks = marks(names)
    rows = max(1, len(panels))
    with settings():
        figure = new_figure(2.5 * rows + 0.6)
        plots = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
        places = np.arange(1, len(kinds) + 1)
        for axes, (measure, values) in zip(plots, panels, strict=False):
            array = np.asarray(values, dtype=np.float64)
            top = _best_kind(array, kinds)
            for name in names:
                chosen = np.array([kind == name for kind in kinds]) & np.isfinite(array)
                axes.plot(places[chosen], array[chosen], **looks[name].style())
                _line_at_best(axes, array[chosen], name, looks[name], first=name == top)
            axes.set_ylabel(plain(measure))
            axes.margins(y=0.12)
        plots[-1].set_xlim(0.2, len(kinds) + 0.8)
        plots[-1].xaxis.get_major_locator().set_params(integer=True)
        plots[-1].set_xlabel(plain(f"{x_label}, n = {len(kinds):,d} {counted}"))
        legend_below(figure, list(looks.items()))
    return figure


def _mark_best(axes: Any, x: NDArray[np.float64], array: NDArray[np.float64], words: str) -> None:
    if not len(array):
        return
    axes.plot(x[:1], array[:1], linestyle="none", marker="o", markersize=11, markerfacecolor="none", color=INK)
    axes.annotate(
        plain(words), (x[0], array[0]), xytext=(-4, 9), textcoords="offset points", ha="left", va="bottom", fontsize=8
    )


def _label_groups(
    axes: Any, groups: Sequence[RunGroup], arrays: Sequence[NDArray[np.float64]], centres: list[float], width: float
) -> None:
    axes.set_xlim(0, max(width, 1.0))
    names = [f"{plain(group.name)}\nn = {len(array):,d}" for group, array in zip(groups, arrays, strict=True)]
    axes.set_xticks(centres, names)
    axes.tick_params(axis="x", length=0)


def _best_kind(array: NDArray[np.float64], kinds: Sequence[str]) -> str:
    return kinds[int(np.nanargmax(array))] if np.isfinite(array).any() else ""


def _line_at_best(axes: Any, values: NDArray[np.float64], name: str, look: Mark, *, first: bool) -> None:
    if not values.size:
        return
    best = float(values.max())
    axes.axhline(best, color=look.colour, linewidth=0.9, linestyle=(0, (5, 2)) if first else (0, (1.5, 1.5)))
    axes.annotate(
        f"best {plain(name)}\n{best:.4f}",
        (1.0, best),
        xycoords=("axes fraction", "data"),
        xytext=(4, -1 if first else 1),
        textcoords="offset points",
        ha="left",
        va="bottom" if first else "top",
        fontsize=8,
    )

"""How values are distributed: cumulative curves, histograms, thresholds, differences by topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truerank.core.figures.style import ACCENT, INK, QUIET, new_figure, new_grid, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Named = tuple[str, ArrayLike]

_INKS: Final = (INK, ACCENT, QUIET)
_DASHES: Final = ((0, ()), (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)))
_HATCHES: Final = ("", "////", "....", "xxxx")
#: Steps of a curve at most: a file with a million of them would show no more.
_STEPS: Final = 2000
#: The width of the bars of a histogram.
_BIN: Final = 0.01


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


def histogram(
    values: ArrayLike,
    *,
    threshold: float,
    x_label: str,
    counted: str,
    scale: Literal["linear", "log"] = "log",
) -> Figure:
    """A histogram with a threshold; the part above it is hatched."""
    with settings():
        figure = new_figure(2.9)
        axes = figure.add_subplot()
        array = _finite(values)
        _draw_histogram(axes, array, _edges([array], threshold), threshold, scale)
        _label_threshold(axes, threshold)
        axes.set_xlabel(x_label)
        axes.set_ylabel(f"{counted}{' (log scale)' if scale == 'log' else ''}, n = {array.size:,d}")
    return figure


def stacked_histograms(
    series: Sequence[tuple[str, ArrayLike]],
    *,
    threshold: float,
    x_label: str,
    counted: str,
) -> Figure:
    """One histogram per series below each other on one axis of values, with one threshold."""
    with settings():
        rows = max(1, len(series))
        figure = new_figure(1.0 + 1.5 * rows)
        panels = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
        arrays = [_finite(values) for _, values in series]
        edges = _edges(arrays, threshold)
        for axes, (name, _), array in zip(panels, series, arrays, strict=False):
            _draw_histogram(axes, array, edges, threshold, "linear")
            axes.set_title(plain(f"{name}, n = {array.size:,d}"), loc="left", fontsize=9.5)
            axes.set_ylabel(counted)
        _label_threshold(panels[0], threshold)
        panels[-1].set_xlabel(x_label)
    return figure


def precision_curve(
    thresholds: ArrayLike,
    precision: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    labels: int,
    target: float | None = None,
    chosen: float | None = None,
) -> Figure:
    """Precision of the pairs above each threshold, with a band for its interval.

    Args:
        thresholds: similarities, shape (k,).
        precision: share of true pairs above each threshold, 0 to 1, shape (k,).
        low: lower end of the interval, shape (k,).
        high: upper end of the interval, shape (k,).
    """
    with settings():
        figure = new_figure(3.0)
        axes = figure.add_subplot()
        order = np.argsort(np.asarray(thresholds, dtype=np.float64), kind="stable")
        x, y, below, over = (np.asarray(part, dtype=np.float64)[order] for part in (thresholds, precision, low, high))
        axes.fill_between(x, below, over, step="post", facecolor=QUIET, alpha=0.3, linewidth=0, label="interval")
        for edge in (below, over):
            axes.step(x, edge, where="post", color=QUIET, linewidth=0.6)
        axes.step(x, y, where="post", color=INK, linewidth=1.4, label="precision")
        if target is not None:
            axes.axhline(target, color=INK, linewidth=0.7, linestyle=(0, (1.5, 2.5)), label=f"target {target:g}")
        if chosen is not None:
            _label_threshold(axes, chosen)
        floor = float(np.nanmin(below)) if below.size else 0.0
        axes.set_ylim(max(0.0, np.floor(floor * 10) / 10 - 0.02), 1.02)
        axes.set_xlabel("similarity threshold (cosine)")
        axes.set_ylabel(f"precision, n = {labels:,d} labels")
        axes.legend(loc="lower right", frameon=False, fontsize=8.5)
    return figure


def _finite(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[np.isfinite(array)]


def _edges(arrays: Sequence[NDArray[np.float64]], threshold: float) -> NDArray[np.float64]:
    """Bins that cover all arrays and have an edge at the threshold."""
    everything = np.concatenate([*arrays, np.array([threshold])])
    below = int(np.ceil((threshold - everything.min()) / _BIN - 1e-9)) + 1
    over = int(np.ceil((everything.max() - threshold) / _BIN - 1e-9)) + 1
    edges: NDArray[np.float64] = threshold + _BIN * np.arange(-below, over + 1, dtype=np.float64)
    return edges


def _draw_histogram(
    axes: Any, array: NDArray[np.float64], edges: NDArray[np.float64], threshold: float, scale: str
) -> None:
    # Bins open on the left: a value on the threshold is not above it, and stands left of the line.
    counts = np.bincount(np.searchsorted(edges, array - 1e-9, side="left"), minlength=edges.size + 1)[1 : edges.size]
    # On a logarithmic axis an outline cannot come from zero, and a single pair must still show.
    floor = 0.7 if scale == "log" else 0.0
    steps = {"baseline": floor, "fill": True}
    below = np.count_nonzero(edges[:-1] < threshold - 1e-9)
    shown = np.where(counts > 0, counts, floor)
    axes.stairs(shown[:below], edges[: below + 1], facecolor=QUIET, edgecolor="none", alpha=0.45, **steps)
    axes.stairs(shown[below:], edges[below:], facecolor="none", edgecolor=ACCENT, hatch="////", linewidth=0.7, **steps)
    axes.axvline(threshold, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
    axes.set_xlim(edges[0], edges[-1])
    if scale == "log" and counts.max(initial=0) > 0:
        axes.set_yscale("log")
        axes.set_ylim(0.7, float(counts.max()) * 2)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.minorticks_off()
    else:
        axes.yaxis.get_major_locator().set_params(integer=True)


def _label_threshold(axes: Any, threshold: float) -> None:
    axes.axvline(threshold, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
    axes.annotate(
        f"threshold {threshold:g}",
        (threshold, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-5, -2),
        textcoords="offset points",
        ha="right",
        va="top",
    )


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


def difference_panels(panels: Sequence[DifferencePanel], *, y_label: str) -> Figure:
    """Plots beside and below each other that share the axis of the differences."""
    with settings():
        figure, plots = new_grid(len(panels), 2, lambda rows: 2.4 * rows + 0.4, sharey=True)
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
        from matplotlib.lines import Line2D

        entries = [
            Line2D([], [], linestyle="none", marker="o", markersize=4.5, color=INK, label=plain(names[0])),
            Line2D([], [], linestyle="none", marker="x", markersize=4.5, color=QUIET, label=plain(names[1])),
            Line2D([], [], color=INK, linewidth=1.0, label="first is better"),
            Line2D([], [], color=ACCENT, linewidth=1.0, linestyle=(0, (2, 1.2)), label="second is better"),
        ]
        figure.legend(handles=entries, loc="outside upper left", ncols=2, frameon=False, fontsize=8)
    return figure


def _area(differences: NDArray[np.float64], names: tuple[str, str], x_label: str) -> Figure:
    figure = new_figure(3.2)
    axes = figure.add_subplot()
    draw_differences(axes, differences)
    axes.set_xlabel(f"topics by difference, n = {len(differences):,d}")
    axes.set_ylabel(plain(f"{x_label}: {names[0]} − {names[1]}"), fontsize=8.5)
    return figure


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"

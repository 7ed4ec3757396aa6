"""Histograms with a threshold, and precision along thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truerank.reports.figures.style import ACCENT, INK, QUIET, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def histogram(
    values: ArrayLike,
    *,
    threshold: float,
    x_label: str,
    counted: str,
    bin_width: float = 0.01,
    scale: Literal["linear", "log"] = "log",
) -> Figure:
    """A histogram with a threshold; the part above it is hatched."""
    with settings():
        figure = new_figure(2.9)
        axes = figure.add_subplot()
        array = _finite(values)
        _draw_histogram(axes, array, _edges([array], threshold, bin_width), threshold, scale)
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
    bin_width: float = 0.01,
) -> Figure:
    """One histogram per series below each other on one axis of values, with one threshold."""
    with settings():
        rows = max(1, len(series))
        figure = new_figure(1.0 + 1.5 * rows)
        panels = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
        arrays = [_finite(values) for _, values in series]
        edges = _edges(arrays, threshold, bin_width)
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


def _edges(arrays: Sequence[NDArray[np.float64]], threshold: float, width: float) -> NDArray[np.float64]:
    """Bins that cover all arrays and have an edge at the threshold."""
    everything = np.concatenate([*arrays, np.array([threshold])])
    below = int(np.ceil((threshold - everything.min()) / width - 1e-9)) + 1
    over = int(np.ceil((everything.max() - threshold) / width - 1e-9)) + 1
    edges: NDArray[np.float64] = threshold + width * np.arange(-below, over + 1, dtype=np.float64)
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

"""Figures for reports: the same data gives the same SVG and PDF bytes; no state of pyplot is read or changed.

Every figure can be read without colour (hatching, dashes, words), takes its ink from the page around it, so that it
fits light and dark, and keeps its words as text.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from truerank.reports.tables import escape_html

__all__ = ["histogram", "precision_curve", "stacked_histograms", "to_pdf", "to_svg"]

# Written by matplotlib, then replaced in the SVG by what the surrounding page says.
_INK: Final = "#1d1c1a"
_ACCENT: Final = "#9c3a21"
_QUIET: Final = "#8d8a82"
_PAGE_COLOURS: Final = {
    _INK: "currentColor",
    _ACCENT: f"var(--figure-accent, {_ACCENT})",
    _QUIET: f"var(--figure-quiet, {_QUIET})",
}
_WIDTH: Final = 6.4
_STYLE: Final[dict[str, Any]] = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "hatch.linewidth": 0.7,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "pdf.compression": 6,
}
# The settings of matplotlib belong to the process, not to a figure.
_SETTINGS_LOCK = threading.Lock()

_METADATA: Final = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_PROLOGUE: Final = re.compile(r"^.*?(?=<svg )", re.DOTALL)
_DEFINED: Final = re.compile(r'\bid="([^"]+)"')
_USED: Final = re.compile(r'((?:xlink:)?href="#|url\(#)([^")]+)')
_GLOBAL_STYLE: Final = re.compile(r"\s*<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_FONT: Final = re.compile(r"'DejaVu Sans'(, sans-serif)*")
_OPENING: Final = re.compile(r"<svg [^>]*?viewBox=\"([^\"]+)\"[^>]*>")


def histogram(
    values: ArrayLike,
    *,
    threshold: float,
    x_label: str,
    counted: str,
    bin_width: float = 0.01,
    scale: Literal["linear", "log"] = "log",
) -> Figure:
    """A histogram with a threshold; the part above it is hatched.

    Args:
        values: the values, any length, in the unit of `x_label`.
        threshold: where the line stands; it is also an edge between two bins.
        x_label: what the values are, with their unit.
        counted: what one value stands for, in the plural ("pairs").
        bin_width: width of a bin, in the unit of the values.
        scale: scale of the counts.

    Returns:
        The figure.
    """
    with _settings():
        figure = Figure(figsize=(_WIDTH, 2.9), layout="constrained")
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
    """One histogram per series below each other on one axis of values, with one threshold.

    Args:
        series: name and values of each.
        threshold: where the line stands; it is also an edge between two bins.
        x_label: what the values are, with their unit.
        counted: what one value stands for, in the plural ("topics").
        bin_width: width of a bin, in the unit of the values.

    Returns:
        The figure.
    """
    with _settings():
        rows = max(1, len(series))
        figure = Figure(figsize=(_WIDTH, 1.0 + 1.5 * rows), layout="constrained")
        panels = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
        arrays = [_finite(values) for _, values in series]
        edges = _edges(arrays, threshold, bin_width)
        for axes, (name, _), array in zip(panels, series, arrays, strict=False):
            _draw_histogram(axes, array, edges, threshold, "linear")
            axes.set_title(_plain(f"{name}, n = {array.size:,d}"), loc="left", fontsize=9.5)
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
        labels: number of labelled pairs behind the curve.
        target: the precision asked for, drawn as a dashed line.
        chosen: the threshold that was chosen, drawn as a line with its value.

    Returns:
        The figure.
    """
    with _settings():
        figure = Figure(figsize=(_WIDTH, 3.0), layout="constrained")
        axes = figure.add_subplot()
        order = np.argsort(np.asarray(thresholds, dtype=np.float64), kind="stable")
        x, y, below, over = (np.asarray(part, dtype=np.float64)[order] for part in (thresholds, precision, low, high))
        axes.fill_between(x, below, over, step="post", facecolor=_QUIET, alpha=0.3, linewidth=0, label="interval")
        for edge in (below, over):
            axes.step(x, edge, where="post", color=_QUIET, linewidth=0.6)
        axes.step(x, y, where="post", color=_INK, linewidth=1.4, label="precision")
        if target is not None:
            axes.axhline(target, color=_INK, linewidth=0.7, linestyle=(0, (1.5, 2.5)), label=f"target {target:g}")
        if chosen is not None:
            _label_threshold(axes, chosen)
        floor = float(np.nanmin(below)) if below.size else 0.0
        axes.set_ylim(max(0.0, np.floor(floor * 10) / 10 - 0.02), 1.02)
        axes.set_xlabel("similarity threshold (cosine)")
        axes.set_ylabel(f"precision, n = {labels:,d} labels")
        axes.legend(loc="lower right", frameon=False, fontsize=8.5)
    return figure


def to_svg(figure: Figure, *, name: str, description: str) -> str:
    """The figure as an inert SVG element for a page: no prologue, date, script or reference to the outside.

    Args:
        figure: any figure of matplotlib.
        name: a word that is unique in the page; every id in the SVG begins with it.
        description: what the figure shows, for those who do not see it.

    Returns:
        The SVG; equal figures and names give equal texts.
    """
    out = io.StringIO()
    with _settings():
        matplotlib.rcParams["svg.hashsalt"] = name
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = _METADATA.sub("", _PROLOGUE.sub("", out.getvalue()))
    svg = _GLOBAL_STYLE.sub("", svg)
    svg = _USED.sub(rf"\1{name}-\2", _DEFINED.sub(rf'id="{name}-\1"', svg))
    for ink, colour in _PAGE_COLOURS.items():
        svg = svg.replace(ink, colour)
    label = escape_html(" ".join(description.split()))

    def opening(match: re.Match[str]) -> str:
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'viewBox="{match[1]}" role="img" aria-label="{label}" '
            'style="stroke-linejoin: round; stroke-linecap: butt">'
        )

    return _OPENING.sub(opening, _FONT.sub("sans-serif", svg), count=1).strip() + "\n"


def to_pdf(figure: Figure) -> bytes:
    """The figure as PDF without dates; the same figure gives the same bytes."""
    out = io.BytesIO()
    with _settings():
        metadata = dict.fromkeys(("CreationDate", "ModDate", "Creator", "Producer"))
        figure.savefig(out, format="pdf", metadata=metadata)
    return out.getvalue()


@contextmanager
def _settings() -> Iterator[None]:
    """Matplotlib as it comes, with this module's style, whatever the user's own settings are."""
    with _SETTINGS_LOCK, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


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
    axes.stairs(shown[:below], edges[: below + 1], facecolor=_QUIET, edgecolor="none", alpha=0.45, **steps)
    axes.stairs(shown[below:], edges[below:], facecolor="none", edgecolor=_ACCENT, hatch="////", linewidth=0.7, **steps)
    axes.axvline(threshold, color=_INK, linewidth=1.0, linestyle=(0, (4, 2)))
    axes.set_xlim(edges[0], edges[-1])
    if scale == "log" and counts.max(initial=0) > 0:
        axes.set_yscale("log")
        axes.set_ylim(0.7, float(counts.max()) * 2)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.minorticks_off()
    else:
        axes.yaxis.get_major_locator().set_params(integer=True)


def _label_threshold(axes: Any, threshold: float) -> None:
    axes.axvline(threshold, color=_INK, linewidth=1.0, linestyle=(0, (4, 2)))
    axes.annotate(
        f"threshold {threshold:g}",
        (threshold, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-5, -2),
        textcoords="offset points",
        ha="right",
        va="top",
    )


def _plain(text: str) -> str:
    """The text without the signs that matplotlib reads as mathematics."""
    return text.replace("$", r"\$")

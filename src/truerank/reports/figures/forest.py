"""Forest plot: one estimate under many conditions, a row each, with its interval and its figures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from truerank.reports.figures.style import ACCENT, INK, QUIET, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ForestMark", "ForestRow", "forest_plot", "narrow_forest_plot"]

ForestMark = Literal["above", "includes", "below", "range", ""]

_ROW: Final = 0.205
#: Inches: the narrow plot's width, the height of its rows without and with a value, and of a value below its label.
_NARROW_WIDTH: Final = 3.7
_NARROW: Final = {False: 0.19, True: 0.36}
_BELOW: Final = 0.16
#: Marks that are told apart without colour: filled, hollow, a cross.
_LOOKS: Final[dict[str, dict[str, Any]]] = {
    "above": {"marker": "s", "markerfacecolor": INK, "markeredgecolor": INK, "markersize": 5.2},
    "includes": {"marker": "s", "markerfacecolor": "none", "markeredgecolor": INK, "markersize": 5.2},
    "below": {"marker": "x", "markeredgecolor": ACCENT, "markersize": 5.6, "markeredgewidth": 1.6},
}
_WORDS: Final = {
    "above": "the interval is above 0",
    "includes": "the interval includes 0",
    "below": "not better",
    "range": "all values that are possible",
}


@dataclass(frozen=True)
class ForestRow:
    """One line: a heading (no mark), or a value with the ends of its interval.

    Attributes:
        label: at the left.
        mark: how the value is marked; a heading has none.
        value: None where there is none.
        low: the lower end; None where unknown.
        high: the upper end.
        figures: at the right.
        bold: whether the label is.
    """

    label: str
    mark: ForestMark = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    figures: str = ""
    bold: bool = False


def forest_plot(rows: Sequence[ForestRow], *, x_label: str, reference: float | None) -> Figure:
    """Draws the rows from the top.

    Args:
        rows: headings and values.
        x_label: of the values.
        reference: where a dotted line stands: the value that the others are compared with.
    """
    with settings():
        figure = new_figure(0.95 + _ROW * len(rows))
        axes = figure.subplots()
        axes.axvline(0, color=INK, linewidth=0.9)
        if reference is not None:
            axes.axvline(reference, color=QUIET, linewidth=0.9, linestyle=(0, (1.2, 2)))
        for place, row in enumerate(rows):
            _draw(axes, place, row)
        axes.set_yticks(range(len(rows)), [plain(row.label) for row in rows], fontsize=8)
        for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
            tick.set_horizontalalignment("left")
            tick.set_fontweight("bold" if row.bold else "normal")
        width = max((_width(row) for row in rows), default=0.0)
        axes.tick_params(axis="y", length=0, pad=4 + width)
        axes.set_ylim(len(rows) - 0.4, -0.7)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(plain(x_label), fontsize=8)
        axes.tick_params(axis="x", labelsize=7.5)
        _legend(figure, {row.mark for row in rows})
    return figure


def narrow_forest_plot(rows: Sequence[ForestRow], *, x_label: str, reference: float | None) -> Figure:
    """The same for narrow screens: the label and the figures of a row stand above it.

    Args:
        rows: headings and values.
        x_label: of the values.
        reference: where a dotted line stands.
    """
    with settings():
        figure = new_figure(1.0 + sum(_NARROW[bool(row.mark)] for row in rows))
        figure.set_figwidth(_NARROW_WIDTH)
        axes = figure.subplots()
        axes.axvline(0, color=INK, linewidth=0.9)
        if reference is not None:
            axes.axvline(reference, color=QUIET, linewidth=0.9, linestyle=(0, (1.2, 2)))
        at = 0.0
        for row in rows:
            weight = "bold" if row.bold else "normal"
            look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "fontsize": 7.5, "va": "center"}
            axes.annotate(plain(row.label), (0.0, at), fontweight=weight, **look)
            axes.annotate(plain(row.figures), (1.0, at), ha="right", color=INK if row.mark else QUIET, **look)
            if row.mark:
                at += _BELOW
                _mark(axes, at, row)
            at += _NARROW[True] - _BELOW if row.mark else _NARROW[False]
        axes.set_ylim(at, -0.15)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(plain(x_label), fontsize=7)
        axes.tick_params(axis="x", labelsize=7)
        _legend(figure, {row.mark for row in rows})
    return figure


def _width(row: ForestRow) -> float:
    """About how many points a label takes: labels begin at the same place, and the longest must fit."""
    return len(row.label) * (4.9 if row.bold else 4.35)


def _draw(axes: Any, place: int, row: ForestRow) -> None:
    axes.annotate(
        plain(row.figures), (1.0, place), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points",
        fontsize=7.5, va="center", color=INK if row.mark else QUIET, fontweight="normal", annotation_clip=False,
    )  # fmt: skip
    _mark(axes, place, row)


def _mark(axes: Any, place: float, row: ForestRow) -> None:
    """The value and its interval."""
    if not row.mark or row.value is None:
        return
    if row.low is not None and row.high is not None:
        if row.mark == "range":
            axes.plot([row.low, row.high], [place, place], color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
            axes.plot([row.low, row.high], [place, place], "|", color=INK, markersize=7, markeredgewidth=1.1)
        else:
            axes.plot([row.low, row.high], [place, place], color=INK, linewidth=1.1)
    if row.mark in _LOOKS:
        axes.plot([row.value], [place], linestyle="none", **_LOOKS[row.mark])


def _legend(figure: Any, marks: set[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", label=_WORDS[mark], **look) for mark, look in _LOOKS.items() if mark in marks
    ]
    if "range" in marks:
        handles.append(Line2D([], [], color=INK, linewidth=0.9, linestyle=(0, (4, 2)), label=_WORDS["range"]))
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=2, frameon=False, fontsize=7.5)

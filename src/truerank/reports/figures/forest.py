"""Forest plot: values with their intervals below one another, a row each, with its figures at the right."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from truerank.reports.figures.style import ACCENT, INK, QUIET, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ForestMark = Literal["filled", "hollow", "cross", "range"]

#: Inches: the height of a row, and what axis, label and legend take.
_ROW: Final = 0.205
_AROUND: Final = 0.95
#: Inches: the narrow plot's width, the height of its headings and of its rows, and of a value below its label.
_NARROW_WIDTH: Final = 3.7
_NARROW_HEADING: Final = 0.19
_NARROW_ROW: Final = 0.36
_BELOW: Final = 0.16
_DASHES: Final = (0, (4, 2))
#: Marks that are told apart without colour.
_LOOKS: Final[Mapping[ForestMark, dict[str, Any]]] = {
    "filled": {"marker": "s", "fillstyle": "full", "color": INK, "markersize": 5.2},
    "hollow": {"marker": "s", "fillstyle": "none", "color": INK, "markersize": 5.2},
    "cross": {"marker": "x", "color": ACCENT, "markersize": 5.6, "markeredgewidth": 1.6},
}
_NO_WORDS: Final[Mapping[ForestMark, str]] = MappingProxyType({})


#: Letters of a label; narrow ones stand beside their figures.
_WIDE, _NARROW = 60, 36


class ForestRow(NamedTuple):
    """One row: a value with the ends of its interval, or a heading.

    Attributes:
        label: at the left.
        value: None where there is none.
        low: the lower end; None where unknown.
        high: the upper end.
        figures: at the right.
        mark: how the value is marked. A range has its ends marked and no value; None is a heading.
        bold: whether the label is.
    """

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    figures: str = ""
    mark: ForestMark | None = "filled"
    bold: bool = False


def forest_plot(
    rows: Sequence[ForestRow],
    *,
    x_label: str,
    zero: bool = False,
    line: float | None = None,
    line_label: str = "",
    meanings: Mapping[ForestMark, str] = _NO_WORDS,
    percent: bool = False,
    narrow: bool = False,
) -> Figure:
    """Draws the rows from the top."""
    with settings():
        figure = new_figure(_height(rows, narrow))
        axes = figure.add_subplot()
        if narrow:
            figure.set_figwidth(_NARROW_WIDTH)
            _narrow_rows(axes, rows)
        else:
            _wide_rows(axes, rows)
        if zero:
            axes.axvline(0, color=INK, linewidth=0.9)
        if line is not None:
            look: dict[str, Any] = {"color": QUIET, "linewidth": 0.9, "linestyle": (0, (1.2, 2))}
            if line_label:
                look = {"color": ACCENT, "linewidth": 1.0, "linestyle": _DASHES}
                axes.set_title(plain(f"dashed: {line_label}"), loc="left", fontsize=8, color=ACCENT)
            axes.axvline(line, zorder=0, **look)
        if percent:
            axes.xaxis.set_major_formatter("{x:.0%}")
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(plain(x_label), fontsize=7 if narrow else 8)
        axes.tick_params(axis="x", labelsize=7 if narrow else 7.5)
        drawn = {row.mark for row in rows}
        _legend(figure, {mark: words for mark, words in meanings.items() if mark in drawn})
    return figure


def _height(rows: Sequence[ForestRow], narrow: bool) -> float:
    if not narrow:
        return _AROUND + _ROW * max(1, len(rows))
    return _AROUND + sum(_NARROW_ROW if row.mark else _NARROW_HEADING for row in rows)


def _wide_rows(axes: Any, rows: Sequence[ForestRow]) -> None:
    """Labels at the left, which begin at the same place; figures at the right."""
    axes.set_yticks(range(len(rows)), [_fitted(row.label, _WIDE) for row in rows], fontsize=8)
    labels = axes.get_yticklabels()
    for label, row in zip(labels, rows, strict=True):
        label.set_horizontalalignment("left")
        label.set_fontweight(_weight(row))
    longest = max((label.get_window_extent().width for label in labels), default=0.0)
    axes.tick_params(axis="y", length=0, pad=8 + longest * 72 / axes.figure.dpi)
    for place, row in enumerate(rows):
        axes.annotate(
            plain(row.figures), (1.0, place), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", fontsize=7.5, va="center", color=INK if row.mark else QUIET,
            annotation_clip=False,
        )  # fmt: skip
        _mark(axes, place, row)
    axes.set_ylim(len(rows) - 0.4, -0.7)


def _narrow_rows(axes: Any, rows: Sequence[ForestRow]) -> None:
    """Labels and figures above the values."""
    at = 0.0
    for row in rows:
        look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "fontsize": 7.5, "va": "center"}
        axes.annotate(_fitted(row.label, _NARROW), (0.0, at), fontweight=_weight(row), **look)
        axes.annotate(plain(row.figures), (1.0, at), ha="right", color=INK if row.mark else QUIET, **look)
        _mark(axes, at + _BELOW, row)
        at += _NARROW_ROW if row.mark else _NARROW_HEADING
    axes.set_yticks([])
    axes.set_ylim(at, -0.15)


def _fitted(label: str, width: int) -> str:
    """A label that leaves room for the values; the table of the figures has the whole."""
    return textwrap.shorten(plain(label), width, placeholder=" …")


def _weight(row: ForestRow) -> str:
    return "bold" if row.bold else "normal"


def _mark(axes: Any, place: float, row: ForestRow) -> None:
    """The value and its interval."""
    if row.mark is None or row.value is None:
        return
    if row.low is not None and row.high is not None:
        look: dict[str, Any] = {"linewidth": 1.1}
        if row.mark == "range":
            look = {"linewidth": 0.9, "linestyle": _DASHES}
            axes.plot([row.low, row.high], [place, place], "|", color=INK, markersize=7, markeredgewidth=1.1)
        axes.hlines(place, row.low, row.high, color=INK, **look)
    if row.mark in _LOOKS:
        axes.plot([row.value], [place], linestyle="none", **_LOOKS[row.mark])


def _legend(figure: Any, meanings: Mapping[ForestMark, str]) -> None:
    from matplotlib.lines import Line2D

    line: dict[str, Any] = {"color": INK, "linewidth": 0.9, "linestyle": _DASHES}
    looks = {mark: {"linestyle": "none", **look} for mark, look in _LOOKS.items()}
    handles = [Line2D([], [], label=plain(words), **looks.get(mark, line)) for mark, words in meanings.items()]
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=2, frameon=False, fontsize=7.5)

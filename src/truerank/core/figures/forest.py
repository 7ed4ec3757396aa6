"""Values with their intervals: forest plots, panels of intervals, ordered values, changes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truerank.core.figures.lines import Mark, legend_below, marks
from truerank.core.figures.style import ACCENT, INK, QUIET, new_figure, plain, plot_title, settings

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


_LINE: Final = 0.17
_STYLE: Final[dict[str, Any]] = {
    "color": INK, "markersize": 4.6, "linestyle": "none", "markerfacecoloralt": "none",
}  # fmt: skip
_UNMARKED: Final = {"marker": "|"}
#: Marks of groups, told apart without colour: filled, half filled, hollow, a cross.
_SHAPES: Final = (
    {"marker": "o", "fillstyle": "full"},
    {"marker": "o", "fillstyle": "bottom"},
    {"marker": "o", "fillstyle": "none"},
    {"marker": "x", "fillstyle": "full"},
)


@dataclass(frozen=True)
class IntervalValue:
    """A value, the ends of its interval (None where unknown), and the group by which it is marked."""

    value: float | None
    low: float | None = None
    high: float | None = None
    group: str = ""


@dataclass(frozen=True)
class IntervalPanel:
    """One plot: its title, the label of its values, a value for each row, and dashed lines with their words."""

    title: str
    x_label: str
    values: tuple[IntervalValue, ...]
    lines: Mapping[float, str]


def interval_panels(rows: Sequence[str], panels: Sequence[IntervalPanel], *, groups: Sequence[str] = ()) -> Figure:
    """Plots beside each other that share their rows."""
    looks = dict(zip(groups, _SHAPES, strict=False))
    with settings():
        figure = new_figure(max(1.3, 0.9 + _LINE * len(rows)) + (0.3 if groups else 0.0))
        plots = figure.subplots(1, max(1, len(panels)), sharey=True, squeeze=False)[0]
        for axes, panel in zip(plots, panels, strict=False):
            _draw(axes, panel, looks, len(plots))
        plots[0].set_yticks(range(len(rows)), [plain(name) for name in rows], fontsize=7.5)
        plots[0].set_ylim(len(rows) - 0.4, -0.6)
        _group_legend(figure, looks)
    return figure


def _draw(axes: Any, panel: IntervalPanel, looks: Mapping[str, Mapping[str, str]], columns: int) -> None:
    for at, words in panel.lines.items():
        axes.axvline(at, color=ACCENT, linewidth=0.8, linestyle=(0, (4, 2)))
        axes.annotate(
            plain(words), (at, 0.0), xycoords=("data", "axes fraction"), xytext=(2, 2), textcoords="offset points",
            fontsize=6.5, color=ACCENT, va="bottom", rotation=90,
        )  # fmt: skip
    for row, one in enumerate(panel.values):
        axes.axhline(row, color=QUIET, linewidth=0.3, alpha=0.6)
        if one.value is None:
            continue
        if one.low is not None and one.high is not None:
            axes.plot([one.low, one.high], [row, row], color=INK, linewidth=0.9)
        look = looks.get(one.group, _UNMARKED)
        axes.plot([one.value], [row], **{**_STYLE, **look})
    plot_title(axes, panel.title, columns)
    axes.set_xlabel(plain(panel.x_label), fontsize=8)
    axes.tick_params(axis="x", labelsize=7)
    axes.tick_params(axis="y", length=0)


def _group_legend(figure: Any, looks: Mapping[str, Mapping[str, str]]) -> None:
    from matplotlib.lines import Line2D

    if not looks:
        return
    handles = [Line2D([], [], label=plain(name), **{**_STYLE, **look}) for name, look in looks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)


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
        axes.set_xlim(0, max(edge, 1.0))
        names = [f"{plain(group.name)}\nn = {len(array):,d}" for group, array in zip(groups, arrays, strict=True)]
        axes.set_xticks(centres, names)
        axes.tick_params(axis="x", length=0)
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
            top = kinds[int(np.nanargmax(array))] if np.isfinite(array).any() else ""
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

"""Values with their intervals, one row for each thing that is compared: with its words, or in panels side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truerank.reports.figures.style import ACCENT, INK, QUIET, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["IntervalPanel", "IntervalRow", "IntervalValue", "interval_panels", "interval_rows"]

_ROW: Final = 0.17
#: Height of a row that has words beside it, in inches.
_WORDED_ROW: Final = 0.27
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


class IntervalRow(NamedTuple):
    """One row of a forest plot.

    Attributes:
        name: what it is.
        value: its value; None where unknown.
        low: lower end of its interval; None where unknown.
        high: upper end.
        words: what stands at its right, such as the figures.
        strong: drawn with a filled mark, else with a hollow one.
        group: rows of one group stand below its name; empty for none.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    words: str = ""
    strong: bool = True
    group: str = ""


def interval_rows(
    rows: Sequence[IntervalRow],
    *,
    x_label: str,
    line: float | None = None,
    line_label: str = "",
    looks: tuple[str, str] = ("", ""),
    percent: bool = False,
) -> Figure:
    """A forest plot: values below one another, the first on top, each with its interval and its words.

    Args:
        rows: from top to bottom.
        x_label: what the values are, with their unit.
        line: a value that is drawn as a dashed line through all rows, such as 0 for differences.
        line_label: what that line is.
        looks: what a filled and what a hollow mark mean; empty for no legend.
        percent: the values are shares, shown as percentages.

    Returns:
        The figure.
    """
    lines = list(_row_lines(rows))
    with settings():
        figure = new_figure(_WORDED_ROW * max(1, len(lines)) + 0.9 + (0.3 if any(looks) else 0.0))
        axes = figure.add_subplot()
        for place, row in enumerate(lines):
            if isinstance(row, IntervalRow):
                _draw_row(axes, place, row)
        names = [row.name if isinstance(row, IntervalRow) else row for row in lines]
        axes.set_yticks(range(len(lines)), [plain(name) for name in names], fontsize=8)
        for label, row in zip(axes.get_yticklabels(), lines, strict=True):
            if isinstance(row, str):
                label.set_fontweight("bold")
        axes.set_ylim(len(lines) - 0.5, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.06)
        axes.locator_params(axis="x", nbins=5)
        if percent:
            axes.xaxis.set_major_formatter("{x:.0%}")
        if line is not None:
            axes.axvline(line, color=ACCENT, linewidth=1.0, linestyle=(0, (4, 2)), zorder=0)
        if line_label:
            axes.set_title(plain(f"dashed: {line_label}"), loc="left", fontsize=8, color=ACCENT)
        axes.set_xlabel(plain(x_label))
        if any(looks):
            _legend(figure, dict(zip(looks, (_SHAPES[0], _SHAPES[2]), strict=True)))
    return figure


def _row_lines(rows: Sequence[IntervalRow]) -> list[IntervalRow | str]:
    """The rows, with the name of each group above its own."""
    lines: list[IntervalRow | str] = []
    for group, members in groupby(rows, key=lambda row: row.group):
        lines += [*([group] if group else []), *members]
    return lines


def _draw_row(axes: Any, place: int, row: IntervalRow) -> None:
    if row.value is not None:
        if row.low is not None and row.high is not None:
            axes.errorbar(
                [row.value], [place], xerr=[[row.value - row.low], [row.high - row.value]], fmt="none", ecolor=INK,
                elinewidth=1.0, capsize=2.2,
            )  # fmt: skip
        axes.plot([row.value], [place], **{**_STYLE, **(_SHAPES[0] if row.strong else _SHAPES[2])})
    if row.words:
        axes.annotate(
            plain(row.words), (1.0, place), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", fontsize=8, annotation_clip=False,
        )  # fmt: skip


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
    """Plots beside each other that share their rows.

    Args:
        rows: the names, from the top.
        panels: the plots, from left to right.
        groups: at most four, each with a mark of its own; none for one mark.

    Returns:
        The figure.
    """
    looks = dict(zip(groups, _SHAPES, strict=False))
    with settings():
        figure = new_figure(max(1.3, 0.9 + _ROW * len(rows)) + (0.3 if groups else 0.0))
        plots = figure.subplots(1, max(1, len(panels)), sharey=True, squeeze=False)[0]
        for axes, panel in zip(plots, panels, strict=False):
            _draw(axes, panel, looks)
        plots[0].set_yticks(range(len(rows)), [plain(name) for name in rows], fontsize=7.5)
        plots[0].set_ylim(len(rows) - 0.4, -0.6)
        _legend(figure, looks)
    return figure


def _draw(axes: Any, panel: IntervalPanel, looks: Mapping[str, Mapping[str, str]]) -> None:
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
    axes.set_title(plain(panel.title), loc="left", fontsize=8.5)
    axes.set_xlabel(plain(panel.x_label), fontsize=8)
    axes.tick_params(axis="x", labelsize=7)
    axes.tick_params(axis="y", length=0)


def _legend(figure: Any, looks: Mapping[str, Mapping[str, str]]) -> None:
    from matplotlib.lines import Line2D

    if not looks:
        return
    handles = [Line2D([], [], label=plain(name), **{**_STYLE, **look}) for name, look in looks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)

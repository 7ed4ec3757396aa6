"""Values with their intervals in panels side by side, one row for each thing that is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truerank.reports.figures.style import ACCENT, INK, QUIET, new_figure, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROW: Final = 0.17
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

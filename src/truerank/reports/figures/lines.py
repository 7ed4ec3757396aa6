"""Values along ordered conditions, such as sizes of a training set, each with its interval, one line per series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from truerank.reports.figures.marks import Mark, legend_below, marks
from truerank.reports.figures.style import INK, new_grid, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Of the way from one condition to the next, what the lines of a panel share, so that no interval hides another.
_SPREAD: Final = 0.36
_DASHES: Final = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))


@dataclass(frozen=True)
class LineSeries:
    """One series.

    Attributes:
        name: of the series.
        values: by condition: the value and the ends of its interval, None where unknown; None for no value.
    """

    name: str
    values: tuple[tuple[float, float | None, float | None] | None, ...]


@dataclass(frozen=True)
class LinePanel:
    """One plot: its title, its conditions from left to right, its lines; `zero` draws a line at 0."""

    title: str
    conditions: tuple[str, ...]
    lines: tuple[LineSeries, ...]
    zero: bool = False


def line_panels(panels: Sequence[LinePanel], *, x_label: str, y_label: str, columns: int = 2) -> Figure:
    """Plots of lines beside and below each other; a series has the same mark and dashes in all of them.

    Conditions stand at equal distances. Plots of one row share the axis of the values.
    """
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    looks = marks(names)
    with settings():
        figure, plots = new_grid(len(panels), columns, lambda rows: 2.5 * rows + 0.5, sharey="row")
        for axes, panel in zip(plots.ravel(), panels, strict=False):
            _draw(axes, panel, names, looks)
        for axes in plots[:, 0]:
            axes.set_ylabel(plain(y_label), fontsize=8.5)
        # The lowest plot of each column says what stands below it.
        for place, axes in enumerate(plots.ravel()[: len(panels)]):
            if place + plots.shape[1] >= len(panels):
                axes.set_xlabel(plain(x_label), fontsize=8.5)
        legend_below(figure, list(looks.items()))
    return figure


def _draw(axes: Any, panel: LinePanel, names: Sequence[str], looks: dict[str, Mark]) -> None:
    if panel.zero:
        axes.axhline(0, color=INK, linewidth=0.7)
    offsets = np.linspace(-_SPREAD / 2, _SPREAD / 2, len(panel.lines)) if len(panel.lines) > 1 else np.zeros(1)
    for line, offset in zip(panel.lines, offsets, strict=False):
        mark, known = looks[line.name], [place for place, value in enumerate(line.values) if value is not None]
        held = [value for value in line.values if value is not None]
        x, y = np.array(known) + offset, np.array([value[0] for value in held])
        # An interval that is not known has no length.
        ends = [[value[0] if end is None else end for end in value[1:]] for value in held]
        if len(x):
            lengths = np.abs(np.array(ends).T - y)
            axes.errorbar(x, y, yerr=lengths, fmt="none", ecolor=mark.colour, elinewidth=0.9, capsize=1.8, alpha=0.8)
        dashes = _DASHES[names.index(line.name) % len(_DASHES)]
        axes.plot(x, y, **{**mark.style(4.8), "linestyle": dashes, "color": mark.colour, "linewidth": 1.0})
    axes.set_title(plain(panel.title), loc="left", fontsize=8.5)
    axes.set_xticks(range(len(panel.conditions)), [plain(name) for name in panel.conditions], fontsize=7.5)
    axes.set_xlim(-0.5, len(panel.conditions) - 0.5)
    axes.tick_params(axis="y", labelsize=7.5)

"""Values along ordered conditions as lines with intervals, and scatter plots; the marks of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.figures.style import INK, new_grid, plain, plot_title, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Eight shapes, solid and then hollow. The colours are told apart by colour-blind readers, on light and on dark.
_SHAPES: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
_COLOURS: Final = ("#2b83c4", "#d55e00", "#009e73", "#b8860b", "#cc79a7", "#7a6fd0", "#8d6a4f")
_LARGER: Final = {"*": 1.35, "P": 1.1, "X": 1.1, "D": 0.85}


@dataclass(frozen=True)
class Mark:
    """How the points of one series look.

    Attributes:
        shape: matplotlib's name of the marker.
        colour: hexadecimal.
        solid: filled, or an outline only.
    """

    shape: str
    colour: str
    solid: bool

    def style(self, size: float = 5.5) -> dict[str, Any]:
        """Arguments for `Axes.plot`; size in points."""
        return {
            "linestyle": "none",
            "marker": self.shape,
            "markersize": size * _LARGER.get(self.shape, 1.0),
            "markerfacecolor": self.colour if self.solid else "none",
            "markeredgecolor": self.colour,
            "markeredgewidth": 1.1,
        }


def marks(names: Sequence[str]) -> dict[str, Mark]:
    """A mark for each name, in order; up to sixteen differ in shape or filling, 112 with their colours.

    With up to four names every second one is hollow, so that few series differ in both.
    """
    few = len(names) <= 4
    return {
        name: Mark(
            _SHAPES[number % len(_SHAPES)],
            _COLOURS[number % len(_COLOURS)],
            number % 2 == 0 if few else number % 16 < len(_SHAPES),
        )
        for number, name in enumerate(names)
    }


def legend_below(
    place: Any, entries: Sequence[tuple[str, Mark]], *, share: float = 1.0, distance: float = 0.12
) -> None:
    """A legend below a whole figure, or below one of its plots."""
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=plain(name), **mark.style()) for name, mark in entries]
    longest = max((len(name) for name, _ in entries), default=1)
    below: dict[str, Any] = {"loc": "outside lower center"}
    if isinstance(place, Axes):
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -distance)}
    place.legend(
        handles=handles,
        ncols=max(1, min(len(entries), 6, int(72 * share) // (longest + 5))),
        frameon=False,
        fontsize=8,
        handletextpad=0.2,
        columnspacing=1.2,
        **below,
    )


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
            _draw(axes, panel, names, looks, plots.shape[1])
        for axes in plots[:, 0]:
            axes.set_ylabel(plain(y_label), fontsize=8.5)
        # The lowest plot of each column says what stands below it.
        for place, axes in enumerate(plots.ravel()[: len(panels)]):
            if place + plots.shape[1] >= len(panels):
                axes.set_xlabel(plain(x_label), fontsize=8.5)
        legend_below(figure, list(looks.items()))
    return figure


def _draw(axes: Any, panel: LinePanel, names: Sequence[str], looks: dict[str, Mark], columns: int) -> None:
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
    plot_title(axes, panel.title, columns)
    axes.set_xticks(range(len(panel.conditions)), [plain(name) for name in panel.conditions], fontsize=7.5)
    axes.set_xlim(-0.5, len(panel.conditions) - 0.5)
    axes.tick_params(axis="y", labelsize=7.5)


#: Of the words beside points, in points of typography.
_LABEL_SIZE: Final = 6.5
_LETTER_WIDTH: Final = 3.7
#: Where words can stand: how far from the point, and which share of them lies to the left of and below that place.
_SIDES: Final = {
    (5.0, 0.0): (0.0, 0.5), (-5.0, 0.0): (1.0, 0.5), (0.0, 5.0): (0.5, 0.0), (0.0, -5.0): (0.5, 1.0),
    (4.0, 4.0): (0.0, 0.0), (-4.0, 4.0): (1.0, 0.0), (4.0, -4.0): (0.0, 1.0), (-4.0, -4.0): (1.0, 1.0),
}  # fmt: skip
_HORIZONTAL: Final = {0.0: "left", 0.5: "center", 1.0: "right"}
_VERTICAL: Final = {0.0: "bottom", 0.5: "center", 1.0: "top"}


@dataclass(frozen=True, eq=False)
class Series:
    """Points that share a mark: their name and coordinates, shape (n,) each; `labels` are words for each point."""

    name: str
    x: ArrayLike
    y: ArrayLike
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panel:
    """One plot: its title (lines are kept), the labels of its axes, its series; `ticks` False for axes without unit."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    ticks: bool = True


def scatter_panels(panels: Sequence[Panel], *, columns: int = 2, height: float = 3.0) -> Figure:
    """Scatter plots beside and below each other; a series has the same mark in all of them.

    Plots that share a series have one legend; plots that share none have each their own.
    """
    everything = [series.name for panel in panels for series in panel.series]
    names = list(dict.fromkeys(everything))
    apart = len(panels) > 1 and len(everything) == len(names)
    looks = marks(names)
    with settings():
        legend = 0.2 * -(-len(names) // (3 if apart else 5)) + 0.1
        figure, plots = new_grid(len(panels), columns, lambda rows: height * rows + legend)
        for axes, panel in zip(plots.ravel(), panels, strict=False):
            own = marks([series.name for series in panel.series]) if apart else looks
            _draw_points(axes, panel, own, plots.shape[1])
            if apart:
                # The words of ticks need room of their own.
                distance = 0.22 if panel.ticks else 0.12
                legend_below(axes, list(own.items()), share=1 / plots.shape[1], distance=distance)
        if not apart:
            legend_below(figure, list(looks.items()))
    return figure


def _draw_points(axes: Any, panel: Panel, looks: dict[str, Mark], columns: int) -> None:
    for series in panel.series:
        x, y = (np.asarray(part, dtype=np.float64) for part in (series.x, series.y))
        axes.plot(x, y, alpha=0.9, **looks[series.name].style())
    plot_title(axes, panel.title, columns)
    axes.set_xlabel(plain(panel.x_label))
    axes.set_ylabel(plain(panel.y_label))
    axes.margins(0.08)
    if any(series.labels for series in panel.series):
        axes.margins(0.14)
        _label(axes, panel)
    if not panel.ticks:
        axes.set_xticks([])
        axes.set_yticks([])
        for side in ("top", "right"):
            axes.spines[side].set_visible(True)


def _label(axes: Any, panel: Panel) -> None:
    """Words beside the points, each where it covers the least of the other words and points."""
    x = np.concatenate([np.asarray(series.x, dtype=np.float64) for series in panel.series])
    y = np.concatenate([np.asarray(series.y, dtype=np.float64) for series in panel.series])
    words = [word for series in panel.series for word in series.labels]
    if not words:
        return
    figure = axes.get_figure()
    figure.draw_without_rendering()
    points = axes.transData.transform(np.stack([x, y], axis=1)) * 72 / figure.dpi
    boxes: list[tuple[float, float, float, float]] = [(px - 3, py - 3, px + 3, py + 3) for px, py in points]
    for number, (word, (px, py)) in enumerate(zip(words, points.tolist(), strict=True)):
        width, height = _LETTER_WIDTH * len(word), _LABEL_SIZE
        tried = []
        for (dx, dy), (left, below) in _SIDES.items():
            corner = px + dx - left * width, py + dy - below * height
            box = (corner[0], corner[1], corner[0] + width, corner[1] + height)
            tried.append((sum(_covered(box, other) for n, other in enumerate(boxes) if n != number), (dx, dy), box))
        _, (dx, dy), box = min(tried, key=lambda one: one[0])
        boxes.append(box)
        left, below = _SIDES[dx, dy]
        axes.annotate(
            plain(word), (x[number], y[number]), xytext=(dx, dy), textcoords="offset points", fontsize=_LABEL_SIZE,
            ha=_HORIZONTAL[left], va=_VERTICAL[below],
        )  # fmt: skip


def _covered(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)

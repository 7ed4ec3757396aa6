"""Marks that tell series apart: by shape first, by colour as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from truerank.reports.figures.style import plain

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

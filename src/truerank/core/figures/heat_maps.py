"""Heat maps: how often each system stood at each position, and how alike systems are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.core.figures.style import ACCENT, INK, new_figure, new_grid, plain, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A cell is seen even where it counts once.
_FAINTEST: Final = 0.08
_ROW: Final = 0.125
_LETTERS: Final = 5.5
#: Words in the ink of the page stay readable on a cell that is no darker.
_DARKEST: Final = 0.35


@dataclass(frozen=True, eq=False)
class HeatMap:
    """One heat map: its title, the systems from the top, and how often each stood at each position.

    `counts` has the shape (systems, positions); the first position is 1. `places` are the positions that are taken for
    true, shape (systems,); equal ones are ties.
    """

    title: str
    systems: tuple[str, ...]
    counts: NDArray[np.int64]
    places: NDArray[np.int64]


def heat_maps(maps: Sequence[HeatMap], *, x_label: str = "position") -> Figure:
    """Heat maps beside and below each other; the darker a cell, the more often a system stood there.

    Darkness is the system's share of all its positions, so that the figure needs no colour; a line goes through the
    positions that are taken for true.
    """
    longest = max((len(one.systems) for one in maps), default=1)
    with settings():
        figure, plots = new_grid(len(maps), 2, lambda rows: rows * (0.75 + max(8, longest) * _ROW))
        for axes, one in zip(plots.ravel(), maps, strict=False):
            _draw(axes, one, x_label)
    return figure


def similarity_map(names: Sequence[str], values: NDArray[np.float64]) -> Figure:
    """A heat map of similarities with its figures; the darker a cell, the larger its value.

    Args:
        values: shape (systems, systems); NaN where unknown.
    """
    return value_map(names, names, np.where(np.eye(len(names), dtype=bool), np.nan, values))


def value_map(
    rows: Sequence[str], columns: Sequence[str], values: NDArray[np.float64], *, by_column: bool = False
) -> Figure:
    """A heat map of values with their figures; the darker a cell, the larger its value; unknown ones stay empty.

    Args:
        values: shape (rows, columns); NaN where unknown.
        by_column: darkness is among the values of a column.
    """
    from matplotlib.colors import to_rgba

    shown = np.where(np.isfinite(values), values, np.nan)
    filled = np.isfinite(shown).any(axis=0) if by_column else np.isfinite(shown).any()
    axis = 0 if by_column else None
    low = np.where(filled, np.nanmin(np.where(filled, shown, 0.0), axis=axis), 0.0)
    high = np.where(filled, np.nanmax(np.where(filled, shown, 1.0), axis=axis), 1.0)
    share = np.where(high > low, (shown - low) / np.where(high > low, high - low, 1.0), shown > 0)
    with settings():
        figure = new_figure(max(2.0, 0.36 * len(rows) + 0.9))
        axes = figure.add_subplot()
        for row, column in zip(*np.nonzero(np.isfinite(shown)), strict=True):
            ink = (*to_rgba(INK)[:3], _FAINTEST + (_DARKEST - _FAINTEST) * float(share[row, column]))
            from matplotlib.patches import Rectangle

            axes.add_patch(Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, facecolor=ink, edgecolor="none"))
            axes.text(column, row, f"{shown[row, column]:.2f}", ha="center", va="center", fontsize=7.5)
        axes.set_xticks(range(len(columns)), [plain(name) for name in columns], fontsize=7.5, rotation=30, ha="right")
        axes.set_yticks(range(len(rows)), [plain(name) for name in rows], fontsize=7.5)
        axes.set_xlim(-0.5, len(columns) - 0.5)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.tick_params(length=0)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
    return figure


def _draw(axes: Any, one: HeatMap, x_label: str) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    systems, positions = one.counts.shape
    row, column = np.nonzero(one.counts)
    share = one.counts[row, column] / one.counts.sum(axis=1)[row]
    corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
    places = np.stack([column + 1, row + 1], axis=1).astype(np.float64)
    ink = np.tile(to_rgba(INK), (len(row), 1))
    ink[:, 3] = _FAINTEST + (1 - _FAINTEST) * share
    axes.add_collection(PolyCollection(list(places[:, None, :] + corners), facecolors=ink, edgecolors="none"))
    axes.plot(one.places, np.arange(1, systems + 1), color=ACCENT, linewidth=0.6, zorder=0)
    axes.set_xlim(0.5, positions + 0.5)
    axes.set_ylim(systems + 0.5, 0.5)
    axes.set_yticks(np.arange(1, systems + 1), [plain(name) for name in one.systems], fontsize=_LETTERS)
    axes.tick_params(axis="x", labelsize=7)
    axes.set_title(plain(one.title), loc="left", fontsize=8.5)
    axes.set_xlabel(plain(x_label))

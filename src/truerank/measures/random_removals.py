"""Random removals of as many items as were removed, such as topics or documents, within strata of items that are
alike."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_CELLS_AT_ONCE: Final = 1 << 22


class _Stratum(NamedTuple):
    """Items that are alike: their places, and how many of them are removed."""

    places: NDArray[np.int64]
    removed: int

    @property
    def choices(self) -> int:
        """In how many ways as many can be removed."""
        return math.comb(len(self.places), self.removed)


def removal_choices(removed: NDArray[np.bool_], strata: NDArray[np.int64] | None, most: int) -> int:
    """In how many ways as many items of each stratum can be removed.

    Args:
        removed: which items were removed, shape (items,).
        strata: a number for each item, shape (items,); None where all are alike.
        most: where there are more ways than these, any larger number may come back.
    """
    found = 1
    for one in _members(removed, strata):
        if 0 < one.removed < len(one.places) and len(one.places) > most:
            return most + 1
        found *= one.choices
        if found > most:
            break
    return found


def removal_draws(
    removed: NDArray[np.bool_], strata: NDArray[np.int64] | None, draws: int, seed: int
) -> Iterator[Floats]:
    """Removals of as many items of each stratum: random ones, or each of the others where there are no more than these.

    Args:
        removed: which items were removed, shape (items,).
        strata: a number for each item, shape (items,); None where all are alike.
        draws: random removals.
        seed: of the draws.

    Yields:
        Rows of zeros and ones, shape (some draws, items).
    """
    members = [one for one in _members(removed, strata) if one.removed]
    if removal_choices(removed, strata, draws + 1) <= draws + 1:
        yield _others(removed, members)
        return
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // len(removed))
    for start in range(0, draws, step):
        chosen = np.zeros((min(step, draws - start), len(removed)))
        for own, count in members:
            keys = rng.random((len(chosen), len(own)))
            picked = own[np.argpartition(keys, count - 1, axis=1)[:, :count]]
            np.put_along_axis(chosen, picked, 1.0, axis=1)
        yield chosen


def _members(removed: NDArray[np.bool_], strata: NDArray[np.int64] | None) -> list[_Stratum]:
    if strata is None:
        return [_Stratum(np.arange(len(removed)), int(removed.sum()))]
    order = np.argsort(strata, kind="stable")
    places = np.split(order, np.flatnonzero(np.diff(strata[order])) + 1)
    return [_Stratum(own, int(removed[own].sum())) for own in places]


def _others(removed: NDArray[np.bool_], members: Sequence[_Stratum]) -> Floats:
    """Every choice but the one that was made."""
    ways = itertools.product(*(itertools.combinations(one.places, one.removed) for one in members))
    chosen = np.zeros((math.prod(one.choices for one in members), len(removed)))
    for row, parts in zip(chosen, ways, strict=True):
        row[list(itertools.chain(*parts))] = 1.0
    others: Floats = chosen[(chosen != removed).any(axis=1)]
    return others

"""Random removals of as many items as were removed, such as topics or documents, within strata of items that are
alike."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CELLS_AT_ONCE: Final = 1 << 22


class _Free(NamedTuple):
    """The strata of which some items go and some stay: in the others there is no choice.

    `items` are theirs, one stratum after the other, shape (items,); `size` and `removed` say of each stratum how many
    it has and how many go, shape (strata,).
    """

    items: Ints
    size: Ints
    removed: Ints

    @classmethod
    def of(cls, removed: NDArray[np.bool_], strata: Ints | None) -> _Free:
        """From which items are removed, and the number of each one's stratum."""
        _, which, size = np.unique(
            np.zeros(len(removed)) if strata is None else strata, return_inverse=True, return_counts=True
        )
        gone = np.bincount(which, removed, len(size)).astype(np.int64)
        free = (gone > 0) & (gone < size)
        order = np.argsort(which, kind="stable")
        return cls(order[free[which[order]]], size[free], gone[free])


def removal_choices(removed: NDArray[np.bool_], strata: Ints | None, most: int) -> int:
    """In how many ways as many items of each stratum can be removed.

    Args:
        removed: which items were removed, shape (items,).
        strata: a number for each item, shape (items,); None where all are alike.
    """
    return _choices(_Free.of(removed, strata), most)


def removal_draws(removed: NDArray[np.bool_], strata: Ints | None, draws: int, seed: int) -> Iterator[Floats]:
    """Removals of as many items of each stratum: random ones, or each of the others where there are no more than these.

    Args:
        removed: which items were removed, shape (items,).
        strata: a number for each item, shape (items,); None where all are alike.

    Yields:
        Rows of zeros and ones, shape (some draws, items).
    """
    free = _Free.of(removed, strata)
    certain = removed.astype(np.float64)
    certain[free.items] = 0.0
    if _choices(free, draws + 1) <= draws + 1:
        yield _others(removed, certain, free)
        return
    stratum = np.repeat(np.arange(len(free.size)), free.size)
    first = np.arange(len(stratum)) - np.repeat(np.cumsum(free.size) - free.size, free.size)
    goes = first < np.repeat(free.removed, free.size)
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // len(removed))
    for start in range(0, draws, step):
        chosen = np.tile(certain, (min(step, draws - start), 1))
        # Random numbers order the items of each stratum, one stratum after the other.
        order = np.argsort(rng.random((len(chosen), len(stratum))) + stratum, axis=1)
        np.put_along_axis(chosen, free.items[order[:, goes]], 1.0, axis=1)
        yield chosen


def _choices(free: _Free, most: int) -> int:
    found = 1
    for size, count in zip(free.size.tolist(), free.removed.tolist(), strict=True):
        if size > most:
            return most + 1
        found *= math.comb(size, count)
        if found > most:
            break
    return found


def _others(removed: NDArray[np.bool_], certain: Floats, free: _Free) -> Floats:
    """Every choice but the one that was made."""
    members = np.split(free.items, np.cumsum(free.size)[:-1])
    ways = list(
        itertools.product(
            *(itertools.combinations(own, count) for own, count in zip(members, free.removed.tolist(), strict=False))
        )
    )
    chosen = np.tile(certain, (len(ways), 1))
    for row, parts in zip(chosen, ways, strict=True):
        row[list(itertools.chain(*parts))] = 1.0
    others: Floats = chosen[(chosen != removed).any(axis=1)]
    return others

"""What judgments tell of the pools that they come from: a rank beyond which nothing of a run was judged relevant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from truerank.claims.judged_results import DEEPEST, Flags, Ints, JudgedResults

#: Depths of pools that are tried, and how many times the measure's depth is looked at in the run that brought nothing.
_DEPTHS: Final = (5, 7, 10, 14, 20, 28, 40, 57, 80)
_TIMES: Final = (1, 2, 5, DEEPEST)
#: What the rate of relevant ones keeps at least, where the rank doubles.
_DECAY: Final = 1 / 2
#: Chance of a trace where there is none, for all that is tried together.
_LEVEL: Final = 0.001


class PoolTrace(NamedTuple):
    """Nothing that one run alone has was judged relevant.

    Attributes:
        lacking: the run.
        first: of its results, so many.
        pooled: the runs whose first results hold all relevant ones of these.
        depth: how many results.
        near: relevant ones between half of that depth and the depth.
        beyond: results of the run that none of the pooled ones has so far up; none is judged relevant.
        p: the chance of that, had the rate of relevant ones gone down by no more than half where the rank
            doubles; corrected for all depths and runs that were tried.
        rows: which rows these results are.
    """

    lacking: str
    first: int
    pooled: tuple[str, ...]
    depth: int
    near: int
    beyond: int
    p: float
    rows: Flags


def pool_trace(results: JudgedResults) -> PoolTrace | None:
    """The clearest trace of judgments that come from the pools of other runs than one of the claim's."""
    found = [one for lacking in results.pair for one in _traces(results, lacking)]
    best = min(found, key=lambda one: (one.p, -one.first), default=None)
    return None if best is None or best.p >= _LEVEL else best


def _traces(results: JudgedResults, lacking: str) -> Iterator[PoolTrace]:
    """Traces that one run of the claim was not pooled; the pools are those of the other one, and of further runs."""
    own = results.ranks[lacking]
    other = next(run for run in results.pair if run != lacking)
    further = [run for run in results.ranks if run not in results.pair]
    tries = 2 * len(_DEPTHS) * len(_TIMES)
    for first in dict.fromkeys(min(DEEPEST, times * results.depth) for times in _TIMES):
        scope = own <= first
        for depth in _DEPTHS:
            pooled, ranks = [other], results.ranks[other]
            while True:
                lost = scope & results.relevant & (ranks > depth)
                if not lost.any():
                    ways = tries * math.comb(len(further), len(pooled) - 1)
                    yield _trace(results, (lacking, first, tuple(pooled), depth), scope, ranks, ways)
                    break
                left = [run for run in further if run not in pooled]
                gains = [int((lost & (results.ranks[run] <= depth)).sum()) for run in left]
                if not gains or not max(gains):
                    break
                pooled.append(left[int(np.argmax(gains))])
                ranks = np.minimum(ranks, results.ranks[pooled[-1]])


def _trace(
    results: JudgedResults, found: tuple[str, int, tuple[str, ...], int], scope: Flags, ranks: Ints, ways: int
) -> PoolTrace:
    depth = found[-1]
    reference = scope & (ranks > depth / 2) & (ranks <= depth)
    near = int((reference & results.relevant).sum())
    soon = int((scope & (ranks > depth) & (ranks <= min(2 * depth, DEEPEST))).sum())
    beyond = scope & (ranks > depth)
    late = int(beyond.sum()) - soon
    expected = _DECAY * soon + _DECAY**2 * late
    size = int(reference.sum())
    p = min(1.0, ways * (size / (size + expected)) ** near) if size else 1.0
    return PoolTrace(*found, near, soon + late, p, beyond)

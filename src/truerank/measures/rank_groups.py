"""Which ranks a table of scores supports: intervals of ranks, and the first group.

Rows are what scores are averaged over: tasks, or questions within tasks. Each row's scores of all systems take one
random sign together, around the means (a wild bootstrap with Rademacher signs), and every statistic is studentised anew
with the drawn scores: with a dozen tasks, intervals of percentiles would be too short.

Sources: Mogstad, Romano, Shaikh and Wilhelm (2024) for intervals of ranks from simultaneous comparisons of pairs, by
steps; Hansen, Lunde and Nason (2011) for the first group, a model confidence set; Liu (1988) for the bootstrap.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats, Ints

_SEED: Final = 0
#: Differences of draws and pairs that are held at once.
_CELLS: Final = 1 << 17
#: Sums of the same numbers in another order differ in their last bits.
_ROUNDING: Final = 1e-12


class RankGroups(NamedTuple):
    """What a table of scores says about the order of its systems.

    Attributes:
        means: the mean score of each system, shape (systems,).
        low: the best rank that is not excluded, shape (systems,); the intervals of all systems hold together.
        high: the worst one.
        own_low: the best rank of each system that is not excluded by its own pairs: for a system that was named before
            the scores were seen.
        own_high: the worst one.
        better: whether the row's system is better than the column's by more than chance explains, all pairs together,
            shape (systems, systems).
        alone: the same, each pair tested by itself.
        neighbours: the same of neighbours in the order by the mean, these pairs together.
        first: the systems of the first group: no pair of them differs by more than chance explains.
        enough: whether so many rows could show any difference at this level.
    """

    means: Floats
    low: Ints
    high: Ints
    own_low: Ints
    own_high: Ints
    better: NDArray[np.bool_]
    alone: NDArray[np.bool_]
    neighbours: NDArray[np.bool_]
    first: NDArray[np.bool_]
    enough: bool


def rank_groups(
    scores: Floats,
    weights: Floats | None = None,
    groups: Ints | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = _SEED,
) -> RankGroups:
    """Intervals of ranks with simultaneous coverage, and the first group.

    Args:
        scores: shape (rows, systems); finite.
        weights: of the rows, shape (rows,), with the sum 1; by default equal ones.
        groups: the number of each row's group, such as the task of a question: the means of groups are fixed, and only
            what is within them is left to chance. By default one group.
        confidence: that all intervals hold together.
        resamples: random signs.
    """
    rows, systems = scores.shape
    weights = np.full(rows, 1 / rows) if weights is None else weights
    groups = np.zeros(rows, np.int64) if groups is None else groups
    means: Floats = weights @ scores
    apart = np.zeros((systems, systems), np.bool_)
    if 2.0 ** (1 - rows) > 1 - confidence or systems < 2:
        every = np.arange(systems)
        best, worst = np.ones_like(every), np.full_like(every, systems)
        return RankGroups(
            means, best, worst, best, worst, apart, apart, apart, np.ones(systems, np.bool_), False
        )  # fmt: skip
    drawn = _Drawn(scores, weights, groups, resamples, seed)
    values = drawn.observed(means)
    alone, own = drawn.by_system(values, confidence)
    better = _stepwise(drawn, values, confidence, ~np.eye(systems, dtype=np.bool_))
    order = np.argsort(-means, kind="stable")
    pairs = np.zeros_like(apart)
    pairs[order[:-1], order[1:]] = pairs[order[1:], order[:-1]] = True
    return RankGroups(
        means, 1 + better.sum(axis=0), systems - better.sum(axis=1), 1 + (own < 0).sum(axis=1),
        systems - (own > 0).sum(axis=1), better, alone, _stepwise(drawn, values, confidence, pairs),
        _first_group(drawn, values, confidence), True,
    )  # fmt: skip


class _Drawn:
    """Scores around the means of their groups, and their sums under random signs."""

    def __init__(self, scores: Floats, weights: Floats, groups: Ints, resamples: int, seed: int) -> None:
        sizes = np.bincount(groups)
        centre = np.stack([np.bincount(groups, column) for column in scores.T], axis=1) / sizes[:, None]
        # Rows of one group lose a degree of freedom together.
        self._free = len(scores) - len(sizes)
        scale = np.sqrt(sizes / np.maximum(1, sizes - 1))[groups]
        self._parts: Floats = (scores - centre[groups]) * (weights * scale)[:, None]
        signs = np.random.default_rng(seed).integers(0, 2, (resamples, len(scores)), dtype=np.int8) * 2 - 1
        self._signs: Floats = signs.astype(np.float64)
        self.sums: Floats = self._signs @ self._parts
        self._rows = len(scores)
        squares = self._parts.T @ self._parts
        own = np.diag(squares)
        #: The squared standard errors of differences, shape (systems, systems).
        self.variance: Floats = np.maximum(own[:, None] + own[None, :] - 2 * squares, 0.0)
        # Pairs whose differences are the same everywhere have none but rounding errors.
        self.variance[self.variance <= _ROUNDING * np.maximum(own[:, None], own[None, :])] = 0.0

    def observed(self, means: Floats) -> Floats:
        """The studentised differences, positive where the row's system is better, shape (systems, systems)."""
        differences = means[:, None] - means[None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = differences / np.sqrt(self.variance)
        return np.where(np.abs(differences) <= _ROUNDING, 0.0, values)

    def studentised(self, ratio: Floats) -> Floats:
        """The statistic of a draw from its squared sum over its variance: the standard error is of the drawn scores."""
        rest = np.maximum(self._rows - ratio, 1e-300)
        found: Floats = np.sqrt(ratio * (self._rows - 1) / rest)
        return found

    def largest(self, open_: NDArray[np.bool_]) -> Floats:
        """The largest statistic of some pairs in each draw, shape (resamples,)."""
        rows, columns = np.nonzero(np.triu(open_ | open_.T, 1) & (self.variance > 0))
        if not len(rows):
            return np.zeros(len(self.sums))
        inverse = 1 / self.variance[rows, columns]
        step = max(1, _CELLS // len(rows))
        parts = [self.sums[first : first + step] for first in range(0, len(self.sums), step)]
        ratios = [np.max(np.square(sums[:, rows] - sums[:, columns]) * inverse, axis=1) for sums in parts]
        return self.studentised(np.concatenate(ratios))

    def by_system(self, values: Floats, confidence: float) -> tuple[NDArray[np.bool_], Ints]:
        """Whether each system is better than each other one by this pair alone, and by all pairs of its row together.

        Returns:
            Shape (systems, systems): the first; and 1 where the row's system is better, -1 where it is worse.
        """
        alone = np.zeros(values.shape, np.bool_)
        own = np.zeros(values.shape, np.int64)
        for one in range(len(values)):
            open_ = self.variance[one] > 0
            ratio = np.square(self.sums[:, [one]] - self.sums[:, open_]) / self.variance[one, open_]
            drawn = self.studentised(ratio)
            observed = values[one, open_]
            alone[one, open_] = observed > np.quantile(drawn, confidence, axis=0)
            left, signs = np.ones(int(open_.sum()), np.bool_), np.zeros(int(open_.sum()), np.int64)
            while left.any():
                found = left & (np.abs(observed) > np.quantile(drawn[:, left].max(axis=1), confidence))
                if not found.any():
                    break
                signs[found], left = np.sign(observed[found]), left & ~found
            own[one, open_] = signs
            # Equal differences on all rows: nothing is left to chance.
            certain = ~open_ & (values[one] != 0)
            own[one, certain], alone[one, certain] = np.sign(values[one, certain]), values[one, certain] > 0
        return alone, own


def _first_group(drawn: _Drawn, values: Floats, confidence: float) -> NDArray[np.bool_]:
    """The systems that stay when the worst one is left out as long as some pair differs by more than chance explains.

    The statistic is that of the range, of all pairs that are left: differences of pairs are symmetric where those from
    the mean of all are skewed.
    """
    left = np.ones(len(values), np.bool_)
    # The bar of more pairs is no lower, so that it is made anew only where it would end the search.
    bar, fresh = np.inf, False
    while left.sum() > 1:
        behind = np.where(left[:, None] & left[None, :], values, -np.inf).max(axis=0)
        worst = int(np.argmax(behind))
        if behind[worst] > bar:
            left[worst], fresh = False, False
            continue
        if fresh:
            break
        bar, fresh = float(np.quantile(drawn.largest(left[:, None] & left[None, :]), confidence)), True
    return left


def _stepwise(drawn: _Drawn, values: Floats, confidence: float, pairs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pairs that differ, all of them tested together; what is found makes the next step's bar lower."""
    better = np.zeros(values.shape, np.bool_)
    open_ = pairs.copy()
    while open_.any():
        bar = np.quantile(drawn.largest(open_), confidence)
        found = (values > bar) & open_
        if not found.any():
            break
        better |= found
        open_ &= ~(found | found.T)
    return better


def order_by(scores: Floats, how: str) -> Floats:
    """The value that systems are ordered by, higher first, shape (systems,).

    Args:
        scores: shape (tasks, systems).
        how: "mean", "median", "mean rank" (Borda's count is the same order), or "standardised mean".
    """
    if how == "median":
        return np.asarray(np.median(scores, axis=0))
    if how == "mean rank":
        below = (scores[:, :, None] > scores[:, None, :]).sum(axis=2) - (scores[:, :, None] < scores[:, None, :]).sum(
            axis=2
        )
        return np.asarray(below.mean(axis=0) / 2)
    if how == "standardised mean":
        spread = scores.std(axis=1, keepdims=True)
        return np.asarray(
            ((scores - scores.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)).mean(axis=0)
        )
    return np.asarray(scores.mean(axis=0))

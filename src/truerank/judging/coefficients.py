"""Coefficients of agreement over coded ratings, for all resamples of a bootstrap at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats

Level = Literal["nominal", "ordinal", "interval"]
#: How much two answers of Cohen's kappa disagree: at all, by their distance, or by its square.
Weighting = Literal["plain", "linear", "quadratic"]

#: What the coefficients are called in tables.
TITLES: Final = {
    "percentage": "agreement",
    "cohen": "Cohen's kappa",
    "fleiss": "Fleiss' kappa",
    "krippendorff": "Krippendorff's alpha",
}
_CELLS_AT_ONCE: Final = 4_000_000
_NOTHING: Final = 1e-12


class Score(NamedTuple):
    """One coefficient; the ends of its interval are None without a bootstrap, the value where `reason` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


class Coefficients:
    """The agreement of coded ratings; only units with two ratings or more count.

    Args:
        codes: shape (units, annotators), the answers as numbers from 0, -1 where nothing was said.
        categories: how many answers there are.
        level: how far apart two answers are for Krippendorff's alpha: "nominal" (they differ or not), "ordinal" (by
            their order and how often each was given) or "interval" (by the square of their distance).
        values: the answers as numbers, for distances; by default 0, 1, 2 and so on.

    Attributes:
        rows: positions of the units that count, in the codes given.
        counts: how many annotators gave each answer, shape (units that count, categories).
    """

    def __init__(
        self, codes: NDArray[np.int64], categories: int, level: Level = "nominal", values: Sequence[float] | None = None
    ) -> None:
        places = np.arange(categories, dtype=np.float64) if values is None else np.asarray(values, dtype=np.float64)
        self._apart = np.abs(places[:, None] - places[None, :])
        self.rows = np.flatnonzero((codes >= 0).sum(axis=1) >= 2)
        self.codes = codes[self.rows]
        self.level = level
        shape = (len(self.rows), categories)
        self.counts = np.zeros(shape)
        for column in self.codes.T:
            said = np.flatnonzero(column >= 0)
            self.counts[said, column[said]] += 1
        self._each = self.counts.sum(axis=1)
        alike = (self.counts * (self.counts - 1)).sum(axis=1)
        with np.errstate(invalid="ignore"):
            self._alike = alike / (self._each - 1)
            self._agreed = self._alike / self._each

    @property
    def units(self) -> int:
        return len(self.rows)

    def percentage(self, weights: Floats) -> Floats:
        """The mean share of pairs of ratings of a unit that agree.

        Args:
            weights: how often each unit that counts is drawn, shape (resamples, units).

        Returns:
            Shape (resamples,); not a number where no unit was drawn.
        """
        return _share(weights @ self._agreed, weights.sum(axis=1))

    def cohen(self, weights: Floats, weighting: Weighting = "plain") -> Floats:
        """Cohen's kappa of two annotators; returned shape as for `percentage`.

        Not a number where both gave one and the same answer throughout, so that chance alone explains everything, and
        where there are not two annotators.

        Source: Cohen, A coefficient of agreement for nominal scales, 1960; Weighted kappa, 1968.
        """
        if self.codes.shape[1] != 2:
            return np.full(len(weights), np.nan)
        first, second = (np.eye(self.counts.shape[1])[column] for column in self.codes.T)
        drawn = weights.sum(axis=1)
        margins = [_share(weights @ side, drawn[:, None]) for side in (first, second)]
        if weighting == "plain":
            return _above_chance(self.percentage(weights), (margins[0] * margins[1]).sum(axis=1))
        apart = self._apart ** (1 if weighting == "linear" else 2)
        apart = apart / max(float(apart.max(initial=0)), _NOTHING)
        seen = _share(weights @ apart[self.codes[:, 0], self.codes[:, 1]], drawn)
        return _above_chance(1 - seen, 1 - ((margins[0] @ apart) * margins[1]).sum(axis=1))

    def fleiss(self, weights: Floats) -> Floats:
        """Fleiss' kappa; arguments and returned shape as for `percentage`.

        Where units have different numbers of ratings, each unit counts the same, as in Gwet's form of it; with equal
        numbers it is Fleiss' own.

        Source: Fleiss, Measuring nominal scale agreement among many raters, 1971; Gwet, Handbook of inter-rater
        reliability, 2014, chapter 2.
        """
        answers = _share(weights @ (self.counts / self._each[:, None]), weights.sum(axis=1)[:, None])
        return _above_chance(self.percentage(weights), (answers**2).sum(axis=1))

    def krippendorff(self, weights: Floats) -> Floats:
        """Krippendorff's alpha of the level; arguments and returned shape as for `percentage`.

        Source: Krippendorff, Computing Krippendorff's alpha-reliability, 2011.
        """
        totals = weights @ self.counts
        everything = totals.sum(axis=1)
        if self.level == "nominal":
            observed = 1 - _share(weights @ self._alike, everything)
            chance = _share((totals * (totals - 1)).sum(axis=1), everything * (everything - 1))
            return _above_chance(1 - observed, chance)
        return self._by_distance(weights, totals, everything)

    def _by_distance(self, weights: Floats, totals: Floats, everything: Floats) -> Floats:
        size = self.counts.shape[1]
        pairs = self.counts[:, :, None] * self.counts[:, None, :]
        pairs[:, np.arange(size), np.arange(size)] -= self.counts
        pairs /= (self._each - 1)[:, None, None]
        met = (weights @ pairs.reshape(len(pairs), size * size)).reshape(-1, size, size)
        if self.level == "interval":
            distance = np.broadcast_to(self._apart**2, met.shape)
        else:
            # The sum of the totals from one answer to another, less half of both ends.
            middles = np.cumsum(totals, axis=1) - totals / 2
            distance = (middles[:, :, None] - middles[:, None, :]) ** 2
        # An answer is at no distance from itself, so that the diagonal needs no correction.
        expected = totals[:, :, None] * totals[:, None, :]
        wrong = (distance * expected).sum(axis=(1, 2))
        return 1 - _share((distance * met).sum(axis=(1, 2)) * (everything - 1), wrong)


def drawn_weights(groups: NDArray[np.int64] | None, units: int, draws: int, seed: int) -> Iterator[Floats]:
    """Bootstrap resamples as weights, in blocks of the shape (some of the draws, units)."""
    generator = np.random.default_rng(seed)
    drawn = units if groups is None else int(groups.max(initial=-1)) + 1
    if not drawn:
        return
    at_once = max(1, _CELLS_AT_ONCE // max(units, drawn))
    for start in range(0, draws, at_once):
        size = min(at_once, draws - start)
        # Counting draws is several times as fast as drawing counts.
        places = generator.integers(drawn, size=(size, drawn)) + np.arange(size)[:, None] * drawn
        picked = np.bincount(places.ravel(), minlength=size * drawn).reshape(size, drawn).astype(np.float64)
        yield picked if groups is None else picked[:, groups]


def interval(value: float, drawn: Floats, confidence: float, reason: str) -> Score:
    """A value with its percentile interval; resamples (none without a bootstrap) where it is undefined are left out."""
    if np.isnan(value):
        return Score(None, reason=reason)
    defined = drawn[~np.isnan(drawn)]
    if not len(defined):
        return Score(float(value))
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Score(float(value), float(low), float(high))


def _share(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Floats = np.where(whole > 0, part / whole, np.nan)
    return share


def _above_chance(observed: Floats, chance: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(1 - chance > _NOTHING, (observed - chance) / (1 - chance), np.nan)

"""Scores by depth as arrays: means, differences and trends over sets of queries that lie in each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from truerank.measures import detectable_difference

__all__ = ["Contrast", "nested_contrast", "slope_weights"]

Floats = NDArray[np.float64]


class Contrast(NamedTuple):
    """A weighted sum of the means at several depths, with its interval and the p of its being zero.

    The interval and p are None where there are too few queries, or no spread, to tell.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    #: The smallest true value that the test finds with a power of 0.8 at the level of the interval.
    detectable: float | None = None

    @property
    def known(self) -> bool:
        """Whether it has an interval that does not hold zero."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def nested_contrast(scores: Floats, weights: Sequence[float] | Floats, confidence: float = 0.95) -> Contrast:
    """A weighted sum of means over sets of queries that overlap, by linearisation.

    Queries are the sampling units. Each adds to the sum what it adds to the means of the sets that it is in; the
    variance is that of these additions, so that what two sets have in common cancels out.

    Args:
        scores: shape (depths, queries), NaN where a depth lacks the query.
        weights: of the means, shape (depths,).
        confidence: of the interval.

    Returns:
        The sum; NaN if a depth has no query.

    Source: Woodruff, A simple method for approximating the variance of a complicated estimate (JASA 1971).
    """
    there = ~np.isnan(scores)
    sizes = there.sum(axis=1)
    factors = np.asarray(weights, np.float64)
    used = factors != 0
    if not len(sizes) or (sizes[used] == 0).any():
        return Contrast(math.nan)
    means = np.where(there, scores, 0.0).sum(axis=1) / np.maximum(1, sizes)
    value = float(factors[used] @ means[used])
    smallest = int(sizes[used].min())
    if smallest < 2:
        return Contrast(value)
    added = np.where(there, scores - means[:, None], 0.0) * (factors / np.maximum(1, sizes))[:, None]
    queries = int(there[used].any(axis=0).sum())
    error = math.sqrt(float(np.square(added.sum(axis=0)).sum()) * queries / (queries - 1))
    if error <= 1e-12 * max(1.0, float(np.abs(means).max())):
        return Contrast(value, value, value, 1.0 if abs(value) < 1e-12 else None)
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, smallest - 1)) * error
    p = 2 * float(scipy.stats.t.sf(abs(value) / error, smallest - 1))
    # As for a paired test over the smallest set of queries, whose freedom the interval has, too.
    reach = detectable_difference(smallest, error * math.sqrt(smallest), alpha=1 - confidence)
    return Contrast(value, value - half, value + half, p, reach)


def slope_weights(places: Sequence[float]) -> Floats:
    """The weights that make the slope of a straight line through means out of them.

    Args:
        places: where the means stand, shape (depths,), not all the same.
    """
    centred = np.asarray(places, np.float64) - float(np.mean(places))
    total = float(np.square(centred).sum())
    return centred / total if total else centred

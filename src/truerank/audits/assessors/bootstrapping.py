"""Statistics of topics with bootstrap intervals: topics are drawn again, with the same draws for all statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from truerank.judging.coefficients import Floats, drawn_weights
from truerank.options import Resampling


class TopicEstimate(NamedTuple):
    """A statistic of any shape with its percentile interval and the standard deviation of its resamples.

    Not a number where the statistic is not defined.
    """

    value: Floats
    low: Floats
    high: Floats
    error: Floats


def bootstrap(
    statistic: Callable[[Floats], Floats], topics: int, resampling: Resampling, *, centred: bool = False
) -> TopicEstimate:
    """A statistic with its interval over topics.

    Args:
        statistic: takes how often each topic is drawn, shape (resamples, topics), and gives shape (resamples, …).

    Source: Efron, Tibshirani (1993), An Introduction to the Bootstrap, section 13.3.
    """
    value = statistic(np.ones((1, topics)))[0]
    drawn = np.concatenate(
        [statistic(weights) for weights in drawn_weights(None, topics, resampling.resamples, resampling.seed)]
    )
    tail = (1 - resampling.confidence) / 2
    drawn = np.where(np.isfinite(drawn), drawn, np.nan)
    if centred:
        known = np.isfinite(drawn).sum(axis=0)
        drawn = drawn + value - np.divide(np.nansum(drawn, axis=0), known, out=np.zeros_like(value), where=known > 0)
    undefined = np.isnan(drawn).all(axis=0) | ~np.isfinite(value)
    # A resample in which the statistic is not defined is left out; where all are, so is the interval.
    filled = np.where(undefined, 0.0, drawn)
    ends = np.nanquantile(filled, [tail, 1 - tail], axis=0)
    low, high = np.where(undefined, np.nan, ends)
    error = np.where(undefined, np.nan, np.nanstd(filled, axis=0, ddof=1) if len(drawn) > 1 else np.nan)
    return TopicEstimate(np.where(undefined, np.nan, value), low, high, error)


def two_sided(estimate: TopicEstimate, topics: int) -> Floats:
    """Two-sided p-values of an estimate being zero, by the t distribution over the bootstrap's standard error.

    Unlike a count of resamples beyond zero, they are not bounded below by the number of resamples, which a correction
    for hundreds of comparisons needs.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.abs(estimate.value / estimate.error)
    p = 2 * scipy.special.stdtr(max(1, topics - 1), -np.where(np.isfinite(size), size, 0.0))
    return np.where(np.isnan(estimate.value), np.nan, np.where(estimate.value == 0, 1.0, p))

"""What the lead of the best of many configurations is worth, where it was chosen on the topics that it is reported on.

Source: Westfall and Young (1993), Resampling-Based Multiple Testing, for the test; Varma and Simon (2006) for choosing
on one part of the topics and measuring on the other.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import scipy

from truerank.arrays import Floats
from truerank.errors import InputError

#: Random halves over which the cross-fitted lead is a mean.
_SPLITS: Final = 50
_CHUNK: Final = 256
#: Numbers of configurations for which the lead by chance is stated.
_SIZES: Final = (1, 2, 3, 5, 10, 20, 40, 80, 160, 320, 640)


class ChosenLead(NamedTuple):
    """The lead of one configuration of several over a baseline.

    Attributes:
        tried: configurations.
        place: of the chosen one by its mean, from 1.
        lead: its mean difference from the baseline.
        low: the lower end of its interval, which holds for the best of all that were tried.
        p: two-sided; the share of random signs by which the best of all leads by as much.
        cross_fitted: the lead of the configuration that is best on a random half of the topics, on the other half.
        by_chance: what the best of n random ones of these configurations leads by where none is better: n, the mean
            lead, and its 97.5% quantile (for a confidence of 95%).
    """

    tried: int
    place: int
    lead: float
    low: float
    high: float
    p: float
    cross_fitted: float
    by_chance: tuple[tuple[int, float, float], ...]


def chosen_lead(
    scores: Floats, baseline: Floats, chosen: int, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> ChosenLead:
    """The lead of a configuration that was chosen on these topics.

    The largest of the studentised differences of all configurations is compared with its distribution under random
    signs, shared by the configurations, of the differences around their means (max-t).

    Args:
        scores: shape (topics, configurations); finite.
        baseline: shape (topics,); finite.
        resamples: how often signs are drawn.
    """
    topics, tried = scores.shape
    if topics < 2:
        raise InputError(f"{topics} topics", "give two at least, so that a choice can be measured")
    differences = scores - baseline[:, None]
    means = differences.mean(axis=0)
    around = differences - means
    squares = np.sum(around**2, axis=0)
    varies = squares > 1e-18
    error = np.sqrt(squares / (topics - 1) / topics)
    rng = np.random.default_rng(seed)
    largest = np.zeros(resamples)
    sizes = sorted({*(size for size in _SIZES if size < tried), tried})
    order, best = rng.permutation(tried), np.zeros((resamples, len(sizes)))
    for first in range(0, resamples, _CHUNK) if varies.any() else ():
        size = min(_CHUNK, resamples - first)
        signs = rng.integers(0, 2, (size, topics), dtype=np.int8) * 2.0 - 1.0
        sums = signs @ around[:, varies]
        # The standard error is that of the drawn differences.
        ratio = sums / np.sqrt(np.maximum(topics * squares[varies] - sums**2, 1e-300)) * math.sqrt(topics - 1)
        largest[first : first + size] = ratio.max(axis=1)
        leads = np.zeros((size, tried))
        leads[:, varies] = sums / topics
        best[first : first + size] = np.maximum.accumulate(leads[:, order], axis=1)[:, np.array(sizes) - 1]
    # No smaller than the critical value of one configuration alone, which the draws of few topics can miss.
    alone = float(scipy.special.stdtrit(topics - 1, (1 + confidence) / 2))
    reach = max(alone, float(np.quantile(largest, (1 + confidence) / 2))) * float(error[chosen])
    own = float(means[chosen])
    if error[chosen] > 0:
        above = float(np.sum(largest >= abs(own) / error[chosen]) + 1) / (resamples + 1)
    else:
        above = 0.5 if own == 0 else 1 / (resamples + 1)
    place = 1 + int(np.sum(means > own))
    cross = _cross_fitted(scores, baseline, rng)
    high = np.quantile(best, (1 + confidence) / 2, axis=0)
    chance = tuple(zip(sizes, best.mean(axis=0).tolist(), high.tolist(), strict=True))
    return ChosenLead(tried, place, own, own - reach, own + reach, min(1.0, 2 * above), cross, chance)


def _cross_fitted(scores: Floats, baseline: Floats, rng: np.random.Generator) -> float:
    leads = []
    for _ in range(_SPLITS):
        order = rng.permutation(len(scores))
        halves = order[: len(order) // 2], order[len(order) // 2 :]
        for one, other in (halves, halves[::-1]):
            best = int(np.argmax(scores[one].mean(axis=0)))
            leads.append(float((scores[other, best] - baseline[other]).mean()))
    return float(np.mean(leads))

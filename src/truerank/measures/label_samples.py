"""Samples of labels with known probabilities: strata, allocation, and the variance of what is estimated from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: What the interval is for: these topics with all pairs judged by people, or the topics that these are a sample of.
Target = Literal["collection", "topics"]


class Labelled(NamedTuple):
    """The pairs that people judged.

    `rows` (their places among all pairs), `gains` (people's), `stratum` (numbers from 0) and `probability` (of having
    been drawn, equal within a stratum) have the shape (labels,). In a stratum each set of so many pairs had the same
    chance.
    """

    rows: Ints
    gains: Floats
    stratum: Ints
    probability: Floats


@dataclass(frozen=True)
class LabelEstimates:
    """Estimates of several scores from one sample.

    Attributes:
        means: shape (scores,).
        by_topic: the estimate of each topic, shape (topics, scores); few labels make it noisy.
        design: variance that comes from the labels that are missing, shape (scores,).
        design_freedom: degrees of freedom of that variance, shape (scores,).
        total: `design`, and the variance that comes from the topics being a sample, shape (scores,).
        coefficients: of the features, mean over the folds, shape (features,).
    """

    means: Floats
    by_topic: Floats
    design: Floats
    design_freedom: Floats
    total: Floats
    coefficients: Floats


def half_widths(estimates: LabelEstimates, confidence: float, target: Target, *, topics: int) -> Floats:
    """Half of the interval of each score, by Student's t."""
    # Imported here: SciPy's statistics take most of a second to load.
    from scipy.stats import t

    if target == "collection":
        return np.asarray(t.ppf((1 + confidence) / 2, estimates.design_freedom) * np.sqrt(estimates.design))
    return np.asarray(t.ppf((1 + confidence) / 2, topics - 1) * np.sqrt(estimates.total))


def allocate(sizes: Ints, spread: Floats, labels: int, *, least: Ints) -> Ints:
    """How many labels each stratum gets so that the variance is smallest: in proportion to its size and its spread.

    Args:
        sizes: pairs of each stratum, shape (strata,).
        spread: standard deviation of what is estimated within each stratum, shape (strata,).
        least: the fewest labels of each stratum, shape (strata,).

    Source: Neyman (1934); Cochran, Sampling Techniques (1977), section 5.5.
    """
    if labels < least.sum():
        raise InputError(
            f"{labels} labels for {len(sizes)} strata", f"plan at least {int(least.sum())}", where="sampling design"
        )
    labels = min(labels, int(sizes.sum()))
    share = sizes * np.maximum(spread, 1e-12)
    low, high = 0.0, float(labels) / max(float(share.min()), 1e-300)
    for _ in range(80):
        middle = (low + high) / 2
        if np.minimum(np.maximum(middle * share, least), sizes).sum() < labels:
            low = middle
        else:
            high = middle
    wanted = np.clip(high * share, least, sizes)
    parts = np.floor(wanted + 1e-9).astype(np.int64)
    # What rounding left over goes to the largest remainders that have room.
    for place in np.lexsort((np.arange(len(sizes)), -(wanted - parts))):
        if parts.sum() < labels and parts[place] < sizes[place]:
            parts[place] += 1
    return np.asarray(parts, np.int64)


class Strata(NamedTuple):
    """The strata of labels that are sorted by stratum.

    `number` (of each label, shape (labels,)), `starts`, `drawn`, `sizes` and `factor` (N² (1 − n/N) / n: what a
    stratum's variance counts) have the shape (strata,).
    """

    number: Ints
    starts: Ints
    drawn: Floats
    sizes: Floats
    factor: Floats

    @classmethod
    def of(cls, labelled: Labelled) -> Strata:
        """The strata of sorted labels."""
        changed = np.diff(labelled.stratum, prepend=-1) != 0
        starts, number = np.flatnonzero(changed), np.cumsum(changed) - 1
        drawn = np.bincount(number).astype(np.float64)
        sizes = drawn / labelled.probability[starts]
        missing = sizes - drawn
        missing[missing < 1e-6 * sizes] = 0.0
        if np.any((drawn < 2) & (missing > 0)):
            raise InputError(
                "a stratum has one label and more pairs", "label at least two pairs of each stratum", where="labels"
            )
        return cls(number, starts, drawn, sizes, sizes * missing / drawn)

    def variance(self, values: Floats) -> Floats:
        """The variance of the values in each stratum, shape (strata, columns); 0 where all pairs are labelled."""
        means = np.add.reduceat(values, self.starts) / self.drawn[:, None]
        squares = np.add.reduceat((values - means[self.number]) ** 2, self.starts)
        return squares / np.maximum(self.drawn - 1, 1)[:, None]


def sums_by(group: Ints, values: Floats, groups: int) -> Floats:
    """Sums of rows by group, shape (groups, columns).

    Args:
        group: of each row, from 0, shape (rows,).
        values: shape (rows, columns).
    """
    if np.any(np.diff(group) < 0):
        order = np.argsort(group, kind="stable")
        group, values = group[order], values[order]
    found = np.zeros((groups, values.shape[1]))
    if len(values):
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        found[group[starts]] = np.add.reduceat(values, starts)
    return found


def estimates_of(by_topic: Floats, errors: Floats, topic: Ints, strata: Strata, coefficients: Floats) -> LabelEstimates:
    """Means over topics with their variances.

    Args:
        by_topic: the estimate of each topic, shape (topics, scores).
        errors: what each label adds to the sum over the topics of the scores, before it is divided by its probability,
            shape (labels, scores).
        topic: of each label, shape (labels,); labels are sorted by stratum, then by topic.
    """
    within = strata.variance(errors)
    design = (strata.factor[:, None] * within).sum(axis=0) / len(by_topic) ** 2
    return LabelEstimates(
        means=by_topic.mean(axis=0),
        by_topic=by_topic,
        design=design,
        design_freedom=_freedom(strata, errors, within),
        total=_total(by_topic, design, _of_topics(strata, errors, topic)),
        coefficients=coefficients,
    )


def _freedom(strata: Strata, errors: Floats, within: Floats) -> Floats:
    """Degrees of freedom of the variance: twice its square over its own variance (Satterthwaite).

    The variance of a sample variance depends on the fourth moment: errors are mostly 0 and then large.
    """
    means = np.add.reduceat(errors, strata.starts) / strata.drawn[:, None]
    fourth = np.add.reduceat((errors - means[strata.number]) ** 4, strata.starts) / strata.drawn[:, None]
    drawn = strata.drawn[:, None]
    usual = 2 * within**2 / np.maximum(drawn - 1, 1)
    observed = (fourth - within**2 * (drawn - 3) / np.maximum(drawn - 1, 1)) / drawn
    uncertain = (strata.factor[:, None] ** 2 * np.maximum(usual, observed)).sum(axis=0)
    variance = (strata.factor[:, None] * within).sum(axis=0)
    ratio = np.divide(2 * variance**2, uncertain, out=np.full(len(variance), np.inf), where=uncertain > 0)
    return np.asarray(np.clip(ratio, 1.0, 1e6))


def _of_topics(strata: Strata, errors: Floats, topic: Ints) -> Floats:
    """The variance of each topic's estimate given the topics, summed over the topics, shape (scores,)."""
    cell = strata.number * (int(topic.max()) + 1) + topic
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    sums = np.add.reduceat(errors, starts)
    stratum = strata.number[starts]
    factor = strata.factor / np.maximum(strata.drawn - 1, 1)
    squares = np.add.reduceat(errors**2, strata.starts) * factor[:, None]
    return np.asarray(squares.sum(axis=0) - (sums**2 * (factor / strata.drawn)[stratum, None]).sum(axis=0))


def _total(by_topic: Floats, design: Floats, of_topics: Floats) -> Floats:
    """The variance over topics and labels.

    The variance between the topics' estimates holds both parts, as that of clusters does. A sample that is drawn over
    all topics makes the estimates of two topics depend on each other a little; the second term puts that right.
    """
    topics = len(by_topic)
    if topics < 2:
        return np.full(by_topic.shape[1], np.nan)
    clusters = by_topic.var(axis=0, ddof=1) / topics
    dependence = (topics * design - of_topics / topics) / (topics - 1)
    return np.asarray(np.maximum(clusters + dependence, design))

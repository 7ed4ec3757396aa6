"""Means over topics of sums over documents, estimated from a model's judgments and a sample of people's.

A score is θ = (1/Q) Σ_q Σ_i w_qi g(y_qi): w is the weight that the measure gives to the rank of a document, g the gain of
its grade. The model's gains f are known for all pairs, people's gains y for a sample with known probabilities π. The
estimate is the difference estimator of prediction-powered inference,

    θ_q = Σ_i w_i m(f_i) + Σ_{i in the sample} w_i (y_i − m(f_i)) / π_i ,   m(f) = a + λ f ,

which is unbiased for any m that does not depend on the sample itself. a and λ minimise its variance (power tuning); each
label is corrected with a and λ from the other folds (cross-fitting).

Source: Angelopoulos et al., Prediction-powered inference (Science 2023) and PPI++ (arXiv 2311.01453), section 6 for λ;
Zrnic and Candès, Cross-prediction-powered inference (PNAS 2024); Särndal, Swensson and Wretman, Model Assisted Survey
Sampling (1992), sections 6.3 to 6.6 and 4.3, for the same estimator and its variance in a finite population.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError

__all__ = ["Adjustment", "Estimates", "Labelled", "Pairs", "Target", "allocate", "basis", "estimate", "half_widths"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How the model's gains become a prediction of people's: not at all; as they are; as a line; as one value per grade.
Adjustment = Literal["none", "fixed", "tuned", "grades"]
#: What the interval is for: these topics with all pairs judged by people, or the topics that these are a sample of.
Target = Literal["collection", "topics"]

#: Relative size of the term that keeps the equations of the tuning solvable.
_RIDGE: Final = 1e-6


class Pairs(NamedTuple):
    """All pairs that the model judged.

    `topic` (numbers from 0, shape (pairs,)), `weights` (of each pair in each score, shape (pairs, scores)) and
    `features` (what a person's gain is predicted from, shape (pairs, features), see `basis`).
    """

    topic: Ints
    weights: Floats
    features: Floats


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
class Estimates:
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


def basis(predicted: Floats, adjustment: Adjustment) -> Floats:
    """What a person's gain is predicted from.

    Args:
        predicted: the model's gain of each pair, shape (pairs,).
        adjustment: "none" predicts one gain for all pairs: people's labels alone, with the number of results known.
            "fixed" takes the model's gains as they are, "tuned" a line, "grades" one gain for each grade of the model.

    Returns:
        Shape (pairs, features).
    """
    one = np.ones(len(predicted))
    if adjustment == "none":
        return one[:, None]
    if adjustment == "grades":
        return np.asarray(predicted[:, None] == np.unique(predicted), np.float64)
    return predicted[:, None] if adjustment == "fixed" else np.stack((one, predicted), axis=1)


def estimate(
    pairs: Pairs, labelled: Labelled, topics: int, *, fixed: Floats | None = None, folds: int = 5, seed: int = 0
) -> Estimates:
    """Estimates every score from the model's judgments and the labels.

    Args:
        pairs: all pairs.
        labelled: those with a label of a person.
        topics: how many there are.
        fixed: the coefficients of the features, shape (features,); by default those that minimise the variance, summed
            over the scores.
        folds: of the cross-fitting; 1 uses all labels at once.
        seed: of the folds.

    Returns:
        The estimates with their variances.

    Raises:
        InputError: a stratum with one label of several pairs: its variance cannot be estimated.
    """
    order = np.lexsort((pairs.topic[labelled.rows], labelled.stratum))
    labelled = Labelled(*(part[order] for part in labelled))
    strata = _Strata.of(labelled)
    weights, features = pairs.weights[labelled.rows], pairs.features[labelled.rows]
    fold = _folds(strata, folds, seed)
    if fixed is None:
        by_fold = np.stack(
            [_tuned(weights, features, labelled, strata, fold != k if folds > 1 else fold == k) for k in range(folds)]
        )
    else:
        by_fold = np.broadcast_to(fixed, (folds, len(fixed)))
    return _estimates(pairs, labelled, strata, fold, by_fold, topics)


def half_widths(
    estimates: Estimates, confidence: float, target: Target, *, topics: int
) -> Floats:
    """Half of the interval of each score, by Student's t.

    Args:
        estimates: from `estimate`.
        confidence: of the interval.
        target: "collection" leaves the variance between topics out.
        topics: how many there are.
    """
    # Imported here: SciPy's statistics take most of a second to load.
    from scipy.stats import t

    if target == "collection":
        return np.asarray(t.ppf((1 + confidence) / 2, estimates.design_freedom) * np.sqrt(estimates.design))
    return np.asarray(t.ppf((1 + confidence) / 2, topics - 1) * np.sqrt(estimates.total))


def allocate(sizes: Ints, spread: Floats, labels: int, *, fewest: int = 5) -> Ints:
    """How many labels each stratum gets so that the variance is smallest: in proportion to its size and its spread.

    Args:
        sizes: pairs of each stratum, shape (strata,).
        spread: standard deviation of what is estimated within each stratum, shape (strata,).
        labels: how many there are for all.
        fewest: labels of each stratum, as far as it has pairs.

    Returns:
        Whole numbers that sum to `labels`, or to what there is.

    Raises:
        InputError: fewer labels than the strata need.

    Source: Neyman (1934); Cochran, Sampling Techniques (1977), section 5.5.
    """
    least = np.minimum(sizes, fewest)
    if labels < least.sum():
        raise InputError(
            f"{labels} labels for {len(sizes)} strata", f"plan at least {int(least.sum())}", where="sampling design"
        )
    labels = min(labels, int(sizes.sum()))
    share = sizes * np.maximum(spread, 1e-12)
    low, high = 0.0, float(labels) / max(float(share.min()), 1e-300)
    for _ in range(200):
        middle = (low + high) / 2
        if np.clip(middle * share, least, sizes).sum() < labels:
            low = middle
        else:
            high = middle
    wanted = np.clip(high * share, least, sizes)
    parts = np.floor(wanted + 1e-9).astype(np.int64)
    # What rounding left over goes to the largest remainders that have room.
    for place in np.lexsort((np.arange(len(sizes)), -(wanted - parts))):
        if parts.sum() < labels and parts[place] < sizes[place]:
            parts[place] += 1
    return parts


class _Strata(NamedTuple):
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
    def of(cls, labelled: Labelled) -> _Strata:
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


def _folds(strata: _Strata, folds: int, seed: int) -> Ints:
    """A fold of each label; the folds of a stratum differ by at most one label."""
    if folds == 1:
        return np.zeros(len(strata.number), np.int64)
    shuffled = np.lexsort((np.random.default_rng(seed).random(len(strata.number)), strata.number))
    fold = np.empty(len(shuffled), np.int64)
    # One count through all strata: a stratum with few labels does not always lack the same fold.
    fold[shuffled] = np.arange(len(shuffled)) % folds
    return fold


def _tuned(weights: Floats, features: Floats, labelled: Labelled, strata: _Strata, used: NDArray[np.bool_]) -> Floats:
    """The coefficients that minimise the variance, summed over the scores, from some of the labels.

    The variance is a quadratic form of the covariances within the strata, so that they solve its normal equations.
    """
    number, kept = strata.number[used], weights[used]
    drawn = np.bincount(number, minlength=len(strata.drawn)).astype(np.float64)
    factor = np.where(drawn > 1, strata.factor / np.maximum(drawn - 1, 1), 0.0)
    columns = np.column_stack((features[used], labelled.gains[used]))
    together = np.einsum("ic,ic->i", kept, kept) * factor[number]
    products = columns.T @ (columns * together[:, None])
    for feature_1 in range(columns.shape[1]):
        sums_1 = _sums(kept * columns[:, feature_1, None], number, len(drawn))
        for feature_2 in range(feature_1 + 1):
            sums_2 = sums_1 if feature_1 == feature_2 else _sums(kept * columns[:, feature_2, None], number, len(drawn))
            between = float(np.sum(np.sum(sums_1 * sums_2, axis=1) * factor / np.maximum(drawn, 1)))
            products[feature_1, feature_2] -= between
            if feature_1 != feature_2:
                products[feature_2, feature_1] -= between
    square, right = products[:-1, :-1], products[:-1, -1]
    scale = float(np.trace(columns[:, :-1].T @ (columns[:, :-1] * together[:, None])))
    if scale <= 0:
        return np.zeros(features.shape[1])
    return np.linalg.solve(square + _RIDGE * scale * np.eye(len(square)), right)


def _sums(values: Floats, group: Ints, groups: int) -> Floats:
    """Sums of rows by sorted group, shape (groups, columns)."""
    found = np.zeros((groups, values.shape[1]))
    if len(values):
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        found[group[starts]] = np.add.reduceat(values, starts)
    return found


def _estimates(
    pairs: Pairs, labelled: Labelled, strata: _Strata, fold: Ints, by_fold: Floats, topics: int
) -> Estimates:
    coefficients = by_fold.mean(axis=0) if len(by_fold) > 1 else by_fold[0]
    share = np.bincount(fold, minlength=len(by_fold)) / len(fold)
    mean_line = share @ by_fold
    weights = pairs.weights[labelled.rows]
    residual = labelled.gains - np.einsum("if,if->i", pairs.features[labelled.rows], by_fold[fold])
    errors = weights * residual[:, None]
    topic = pairs.topic[labelled.rows]
    by_topic = _by_topic(pairs.weights * (pairs.features @ mean_line)[:, None], pairs.topic, topics)
    by_topic += _by_topic(errors / labelled.probability[:, None], topic, topics)
    within = strata.variance(errors)
    parts = strata.factor[:, None] * within
    design = parts.sum(axis=0) / topics**2
    return Estimates(
        means=by_topic.mean(axis=0),
        by_topic=by_topic,
        design=design,
        design_freedom=_freedom(strata, errors, within),
        total=_total(by_topic, design, _of_topics(strata, errors, topic)),
        coefficients=coefficients,
    )


def _by_topic(values: Floats, topic: Ints, topics: int) -> Floats:
    """Sums by topic, shape (topics, columns)."""
    order = np.argsort(topic, kind="stable")
    return _sums(values[order], topic[order], topics)


def _freedom(strata: _Strata, errors: Floats, within: Floats) -> Floats:
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
    return np.clip(ratio, 1.0, 1e6)


def _of_topics(strata: _Strata, errors: Floats, topic: Ints) -> Floats:
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
    return np.maximum(clusters + dependence, design)

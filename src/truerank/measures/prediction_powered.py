"""Scores that are estimated from a model's judgments of all pairs and people's judgments of a sample.

A score is θ = (1/Q) Σ_q Σ_i w_qi g(y_qi): w is the weight that the measure gives to the rank of a document, g the gain
of its grade. The model's gains f are known for all pairs, people's gains y for a sample with known probabilities π. The
estimate is the difference estimator of prediction-powered inference,

    θ_q = Σ_i w_i m(f_i) + Σ_{i in the sample} w_i (y_i − m(f_i)) / π_i ,   m(f) = a + λ f ,

which is unbiased for any m that does not depend on the sample itself. a and λ minimise its variance (power tuning);
each label is corrected with a and λ from the other folds (cross-fitting).

Source: Angelopoulos et al., Prediction-powered inference (Science 2023) and PPI++ (arXiv 2311.01453), section 6 for λ;
Zrnic and Candès, Cross-prediction-powered inference (PNAS 2024) for the folds; Särndal, Swensson and Wretman, Model
Assisted Survey Sampling (1992), chapter 6, for the same estimator and its variance in a finite population; Oosterhuis
et al. (KDD 2024) and Divekar (PRECISE, 2026) for prediction-powered inference in information retrieval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats, Ints
from truerank.errors import InputError

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


#: How the model's gains become a prediction of people's: not at all; as they are; as a line; as one value per grade.
Adjustment = Literal["none", "fixed", "tuned", "grades"]

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


def basis(predicted: Floats, adjustment: Adjustment) -> Floats:
    """What a person's gain is predicted from.

    Args:
        predicted: the model's gain of each pair, shape (pairs,).

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
    pairs: Pairs,
    labelled: Labelled,
    topics: int,
    *,
    fixed: Floats | None = None,
    tuned_on: int | None = None,
    folds: int = 5,
    seed: int = 0,
) -> LabelEstimates:
    """Estimates means over topics of sums over documents, such as P@k and DCG@k.

    Args:
        fixed: the coefficients of the features, shape (features,); by default those that minimise the variance, summed
            over the scores.
    """
    labelled, strata = _sorted(pairs, labelled)
    outcomes = labelled.gains[:, None]
    weights = pairs.weights[labelled.rows]
    features = pairs.features[labelled.rows]
    lines = _lines(features, weights[:, :tuned_on], outcomes, strata, _Folds(folds, seed, fixed))
    topic = pairs.topic[labelled.rows]
    errors = weights * lines.residual
    by_topic = sums_by(pairs.topic, pairs.weights * (pairs.features @ lines.mean), topics)
    by_topic += sums_by(topic, errors / labelled.probability[:, None], topics)
    return estimates_of(by_topic, errors, topic, strata, lines.mean[:, 0])


def estimate_topics(
    model: Floats, people: Floats, rows: Ints, *, fixed: float | None = None, tuned_on: int | None = None
) -> LabelEstimates:
    """Estimates means of any measure from topics that people judged whole, drawn at random among all topics.

    Args:
        model: the scores of all topics under the model's judgments, shape (topics, scores).
        people: those of the judged topics under people's, shape (judged, scores).
        rows: the places of the judged topics, shape (judged,).

    Source: Angelopoulos et al. (2023), PPI++, section 6; Oosterhuis et al. (KDD 2024) for topics as the unit.
    """
    topics, judged = len(model), len(rows)
    if judged < 3:
        raise InputError(f"{judged} topics are judged whole", "judge at least 3", where="labels")
    seen = model[rows]
    part, other = people - people.mean(axis=0), seen - seen.mean(axis=0)
    # λ of each topic comes from the other topics.
    together, own = (part * other)[:, :tuned_on].sum(axis=1), (other**2)[:, :tuned_on].sum(axis=1)
    rest, scale = together.sum() - together, own.sum() - own
    tuned = np.divide(rest, scale, out=np.zeros(judged), where=scale > 0)
    everything = together.sum() / own.sum() if own.sum() > 0 else 0.0
    # Where nearly all topics are judged, nothing is left to fit too closely.
    tuned = everything + (1 - judged / topics) * (tuned - everything)
    power = tuned if fixed is None else np.full(judged, fixed)
    values = people - power[:, None] * (seen - model.mean(axis=0))
    spread = values.var(axis=0, ddof=1)
    design = spread * (1 / judged - 1 / topics)
    by_topic = np.full(model.shape, np.nan)
    by_topic[rows] = people
    return LabelEstimates(
        means=values.mean(axis=0),
        by_topic=by_topic,
        design=design,
        # As in regression, λ costs a degree of freedom.
        design_freedom=np.full(model.shape[1], judged - (2.0 if fixed is None else 1.0)),
        total=design + people.var(axis=0, ddof=1) / topics,
        coefficients=np.array([power.mean()]),
    )


def _sorted(pairs: Pairs, labelled: Labelled) -> tuple[Labelled, Strata]:
    """The labels by stratum and topic, and the strata."""
    order = np.lexsort((pairs.topic[labelled.rows], labelled.stratum))
    rows, gains, stratum, probability = labelled
    labelled = Labelled(rows[order], gains[order], stratum[order], probability[order])
    return labelled, Strata.of(labelled)


class _Folds(NamedTuple):
    """How predictions are fitted: with fixed coefficients, or tuned, each label by the labels of the other folds."""

    folds: int
    seed: int
    fixed: Floats | None = None


class _Lines(NamedTuple):
    """Predictions of people's outcomes.

    `mean` (the coefficients, shape (features, outcomes)) and `residual` (what is left of each label, shape (labels,
    outcomes)); each label is predicted from the other folds.
    """

    mean: Floats
    residual: Floats


def _lines(features: Floats, weights: Floats, outcomes: Floats, strata: Strata, fitting: _Folds) -> _Lines:
    """Fits the predictions to labels that are sorted by stratum."""
    folds = fitting.folds
    if fitting.fixed is not None:
        line = fitting.fixed[:, None]
        return _Lines(line, outcomes - features @ line)
    if folds == 1:
        line = _tuned(weights, features, outcomes, strata, np.ones(len(weights), np.bool_))
        return _Lines(line, outcomes - features @ line)
    fold = _folds(strata, folds, fitting.seed)
    everything = _tuned(weights, features, outcomes, strata, np.ones(len(weights), np.bool_))
    lines = np.stack([_tuned(weights, features, outcomes, strata, fold != k) for k in range(folds)])
    # Where nearly all pairs are labelled, nothing is left to fit too closely.
    lines = everything + (1 - strata.drawn.sum() / strata.sizes.sum()) * (lines - everything)
    share = np.bincount(fold, minlength=folds) / len(fold)
    residual = outcomes - np.einsum("if,ifo->io", features, lines[fold])
    return _Lines(np.einsum("k,kfo->fo", share, lines), residual)


def _folds(strata: Strata, folds: int, seed: int) -> Ints:
    """A fold of each label; the folds of a stratum differ by at most one label."""
    shuffled = np.lexsort((np.random.default_rng(seed).random(len(strata.number)), strata.number))
    fold = np.empty(len(shuffled), np.int64)
    # One count through all strata: a stratum with few labels does not always lack the same fold.
    fold[shuffled] = np.arange(len(shuffled)) % folds
    return fold


def _tuned(weights: Floats, features: Floats, outcomes: Floats, strata: Strata, used: NDArray[np.bool_]) -> Floats:
    """The coefficients that minimise the variance, summed over the scores, from some of the labels.

    The variance is a quadratic form of the covariances within the strata, so that they solve its normal equations.
    """
    number, weights, groups = strata.number[used], weights[used], len(strata.drawn)
    drawn = np.bincount(number, minlength=groups).astype(np.float64)
    factor = np.where(drawn > 1, strata.factor / np.maximum(drawn - 1, 1), 0.0)
    size = features.shape[1]
    columns = np.column_stack((features[used], outcomes[used]))
    together = np.einsum("ic,ic->i", weights, weights) * factor[number]
    products = columns[:, :size].T @ (columns * together[:, None])
    scale = float(np.trace(products[:, :size]))
    if scale <= 0:
        return np.zeros((size, outcomes.shape[1]))
    sums = [sums_by(number, weights * column[:, None], groups) for column in columns.T]
    share = (factor / np.maximum(drawn, 1))[:, None]
    for first in range(size):
        for second, other in enumerate(sums):
            products[first, second] -= float(np.sum(sums[first] * other * share))
    square = products[:, :size] + _RIDGE * scale * np.eye(size)
    return np.asarray(np.linalg.solve(square, products[:, size:]))

"""The threshold that labels support, or the reason why they support none.

Two figures answer "from which similarity on is the precision at least 0.9?". The *lower bound* is the lowest threshold
whose precision is at least the target with the confidence asked for: the one to use, since at the threshold of the
*point estimate* the true precision lies below the target in about half of all samples.

The lower bound comes from a smooth rising curve of the chance of a leak (`precision_draws`). The paper's threshold, the
*lowest* whose estimate reaches the target, is that of the Hájek estimate over the labelled pairs above it: each pair
counts with one over its probability of having been sampled, so that a stratified sample speaks for the pairs it was
drawn from.

An answer needs labels near it, otherwise it only mirrors where labelling stopped. `Support` says how many and how near;
`calibrate` refuses when they are missing and says which similarities to label next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.core.plain import picked, plain
from truerank.core.result import Result
from truerank.errors import InputError
from truerank.judging.item_sources import read_items
from truerank.judging.labels import JudgedPair, LabelSource, open_judgments
from truerank.judging.schemes import load_scheme

__all__ = ["Calibration", "LabelNext", "Support", "calibrate", "similarities"]


class Support(NamedTuple):
    """What labels must show before a threshold is believed.

    Attributes:
        labels: pairs above a threshold without which its precision is not looked at; for the lower bound as many
            within `window` above it.
        window: similarity distance.
    """

    labels: int = 10
    window: float = 0.03


class LabelNext(NamedTuple):
    """A range of similarities (above `low`, up to `high`) that needs `more` labelled pairs beside those it has."""

    low: float
    high: float
    have: int
    more: int


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Result, shown_in="truerank.audits.leakage.summaries"):
    """The precision at each threshold, and the threshold chosen from it.

    Attributes:
        thresholds: multiples of 0.001 over the labelled range, ascending, shape (T,).
        precision: share of leaks among the candidates above each threshold, shape (T,): from the curve for the lower
            bound, otherwise the weighted share among the labelled pairs.
        low, high: the one-sided bounds of the precision, each with the confidence asked for, shape (T,); the precision
            itself where it has no bounds.
        n: labelled pairs above each threshold, shape (T,).
        chosen: the threshold, or None if the labels do not support one.
        estimate: where the estimated precision itself reaches the target, also where the threshold is refused; None if
            it does so nowhere.
        interval: of the estimate; an end is None where the labels do not reach so far, or where it has none.
        reason: why there is no threshold, in words; empty if there is one.
        label_next: the similarities to label before asking again.
        encoder: the encoder whose similarities the labels carry; empty if unknown.
        settings: target, rule, confidence, resampling, seed and the support asked for.
        counts: pairs used, leaks among them, unresolved, unlabelled, without similarity.
        notes: what a reader must know about the estimate.
    """

    thresholds: Floats
    precision: Floats
    low: Floats
    high: Floats
    n: NDArray[np.int64]
    chosen: float | None
    estimate: float | None
    interval: tuple[float | None, float | None]
    reason: str
    label_next: tuple[LabelNext, ...]
    encoder: str
    settings: dict[str, Any]
    counts: dict[str, int]
    notes: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the labels support no threshold."""
        return self.chosen is None

    @property
    def bounded(self) -> bool:
        """Whether the threshold is that of the lower bound; otherwise it is a point estimate."""
        return bool(self.settings["rule"] == "lower-bound")

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        curve = [
            plain({"threshold": t, "pairs": n, "precision": p, "low": low, "high": high})
            for t, n, p, low, high in zip(self.thresholds, self.n, self.precision, self.low, self.high, strict=True)
        ]
        names = "encoder, chosen, estimate, interval, reason, label_next, settings, counts, notes"
        return {**picked(self, names), "curve": curve}

    @property
    def remedy(self) -> str:
        """What would lead to a threshold, where there is none."""
        if not self.label_next:
            return "lower the target, or choose an encoder that tells leaks from other pairs better"
        wanted = ", ".join(f"{b.more} more pairs from {b.low:.2f} to {b.high:.2f}" for b in self.label_next)
        return f"label {wanted}"


_KNOTS: Final = 21
_BENDS: Final = np.logspace(-2, 3, 9)
#: Rate of the prior of a bend's standard deviation (log odds from knot to knot); 5: one above 0.6 has a chance of 0.05.
_RATE: Final = 5.0
#: Standard deviations of the prior of level and slope (log odds, over the whole range): they rule nothing out.
_LEVEL: Final = 10.0
_SLOPE: Final = 60.0
_STEPS: Final = 60


class _Mode(NamedTuple):
    """The most likely knots for one amount of bending, its log evidence, curvature, and spread of the gradient."""

    evidence: float
    knots: Floats
    curvature: Floats
    spread: Floats


def precision_draws(
    similarity: Floats,
    leak: NDArray[np.bool_],
    positions: Floats,
    weights: Floats,
    rng: np.random.Generator,
    *,
    draws: int,
    clusters: NDArray[np.int64] | None = None,
    cases: Floats | None = None,
) -> Floats:
    """Draws of the precision above each of several thresholds."""
    low, high = float(similarity.min()), float(similarity.max())
    knots = np.linspace(low, high if high > low else low + 1e-6, _KNOTS)
    base = _hats(similarity, knots)
    cases = np.ones(len(leak)) if cases is None else cases
    modes = [_mode(base, leak.astype(np.float64), cases, clusters, bend) for bend in _BENDS]
    evidence = np.array([mode.evidence for mode in modes])
    shares = np.exp(evidence - evidence.max())
    counts = rng.multinomial(draws, shares / shares.sum())
    found = [
        mode.knots[:, None]
        + np.linalg.solve(mode.curvature, np.linalg.cholesky(mode.spread) @ rng.standard_normal((_KNOTS, count)))
        for mode, count in zip(modes, counts, strict=True)
        if count
    ]
    chances = 1 / (
        1 + np.exp(-np.clip(_hats(np.clip(positions, low, high), knots) @ np.concatenate(found, axis=1), -40, 40))
    )
    # Positions without a candidate take part with next to no weight.
    weighed = weights + 1e-9 * max(float(weights.sum()), 1.0)
    rising = chances.T.copy()
    for draw in np.flatnonzero((np.diff(rising, axis=1) < 0).any(axis=1)):
        rising[draw] = scipy.optimize.isotonic_regression(rising[draw], weights=weighed).x
    above: Floats = (rising * weights)[:, ::-1].cumsum(axis=1)[:, ::-1] / weights[::-1].cumsum()[::-1]
    return above


def _hats(values: Floats, knots: Floats) -> Floats:
    """The piecewise linear basis at some values, shape (values, knots)."""
    places = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    share = (values - knots[places]) / (knots[places + 1] - knots[places])
    base = np.zeros((len(values), len(knots)))
    rows = np.arange(len(values))
    base[rows, places], base[rows, places + 1] = 1 - share, share
    return base


def _mode(base: Floats, leak: Floats, cases: Floats, clusters: NDArray[np.int64] | None, bend: float) -> _Mode:
    """Newton's method from a flat curve; steps are bounded, since labels that part cleanly have no finite slope."""
    bends = np.diff(np.eye(_KNOTS), 2, axis=0)
    level = np.full(_KNOTS, 1 / _KNOTS)
    line = np.linspace(-0.5, 0.5, _KNOTS)
    slope = line / (line @ line)
    prior = np.outer(level, level) / _LEVEL**2 + np.outer(slope, slope) / _SLOPE**2 + bend * bends.T @ bends
    knots = np.zeros(_KNOTS)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-base @ knots))
        curvature = base.T @ (base * (cases * chance * (1 - chance))[:, None]) + prior
        step = np.linalg.solve(curvature, base.T @ (cases * (leak - chance)) - prior @ knots)
        largest = float(np.abs(step).max())
        knots = knots + step * min(1.0, 3 / max(largest, 1e-12))
        if largest < 1e-6:
            break
    odds = base @ knots
    likelihood = float((cases * (leak * odds - np.logaddexp(0, odds))).sum() - 0.5 * knots @ prior @ knots)
    evidence = likelihood + 0.5 * (np.linalg.slogdet(prior)[1] - np.linalg.slogdet(curvature)[1])
    deviation = bend**-0.5
    evidence += np.log(deviation) - _RATE * deviation
    spread = curvature
    if clusters is not None:
        gradient = np.zeros((int(clusters.max()) + 1, _KNOTS))
        np.add.at(gradient, clusters, base * (cases * (leak - 1 / (1 + np.exp(-odds))))[:, None])
        spread = gradient.T @ gradient + prior
    return _Mode(float(evidence), knots, curvature, spread)


Rule = Literal["lower-bound", "lowest"]
Drawing = Literal["pairs", "topics"]

Indices: TypeAlias = NDArray[np.int64]

_STEP: Final = 0.001
_RESAMPLES: Final = 2000
_BIN: Final = 0.01
_RULES: Final = ("lower-bound", "lowest")
_TOLERANCE: Final = 1e-12
_SUPPORT: Final = Support()


def calibrate(
    labels: LabelSource,
    *,
    min_precision: float = 0.9,
    rule: Rule = "lower-bound",
    encoder: str = "",
    population: Sequence[float] | NDArray[np.float64] | None = None,
    drawing: Drawing = "pairs",
    support: Support = _SUPPORT,
    confidence: float = 0.95,
    seed: int = 0,
) -> Calibration:
    """Finds the lowest threshold whose pairs are precise enough.

    Source: the leakage paper, section 3 ("the lowest that yields a 0.9 precision"); Hájek (1971) for the estimate;
        `precision_draws` for the lower bound.
    """
    for name, value in (("min_precision", min_precision), ("confidence", confidence)):
        if not 0 < value <= 1 or (name == "confidence" and value == 1):
            raise InputError(f"{name} is {value:g}", "give a number between 0 and 1", where="leakage calibrate")
    if rule not in _RULES:
        raise InputError(f"no rule '{rule}'", f"one of {', '.join(_RULES)}", where="leakage calibrate")
    judgments = open_judgments(labels)
    used = [pair for pair in judgments.pairs if pair.leak is not None and pair.similarity is not None]
    sample = _arrays(used)
    n = _above(sample.bins, np.ones(len(used)), len(sample.thresholds)).astype(np.int64)
    wanted = _Wanted(min_precision, rule, drawing, support, confidence, seed)
    answer = _bounded(sample, n, wanted, population) if rule == "lower-bound" else _lowest(sample, n, wanted)
    return Calibration(
        thresholds=_frozen(sample.thresholds),
        precision=_frozen(answer.precision),
        low=_frozen(answer.low),
        high=_frozen(answer.high),
        n=_frozen(n),
        chosen=answer.chosen,
        estimate=plain(answer.estimate),
        interval=(None if answer.ends[0] == sample.thresholds[0] else plain(answer.ends[0]), plain(answer.ends[1])),
        reason=answer.reason,
        label_next=answer.label_next,
        encoder=encoder,
        settings={
            "min_precision": min_precision,
            "rule": rule,
            "confidence": confidence,
            "drawing": drawing,
            "resamples": _RESAMPLES,
            "seed": seed,
            "support": support._asdict(),
            "votes": judgments.votes,
            "candidates": None if population is None else len(population),
        },
        counts={
            "pairs": len(used),
            "leaks": int(sample.leak.sum()),
            "unresolved": judgments.unresolved,
            "unlabelled": judgments.unlabelled,
            "without_similarity": sum(pair.similarity is None for pair in judgments.pairs),
        },
        notes=(*answer.notes, *judgments.notes),
    )


def similarities(folder: str) -> NDArray[np.float64]:
    """The similarities of the pairs that an audit found: the population of a sample of them."""
    return np.array([item.score for item in read_items(folder, load_scheme("leak"))], np.float64)


class _Wanted(NamedTuple):
    target: float
    rule: Rule
    drawing: Drawing
    support: Support
    confidence: float
    seed: int


class _Answer(NamedTuple):
    """A curve and what it gives, as in `Calibration`; `estimate` and `ends` may be infinite."""

    precision: Floats
    low: Floats
    high: Floats
    chosen: float | None
    estimate: float
    ends: tuple[float, float]
    reason: str
    label_next: tuple[LabelNext, ...]
    notes: tuple[str, ...]


def _lowest(sample: _Sample, n: NDArray[np.int64], wanted: _Wanted) -> _Answer:
    """The paper's threshold: the lowest whose estimated precision reaches the target."""
    precision = sample.above(sample.weight * sample.leak) / sample.above(sample.weight)
    supported = n >= wanted.support.labels
    estimate = _first(sample.thresholds, supported, precision[None, :], wanted.target)[0]
    reason, label_next = "", tuple[LabelNext, ...]()
    if len(sample.bins) < wanted.support.labels:
        reason, label_next = _too_few(sample, wanted.support)
    elif math.isinf(estimate):
        reason = (
            f"no threshold with {wanted.support.labels} labelled pairs above it reaches a precision of "
            f"{wanted.target:g}"
        )
    chosen = None if reason else estimate
    ends = (math.inf, math.inf)
    return _Answer(precision, precision, precision, chosen, estimate, ends, reason, label_next, _alike(sample))


def _alike(sample: _Sample) -> tuple[str, ...]:
    """What must be said of labels without sampling probabilities."""
    if (sample.weight == sample.weight[0]).all():
        return ("The labels carry no sampling probabilities that differ: every pair counts alike.",)
    return ()


def _bounded(
    sample: _Sample, n: NDArray[np.int64], wanted: _Wanted, population: Sequence[float] | Floats | None
) -> _Answer:
    """The lowest threshold whose lower bound reaches the target."""
    size, support = len(sample.thresholds), wanted.support
    notes: list[str] = []
    if population is None:
        weights = np.bincount(sample.bins, weights=sample.weight, minlength=size).astype(np.float64)
        notes += _alike(sample)
    else:
        similar = np.round(np.minimum(np.asarray(population, np.float64), 1.0), 6)
        bins = np.searchsorted(sample.thresholds, similar, side="left") - 1
        weights = np.bincount(bins[bins >= 0], minlength=size).astype(np.float64)
        # What was labelled is a candidate, too.
        weights = np.maximum(weights, np.bincount(sample.bins, minlength=size))
    draws = precision_draws(
        sample.similarity,
        sample.leak,
        sample.thresholds + _STEP / 2,
        weights,
        np.random.default_rng(wanted.seed),
        draws=_RESAMPLES,
        clusters=sample.topic if wanted.drawing == "topics" else None,
        cases=_cases(sample),
    )
    precision = draws.mean(axis=0)
    low, high = np.quantile(draws, [1 - wanted.confidence, wanted.confidence], axis=0)
    near = n - _above(sample.bins, np.ones(len(sample.bins)), size + _window(support))[_window(support) :].astype(
        np.int64
    )
    supported = (n >= support.labels) & (near >= support.labels)
    answers = _first(sample.thresholds, supported, np.vstack([precision, low, draws]), wanted.target)
    estimate, chosen = answers[:2]
    ends = _ends(np.array(answers[2:]), wanted.confidence)
    if math.isfinite(chosen):
        if chosen == sample.thresholds[0]:
            notes.append(
                f"Labels begin at {sample.similarity.min():.4f}: a lower threshold may do, too. Label pairs below it."
            )
        return _Answer(precision, low, high, chosen, estimate, ends, "", (), tuple(notes))
    reason, label_next = _unbounded(sample, wanted, estimate, float(np.nanmax(low)))
    return _Answer(precision, low, high, None, estimate, ends, reason, label_next, tuple(notes))


def _cases(sample: _Sample) -> Floats:
    """For how many labels each pair counts in the curve, shape (pairs,).

    What matters is how likely a pair was sampled among those of its similarity: within a hundredth, pairs count by
    their weight, and all together like so many as they are worth (Kish's effective size). A sample in strata of the
    similarity has one weight there, and every pair counts once.
    """
    bins = np.unique(np.ceil(sample.similarity / _BIN - 1e-9), return_inverse=True)[1]
    weight = sample.weight
    cases: Floats = weight * (np.bincount(bins, weights=weight) / np.bincount(bins, weights=weight**2))[bins]
    return cases


def _window(support: Support) -> int:
    """The window in steps of the thresholds."""
    return max(1, round(support.window / _STEP))


def _unbounded(sample: _Sample, wanted: _Wanted, estimate: float, best: float) -> tuple[str, tuple[LabelNext, ...]]:
    """Why no lower bound reaches the target, and what to label next: twice as many where it is decided."""
    support = wanted.support
    if len(sample.bins) < support.labels:
        return _too_few(sample, support)
    share, target = f"{wanted.confidence:.0%}", f"{wanted.target:g}"
    if math.isinf(estimate):
        return (
            f"no threshold with {support.labels} labelled pairs within {support.window:g} above it reaches "
            f"an estimated precision of {target}",
            (),
        )
    span = (max(0.0, estimate - support.window), min(1.0, estimate + 3 * support.window))
    return (
        f"the estimated precision reaches {target} at {estimate:.3f}, but the labels are too few to say with {share} "
        f"confidence that the precision is so high above any threshold (the highest lower bound is {best:.3f})",
        _label_next(sample, support, span, 2.0),
    )


def _too_few(sample: _Sample, support: Support) -> tuple[str, tuple[LabelNext, ...]]:
    lowest = float(sample.similarity.min())
    return f"only {len(sample.bins)} labelled pairs", _label_next(sample, support, (lowest, 1.0), 1.0)


def _ends(answers: Floats, confidence: float) -> tuple[float, float]:
    low, high = np.quantile(answers, [(1 - confidence) / 2, (1 + confidence) / 2], method="inverted_cdf")
    return float(low), float(high)


class _Sample(NamedTuple):
    """The labelled pairs as arrays over pairs; `bins` is the index of the highest threshold below the similarity."""

    similarity: Floats
    leak: NDArray[np.bool_]
    weight: Floats
    topic: Indices
    thresholds: Floats
    bins: Indices

    def above(self, values: Floats) -> Floats:
        """Sum of the values of the pairs above each threshold, shape (T,)."""
        return _above(self.bins, values, len(self.thresholds))


def _first(thresholds: Floats, supported: NDArray[np.bool_], curves: Floats, target: float) -> list[float]:
    """The lowest supported threshold whose precision reaches the target, for each curve of shape (R, T)."""
    reached = (curves >= target - _TOLERANCE) & supported
    return np.where(reached.any(axis=1), thresholds[reached.argmax(axis=1)], np.inf).tolist()  # type: ignore[no-any-return]


def _arrays(pairs: Sequence[JudgedPair]) -> _Sample:
    if not pairs:
        raise InputError(
            "no labelled pair carries a similarity", "label pairs of candidates.parquet, or add a column similarity"
        )
    probability = np.array([pair.probability for pair in pairs])
    if not ((probability > 0) & (probability <= 1)).all():
        wrong = probability[~((probability > 0) & (probability <= 1))][0]
        raise InputError(f"a sampling probability of {wrong:g}", "give numbers above 0 and up to 1")
    # Cosines of floats may exceed 1 by a hair; the audit stores similarities to 1e-6.
    similarity = np.round(np.minimum(np.array([pair.similarity or 0.0 for pair in pairs]), 1.0), 6)
    first, last = (math.ceil(round(end / _STEP, 6)) - 1 for end in (similarity.min(), similarity.max()))
    thresholds = np.round(np.arange(first, last + 1) * _STEP, 6)
    topic = np.unique([pair.topic_id for pair in pairs], return_inverse=True)[1].astype(np.int64)
    bins = np.searchsorted(thresholds, similarity, side="left") - 1
    leak = np.array([bool(pair.leak) for pair in pairs])
    return _Sample(similarity, leak, 1 / probability, topic, thresholds, bins)


def _above(bins: Indices, values: Floats, size: int) -> Floats:
    return np.bincount(bins, weights=values, minlength=size)[::-1].cumsum()[::-1]


def _label_next(sample: _Sample, support: Support, span: tuple[float, float], grow: float) -> tuple[LabelNext, ...]:
    """Bins of a hundredth over the span, each to hold `support.labels` pairs, or `grow` times what it holds; bins that
    adjoin are one range."""
    first, last = (math.floor(round(span[0] / _BIN, 6)), math.ceil(round(span[1] / _BIN, 6)))
    ranges: list[LabelNext] = []
    for number in range(first, last):
        low, high = round(number * _BIN, 6), round((number + 1) * _BIN, 6)
        have = int(((sample.similarity > low) & (sample.similarity <= high)).sum())
        more = max(support.labels, math.ceil(have * grow) if grow > 1 else 0) - have
        if more <= 0:
            continue
        if ranges and ranges[-1].high == low:
            before = ranges.pop()
            ranges.append(LabelNext(before.low, high, before.have + have, before.more + more))
        else:
            ranges.append(LabelNext(low, high, have, more))
    return tuple(ranges)


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    values.setflags(write=False)
    return values

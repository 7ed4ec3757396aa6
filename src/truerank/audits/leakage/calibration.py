"""The similarity threshold that labels support, or the reason why they support none.

Precision above a threshold t is the Hájek estimate over the labelled pairs with a similarity above t: each pair counts
with one over its probability of having been sampled, so that a stratified sample speaks for the pairs it was drawn
from. The threshold's interval comes from repeating the whole choice on bootstrap resamples.

An answer needs labels on both sides, otherwise it only mirrors where labelling stopped. `Support` says how many and how
near; `calibrate` refuses when they are missing and says which similarities to label next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from truerank.errors import InputError
from truerank.judging.labels import JudgedPair, LabelSource, open_judgments
from truerank.reports.tables import Column, Table

__all__ = ["Calibration", "LabelNext", "Support", "calibrate"]

Rule = Literal["stays", "lowest"]
Resample = Literal["strata", "pairs", "topics"]
Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

_STEP: Final = 0.001
_RESAMPLES: Final = 2000
_BIN: Final = 0.01
_CELLS_AT_ONCE: Final = 4_000_000
_TOLERANCE: Final = 1e-12


class Support(NamedTuple):
    """What labels must show before a threshold is believed.

    Attributes:
        labels: pairs needed within `window` below the threshold, the same number within `window` above it, and the
            number above a threshold without which its precision is not looked at.
        window: similarity distance; labels must also reach this far below the threshold's interval.
        width: the widest acceptable interval of the threshold.
    """

    labels: int = 10
    window: float = 0.03
    width: float = 0.05


_SUPPORT: Final = Support()


class LabelNext(NamedTuple):
    """A range of similarities (above `low`, up to `high`) that needs `more` labelled pairs beside those it has."""

    low: float
    high: float
    have: int
    more: int


@dataclass(frozen=True, eq=False)
class Calibration:
    """The precision at each threshold, and the threshold chosen from it.

    Attributes:
        thresholds: multiples of 0.001 over the labelled range, ascending, shape (T,).
        precision: weighted share of leaks among the pairs above each threshold, shape (T,).
        low, high: pointwise bootstrap interval of the precision, shape (T,).
        n: labelled pairs above each threshold, shape (T,).
        chosen: the threshold, or None if the labels do not support one.
        estimate: what the rule gives, also where it is refused; None if no threshold reaches the target.
        interval: bootstrap interval of the estimate; an end is None where resamples had no answer there.
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

    def require(self) -> float:
        """The threshold.

        Raises:
            InputError: there is none; the message says why and what to label next.
        """
        if self.chosen is None:
            raise InputError(f"no threshold: {self.reason}", self._remedy())
        return self.chosen

    def table(self) -> Table:
        """The precision at each hundredth of the labelled range, at its lower end and at the estimate."""
        hundredths = np.isclose(self.thresholds * 100, np.round(self.thresholds * 100), atol=1e-6)
        shown = np.flatnonzero(
            hundredths | (self.thresholds == self.estimate) | (self.thresholds == self.thresholds[0])
        )
        share = f"{self.settings['confidence']:.0%} interval"
        return Table(
            title="Precision of the labelled pairs above a threshold.",
            columns=(
                Column("threshold", align="right", format=".3f"),
                Column("pairs above", align="right", format=",d"),
                Column("precision", align="right", format=".3f"),
                Column("low", (share,), align="right", format=".3f"),
                Column("high", (share,), align="right", format=".3f"),
            ),
            rows=tuple(
                (
                    float(self.thresholds[i]),
                    int(self.n[i]),
                    *(float(v[i]) for v in (self.precision, self.low, self.high)),
                )
                for i in shown
            ),
            notes=tuple(self.text().splitlines()),
        )

    def text(self) -> str:
        """The answer in words."""
        share, wanted = f"{self.settings['confidence']:.0%}", self.settings["min_precision"]
        ends = ["open" if end is None else f"{end:.3f}" for end in self.interval]
        about = f"{share} interval {ends[0]} to {ends[1]}, {self.counts['pairs']} labelled pairs"
        if self.chosen is not None:
            meaning = "precision stays at or above" if self.settings["rule"] == "stays" else "precision first reaches"
            name = self.encoder or "an encoder that the labels do not name"
            return "\n".join([f"{self.chosen:.3f}: {meaning} {wanted:g} ({about}), for {name}.", *self.notes])
        return "\n".join([f"No threshold: {self.reason}.", f"{self._remedy().capitalize()}.", *self.notes])

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        curve = [
            {"threshold": float(t), "pairs": int(n), "precision": _plain(p), "low": _plain(low), "high": _plain(high)}
            for t, n, p, low, high in zip(self.thresholds, self.n, self.precision, self.low, self.high, strict=True)
        ]
        return {
            "encoder": self.encoder,
            "chosen": self.chosen,
            "estimate": self.estimate,
            "interval": list(self.interval),
            "reason": self.reason,
            "label_next": [bin_._asdict() for bin_ in self.label_next],
            "settings": self.settings,
            "counts": self.counts,
            "notes": list(self.notes),
            "curve": curve,
        }

    def _remedy(self) -> str:
        if not self.label_next:
            return "lower the target, or choose an encoder that tells leaks from other pairs better"
        wanted = ", ".join(f"{b.more} more pairs from {b.low:.2f} to {b.high:.2f}" for b in self.label_next)
        return f"label {wanted}"


def calibrate(
    labels: LabelSource,
    *,
    min_precision: float = 0.9,
    rule: Rule = "stays",
    encoder: str = "",
    resample: Resample = "strata",
    support: Support = _SUPPORT,
    confidence: float = 0.95,
    seed: int = 0,
    include_models: bool = False,
) -> Calibration:
    """Finds the lowest threshold whose pairs are precise enough.

    Args:
        labels: label sources, labels or judgments; each pair needs its similarity. Pairs that the annotators left
            unresolved are counted and not used.
        min_precision: the target, above 0 and at most 1.
        rule: "stays": the lowest threshold from which on the precision of every higher one (that enough labels
            support) is at least the target; "lowest": the lowest threshold that reaches it, whatever lies above.
        encoder: the encoder that the similarities come from.
        resample: what the bootstrap draws: pairs within the strata of the sample (pairs of equal sampling
            probability), pairs at large, or whole topics.
        support: how many labels must lie how near to the answer.
        confidence: of both intervals.
        seed: of the bootstrap (2,000 resamples).
        include_models: let labels of models count like those of people; a note then says so.

    Returns:
        The curve and the threshold, or the reason why there is none (`Calibration.refused`).

    Raises:
        InputError: no pair can be used, or an option is out of its range.

    Source: the leakage paper, section 3 ("the lowest that yields a 0.9 precision"); Hájek (1971) for the estimate.
    """
    for name, value in (("min_precision", min_precision), ("confidence", confidence)):
        if not 0 < value <= 1 or (name == "confidence" and value == 1):
            raise InputError(f"{name} is {value:g}", "give a number between 0 and 1", where="leakage calibrate")
    judgments = open_judgments(labels, include_models=include_models)
    used = [pair for pair in judgments.pairs if pair.leak is not None and pair.similarity is not None]
    sample = _arrays(used)
    groups, notes = _groups(sample, resample)
    n = _above(sample.bins, np.ones(len(used)), len(sample.thresholds)).astype(np.int64)
    precision = sample.above(sample.weight * sample.leak) / sample.above(sample.weight)
    question = _Question(sample.thresholds, n >= support.labels, min_precision, rule)
    resamples = _bootstrap(sample, groups, np.random.default_rng(seed))
    low, high = _curve_interval(sample, precision, resamples, 1 - confidence)
    estimate = question.answer(precision[None, :])[0]
    ends = np.quantile(question.answer(resamples), [(1 - confidence) / 2, (1 + confidence) / 2], method="inverted_cdf")
    reason, label_next = _refusal(sample, support, estimate, (float(ends[0]), float(ends[1])), min_precision)
    return Calibration(
        thresholds=_frozen(sample.thresholds),
        precision=_frozen(precision),
        low=_frozen(low),
        high=_frozen(high),
        n=_frozen(n),
        chosen=None if reason else float(estimate),
        estimate=_plain(estimate),
        interval=(None if ends[0] == sample.thresholds[0] else _plain(ends[0]), _plain(ends[1])),
        reason=reason,
        label_next=label_next,
        encoder=encoder,
        settings={
            "min_precision": min_precision,
            "rule": rule,
            "confidence": confidence,
            "resample": resample,
            "resamples": _RESAMPLES,
            "seed": seed,
            "support": support._asdict(),
        },
        counts={
            "pairs": len(used),
            "leaks": int(sample.leak.sum()),
            "unresolved": judgments.unresolved,
            "unlabelled": judgments.unlabelled,
            "without_similarity": sum(pair.similarity is None for pair in judgments.pairs),
        },
        notes=(*notes, judgments.model_note) if judgments.models else notes,
    )


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


class _Question(NamedTuple):
    """What is asked of a precision curve; `supported` marks the thresholds whose precision is looked at."""

    thresholds: Floats
    supported: NDArray[np.bool_]
    target: float
    rule: Rule

    def answer(self, curves: Floats) -> Floats:
        """The threshold that each curve of shape (R, T) gives; infinity where none reaches the target."""
        reached = np.isnan(curves) | (curves >= self.target - _TOLERANCE)
        if self.rule == "stays":
            passed = reached | ~self.supported
            reached = np.logical_and.accumulate(passed[:, ::-1], axis=1)[:, ::-1]
        reached = reached & self.supported
        return np.where(reached.any(axis=1), self.thresholds[reached.argmax(axis=1)], np.inf)


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


def _groups(sample: _Sample, resample: Resample) -> tuple[Indices, tuple[str, ...]]:
    """The stratum of each pair (zeros where none are used), and what must be said about it."""
    notes = []
    if (sample.weight == sample.weight[0]).all():
        notes.append("The labels carry no sampling probabilities that differ: every pair counts alike.")
    groups = np.zeros(len(sample.bins), dtype=np.int64)
    if resample == "strata":
        strata, counts = np.unique(sample.weight, return_inverse=True, return_counts=True)[1:]
        if counts.min() > 1:
            groups = strata.astype(np.int64)
        else:
            notes.append("Some strata hold one pair only: the bootstrap draws from all pairs instead.")
    return (-1 - sample.topic if resample == "topics" else groups), tuple(notes)


def _bootstrap(sample: _Sample, groups: Indices, rng: np.random.Generator) -> Floats:
    """Precision curves of resamples, shape (R, T); negative groups are clusters that are drawn whole."""
    clustered = bool((groups < 0).all())
    units = -1 - groups if clustered else np.arange(len(groups))
    size, shape = int(units.max()) + 1, (int(units.max()) + 1, len(sample.thresholds))
    weights = scipy.sparse.csr_array((sample.weight, (units, sample.bins)), shape=shape)
    leaks = scipy.sparse.csr_array((sample.weight * sample.leak, (units, sample.bins)), shape=shape)
    strata = [np.arange(size)] if clustered else [np.flatnonzero(groups == group) for group in np.unique(groups)]
    rows = max(1, _CELLS_AT_ONCE // size)
    curves = []
    for start in range(0, _RESAMPLES, rows):
        drawn = np.empty((min(rows, _RESAMPLES - start), size))
        for members in strata:
            share = np.full(len(members), 1 / len(members))
            drawn[:, members] = rng.multinomial(len(members), share, size=len(drawn))
        found, total = ((drawn @ part)[:, ::-1].cumsum(axis=1)[:, ::-1] for part in (leaks, weights))
        with np.errstate(invalid="ignore"):
            curves.append(np.where(total > 0, found / total, np.nan))
    return np.concatenate(curves)


def _curve_interval(sample: _Sample, precision: Floats, resamples: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Pointwise percentile interval; where all pairs agree, the exact binomial bound stands in."""
    low, high = np.nanquantile(resamples, [alpha / 2, 1 - alpha / 2], axis=0)
    effective = sample.above(sample.weight) ** 2 / sample.above(sample.weight**2)
    bound = (alpha / 2) ** (1 / effective)
    return np.where(precision == 1, bound, low), np.where(precision == 0, 1 - bound, high)


def _refusal(
    sample: _Sample, support: Support, estimate: float, ends: tuple[float, float], target: float
) -> tuple[str, tuple[LabelNext, ...]]:
    """Why the labels do not support the estimate (empty if they do), and which similarities to label next."""
    window, lowest = support.window, float(sample.similarity.min())
    if math.isinf(estimate):
        if len(sample.bins) < support.labels:
            return f"only {len(sample.bins)} labelled pairs", _label_next(sample, support, (lowest, 1.0), 1.0)
        return f"no threshold with {support.labels} labelled pairs above it reaches a precision of {target:g}", ()
    reasons = []
    needed = max(0.0, ends[0] - window)
    if ends[0] == sample.thresholds[0]:
        reasons.append(f"the threshold may lie below everything that was labelled (from {lowest:.4f} on)")
    elif lowest > needed:
        reasons.append(
            f"the estimate {estimate:.3f} (from {ends[0]:.3f} on) lies at the edge of the sample: labels begin at "
            f"{lowest:.4f} and must reach down to {needed:.3f}"
        )
    below = int(((sample.similarity > estimate - window) & (sample.similarity <= estimate)).sum())
    above = int(((sample.similarity > estimate) & (sample.similarity <= estimate + window)).sum())
    for count, side in ((below, "below"), (above, "above")):
        if count < support.labels:
            reasons.append(f"{count} labelled pairs within {window:g} {side} {estimate:.3f}, {support.labels} needed")
    width = ends[1] - ends[0]
    if math.isinf(width):
        reasons.append("some resamples of the labels reach the target nowhere")
    elif width > support.width + _TOLERANCE:
        reasons.append(f"the threshold's interval {ends[0]:.3f} to {ends[1]:.3f} is wider than {support.width:g}")
    if not reasons:
        return "", ()
    top = min(1.0, (estimate if math.isinf(ends[1]) else ends[1]) + window)
    grow = max(1.0, (min(width, 1.0) / support.width) ** 2)
    return "; ".join(reasons), _label_next(sample, support, (needed, top), grow)


def _label_next(sample: _Sample, support: Support, span: tuple[float, float], grow: float) -> tuple[LabelNext, ...]:
    """Bins of a hundredth over the span, each to hold `support.labels` pairs, or `grow` times what it holds."""
    first, last = (math.floor(round(span[0] / _BIN, 6)), math.ceil(round(span[1] / _BIN, 6)))
    bins = []
    for number in range(first, last):
        low, high = round(number * _BIN, 6), round((number + 1) * _BIN, 6)
        have = int(((sample.similarity > low) & (sample.similarity <= high)).sum())
        more = max(support.labels, math.ceil(have * grow) if grow > 1 else 0) - have
        if more > 0:
            bins.append(LabelNext(low, high, have, more))
    return tuple(bins)


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    values.setflags(write=False)
    return values


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

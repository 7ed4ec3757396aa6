"""How far each model agrees with people: coefficients, binarisations, grades given too high or too low.

All statistics are functions of counts by topic: how often people gave one grade and the model another. A resample of
topics weighs these counts, so that a thousand resamples of thirty models take a second.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Floats, frame_schema
from truerank.audits.assessors.grades import Codes, Grades
from truerank.core.plain import plain
from truerank.judging.coefficients import Coefficients, drawn_weights
from truerank.measures.significance import Correction, correct
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


#: The coefficients by the names in the tables.
COEFFICIENTS: Final = {
    "agreement": "share of pairs with the same grade",
    "kappa": "Cohen's κ",
    "kappa-linear": "Cohen's κ, linear weights",
    "kappa-quadratic": "Cohen's κ, quadratic weights",
    "alpha-nominal": "Krippendorff's α, nominal",
    "alpha-ordinal": "Krippendorff's α, ordinal",
    "alpha-interval": "Krippendorff's α, interval",
}
#: Of a table of two by two: the cells that people call relevant, and those that the model does.
_SIDES: Final = ([2, 3], [1, 3])
#: The coefficient by which models are ordered.
MAIN: Final = "alpha-ordinal"


def counted(grades: Grades, first: Codes, second: Codes) -> Floats:
    """Pairs by topic and both codes: shape (topics, grades × grades), the first code the slower index."""
    size = len(grades.scale)
    known = (first >= 0) & (second >= 0)
    place = (grades.topic[known] * size + first[known]) * size + second[known]
    counts = np.bincount(place, minlength=len(grades.topics) * size * size)
    return counts.reshape(len(grades.topics), size * size).astype(np.float64)


def coefficients(counts: Floats, scale: Sequence[float], names: Sequence[str] = tuple(COEFFICIENTS)) -> Floats:
    """Coefficients of agreement of two voices.

    Args:
        counts: pairs by both grades, shape (n, grades × grades).

    Returns:
        Shape (n, names); not a number where a coefficient is not defined.
    """
    size = len(scale)
    cells = np.stack(np.divmod(np.arange(size * size), size), axis=1)
    # A cell of the table is a unit that is drawn as often as there are pairs in it.
    of = {level: Coefficients(cells, size, level, scale) for level in ("nominal", "ordinal", "interval")}
    ways = {
        "agreement": of["nominal"].percentage,
        "kappa": of["nominal"].cohen,
        "kappa-linear": lambda weights: of["nominal"].cohen(weights, "linear"),
        "kappa-quadratic": lambda weights: of["nominal"].cohen(weights, "quadratic"),
        **{f"alpha-{level}": one.krippendorff for level, one in of.items()},
    }
    return np.stack([ways[name](counts) for name in names], axis=1)


def agreement_frame(grades: Grades, voices: Sequence[tuple[str, Codes]], resampling: Resampling) -> pl.DataFrame:
    """Each voice against people: columns judge, pairs, coefficient, value, low, high."""
    rows = []
    for name, codes in voices:
        counts = counted(grades, grades.reference, codes)
        found = bootstrap(lambda w, c=counts: coefficients(w @ c, grades.scale), len(grades.topics), resampling)  # type: ignore[misc]
        rows += [(name, int(counts.sum()), one, *_ends(found, at)) for at, one in enumerate(COEFFICIENTS)]
    return _frame(rows, {"judge": pl.String, "pairs": pl.Int64, "coefficient": pl.String})


def cuts_frame(grades: Grades, resampling: Resampling) -> pl.DataFrame:
    """Each binarisation of the scale."""
    size, rows = len(grades.scale), []
    first, second = np.divmod(np.arange(size * size), size)
    for name, codes in zip(grades.judges, grades.given.T, strict=True):
        counts = counted(grades, grades.reference, codes)
        for cut in range(1, size):
            both = counts @ np.eye(4)[(first >= cut) * 2 + (second >= cut)]

            def statistic(weights: Floats, both: Floats = both) -> Floats:
                drawn = weights @ both
                people, model = (
                    _ratio(np.stack([drawn[:, at].sum(axis=1), drawn.sum(axis=1)], axis=1)) for at in _SIDES
                )
                kappa = coefficients(drawn, (0, 1), ("kappa",))[:, 0]
                return np.stack([kappa, model - people, people, model], axis=1)

            found = bootstrap(statistic, len(grades.topics), resampling)
            shares = (plain(found.value[at]) for at in (2, 3))
            rows.append((name, grades.scale[cut], *shares, *_ends(found, 0), *_ends(found, 1)))
    schema = {"judge": pl.String, "cut": pl.Int64, "people_share": pl.Float64, "judge_share": pl.Float64}
    return _frame(rows, schema, dict.fromkeys(("gap", "gap_low", "gap_high"), pl.Float64))


def confusion_frame(grades: Grades) -> pl.DataFrame:
    """Pairs by the grade of people and of each judge: columns judge, people, model, pairs."""
    size, rows = len(grades.scale), []
    for name, codes in zip(grades.judges, grades.given.T, strict=True):
        total = counted(grades, grades.reference, codes).sum(axis=0)
        rows += [
            (name, grades.scale[at // size], grades.scale[at % size], int(pairs)) for at, pairs in enumerate(total)
        ]
    schema = {"judge": pl.String, "people": pl.Int64, "model": pl.Int64, "pairs": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def rating_frame(grades: Grades, resampling: Resampling, bands: Sequence[tuple[str, Codes]]) -> pl.DataFrame:
    """How much higher or lower a judge grades than people, over bands of pairs."""
    places, rows, topics = np.array(grades.scale, dtype=np.float64), [], len(grades.topics)
    for name, codes in zip(grades.judges, grades.given.T, strict=True):
        for band, inside in bands:
            chosen = inside[codes[inside] >= 0]
            if not len(chosen):
                continue
            gap = places[codes[chosen]] - places[grades.reference[chosen]]
            sums = np.stack(
                [np.bincount(grades.topic[chosen], part, topics) for part in (gap, np.ones(len(gap)))], axis=1
            )
            found = bootstrap(lambda w, s=sums: _ratio(w @ s), topics, resampling)  # type: ignore[misc]
            rows.append((name, band, len(gap), float((gap < 0).mean()), float((gap > 0).mean()), *_ends(found, ())))
    schema = frame_schema("judge band: String, pairs: Int64, under over: Float64")
    return _frame(rows, schema)


def grade_bands(grades: Grades) -> list[tuple[str, Codes]]:
    """All pairs, and the pairs of each grade of people."""
    every: list[tuple[str, Codes]] = [("all", np.arange(len(grades.reference)))]
    return every + [(f"grade {one}", np.flatnonzero(grades.reference == at)) for at, one in enumerate(grades.scale)]


def topics_frame(grades: Grades) -> pl.DataFrame:
    """Agreement topic by topic: columns judge, topic_id, pairs, agreement, kappa, difference (judge minus people)."""
    rows, places = [], np.array(grades.scale, dtype=np.float64)
    gaps = (places[None, :] - places[:, None]).ravel()
    for name, codes in zip(grades.judges, grades.given.T, strict=True):
        counts = counted(grades, grades.reference, codes)
        values = coefficients(counts, grades.scale, ("agreement", "kappa"))
        totals = counts.sum(axis=1)
        for at, topic in enumerate(grades.topics):
            if totals[at]:
                same, kappa = (None if np.isnan(one) else float(one) for one in values[at])
                rows.append((name, topic, int(totals[at]), same, kappa, float(counts[at] @ gaps / totals[at])))
    schema = frame_schema("judge topic_id: String, pairs: Int64, agreement kappa difference: Float64")
    return pl.DataFrame(rows, schema=schema, orient="row")


def between_frame(grades: Grades, voices: Sequence[tuple[str, Codes]], resampling: Resampling | None) -> pl.DataFrame:
    """Each two voices: columns first, second, pairs, kappa, and α (ordinal) with its interval, if asked for."""
    rows = []
    for (one, first), (other, second) in itertools.combinations(voices, 2):
        counts = counted(grades, first, second)
        if not counts.sum():
            continue
        kappa, alpha = coefficients(counts.sum(axis=0, keepdims=True), grades.scale, ("kappa", MAIN))[0]
        ends: tuple[float | None, ...] = (None, None)
        if resampling is not None:
            found = bootstrap(
                lambda w, c=counts: coefficients(w @ c, grades.scale, (MAIN,)),  # type: ignore[misc]
                len(grades.topics),
                resampling,
            )
            ends = _ends(found, 0)[1:]
        rows.append((one, other, int(counts.sum()), plain(kappa), plain(alpha), *ends))
    schema = {"first": pl.String, "second": pl.String, "pairs": pl.Int64, "kappa": pl.Float64}
    return _frame(rows, schema)


def differences_frame(
    grades: Grades, voices: Sequence[tuple[str, Codes]], resampling: Resampling, correction: Correction
) -> pl.DataFrame:
    """Each two judges: the difference of their α (ordinal) with people, on the same resamples of topics."""
    counts = [counted(grades, grades.reference, codes) for _, codes in voices]
    one, other = np.triu_indices(len(voices), 1)

    def alphas(weights: Floats) -> Floats:
        found = np.stack([coefficients(weights @ c, grades.scale, (MAIN,))[:, 0] for c in counts], axis=1)
        return np.concatenate([found, found[:, one] - found[:, other]], axis=1)

    found = bootstrap(alphas, len(grades.topics), resampling)
    gaps = TopicEstimate(*(part[len(voices) :] for part in found))
    p = two_sided(gaps, len(grades.topics))
    corrected = correct([plain(value) for value in p], correction)
    rows = []
    for at, (first, second) in enumerate(zip(one.tolist(), other.tolist(), strict=True)):
        value, low, high = _ends(gaps, at)
        names = voices[first][0], voices[second][0]
        if value is not None and value < 0:
            names = names[1], names[0]
            value, low, high = (None if end is None else -end for end in (value, high, low))
        rows.append((*names, value, low, high, plain(p[at]), corrected[at]))
    schema = {"first": pl.String, "second": pl.String}
    return _frame(rows, schema, {"p": pl.Float64, "corrected": pl.Float64})


def ceiling_frame(grades: Grades, resampling: Resampling) -> pl.DataFrame:
    """Each judge against single people, compared with people among themselves; empty with fewer than two people."""
    rows, scale = [], grades.scale
    pairs = list(itertools.combinations(grades.said.T, 2))
    counts = [one for one in (counted(grades, *pair) for pair in pairs) if one.sum()]
    for name, codes in zip(grades.judges, grades.given.T, strict=True):
        own = [one for one in (counted(grades, said, codes) for said in grades.said.T) if one.sum()]
        if not counts or not own:
            continue

        def statistic(weights: Floats, own: Sequence[Floats] = own) -> Floats:
            means = [
                np.nanmean([coefficients(weights @ one, scale, (MAIN,))[:, 0] for one in some], axis=0)
                for some in (counts, own)
            ]
            return np.stack([*means, means[1] - means[0]], axis=1)

        found = bootstrap(statistic, len(grades.topics), resampling)
        rows.append((name, *(plain(found.value[at]) for at in (0, 1)), *_ends(found, 2)))
    return _frame(rows, {"judge": pl.String, "people": pl.Float64, "model": pl.Float64})


def _ratio(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[:, 0] / sums[:, 1])


def _ends(found: TopicEstimate, at: int | tuple[()]) -> tuple[float | None, float | None, float | None]:
    value, low, high = (plain(float(part[at])) for part in (found.value, found.low, found.high))
    return value, low, high


def _frame(
    rows: Sequence[tuple[object, ...]], before: Mapping[str, Any], after: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    ends = {"value": pl.Float64, "value_low": pl.Float64, "value_high": pl.Float64}
    return pl.DataFrame(rows, schema={**before, **ends, **(after or {})}, orient="row")


#: Sizes of the ensembles of the best models; one is the best model itself.
_BEST: Final = (1, 3, 5, 7, 11, 15)


def ensembles(grades: Grades) -> list[tuple[str, Codes]]:
    """The codes of each ensemble; none with fewer than two models.

    "best of k" is chosen topic by topic: by α (ordinal) on all other topics, so that no model is chosen for the pairs
    on which the ensemble is then measured. Of two grades that are as frequent, and of an even number of models, the
    lower one counts.
    """
    judges = len(grades.judges)
    if judges < 2:
        return []
    found = [("majority of all", _majority(grades.given, len(grades.scale))), ("median of all", median(grades.given))]
    order = _orders(grades)
    for k in (size for size in _BEST if size < judges):
        codes = np.full(len(grades.topic), -1, dtype=np.int64)
        for topic in range(len(grades.topics)):
            own = np.flatnonzero(grades.topic == topic)
            codes[own] = median(grades.given[np.ix_(own, order[topic, :k])])
        found.append(("best model, chosen on the other topics" if k == 1 else f"median of the best {k}", codes))
    return found


def ensembles_frame(grades: Grades, resampling: Resampling, correction: Correction) -> pl.DataFrame:
    """What ensembles add to the best single model."""
    voices = ensembles(grades)
    counts = [counted(grades, grades.reference, codes) for _, codes in voices]
    single = next((at for at, (name, _) in enumerate(voices) if name.startswith("best model")), None)

    def alphas(weights: Floats) -> Floats:
        alpha = np.stack([coefficients(weights @ c, grades.scale, (MAIN,))[:, 0] for c in counts], axis=1)
        gain = alpha - alpha[:, [single or 0]]
        return np.stack([alpha, gain], axis=2)

    rows = []
    if voices:
        found = bootstrap(alphas, len(grades.topics), resampling)
        gains = type(found)(*(part[:, 1] for part in found))
        others = [at for at in range(len(voices)) if at != single]
        p = two_sided(gains, len(grades.topics))
        corrected = dict(zip(others, correct([float(p[at]) for at in others], correction), strict=True))
        for at, (name, _) in enumerate(voices):
            kappa = coefficients(counts[at].sum(axis=0, keepdims=True), grades.scale, ("kappa",))[0, 0]
            alpha = [float(part[at, 0]) for part in found[:3]]
            gain = [None] * 4 if at == single else [*(float(part[at]) for part in gains[:3]), float(p[at])]
            rows.append((name, int(counts[at].sum()), float(kappa), *alpha, *gain, corrected.get(at)))
    numbers = ("kappa", "value", "value_low", "value_high", "gain", "gain_low", "gain_high", "p", "corrected")
    schema = {"ensemble": pl.String, "pairs": pl.Int64, **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _orders(grades: Grades) -> Codes:
    """By topic the models in order of their α on all other topics, the best first; shape (topics, models)."""
    columns = []
    for codes in grades.given.T:
        counts = counted(grades, grades.reference, codes)
        alpha = coefficients(counts.sum(axis=0) - counts, grades.scale, (MAIN,))[:, 0]
        columns.append(np.nan_to_num(alpha, nan=-np.inf))
    return np.argsort(-np.stack(columns, axis=1), axis=1, kind="stable")


def _majority(given: Codes, size: int) -> Codes:
    counts = np.stack([(given == code).sum(axis=1) for code in range(size)], axis=1)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)


def median(given: Codes) -> Codes:
    """The lower median of what was said; -1 where nobody said anything."""
    ordered = np.sort(given, axis=1)
    silent = (given < 0).sum(axis=1)
    said = given.shape[1] - silent
    place = np.clip(silent + (said - 1) // 2, 0, given.shape[1] - 1)
    return np.where(said > 0, np.take_along_axis(ordered, place[:, None], axis=1)[:, 0], -1)


#: The share of relevant documents that people want to have seen.
_WANTED: Final = 0.9


def choosing_frame(grades: Grades, code: int, resampling: Resampling) -> pl.DataFrame:
    """How a judge's grades order documents for people."""
    rows = []
    for name, codes in zip(grades.judges, grades.given.T, strict=True):
        counts = counted(grades, grades.reference, codes).reshape(len(grades.topics), len(grades.scale), -1)
        relevant, others = counts[:, code:].sum(axis=1), counts[:, :code].sum(axis=1)
        known = (relevant.sum(axis=1) > 0) & (others.sum(axis=1) > 0)
        lower = np.cumsum(others, axis=1) - others
        wins = (relevant * (lower + others / 2)).sum(axis=1)
        area = np.divide(
            wins, relevant.sum(axis=1) * others.sum(axis=1), out=np.zeros(len(wins)), where=known
        )  # fmt: skip

        counted_topics = known.astype(np.float64)

        def statistic(
            weights: Floats, area: Floats = area, relevant: Floats = relevant, known: Floats = counted_topics
        ) -> Floats:
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = weights @ (area * known) / (weights @ known)
                missed = weights @ relevant[:, 0] / (weights @ relevant.sum(axis=1))
            return np.stack([mean, missed], axis=1)

        found = bootstrap(statistic, len(grades.topics), resampling)
        ends = [None if np.isnan(part[at]) else float(part[at]) for at in (0, 1) for part in found[:3]]
        rows.append((name, int(known.sum()), *ends, _effort(relevant[known], others[known])))
    numbers = ("value", "value_low", "value_high", "missed", "missed_low", "missed_high", "effort")
    schema = {"judge": pl.String, "topics": pl.Int64, **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _effort(relevant: Floats, others: Floats) -> float | None:
    """The mean share of documents seen until the wanted share of relevant ones is; equal grades in random order."""
    if not len(relevant):
        return None
    found = []
    for good, bad in zip(relevant[:, ::-1], others[:, ::-1], strict=True):
        wanted = _WANTED * good.sum()
        before = np.cumsum(good)
        at = int(np.searchsorted(before, wanted - 1e-9))
        inside = (wanted - (before[at] - good[at])) / good[at]
        seen = (good + bad)[:at].sum() + inside * (good + bad)[at]
        found.append(seen / (good + bad).sum())
    return float(np.mean(found))

"""Several models as one: the majority, the median, and the median of the best k, chosen on other topics."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from truerank.audits.assessors.agreeing import MAIN, coefficients, counted
from truerank.audits.assessors.bootstrapping import bootstrap, two_sided
from truerank.audits.assessors.grades import Codes, Grades
from truerank.judging.coefficients import Floats
from truerank.measures.significance import Correction, correct
from truerank.options import Resampling

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
    found = [("majority of all", _majority(grades.given, len(grades.scale))), ("median of all", _median(grades.given))]
    order = _orders(grades)
    for k in (size for size in _BEST if size < judges):
        codes = np.full(len(grades.topic), -1, dtype=np.int64)
        for topic in range(len(grades.topics)):
            own = np.flatnonzero(grades.topic == topic)
            codes[own] = _median(grades.given[np.ix_(own, order[topic, :k])])
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
    numbers = ("kappa", "value", "low", "high", "gain", "gain_low", "gain_high", "p", "corrected")
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


def _median(given: Codes) -> Codes:
    """The lower median of what was said; -1 where nobody said anything."""
    ordered = np.sort(given, axis=1)
    silent = (given < 0).sum(axis=1)
    said = given.shape[1] - silent
    place = np.clip(silent + (said - 1) // 2, 0, given.shape[1] - 1)
    return np.where(said > 0, np.take_along_axis(ordered, place[:, None], axis=1)[:, 0], -1)

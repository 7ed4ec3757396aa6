"""How many independent judges a panel of models amounts to: judges that err together are fewer than they look."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl

from truerank.arrays import Floats
from truerank.audits.assessors.agreement import MAIN, bootstrap, coefficients, counted, median, two_sided
from truerank.audits.assessors.grades import Grades
from truerank.core.plain import plain
from truerank.measures.significance import Correction, correct
from truerank.options import Resampling

#: From so many models on, they are a panel.
FEWEST_JUDGES: Final = 3
#: What counts as an error, in words; the first one decides.
ERRORS: Final = {
    "equal": "model minus people, at equal grades of people",
    "signed": "model minus people",
    "size": "distance of model and people",
}
_FAMILY: Final = re.compile(r"[^-_/.:@\s]+")


def judge_families(judges: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """The family of each model: the one that was given, or else its name as far as the first of - _ / . : @."""
    first = {judge: _FAMILY.match(judge) for judge in judges}
    return {judge: known.get(judge) or (found[0] if found else judge) for judge, found in first.items()}


def panel_frame(grades: Grades, resampling: Resampling) -> pl.DataFrame:
    """For each kind of error: the mean correlation of two judges' errors, and how many independent judges that makes.

    At equal grades of people, judges that err independently have a correlation of 0. The other two kinds have a part
    of people's grade in every error: a weak judge is too low where people's grade is high, as any weak judge is.
    Source: Kish (1965), Survey Sampling, section 5.4 (the design effect 1 + (n - 1) r).
    """
    rows = []
    for kind in ERRORS if len(grades.judges) >= FEWEST_JUDGES else ():
        moments = _moments(grades, kind)

        def statistic(weights: Floats, moments: Floats = moments) -> Floats:
            means, judges = _mean_correlation(_correlations(weights, moments))
            return np.stack([means, effective(judges, means)], axis=1)

        found = bootstrap(statistic, len(grades.topics), resampling)
        ends = [None if np.isnan(part[at]) else float(part[at]) for at in (0, 1) for part in found[:3]]
        rows.append((kind, len(grades.judges), len(grades.reference), *ends))
    numbers = ("value", "value_low", "value_high", "effective", "effective_low", "effective_high")
    schema = {"errors": pl.String, "judges": pl.Int64, "pairs": pl.Int64, **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def left_out_frame(
    grades: Grades, families: Mapping[str, str], resampling: Resampling, correction: Correction
) -> pl.DataFrame:
    """The panel's α (ordinal) with people, whole (an empty family) and with each family of models left out.

    The panel's grade is the lower median of its judges'. `gain` is α without the family less α of all; `within` is
    the mean correlation of the errors of two judges of the family, `effective` the independent judges that are left.
    """
    numbers = ("value", "value_low", "value_high", "gain", "gain_low", "gain_high", "p", "corrected", "within")
    schema = {"family": pl.String, "judges": pl.Int64, **dict.fromkeys((*numbers, "effective"), pl.Float64)}
    member = np.array([families[judge] for judge in grades.judges])
    names = [name for name in dict.fromkeys(member.tolist()) if (member != name).any()]
    if len(member) < FEWEST_JUDGES or not names:
        return pl.DataFrame(schema=schema)
    kept = [np.ones(len(member), dtype=bool), *(member != name for name in names)]
    counts = [counted(grades, grades.reference, median(grades.given[:, own])) for own in kept]

    def alphas(weights: Floats) -> Floats:
        alpha = np.stack([coefficients(weights @ c, grades.scale, (MAIN,))[:, 0] for c in counts], axis=1)
        return np.stack([alpha, alpha - alpha[:, :1]], axis=2)

    found = bootstrap(alphas, len(grades.topics), resampling)
    p = two_sided(type(found)(*(part[:, 1] for part in found)), len(grades.topics))
    corrected = [None, *correct([plain(one) for one in p[1:]], correction)]
    correlations = _correlations(np.ones((1, len(grades.topics))), _moments(grades, "equal"))
    rows = []
    for at, (name, own) in enumerate(zip(("", *names), kept, strict=True)):
        alpha, gain = ([plain(part[at, side]) for part in found[:3]] for side in (0, 1))
        left, judges = _mean_correlation(correlations[:, own][:, :, own])
        within = _mean_correlation(correlations[:, ~own][:, :, ~own])[0][0] if (~own).any() else np.nan
        changes = [*gain, plain(p[at])] if at else [None] * 4
        ends = plain(within), plain(effective(judges, left)[0])
        rows.append((name, int(own.sum()), *alpha, *changes, corrected[at], *ends))
    return pl.DataFrame(rows, schema=schema, orient="row")


def effective(judges: Floats, correlation: Floats) -> Floats:
    """How many independent judges as many correlated ones amount to: n / (1 + (n - 1) r), and never more than n."""
    return np.asarray(judges / np.maximum(1.0, 1.0 + (judges - 1.0) * correlation))


def _moments(grades: Grades, kind: str) -> Floats:
    """Sums by topic over the pairs that two judges both graded, and by people's grade where that is held fixed.

    Shape (strata, topics, 4, judges, judges): how many pairs, the error of the first judge, the product of both
    errors, the square of the first one's.
    """
    places = np.array(grades.scale, dtype=np.float64)
    known = (grades.given >= 0).astype(np.float64)
    error = np.where(grades.given >= 0, places[grades.given] - places[grades.reference][:, None], 0.0)
    if kind == "size":
        error = np.abs(error)
    stratum = grades.reference if kind == "equal" else np.zeros_like(grades.reference)
    sums = np.zeros((int(stratum.max(initial=0)) + 1, len(grades.topics), 4, known.shape[1], known.shape[1]))
    cell = stratum * len(grades.topics) + grades.topic
    order = np.argsort(cell, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(cell[order])) + 1):
        e, k = error[own], known[own]
        sums[stratum[own[0]], grades.topic[own[0]]] = k.T @ k, e.T @ k, e.T @ e, (e**2).T @ k
    return sums


def _correlations(weights: Floats, moments: Floats) -> Floats:
    """The correlations of each two judges' errors within strata, shape (resamples, judges, judges)."""
    judges = moments.shape[-1]
    shape = (len(weights), judges, judges)
    product, first, second = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for sums in moments:
        n, e, p, q = np.moveaxis((weights @ sums.reshape(len(sums), -1)).reshape(len(weights), 4, judges, judges), 1, 0)
        other = n.transpose(0, 2, 1), e.transpose(0, 2, 1), q.transpose(0, 2, 1)
        least = np.maximum(n, 1.0)
        product += p - e * other[1] / least
        first += q - e**2 / least
        second += other[2] - other[1] ** 2 / least
    # Squares that should cancel leave a rest of rounding.
    spread = np.where((first > 1e-9) & (second > 1e-9), first * second, np.nan)
    return np.asarray(product / np.sqrt(spread))


def _mean_correlation(correlations: Floats) -> tuple[Floats, Floats]:
    """The mean over pairs of judges where it is defined, and how many judges have one that is."""
    judges = correlations.shape[-1]
    pairs = correlations[:, *np.triu_indices(judges, 1)]
    defined = np.isfinite(pairs)
    number = defined.sum(axis=1)
    mean = np.where(number > 0, np.where(defined, pairs, 0.0).sum(axis=1) / np.maximum(number, 1), np.nan)
    off = np.isfinite(correlations) & ~np.eye(judges, dtype=bool)
    return mean, off.any(axis=2).sum(axis=1).astype(np.float64)

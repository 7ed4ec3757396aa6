"""How well grades choose what people judge next."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from truerank.audits.assessors.agreeing import counted
from truerank.audits.assessors.bootstrapping import bootstrap
from truerank.audits.assessors.grades import Grades
from truerank.judging.coefficients import Floats
from truerank.options import Resampling

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
    numbers = ("value", "low", "high", "missed", "missed_low", "missed_high", "effort")
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

"""What `truerank survivorship evaluate` found: means by depth and system, tests, trends, the order of the systems."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.measures import (
    correct,
    detectable_difference,
    difference_interval,
    difference_test,
    lower_is_better,
    mean_interval,
)
from truerank.measures.orders import OrderChanges, order_changes
from truerank.measures.significance import Correction
from truerank.options import Confidence, Options, Scoring
from truerank.reports.results import Result

#: The tests of a depth against the full set, in words.
TESTS: Final[dict[str, str]] = {
    "welch": "Welch's unpaired t-test",
    "equal-variance-t": "Student's unpaired t-test with one variance",
    "nested": "t-test of the difference that allows for the queries that both sets have",
}


#: `scores.parquet`: one value per set of judgments ("all" or "first"), depth, run, measure and query; queries that the
#: depth lacks, or that were left out, have no row.
SCORE_SCHEMA: Final[dict[str, Any]] = {
    "judgments": pl.String,
    "depth": pl.String,
    "run": pl.String,
    "measure": pl.String,
    "topic_id": pl.String,
    "value": pl.Float64,
}
#: How the two sets of judgments are called.
VARIANTS: Final[Mapping[str, str]] = {"all": "all judgments", "first": "first judgment of each query only"}


@dataclass(frozen=True)
class EvaluateOptions(Options):
    """How depths are compared with the full set.

    Attributes:
        significance: the test: welch and equal-variance-t take the two sets of queries as if they shared none, as the
            paper does; nested allows for the shallow set being a part of the full one.
        correction: of the p-values.
        family: what is corrected for: the comparisons of one system (its depths), of one measure (all systems and
            depths), or of all measures together.
        confidence: of intervals; a corrected p below 1 − confidence is significant.
    """

    significance: Literal["welch", "equal-variance-t", "nested"] = "welch"
    correction: Correction = "bonferroni"
    family: Literal["system", "measure", "all"] = "measure"
    confidence: Confidence = 0.95

    @property
    def alpha(self) -> float:
        """The level: a corrected p below it is significant."""
        return round(1 - self.confidence, 12)

    def sentence(self) -> str:
        """The test and its correction in words."""
        families = {
            "system": "the depths of each system",
            "measure": "all depths and systems of each measure",
            "all": "all depths, systems and measures together",
        }
        corrected = "not corrected"
        if self.correction != "none":
            corrected = f"corrected ({self.correction}) for {families[self.family]}"
        return f"* differs from the full set: {TESTS[self.significance]}, two-sided, {corrected}, p < {self.alpha:g}."


class Contrast(NamedTuple):
    """A weighted sum of the means at several depths, with its interval and the p of its being zero.

    The interval and p are None where there are too few queries, or no spread, to tell.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    #: The smallest true value that the test finds with a power of 0.8 at the level of the interval.
    detectable: float | None = None

    @property
    def known(self) -> bool:
        """Whether it has an interval that does not hold zero."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def nested_contrast(scores: Floats, weights: Sequence[float] | Floats, confidence: float = 0.95) -> Contrast:
    """A weighted sum of means over sets of queries that overlap, by linearisation.

    Queries are the sampling units. Each adds to the sum what it adds to the means of the sets that it is in; the
    variance is that of these additions, so that what two sets have in common cancels out.

    Args:
        scores: shape (depths, queries), NaN where a depth lacks the query.
        weights: of the means, shape (depths,).

    Source: Woodruff, A simple method for approximating the variance of a complicated estimate (JASA 1971).
    """
    there = ~np.isnan(scores)
    sizes = there.sum(axis=1)
    factors = np.asarray(weights, np.float64)
    used = factors != 0
    if not len(sizes) or (sizes[used] == 0).any():
        return Contrast(math.nan)
    means = np.where(there, scores, 0.0).sum(axis=1) / np.maximum(1, sizes)
    value = float(factors[used] @ means[used])
    smallest = int(sizes[used].min())
    if smallest < 2:
        return Contrast(value)
    added = np.where(there, scores - means[:, None], 0.0) * (factors / np.maximum(1, sizes))[:, None]
    queries = int(there[used].any(axis=0).sum())
    error = math.sqrt(float(np.square(added.sum(axis=0)).sum()) * queries / (queries - 1))
    if error <= 1e-12 * max(1.0, float(np.abs(means).max())):
        return Contrast(value, value, value, 1.0 if abs(value) < 1e-12 else None)
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, smallest - 1)) * error
    p = 2 * float(scipy.stats.t.sf(abs(value) / error, smallest - 1))
    # As for a paired test over the smallest set of queries, whose freedom the interval has, too.
    reach = detectable_difference(smallest, error * math.sqrt(smallest), alpha=1 - confidence)
    return Contrast(value, value - half, value + half, p, reach)


def slope_weights(places: Sequence[float]) -> Floats:
    """The weights that make the slope of a straight line through means out of them.

    Args:
        places: where the means stand, shape (depths,), not all the same.
    """
    centred = np.asarray(places, np.float64) - float(np.mean(places))
    total = float(np.square(centred).sum())
    return centred / total if total else centred


@dataclass(frozen=True, eq=False)
class DepthScores:
    """Scores by one set of judgments.

    Attributes:
        values: shape (systems, measures, depths, queries), NaN where a depth lacks the query.
        qrels: judgments by depth.
        queries: queries by depth.
        present: by system, how many of them the run has.
        together: how many all runs have.
    """

    values: NDArray[np.float64] = field(repr=False)
    qrels: tuple[int, ...]
    queries: tuple[int, ...]
    present: Mapping[str, tuple[int, ...]]
    together: tuple[int, ...]


class DepthCell(NamedTuple):
    """One system at one depth, compared with the full set.

    `low` and `high` are the ends of the mean's interval; `difference` is this depth minus the full set, None for the
    full set itself; `p` is before and `corrected` after the correction.
    """

    judgments: str
    measure: str
    system: str
    depth: str
    n: int
    mean: float | None
    low: float | None
    high: float | None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None
    corrected: float | None = None
    significant: bool = False


class Trend(NamedTuple):
    """How a system's mean moves with depth.

    `slope` is the change of the mean for each further document shown; `change` is the full set minus the shallowest
    one. Both intervals allow for queries that the depths share. The relative changes name their bases.
    """

    judgments: str
    measure: str
    system: str
    slope: Contrast
    change: Contrast
    relative_to_full: float | None
    relative_to_shallowest: float | None


@dataclass(frozen=True, eq=False, repr=False)
class DepthEvaluation(Result, shown_in="truerank.audits.survivorship.evaluation_report"):
    """Scores by annotation depth.

    Attributes:
        name: of the log that the judgments come from.
        labels: the depths, the full set last.
        places: where they stand on an axis.
        systems: names of the runs.
        measures: as they are spelled.
        topics: ids of the queries.
        variants: scores by "all" judgments and by the "first" of each query.
        options: how depths are compared.
        scoring: how runs were scored.
        derived: the first judgments were told from the depths at which judgments appear.
        strays: judgments of a depth that the full set lacks.
        unknown: by run, queries that no depth has.
        out: the folder that it was written to.
    """

    name: str
    labels: tuple[str, ...]
    places: tuple[float, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    topics: tuple[str, ...]
    variants: Mapping[str, DepthScores]
    options: EvaluateOptions
    scoring: Scoring = Scoring()
    derived: bool = False
    strays: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)
    out: Path | None = None

    @cached_property
    def cells(self) -> tuple[DepthCell, ...]:
        """Every system at every depth, by set of judgments, measure, system and depth."""
        raw = [
            cell
            for variant in self.variants
            for m in range(len(self.measures))
            for s in range(len(self.systems))
            for cell in self._compared(variant, m, s)
        ]
        families: dict[tuple[str, ...], list[int]] = {}
        for place, cell in enumerate(raw):
            if cell.difference is not None:
                families.setdefault(self._family(cell), []).append(place)
        for places in families.values():
            adjusted = correct([raw[place].p for place in places], self.options.correction)
            for place, p in zip(places, adjusted, strict=True):
                raw[place] = raw[place]._replace(corrected=p, significant=p is not None and p < self.options.alpha)
        return tuple(raw)

    @cached_property
    def trends(self) -> tuple[Trend, ...]:
        """How every system's mean moves with depth."""
        return tuple(
            self._trend(variant, m, s)
            for variant in self.variants
            for m in range(len(self.measures))
            for s in range(len(self.systems))
        )

    def cell(self, system: str, depth: str | int, measure: str | None = None, judgments: str = "all") -> DepthCell:
        """One of `cells`; the first measure where none is named."""
        wanted = (judgments, measure or self.measures[0], system, str(depth))
        return next(one for one in self.cells if (one.judgments, one.measure, one.system, one.depth) == wanted)

    @cached_property
    def orders(self) -> Mapping[tuple[str, str, str], OrderChanges]:
        """By set of judgments, measure and depth: the order of the systems there, and in the full set."""
        found = {}
        for variant in self.variants:
            for measure in self.measures:
                full = self._means(variant, measure, self.labels[-1])
                for label in self.labels[:-1]:
                    shallow = self._means(variant, measure, label)
                    if len(full) > 1 and set(shallow) == set(full):
                        found[variant, measure, label] = order_changes(
                            shallow,
                            full,
                            measure=measure,
                            ascending=lower_is_better(measure),
                            conditions=(f"depth {label}", "full set"),
                        )
        return found

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            "name": self.name,
            "depths": list(self.labels),
            "systems": list(self.systems),
            "measures": list(self.measures),
            "options": {
                "measures": list(self.measures),
                **{
                    name: getattr(self.options, name) for name in ("significance", "correction", "family", "confidence")
                },
                **self.scoring.json(),
            },
            "counts": {
                variant: {
                    "qrels": list(scores.qrels),
                    "queries": list(scores.queries),
                    "queries_in_all_runs": list(scores.together),
                    "queries_in_run": {name: list(there) for name, there in scores.present.items()},
                }
                for variant, scores in self.variants.items()
            },
            "cells": [one._asdict() for one in self.cells],
            "trends": [
                one._asdict() | {"slope": one.slope._asdict(), "change": one.change._asdict()} for one in self.trends
            ],
            "orders": [
                {
                    "judgments": variant,
                    "measure": measure,
                    "depth": label,
                    "swaps": [swap._asdict() for swap in found.swaps],
                    "tau": found.tau.tau,
                }
                for (variant, measure, label), found in self.orders.items()
            ],
            "first_judgments_derived": self.derived,
            "strays": self.strays,
            "unknown_queries": dict(self.unknown),
        }

    def frame(self) -> pl.DataFrame:
        """The scores as a long table, columns as in `SCORE_SCHEMA`."""
        parts = [pl.DataFrame(schema=SCORE_SCHEMA)]
        topics = pl.Series("topic_id", self.topics, dtype=pl.String)
        for variant, scores in self.variants.items():
            for d, label in enumerate(self.labels):
                for s, system in enumerate(self.systems):
                    for m, measure in enumerate(self.measures):
                        known = np.flatnonzero(~np.isnan(scores.values[s, m, d]))
                        texts = {"judgments": variant, "depth": label, "run": system, "measure": measure}
                        part = pl.DataFrame({"topic_id": topics.gather(known), "value": scores.values[s, m, d, known]})
                        literals = [pl.lit(value).alias(name) for name, value in texts.items()]
                        parts.append(part.with_columns(literals).select(list(SCORE_SCHEMA)))
        return pl.concat(parts)

    def _family(self, cell: DepthCell) -> tuple[str, ...]:
        parts = {"system": (cell.measure, cell.system), "measure": (cell.measure,), "all": ()}
        return (cell.judgments, *parts[self.options.family])

    def _compared(self, variant: str, m: int, s: int) -> Iterator[DepthCell]:
        layers = self.variants[variant].values[s, m]
        full = layers[-1][~np.isnan(layers[-1])]
        for place, label in enumerate(self.labels):
            own = layers[place][~np.isnan(layers[place])]
            mean = mean_interval(own, self.options.confidence)
            cell = DepthCell(variant, self.measures[m], self.systems[s], label, mean.n, *mean[1:])
            if place < len(self.labels) - 1 and len(own) and len(full):
                found = self._difference(layers, place, own, full)
                cell = cell._replace(
                    difference=found.value, difference_low=found.low, difference_high=found.high, p=found.p
                )
            yield cell

    def _difference(
        self, layers: NDArray[np.float64], place: int, own: NDArray[np.float64], full: NDArray[np.float64]
    ) -> Contrast:
        test, confidence = self.options.significance, self.options.confidence
        if test == "nested":
            weights = np.zeros(len(layers))
            weights[place], weights[-1] = 1.0, -1.0
            return nested_contrast(layers, weights, confidence)
        outcome = difference_test(own, full, test)
        interval = difference_interval(own, full, method=test, confidence=confidence)
        return Contrast(float(own.mean() - full.mean()), interval.low, interval.high, outcome.p)

    def _trend(self, variant: str, m: int, s: int) -> Trend:
        layers = self.variants[variant].values[s, m]
        confidence = self.options.confidence
        slope = nested_contrast(layers, slope_weights(self.places), confidence)
        ends = np.zeros(len(layers))
        ends[0], ends[-1] = -1.0, 1.0
        change = nested_contrast(layers, ends, confidence)
        shallow = self.cell(self.systems[s], self.labels[0], self.measures[m], variant).mean
        full = self.cell(self.systems[s], self.labels[-1], self.measures[m], variant).mean
        known = shallow is not None and full is not None
        return Trend(
            variant,
            self.measures[m],
            self.systems[s],
            slope,
            change,
            (full - shallow) / full if known and full else None,  # type: ignore[operator]
            (full - shallow) / shallow if known and shallow else None,  # type: ignore[operator]
        )

    def _means(self, variant: str, measure: str, label: str) -> dict[str, float]:
        means = {name: self.cell(name, label, measure, variant).mean for name in self.systems}
        return {name: mean for name, mean in means.items() if mean is not None}

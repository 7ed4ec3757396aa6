"""What a claim becomes with grades of unjudged documents: at given rates, and in the worst case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.claims.claim import Claim
from truerank.claims.judged_results import KEYS, JudgedResults
from truerank.measures.grammar import parse_measures

Floats = NDArray[np.float64]
#: Draws of the grades, and rows of runs that are scored at once at most.
_DRAWS, _ROWS = 20, 400_000
_SEED: Final = 11
#: Draws of topics for the interval of a rate.
_RESAMPLES: Final = 40
#: Up to so many unjudged documents of a topic every number of relevant ones is tried.
_EVERY_COUNT: Final = 20
#: Steps of the search for the shift that gives a rate.
_HALVINGS: Final = 40


class UnjudgedBounds(NamedTuple):
    """The least and the largest mean difference that grades of unjudged documents can give, and their number."""

    low: float
    high: float
    unjudged: int


class RatePoint(NamedTuple):
    """The difference where these shares of the unjudged results are relevant, with its interval."""

    system: float
    baseline: float
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class DrawnGrades:
    """The difference of a claim with grades that are drawn for its unjudged documents.

    Each unjudged document is drawn once and has its grade in both runs. All rates use the same random numbers, so that
    the difference changes with the rates alone.

    Attributes:
        results: of both runs.
        rates: how likely each row of them is relevant.
        open: which rows are drawn.
    """

    results: JudgedResults
    rates: Floats
    open: NDArray[np.bool_]

    def differences(self, rates: Floats) -> Floats:
        """The differences by topic, a mean over draws, shape (topics,).

        Args:
            rates: of the drawn rows, shape (drawn rows,).
        """
        claim, draws = self.results.claim, self._draws
        hit = self._chance < rates[:, None]
        rows, copies = np.nonzero(hit)
        keys = self._keys
        drawn = pl.DataFrame(
            {"topic_id": keys["topic_id"].gather(rows), "doc_id": keys["doc_id"].gather(rows), "copy": copies},
            schema={"topic_id": pl.String, "doc_id": pl.String, "copy": pl.Int64},
        )
        added = drawn.select(
            _copied(), "doc_id", pl.lit(self._grade).cast(self._judged.schema["relevance"]).alias("relevance")
        )
        kept = self._judged.join(added, on=KEYS, how="anti")
        found = claim.scored(pl.concat([kept, added]), runs=self._runs)
        values = claim.differences(found)
        place = {topic: at for at, topic in enumerate(found.topics)}
        order = np.array([[place[f"{copy} {topic}"] for copy in range(draws)] for topic in claim.evaluation.topics])
        mean: Floats = values[order].mean(axis=1)
        return mean

    def at(self, system: float | None, baseline: float | None) -> Floats:
        """The differences by topic where these shares of each run's unjudged documents are relevant; None: as fitted.

        Documents of both runs have a rate between the two.
        """
        fitted = self.rates[self.open]
        own = [self.results.within(run)[self.open] for run in self.results.pair]
        ends = [shifted(fitted, mine, rate) for mine, rate in zip(own, (system, baseline), strict=True)]
        both = (ends[0] + ends[1]) / 2
        return self.differences(np.where(own[0] & own[1], both, np.where(own[0], ends[0], ends[1])))

    def point(self, system: float, baseline: float) -> RatePoint:
        """The difference at two rates."""
        claim = self.results.claim
        found = claim.estimate(self.at(system, baseline), "")
        return RatePoint(system, baseline, found.value or 0.0, found.low, found.high)

    def fitted(self, run: str, rates: Floats | None = None) -> float:
        """The mean rate of one run's drawn rows; 0 where it has none."""
        own = self.results.within(run) & self.open
        return float((self.rates if rates is None else rates)[own].mean()) if own.any() else 0.0

    def fitted_interval(self, run: str) -> tuple[float, float]:
        """The interval of `fitted`, where topics are drawn again."""
        generator = np.random.default_rng(_SEED)
        size = int(self.results.topics.max(initial=-1)) + 1
        means = [
            self.fitted(run, self.results.rates(np.bincount(generator.integers(0, size, size), minlength=size)))
            for _ in range(_RESAMPLES)
        ]
        tail = (1 - self.results.claim.confidence) / 2
        low, high = np.quantile(means, [tail, 1 - tail])
        return float(low), float(high)

    @cached_property
    def _keys(self) -> pl.DataFrame:
        return self.results.rows.filter(pl.Series(self.open)).select(KEYS)

    @cached_property
    def _runs(self) -> dict[str, pl.DataFrame]:
        return {name: self._copies(_cut(run, self.results)) for name, run in self.results.claim.pair.items()}

    @cached_property
    def _judged(self) -> pl.DataFrame:
        return self._copies(self.results.claim.qrels.select(*KEYS, "relevance"))

    @cached_property
    def _draws(self) -> int:
        rows = sum(len(_cut(run, self.results)) for run in self.results.claim.pair.values())
        return max(1, min(_DRAWS, _ROWS // max(1, rows)))

    @cached_property
    def _chance(self) -> Floats:
        # One number for each row, shifted for each copy: every row is drawn as often as its rate says.
        first = np.random.default_rng(_SEED).random((int(self.open.sum()), 1))
        order = np.random.default_rng(_SEED + 1).permuted(np.tile(np.arange(self._draws), (len(first), 1)), axis=1)
        return (order + first) / self._draws

    @property
    def _grade(self) -> int:
        claim = self.results.claim
        known = claim.qrels.filter(pl.col("relevance") >= claim.scoring.rel)["relevance"]
        return int(known.mode().min()) if len(known) else max(1, claim.scoring.rel)  # type: ignore[arg-type]

    def _copies(self, frame: pl.DataFrame) -> pl.DataFrame:
        numbers = pl.DataFrame({"copy": range(self._draws)}, schema={"copy": pl.Int64})
        return numbers.join(frame, how="cross", maintain_order="left_right").with_columns(_copied()).drop("copy")


def _copied() -> pl.Expr:
    return pl.format("{} {}", "copy", "topic_id").alias("topic_id")


def _cut(run: pl.DataFrame, results: JudgedResults) -> pl.DataFrame:
    """The run on judged topics; as far as a measure with a cutoff looks, whatever the order of ties."""
    found = run.join(results.claim.qrels.select("topic_id").unique(), on="topic_id", how="semi")
    if "cutoff" not in parse_measures(results.claim.measure)[0].params:
        return found
    first = pl.col("score").cast(pl.Float32).rank("min", descending=True).over("topic_id") <= results.depth
    return found.filter(first | (pl.col("rank") <= results.depth))


def shifted(rates: Floats, own: NDArray[np.bool_], mean: float | None) -> Floats:
    """Rates of the same order whose mean over one run's own is another one: their odds times a constant."""
    if mean is None or not own.any():
        return rates
    if mean <= 0 or mean >= 1:
        return np.full(len(rates), float(np.clip(mean, 0, 1)))
    held = np.clip(rates, 1e-9, 1 - 1e-9)
    logits, low, high = np.log(held / (1 - held)), -40.0, 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float((1 / (1 + np.exp(-logits[own] - middle))).mean()) < mean:
            low = middle
        else:
            high = middle
    found: Floats = 1 / (1 + np.exp(-logits - low))
    return found


def zero_between(points: Sequence[RatePoint], rate: Sequence[float]) -> float | None:
    """The rate at which the difference changes its sign, between points by ascending rate; None where it does not."""
    for at in range(1, len(points)):
        before, after = points[at - 1].value, points[at].value
        if (before > 0) != (after > 0):
            return float(rate[at - 1] + (rate[at] - rate[at - 1]) * before / (before - after))
    return None


def unjudged_bounds(claim: Claim, results: JudgedResults) -> UnjudgedBounds:
    """The least and the largest difference of the claim, whatever the unjudged documents are.

    Each unjudged document among the first results is not relevant, or has the highest grade of the judgments. Of one
    topic and a number n of relevant ones among them, the n that favour one run most give its extreme. Every n up to 20
    is tried, then steps of a fifth. For measures that weigh a document by its rank and divide by what the judgments of
    the topic allow (P, R, nDCG) that is the exact extreme up to 20 documents; otherwise it is one that can be reached.

    Source: Manski (1990), bounds without assumptions.
    """
    rows = results.rows.filter(pl.Series(results.open)).select(KEYS)
    gain = [
        np.where(results.within(run), 1 / np.log2(results.ranks[run] + 1), 0.0)[results.open] for run in results.pair
    ]
    unjudged = rows.with_columns(pl.Series("benefit", gain[0] - gain[1]))
    grade = max(int(claim.qrels["relevance"].max() or 1), claim.scoring.rel)  # type: ignore[arg-type]
    ends = []
    for sign in (-1, 1):
        ordered = unjudged.sort(
            "topic_id", pl.col("benefit") * sign, "doc_id", descending=[False, True, False], maintain_order=True
        )  # fmt: skip
        numbered = ordered.with_columns((pl.int_range(pl.len()).over("topic_id") + 1).alias("place"))
        extreme = sign * claim.differences(claim.scored())
        for count in _counts(int(numbered["place"].max() or 0)):  # type: ignore[arg-type]
            some = numbered.filter(pl.col("place") <= count)
            added = some.select(*KEYS, pl.lit(grade).cast(claim.qrels.schema["relevance"]).alias("relevance"))
            values = sign * claim.differences(claim.scored(pl.concat([claim.qrels, added])))
            # A topic without so many unjudged documents keeps what fewer gave.
            extreme = np.fmax(extreme, values)
        ends.append(sign * float(np.nanmean(extreme)))
    return UnjudgedBounds(ends[0], ends[1], len(unjudged))


def _counts(most: int) -> list[int]:
    """1, 2, … up to 20, then in steps of a fifth, up to the largest number."""
    found = list(range(1, min(most, _EVERY_COUNT) + 1))
    while found and found[-1] < most:
        found.append(min(most, found[-1] + found[-1] // 5))
    return found

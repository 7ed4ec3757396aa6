"""The results of both runs with their judgments: which were judged, and how often those of their ranks are relevant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.reusability.pools.depth import first_documents
from truerank.claims.claim import Claim
from truerank.measures import difference_interval
from truerank.measures.grammar import parse_measures

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
KEYS: Final = ["topic_id", "doc_id"]
#: Ranks that are looked at; also where the measure has no cutoff.
DEEPEST: Final = 100
#: The rank of a document that a run does not have so far up.
ABSENT: Final = 2 * DEEPEST
#: Rows that the rates are fitted to at most.
_ROWS: Final = 100_000
_STEPS, _SMALLEST = 30, 1e-7
#: The prior of the slopes, in standard deviations of 1 on the logit scale.
_PRIOR: Final = 1.0
#: From this share of judged results on, a run counts as judged without gaps at a rank.
_WHOLE: Final = 0.9
#: Strata of ranks whose rates are shown: first and last.
STRATA: Final = ((1, 3), (4, 10), (11, 30), (31, DEEPEST))


class JudgedShares(NamedTuple):
    """How much of each run was judged, apart from what is known to be relevant.

    Attributes:
        system: of the system's first results that are not known to be relevant, the share that is judged.
        baseline: of the baseline's.
        low: the lower end of the interval of the difference; None where too few topics tell it.
        high: the upper end.
    """

    system: float
    baseline: float
    low: float | None
    high: float | None

    @property
    def uneven(self) -> bool:
        """Whether the shares differ beyond chance."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def cutoff_of(claim: Claim) -> int:
    """The ranks that the measure of the claim looks at, at most 100."""
    cutoff = parse_measures(claim.measure)[0].params.get("cutoff") or claim.scoring.depth or DEEPEST
    return min(int(cutoff), DEEPEST)


@dataclass(frozen=True, eq=False)
class JudgedResults:
    """The first results of both runs on judged topics.

    Attributes:
        claim: the claim.
        depth: the ranks that the measure looks at.
        rows: topic_id, doc_id, and relevance, null where it is not judged.
        ranks: of each row in each run of the claim, `ABSENT` beyond the ranks that are looked at, shape (rows,).
        whole_depths: down to which rank nearly all results of each run are judged.
    """

    claim: Claim
    depth: int
    rows: pl.DataFrame
    ranks: Mapping[str, Ints]
    whole_depths: Mapping[str, int]

    @property
    def pair(self) -> tuple[str, str]:
        """The system and the baseline."""
        return self.claim.system, self.claim.baseline

    def within(self, run: str) -> Flags:
        """Which rows the measure looks at in one run."""
        found: Flags = self.ranks[run] <= self.depth
        return found

    @cached_property
    def judged(self) -> Flags:
        """Which rows are judged."""
        return self.rows["relevance"].is_not_null().to_numpy()

    @cached_property
    def relevant(self) -> Flags:
        """Which rows are known to be relevant."""
        return (self.rows["relevance"].fill_null(-1) >= self.claim.scoring.rel).to_numpy()

    @cached_property
    def open(self) -> Flags:
        """Which rows are unjudged, and looked at by the measure in either run."""
        found: Flags = ~self.judged & (self.within(self.claim.system) | self.within(self.claim.baseline))
        return found

    @cached_property
    def topics(self) -> Ints:
        """The number of each row's topic."""
        return self.rows["topic_id"].rank("dense").to_numpy().astype(np.int64) - 1

    @cached_property
    def shares(self) -> JudgedShares:
        """How much of both runs was judged, apart from what is known to be relevant."""
        found = [self._share(run) for run in self.pair]
        means = [float(np.nanmean(share)) if (~np.isnan(share)).any() else 0.0 for share in found]
        gap = found[0] - found[1]
        gap = gap[~np.isnan(gap)]
        ends = difference_interval(gap, np.zeros(len(gap)), confidence=self.claim.confidence)
        return JudgedShares(means[0], means[1], ends.low, ends.high)

    def _share(self, run: str) -> Floats:
        """By topic, the judged share of the first results of one run that are not known to be relevant."""
        kept, size = self.within(run) & ~self.relevant, int(self.topics.max(initial=-1)) + 1
        whole = np.bincount(self.topics[kept], minlength=size)
        judged = np.bincount(self.topics[kept & self.judged], minlength=size)
        found: Floats = np.divide(judged, whole, out=np.full(size, np.nan), where=whole > 0)
        return found

    def seen(self) -> list[dict[str, Any]]:
        """How many judged results are relevant, by run and stratum of ranks."""
        found = []
        for run in self.pair:
            for first, last in STRATA:
                own = (self.ranks[run] >= first) & (self.ranks[run] <= last)
                counts = {"results": own, "judged": own & self.judged, "relevant": own & self.relevant}
                named = {name: int(some.sum()) for name, some in counts.items()}
                found.append({"run": run, "from": first, "to": last, **named})
        return found

    def rates(self, drawn: Ints | None = None) -> Floats:
        """How likely each row is relevant by its ranks, as judged results have it, shape (rows,).

        A logistic curve over the logarithms of a document's ranks in both runs and, where there are others, of the mean
        and the best of theirs. A document that only one run has far up is thereby taken to be relevant as often as
        judged ones of such ranks are. Where some run is judged without gaps down to a rank, the curve rests on these
        results alone: of others those were judged that another run has far up, too.
        """
        features = self._features
        whole = np.zeros(len(self.rows), np.bool_)
        for run, depth in self.whole_depths.items():
            whole |= self.ranks[run] <= depth
        rows = np.flatnonzero(self.judged & whole if (self.relevant & whole).any() else self.judged)
        if len(rows) > _ROWS:
            rows = np.sort(np.random.default_rng(0).choice(rows, _ROWS, replace=False))
        weights = np.ones(len(rows)) if drawn is None else drawn[self.topics[rows]].astype(np.float64)
        slopes = _logistic(features[rows], self.relevant[rows].astype(np.float64), weights)
        found: Floats = 1 / (1 + np.exp(-features @ slopes))
        return found

    @cached_property
    def _features(self) -> Floats:
        columns = [np.ones(len(self.rows)), *(np.log2(self.ranks[run]) for run in self.pair)]
        others = [np.log2(ranks) for run, ranks in self.ranks.items() if run not in self.pair]
        if others:
            columns += [np.mean(others, axis=0), np.min(others, axis=0)]
        return np.column_stack(columns)


def _logistic(features: Floats, outcomes: Floats, weights: Floats) -> Floats:
    """The slopes of a logistic regression with a normal prior, by Newton's method; the first column is the constant."""
    slopes, prior = np.zeros(features.shape[1]), np.diag([1e-3, *[_PRIOR] * (features.shape[1] - 1)])

    def loss(tried: Floats) -> float:
        logits = features @ tried
        fit = float((weights * (np.logaddexp(0, logits) - outcomes * logits)).sum())
        return fit + float(tried @ prior @ tried) / 2

    best = loss(slopes)
    for _ in range(_STEPS):
        fitted = 1 / (1 + np.exp(-np.clip(features @ slopes, -30, 30)))
        slope = features.T @ (weights * (outcomes - fitted)) - prior @ slopes
        step = np.linalg.solve((features.T * (weights * fitted * (1 - fitted))) @ features + prior, slope)
        # Half a step is taken where a whole one overshoots.
        while (value := loss(slopes + step)) > best and float(np.abs(step).max()) > _SMALLEST:
            step = step / 2
        slopes, best = slopes + step, value
        if float(np.abs(step).max()) <= _SMALLEST:
            break
    return slopes


@lru_cache(maxsize=1)  # Two questions of one claim look at it.
def judged_results(claim: Claim) -> JudgedResults:
    """The first results of both runs of a claim."""
    topics = claim.qrels.select("topic_id").unique()
    first = {name: first_documents(run, DEEPEST).join(topics, on="topic_id", how="semi")
             for name, run in claim.runs.items()}  # fmt: skip
    rows = pl.concat([first[name].select(KEYS) for name in claim.pair]).unique().sort(KEYS)
    ranks = {
        name: rows.join(found, on=KEYS, how="left", maintain_order="left")["place"].fill_null(ABSENT).to_numpy()
        for name, found in first.items()
    }
    grades = claim.qrels.filter(pl.col("relevance") >= 0).select(*KEYS, "relevance")
    rows = rows.join(grades, on=KEYS, how="left", maintain_order="left")
    whole = {name: _whole_depth(found, grades) for name, found in first.items()}
    return JudgedResults(claim, cutoff_of(claim), rows, ranks, whole)


def _whole_depth(first: pl.DataFrame, grades: pl.DataFrame) -> int:
    """Down to which rank nearly all results of a run are judged."""
    every, judged = (
        np.bincount(part["place"].to_numpy(), minlength=DEEPEST + 1)[1:]
        for part in (first, first.join(grades, on=KEYS, how="semi"))
    )
    gaps = np.flatnonzero((judged < _WHOLE * every) | (every == 0))
    return int(gaps[0]) if len(gaps) else DEEPEST

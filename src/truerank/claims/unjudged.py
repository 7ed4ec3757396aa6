"""Unjudged documents: what was judged at which ranks, plausible grades of the rest, and what would turn the claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Flags, Floats, Ints
from truerank.audits.pool.pools import first_documents
from truerank.claims.claim import Claim, ClaimEstimate, became, signed
from truerank.claims.results import ClaimAnswer
from truerank.measures import difference_interval
from truerank.measures.equivalence import EquivalenceOptions
from truerank.measures.grammar import parse_measures
from truerank.measures.logistic import logistic_slopes, rates_of_mean
from truerank.measures.rankings import (
    among_first,
    on_topics,
)
from truerank.measures.regrading import NO_GRADE, RegradedPair
from truerank.measures.topic_lists import TopicLists
from truerank.text.printable import capital

KEYS: Final = ["topic_id", "doc_id"]
#: Ranks that are looked at; also where the measure has no cutoff.
DEEPEST: Final = 100
#: The rank of a document that a run does not have so far up.
ABSENT: Final = 2 * DEEPEST
#: Rows that the rates are fitted to at most.
_ROWS: Final = 100_000
#: From this share of judged results on, a run counts as judged without gaps at a rank.
_WHOLE: Final = 0.9


class JudgedShares(NamedTuple):
    """How much of each run was judged, apart from what is known to be relevant.

    Attributes:
        system: of the system's first results that are not known to be relevant, the share that is judged.
        baseline: of the baseline's.
        low: the lower end of the interval of the difference; None where too few topics tell it.
    """

    system: float
    baseline: float
    low: float | None
    high: float | None

    @property
    def uneven(self) -> bool:
        """Whether the shares differ by more than chance explains."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def cutoff_of(claim: Claim) -> int:
    """The ranks that the measure of the claim looks at, at most 100."""
    cutoff = parse_measures(claim.measure)[0].params.get("cutoff") or claim.scoring.depth or DEEPEST
    return min(int(cutoff), DEEPEST)


@dataclass(frozen=True, eq=False)
class JudgedResults:
    """The first results of both runs on judged topics.

    Attributes:
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
    def cut(self) -> dict[str, pl.DataFrame]:
        """The two runs on judged topics; as far as a measure with a cutoff looks, whatever the order of ties."""
        topics = self.claim.qrels["topic_id"].unique()
        runs = {name: on_topics(run, topics) for name, run in self.claim.pair.items()}
        params = parse_measures(self.claim.measure)[0].params
        # Unjudged results that are passed over bring up what is below.
        if "cutoff" not in params or params.get("judged_only"):
            return runs
        depth = self.depth
        if self.claim.equivalent:
            # And so do copies that are dropped, as many as a topic has.
            shown = pl.col("doc_id").replace(dict(self.claim.equivalent))
            dropped = (run.group_by("topic_id").agg(pl.len() - shown.n_unique()) for run in runs.values())
            depth += max(int(counts["len"].max() or 0) for counts in dropped)  # type: ignore[arg-type]
        return {
            name: run.filter(among_first(run, depth) | (TopicLists(run).places <= depth)) for name, run in runs.items()
        }

    def regraded(self, rows: Flags) -> RegradedPair:
        """Both runs, to be scored with other grades of some rows."""
        claim = self.claim
        same = EquivalenceOptions(equivalent=dict(claim.equivalent) or None)
        keys = self.rows.filter(pl.Series(rows)).select(KEYS)
        return RegradedPair(claim.qrels, self.cut, keys, claim.measure, claim.scoring, same, claim.evaluation.topics)

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

    def share_judged(self, run: str) -> float:
        """The judged share of the first results of one run."""
        return float((self.within(run) & self.judged).sum() / max(1, self.within(run).sum()))

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
        slopes = logistic_slopes(features[rows], self.relevant[rows].astype(np.float64), weights)
        found: Floats = 1 / (1 + np.exp(-features @ slopes))
        return found

    @cached_property
    def _features(self) -> Floats:
        columns = [np.ones(len(self.rows)), *(np.log2(self.ranks[run]) for run in self.pair)]
        others = [np.log2(ranks) for run, ranks in self.ranks.items() if run not in self.pair]
        if others:
            columns += [np.mean(others, axis=0), np.min(others, axis=0)]
        return np.column_stack(columns)


@lru_cache(maxsize=1)  # Two questions of one claim look at it.
def judged_results(claim: Claim) -> JudgedResults:
    """The first results of both runs of a claim."""
    topics = claim.qrels["topic_id"].unique()
    first = {name: first_documents(on_topics(run, topics), DEEPEST) for name, run in claim.runs.items()}
    rows = pl.concat([first[name].select(KEYS) for name in claim.pair]).unique().sort(KEYS)
    every = pl.concat([found.with_columns(run=pl.lit(number)) for number, found in enumerate(first.values())])
    met = every.join(rows.with_row_index("row"), on=KEYS)
    ranked = np.full((len(first), len(rows)), ABSENT)
    ranked[met["run"].to_numpy(), met["row"].to_numpy()] = met["place"].to_numpy()
    ranks = dict(zip(first, ranked, strict=True))
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


#: Draws of the grades; rows of runs in all draws, at most.
_DRAWS, _HELD = 20, 400_000
_SEED: Final = 11
#: Draws of topics for the interval of a rate.
_RESAMPLES: Final = 40
#: Up to so many unjudged documents of a topic every number of relevant ones is tried.
_EVERY_COUNT: Final = 20


class UnjudgedBounds(NamedTuple):
    """The least and the largest mean difference that grades of unjudged documents can give, and their number."""

    low: float
    high: float
    unjudged: int


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
        drawn = np.where(self._chance < rates[:, None], self._grade, NO_GRADE)
        mean: Floats = np.ascontiguousarray(self._graded.differences(drawn).T).mean(axis=1)
        return mean

    def at(self, system: float | None, baseline: float | None) -> Floats:
        """The differences by topic where these shares of each run's unjudged documents are relevant; None: as fitted.

        Documents of both runs have a rate between the two.
        """
        if (system, baseline) in self._values:
            return self._values[system, baseline]
        fitted = self.rates[self.open]
        own = [self.results.within(run)[self.open] for run in self.results.pair]
        ends = [rates_of_mean(fitted, mine, rate) for mine, rate in zip(own, (system, baseline), strict=True)]
        both = (ends[0] + ends[1]) / 2
        found = self.differences(np.where(own[0] & own[1], both, np.where(own[0], ends[0], ends[1])))
        return self._values.setdefault((system, baseline), found)

    @cached_property
    def _values(self) -> dict[tuple[float | None, float | None], Floats]:
        """What `at` gave: curves have points in common."""
        return {}

    def mean(self, system: float, baseline: float) -> float:
        """The mean difference at two rates."""
        return float(np.nanmean(self.at(system, baseline)))

    def level_at(self, beside: float) -> float | None:
        """The rate of the run behind at which both draw level, the leading one's being `beside`; None for no rate."""
        leads = (self.results.claim.base.value or 0.0) > 0
        values = [self.mean(*((beside, rate) if leads else (rate, beside))) for rate in _RATES]
        for at in range(1, len(values)):
            before, after = values[at - 1], values[at]
            if (before > 0) != (after > 0):
                return _RATES[at - 1] + (_RATES[at] - _RATES[at - 1]) * before / (before - after)
        return None

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
    def _graded(self) -> RegradedPair:
        return self.results.regraded(self.open)

    @cached_property
    def _draws(self) -> int:
        rows = sum(map(len, self.results.cut.values()))
        return max(1, min(_DRAWS, _HELD // max(1, rows)))

    @cached_property
    def _chance(self) -> Floats:
        # One number for each row, shifted for each copy: every row is drawn as often as its rate says.
        first = np.random.default_rng(_SEED).random((int(self.open.sum()), 1))
        order = np.random.default_rng(_SEED + 1).permuted(np.tile(np.arange(self._draws), (len(first), 1)), axis=1)
        return (order + first) / self._draws

    @cached_property
    def _grade(self) -> int:
        claim = self.results.claim
        known = claim.qrels.filter(pl.col("relevance") >= claim.scoring.rel)["relevance"]
        return int(known.mode().min()) if len(known) else max(1, claim.scoring.rel)  # type: ignore[arg-type]


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
    graded, ends = results.regraded(results.open), []
    whole = graded.differences(np.full((len(rows), 1), NO_GRADE))[0]
    for sign in (-1, 1):
        ordered = unjudged.sort(
            "topic_id", pl.col("benefit") * sign, "doc_id", descending=[False, True, False], maintain_order=True
        )  # fmt: skip
        numbered = ordered.with_columns((pl.int_range(pl.len()).over("topic_id") + 1).alias("place"))
        place = rows.join(numbered, on=KEYS, how="left", maintain_order="left")["place"].to_numpy()
        extreme = sign * whole
        counts = _counts(int(place.max(initial=0)))
        for some in (counts[at : at + _AT_ONCE] for at in range(0, len(counts), _AT_ONCE)):
            added = np.where(place[:, None] <= np.array(some), grade, NO_GRADE)
            # A topic without so many unjudged documents keeps what fewer gave.
            extreme = np.fmax(extreme, np.fmax.reduce(sign * graded.differences(added), axis=0))
        ends.append(sign * float(np.nanmean(extreme)))
    return UnjudgedBounds(ends[0], ends[1], len(unjudged))


def _counts(most: int) -> list[int]:
    """1, 2, … up to 20, then in steps of a fifth, up to the largest number."""
    found = list(range(1, min(most, _EVERY_COUNT) + 1))
    while found and found[-1] < most:
        found.append(min(most, found[-1] + found[-1] // 5))
    return found


#: Counts that are scored at once.
_AT_ONCE: Final = 20
#: Of the results that are not known to be relevant, so many have to be judged in one run to tell a rate.
ENOUGH_JUDGED: Final = 0.25
#: Rates at which the difference is looked at.
_RATES: Final = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
#: Those of both systems that a sentence names where no rate was seen.
_LIKELY: Final = (0.05, 0.1)
_QUESTION: Final = "unjudged"


def unjudged_answer(claim: Claim) -> ClaimAnswer:
    """(d) The claim with unjudged documents that are relevant at a plausible rate, and the rate that would turn it."""
    results = judged_results(claim)
    evidence, facts = _evidence(results)
    base = claim.base
    if not results.open.any():
        return ClaimAnswer(_QUESTION, "ALL JUDGED", evidence, base.effect, "Every document is judged.", facts=facts)
    bounds = unjudged_bounds(claim, results)
    facts |= {"bounds": bounds._asdict()}
    if max(results.shares.system, results.shares.baseline) < ENOUGH_JUDGED:
        return _without_rate(claim, results, bounds, evidence, facts)
    return _at_rates(claim, results, bounds, evidence, facts)


def _evidence(results: JudgedResults) -> tuple[str, dict[str, Any]]:
    """What is judged, as a sentence and as figures."""
    whole = {run: results.share_judged(run) for run in results.pair}
    shares = dict(zip(results.pair, results.shares[:2], strict=True))
    text = " and ".join(f"{share:.0%} of {run}'s" for run, share in whole.items())
    count = int(results.open.sum())
    evidence = f"{text} first {results.depth} results are judged"
    evidence += f"; {count:,d} documents are not." if count else "."
    facts = {
        "depth": results.depth, "judged": whole, "judged_apart_from_relevant": shares,
        "uneven": results.shares.uneven, "unjudged": count,
    }  # fmt: skip
    return evidence, facts


def _range(claim: Claim, bounds: UnjudgedBounds) -> tuple[tuple[ClaimEstimate, ...], str]:
    """The difference whatever the unjudged documents are, and what that says; nothing where the ends include 0."""
    if bounds.low <= 0 <= bounds.high:
        return (), ""
    base, least = claim.base, min(bounds.low, bounds.high, key=abs)
    ahead = claim.system if least > 0 else claim.baseline
    effect = "stands" if bounds.low > 0 else base.effect
    label = "whatever the unjudged documents are"
    row = ClaimEstimate(label, base.value, bounds.low, bounds.high, base.topics, effect, is_range=True)
    return (row,), f" {capital(label)}, {ahead} stays ahead (by {abs(least):.3f} at least)."


def _condensed(claim: Claim) -> ClaimEstimate | None:
    """The claim on judged documents alone; None where a run has none."""
    runs = {name: run.join(claim.qrels, on=KEYS, how="semi") for name, run in claim.pair.items()}
    if not all(map(len, runs.values())):
        return None
    return claim.of(claim.scored(runs=runs), "on judged documents only")


def _without_rate(
    claim: Claim, results: JudgedResults, bounds: UnjudgedBounds, evidence: str, facts: dict[str, Any]
) -> ClaimAnswer:
    """No rate was seen: the difference at equal rates, and the rates that would turn it."""
    drawn = DrawnGrades(results, np.full(len(results.rows), 0.5), results.open)
    leads, trails = results.pair if (claim.base.value or 0.0) > 0 else results.pair[::-1]
    turns = drawn.level_at(0.0)
    facts["turns"] = [{"run": trails, "at": turns, "beside": 0.0}]
    text = [f"{signed(drawn.mean(rate, rate))} if {rate:.0%}" for rate in _LIKELY]
    possible = f"The difference is {' and '.join(text)} of both systems' unjudged documents are relevant."
    if turns is not None and claim.base.effect in ("stands", "falls"):
        possible += (
            f" {trails} draws level if {turns:.0%} of its unjudged documents are relevant and none of {leads}'s."
        )
    rows, stays = _range(claim, bounds)
    # Of labels that name right documents only, few results are labelled, and nobody wants more.
    return ClaimAnswer(
        _QUESTION, "CANNOT TELL", "" if claim.golden else evidence, claim.base.effect,
        f"How many unjudged documents are relevant is unknown.{stays}", rows,
        "Give judgments that also name documents that are not relevant (grade 0), or judge the first documents of both "
        "systems (`pool build`).",
        facts=facts, possible=possible, found="The judgments name relevant documents only. Others may be relevant too.",
    )  # fmt: skip


def _at_rates(
    claim: Claim, results: JudgedResults, bounds: UnjudgedBounds, evidence: str, facts: dict[str, Any]
) -> ClaimAnswer:
    """The difference at the rate of judged results of the same ranks, and the rate that would turn it."""
    base, drawn = claim.base, DrawnGrades(results, results.rates(), results.open)
    leads, trails = results.pair if (base.value or 0.0) > 0 else results.pair[::-1]
    rates = {run: drawn.fitted(run) for run in results.pair}
    low, high = drawn.fitted_interval(trails)
    at = claim.estimate(drawn.at(None, None), "with unjudged documents as relevant as judged ones")
    turns = drawn.level_at(rates[leads])
    facts |= {"rates": rates, "rate_interval": {trails: [low, high]}}
    facts["turns"] = [{"run": trails, "at": turns, "beside": rates[leads]}]
    text = f"Even if all of {trails}'s unjudged documents were relevant, {trails} would stay behind."
    if not (results.within(trails) & results.open).any():
        text = f"All of {trails}'s first {results.depth} results are judged."
    if turns is not None:
        text = f"{trails} draws level if {turns:.0%} of its unjudged documents are relevant"
        text += f" and {rates[leads]:.0%} of {leads}'s." if (results.within(leads) & results.open).any() else "."
        text += f" Their ranks suggest {rates[trails]:.0%} ({low:.0%} to {high:.0%})."
    rated = f"If unjudged documents are as relevant as judged ones, {became(claim, base, at, moved=True)}."
    bounded, stays = _range(claim, bounds)
    text = f"{text} {rated}"
    alone = _condensed(claim)
    rows = (at, *(() if alone is None else (alone,)), *bounded)
    moved = at.effect != base.effect and "stands" in (at.effect, base.effect)
    near = turns is not None and turns <= high
    possible = ""
    if moved or near:
        possible = text
    uneven = results.shares.uneven
    shares = " and ".join(f"{share:.0%} of {run}'s" for run, share in facts["judged"].items())
    return ClaimAnswer(
        _QUESTION, "JUDGED UNEVENLY" if uneven else "JUDGED ALIKE", evidence, base.effect, f"{text}{stays}", rows,
        f"Judge the {bounds.unjudged:,d} unjudged documents in the first {results.depth} results of all topics.",
        exception=(f"{shares} first {results.depth} results are judged.", rated),
        facts=facts, possible=possible, plausible=uneven and moved, unless="the unjudged documents are not relevant",
    )  # fmt: skip

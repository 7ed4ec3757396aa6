"""The question about unjudged documents: how often they would have to be relevant to turn the claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from truerank.claims.claim import Claim, ClaimEstimate, signed
from truerank.claims.judged_results import KEYS, JudgedResults, judged_results
from truerank.claims.plausible_grades import DrawnGrades, RatePoint, UnjudgedBounds, unjudged_bounds, zero_between
from truerank.claims.pools import pooled_teams
from truerank.claims.results import ClaimAnswer

#: Of the results that are not known to be relevant, so many have to be judged in one run to tell a rate.
ENOUGH_JUDGED: Final = 0.25
#: Rates at which the difference is looked at.
_RATES: Final = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
#: The system's rate beside which the baseline's is named where no rate was seen.
_BESIDE: Final = 0.05
_QUESTION: Final = "unjudged"


def unjudged_answer(claim: Claim, teams: Mapping[str, str] | None = None) -> ClaimAnswer:
    """(d) The claim with unjudged documents that are relevant at a plausible rate, and the rate that would turn it."""
    results = judged_results(claim)
    evidence, facts = _evidence(results)
    base = claim.base
    if not results.open.any():
        return ClaimAnswer(_QUESTION, "ALL JUDGED", evidence, base.effect, "Nothing is open here.", facts=facts)
    bounds = unjudged_bounds(claim, results)
    facts |= {"bounds": bounds._asdict()}
    if max(results.shares.system, results.shares.baseline) < ENOUGH_JUDGED:
        return _without_rate(claim, results, bounds, evidence, facts)
    return _at_rates(claim, results, bounds, evidence, {**facts, "corrected": bool(pooled_teams(results, teams or {}))})


def _evidence(results: JudgedResults) -> tuple[str, dict[str, Any]]:
    """What is judged, as a sentence and as figures."""
    whole = {
        run: float((results.within(run) & results.judged).sum() / max(1, results.within(run).sum()))
        for run in results.pair
    }
    shares = dict(zip(results.pair, results.shares[:2], strict=True))
    told = " and ".join(f"{share:.0%} of {run}'s" for run, share in whole.items())
    apart = " and ".join(f"{share:.0%}" for share in shares.values())
    count = int(results.open.sum())
    evidence = f"Judged are {told} first {results.depth} results"
    evidence += f"; {count:,d} documents are not." if count else "."
    if count:
        evidence += f" Of those that are not known to be relevant, {apart} are judged."
    facts = {
        "depth": results.depth, "judged": whole, "judged_apart_from_relevant": shares,
        "uneven": results.shares.uneven, "unjudged": count, "seen": results.seen(),
    }  # fmt: skip
    return evidence, facts


def _worst(bounds: UnjudgedBounds) -> str:
    return f"Any grades at all could give {signed(bounds.low)} to {signed(bounds.high)}."


def _range(claim: Claim, bounds: UnjudgedBounds) -> ClaimEstimate:
    base = claim.base
    effect = "stands" if bounds.low > 0 else base.effect
    return ClaimEstimate(
        "unjudged: any grades", base.value, bounds.low, bounds.high, base.topics, effect, is_range=True
    )  # fmt: skip


def _condensed(claim: Claim) -> ClaimEstimate | None:
    """The claim on judged documents alone; None where a run has none."""
    runs = {name: run.join(claim.qrels, on=KEYS, how="semi") for name, run in claim.pair.items()}
    if not all(map(len, runs.values())):
        return None
    return claim.estimate(claim.differences(claim.scored(runs=runs)), "judged documents only")


def _without_rate(
    claim: Claim, results: JudgedResults, bounds: UnjudgedBounds, evidence: str, facts: dict[str, Any]
) -> ClaimAnswer:
    """No rate was seen: the difference at equal rates, and the rates that would turn it."""
    drawn = DrawnGrades(results, np.full(len(results.rows), 0.5), results.open)
    leads, trails = results.pair if (claim.base.value or 0.0) > 0 else results.pair[::-1]
    equal = [drawn.point(rate, rate) for rate in _RATES]
    alone, beside = (_curve(drawn, leads == claim.system, rate) for rate in (0.0, _BESIDE))
    turns = [zero_between(curve, _RATES) for curve in (alone, beside)]
    facts |= {
        "equal_rates": [one._asdict() for one in equal],
        "turns": [{"run": trails, "at": at, "beside": rate} for at, rate in zip(turns, (0.0, _BESIDE), strict=True)],
        "curve": [one._asdict() for one in beside],
    }
    told = [f"{signed(one.value)} where {one.system:.0%} of both runs' are relevant" for one in equal[1:3]]
    possible = f"Too few results are judged as not relevant to tell a rate. The difference is {' and '.join(told)}. "
    if turns[0] is None:
        possible += f"No rate of {trails}'s turns it while none of {leads}'s are relevant."
    else:
        possible += (
            f"{trails}'s would have to be relevant in {turns[0]:.0%} of cases to turn it if none of {leads}'s are"
        )
        possible += "." if turns[1] is None else f", in {turns[1]:.0%} beside {_BESIDE:.0%} of {leads}'s."
    rows = (_range(claim, bounds),)
    return ClaimAnswer(
        _QUESTION, "NOT TOLD", evidence, claim.base.effect,
        f"Which results were looked at and found not relevant is not in these judgments. {_worst(bounds)}", rows,
        "Give judgments that also name documents that are not relevant (grade 0), or judge the first documents of both "
        "runs ('truerank pool build').",
        facts=facts, possible=possible,
    )  # fmt: skip


def _curve(drawn: DrawnGrades, system_leads: bool, rate: float) -> list[RatePoint]:
    """The difference over the rate of the run behind, where the leading one has this rate."""
    return [drawn.point(rate, one) if system_leads else drawn.point(one, rate) for one in _RATES]


def _at_rates(
    claim: Claim, results: JudgedResults, bounds: UnjudgedBounds, evidence: str, facts: dict[str, Any]
) -> ClaimAnswer:
    """The difference at the rate of judged results of the same ranks, and the rate that would turn it."""
    base, drawn = claim.base, DrawnGrades(results, results.rates(), results.open)
    leads, trails = results.pair if (base.value or 0.0) > 0 else results.pair[::-1]
    rates = {run: drawn.fitted(run) for run in results.pair}
    low, high = drawn.fitted_interval(trails)
    at = claim.estimate(drawn.at(None, None), "unjudged: as often relevant as judged ones of their ranks")
    curve = _curve(drawn, leads == claim.system, rates[leads])
    equal = [drawn.point(rate, rate) for rate in _RATES]
    turns = zero_between(curve, _RATES)
    facts |= {
        "rates": rates, "rate_interval": {trails: [low, high]}, "curve": [one._asdict() for one in curve],
        "equal_rates": [one._asdict() for one in equal],
        "turns": [{"run": trails, "at": turns, "beside": rates[leads]}],
    }  # fmt: skip
    seen = f"at their ranks it is {rates[trails]:.0%} ({low:.0%} to {high:.0%}) among judged ones"
    told = f"No rate of {trails}'s turns the difference"
    if turns is not None:
        told = f"{trails}'s unjudged results would have to be relevant in {turns:.0%} of cases to turn the difference"
    told += f", {leads}'s in {rates[leads]:.0%}; {seen}. At these rates it is {at.figures()}."
    alone = _condensed(claim)
    rows = (at, *(() if alone is None else (alone,)), _range(claim, bounds))
    moved = at.effect != base.effect and "stands" in (at.effect, base.effect)
    near = turns is not None and turns <= high
    possible = ""
    if moved or near:
        possible = told
    uneven = results.shares.uneven
    plausible = uneven and moved and not facts["corrected"]
    return ClaimAnswer(
        _QUESTION, "JUDGED UNEVENLY" if uneven else "JUDGED ALIKE", evidence, base.effect, f"{told} {_worst(bounds)}",
        rows, f"Judge the unjudged documents of the first {results.depth} ranks: {bounds.unjudged:,d} pairs.",
        exception=f"if {trails}'s unjudged documents are relevant as often as judged ones of their ranks",
        facts=facts, possible=possible, plausible=plausible,
    )  # fmt: skip

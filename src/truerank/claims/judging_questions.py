"""Questions about who judged what: unjudged documents, and runs that were not pooled alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.reusability.pools.depth import depth_pool, first_documents
from truerank.audits.reusability.simulation.leave_out import unique_documents
from truerank.claims.claim import Claim, ClaimEstimate, Effect, signed
from truerank.claims.results import ClaimAnswer
from truerank.measures import difference_interval, evaluate
from truerank.measures.grammar import parse_measures

Floats = NDArray[np.float64]
#: Ranks that are looked at where the measure has no cutoff.
_DEEPEST: Final = 100
_FEWEST_TEAMS: Final = 3
_KEYS: Final = ["topic_id", "doc_id"]
_GIVE_ZEROS: Final = (
    "Give judgments that also name documents that are not relevant (grade 0), or judge the first documents of both "
    "runs ('truerank pool build')."
)


class UnjudgedBounds(NamedTuple):
    """The least and the largest mean difference that grades of unjudged documents can give.

    Attributes:
        low: the least.
        high: the largest.
        unjudged: how many documents are unjudged.
        could_show: whether the largest would be more than chance.
    """

    low: float
    high: float
    unjudged: int
    could_show: bool


def cutoff_of(claim: Claim) -> int:
    """The ranks that the measure of the claim looks at, at most 100."""
    cutoff = parse_measures(claim.measure)[0].params.get("cutoff") or claim.scoring.depth or _DEEPEST
    return min(int(cutoff), _DEEPEST)


def judged_shares(claim: Claim, depth: int) -> dict[str, Floats]:
    """The share of the first results that is judged, by run of the claim and topic, shape (topics,)."""
    name = f"Judged@{depth}"
    # A topic that a run lacks has no results whose judgments could be counted.
    found = evaluate(claim.qrels, dict(claim.pair), name, replace(claim.scoring, missing="skip"))
    return {run: found.of(run, name) for run in claim.pair}


def unjudged_bounds(claim: Claim, depth: int) -> UnjudgedBounds:
    """The least and the largest difference of the claim, whatever the unjudged documents are.

    Each unjudged document among the first results is not relevant, or has the highest grade of the judgments. Of one
    topic and a number n of relevant ones among them, the n that favour one run most give its extreme; every n is tried.
    For measures that weigh a document by its rank and divide by what the judgments of the topic allow (P, R, nDCG)
    that is the exact extreme; for others it is one that can be reached.

    Args:
        claim: the claim.
        depth: ranks that are looked at.
    """
    unjudged = _unjudged(claim, depth)
    grade = max(int(claim.qrels["relevance"].max() or 1), claim.scoring.rel)  # type: ignore[arg-type]
    ends = []
    could_show = False
    for sign in (-1, 1):
        by = pl.col("benefit") * sign
        ordered = unjudged.sort("topic_id", by, "doc_id", descending=[False, True, False], maintain_order=True)
        numbered = ordered.with_columns((pl.int_range(pl.len()).over("topic_id") + 1).alias("place"))
        extreme = sign * claim.differences(claim.scored())
        for count in range(1, int(numbered["place"].max() or 0) + 1):  # type: ignore[arg-type]
            some = numbered.filter(pl.col("place") <= count)
            added = some.select(*_KEYS, pl.lit(grade).cast(claim.qrels.schema["relevance"]).alias("relevance"))
            values = sign * claim.differences(claim.scored(pl.concat([claim.qrels, added])))
            # A topic without so many unjudged documents keeps what fewer gave.
            extreme = np.fmax(extreme, values)
        ends.append(sign * float(np.nanmean(extreme)))
        could_show = sign > 0 and claim.estimate(extreme, "").effect == "stands"
    return UnjudgedBounds(ends[0], ends[1], len(unjudged), could_show)


def _unjudged(claim: Claim, depth: int) -> pl.DataFrame:
    """Unjudged documents among the first results of judged topics: topic_id, doc_id, benefit (of the system)."""
    placed = []
    for sign, name in ((1.0, claim.system), (-1.0, claim.baseline)):
        first = first_documents(claim.runs[name], depth)
        placed.append(first.select(*_KEYS, (sign / (pl.col("place") + 1).log(2)).alias("benefit")))
    found = pl.concat(placed).group_by(_KEYS, maintain_order=True).agg(pl.col("benefit").sum())
    topics = claim.qrels.select("topic_id").unique()
    return found.join(topics, on="topic_id", how="semi").join(claim.qrels, on=_KEYS, how="anti")


def has_negatives(claim: Claim) -> bool:
    """Whether the judgments name documents that are not relevant."""
    return bool((claim.qrels["relevance"] < claim.scoring.rel).any())


def unjudged_answer(claim: Claim) -> ClaimAnswer:
    """(d) The claim whatever the unjudged documents are, and on judged documents alone."""
    depth = cutoff_of(claim)
    shares = {name: float(np.nanmean(share)) for name, share in judged_shares(claim, depth).items()}
    bounds = unjudged_bounds(claim, depth)
    base = claim.base
    told = " and ".join(f"{share:.0%} of {name}'s" for name, share in shares.items())
    evidence = f"Judged are {told} first {depth} results; {bounds.unjudged:,d} documents are not."
    facts = {"judged": shares, "depth": depth, **bounds._asdict()}
    if not bounds.unjudged:
        return ClaimAnswer(
            "unjudged", "ALL JUDGED", evidence, base.effect, "Nothing is open here.", facts=facts
        )  # fmt: skip
    span = f"{signed(bounds.low)} to {signed(bounds.high)}"
    both = ClaimEstimate(
        "unjudged: any grades", base.value, bounds.low, bounds.high, base.topics, base.effect, is_range=True
    )
    if not has_negatives(claim):
        return ClaimAnswer(
            "unjudged", "UNKNOWN",
            f"The judgments name relevant documents only, so that unjudged ones are not told apart. {evidence}",
            "unknown",
            f"If nothing else was judged, grades of these documents could give any difference from {span}.",
            (both,), _GIVE_ZEROS, facts=facts,
        )  # fmt: skip
    condensed = {name: run.join(claim.qrels, on=_KEYS, how="semi") for name, run in claim.pair.items()}
    alone = claim.estimate(claim.differences(claim.scored(runs=condensed)), "judged documents only")
    consequence, effect = _unjudged_effect(base, bounds, alone)
    both = replace(both, effect=effect)
    settles = f"Judge the unjudged documents of the first {depth} ranks: {bounds.unjudged:,d} pairs."
    return ClaimAnswer(
        "unjudged", f"{bounds.unjudged:,d} UNJUDGED", evidence, effect, consequence, (alone, both), settles,
        exception="if unjudged documents are relevant", facts=facts,
    )  # fmt: skip


def _unjudged_effect(base: ClaimEstimate, bounds: UnjudgedBounds, alone: ClaimEstimate) -> tuple[str, Effect]:
    """What the answer says, and what becomes of the claim."""
    span = f"{signed(bounds.low)} to {signed(bounds.high)}"
    told = (
        f"Grades of the unjudged documents can give any difference from {span}; judged documents alone give "
        f"{alone.figures()}."
    )
    if base.effect == "stands":
        if bounds.low > 0:
            return f"Whatever grades the unjudged documents have, the difference stays above 0 ({span}).", "stands"
        return told, "could turn"
    if alone.effect == "stands":
        return told, "appears"
    return told, "could turn" if bounds.could_show else base.effect


def pools_answer(claim: Claim, teams: Mapping[str, str]) -> ClaimAnswer:
    """(e) Whether both runs were judged alike, and the claim without what only the system's team brought.

    Args:
        claim: the claim.
        teams: the team of each run; a run without one is a team of its own.
    """
    depth = cutoff_of(claim)
    if not has_negatives(claim):
        return ClaimAnswer(
            "pools", "UNKNOWN", "The judgments name relevant documents only: which runs were pooled does not show.",
            "unknown", "What the pools did to the difference is not known.",
            settles=_GIVE_ZEROS,
        )  # fmt: skip
    shares = judged_shares(claim, depth)
    means = {name: float(np.nanmean(share)) for name, share in shares.items()}
    gap = shares[claim.system] - shares[claim.baseline]
    known = gap[~np.isnan(gap)]
    ends = difference_interval(known, np.zeros(len(known)), confidence=claim.confidence)
    told = f"{means[claim.system]:.0%} of {claim.system}'s and {means[claim.baseline]:.0%} of {claim.baseline}'s"
    evidence = f"Judged are {told} first {depth} results"
    uneven = ends.low is not None and ends.high is not None and not ends.low <= 0 <= ends.high
    base = claim.base
    by_team = {name: teams.get(name) or name for name in claim.runs}
    favoured = claim.system if (ends.mean or 0.0) > 0 else claim.baseline
    unique, estimate = _without_unique(claim, by_team, depth, favoured)
    facts = {"judged": means, "unique_relevant": unique, "teams": len(set(by_team.values())), "uneven": uneven}
    if not uneven:
        told = "Neither run has an advantage of the pools that shows."
        return ClaimAnswer(
            "pools", "ALIKE", f"{evidence}: no difference beyond chance.", base.effect, told, facts=facts
        )  # fmt: skip
    evidence += f": more of {favoured}'s, beyond chance."
    if estimate is None:
        return _uneven_alone(claim, favoured, evidence, facts)
    if not unique:
        told = (
            f"{favoured}'s team alone brought no relevant document into the judgments: the uneven judging does not "
            "explain the difference."
        )
        return ClaimAnswer("pools", "UNEVEN", evidence, base.effect, told, facts=facts)
    consequence = (
        f"Without the {unique:,d} relevant documents that only {favoured}'s team brought the difference is "
        f"{estimate.figures()}."
    )
    effect: Effect = base.effect
    if base.effect == "stands" and favoured == claim.system:
        effect = estimate.effect
    elif base.effect != "stands" and favoured == claim.baseline and estimate.effect == "stands":
        effect = "appears"
    other = claim.baseline if favoured == claim.system else claim.system
    return ClaimAnswer(
        "pools", "UNEVEN", evidence, effect, consequence, (estimate,), f"Judge {other}'s first {depth} documents.",
        exception=f"without the documents that only {favoured} brought into the judgments", facts=facts,
    )  # fmt: skip


def _uneven_alone(claim: Claim, favoured: str, evidence: str, facts: Mapping[str, Any]) -> ClaimAnswer:
    """Uneven shares, where too few teams are there to see what one of them brought."""
    base = claim.base
    settles = "Give the other pooled runs too (three teams or more), or judge the other run's first documents."
    if (favoured == claim.system) == (base.effect == "stands"):
        told = f"{favoured}'s documents were judged and the other run's were not, which may decide the difference."
        return ClaimAnswer(
            "pools", "UNEVEN", evidence, "could turn", told, (), settles, exception="if the pools decide", facts=facts
        )  # fmt: skip
    told = f"The pools favour {favoured}, so they do not explain the difference."
    return ClaimAnswer("pools", "UNEVEN", evidence, base.effect, told, (), settles, facts=facts)


def _without_unique(
    claim: Claim, teams: Mapping[str, str], depth: int, favoured: str
) -> tuple[int, ClaimEstimate | None]:
    """Relevant documents that the favoured run's team alone brought, and the difference without them."""
    names = list(dict.fromkeys(teams.values()))
    if len(names) < _FEWEST_TEAMS or teams[claim.system] == teams[claim.baseline]:
        return 0, None
    pools = {
        team: depth_pool({name: run for name, run in claim.runs.items() if teams[name] == team}, depth)
        for team in names
    }
    alone = unique_documents(pools).filter(pl.col("team") == teams[favoured])
    relevant = claim.qrels.filter(pl.col("relevance") >= claim.scoring.rel)
    gone = relevant.join(alone, on=_KEYS, how="semi")
    left = claim.qrels.join(gone, on=_KEYS, how="anti")
    # Topics that lose all judgments stay, as the official ones do.
    kept = claim.qrels.join(left, on="topic_id", how="anti").with_columns(pl.lit(0).cast(pl.Int32).alias("relevance"))
    found = claim.scored(pl.concat([left, kept.cast(left.schema)]))
    return len(gone), claim.estimate(claim.differences(found), f"without what only {favoured} brought")

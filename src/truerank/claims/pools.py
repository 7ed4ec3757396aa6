"""The question about pools: what traces the judgments have of them, which run was left out, and what that cost it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Flags, Ints
from truerank.claims.claim import Claim, became
from truerank.claims.results import ClaimAnswer
from truerank.claims.unjudged import DEEPEST, KEYS, DrawnGrades, JudgedResults, judged_results
from truerank.measures.rankings import on_topics
from truerank.text.printable import listed

#: Depths of pools that are tried, and how many times the measure's depth is looked at in the run that brought nothing.
_DEPTHS: Final = (5, 7, 10, 14, 20, 28, 40, 57, 80)
_TIMES: Final = (1, 2, 5, DEEPEST)
#: What the rate of relevant ones keeps at least, where the rank doubles.
_DECAY: Final = 1 / 2
#: Chance of a trace where there is none, for all that is tried together.
_LEVEL: Final = 0.001


class PoolTrace(NamedTuple):
    """Nothing that one run alone has was judged relevant.

    Attributes:
        first: of its results, so many.
        pooled: the runs whose first results hold all relevant ones of these.
        depth: how many results.
        near: relevant ones between half of that depth and the depth.
        beyond: results of the run that none of the pooled ones has so far up; none is judged relevant.
        p: the chance of that, had the rate of relevant ones gone down by no more than half where the rank
            doubles; corrected for all depths and runs that were tried.
        rows: which rows these results are.
    """

    lacking: str
    first: int
    pooled: tuple[str, ...]
    depth: int
    near: int
    beyond: int
    p: float
    rows: Flags


def pool_trace(results: JudgedResults) -> PoolTrace | None:
    """The clearest trace of judgments that come from the pools of other runs than one of the claim's."""
    found = [one for lacking in results.pair for one in _traces(results, lacking)]
    best = min(found, key=lambda one: (one.p, -one.first), default=None)
    return None if best is None or best.p >= _LEVEL else best


def _traces(results: JudgedResults, lacking: str) -> Iterator[PoolTrace]:
    """Traces that one run of the claim was not pooled; the pools are those of the other one, and of further runs."""
    own = results.ranks[lacking]
    other = next(run for run in results.pair if run != lacking)
    further = [run for run in results.ranks if run not in results.pair]
    tries = 2 * len(_DEPTHS) * len(_TIMES)
    theirs = np.array([results.ranks[run] for run in (other, *further)])
    for first in dict.fromkeys(min(DEEPEST, times * results.depth) for times in _TIMES):
        scope = own <= first
        wanted = theirs[:, scope & results.relevant]
        for depth in _DEPTHS:
            pooled, held = [0], wanted <= depth
            while not (found := held[pooled].any(axis=0)).all():
                # A run that is in has none of those that are left.
                gains = held[:, ~found].sum(axis=1)
                if not gains.max():
                    break
                pooled.append(int(np.argmax(gains)))
            else:
                ways = tries * math.comb(len(further), len(pooled) - 1)
                names = (other, *(further[at - 1] for at in pooled[1:]))
                yield _trace(results, (lacking, first, names, depth), scope, theirs[pooled].min(axis=0), ways)


def _trace(
    results: JudgedResults, found: tuple[str, int, tuple[str, ...], int], scope: Flags, ranks: Ints, ways: int
) -> PoolTrace:
    depth = found[-1]
    reference = scope & (ranks > depth / 2) & (ranks <= depth)
    near = int((reference & results.relevant).sum())
    soon = int((scope & (ranks > depth) & (ranks <= min(2 * depth, DEEPEST))).sum())
    beyond = scope & (ranks > depth)
    late = int(beyond.sum()) - soon
    expected = _DECAY * soon + _DECAY**2 * late
    size = int(reference.sum())
    p = min(1.0, ways * (size / (size + expected)) ** near) if size else 1.0
    return PoolTrace(*found, near, soon + late, p, beyond)


_QUESTION: Final = "pools"
#: Results that a run has at least where all of them are judged and that tells something.
_FEWEST_RESULTS: Final = 20
#: From this share of judged results on, a run may be filtered: repairs take some judgments away.
_ALL: Final = 0.99
#: On so many topics a run that was cut, rather than filtered, has its largest number of results.
_MOST_CUT: Final = 0.5


def pools_answer(claim: Claim) -> ClaimAnswer:
    """(e) Whether the judgments were pooled from one run and not from the other."""
    results = judged_results(claim)
    shares = dict(zip(results.pair, results.shares[:2], strict=True))
    facts: dict[str, Any] = {
        "judged_apart_from_relevant": shares, "uneven": results.shares.uneven, "whole_depths": results.whole_depths,
    }  # fmt: skip
    filtered = _filtered(claim)
    if filtered:
        return _of_filtered(claim, filtered, facts)
    trace = pool_trace(results)
    if trace is not None:
        return _traced(claim, results, trace, facts)
    base = claim.base
    whole = [run for run in results.pair if results.whole_depths[run] >= results.depth]
    text = " and ".join(f"{share:.0%} of {run}'s" for run, share in shares.items())
    evidence = f"Relevant ones aside, {text} first {results.depth} results are judged." if any(shares.values()) else ""
    if len(whole) == 2:
        consequence = "Both systems' results were judged to the same depth."
        return ClaimAnswer(_QUESTION, "ALIKE", evidence, base.effect, consequence, facts=facts)
    if len(whole) == 1 and results.shares.uneven:
        other = next(run for run in results.pair if run not in whole)
        judged = [f"{results.share_judged(name):.0%} of {name}'s" for name in (*whole, other)]
        found = f"{judged[0]} first {results.depth} results are judged, {judged[1]}; the others count as not relevant."
        consequence = "The check of unjudged documents shows what that does."
        settles = f"Judge {other}'s first documents."
        return ClaimAnswer(
            _QUESTION, "ONE RUN POOLED", evidence, base.effect, consequence, (), settles, facts=facts, found=found
        )
    consequence = "No sign that one system was judged more than the other."
    return ClaimAnswer(_QUESTION, "NOT POOLED", evidence, base.effect, consequence, facts=facts)


# -- runs that were filtered ------------------------------------------------------------------------------------------


def _filtered(claim: Claim) -> str:
    """A run of which judged documents alone were kept, as the other one's were not; "" where none was.

    All its results are judged, at any rank; it has fewer of them than the other run, and not equally many on most
    topics, as a run has that was cut.
    """
    known = claim.qrels["topic_id"].unique()
    runs = {name: on_topics(run.select(KEYS), known) for name, run in claim.pair.items()}
    share = {name: len(run.join(claim.qrels, on=KEYS, how="semi")) / max(1, len(run)) for name, run in runs.items()}
    for name, other in (tuple(runs), tuple(runs)[::-1]):
        if len(runs[name]) < _FEWEST_RESULTS or share[name] < _ALL or share[other] >= _ALL:
            continue
        own, others = (run.group_by("topic_id").len()["len"].to_numpy() for run in (runs[name], runs[other]))
        if np.median(own) < np.median(others) and np.mean(own == own.max()) < _MOST_CUT:
            return name
    return ""


def _of_filtered(claim: Claim, filtered: str, facts: dict[str, Any]) -> ClaimAnswer:
    """The claim on judged documents of both runs, where one run holds nothing else."""
    base, other = claim.base, claim.baseline if filtered == claim.system else claim.system
    found = f"All of {filtered}'s results are judged, of {other}'s some. Perhaps {filtered} was cut to judged ones."
    evidence = ""
    facts |= {"filtered": filtered}
    settles = f"Give {filtered} as it ranked all documents."
    runs = {name: run.join(claim.qrels, on=KEYS, how="semi") for name, run in claim.pair.items()}
    if not all(map(len, runs.values())):
        consequence = f"No result of {other} is judged, so the two cannot be compared."
        return ClaimAnswer(
            _QUESTION, "FILTERED", evidence, "not shown", consequence, (), settles, exception=(found, consequence),
            facts=facts, found=found,
        )  # fmt: skip
    after = claim.of(claim.scored(runs=runs), "both filtered to judged documents")
    effect = after.effect
    if base.effect != "stands":
        effect = "appears" if after.effect == "stands" else base.effect
    consequence = f"With both filtered, {became(claim, base, after, moved=True)}."
    return ClaimAnswer(
        _QUESTION, "FILTERED", evidence, effect, consequence, (after,), settles, facts=facts,
        plausible=filtered == claim.system and after.effect != "stands", exception=(found, consequence), found=found,
        unless="it was made to rank judged documents only",
    )  # fmt: skip


# -- pools that show in the relevant documents -------------------------------------------------------------------------


def _traced(claim: Claim, results: JudgedResults, trace: PoolTrace, facts: dict[str, Any]) -> ClaimAnswer:
    """The claim where nothing that one run alone has was judged relevant."""
    base = claim.base
    others = listed(trace.pooled) if len(trace.pooled) < 3 else "other systems"
    never = int((trace.rows & ~results.judged).sum())
    theirs = f"{others}'{'s' * (len(trace.pooled) < 3)} first {trace.depth}"
    none = f"Of {trace.lacking}'s first {trace.first} results, none outside {theirs} is judged relevant"
    found = f"{none}: {never:,d} of {trace.beyond:,d} were never judged. That may favour {others}."
    evidence = f"The pools: those of {listed(trace.pooled)} ({trace.near} relevant near their end, p = {trace.p:.1g})."
    drawn = _completed(results, trace)
    at = claim.estimate(
        drawn.at(None, None), f"with results that only {trace.lacking} has as relevant as their ranks suggest"
    )
    rate = drawn.fitted(trace.lacking)
    traced = {name: value for name, value in trace._asdict().items() if name != "rows"}
    facts |= {"trace": {**traced, "pooled": list(trace.pooled)}, "rate": rate}
    consequence = f"If they were relevant as often as their ranks suggest ({rate:.0%}), "
    consequence += f"{became(claim, base, at, moved=True)}."
    moved = at.effect != base.effect and "stands" in (at.effect, base.effect)
    possible = consequence if moved else ""
    if not moved and base.effect == "stands" and trace.pooled == (claim.system,):
        # A good reranker of the other run's documents leaves the same trace.
        possible = (
            f"If only {claim.system}'s first {trace.depth} results were judged, {trace.lacking}'s own documents could "
            "not count."
        )
    return ClaimAnswer(
        _QUESTION, "ONE RUN POOLED", evidence, base.effect, consequence, (at,),
        f"Judge {trace.lacking}'s first {results.depth} documents.", exception=(found, consequence), facts=facts,
        possible=possible, plausible=moved, found=found, unless=f"{trace.lacking}'s own results are not relevant",
    )  # fmt: skip


def _completed(results: JudgedResults, trace: PoolTrace) -> DrawnGrades:
    """The results with grade 0 for what the pools of a trace hold, and the rates that these tell for the others."""
    best = np.min([results.ranks[run] for run in trace.pooled], axis=0)
    beyond = best > trace.depth
    outside = trace.rows | (beyond & ~(beyond & results.relevant).any())
    grades = results.rows["relevance"].fill_null(0).to_numpy()
    filled = pl.Series("relevance", grades).set(pl.Series(outside & ~results.judged), None)
    completed = replace(results, rows=results.rows.with_columns(filled), whole_depths={})
    return DrawnGrades(completed, completed.rates(), completed.open & outside)

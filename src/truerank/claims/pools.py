"""The question about pools: what traces the judgments have of them, which run was left out, and what that cost it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Flags, Floats, Ints
from truerank.audits import pool
from truerank.audits.pool.standings import ALL_TEAMS, Judging, unique_documents
from truerank.claims.claim import Claim, ClaimEstimate, Effect, effect_of, signed
from truerank.claims.inquiry import Inquiry
from truerank.claims.results import ClaimAnswer
from truerank.claims.steps import AuditSteps
from truerank.claims.unjudged import DEEPEST, KEYS, DrawnGrades, JudgedResults, cutoff_of, judged_results, pooled_teams
from truerank.measures import evaluate
from truerank.measures.grammar import lower_is_better
from truerank.measures.rankings import on_topics
from truerank.options import Workers
from truerank.sources.qrels import QREL_SCHEMA
from truerank.text.printable import listed
from truerank.work.progress import Progress

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


def pools_answer(claim: Claim, teams: Mapping[str, str]) -> ClaimAnswer:
    """(e) Whether the judgments were pooled from one run and not from the other, and the claim corrected for that."""
    results = judged_results(claim)
    shares = dict(zip(results.pair, results.shares[:2], strict=True))
    facts: dict[str, Any] = {
        "judged_apart_from_relevant": shares, "uneven": results.shares.uneven, "whole_depths": results.whole_depths,
    }  # fmt: skip
    filtered = _filtered(claim)
    if filtered:
        return _of_filtered(claim, filtered, facts)
    pooled = pooled_teams(results, teams)
    if pooled and results.shares.uneven:
        return _corrected(claim, results, pooled, facts)
    trace = pool_trace(results)
    if trace is not None:
        return _traced(claim, results, trace, facts)
    base = claim.base
    whole = [run for run in results.pair if results.whole_depths[run] >= results.depth]
    text = " and ".join(f"{share:.0%} of {run}'s" for run, share in shares.items())
    evidence = f"Judged are, apart from relevant ones, {text} first {results.depth} results."
    if len(whole) == 2:
        consequence = "Both systems' results were judged to the same depth."
        return ClaimAnswer(_QUESTION, "ALIKE", evidence, base.effect, consequence, facts=facts)
    if len(whole) == 1 and results.shares.uneven:
        other = next(run for run in results.pair if run not in whole)
        found = f"{whole[0]}'s first {results.whole_depths[whole[0]]} results were all judged, {other}'s were not."
        consequence = "Unjudged ones count as not relevant; the check of unjudged documents shows what that does."
        settles = f"Give the other judged runs too (three teams or more), or judge {other}'s first documents."
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
    found = f"{filtered} contains judged documents only; {other} contains all."
    evidence = "Every result of it is judged, at any rank."
    facts |= {"filtered": filtered}
    settles = f"Give {filtered} as it ranked all documents."
    runs = {name: run.join(claim.qrels, on=KEYS, how="semi") for name, run in claim.pair.items()}
    if not all(map(len, runs.values())):
        consequence = f"No result of {other} is judged, so the two cannot be compared."
        return ClaimAnswer(
            _QUESTION, "FILTERED", evidence, "not shown", consequence, (), settles, exception=(found, consequence),
            facts=facts, found=found,
        )  # fmt: skip
    after = claim.estimate(claim.differences(claim.scored(runs=runs)), "both filtered to judged documents")
    effect = after.effect
    if base.effect != "stands":
        effect = "appears" if after.effect == "stands" else base.effect
    consequence = f"Filtering both: {signed(base.value or 0.0)} → {after.figures()}{claim.measured}."
    return ClaimAnswer(
        _QUESTION, "FILTERED", evidence, effect, consequence, (after,), settles, facts=facts,
        plausible=filtered == claim.system, exception=(found, consequence), found=found,
    )  # fmt: skip


# -- pools that show in the relevant documents -------------------------------------------------------------------------


def _traced(claim: Claim, results: JudgedResults, trace: PoolTrace, facts: dict[str, Any]) -> ClaimAnswer:
    """The claim where nothing that one run alone has was judged relevant."""
    base = claim.base
    found = f"None of {trace.beyond:,d} {trace.lacking} results that other systems rank below {trace.depth} was judged "
    found += "relevant. Perhaps nobody judged them."
    evidence = (
        f"All relevant documents among {trace.lacking}'s first {trace.first} results are among the first {trace.depth} "
        f"of {listed(trace.pooled)}, {trace.near} of them in the lower half (p = {trace.p:.1g})."
    )
    drawn = _completed(results, trace)
    at = claim.estimate(drawn.at(None, None), f"{trace.lacking}'s own results relevant as often as their ranks suggest")
    rate = drawn.fitted(trace.lacking)
    traced = {name: value for name, value in trace._asdict().items() if name != "rows"}
    facts |= {"trace": {**traced, "pooled": list(trace.pooled)}, "rate": rate}
    consequence = f"If they were relevant as often as their ranks suggest ({rate:.0%}): "
    consequence += f"{signed(base.value or 0.0)} → {at.figures()}."
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
        possible=possible, plausible=moved, found=found,
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


# -- runs that were not pooled -----------------------------------------------------------------------------------------


def _corrected(
    claim: Claim, results: JudgedResults, pooled: Mapping[str, list[str]], facts: dict[str, Any]
) -> ClaimAnswer:
    """The claim with what leaving a pooled team out costs it added to the run that is judged less.

    Source: Zobel (1998); Webber and Park (2009); Lipani et al. (2015). A run of which less is unjudged than of a team
    that was left out is corrected by less, in proportion.
    """
    base = claim.base
    loss, unjudged = _loss_of_leaving_out(claim, results, pooled)
    own = [float((results.within(run) & ~results.judged).sum() / max(1, results.within(run).sum()))
           for run in results.pair]  # fmt: skip
    scale = (own[0] - own[1]) / unjudged if unjudged else 0.0
    change = (-scale if lower_is_better(claim.measure) else scale) * loss
    after = claim.estimate(claim.differences(claim.evaluation) + change, "corrected for the pools")
    less = results.pair[0] if own[0] > own[1] else results.pair[1]
    text = " and ".join(f"{1 - share:.0%} of {run}'s" for run, share in zip(results.pair, own, strict=True))
    found = f"{text} first {results.depth} results are judged."
    evidence = f"{len(pooled)} teams' results were judged."
    consequence = (
        f"Leaving a team out of the judging costs its runs {float(loss.mean()):.3f}{claim.measured} on average. With "
        f"{less}'s share of that: {signed(base.value or 0.0)} → {after.figures()}."
    )
    facts |= {"teams": len(pooled), "loss": float(loss.mean()), "scale": scale, "change": float(change.mean())}
    effect = base.effect
    if base.effect == "stands" and after.effect != "stands":
        effect = after.effect
    elif base.effect != "stands" and after.effect == "stands":
        effect = "appears"
    return ClaimAnswer(
        _QUESTION, "UNEVEN", evidence, effect, consequence, (after,),
        f"Judge {less}'s first {results.depth} documents.", exception=(found, consequence), facts=facts, found=found,
    )  # fmt: skip


def _loss_of_leaving_out(claim: Claim, results: JudgedResults, pooled: Mapping[str, list[str]]) -> tuple[Floats, float]:
    """What a team's runs lose beside the others' where it had not been pooled, a mean over teams; by topic."""
    depth = min(results.whole_depths[run] for runs in pooled.values() for run in runs)
    runs = {run: claim.runs[run] for names in pooled.values() for run in names}
    pools = {team: pool.depth_pool({run: claim.runs[run] for run in names}, depth) for team, names in pooled.items()}
    alone = unique_documents(pools)
    before = _scores(claim, claim.qrels, runs)
    losses, unjudged = [], []
    for team, names in pooled.items():
        gone = claim.qrels.join(alone.filter(pl.col("team") == team), on=KEYS, how="semi")
        left = claim.qrels.join(gone, on=KEYS, how="anti")
        # Topics that lose all judgments stay, as the official ones do.
        kept = claim.qrels.join(left, on="topic_id", how="anti").with_columns(
            pl.lit(0).cast(claim.qrels.schema["relevance"]).alias("relevance")
        )
        change = {run: before[run] - after for run, after in _scores(claim, pl.concat([left, kept]), runs).items()}
        own = np.mean([change[run] for run in names], axis=0)
        losses.append(own - np.mean([change[run] for run in runs if run not in names], axis=0))
        first = pl.concat([pool.depth_pool({run: claim.runs[run]}, results.depth) for run in names])
        first = first.join(claim.qrels.select("topic_id").unique(), on="topic_id", how="semi")
        unjudged.append(len(first.join(gone, on=KEYS, how="semi")) / max(1, len(first)))
    return np.mean(losses, axis=0), float(np.mean(unjudged))


def _scores(claim: Claim, qrels: pl.DataFrame, runs: Mapping[str, pl.DataFrame]) -> dict[str, Floats]:
    """The scores of runs in the order of the claim's topics."""
    found = evaluate(qrels, dict(runs), claim.measure, claim.scoring)
    place = {topic: at for at, topic in enumerate(found.topics)}
    order = [place[topic] for topic in claim.evaluation.topics]
    return {run: np.nan_to_num(found.of(run, found.measures[0]))[order] for run in runs}


_FOLDER: Final = "pools"
#: In place of the name of a run: no team is left out.
_CONTROL: Final = "all teams"


def with_trials(
    given: Inquiry, claim: Claim, teams: Mapping[str, str], answer: ClaimAnswer, steps: AuditSteps
) -> ClaimAnswer:
    """The answer on pools with the claim by judgments that were simulated without the team of either run."""
    sources, scoring = given.sources, given.scoring
    pair = {name: teams.get(name) or name for name in (claim.system, claim.baseline)}
    depends = {
        **{name: steps.inputs(name, [getattr(sources, name)]) for name in ("qrels", "docs", "metadata")},
        "topics": steps.inputs("topics", [sources.test]),
        "runs": steps.inputs("run", list(sources.run) if isinstance(sources.run, list | tuple) else [sources.run]),
        "pair": pair, "measure": claim.measure, "level": claim.level, "scoring": scoring,
        "trials": given.options.trials, "seed": given.resampling.seed,
    }  # fmt: skip

    def run(folder: Path | None, progress: Progress) -> dict[str, Any]:
        """The differences in the trials: with all teams, and without the team of either run."""
        found = pool.simulate(
            sources.run, sources.qrels, str(sources.test), str(sources.docs), official=sources.qrels,
            pooling=pool.Pooling(depth=cutoff_of(claim), metadata=() if not sources.metadata else (sources.metadata,)),
            options=pool.SimulationOptions(
                trials=given.options.trials, seed=given.resampling.seed, rel=scoring.rel, stopping=(), unlike="none",
                length=int(claim.qrels["topic_id"].value_counts()["count"].max()),  # type: ignore[arg-type]
            ),
            processes=Workers(workers=1), out=folder, progress=progress,
        )  # fmt: skip
        tried = {_CONTROL: ALL_TEAMS, **pair}
        return {"trials": {name: _differences(claim, found, team) for name, team in tried.items()}}

    return _merged(claim, answer, steps.once(_FOLDER, depends, run)["trials"])


def _differences(claim: Claim, simulation: pool.Simulation, team: str) -> list[list[float | None]]:
    """The difference in each trial without a team, and the ends of its interval."""
    found = []
    for judging in simulation.judgings:
        if judging.trial and (judging.rule, judging.left_out) == (pool.OriginalSize.name, team):
            one = claim.estimate(claim.differences(claim.scored(trial_qrels(simulation, judging))), "")
            found.append([one.value, one.low, one.high])
    return found


def trial_qrels(simulation: pool.Simulation, judging: Judging) -> pl.DataFrame:
    """The judgments of one trial, columns as in `QREL_SCHEMA`."""
    universe, scorer = simulation.standing.universe, simulation.standing.scorer
    rows = []
    for number in judging.qrels:
        judged = scorer.judged(int(number))
        documents, grades = universe.documents[judged.topic], universe.grades[judged.topic]
        topic = scorer.ranks.topics[judged.topic]
        rows += [(topic, documents[int(one)], int(grades[one])) for one in judged.documents]
    return pl.DataFrame(rows, schema=QREL_SCHEMA, orient="row")


def _merged(claim: Claim, answer: ClaimAnswer, trials: Mapping[str, list[list[float | None]]]) -> ClaimAnswer:
    base, effect, exception = claim.base, answer.effect, answer.exception
    estimates, text = list(answer.estimates), []
    # What the trials do with all teams is no matter of the pools.
    control = {effect_of(*one) for one in trials[_CONTROL]}
    for name, found in trials.items():
        values = [value for value, *_ in found if value is not None]
        if not values:
            continue
        least, most, middle = min(values), max(values), float(np.median(values))
        own = base.effect
        if name != _CONTROL and control == {base.effect}:
            own = _without_team(claim, name, {effect_of(*one) for one in found})
        who = f"with {_CONTROL}" if name == _CONTROL else f"without {name}'s team"
        estimates.append(ClaimEstimate(f"judged anew {who}", middle, least, most, base.topics, own, is_range=True))
        text.append(f"{signed(least)}{f' to {signed(most)}' if most > least else ''} {who}")
        if own != base.effect and effect == base.effect:
            effect, exception = own, (f"In judgings that are simulated {who} the lead is not there.",)
    if not text:
        return answer
    many = len(trials[_CONTROL])
    consequence = (
        f"{answer.consequence} In {f'{many} simulated judgings' if many > 1 else 'one simulated judging'} the "
        f"difference is {', '.join(text)}."
    )
    return replace(
        answer, effect=effect, consequence=consequence, estimates=tuple(estimates), exception=exception,
        folder=_FOLDER, facts={**answer.facts, "trials": dict(trials)},
        plausible=answer.plausible or effect not in (answer.effect, base.effect),
    )  # fmt: skip


def _without_team(claim: Claim, name: str, seen: set[Effect]) -> Effect:
    """What trials without the team of one run do to the claim."""
    base = claim.base.effect
    if name == claim.system and base == "stands" and seen != {"stands"}:
        return "falls" if "falls" in seen else "not shown"
    return "appears" if name == claim.baseline and base != "stands" and "stands" in seen else base

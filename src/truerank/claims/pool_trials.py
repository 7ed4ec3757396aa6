"""Systems that were not pooled, tried: the judging is simulated anew without the team of either run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.audits.reusability.pools.options import Pooling
from truerank.audits.reusability.simulation.options import SimulationOptions
from truerank.audits.reusability.simulation.outcomes import ALL_TEAMS, Judging
from truerank.audits.reusability.simulation.results import Simulation
from truerank.audits.reusability.simulation.simulating import simulate
from truerank.audits.reusability.stopping import OriginalSize
from truerank.claims.claim import Claim, ClaimEstimate, Effect, effect_of, signed
from truerank.claims.inquiry import Inquiry
from truerank.claims.judged_results import cutoff_of
from truerank.claims.results import ClaimAnswer
from truerank.claims.steps import AuditSteps
from truerank.options import Workers
from truerank.sources.qrels import QREL_SCHEMA
from truerank.work.progress import Progress

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

    def run(folder: Path | None, told: Progress) -> dict[str, Any]:
        """The differences in the trials: with all teams, and without the team of either run."""
        found = simulate(
            sources.run, sources.qrels, str(sources.test), str(sources.docs), official=sources.qrels,
            pooling=Pooling(depth=cutoff_of(claim), metadata=() if sources.metadata is None else (sources.metadata,)),
            options=SimulationOptions(
                trials=given.options.trials, seed=given.resampling.seed, rel=scoring.rel, stopping=(), unlike="none",
                length=int(claim.qrels["topic_id"].value_counts()["count"].max()),  # type: ignore[arg-type]
            ),
            processes=Workers(workers=1), out=folder, progress=told,
        )  # fmt: skip
        tried = {_CONTROL: ALL_TEAMS, **pair}
        return {"trials": {name: _differences(claim, found, team) for name, team in tried.items()}}

    return _merged(claim, answer, steps.once(_FOLDER, depends, run)["trials"])


def _differences(claim: Claim, simulation: Simulation, team: str) -> list[list[float | None]]:
    """The difference in each trial without a team, and the ends of its interval."""
    found = []
    for judging in simulation.judgings:
        if judging.trial and (judging.rule, judging.left_out) == (OriginalSize.name, team):
            one = claim.estimate(claim.differences(claim.scored(trial_qrels(simulation, judging))), "")
            found.append([one.value, one.low, one.high])
    return found


def trial_qrels(simulation: Simulation, judging: Judging) -> pl.DataFrame:
    """The judgments of one trial, columns as in `QREL_SCHEMA`."""
    universe, scorer = simulation.standing.universe, simulation.standing.scorer
    rows = []
    for number in judging.qrels.sets:
        judged = scorer.judged(int(number))
        documents, grades = universe.documents[judged.topic], universe.grades[judged.topic]
        topic = scorer.ranks.topics[judged.topic]
        rows += [(topic, documents[int(one)], int(grades[one])) for one in judged.documents]
    return pl.DataFrame(rows, schema=QREL_SCHEMA, orient="row")


def _merged(claim: Claim, answer: ClaimAnswer, trials: Mapping[str, list[list[float | None]]]) -> ClaimAnswer:
    base, effect, exception = claim.base, answer.effect, answer.exception
    estimates, told = list(answer.estimates), []
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
        told.append(f"{signed(least)}{f' to {signed(most)}' if most > least else ''} {who}")
        if own != base.effect and effect == base.effect:
            effect, exception = own, f"in judgings that are simulated {who}"
    if not told:
        return answer
    many = len(trials[_CONTROL])
    consequence = (
        f"{answer.consequence} In {f'{many} simulated judgings' if many > 1 else 'one simulated judging'} the "
        f"difference is {', '.join(told)}."
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

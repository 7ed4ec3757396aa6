"""What stopping rules make of simulated trials: qrels, and how each ranks the runs beside the official one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.audits.reusability.following import TopicJudgments, TopicOutcome, apply_rule
from truerank.audits.reusability.simulation.standings import JudgedSet, Qrels, Scorer, Universe
from truerank.audits.reusability.simulation.trials import Traced
from truerank.audits.reusability.stopping import StoppingRule
from truerank.errors import OptionError
from truerank.measures.orders import kendall, ranks

#: How the condition without any team left out is called in files; a team cannot have an empty name.
ALL_TEAMS: Final = ""
#: The control: the pool, then documents in random order.
RANDOM: Final = "Random order, original size"
#: All documents that the assessor has a grade for, of the topics of the official qrels.
COMPLETE: Final = "Complete judgments"


class Judging(NamedTuple):
    """What a rule made of one trial under one condition.

    `outcomes` are by topic; `judgments` counts those of all topics, the dropped ones included.
    """

    rule: str
    trial: int
    left_out: str
    outcomes: tuple[TopicOutcome, ...]
    qrels: Qrels
    judgments: int
    relevant: int


class Change(NamedTuple):
    """How a qrels ranks the runs beside the official one, by one measure.

    `tau` is Kendall's τ-b, None where all runs are tied; `drop` the most ranks that some run loses, which `dropped`
    names; `own` the most ranks that a run of the left-out team loses (0 or less where none loses any), `own_gain` the
    most that one wins; `largest_swap` is the largest difference at which two runs change places, in the means before or
    after, where one of the two at least is of the left-out team where a team is left out. `positions` are the ranks of
    the runs, shape (runs,).
    """

    rule: str
    trial: int
    left_out: str
    measure: str
    tau: float | None
    drop: int
    dropped: str
    own: int | None
    own_run: str
    own_gain: int | None
    largest_swap: float
    positions: Ints


class Official(NamedTuple):
    """The qrels that the others are compared with.

    `means` has the shape (measures, runs); `sizes` are the judgments by topic, of all topics that were judged, and
    `outcomes` how they came about, where a rule made them.
    """

    name: str
    qrels: Qrels
    means: Floats
    sizes: Mapping[str, int]
    outcomes: tuple[TopicOutcome, ...] = ()


@dataclass(frozen=True, eq=False)
class OfficialStanding:
    """What a qrels is compared by: the documents, the scorer, the official qrels, and the runs of each team."""

    universe: Universe
    scorer: Scorer
    official: Official
    teams: Mapping[str, Ints]


def judge(
    rule: StoppingRule, scorer: Scorer, traced: Sequence[Traced], trial: int, left_out: str = ALL_TEAMS
) -> Judging:
    """Applies a rule to the traces of one trial under one condition."""
    outcomes = apply_rule(rule, [one.found for one in traced])
    sets = [
        scorer.number(JudgedSet(number, one.documents[: outcome.judged]))
        for number, (one, outcome) in enumerate(zip(traced, outcomes, strict=True))
        if outcome.kept
    ]
    if not sets:
        reasons = ", ".join(dict.fromkeys(outcome.why_not for outcome in outcomes))
        raise OptionError(
            "stopping",
            f"the rule {rule.name} keeps none of the {len(outcomes):,} topics ({reasons})",
            "check the judgments, or change the rule",
        )
    return _judging(rule.name, trial, outcomes, sets)._replace(left_out=left_out)


def judge_at_random(standing: OfficialStanding, traced: Sequence[Traced], seed: int, trial: int) -> Judging:
    """The control of the learner: as many judgments as the official qrels have, after the pool in random order.

    Of the collection's documents only those are kept in the qrels that anything is known of; the others are not
    relevant, and measures that look at relevant documents alone do not see them.
    """
    universe, sizes = standing.universe, standing.official.sizes
    kept = {standing.scorer.judged(int(number)).topic for number in standing.official.qrels.sets}
    outcomes, sets = [], []
    for number, one in enumerate(traced):
        pool, size = one.found.pool, sizes.get(one.found.topic_id, 0)
        pooled = one.documents[:pool]
        others = np.setdiff1d(np.arange(len(universe.documents[number]), dtype=np.int32), pooled)
        left = max(len(others), universe.collection - pool)
        drawn = np.random.default_rng([seed, number]).choice(left, min(left, max(0, size - pool)), replace=False)
        documents = np.concatenate([pooled[:size], others[drawn[drawn < len(others)]]])
        relevant = int((universe.grades[number][documents] >= standing.scorer.rel).sum())
        why_not = "" if number in kept else "not in the official set"
        outcomes.append(TopicOutcome(one.found.topic_id, pool, size, relevant, not why_not, why_not, "stop", "", 0))
        if not why_not:
            sets.append(standing.scorer.number(JudgedSet(number, documents)))
    return _judging(RANDOM, trial, outcomes, sets)


def compare(standing: OfficialStanding, judging: Judging) -> Iterator[Change]:
    """How a qrels ranks the runs beside the official one, measure by measure."""
    scorer, official = standing.scorer, standing.official
    means = scorer.means(judging.qrels)
    own = standing.teams.get(judging.left_out)
    for number, name in enumerate(scorer.names):
        values = official.means[number], means[number]
        yield change_between(judging, scorer.ranks.runs, (name, scorer.ascending[number]), values, own)


def change_between(
    judging: Judging,
    runs: Sequence[str],
    measure: tuple[str, bool],
    means: tuple[Floats, Floats],
    own: Ints | None = None,
) -> Change:
    """How the order of runs changes from one set of means to another.

    Args:
        means: of the runs, before and after, shape (runs,) each.
    """
    before, after = means
    old, new = (ranks(values, ascending=measure[1]) for values in means)
    lost = new - old
    worst = int(lost.argmax())
    mine = None if own is None else lost[own]
    return Change(
        rule=judging.rule,
        trial=judging.trial,
        left_out=judging.left_out,
        measure=measure[0],
        tau=kendall(before, after).tau,
        drop=max(0, int(lost[worst])),
        dropped=runs[worst] if lost[worst] > 0 else "",
        own=None if mine is None else int(mine.max()),
        own_run="" if own is None or mine is None else runs[int(own[int(mine.argmax())])],
        own_gain=None if mine is None else max(0, int(-mine.min())),
        largest_swap=_largest_swap(before, after, own),
        positions=new,
    )


def found_by(traced: Sequence[TopicJudgments], sizes: Mapping[str, int], more: int = 0) -> tuple[int, int]:
    """Judgments and relevant documents over all topics, `more` judgments beyond each topic's size."""
    judgments = relevant = 0
    for found in traced:
        reached = min(len(found.found), sizes.get(found.topic_id, 0) + more)
        judgments += reached
        relevant += int(found.found[reached - 1]) if reached else 0
    return judgments, relevant


def _judging(rule: str, trial: int, outcomes: Sequence[TopicOutcome], sets: Sequence[int]) -> Judging:
    judgments = sum(outcome.judged for outcome in outcomes)
    relevant = sum(outcome.relevant for outcome in outcomes)
    return Judging(rule, trial, ALL_TEAMS, tuple(outcomes), Qrels(np.array(sets)), judgments, relevant)


def _largest_swap(before: Floats, after: Floats, own: Ints | None) -> float:
    """The largest difference, before or after, of two runs that change places."""
    first = np.round(before[:, None] - before[None, :], 12)
    second = np.round(after[:, None] - after[None, :], 12)
    swapped = (first > 0) & (second < 0)
    if own is not None:
        of_team = np.zeros(len(before), np.bool_)
        of_team[own] = True
        swapped &= of_team[:, None] | of_team[None, :]
    return float(np.where(swapped, np.maximum(first, -second), 0.0).max())

"""What a simulation says in words: how far a new system may be misranked, by which measures, and through which topics.

The thresholds are conventions, and the verdict names them: orders with τ of 0.9 and more are commonly taken for the
same (Voorhees, SIGIR 1998, from assessors who disagree); the others are this package's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from truerank.audits.reusability.simulation.outcomes import ALL_TEAMS, COMPLETE, Change, found_by
from truerank.audits.reusability.stopping import OriginalSize

if TYPE_CHECKING:
    from truerank.audits.reusability.simulation.report import Simulation

__all__ = ["MeasureVerdict", "NextGain", "TopicRisk", "Verdict", "verdict_of"]

Word = Literal["SAFE", "WITH CARE", "UNSAFE"]

#: τ of the worst trial from which orders count as the same, and from which they count as nearly so.
SAFE_TAU: Final = 0.95
USABLE_TAU: Final = 0.9
#: Ranks that a run of the left-out team may lose, as shares of the number of runs.
SAFE_DROP: Final = 0.05
USABLE_DROP: Final = 0.1
#: Judgments for each topic that the next gain is told for.
MORE: Final = 100
_CARRIERS: Final = 5


@dataclass(frozen=True)
class MeasureVerdict:
    """How safe it is to rank new systems by one measure.

    Attributes:
        measure: its name.
        word: SAFE, WITH CARE or UNSAFE.
        tau: the smallest τ over all trials and teams left out; None where it is never defined.
        drop: the most ranks that any run loses.
        own: the most ranks that a run of the left-out team loses, and its name, team and trial.
        own_gain: the most ranks that such a run wins.
        unmoved: the share of runs of left-out teams that keep their official rank.
        margin: the largest official difference of two runs that change places, one of them of the left-out team.
        all_tau: the smallest τ with all teams: what chance in the judging does by itself.
        all_drop: the most ranks that a run loses then.
        seen: τ of the order by all that the assessor knows, and the largest drop; None where these are the official
            judgments.
    """

    measure: str
    word: Word
    tau: float | None
    drop: int
    own: int
    own_run: str
    own_team: str
    own_trial: int
    own_gain: int
    unmoved: float
    margin: float
    all_tau: float | None
    all_drop: int
    seen: tuple[float | None, int] | None = None

    def sentence(self, runs: int) -> str:
        """The verdict on this measure."""
        moved = (
            f"a run of a team that was left out loses up to {_ranks(self.own)} of {runs:,} ({self.own_run}, trial "
            f"{self.own_trial})"
            if self.own > 0
            else "no run of a team that was left out loses a rank"
        )
        margin = (
            f" A new run and another never change places where they officially differ by more than {self.margin:.4f}."
            if self.margin > 0
            else ""
        )
        return (
            f"{self.measure}: {moved}, wins up to {self.own_gain:,}, and {self.unmoved:.0%} keep their rank; "
            f"τ is {_tau(self.tau)} or more.{margin}"
        )


class TopicRisk(NamedTuple):
    """How much a topic changes when its pool lacks the team of the run that is scored.

    `change` is the mean absolute difference of the topic's score, over all trials and the runs of the team left out;
    `share` is its part of the sum over topics; `ratio` is relevant by judged in the official judgments.
    """

    topic_id: str
    change: float
    share: float
    relevant: int
    judged: int

    @property
    def ratio(self) -> float:
        """Relevant by judged."""
        return self.relevant / self.judged if self.judged else 0.0


class NextGain(NamedTuple):
    """What the next judgments find: so many for each kept topic beyond the official ones, by the official seed."""

    each: int
    judgments: int
    relevant: int
    found_before: int
    judged_before: int

    @property
    def price(self) -> float | None:
        """Judgments for one relevant document; None where none is found."""
        return self.judgments / self.relevant if self.relevant else None


@dataclass(frozen=True)
class Verdict:
    """The verdict and what it rests on.

    Attributes:
        measures: by measure.
        topics: those of the evaluation set, the riskiest first, by the first measure.
        gain: what the next judgments find.
        runs: how many runs were ranked.
        trials: how many trials, and teams left out in each.
        left_out: teams.
    """

    measures: tuple[MeasureVerdict, ...]
    topics: tuple[TopicRisk, ...]
    gain: NextGain
    runs: int
    trials: int
    left_out: int

    def sentences(self) -> tuple[str, ...]:
        """The verdict in words, one statement each."""
        return (self.safety(), *(one.sentence(self.runs) for one in self.measures), *self._rest())

    def safety(self) -> str:
        """For which measures the collection is safe."""
        parts = [
            f"{said} {_listed(named)}"
            for word, said in (
                ("SAFE", "safe for"),
                ("WITH CARE", "to be used with care for"),
                ("UNSAFE", "not safe for"),
            )
            if (named := [one.measure for one in self.measures if one.word == word])
        ]
        return f"New systems: the collection is {'; '.join(parts)}."

    def criteria(self) -> str:
        """The conventions behind the words."""
        limits = [max(1, round(share * self.runs)) for share in (SAFE_DROP, USABLE_DROP)]
        return (
            f"SAFE: in all {self.trials:,} trials with each of {self.left_out:,} teams left out, τ is {SAFE_TAU:g} or "
            f"more and no run of the team left out loses more than {_ranks(limits[0])}. WITH CARE: τ {USABLE_TAU:g}, "
            f"{_ranks(limits[1])}. These are conventions, not laws."
        )

    def topic_sentence(self) -> str:
        """Which topics carry the risk."""
        moving = [topic for topic in self.topics if topic.change > 0][:_CARRIERS]
        if not moving:
            return f"No topic's {self.measures[0].measure} changes when a team is left out."
        named = ", ".join(topic.topic_id for topic in moving)
        return (
            f"Topics: {named} carry {sum(topic.share for topic in moving):.0%} of the change in "
            f"{self.measures[0].measure} of runs whose team was left out; equal shares would be "
            f"{len(moving) / len(self.topics):.0%}."
        )

    def gain_sentence(self) -> str:
        """What the next judgments cost."""
        gain = self.gain
        if not gain.judgments:
            return "Cost: nothing is left to judge in the traces."
        found = (
            f"{gain.relevant:,} more relevant documents, one in {gain.price:,.0f}"
            if gain.price is not None
            else "no further relevant document"
        )
        return (
            f"Cost: the next {gain.each:,} judgments of each kept topic, {gain.judgments:,} in all, find {found}; "
            f"so far {gain.judged_before:,} judgments found {gain.found_before:,}."
        )

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "sentences": list(self.sentences()),
            "criteria": self.criteria(),
            "measures": [vars(one) | {"seen": None if one.seen is None else list(one.seen)} for one in self.measures],
            "topics": [{**topic._asdict(), "ratio": topic.ratio} for topic in self.topics],
            "next_gain": {**self.gain._asdict(), "price": self.gain.price},
        }

    def _rest(self) -> Iterator[str]:
        worst = min(self.measures, key=lambda one: 1.0 if one.all_tau is None else one.all_tau)
        yield (
            f"Chance: with all teams, the order of runs changes between trials down to τ {_tau(worst.all_tau)} "
            f"({worst.measure}), a loss of {_ranks(max(one.all_drop for one in self.measures))} at most."
        )
        for one in self.measures:
            if one.seen is not None:
                yield (
                    f"{one.measure}: against all that the assessor knows of these topics, the official order has τ "
                    f"{_tau(one.seen[0])} and a largest drop of {_ranks(one.seen[1])}."
                )
        yield self.topic_sentence()
        yield self.gain_sentence()


def verdict_of(simulation: Simulation) -> Verdict:
    """Judges a collection by its simulation."""
    runs = len(simulation.standing.scorer.ranks.runs)
    teams = simulation.standing.teams
    return Verdict(
        measures=tuple(_measure(simulation, name, runs) for name in simulation.standing.scorer.names),
        topics=_risks(simulation),
        gain=_gain(simulation),
        runs=runs,
        trials=simulation.options.trials,
        left_out=len(teams),
    )


def _measure(simulation: Simulation, name: str, runs: int) -> MeasureVerdict:
    original = OriginalSize.name
    changes = [one for one in simulation.changes if one.measure == name and one.trial and one.rule == original]
    everyone = [one for one in changes if one.left_out == ALL_TEAMS]
    without = [one for one in changes if one.left_out != ALL_TEAMS]
    worst = max(without, key=lambda one: one.own or 0)
    tau = _smallest(without)
    lost = [_lost(simulation, one) for one in without]
    unmoved = float(np.mean(np.concatenate(lost) == 0))
    complete = [one for one in simulation.changes if one.measure == name and one.rule == COMPLETE]
    seen = (complete[0].tau, complete[0].drop) if complete and not simulation.is_complete else None
    return MeasureVerdict(
        measure=name,
        word=_word(tau, max(0, worst.own or 0), runs),
        tau=tau,
        drop=max(one.drop for one in without),
        own=max(0, worst.own or 0),
        own_run=worst.own_run,
        own_team=worst.left_out,
        own_trial=worst.trial,
        own_gain=max(one.own_gain or 0 for one in without),
        unmoved=unmoved,
        margin=max(one.margin for one in without),
        all_tau=_smallest(everyone),
        all_drop=max(one.drop for one in everyone),
        seen=seen,
    )


def _word(tau: float | None, own: int, runs: int) -> Word:
    if tau is None:
        return "UNSAFE"
    if tau >= SAFE_TAU and own <= max(1, round(SAFE_DROP * runs)):
        return "SAFE"
    return "WITH CARE" if tau >= USABLE_TAU and own <= max(1, round(USABLE_DROP * runs)) else "UNSAFE"


def _lost(simulation: Simulation, change: Change) -> Any:
    """Ranks that each run of the left-out team loses."""
    standing = simulation.standing
    return (change.positions - simulation.positions(change.measure))[standing.teams[change.left_out]]


def _risks(simulation: Simulation) -> tuple[TopicRisk, ...]:
    """By topic, how much the scores of left-out runs change by the first measure."""
    scorer, official = simulation.standing.scorer, simulation.standing.official
    values = scorer.values()[:, 0, :]
    before = {scorer.judged(int(number)).topic: int(number) for number in official.qrels.sets}
    changed = dict.fromkeys(before, 0.0)
    counted = 0
    for judging in simulation.judgings:
        if judging.left_out == ALL_TEAMS:
            continue
        own = simulation.standing.teams[judging.left_out]
        counted += len(own)
        for number in judging.qrels.sets:
            topic = scorer.judged(int(number)).topic
            changed[topic] += float(np.abs(values[number, own] - values[before[topic], own]).sum())
    total = sum(changed.values())
    statistics = {row.topic_id: row for row in simulation.judged_topics()}
    risks = [
        TopicRisk(
            scorer.ranks.topics[topic],
            round(change / max(1, counted), 12),
            round(change / total, 12) if total else 0.0,
            statistics[scorer.ranks.topics[topic]].relevant,
            statistics[scorer.ranks.topics[topic]].judged,
        )
        for topic, change in changed.items()
    ]
    return tuple(sorted(risks, key=lambda risk: (-risk.change, risk.topic_id)))


def _gain(simulation: Simulation) -> NextGain:
    kept = {row.topic_id for row in simulation.judged_topics() if not row.why_not}
    found = [traced.found for traced in simulation.traces.official if traced.found.topic_id in kept]
    sizes: Mapping[str, int] = simulation.standing.official.sizes
    judged, relevant = found_by(found, sizes)
    more, then = found_by(found, sizes, MORE)
    return NextGain(MORE, more - judged, then - relevant, relevant, judged)


def _smallest(changes: Sequence[Change]) -> float | None:
    taus = [one.tau for one in changes if one.tau is not None]
    return min(taus) if taus else None


def _tau(tau: float | None) -> str:
    return "not defined" if tau is None else f"{tau:.4f}"


def _ranks(number: int) -> str:
    return "1 rank" if number == 1 else f"{number:,} ranks"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

"""What a simulation says in words: how new systems were misranked in its trials, by which measures and topics.

There are three tests: each team left out, trial by trial; the relevant documents that one team alone brought in, taken
out; and systems unlike the runs, which were not pooled. The word is that of the worst; but the second test, in which
nothing is judged instead of what is taken out, does not say NOT HELD alone where unlike systems were tried. The word
tells what was seen, and does not bound what may come. The thresholds are conventions, and the verdict names them:
orders with τ of 0.9 and more are commonly taken for the same (Voorhees, SIGIR 1998, from assessors who disagree); the
others are this package's.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from truerank.audits.pool.simulation import Simulation
from truerank.audits.pool.standings import ALL_TEAMS, COMPLETE, LEAVE_OUT_UNIQUES, Change, found_by
from truerank.audits.pool.stopping import OriginalSize
from truerank.audits.pool.unlike import UNLIKE, UNLIKE_PASSED
from truerank.core.plain import picked
from truerank.core.verdict import Verdict

#: Judgments for each topic that the next gain is told for.
MORE: Final = 100


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


def topic_risks(simulation: Simulation) -> tuple[TopicRisk, ...]:
    """By topic, how much the scores of left-out runs change by the first measure."""
    scorer, official = simulation.standing.scorer, simulation.standing.official
    values = scorer.values()[:, 0, :]
    before = {scorer.judged(int(number)).topic: int(number) for number in official.qrels}
    changed = dict.fromkeys(before, 0.0)
    counted = 0
    for judging in simulation.judgings:
        if judging.left_out == ALL_TEAMS:
            continue
        own = simulation.standing.teams[judging.left_out]
        counted += len(own)
        for number in judging.qrels:
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


def next_gain(simulation: Simulation) -> NextGain:
    """What the next judgments of the kept topics find, by the official seed."""
    kept = {row.topic_id for row in simulation.judged_topics() if not row.why_not}
    found = [traced.found for traced in simulation.traces.official if traced.found.topic_id in kept]
    sizes: Mapping[str, int] = simulation.standing.official.sizes
    judged, relevant = found_by(found, sizes)
    more, then = found_by(found, sizes, MORE)
    return NextGain(MORE, more - judged, then - relevant, relevant, judged)


Word = Literal["HELD", "WITH CARE", "NOT HELD", "UNKNOWN"]
Test = Literal["teams left out", "unique documents left out", "unlike systems"]

#: τ of the worst case from which an order counts as held, and from which it is to be used with care.
HELD_TAU: Final = 0.95
CARE_TAU: Final = 0.9
#: Ranks that a new run may lose, as shares of the number of runs.
HELD_LOSS: Final = 0.05
CARE_LOSS: Final = 0.1
#: A system with more of its first documents in the pools is not unlike the runs.
UNLIKE_OVERLAP: Final = 0.9
_CARRIERS: Final = 5


class Evidence(NamedTuple):
    """The worst of one test by one measure.

    Attributes:
        test: which.
        cases: orders that were compared.
        word: HELD, WITH CARE or NOT HELD by this test alone; UNKNOWN where no τ is defined.
        tau: the smallest τ; None where it is never defined.
        lost: the most ranks that a new run loses: of a team left out, or an unlike system.
        lost_team: its team; an unlike system's is its own.
        lost_trial: the trial; 0 for the official judgments.
        won: the most ranks that a new run wins.
        largest_swap: the largest difference at which a new run and another changed places, in the judgments with or
            without the new run's documents.
        swap_team: the team or unlike system that it belongs to.
    """

    test: Test
    cases: int
    runs: int
    word: Word
    tau: float | None
    lost: int
    lost_run: str
    lost_team: str
    lost_trial: int
    won: int
    largest_swap: float
    swap_team: str

    def sentence(self, trials: int, teams: int) -> str:
        tried = {
            "teams left out": f"In {_trials(trials)} with each of these {teams:,} teams left out",
            "unique documents left out": "Without the relevant documents that one team alone brought in",
            "unlike systems": "With systems unlike the runs, which were not pooled",
        }[self.test]
        by = f" ({self.lost_run}, trial {self.lost_trial})" if self.lost_trial else f" ({self.lost_run})"
        lost = (
            f"a new run lost up to {_ranks(self.lost)} of {self.runs:,}{by}" if self.lost else "no new run lost a rank"
        )
        won = f"one won up to {self.won:,}" if self.won else "none won any"
        far = f" New runs changed places at differences of up to {self.largest_swap:.4f} ({self.swap_team})."
        swap = far if self.largest_swap > 0 else " None changed places."
        return f"{tried}, {lost} and {won}. The smallest τ is {_tau(self.tau)}.{swap}"


@dataclass(frozen=True)
class MeasureVerdict(Verdict):
    """How the order of new systems fared by one measure, its subject.

    The word is of the worst test; UNKNOWN where no test contradicts, and one is missing.

    Attributes:
        evidence: the worst of each test that was made.
        trials: how many, and the teams left out in each.
        unmoved: the share of runs of left-out teams that keep their official rank.
        all_tau: the smallest τ with all teams: what chance in the judging does by itself.
        all_drop: the most ranks that a run loses then.
        seen: τ of the order by all that the assessor knows, and the largest drop; None where these are the official
            judgments.
    """

    evidence: tuple[Evidence, ...] = ()
    trials: int = 0
    teams: int = 0
    unmoved: float = 0.0
    all_tau: float | None = None
    all_drop: int = 0
    seen: tuple[float | None, int] | None = None

    @property
    def largest_swap(self) -> float:
        return max(one.largest_swap for one in self.evidence)

    @property
    def lost(self) -> int:
        return max(one.lost for one in self.evidence)

    def tests(self) -> tuple[str, ...]:
        return tuple(one.sentence(self.trials, self.teams) for one in self.evidence)

    def json(self) -> dict[str, Any]:
        names = "measure=subject, word, reason=sentence, evidence, what_would_change_it=settles, trials, teams, unmoved"
        return picked(self, f"{names}, all_tau, all_drop, seen")


@dataclass(frozen=True)
class Conclusion:
    """The verdict and what it rests on.

    Attributes:
        measures: by measure.
        topics: those of the evaluation set, the riskiest first, by the first measure.
        gain: what the next judgments find.
        runs: how many runs were ranked.
        trials: how many trials, and teams left out in each.
        left_out: teams.
        depth: documents of each run and topic in the pools.
        overlaps: by team, the share of its pool that other teams brought in too.
        unlike: by unlike system, the share of its first documents that the pools hold.
        blind: what the judgments cannot show.
    """

    measures: tuple[MeasureVerdict, ...]
    topics: tuple[TopicRisk, ...]
    gain: NextGain
    runs: int
    trials: int
    left_out: int
    depth: int
    overlaps: Mapping[str, float]
    unlike: Mapping[str, float]
    blind: str

    def sentences(self) -> tuple[str, ...]:
        """The verdict in words, one statement each."""
        measures = (f"{one.subject}: {one.word}. {one.sentence} {' '.join(one.tests())}" for one in self.measures)
        return (
            self.summary(), *measures, self.alike_sentence(), self.blind,
            *self.chance_sentences(), self.topic_sentence(), self.gain_sentence(),
        )  # fmt: skip

    def summary(self) -> str:
        """The word of each measure, and what it was tried with."""
        parts = [
            f"{word} for {_listed(named)}"
            for word in ("HELD", "WITH CARE", "NOT HELD", "UNKNOWN")
            if (named := [one.subject for one in self.measures if one.word == word])
        ]
        unlike = [name for name, overlap in self.unlike.items() if overlap <= UNLIKE_OVERLAP]
        systems = f" and {len(unlike):,} systems unlike them ({', '.join(unlike)})" if unlike else ""
        return (
            f"The order of new systems, in {_trials(self.trials)} with these {self.left_out:,} teams{systems}: "
            f"{'; '.join(parts)}."
        )

    def criteria(self) -> str:
        """The conventions behind the words."""
        limits = [max(1, round(share * self.runs)) for share in (HELD_LOSS, CARE_LOSS)]
        return (
            f"HELD: in every test τ was {HELD_TAU:g} or more, no new run lost more than {_ranks(limits[0])}, and a "
            f"system with at most {UNLIKE_OVERLAP:.0%} of its first {self.depth:,} documents in the pools was tried. "
            f"WITH CARE: τ {CARE_TAU:g}, {_ranks(limits[1])}; where such a system was tried, whatever happens without "
            "the unique documents of a team, in whose place nothing is judged. NOT HELD: less. UNKNOWN: nothing "
            "contradicts, but a test is missing. These are conventions, and the tests bound nothing that was not tried."
        )

    def alike_sentence(self) -> str:
        """How alike the teams are, and how unlike the systems that were tried."""
        said = f"Of the documents that a team pooled, other teams also pooled {_spread(self.overlaps)}."
        if not self.unlike:
            return f"{said} No unlike system was tried: a new team may resemble these less than they do each other."
        held = f"the pools hold {_spread(self.unlike)}."
        return f"{said} Of the first {self.depth:,} documents of the unlike systems, {held}"

    def topic_sentence(self) -> str:
        """Which topics carry the risk."""
        moving = [topic for topic in self.topics if topic.change > 0][:_CARRIERS]
        if not moving:
            return f"No topic's {self.measures[0].subject} changes when a team is left out."
        named = ", ".join(topic.topic_id for topic in moving)
        return (
            f"{sum(topic.share for topic in moving):.0%} of the change in {self.measures[0].subject} of runs whose "
            f"team was left out lies in the topics {named}; equal shares would be {len(moving) / len(self.topics):.0%}."
        )

    def gain_sentence(self) -> str:
        """What the next judgments cost."""
        gain = self.gain
        if not gain.judgments:
            return "Nothing is left to judge."
        found = (
            f"{gain.relevant:,} more relevant documents, one in {gain.price:,.0f}"
            if gain.price is not None
            else "no further relevant document"
        )
        return (
            f"The next {gain.each:,} judgments of each kept topic, {gain.judgments:,} in all, find {found}. "
            f"So far {gain.judged_before:,} judgments found {gain.found_before:,}."
        )

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            **picked(self, "sentences, criteria, measures, depth, overlaps, unlike, blind"),
            "topics": [{**topic._asdict(), "ratio": topic.ratio} for topic in self.topics],
            "next_gain": {**self.gain._asdict(), "price": self.gain.price},
        }

    def chance_sentences(self) -> Iterator[str]:
        """What chance in the judging does by itself, and what the official order is worth beside all judgments."""
        worst = min(self.measures, key=lambda one: 1.0 if one.all_tau is None else one.all_tau)
        yield (
            f"With all teams, chance alone changes the order between trials: τ falls to {_tau(worst.all_tau)} "
            f"({worst.subject}), and a run loses at most {_ranks(max(one.all_drop for one in self.measures))}."
        )
        for one in self.measures:
            if one.seen is not None:
                yield (
                    f"By {one.subject}, the official order has τ {_tau(one.seen[0])} with the order by all that the "
                    f"assessor knows; a run drops by at most {_ranks(one.seen[1])}."
                )


@functools.lru_cache(maxsize=1)
def verdict_of(simulation: Simulation) -> Conclusion:
    """Judges a collection by its simulation."""
    return Conclusion(
        measures=tuple(_measure(simulation, name) for name in simulation.standing.scorer.names),
        topics=topic_risks(simulation),
        gain=next_gain(simulation),
        runs=len(simulation.standing.scorer.ranks.runs),
        trials=simulation.options.trials,
        left_out=len(simulation.standing.teams),
        depth=simulation.sources.depth,
        overlaps=simulation.overlaps,
        unlike={system.name: system.overlap for system in simulation.unlike},
        blind=_blind(simulation),
    )


def _measure(simulation: Simulation, name: str) -> MeasureVerdict:
    trials = [one for one in simulation.of_rule(OriginalSize.name, name) if one.trial]
    everyone = [one for one in trials if one.left_out == ALL_TEAMS]
    without = [one for one in trials if one.left_out != ALL_TEAMS]
    unlike = [one for rule in UNLIKE for one in simulation.of_rule(rule, name)]
    tests: tuple[tuple[Test, list[Change]], ...] = (
        ("teams left out", without),
        ("unique documents left out", simulation.of_rule(LEAVE_OUT_UNIQUES, name)),
        ("unlike systems", unlike),
    )
    evidence = tuple(_evidence(test, changes) for test, changes in tests if changes)
    word, reason, change = _judged(simulation, name, evidence)
    complete = simulation.of_rule(COMPLETE, name)
    seen = (complete[0].tau, complete[0].drop) if complete and not simulation.is_complete else None
    official, teams = simulation.positions(name), simulation.standing.teams
    # Ranks that each run of the left-out team loses.
    lost = [(one.positions - official)[teams[one.left_out]] for one in without]
    return MeasureVerdict(
        word=word,
        sentence=reason,
        settles=change,
        subject=name,
        evidence=evidence,
        trials=simulation.options.trials,
        teams=len(teams),
        unmoved=float(np.mean(np.concatenate(lost) == 0)),
        all_tau=_smallest(everyone),
        all_drop=max(one.drop for one in everyone),
        seen=seen,
    )


def _evidence(test: Test, changes: Sequence[Change]) -> Evidence:
    worst = max(changes, key=lambda one: one.own or 0)
    swapped = max(changes, key=lambda one: one.largest_swap)
    tau, lost, runs = _smallest(changes), max(0, worst.own or 0), len(worst.positions)
    return Evidence(
        test=test,
        cases=len(changes),
        runs=runs,
        word=_word(tau, lost, runs),
        tau=tau,
        lost=lost,
        lost_run=worst.own_run,
        lost_team=worst.left_out,
        lost_trial=worst.trial,
        won=max(one.own_gain or 0 for one in changes),
        largest_swap=swapped.largest_swap,
        swap_team=swapped.left_out,
    )


def _word(tau: float | None, lost: int, runs: int) -> Word:
    if tau is None:
        return "UNKNOWN"
    if tau >= HELD_TAU and lost <= max(1, round(HELD_LOSS * runs)):
        return "HELD"
    return "WITH CARE" if tau >= CARE_TAU and lost <= max(1, round(CARE_LOSS * runs)) else "NOT HELD"


def _judged(simulation: Simulation, measure: str, evidence: Sequence[Evidence]) -> tuple[Word, str, str]:
    depth = simulation.sources.depth
    tried = any(system.overlap <= UNLIKE_OVERLAP for system in simulation.unlike)
    words: dict[Test, Word] = {one.test: one.word for one in evidence}
    # Nothing is judged in the place of unique documents that are left out: where others were tried, this says less.
    if tried and words.get("unique documents left out") == "NOT HELD":
        words["unique documents left out"] = "WITH CARE"
    for word in ("NOT HELD", "WITH CARE"):
        if found := [one for one in evidence if words[one.test] == word]:
            worst = min(found, key=lambda one: (one.tau or 0.0, -one.lost))
            lost = (
                f"a new run loses {_ranks(worst.lost)} of {worst.runs:,}" if worst.lost else "no new run loses a rank"
            )
            return word, f"With {worst.test}, τ falls to {_tau(worst.tau)} and {lost}.", (
                f"Judge the first {depth:,} documents of a new system before you compare it, or judge further than "
                "now: the table of budgets says what that costs. Other measures may hold."
            )  # fmt: skip
    if any(one.word == "UNKNOWN" for one in evidence):
        return (
            "UNKNOWN",
            "All runs are tied: there is no order that could change.",
            "Give runs that differ, or another measure.",
        )
    if not tried:
        reason = (
            f"The pools hold more than {UNLIKE_OVERLAP:.0%} of the first {depth:,} documents of every unlike system."
            if simulation.unlike
            else "Each test that was made held, but no system unlike these runs was tried."
        )
        return "UNKNOWN", reason, "`truerank pool simulate --unlike latent,feedback` tries some."
    passed = max(simulation.of_rule(UNLIKE_PASSED, measure), key=lambda one: one.own_gain or 0, default=None)
    if passed is not None and _word(1.0, passed.own_gain or 0, len(passed.positions)) != "HELD":
        reason = (
            f"The unlike system {passed.left_out} would win {_ranks(passed.own_gain or 0)} if its documents without a "
            "grade were passed over: what nobody judged decides its rank."
        )
        return "UNKNOWN", reason, f"Judge the first {depth:,} documents of such a system."
    least, most = min(one.tau for one in evidence if one.tau is not None), max(one.lost for one in evidence)
    lost = f"more than {_ranks(most)}" if most else "a rank"
    reason = f"In every test τ was {least:.4f} or more, and no new run lost {lost}."
    return "HELD", reason, "A system less like the pools than those tried, or relevant documents that nobody judged."


def _blind(simulation: Simulation) -> str:
    head = "Relevant documents that nobody judged are not seen"
    if not simulation.has_non_relevant:
        return f"{head}: these judgments name relevant documents only, and every other one counts as not relevant."
    parts = [
        f"{system.ungraded / system.first:.0%} of {system.name}'s"
        for system in simulation.unlike
        if system.ungraded is not None and system.first
    ]
    shown = f", as {_listed(parts)} first {simulation.sources.depth:,} do" if parts else ""
    return f"{head}: a document without a grade counts as not relevant{shown}."


def _smallest(changes: Sequence[Change]) -> float | None:
    taus = [one.tau for one in changes if one.tau is not None]
    return min(taus) if taus else None


def _trials(number: int) -> str:
    return "this trial" if number == 1 else f"these {number:,} trials"


def _tau(tau: float | None) -> str:
    return "not defined" if tau is None else f"{tau:.4f}"


def _ranks(number: int) -> str:
    return "1 rank" if number == 1 else f"{number:,} ranks"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _spread(shares: Mapping[str, float]) -> str:
    low, high = min(shares, key=lambda name: shares[name]), max(shares, key=lambda name: shares[name])
    if shares[low] == shares[high]:
        return f"{shares[low]:.0%}"
    return f"{shares[low]:.0%} ({low}) to {shares[high]:.0%} ({high})"

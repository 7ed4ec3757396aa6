"""What stopping rules, and the test without unique documents, make of simulated trials: qrels, and how each ranks runs.

Runs are scored by very many qrels of the same topics: each topic's judged documents once, however many qrels hold them.

A qrels is a choice of topics with one set of judged documents for each. Most sets come back in many qrels, and a
measure's mean is made of its topics' values, so that the sets are scored, and the qrels are means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.arrays import Floats, Ints
from truerank.audits.pool.pools import first_documents
from truerank.audits.pool.stopping import StoppingRule, TopicJudgments, TopicOutcome, apply_rule
from truerank.errors import OptionError
from truerank.measures import parse_measures
from truerank.measures.effectiveness import RankedJudgments, computes, score
from truerank.measures.grammar import aggregate_of, lower_is_better
from truerank.measures.orders import kendall, ranks
from truerank.measures.rankings import GradeTable, Hits
from truerank.options import Scoring

if TYPE_CHECKING:
    from truerank.audits.pool.trials import Traced

#: Judgments that are scored at once.
_CHUNK: Final = 1 << 19


class JudgedSet(NamedTuple):
    """The judged documents of a topic: the topic's number, and the documents' numbers in it, shape (judgments,)."""

    topic: int
    documents: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Universe:
    """The documents that anything is known of.

    Attributes:
        topics: the ids of the topics.
        documents: of each topic, the ids of the documents that were judged, or that the assessor has a grade for.
        grades: their grades, shape (documents,) each.
    """

    topics: tuple[str, ...]
    documents: tuple[tuple[str, ...], ...]
    grades: tuple[Ints, ...]
    collection: int


@dataclass(frozen=True, eq=False)
class RunRanks:
    """Where the runs have the documents."""

    runs: tuple[str, ...]
    topics: tuple[str, ...]
    starts: Ints
    ranks: NDArray[np.int32]
    results: Ints

    @classmethod
    def of(cls, runs: Mapping[str, pl.DataFrame], universe: Universe) -> RunRanks:
        """Looks the documents up in the runs."""
        topics, documents = universe.topics, universe.documents
        starts = np.concatenate([[0], np.cumsum([len(some) for some in documents])]).astype(np.int64)
        wanted = pl.DataFrame(
            {
                "topic_id": pl.Series(topics, dtype=pl.String).gather(
                    np.repeat(np.arange(len(topics)), np.diff(starts))
                ),
                "doc_id": pl.Series([doc_id for some in documents for doc_id in some], dtype=pl.String),
            }
        )
        order = pl.DataFrame({"topic_id": list(topics)}, schema={"topic_id": pl.String})
        ranks = np.empty((len(runs), len(wanted)), np.int32)
        results = np.zeros((len(runs), len(topics)), np.int64)
        for number, frame in enumerate(runs.values()):
            ranked = first_documents(frame.join(order, on="topic_id", how="semi"))
            found = wanted.join(ranked, on=["topic_id", "doc_id"], how="left", maintain_order="left")
            ranks[number] = found["place"].fill_null(0).to_numpy() - 1
            sizes = ranked.group_by("topic_id").len()
            results[number] = order.join(sizes, on="topic_id", how="left", maintain_order="left")["len"].fill_null(0)
        return cls(tuple(runs), tuple(topics), starts, ranks, results)


class Scorer:
    """Sets of judged documents, each scored once for all runs."""

    def __init__(self, ranks: RunRanks, universe: Universe, measures: Sequence[Measure], rel: int = 1) -> None:
        self.ranks, self.measures = ranks, tuple(measures)
        self.names = tuple(map(str, measures))
        self.ascending = tuple(lower_is_better(name) for name in self.names)
        self._grades = universe.grades
        self._policy = Scoring(rel=rel)
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._sets: list[JudgedSet] = []
        self._values = np.zeros((0, len(self.measures), len(ranks.runs)))

    def number(self, judged: JudgedSet) -> int:
        documents = np.sort(judged.documents)
        key = judged.topic, hashlib.blake2b(documents.tobytes(), digest_size=16).digest()
        if key not in self._numbers:
            self._numbers[key] = len(self._sets)
            self._sets.append(JudgedSet(judged.topic, documents))
        return self._numbers[key]

    @property
    def rel(self) -> int:
        return self._policy.rel

    def judged(self, number: int) -> JudgedSet:
        return self._sets[number]

    def values(self) -> Floats:
        """The scores of all sets, shape (sets, measures, runs); those that came since the last call are scored now."""
        while len(self._values) < len(self._sets):
            chunk = list(self._chunk(len(self._values)))
            self._values = np.concatenate([self._values, self._scored(chunk)])
        return self._values

    def means(self, qrels: Ints) -> Floats:
        """The mean of every measure and run over the topics of a qrels, shape (measures, runs)."""
        found: Floats = self.values()[qrels].mean(axis=0)
        return found

    def _chunk(self, first: int) -> Iterator[JudgedSet]:
        size = 0
        for judged in self._sets[first:]:
            yield judged
            size += len(judged.documents)
            if size >= _CHUNK:
                return

    def _scored(self, sets: Sequence[JudgedSet]) -> Floats:
        topics = np.array([judged.topic for judged in sets])
        owner = np.repeat(np.arange(len(sets)), [len(judged.documents) for judged in sets])
        local = np.concatenate([judged.documents for judged in sets]).astype(np.int64)
        places = local + self.ranks.starts[topics[owner]]
        grades = np.concatenate([self._grades[judged.topic][judged.documents] for judged in sets])
        # The sets as the judgments of one topic each.
        columns = {"topic_id": pl.Series(owner).cast(pl.String), "doc_id": pl.Series(local).cast(pl.String)}
        judgments = GradeTable(pl.DataFrame(columns | {"relevance": grades.astype(np.int32)}))
        values = np.empty((len(sets), len(self.measures), len(self.ranks.runs)))
        for run in range(len(self.ranks.runs)):
            ranks = self.ranks.ranks[run, places].astype(np.int64)
            there = np.flatnonzero(ranks >= 0)
            there = there[np.lexsort((ranks[there], owner[there]))]
            hits = Hits(owner[there], ranks[there], grades[there], self.ranks.results[run, topics])
            view = RankedJudgments(judgments, hits, None, self._policy)
            for number, measure in enumerate(self.measures):
                values[:, number, run] = score(measure, view)
        return values


def simulated_measures(text: str) -> tuple[Measure, ...]:
    """The measures that a simulation can rank runs by: means over topics of what this package computes itself."""
    measures = parse_measures(text)
    for measure in measures:
        if not computes(measure) or aggregate_of(measure) != "mean" or measure.NAME == "RR_MSMARCO":
            remedy = "choose among AP, nDCG@k, P@k, R@k, RR, Rprec, Bpref, NCG@k and RBP"
            raise OptionError("measures", f"'{measure}' is not simulated", remedy)
    return tuple(measures)


#: How the condition without any team left out is called in files; a team cannot have an empty name.
ALL_TEAMS: Final = ""
#: The control: the pool, then documents in random order.
RANDOM: Final = "Random order, original size"
#: All documents that the assessor has a grade for, of the topics of the official qrels.
COMPLETE: Final = "Complete judgments"


class Judging(NamedTuple):
    """What a rule made of one trial under one condition.

    `outcomes` are by topic; `qrels` are the sets of its topics, by their numbers in a `Scorer`, shape (topics,);
    `judgments` counts those of all topics, the dropped ones included.
    """

    rule: str
    trial: int
    left_out: str
    outcomes: tuple[TopicOutcome, ...]
    qrels: Ints
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
    qrels: Ints
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
    kept = {standing.scorer.judged(int(number)).topic for number in standing.official.qrels}
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
    """How the order of runs changes from one set of means to another."""
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
    return Judging(rule, trial, ALL_TEAMS, tuple(outcomes), np.array(sets), judgments, relevant)


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


LEAVE_OUT_UNIQUES: Final = "Leave out uniques"


class Unique(NamedTuple):
    """What one team alone contributed to the pools: documents, relevant ones among them, topics that these are of."""

    team: str
    documents: int
    relevant: int
    topics: int


def unique_documents(pools: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The pooled documents that one team alone contributed."""
    every = pl.concat([pool.select("topic_id", "doc_id", pl.lit(team).alias("team")) for team, pool in pools.items()])
    alone = every.group_by("topic_id", "doc_id").agg(pl.col("team").first(), pl.len())
    return alone.filter(pl.col("len") == 1).select("topic_id", "doc_id", "team").sort("topic_id", "doc_id")


def leave_out_uniques(
    standing: OfficialStanding, uniques: pl.DataFrame
) -> tuple[tuple[Unique, ...], tuple[Change, ...]]:
    """Ranks the runs by the official qrels without the relevant documents that one team alone contributed.

    Source: Zobel (SIGIR 1998); Buckley et al. (2007).
    """
    scorer, universe = standing.scorer, standing.universe
    counts, changes = [], []
    for team in standing.teams:
        own = uniques.filter(pl.col("team") == team)
        by_topic = {str(key[0]): set(part["doc_id"]) for key, part in own.group_by("topic_id")}
        sets, relevant, topics = [], 0, 0
        for number in standing.official.qrels:
            judged = scorer.judged(int(number))
            alone = by_topic.get(scorer.ranks.topics[judged.topic], set())
            ids, levels = universe.documents[judged.topic], universe.grades[judged.topic]
            out = np.array([levels[one] >= scorer.rel and ids[one] in alone for one in judged.documents], np.bool_)
            relevant += int(out.sum())
            topics += bool(out.any())
            sets.append(scorer.number(JudgedSet(judged.topic, judged.documents[~out])))
        counts.append(Unique(team, len(own), relevant, topics))
        judging = Judging(LEAVE_OUT_UNIQUES, 0, team, (), np.array(sets), 0, 0)
        changes += list(compare(standing, judging))
    return tuple(counts), tuple(changes)

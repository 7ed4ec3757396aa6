"""Unlike systems tried on a collection: how they stand by its judgments, and by judgments that hold their documents.

An unlike system is left out of the pools. The judgments at hand, official and of every trial, rank it among the runs;
so do the same judgments with its own first documents added, and all that the assessor knows. What differs is what a new
system of this kind would lose. A document that the assessor has no grade for counts as not relevant in all of them, so
that this shows too little; the share of such documents is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.reusability.pools.depth import depth_pool, first_documents
from truerank.audits.reusability.simulation.inputs import Inputs
from truerank.audits.reusability.simulation.outcomes import (
    ALL_TEAMS,
    COMPLETE,
    Change,
    Judging,
    OfficialStanding,
    change_between,
)
from truerank.audits.reusability.simulation.standings import JudgedSet, Qrels, RunRanks, Scorer, Universe
from truerank.audits.reusability.stopping import OriginalSize

#: What the changes of unlike systems are called, by the judgments that hold more, and by those at hand with the
#: documents without a grade passed over.
UNLIKE_OWN: Final = "Unlike system, first documents judged"
UNLIKE_COMPLETE: Final = "Unlike system, complete judgments"
UNLIKE_PASSED: Final = "Unlike system, ungraded documents passed over"
UNLIKE: Final = (UNLIKE_OWN, UNLIKE_COMPLETE)
_PREFIX: Final = "unlike "


class UnlikeSystem(NamedTuple):
    """An unlike system beside the pools.

    `first` counts its first documents over all topics, down to the depth of the pools; `pooled` those that some run
    brought into the pools; `ungraded` those that the assessor has no grade for, None where the judgments hold relevant
    rows only, which say nothing of this; `new_relevant` those that are relevant and in no pool. `ranks` is its rank
    among the runs by the official qrels, by measure.
    """

    name: str
    first: int
    pooled: int
    ungraded: int | None
    new_relevant: int

    @property
    def overlap(self) -> float:
        """The share of its first documents that are in the pools."""
        return self.pooled / self.first if self.first else 0.0


def first_overlaps(pools: Mapping[str, pl.DataFrame]) -> dict[str, float]:
    """By team, the share of its pool that the pools of other teams hold too."""
    keys = ["topic_id", "doc_id"]
    shared = {}
    for team, pool in pools.items():
        others = pl.concat(
            [pool.select(keys).head(0), *(other.select(keys) for name, other in pools.items() if name != team)]
        )
        shared[team] = pool.join(others, on=keys, how="semi").height / pool.height if pool.height else 0.0
    return shared


def try_unlike(
    standing: OfficialStanding,
    inputs: Inputs,
    judgings: Sequence[Judging],
    systems: Mapping[str, pl.DataFrame],
    depth: int,
) -> tuple[tuple[UnlikeSystem, ...], tuple[Change, ...]]:
    """Ranks unlike systems by the judgments at hand, and by those that hold their documents."""
    if not systems:
        return (), ()
    firsts = {name: first_documents(run, depth) for name, run in systems.items()}
    trial = _Trial(standing, inputs, systems, firsts)
    official = Judging(OriginalSize.name, 0, ALL_TEAMS, (), standing.official.qrels, 0, 0)
    at_hand = [one for one in judgings if one.rule == OriginalSize.name and one.left_out == ALL_TEAMS]
    complete = next(one for one in judgings if one.rule == COMPLETE)
    pools = depth_pool(inputs.firsts, depth, sparse=inputs.sparse)
    changes = [
        change
        for name in systems
        for judging in (official, *at_hand)
        for change in trial.changes(name, judging, complete)
    ]
    return tuple(trial.system(name, pools) for name in systems), tuple(changes)


class _Trial:
    """The runs and the unlike systems by one scorer, whose documents go on where those of the simulation end."""

    def __init__(
        self,
        standing: OfficialStanding,
        inputs: Inputs,
        systems: Mapping[str, pl.DataFrame],
        firsts: Mapping[str, pl.DataFrame],
    ) -> None:
        self._standing, self._inputs, self._firsts = standing, inputs, firsts
        self._runs = len(standing.scorer.ranks.runs)
        self._at = {name: self._runs + 2 * number for number, name in enumerate(systems)}
        self._graded = inputs.has_non_relevant(standing.scorer.rel)
        first = {name: _by_topic(frame) for name, frame in firsts.items()}
        wanted = [
            {doc_id for by_topic in first.values() for doc_id in by_topic.get(topic, ())}
            for topic in standing.universe.topics
        ]
        universe = _extended(standing.universe, inputs, wanted)
        runs = dict(inputs.runs)
        known = pl.DataFrame(
            [(topic, doc_id) for topic, grades in inputs.grades.items() for doc_id in grades],
            {"topic_id": pl.String, "doc_id": pl.String}, orient="row",
        )  # fmt: skip
        for name, run in systems.items():
            runs[f"{_PREFIX}{name}"] = run
            runs[f"{_PREFIX}{name}, graded"] = run.join(
                known, on=["topic_id", "doc_id"], how="semi", maintain_order="left"
            )
        self._scorer = Scorer(RunRanks.of(runs, universe), universe, standing.scorer.measures, standing.scorer.rel)
        numbers = [{doc_id: at for at, doc_id in enumerate(documents)} for documents in universe.documents]
        self._own = {
            name: [
                np.array([numbers[topic][doc_id] for doc_id in by_topic.get(topic_id, ())], np.int32)
                for topic, topic_id in enumerate(universe.topics)
            ]
            for name, by_topic in first.items()
        }

    def changes(self, name: str, judging: Judging, complete: Judging) -> Iterator[Change]:
        """From the judgments that hold the system's documents to those at hand."""
        columns = [*range(self._runs), self._at[name]]
        here = self._means(judging)[:, columns]
        head = judging._replace(left_out=name)
        for rule, means in (
            (UNLIKE_OWN, self._means(judging, self._own[name])),
            (UNLIKE_COMPLETE, self._means(complete)),
        ):
            yield from self._changes(head._replace(rule=rule), means[:, columns], here)
        if self._graded:
            passed = self._means(judging)[:, [*range(self._runs), self._at[name] + 1]]
            yield from self._changes(head._replace(rule=UNLIKE_PASSED), here, passed)

    def system(self, name: str, pools: pl.DataFrame) -> UnlikeSystem:
        """How unlike the system is."""
        first, keys = self._firsts[name], ["topic_id", "doc_id"]
        new = first.join(pools, on=keys, how="anti")
        grades = self._inputs.grades
        ungraded = sum(doc_id not in grades.get(topic, {}) for topic, doc_id in first.select(keys).iter_rows())
        relevant = sum(
            grades.get(topic, {}).get(doc_id, 0) >= self._scorer.rel for topic, doc_id in new.select(keys).iter_rows()
        )
        return UnlikeSystem(name, len(first), len(first) - len(new), ungraded if self._graded else None, relevant)

    def _changes(self, head: Judging, before: NDArray[np.float64], after: NDArray[np.float64]) -> Iterator[Change]:
        names = (*self._standing.scorer.ranks.runs, f"{_PREFIX}{head.left_out}")
        for number, measure in enumerate(self._scorer.names):
            own = np.array([self._runs])
            yield change_between(
                head, names, (measure, self._scorer.ascending[number]), (before[number], after[number]), own
            )

    def _means(self, judging: Judging, own: Sequence[NDArray[np.int32]] | None = None) -> NDArray[np.float64]:
        """The means by a judging of the simulation, perhaps with more documents of each topic; (measures, runs)."""
        sets = []
        for number in judging.qrels.sets:
            judged = self._standing.scorer.judged(int(number))
            if own is not None:
                judged = JudgedSet(judged.topic, np.union1d(judged.documents, own[judged.topic]).astype(np.int32))
            sets.append(self._scorer.number(judged))
        return self._scorer.means(Qrels(np.array(sets)))


def _extended(universe: Universe, inputs: Inputs, wanted: Sequence[set[str]]) -> Universe:
    """The universe with further documents at the end of each topic, so that the numbers of the others stay."""
    documents, grades = [], []
    for topic, known, levels, more in zip(universe.topics, universe.documents, universe.grades, wanted, strict=True):
        new = sorted(more - set(known))
        documents.append((*known, *new))
        said = inputs.grades[topic]
        grades.append(np.concatenate([levels, np.array([said.get(doc_id, 0) for doc_id in new], np.int64)]))
    return replace(universe, documents=tuple(documents), grades=tuple(grades))


def _by_topic(frame: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    return {str(key[0]): tuple(part["doc_id"]) for key, part in frame.group_by("topic_id", maintain_order=True)}

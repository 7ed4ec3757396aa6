"""What the traces of a simulation will cost, estimated before they are made from steps that are measured."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truerank.audits.reusability.learning.active import ActiveLearner, LearnerOptions
from truerank.audits.reusability.learning.features import Features
from truerank.audits.reusability.learning.ranking import rank


@dataclass(frozen=True)
class StepCost:
    """What a step costs: the training on the judgments as they stand, and the ranking of all documents.

    Attributes:
        training: processor seconds of one pool, the mean of a step at the beginning and one at the end of a trace.
        ranking: the same of the ranking.
        pools: pools that were ranked together.
        documents: that were ranked.
        megabytes: of the features on the disk.
    """

    training: float
    ranking: float
    pools: int
    documents: int
    megabytes: float

    @property
    def seconds(self) -> float:
        """Processor seconds of a step of one pool."""
        return self.training + self.ranking


@dataclass(frozen=True)
class SimulationPlan:
    """How much a simulation does.

    Attributes:
        topics: how many.
        trials: how many.
        pools: distinct pools of the topic that has most.
        traces: of all topics, trials and pools, the official ones included.
        finished: how many of them are there already.
        steps: of the traces that are not, together.
        length: judgments of a trace at most.
    """

    topics: int
    trials: int
    pools: int
    traces: int
    finished: int
    steps: int
    length: int

    def sentences(self, cost: StepCost, workers: int | None) -> Iterator[str]:
        """What it will do, and what that will cost with so many processes; None where nobody knows how many."""
        there = f"; {self.finished:,} traces are there already" if self.finished else ""
        yield (
            f"Plan: {self.topics:,} topics × {self.trials:,} trials × at most {self.pools:,} pools, and the official "
            f"judging: {self.traces:,} traces of at most {self.length:,} judgments{there}, {self.steps:,} steps to "
            f"take."
        )
        whole = self.steps * cost.seconds
        clock = f", {duration(whole / workers)} with {workers:,} free processors" if workers and workers > 1 else ""
        yield (
            f"A step takes about {1000 * cost.seconds:,.1f} ms of processor time here ({1000 * cost.training:,.1f} "
            f"training, {1000 * cost.ranking:,.1f} ranking {cost.documents:,} documents; measured with {cost.pools:,} "
            f"pools together). Estimated for all steps: {duration(whole)} of processor time{clock}. The features take "
            f"{cost.megabytes:,.0f} MB of disk, which all processes share. If you interrupt the command, call it again."
        )


def steps_of(options: LearnerOptions, judgments: int) -> int:
    """How many batches so many judgments beyond the pool take."""
    size, steps = options.batch, 0
    while judgments > 0:
        steps, judgments = steps + 1, judgments - size
        size = options.following(size)
    return steps


def measure_step(
    features: Features,
    query: str,
    pools: Sequence[Sequence[str]],
    grades: Mapping[str, int],
    *,
    options: LearnerOptions,
    length: int,
) -> StepCost:
    """Takes one step with the pools alone judged and one at the end of the traces, and times both.

    At the end, all relevant documents that the assessor knows are judged, and random ones; they stand for what the
    learner would have chosen.
    """
    learners = [ActiveLearner(features, "", query, number, options) for number in range(len(pools))]
    draw = np.random.default_rng(0)
    relevant = _rows(features, (doc_id for doc_id, grade in grades.items() if grade >= options.rel))
    training = ranking = 0.0
    ends = (0, min(length, len(features) - 1))
    for end in ends:
        queries = []
        for learner, pool in zip(learners, pools, strict=True):
            judged = _rows(features, pool)
            if end:
                others = draw.integers(0, len(features), end)
                judged = np.union1d(judged, np.concatenate([relevant[: end // 2], others])[:end])
            labels = np.where(np.isin(judged, relevant), options.rel, 0)
            # Trainings begin with the model of the step before.
            before = np.arange(len(judged)) % 10 != 0
            learner.query(judged[before], labels[before], 1)
            begun = time.process_time()
            queries.append(learner.query(judged, labels, max(1, end // 10)))
            training += time.process_time() - begun
        begun = time.process_time()
        rank(features, queries)
        ranking += time.process_time() - begun
    taken = len(ends) * len(pools)
    return StepCost(training / taken, ranking / taken, len(pools), len(features), features.disk_bytes / 1e6)


def _rows(features: Features, doc_ids: Iterable[str]) -> NDArray[np.int64]:
    """The rows of those documents that the collection has, ascending."""
    found = (features.doc_ids.find(doc_id) for doc_id in doc_ids)
    return np.array(sorted({row for row in found if row is not None}), np.int64)


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 100:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} hours"

"""The judging of a track simulated again and again, with all teams and with each team left out; what that will cost.

The trace of a topic without a team differs from that of all teams through its pool alone, so that conditions with equal
pools share one trace. A block holds the traces of one topic and one seed; it is kept under the digest of all that its
traces depend on, hence a killed simulation continues, and another with more trials, or other rules, begins with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Ints, frame_schema
from truerank.audits.pool.active import ActiveLearner, LearnerOptions, Trace, rank, traces
from truerank.audits.pool.features import Features
from truerank.audits.pool.stopping import TopicJudgments
from truerank.work.artifacts import digest
from truerank.work.blocks import BlockStore
from truerank.work.jobs import Job


@dataclass(frozen=True)
class StepCost:
    """What a step costs: the training on the judgments as they stand, and the ranking of all documents."""

    training: float
    ranking: float
    pools: int
    documents: int
    megabytes: float

    @property
    def seconds(self) -> float:
        return self.training + self.ranking


@dataclass(frozen=True)
class SimulationPlan:
    """How much a simulation does."""

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
    if seconds < 100:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} hours"


#: The columns of a block: which of the topic's pools a judgment belongs to, and what was judged in which batch.
TRACE_SCHEMA: Final = frame_schema("pool: Int16, doc_id: String, grade batch: Int32, whole: Boolean")


@dataclass(frozen=True)
class TopicWork:
    """What the traces of a topic are made of.

    Attributes:
        pools: the distinct pools, the first that of all teams; each in the order in which it is judged.
        conditions: for all teams and then each team left out, which of the pools is theirs.
        grades: what the assessor says of each document; one that is not here is not relevant.
    """

    topic_id: str
    query: str
    pools: tuple[tuple[str, ...], ...]
    conditions: tuple[int, ...]
    grades: Mapping[str, int]


class TraceBlock(NamedTuple):
    """The traces of one topic and one seed; `key` is the digest of what they depend on."""

    number: int
    key: str
    work: TopicWork
    pools: tuple[int, ...]
    seed: int


class Traced(NamedTuple):
    """One trace: how much it found, and which documents of its topic it judged, by number, shape (judgments,)."""

    found: TopicJudgments
    documents: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Traces:
    """All traces of a simulation.

    Attributes:
        topics: the topics in their order.
        documents: of each topic, the ids of all documents that some trace judged.
        grades: their grades, shape (documents,) each.
        official: of each topic, the trace of all teams by the official seed.
        trials: by trial, condition (all teams, then each team left out) and topic.
        batches: of the traces of all teams, by trial and topic: the batch of each judgment.
    """

    topics: tuple[str, ...]
    documents: tuple[tuple[str, ...], ...]
    grades: tuple[Ints, ...]
    official: tuple[Traced, ...]
    trials: tuple[tuple[tuple[Traced, ...], ...], ...]
    batches: tuple[tuple[NDArray[np.int32], ...], ...] = ()

    def frame(self) -> pl.DataFrame:
        """The traces of all teams: columns trial, topic_id, judgment (from 1), doc_id, grade, batch."""
        parts = [pl.DataFrame(schema=_FRAME)]
        for trial, conditions in enumerate(self.trials, start=1):
            for number, traced in enumerate(conditions[0]):
                size = len(traced.documents)
                columns = {
                    "trial": pl.repeat(trial, size, dtype=pl.Int32, eager=True),
                    "topic_id": pl.repeat(self.topics[number], size, dtype=pl.String, eager=True),
                    "judgment": np.arange(1, size + 1, dtype=np.int32),
                    "doc_id": pl.Series(self.documents[number], dtype=pl.String).gather(traced.documents),
                    "grade": self.grades[number][traced.documents].astype(np.int32),
                    "batch": self.batches[trial - 1][number],
                }
                parts.append(pl.DataFrame(columns, schema=_FRAME))
        return pl.concat(parts, rechunk=True)


_FRAME: Final = frame_schema("trial: Int32, topic_id: String, judgment: Int32, doc_id: String, grade batch: Int32")


@dataclass(frozen=True)
class TraceTask:
    """Makes the traces of blocks; picklable, and opened where it arrives."""

    features: Path
    length: int
    options: LearnerOptions

    def open(self) -> Callable[[TraceBlock], pl.DataFrame]:
        features = Features.of_index(self.features)

        def work(block: TraceBlock) -> pl.DataFrame:
            found = self.traces(features, block, self.length)
            return pl.concat([_frame(number, one) for number, one in zip(block.pools, found, strict=True)])

        return work

    def traces(self, features: Features, block: TraceBlock, length: int) -> tuple[Trace, ...]:
        topic = block.work
        return traces(
            features,
            topic.topic_id,
            topic.query,
            [topic.pools[number] for number in block.pools],
            lambda doc_id: topic.grades.get(doc_id, 0),
            length=length,
            seed=block.seed,
            options=self.options,
        )


def _frame(number: int, found: Trace) -> pl.DataFrame:
    columns = {"doc_id": found.doc_ids, "grade": found.grades, "batch": found.batches}
    frame = pl.DataFrame(columns, schema={name: TRACE_SCHEMA[name] for name in columns})
    same = pl.lit(number, pl.Int16).alias("pool"), pl.lit(found.whole).alias("whole")
    return frame.with_columns(same).select(list(TRACE_SCHEMA))


@dataclass(frozen=True)
class _Keyed:
    """The blocks of a folder by the digest of what they are made from."""

    folder: Path
    stores: dict[str, BlockStore] = field(default_factory=dict)

    def of(self, key: str) -> BlockStore:
        # 256 folders, so that none holds many thousands of files.
        if key[:2] not in self.stores:
            self.stores[key[:2]] = BlockStore(self.folder / key[:2])
        return self.stores[key[:2]]


def run_trials(
    works: Sequence[TopicWork], seeds: Sequence[int], task: TraceTask, job: Job, identity: Mapping[str, Any]
) -> Traces:
    """Makes the traces that are not there yet, and reads them all."""
    every = tuple(_blocks(works, seeds, task, identity))
    kept, progress = _Keyed(job.folder), job.progress
    pending = [block for block in every if not kept.of(block.key).has(_number(block.key))]
    if pending:
        _tell_plan(works, every, pending, task, job)
    total, begun = sum(len(block.pools) for block in every), time.monotonic()
    left = todo = sum(len(block.pools) for block in pending)
    progress.start("simulating", total)
    progress.advance(total - left)
    by_number = {block.number: block for block in pending}
    for number, frame in job.engine.run(task, pending):
        block = by_number[number]
        kept.of(block.key).save(_number(block.key), frame)
        progress.advance(len(block.pools))
        left -= len(block.pools)
        progress.status(f"simulating, about {duration((time.monotonic() - begun) * left / (todo - left))} left")
    return _read(works, seeds, every, (kept, task.options.rel))


def _tell_plan(
    works: Sequence[TopicWork], every: Sequence[TraceBlock], pending: Sequence[TraceBlock], task: TraceTask, job: Job
) -> None:
    """Notes what is to be done, and what that will cost by two steps that are taken for it."""
    steps = sum(
        steps_of(task.options, task.length - len(block.work.pools[number]))
        for block in pending
        for number in block.pools
    )
    traces = sum(len(block.pools) for block in every)
    finished = traces - sum(len(block.pools) for block in pending)
    trials = sum(block.work is works[0] for block in every) - 1
    plan = SimulationPlan(
        len(works), trials, max(len(work.pools) for work in works), traces, finished, steps, task.length
    )
    largest = max(pending, key=lambda block: len(block.pools))
    topic = largest.work
    pools = [topic.pools[number] for number in largest.pools]
    features = Features.of_index(task.features)
    cost = measure_step(features, topic.query, pools, topic.grades, options=task.options, length=task.length)
    workers = getattr(job.engine, "workers", None)
    for sentence in plan.sentences(cost, None if workers is None else max(1, workers)):
        job.progress.note(sentence)


def _blocks(
    works: Sequence[TopicWork], seeds: Sequence[int], task: TraceTask, identity: Mapping[str, Any]
) -> Iterator[TraceBlock]:
    common = {**identity, "length": task.length, "learner": vars(task.options)}
    shared = digest({key: str(value) for key, value in common.items()})
    number = 0
    for work in works:
        parts = [shared, work.topic_id, work.query, [list(pool) for pool in work.pools], sorted(work.grades.items())]
        topic = digest(parts)
        for place, seed in enumerate(seeds):
            pools = tuple(range(len(work.pools))) if place else (0,)
            yield TraceBlock(number, digest([topic, seed, list(pools)]), work, pools, seed)
            number += 1


def _number(key: str) -> int:
    return int(key[2:17], 16)


def _read(
    works: Sequence[TopicWork], seeds: Sequence[int], blocks: Sequence[TraceBlock], stored: tuple[_Keyed, int]
) -> Traces:
    kept, rel = stored
    documents, grades = [], []
    trials: list[list[list[Traced]]] = [[[] for _ in works[0].conditions] for _ in seeds[1:]]
    batches: list[list[NDArray[np.int32]]] = [[] for _ in seeds[1:]]
    official = []
    for number, work in enumerate(works):
        numbers: dict[str, int] = {}
        for place, block in enumerate(blocks[number * len(seeds) : (number + 1) * len(seeds)]):
            frame = kept.of(block.key).load(_number(block.key))
            by_pool = _traced(work, frame, numbers, rel)
            if not place:
                official.append(by_pool[0])
                continue
            for condition, pool in enumerate(work.conditions):
                trials[place - 1][condition].append(by_pool[pool])
            batches[place - 1].append(frame.filter(pl.col("pool") == 0)["batch"].to_numpy())
        documents.append(tuple(numbers))
        grades.append(np.array([work.grades.get(doc_id, 0) for doc_id in numbers], np.int64))
    return Traces(
        tuple(work.topic_id for work in works),
        tuple(documents),
        tuple(grades),
        tuple(official),
        tuple(tuple(tuple(topics) for topics in conditions) for conditions in trials),
        tuple(tuple(topics) for topics in batches),
    )


def _traced(work: TopicWork, frame: pl.DataFrame, numbers: dict[str, int], rel: int) -> dict[int, Traced]:
    """The traces of a block by pool; documents get the next free numbers."""
    found = {}
    for (pool,), part in frame.group_by("pool", maintain_order=True):
        documents = np.fromiter(
            (numbers.setdefault(doc_id, len(numbers)) for doc_id in part["doc_id"]), np.int32, len(part)
        )
        relevant = np.cumsum(part["grade"].to_numpy() >= rel, dtype=np.int64)
        size = len(work.pools[int(str(pool))])
        found[int(str(pool))] = Traced(TopicJudgments(work.topic_id, size, relevant, bool(part["whole"][0])), documents)
    return found

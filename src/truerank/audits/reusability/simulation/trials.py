"""The judging of a track simulated again and again: seeded trials with all teams, and with each team left out.

The trace of a topic without a team differs from that of all teams through its pool alone, so that conditions with equal
pools share one trace. A block holds the traces of one topic and one seed; it is kept under the digest of all that its
traces depend on, hence a killed simulation continues, and another with more trials, or other rules, begins with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Ints
from truerank.audits.reusability.following import TopicJudgments
from truerank.audits.reusability.learning.active import LearnerOptions, Trace, traces
from truerank.audits.reusability.learning.features import Features
from truerank.audits.reusability.simulation.planning import SimulationPlan, duration, measure_step, steps_of
from truerank.work.artifacts import digest
from truerank.work.blocks import BlockStore
from truerank.work.jobs import Job

#: The columns of a block: which of the topic's pools a judgment belongs to, and what was judged in which batch.
TRACE_SCHEMA: Final = {
    "pool": pl.Int16, "doc_id": pl.String, "grade": pl.Int32, "batch": pl.Int32, "whole": pl.Boolean,
}  # fmt: skip


@dataclass(frozen=True)
class TopicWork:
    """What the traces of a topic are made of.

    Attributes:
        topic_id: the topic.
        query: its text.
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


_FRAME: Final = {
    "trial": pl.Int32, "topic_id": pl.String, "judgment": pl.Int32, "doc_id": pl.String, "grade": pl.Int32,
    "batch": pl.Int32,
}  # fmt: skip


@dataclass(frozen=True)
class TraceTask:
    """Makes the traces of blocks; picklable, and opened where it arrives.

    Attributes:
        features: the folder of the index that the features lie beside.
        length: judgments of a trace at most.
        options: of the learner.
    """

    features: Path
    length: int
    options: LearnerOptions

    def open(self) -> Callable[[TraceBlock], pl.DataFrame]:
        """Maps the features."""
        features = Features.of_index(self.features)

        def work(block: TraceBlock) -> pl.DataFrame:
            found = self.traces(features, block, self.length)
            return pl.concat([_frame(number, one) for number, one in zip(block.pools, found, strict=True)])

        return work

    def traces(self, features: Features, block: TraceBlock, length: int) -> tuple[Trace, ...]:
        """The traces of a block, of so many judgments at most."""
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
    works: Sequence[TopicWork],
    seeds: Sequence[int],
    task: TraceTask,
    job: Job,
    identity: Mapping[str, Any],
) -> Traces:
    """Makes the traces that are not there yet, and reads them all.

    Returns:
        The traces. Memory grows with 12 bytes for each judgment of a trace that differs from the others.
    """
    every = tuple(_blocks(works, seeds, task, identity))
    kept, told = _Keyed(job.folder), job.progress
    pending = [block for block in every if not _has(kept, block)]
    if pending:
        _tell_plan(works, every, pending, task, job)
    total, begun = sum(len(block.pools) for block in every), time.monotonic()
    left = todo = sum(len(block.pools) for block in pending)
    told.start("simulating", total)
    told.advance(total - left)
    by_number = {block.number: block for block in pending}
    for number, frame in job.engine.run(task, pending):
        block = by_number[number]
        kept.of(block.key).save(_number(block.key), frame)
        told.advance(len(block.pools))
        left -= len(block.pools)
        told.status(f"simulating, about {duration((time.monotonic() - begun) * left / (todo - left))} left")
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


def _has(kept: _Keyed, block: TraceBlock) -> bool:
    return kept.of(block.key).has(_number(block.key))


def _number(key: str) -> int:
    """A block's name in its store: 60 bits of the digest."""
    return int(key[2:17], 16)


def _read(
    works: Sequence[TopicWork], seeds: Sequence[int], blocks: Sequence[TraceBlock], stored: tuple[_Keyed, int]
) -> Traces:
    """The blocks, which stand topic by topic and by seed within each."""
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

"""The worker of a grid: trains a ranker, scores the collections of its cells, writes the cells."""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.errors import TruerankError
from truerank.rankers.base import Pair
from truerank.sources.instances import open_instances
from truerank.text.passages import joined, policy_named
from truerank_lab.grid.inputs import TestPair, pairs_of
from truerank_lab.grid.plan import Test, Training
from truerank_lab.grid.results import SCORE_SCHEMA, write_cell, write_failed
from truerank_lab.rankers.fitting import fit
from truerank_lab.rankers.vocabulary import Vocabulary

#: Characters of documents that a worker keeps from cell to cell.
_MEMORY: Final = 1 << 28


@dataclass(frozen=True)
class TrainAndScore:
    """The task of a grid's workers, which all see the folder `out`; returns why a training failed, or nothing.

    Where no device is named, it is a GPU where there is one, except for small models.
    """

    out: Path
    device: str | None = None

    def open(self) -> Callable[[Training], str]:
        return _Worker(self).work


class _Scored(NamedTuple):
    """A part of a collection as rankers read it; `sizes` are passages of each document."""

    topic_ids: list[str]
    doc_ids: list[str]
    candidate: list[bool]
    sizes: NDArray[np.int64]
    pairs: list[Pair]


class _Worker:
    """One process of a grid; keeps vocabularies and parts of collections for its next trainings."""

    def __init__(self, task: TrainAndScore) -> None:
        self._task = task
        self._vocabularies: dict[Path, Vocabulary] = {}
        self._parts: dict[Test, list[_Scored]] = {}
        self._room = _MEMORY

    def work(self, training: Training) -> str:
        """Trains, scores, writes; what goes wrong is written down and ends nothing but this training."""
        try:
            self._cell(training)
        except Exception as error:  # one training must not stop the others, whatever it raises
            reason = str(error) if isinstance(error, TruerankError) else f"{type(error).__name__}: {error}"
            write_failed(self._task.out, training.cell, reason, traceback.format_exc())
            # What is tried again begins anew: a checkpoint may hold the fault.
            shutil.rmtree(self._scratch(training), ignore_errors=True)
            return reason
        return ""

    def _cell(self, training: Training) -> None:
        import torch

        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        torch.set_num_threads(1)
        started, seed = time.monotonic(), training.cell["seed"]
        ranker = training.network.open(seed, self._task.device, self._vocabularies)
        about: dict[str, Any] = {"steps": 0, "loss": None}
        scratch = self._scratch(training)
        if training.network.trained:
            scratch.mkdir(parents=True, exist_ok=True)
            rows = list(islice(open_instances(training.source), training.cell["size"] // 2))
            fitted = fit(ranker, rows, training.network.model.trained_by, seed=seed, folder=scratch)
            loss = fitted.json()["loss"]["last_tenth"]
            about = {"steps": fitted.steps, "loss": loss, "instances": fitted.instances, "device": fitted.device}
        scores = self._scores(ranker, training.tests)
        write_cell(self._task.out, training.cell, scores, time.monotonic() - started, **about)
        shutil.rmtree(scratch, ignore_errors=True)

    def _scratch(self, training: Training) -> Path:
        return self._task.out / ".work" / str(training.cell["cell"])

    def _scores(self, ranker: Any, tests: Sequence[Test]) -> pl.DataFrame:
        frames = [pl.DataFrame(schema=SCORE_SCHEMA)]
        for test in tests:
            for part in self._of(test):
                starts = np.cumsum(part.sizes) - part.sizes
                best = np.maximum.reduceat(ranker.score(part.pairs), starts).astype(np.float64)
                columns = ([test.collection] * len(best), part.topic_ids, part.doc_ids, best, part.candidate)
                frames.append(pl.DataFrame(dict(zip(SCORE_SCHEMA, columns, strict=True)), schema=SCORE_SCHEMA))
        return pl.concat(frames)

    def _of(self, test: Test) -> Iterator[_Scored]:
        """A collection part by part; read once, where it is not too large to be kept."""
        if test in self._parts:
            yield from self._parts[test]
            return
        kept: list[_Scored] = []
        size = 0
        for block in pairs_of(test.folder, _queries(self._task.out, test.collection), test.depth):
            part = _cut(block, test)
            size += sum(len(pair.document) for pair in part.pairs)
            kept = [*kept, part] if size <= self._room else []
            yield part
        if size <= self._room:
            self._parts[test] = kept
            self._room -= size


def _queries(out: Path, collection: str) -> Mapping[str, str]:
    topics = pl.read_parquet(out / "collections" / collection / "topics.parquet")
    return dict(topics.select("topic_id", "text").iter_rows())


def _cut(block: Sequence[TestPair], test: Test) -> _Scored:
    policy = policy_named(test.policy)
    pairs: list[Pair] = []
    sizes = []
    for pair in block:
        passages = policy.cut(joined(pair.title, pair.body))
        taken = [next(passages)] if test.aggregate == "first" else list(passages)
        pairs.extend(Pair(pair.query, passage) for passage in taken)
        sizes.append(len(taken))
    topic_ids, doc_ids = [pair.topic_id for pair in block], [pair.doc_id for pair in block]
    return _Scored(topic_ids, doc_ids, [pair.candidate for pair in block], np.array(sizes, np.int64), pairs)

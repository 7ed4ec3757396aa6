"""The worker of a grid: trains a ranker, scores the collections of its cells, writes the cells."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.errors import TruerankError
from truerank.rankers.base import Pair
from truerank.text.passages import joined, policy_named
from truerank_lab.grid.collections import TestPair, pairs_of, rows_of
from truerank_lab.grid.plan import Test, Work, network_of
from truerank_lab.grid.results import SCORE_SCHEMA, Cell, cell_folder, is_done, write_cell, write_failed
from truerank_lab.rankers.fitting import Fitted, fit
from truerank_lab.rankers.vocabulary import Vocabulary

#: Times, the host, and what went wrong; the only file of a cell that is not the same every time.
LOG_FILE: Final = "cell.log"
#: Characters of documents that a worker keeps from cell to cell.
_MEMORY: Final = 1 << 28


class Spent(NamedTuple):
    """What a training took: seconds, and the rows and documents that they were spent on."""

    training: float = 0.0
    rows: int = 0
    scoring: float = 0.0
    documents: int = 0


@dataclass(frozen=True)
class TrainingOutcome:
    """What became of the training with this number; `reason` says why it failed and is empty where it did not."""

    number: int
    reason: str = ""
    spent: Spent = Spent()


@dataclass(frozen=True)
class TrainAndScore:
    """The task of a grid's workers, which all see the folder `out`.
     Where no device is named, it is a GPU where there is one, except for small models; `on_request` uses one only where
    the design asks for it (on a cluster, which reserves it then). `keep_models` saves the trained rankers beside their
    cells.
    """

    out: Path
    device: str | None = None
    on_request: bool = False
    keep_models: bool = False

    def open(self) -> Callable[[Work], TrainingOutcome]:
        return _Worker(self).work


def note_failure(out: Path, work: Work, reason: str, details: str = "") -> None:
    """Notes for all unfinished cells of a training that it failed."""
    for cell in work.cells:
        if not is_done(out, cell.address):
            _log(out, cell, "failed", reason=reason, details=details)
            write_failed(out, cell, reason)


def scored_sample(out: Path, test: Test, size: int) -> list[list[Pair]]:
    """What is read of some documents of a collection, at even distances among its first topics."""
    block = next(pairs_of(test.folder, _queries(out, test.collection), test.depth))
    part = _cut(block[:: max(1, len(block) // size)][:size], test)
    ends = np.cumsum(part.sizes)
    return [part.pairs[end - many : end] for end, many in zip(ends, part.sizes, strict=True)]


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

    def work(self, work: Work) -> TrainingOutcome:
        """Trains, scores, writes; what goes wrong is written down and ends nothing but this training."""
        out = self._task.out
        try:
            return TrainingOutcome(work.number, "", self._cells(work))
        except Exception as error:  # one cell must not stop the others, whatever it raises
            reason = str(error) if isinstance(error, TruerankError) else f"{type(error).__name__}: {error}"
            note_failure(out, work, reason, traceback.format_exc())
            # What is tried again begins anew: a checkpoint may hold the fault.
            shutil.rmtree(_scratch(out, work), ignore_errors=True)
            return TrainingOutcome(work.number, reason)

    def _cells(self, work: Work) -> Spent:
        import torch

        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        torch.set_num_threads(work.cpus)
        out = self._task.out
        wanted = [number for number, cell in enumerate(work.cells) if not is_done(out, cell.address)]
        if not wanted:
            return Spent()
        for number in wanted:
            _log(out, work.cells[number], "started", process=os.getpid())
        scratch = _scratch(out, work)
        started = time.monotonic()
        ranker, fitted = self._ready(work, scratch)
        training = time.monotonic() - started
        spent = Spent(training, work.size // 2)
        for number in wanted:
            started = time.monotonic()
            scores = self._scores(ranker, work.tests[number])
            seconds = time.monotonic() - started
            spent = spent._replace(scoring=spent.scoring + seconds, documents=spent.documents + len(scores))
            self._write(work, number, (scores, fitted, ranker), Spent(training, work.size // 2, seconds, len(scores)))
        shutil.rmtree(scratch, ignore_errors=True)
        return spent

    def _ready(self, work: Work, scratch: Path) -> tuple[Any, Fitted | None]:
        """The ranker, and what its training did; None for a checkpoint, which has none."""
        device = self._task.device
        if device is None and self._task.on_request:
            device = "cuda" if work.gpus else "cpu"
        ranker = network_of(work.network, seed=work.training.seed, device=device, memory=self._vocabularies)
        if not work.trained:
            return ranker, None
        scratch.mkdir(parents=True, exist_ok=True)
        rows = rows_of(work.source, work.size)
        return ranker, fit(ranker, rows, work.recipe, seed=work.training.seed, folder=scratch)

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
        queries = _queries(self._task.out, test.collection)
        kept: list[_Scored] = []
        size = 0
        for block in pairs_of(test.folder, queries, test.depth):
            part = _cut(block, test)
            size += sum(len(pair.document) for pair in part.pairs)
            kept = [*kept, part] if size <= self._room else []
            yield part
        if size <= self._room:
            self._parts[test] = kept
            self._room -= size

    def _write(self, work: Work, number: int, result: tuple[pl.DataFrame, Fitted | None, Any], spent: Spent) -> None:
        out, cell = self._task.out, work.cells[number]
        scores, fitted, ranker = result
        about: dict[str, Any] = {"inputs": work.inputs[number]}
        if fitted is not None:
            if self._task.keep_models:
                ranker.save(cell_folder(out, cell.address) / "model")
            about |= {"instances": fitted.instances, "device": fitted.device}
        steps, loss = (0, None) if fitted is None else (fitted.steps, fitted.json()["loss"]["last_tenth"])
        # The log comes first: what is done has its seconds.
        _log(out, cell, "done", **{name: round(value, 3) for name, value in spent._asdict().items()})
        write_cell(out, cell, scores, steps=steps, loss=loss, about=about)


def _scratch(out: Path, work: Work) -> Path:
    return out / ".work" / work.cells[0].address


def _queries(out: Path, collection: str) -> Mapping[str, str]:
    with (out / "collections" / collection / "topics.parquet").open("rb") as stream:
        topics = pl.read_parquet(stream)
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


def _log(out: Path, cell: Cell, event: str, **details: Any) -> None:
    folder = cell_folder(out, cell.address)
    folder.mkdir(parents=True, exist_ok=True)
    time_now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    line = {"time": time_now, "host": platform.node(), "event": event, **details}
    with (folder / LOG_FILE).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line, ensure_ascii=False) + "\n")

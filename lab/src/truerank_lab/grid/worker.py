"""The worker of a grid: trains a ranker, scores the collections of its cells, writes the cells."""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.errors import TruerankError
from truerank.rankers.base import Pair
from truerank.text.passages import joined, policy_named
from truerank_lab.grid.inputs import pairs_of
from truerank_lab.grid.plan import Test, Training
from truerank_lab.grid.results import SCORE_SCHEMA, write_cell, write_failed
from truerank_lab.instances.filled import open_instances
from truerank_lab.rankers.fitting import fit
from truerank_lab.rankers.vocabulary import Vocabulary


@dataclass(frozen=True)
class TrainAndScore:
    """The task of a grid's workers, which all see the folder `out`; returns why a training failed, or nothing.

    Where no device is named, it is a GPU where there is one, except for small models.
    """

    out: Path
    device: str | None = None

    def open(self) -> Callable[[Training], str]:
        return _Worker(self).work


class _Worker:
    """One process of a grid; keeps vocabularies for its next trainings."""

    def __init__(self, task: TrainAndScore) -> None:
        self._task = task
        self._vocabularies: dict[Path, Vocabulary] = {}

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
            policy, many = policy_named(test.policy), 1 if test.aggregate == "first" else None
            for block in pairs_of(test.folder, _queries(self._task.out, test.collection), test.depth):
                cut = [list(islice(policy.cut(joined(pair.title, pair.body)), many)) for pair in block]
                read = [Pair(one.query, passage) for one, own in zip(block, cut, strict=True) for passage in own]
                sizes = np.array([len(own) for own in cut], np.int64)
                best = np.maximum.reduceat(ranker.score(read), np.cumsum(sizes) - sizes).astype(np.float64)
                known = [
                    (test.collection, one.topic_id, one.doc_id, score, one.candidate)
                    for one, score in zip(block, best.tolist(), strict=True)
                ]
                frames.append(pl.DataFrame(known, schema=SCORE_SCHEMA, orient="row"))
        return pl.concat(frames)


def _queries(out: Path, collection: str) -> Mapping[str, str]:
    topics = pl.read_parquet(out / "collections" / collection / "topics.parquet")
    return dict(topics.select("topic_id", "text").iter_rows())

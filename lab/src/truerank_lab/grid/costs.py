"""What a grid will cost: from the seconds of its finished cells, or from a short trial of each model."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from truerank.core.plain import picked, plain
from truerank.loading import load_json, text_file
from truerank.work.progress import Progress
from truerank_lab.grid.collections import rows_of
from truerank_lab.grid.plan import Plan, Work, network_of
from truerank_lab.grid.results import cell_folder, has_failed, is_done
from truerank_lab.grid.worker import LOG_FILE, Spent, scored_sample
from truerank_lab.rankers.fitting import fit

#: A trial is long enough once it takes so many seconds, or reads so many rows or documents.
_TRIAL_SECONDS: Final = 0.5
_TRIAL_ROWS: Final = 256
_TRIAL_DOCUMENTS: Final = 512
_HOUR: Final = 3600.0


#: What rates belong to: a model, the collections that it is tested on, a checkpoint that takes its place.
_Key: TypeAlias = tuple[str, tuple[str, ...], str | None]


class Rate(NamedTuple):
    """Seconds to begin a training, for each row, and for each document that is scored; and how they are known."""

    start: float
    row: float
    document: float
    known: str


@dataclass(frozen=True)
class ModelCost:
    """What is left to do of one model: trainings, seconds of the shortest and longest, hours of one worker for all."""

    model: str
    trainings: int
    smallest: float
    largest: float
    hours: float
    known: str


@dataclass(frozen=True)
class CostEstimate:
    """What a grid will cost.

    Attributes:
        cells: of the grid.
        trainings: of the grid.
        done: cells that are finished.
        left: trainings that are to be run.
        models: what is left, by model.
        longest: seconds of the longest training.
        workers: that this run would use.
        cluster: workers of the cluster that it is compared with.
    """

    cells: int
    trainings: int
    done: int
    left: int
    models: tuple[ModelCost, ...]
    longest: float
    workers: int
    cluster: int

    def hours(self, workers: int) -> float:
        """Hours until the last training ends; a training is not divided."""
        return max(sum(one.hours for one in self.models) / workers, self.longest / _HOUR)

    def sentence(self) -> str:
        """How many runs, and how long."""
        if not self.left:
            return f"{self.trainings:,} runs ({self.cells:,} cells), all done."
        done = f", {self.done:,} of the cells done" if self.done else ""
        return (
            f"{self.left:,} runs to do of {self.trainings:,} ({self.cells:,} cells{done}): "
            f"about {_duration(self.hours(self.workers))} here with {self.workers} workers, "
            f"{_duration(self.hours(self.cluster))} on a cluster of {self.cluster} workers."
        )

    def json(self) -> dict[str, Any]:
        """All of it."""
        return {
            **picked(self, "cells, runs=trainings, cells_done=done, runs_left=left"),
            "hours": {"here": round(self.hours(self.workers), 4), "cluster": round(self.hours(self.cluster), 4)},
            "workers": {"here": self.workers, "cluster": self.cluster},
            "models": plain(self.models),
        }


def pending_works(plan: Plan, out: Path, *, retry_failed: bool = False) -> list[Work]:
    """Trainings with unfinished cells; of trainings with the same cells, the first."""
    seen: set[str] = set()
    found = []
    for work in plan.works:
        wanted = [cell.address for cell in work.cells if not is_done(out, cell.address)]
        if not retry_failed:
            wanted = [address for address in wanted if not has_failed(out, address)]
        if set(wanted) - seen:
            found.append(work)
            seen.update(wanted)
    return found


def estimate_cost(
    plan: Plan,
    out: Path,
    works: Sequence[Work],
    *,
    workers: int,
    cluster: int = 16,
    device: str | None = None,
    progress: Progress,
) -> tuple[CostEstimate, dict[int, float]]:
    """What the works of a grid will cost, and the seconds of each by its number; 0 for what could not be tried."""
    by_key: dict[_Key, list[Work]] = {}
    for work in works:
        by_key.setdefault(_key(work), []).append(work)
    rates = _measured(plan, out)
    for key, some in by_key.items():
        if key not in rates:
            progress.start(f"trying {key[0]}")
            rates[key] = _tried(some[0], plan, out, device)
    seconds = {}
    for work in works:
        rate, tests = rates[_key(work)], itertools.chain.from_iterable(work.tests)
        documents = sum(plan.collections[test.collection].documents[test.depth] for test in tests)
        seconds[work.number] = rate.start + rate.row * work.size / 2 + rate.document * documents
    models = []
    for name in dict.fromkeys(work.training.model.name for work in works):
        of_model = [work for work in works if work.training.model.name == name]
        spent = [seconds[work.number] for work in of_model]
        known = ", ".join(dict.fromkeys(rates[_key(work)].known for work in of_model))
        models.append(ModelCost(name, len(spent), min(spent), max(spent), sum(spent) / _HOUR, known))
    addresses = {cell.address for cell in plan.cells}
    done = sum(is_done(out, address) for address in addresses)
    longest = max(seconds.values(), default=0.0)
    counts = (len(plan.cells), len(plan.works), done, len(works))
    return CostEstimate(*counts, tuple(models), longest, workers, cluster), seconds


def _key(work: Work) -> _Key:
    return work.training.model.name, work.training.set.collections, work.training.set.checkpoint


def _measured(plan: Plan, out: Path) -> dict[_Key, Rate]:
    """Rates from the logs of finished cells."""
    spent: dict[_Key, list[Spent]] = {}
    for work in plan.works:
        for cell in work.cells:
            if is_done(out, cell.address) and (found := _logged(cell_folder(out, cell.address) / LOG_FILE)):
                spent.setdefault(_key(work), []).append(found)
    return {key: _fitted(some) for key, some in spent.items()}


def _logged(path: Path) -> Spent | None:
    if not path.is_file():
        return None
    done = [line for line in text_file(path).splitlines() if '"event": "done"' in line]
    if not done:
        return None
    content: Mapping[str, Any] = load_json(done[-1], path)
    return Spent(*(content[name] for name in Spent._fields))


def _fitted(spent: Sequence[Spent]) -> Rate:
    rows = np.array([one.rows for one in spent], float)
    training = np.array([one.training for one in spent])
    start, row = (0.0, float(training.sum() / rows.sum())) if rows.any() else (float(training.mean()), 0.0)
    if len(set(rows)) > 1:
        slope, offset = np.polyfit(rows, training, 1)
        if slope > 0 and offset > 0:
            start, row = float(offset), float(slope)
    documents = sum(one.documents for one in spent)
    document = sum(one.scoring for one in spent) / max(1, documents)
    return Rate(start, row, document, f"{len(spent):,} finished cells")


def _tried(work: Work, plan: Plan, out: Path, device: str | None) -> Rate:
    """Rates from training on a few rows and scoring a few documents, in this process."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(work.cpus)
    try:
        return _trial(work, out, device)
    except Exception as error:  # what fails here fails in its cells, too, and is reported there
        return Rate(0.0, 0.0, 0.0, f"not known ({type(error).__name__} in the trial)")
    finally:
        torch.set_num_threads(threads)


def _trial(work: Work, out: Path, device: str | None) -> Rate:
    sample = scored_sample(out, work.tests[0][0], _TRIAL_DOCUMENTS)
    memory: dict[Path, Any] = {}
    network_of(work.network, seed=0, device=device, memory=memory)
    started = time.monotonic()
    ranker = network_of(work.network, seed=0, device=device, memory=memory)
    start = time.monotonic() - started
    row = 0.0
    if work.trained:
        rows = rows_of(work.source, min(work.size, 2 * _TRIAL_ROWS))
        with tempfile.TemporaryDirectory(prefix="truerank-trial-") as folder:
            fit(ranker, rows[:2], work.recipe, seed=0, folder=Path(folder))
            row = _each(len(rows), lambda count: fit(ranker, rows[:count], work.recipe, seed=0, folder=Path(folder)))
    document = _each(len(sample), lambda count: ranker.score([pair for some in sample[:count] for pair in some]))
    return Rate(start, row, document, "a short trial")


def _each(most: int, work: Callable[[int], Any]) -> float:
    """Seconds for each item, from as few items as tell it."""
    count = min(8, most)
    while True:
        started = time.monotonic()
        work(count)
        seconds = time.monotonic() - started
        if seconds >= _TRIAL_SECONDS or count >= most:
            return seconds / count
        count = min(most, 4 * count)


def _duration(hours: float) -> str:
    if hours < 1 / 60:
        return f"{max(1, round(hours * _HOUR))} seconds"
    if hours < 1.5:
        return f"{round(hours * 60)} minutes"
    return f"{hours:,.1f} hours"

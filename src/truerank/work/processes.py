"""An engine over the processors of this machine: blocks go to processes that opened the task once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

from truerank.errors import InputError
from truerank.work.engines import Numbered, Task
from truerank.work.workers import Lost, WorkerEngine

__all__ = ["ProcessEngine", "processors"]

B = TypeVar("B", bound=Numbered)
R = TypeVar("R")


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessEngine:
    """Spreads blocks over processes of this machine; a process that dies ends the run.

    Args:
        workers: how many processes; None for one on every processor that this process may use.
        threads: of the numerical libraries in each of them.
    """

    def __init__(self, workers: int | None = None, threads: int = 1) -> None:
        self.workers = workers or processors()
        self._engine = WorkerEngine(self.workers, threads)

    def run(self, task: Task[B, R], blocks: Iterable[B]) -> Iterator[tuple[int, R]]:
        """Yields results as they become ready, in any order; the processes end with the iteration, however it ends.

        Raises:
            InputError: a process was killed, as by a system that is out of memory.
        """
        for number, result in self._engine.run(task, blocks):
            if isinstance(result, Lost):
                remedy = "take fewer with --workers; what is finished is kept"
                raise InputError(f"a worker was lost: {result.reason}", remedy, where="--workers")
            yield number, result

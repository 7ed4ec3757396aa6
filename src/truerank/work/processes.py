"""An engine over the processors of this machine: blocks go to processes that opened the task once."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final, TypeVar

from truerank.errors import InputError
from truerank.work.engines import Numbered, Task

__all__ = ["ProcessEngine", "processors"]

B = TypeVar("B", bound=Numbered)
R = TypeVar("R")

_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessEngine:
    """Spreads blocks over processes of this machine.

    Args:
        workers: how many processes; None for one on every processor that this process may use.
        threads: of the numerical libraries in each of them.
    """

    def __init__(self, workers: int | None = None, threads: int = 1) -> None:
        self.workers = workers or processors()
        self._threads = threads

    def run(self, task: Task[B, R], blocks: Iterable[B]) -> Iterator[tuple[int, R]]:
        """Yields results as they become ready, in any order; the processes end with the iteration, however it ends.

        Raises:
            InputError: a process was killed, as by a system that is out of memory.
        """
        stream = iter(blocks)
        before = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_open,
            initargs=(task,),
        )
        busy: dict[Future[Any], int] = {}
        kept = {name: os.environ.get(name) for name in _THREADS}
        # Read by the numerical libraries when a process loads them, hence before the processes are there.
        os.environ.update(dict.fromkeys(_THREADS, str(self._threads)))
        try:
            while True:
                # One block waits for each that is worked on, so that no process idles.
                while len(busy) < 2 * self.workers and (block := next(stream, None)) is not None:
                    busy[pool.submit(_work, block)] = block.number
                if not busy:
                    return
                for future in wait(busy, return_when=FIRST_COMPLETED).done:
                    yield busy.pop(future), future.result()
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process was killed, perhaps for want of memory",
                "take fewer with --workers; what is finished is kept",
                where="--workers",
            ) from error
        finally:
            for name, value in kept.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            if busy:
                for child in set(multiprocessing.active_children()) - before:
                    child.terminate()
            pool.shutdown(cancel_futures=True)


_opened: Callable[[Any], Any] | None = None


def _open(task: Task[Any, Any]) -> None:
    global _opened  # noqa: PLW0603
    # An interrupt is for the parent, which ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _opened = task.open()


def _work(block: Any) -> Any:
    if _opened is None:
        raise RuntimeError("a worker without a task")
    return _opened(block)

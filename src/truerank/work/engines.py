"""Engines: where the blocks of a job are worked on: in this process, or on a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from truerank.errors import InputError, MissingExtraError

__all__ = ["Engine", "LocalEngine", "Numbered", "RayEngine", "Task", "open_engine"]


class Numbered(Protocol):
    """A piece of work that knows its place in the job."""

    @property
    def number(self) -> int:
        """Place in the job, from 0."""


B_contra = TypeVar("B_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
B = TypeVar("B", bound=Numbered)
R = TypeVar("R")
T = TypeVar("T")


class Task(Protocol[B_contra, R_co]):
    """A picklable piece of work: opened once by each worker, then called for every block."""

    def open(self) -> Callable[[B_contra], R_co]:
        """Loads what the work needs and returns the function that does it."""


class Engine(Protocol):
    """Runs a task over a stream of blocks."""

    def run(self, task: Task[B, R], blocks: Iterable[B]) -> Iterator[tuple[int, R]]:
        """Yields (block number, result) as results become ready; reads the stream no further ahead than needed."""


class LocalEngine:
    """Works in this process; the next blocks are read by a thread meanwhile."""

    def run(self, task: Task[B, R], blocks: Iterable[B]) -> Iterator[tuple[int, R]]:
        """Yields results in block order."""
        work: Callable[[B], R] | None = None
        for block in _read_ahead(blocks):
            if work is None:
                work = task.open()
            yield block.number, work(block)


class RayEngine:
    """Spreads blocks over a Ray cluster.

    Args:
        address: of a running cluster ("ray://host:10001", "auto"); None starts one on this machine.
        workers: how many workers; None takes one for every two processors of the cluster.
        threads: processors that each worker asks for.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: no cluster answers at the address.
    """

    def __init__(self, address: str | None = None, workers: int | None = None, threads: int = 1) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("the Ray engine", "ray") from error
        self._ray = ray
        self._threads = threads
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        if not ray.is_initialized():
            try:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
            except (ConnectionError, OSError, ValueError) as error:
                raise InputError(
                    f"no Ray cluster answers at {address!r} ({error})",
                    "check the address, or use --engine ray",
                    where="--engine",
                ) from error
        processors = int(ray.cluster_resources().get("CPU", 1))
        self._workers = workers or max(1, processors // max(1, threads))

    def run(self, task: Task[B, R], blocks: Iterable[B]) -> Iterator[tuple[int, R]]:
        """Yields results as they become ready, in any order."""
        ray = self._ray
        worker = ray.remote(num_cpus=self._threads, max_restarts=3, max_task_retries=3)(_RayWorker)
        shared = ray.put(task)
        idle: list[Any] = [worker.remote(shared) for _ in range(self._workers)]
        # Two blocks in flight for each worker: one at work, one waiting, so that none idles.
        idle = idle * 2
        busy: dict[Any, tuple[int, Any]] = {}
        stream = iter(blocks)
        exhausted = False
        try:
            while busy or not exhausted:
                while idle and not exhausted:
                    block = next(stream, None)
                    if block is None:
                        exhausted = True
                        break
                    actor = idle.pop(0)
                    busy[actor.work.remote(block)] = (block.number, actor)
                if busy:
                    ready, _ = ray.wait(list(busy), num_returns=1)
                    number, actor = busy.pop(ready[0])
                    idle.append(actor)
                    yield number, ray.get(ready[0])
        finally:
            for reference in busy:
                with contextlib.suppress(Exception):
                    ray.cancel(reference)


class _RayWorker(Generic[B, R]):
    """Opens the task on the first block, so that a worker without work loads nothing."""

    def __init__(self, task: Task[B, R]) -> None:
        self._task = task
        self._work: Callable[[B], R] | None = None

    def work(self, block: B) -> R:
        """Works on one block."""
        if self._work is None:
            self._work = self._task.open()
        return self._work(block)


def open_engine(name: str) -> Engine:
    """The engine of a name: "local", "ray" (a cluster on this machine) or "ray:ADDRESS".

    Raises:
        InputError: there is no such engine.
    """
    if name == "local":
        return LocalEngine()
    if name == "ray":
        return RayEngine()
    if name.startswith("ray:"):
        return RayEngine(name.removeprefix("ray:"))
    raise InputError(f"no engine called {name!r}", "use 'local', 'ray' or 'ray:ADDRESS'", where="--engine")


_END = object()


def _read_ahead(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The same items, the next `depth` of them read by a thread while the current one is worked on."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=depth)
    stopped = threading.Event()

    def offer(item: Any) -> bool:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return True
        return False

    def read() -> None:
        try:
            for item in items:
                if not offer((item, None)):
                    return
        except BaseException as error:  # handed on to the reader's side
            offer((None, error))
            return
        offer(_END)

    thread = threading.Thread(target=read, name="read-ahead", daemon=True)
    thread.start()
    try:
        while (entry := ready.get()) is not _END:
            item, error = entry
            if error is not None:
                raise error
            yield item
    finally:
        stopped.set()
        thread.join()

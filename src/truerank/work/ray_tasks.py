"""Blocks as Ray tasks: each asks for its own processors and GPUs, is retried where a node is lost, and spread out."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from truerank.errors import InputError
from truerank.work.engines import Numbered, RayEngine, Task
from truerank.work.workers import Lost

__all__ = ["RayTasks"]

B = TypeVar("B", bound=Numbered)
R = TypeVar("R")

_RETRIES: Final = 3


class RayTasks(RayEngine):
    """Spreads blocks over a Ray cluster, as tasks with the resources that each block names.

    A block may say with `cpus` and `gpus` what it needs; one processor where it does not. A worker process that has
    opened the task keeps it for the next block.

    Args:
        address: of a running cluster; None starts one on this machine.
        workers: how many blocks are at work at a time; None for as many as the cluster has room for.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        super().__init__(address, workers)
        self._limited = workers is not None

    def run(self, task: Task[B, R], blocks: Iterable[B]) -> Iterator[tuple[int, Any]]:
        """Yields results as they become ready, in any order.

        A block whose worker dies is tried again; one that still fails is `Lost`.

        Raises:
            InputError: a block needs more than the cluster has.
        """
        ray = self._ray
        remote = ray.remote(_work)
        key, shared = uuid.uuid4().hex, ray.put(task)
        # Some wait in the cluster's queue, so that a free processor finds the next at once.
        room = self._workers if self._limited else 2 * self._workers
        busy: dict[Any, int] = {}
        stream = iter(blocks)
        try:
            while True:
                while len(busy) < room and (block := next(stream, None)) is not None:
                    options = {"num_cpus": getattr(block, "cpus", 1), "num_gpus": getattr(block, "gpus", 0)}
                    self._check(options)
                    options |= {"max_retries": _RETRIES, "scheduling_strategy": "SPREAD"}
                    busy[remote.options(**options).remote(key, shared, block)] = block.number
                if not busy:
                    return
                for reference in ray.wait(list(busy), num_returns=1)[0]:
                    number = busy.pop(reference)
                    yield number, self._result(reference)
        finally:
            for reference in busy:
                with contextlib.suppress(Exception):
                    ray.cancel(reference, force=True)

    def _result(self, reference: Any) -> Any:
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError, exceptions.NodeDiedError) as error:
            return Lost(f"its process died on the cluster ({type(error).__name__})")

    def _check(self, options: dict[str, Any]) -> None:
        has = self._ray.cluster_resources()
        for name, resource in (("num_cpus", "CPU"), ("num_gpus", "GPU")):
            if options[name] > has.get(resource, 0):
                fault = f"a block needs {options[name]:g} {resource}, and the cluster has {has.get(resource, 0):g}"
                raise InputError(fault, "ask for less, or take another cluster", where="--engine")


_opened: dict[str, Callable[[Any], Any]] = {}


def _work(key: str, task: Task[Any, Any], block: Any) -> Any:
    if key not in _opened:
        _opened.clear()
        _opened[key] = task.open()
    return _opened[key](block)

"""Processes of this machine that each work on one block at a time, and may die without taking the others along."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from multiprocessing import connection
from typing import Any, Final, NamedTuple, TypeVar

from truerank.work.tasks import Lost, Numbered, Task

B = TypeVar("B", bound=Numbered)
R = TypeVar("R")

_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
_PATIENCE: Final = 10.0


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(
    task: Task[B, R], blocks: Iterable[B], workers: int, threads: int = 1
) -> Iterator[tuple[int, R | Lost]]:
    """Works on blocks in processes; a block whose process dies (killed by the system, say) is `Lost`, no other is.

    The processes end with the iteration, however it ends, and with this process.
    """
    stream = iter(blocks)
    idle: list[_Worker] = []
    busy: dict[Any, tuple[_Worker, int]] = {}
    try:
        while True:
            while len(busy) < workers and (block := next(stream, None)) is not None:
                worker = idle.pop() if idle else _started(task, threads)
                worker.channel.send(block)
                busy[worker.channel] = (worker, block.number)
            if not busy:
                return
            # A worker that dies closes its end: the channel is ready then, too.
            for channel in connection.wait(list(busy)):
                worker, number = busy.pop(channel)
                result = worker.result()
                if not isinstance(result, Lost):
                    idle.append(worker)
                yield number, result
    finally:
        _end([*idle, *(worker for worker, _ in busy.values())])


def _started(task: Any, threads: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    kept = {name: os.environ.get(name) for name in _THREADS}
    # Read by the numerical libraries when a process loads them, hence before the process is there.
    os.environ.update(dict.fromkeys(_THREADS, str(threads)))
    try:
        process = context.Process(target=_work, args=(task, theirs), daemon=True)
        process.start()
    finally:
        for name, value in kept.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    # Ours is then the only other end: when the worker dies, reading ends.
    theirs.close()
    return _Worker(process, ours)


class _Worker(NamedTuple):
    """A process, and the connection over which it sends its result."""

    process: Any
    channel: Any

    def result(self) -> Any:
        """What the worker sent, or that it died."""
        try:
            worked, value = self.channel.recv()
        except (EOFError, OSError):
            self.process.join(_PATIENCE)
            return Lost(_ending(self.process.exitcode))
        if not worked:
            raise value
        return value


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in {each.value for each in signal.Signals} else str(-code)
        hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
        return f"its process was killed by {name}{hint}"
    return f"its process ended with code {code}"


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.channel.close()
        worker.process.terminate()
    for worker in workers:
        worker.process.join(_PATIENCE)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


def _work(task: Any, channel: Any) -> None:
    # An interrupt is for the parent, which ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work = None
    with contextlib.suppress(EOFError):
        while True:
            block = channel.recv()
            try:
                work = task.open() if work is None else work
                answer = (True, work(block))
            except Exception as error:  # handed on to the parent's side
                answer = (False, error)
            channel.send(answer)


def _end_with_parent() -> None:
    """Ends this process as soon as its parent is gone: nobody would take the result, and another run may begin."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)

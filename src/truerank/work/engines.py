"""Where the blocks of a job are worked on: this process, processes of this machine, a Ray cluster."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import multiprocessing
import os
import signal
import sys
import threading
import types
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from truerank.errors import OptionError, needed_for
from truerank.work.ahead import read_ahead

_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
_PATIENCE: Final = 10.0
#: How often a block is tried again whose machine or process was lost.
_RETRIES: Final = 3
#: Processes that share a GPU at most: one cuts texts into tokens more slowly than a GPU reads them.
_SHARERS: Final = 4
#: Held while a process starts: what it inherits is changed for that long, and put back.
_starting: Final = threading.Lock()

R = TypeVar("R")
B = TypeVar("B", bound="Numbered")
B_contra = TypeVar("B_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Numbered(Protocol):
    """A piece of work that knows its place in the job."""

    @property
    def number(self) -> int:
        """Place in the job, from 0."""


class Task(Protocol[B_contra, R_co]):
    """A picklable piece of work: opened once by each worker, then called for every block.

    With an attribute `device` it tells the engine where its model runs; on "cuda", a cluster gives its blocks a GPU.
    """

    def open(self) -> Callable[[B_contra], R_co]:
        """Loads what the work needs and returns the function that does it."""


class Lost(NamedTuple):
    """The result of a block whose worker died."""

    reason: str


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
    process = context.Process(target=_work, args=(task, theirs), daemon=True)
    with _starting, _few_threads(threads), _apart_from_the_script(task):
        process.start()
    # Ours is then the only other end: when the worker dies, reading ends.
    theirs.close()
    return _Worker(process, ours)


@contextlib.contextmanager
def _few_threads(threads: int) -> Iterator[None]:
    """Tells a new process how many threads its numerical libraries may use, which they read when they are loaded."""
    kept = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, str(threads)))
    try:
        yield
    finally:
        for name, value in kept.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextlib.contextmanager
def _apart_from_the_script(task: Any) -> Iterator[None]:
    """Keeps a new process from running the script that called us, unless a part of the task is defined there.

    It would run whole there: most scripts do not begin with a look at `__name__`.
    """
    script = sys.modules["__main__"]
    if b"__main__" not in bytes(ForkingPickler.dumps(task)):
        sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


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


def give_back() -> None:
    """Hands freed memory back to the operating system, where the C library can; between the phases of long work."""
    _trim()(0)


@functools.cache
def _trim() -> Callable[[int], int]:
    # glibc keeps the holes that small objects leave; other C libraries have no such call, and less need of it.
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda _: 0
    return trim


class Engine(Protocol):
    """Runs a task over a stream of blocks."""

    @property
    def in_process(self) -> bool:
        """Whether the task is opened in this process, where it may hold what is open already."""

    def run(self, task: Task[B, R], blocks: Iterable[B]) -> Iterator[tuple[int, Any]]:
        """Yields (block number, result) as results become ready; reads the stream no further ahead than needed."""


@dataclass
class LocalEngine:
    """Works on this machine: in this process, where the next blocks are read by a thread meanwhile, or in others.

    Args:
        workers: processes; 0 for this one alone, which yields results in block order.
        threads: of the numerical libraries in each of the processes.
        tolerant: the result of a block whose process dies is `Lost`, and the others go on.
        ahead: read by a thread, which costs more than it saves where reading is Python that computes.
    """

    workers: int = 0
    threads: int = 1
    tolerant: bool = field(default=False, kw_only=True)
    ahead: bool = field(default=True, kw_only=True)

    @property
    def in_process(self) -> bool:
        """Whether the task is opened in this process."""
        return not self.workers

    def run(self, task: Task[B, R], blocks: Iterable[B]) -> Iterator[tuple[int, Any]]:
        """Yields (block number, result) as results become ready; see `Engine.run`."""
        if self.workers:
            yield from _checked(in_processes(task, blocks, self.workers, self.threads), self.tolerant)
            return
        work: Callable[[B], R] | None = None
        for block in read_ahead(blocks) if self.ahead else blocks:
            work = task.open() if work is None else work
            yield block.number, work(block)


class RayEngine:
    """Spreads blocks over a Ray cluster, as tasks with the devices that each block asks for.

    A block may say with `cpus` and `gpus` what it needs, or its task with `device`: a task on "cuda" gets a part of a
    GPU, so that several processes, each with a processor for its tokens, feed one. Otherwise a block asks for `threads`
    processors. A worker process that has opened the task keeps it for the next block. A block whose worker dies is
    tried again, elsewhere if need be.

    Args:
        address: of a running cluster ("ray://host:10001", "auto"); None starts one on this machine.
        workers: how many blocks are at work at a time; None for as many as the cluster has room for.
        tolerant: the result of a block that still fails is `Lost`, and the others go on.
    """

    in_process: Final = False

    def __init__(self, address: str | None = None, workers: int | None = None, *, tolerant: bool = False) -> None:
        with needed_for("the Ray engine", "ray"):
            import ray
        self._ray, self._tolerant = ray, tolerant
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        if not ray.is_initialized():
            try:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
            except (ConnectionError, OSError, ValueError) as error:
                fault = f"no Ray cluster answers at {address!r} ({error})"
                token = "and the cluster's token (RAY_AUTH_MODE=token, RAY_AUTH_TOKEN_PATH)"
                raise OptionError("engine", fault, f"check the address {token}, or use --engine ray") from error
        self._workers = workers

    def run(self, task: Task[B, R], blocks: Iterable[B]) -> Iterator[tuple[int, Any]]:
        """Yields (block number, result) as results become ready; see `Engine.run`."""
        yield from _checked(self._run(task, blocks), self._tolerant)

    def _run(self, task: Task[B, R], blocks: Iterable[B]) -> Iterator[tuple[int, R | Lost]]:
        ray = self._ray
        remote = ray.remote(_block_done)
        key, shared = uuid.uuid4().hex, ray.put(task)
        busy: dict[Any, int] = {}
        stream = iter(blocks)
        usual = self._needs(task)
        room = self._workers or self._room(usual)
        try:
            while True:
                while len(busy) < room and (block := next(stream, None)) is not None:
                    own = {"num_cpus": getattr(block, "cpus", None), "num_gpus": getattr(block, "gpus", None)}
                    needed = usual | {name: value for name, value in own.items() if value is not None}
                    self._check(needed)
                    placed = remote.options(**needed, max_retries=_RETRIES, scheduling_strategy="SPREAD")
                    busy[placed.remote(key, shared, block)] = block.number
                if not busy:
                    return
                for reference in ray.wait(list(busy), num_returns=1)[0]:
                    number = busy.pop(reference)
                    yield number, self._result(reference)
        finally:
            for reference in busy:
                with contextlib.suppress(Exception):
                    ray.cancel(reference, force=True)

    def _needs(self, task: Task[B, R]) -> dict[str, float]:
        """What a block of a task asks for where it does not say itself."""
        if not str(getattr(task, "device", None) or "").startswith("cuda"):
            return {"num_cpus": 1, "num_gpus": 0}
        has = self._ray.cluster_resources()
        sharers = min(_SHARERS, int(has.get("CPU", 1) // max(1, has.get("GPU", 0))), self._workers or _SHARERS)
        return {"num_cpus": 1, "num_gpus": 1 / max(1, sharers)}

    def _room(self, needed: dict[str, float]) -> int:
        """How many blocks are handed over: some wait in the cluster's queue, so that the next is found at once."""
        has = self._ray.cluster_resources()
        at_once = int(has.get("CPU", 1) // max(1, needed["num_cpus"]))
        if needed["num_gpus"]:
            at_once = min(at_once, int(has.get("GPU", 0) / needed["num_gpus"]))
        return 2 * max(1, at_once)

    def _result(self, reference: Any) -> Any:
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError, exceptions.NodeDiedError) as error:
            return Lost(f"its process died on the cluster ({type(error).__name__})")

    def _check(self, needed: dict[str, Any]) -> None:
        has = self._ray.cluster_resources()
        for name, resource in (("num_cpus", "CPU"), ("num_gpus", "GPU")):
            if needed[name] > has.get(resource, 0):
                fault = f"a block needs {needed[name]:g} {resource}, and the cluster has {has.get(resource, 0):g}"
                raise OptionError("engine", fault, "ask for less, or take another cluster")


def open_engine(name: str, workers: int | None = None, *, tolerant: bool = False) -> Engine:
    """The engine of a name: "local", "ray" (a cluster on this machine), or "ray:ADDRESS"."""
    kind, _, address = name.partition(":")
    if name == "local":
        return LocalEngine(workers or 0, tolerant=tolerant)
    if kind == "ray":
        return RayEngine(address or None, workers, tolerant=tolerant)
    raise OptionError("engine", f"no engine called {name!r}", "use 'local', 'ray' or 'ray:ADDRESS'")


def in_order(results: Iterable[tuple[int, R]]) -> Iterator[R]:
    """The results of blocks in the order of their numbers, which have no gaps; those that come early wait."""
    waiting: dict[int, R] = {}
    wanted = 0
    for number, result in results:
        waiting[number] = result
        while wanted in waiting:
            yield waiting.pop(wanted)
            wanted += 1


def _checked(results: Iterator[tuple[int, R | Lost]], tolerant: bool) -> Iterator[tuple[int, R | Lost]]:
    """The results; a block that was lost is an error, unless the engine is tolerant."""
    with contextlib.closing(results):  # type: ignore[type-var]
        for number, result in results:
            if isinstance(result, Lost) and not tolerant:
                remedy = "take fewer with --workers; what is finished is kept"
                error = OptionError("workers", f"a worker was lost: {result.reason}", remedy)
                error.continues = True
                raise error
            yield number, result


_opened: dict[str, Callable[[Any], Any]] = {}


def _block_done(key: str, task: Task[Any, Any], block: Any) -> Any:
    """Works on a block in a process of the cluster, which opens a task once."""
    if key not in _opened:
        _opened.clear()
        _opened[key] = task.open()
    return _opened[key](block)

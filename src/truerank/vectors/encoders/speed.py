"""Which way of running a model is the fastest on this machine: measured once, kept in the user's cache folder.

A choice decides how long work takes. What it may decide beyond that is up to its caller, who says which ways are
allowed, and with which error.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError
from truerank.loading import json_file
from truerank.sources import open_queries
from truerank.sources.sample import SAMPLE
from truerank.vectors.encoders.base import Encoder, EncoderSpec, Vectors
from truerank.vectors.encoders.graph_encoder import fingerprint
from truerank.vectors.encoders.opening import open_spec
from truerank.vectors.encoders.openvino import bf16_is_native
from truerank.work.engines import processors
from truerank.work.kept import user_cache_folder

Clock = Callable[[], float]
#: Runs a model on the sample once.
Trial = Callable[[], NDArray[np.floating]]

#: Processor time of this process: what other processes do on a shared machine hardly shows in it.
CLOCK: Final[Clock] = time.process_time
# Part of every key: raise it when the way of measuring changes.
_RECIPE: Final = "3"
_ROUNDS: Final = 3
#: Of ways that are as fast as the fastest but for this part, the one with the smallest error is taken: another
#: measurement then rarely chooses another way.
_ALIKE: Final = 0.9
_PACKAGES: Final = ("numpy", "tokenizers", "onnxruntime", "openvino", "nncf", "torch")
#: What decides which products of matrices a processor is good at.
_SETS: Final = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "amx_fp16",
                "asimd", "bf16", "i8mm", "sve")  # fmt: skip


@dataclass(frozen=True)
class Way:
    """A way of running a model.

    Attributes:
        backend: the library that runs it.
        precision: arithmetic of its products.
        threads: processors to use; None for all that the process may use.
        batch_tokens: tokens of a batch; None for what the backend usually takes.
        packed: rows of a batch hold several texts.
    """

    backend: str
    precision: str
    threads: int | None = None
    batch_tokens: int | None = None
    packed: bool = False

    @property
    def name(self) -> str:
        """As it is printed."""
        return f"{self.backend} {self.precision}"


@dataclass(frozen=True)
class MeasuredWay:
    """What a way was measured to do.

    Attributes:
        way: which.
        rate: texts, or pairs, a second with the processors to itself; 0 where it cannot run here.
        error: the largest difference of what it gives from what the reference gives.
        fault: why it cannot run here.
    """

    way: Way
    rate: float
    error: float
    fault: str = ""


@dataclass(frozen=True)
class ChosenWay:
    """All ways that were measured, and the one that is taken.

    Attributes:
        ways: the reference is the first.
        taken: the place of the way that is taken.
        measured: whether it was measured; False for the usual way, taken where nothing could be kept.
    """

    ways: tuple[MeasuredWay, ...]
    taken: int
    measured: bool = True

    @property
    def way(self) -> Way:
        """The way that is taken."""
        return self.ways[self.taken].way

    def json(self) -> dict[str, Any]:
        return {"ways": [asdict(each) for each in self.ways], "taken": self.taken}


def compare_ways(
    ways: Sequence[tuple[Way, Callable[[], Trial]]],
    error: Callable[[NDArray[np.floating], NDArray[np.floating]], float],
    count: int,
    clock: Clock = CLOCK,
    *,
    on_gpu: bool = False,
) -> tuple[MeasuredWay, ...]:
    """Runs every way on the same sample, in turn, so that other work on the machine falls on all of them.

    Args:
        clock: seconds of processor time.
        on_gpu: seconds are counted on the clock instead.
    """
    trials: dict[int, Trial] = {}
    values: dict[int, NDArray[np.floating]] = {}
    faults: dict[int, str] = {}
    for place, (_, open_way) in enumerate(ways):
        try:
            trials[place] = open_way()
            # The first time compiles for the shapes at hand.
            values[place] = trials[place]()
        except InputError as fault:
            if not place:
                raise
            faults[place] = str(fault)
    clock = time.perf_counter if on_gpu and clock is CLOCK else clock
    seconds: dict[int, float] = dict.fromkeys(trials, float("inf"))
    for _ in range(_ROUNDS):
        for place, trial in trials.items():
            begun = clock()
            trial()
            seconds[place] = min(seconds[place], clock() - begun)
    found = []
    for place, (way, _) in enumerate(ways):
        if place in faults:
            found.append(MeasuredWay(way, 0.0, 0.0, faults[place]))
            continue
        threads = 1 if on_gpu else way.threads or processors()
        rate = round(count * threads / max(seconds[place], 1e-9), 1)
        found.append(MeasuredWay(way, rate, error(values[0], values[place])))
    return tuple(found)


def fastest(ways: Sequence[MeasuredWay], allowed: float) -> int:
    """The place of the fastest way whose error is allowed; of those about as fast, that with the smallest error."""
    possible = [place for place, each in enumerate(ways) if not each.fault and each.error <= allowed]
    best = max(ways[place].rate for place in possible)
    alike = [place for place in possible if ways[place].rate >= _ALIKE * best]
    return min(alike, key=lambda place: (ways[place].error, place))


def kept_choice(key: str, measure: Callable[[], Sequence[MeasuredWay]], usual: Way, allowed: float) -> ChosenWay:
    """The choice that is kept under a key; made and kept if there is none.

    Where it cannot be kept, nothing is measured and the usual way is taken: otherwise each run might choose anew.
    """
    file = user_cache_folder() / "ways" / f"{key[:32]}.json"
    if (found := _read(file, key)) is not None:
        return found
    if not _can_write(file.parent):
        return ChosenWay((MeasuredWay(usual, 0.0, 0.0),), 0, measured=False)
    ways = tuple(measure())
    choice = ChosenWay(ways, fastest(ways, allowed))
    with contextlib.suppress(OSError):
        temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        temporary.write_text(json.dumps({"key": key, **choice.json()}, indent=1) + "\n", encoding="utf-8")
        temporary.replace(file)
    return choice


def way_of(content: Mapping[str, Any]) -> Way:
    """A way from JSON."""
    names = {field.name for field in fields(Way)}
    if not isinstance(content, Mapping) or set(content) != names or not isinstance(content["precision"], str):
        raise TypeError("not a way of running a model")
    return Way(**content)


def _read(file: Path, key: str) -> ChosenWay | None:
    """What is kept; None for nothing, or for something that is damaged or of another version."""
    try:
        content = json_file(file)
        if content["key"] != key:
            return None
        ways = tuple(MeasuredWay(way_of(each.pop("way")), **each) for each in content["ways"])
        return ChosenWay(ways, range(len(ways))[content["taken"]])
    except (InputError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        return None


def _can_write(folder: Path) -> bool:
    probe = folder / f".{os.getpid()}.probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def machine_key(*parts: object) -> str:
    """A hash over the machine and the parts given: processor, threads, versions of what runs models."""
    found = {}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    own = (_RECIPE, processor_name(), instruction_sets(), processors(), sorted(found.items()))
    return fingerprint(*own, *parts)


def length_class(texts: Sequence[str]) -> int:
    """The length of a median text in bits: queries and passages are encoded at other rates."""
    return int(np.median([len(text) for text in texts])).bit_length() if texts else 0


def processor_name() -> str:
    """What the processor calls itself."""
    return _cpu_info().get("model name") or platform.processor() or platform.machine()


def instruction_sets() -> tuple[str, ...]:
    """Those sets of instructions for products of matrices that the processor names."""
    flags = (_cpu_info().get("flags") or _cpu_info().get("Features") or "").split()
    return tuple(name for name in _SETS if name in flags)


def _cpu_info() -> dict[str, str]:
    """What Linux says of the first processor; nothing elsewhere."""
    found: dict[str, str] = {}
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if not line.strip():
                break
            found[name.strip()] = value.strip()
    return found


#: The largest error of a cosine that a first pass may show: with more, too many texts are encoded twice.
FIRST_PASS_ERROR: Final = 0.05
#: Queries of the embedded sample from which the int8 encoder learns its ranges.
_CALIBRATION_TEXTS: Final = 300
#: Of the texts at hand: how many are encoded as they are, and how often two of them are repeated, to fill batches.
_DISTINCT: Final = 64
_COPIES: Final = 32
#: Without these instructions int8 is no faster than fp32.
_BYTE_PRODUCTS: Final = frozenset({"avx_vnni", "avx512_vnni", "amx_int8", "i8mm"})
_BATCH_TOKENS: Final = (256, 1024)
_PACKED_TOKENS: Final = (512, 2048)


def first_passes(exact: EncoderSpec) -> tuple[EncoderSpec, ...]:
    """The encoders that may run a first pass before this one on this machine.

    Int8 learns its ranges from the embedded sample, so it is the same whatever is audited.
    """
    if exact.precision != "fp32":
        return ()
    if exact.backend == "torch":
        on_gpu = (exact.device or "").startswith("cuda")
        return tuple(replace(exact, precision=precision) for precision in ("fp16", "bf16")) if on_gpu else ()
    if exact.backend != "openvino" or find_spec("openvino") is None:
        return ()
    found: list[EncoderSpec] = []
    if find_spec("nncf") is not None:
        texts = tuple(query.text for query in islice(open_queries(str(SAMPLE.train[0])), _CALIBRATION_TEXTS))
        found.append(replace(exact, precision="int8", calibration=texts))
    if bf16_is_native():
        found.append(replace(exact, precision="bf16", packed=True))
    return (*found, replace(exact, backend="onnx"))


def spec_of_way(way: Way, exact: EncoderSpec, others: Sequence[EncoderSpec]) -> EncoderSpec:
    """How the encoder of a way is opened."""
    for spec in (exact, *others):
        if (spec.backend, spec.precision) == (way.backend, way.precision):
            return replace(spec, threads=way.threads or exact.threads, batch_tokens=way.batch_tokens, packed=way.packed)
    raise ValueError(f"no {way.name} here")


def choose_first_pass(
    exact: Encoder,
    spec: EncoderSpec,
    texts: Sequence[str],
    *,
    opened: Callable[[EncoderSpec], Encoder] = open_spec,
    clock: Clock = CLOCK,
) -> ChosenWay:
    """The fastest way of a first pass on this machine; the reference, where it is better to have none.

    Args:
        clock: seconds of processor time.
    """
    others = first_passes(spec)
    key = machine_key(exact.fingerprint, [each.precision for each in others], length_class(texts), spec.device)

    def measure() -> tuple[MeasuredWay, ...]:
        return measure_encoder(exact, spec, others, texts, opened=opened, clock=clock)

    return kept_choice(key, measure, usual_first_pass(spec).way, FIRST_PASS_ERROR)


def usual_first_pass(spec: EncoderSpec, precision: str | None = None) -> ChosenWay:
    """The way of a first pass where none is measured: that of a precision; else by what the processor has, bf16 or
    int8. None where there is no such way.
    """
    low: dict[str, EncoderSpec] = {each.precision: each for each in first_passes(spec) if each.backend == spec.backend}
    usual = low.get(precision or "bf16") if precision or spec.backend == "openvino" else None
    if usual is None and not precision and not _BYTE_PRODUCTS.isdisjoint(instruction_sets()):
        usual = low.get("int8")
    return ChosenWay((MeasuredWay(_way(usual or spec), 0.0, 0.0),), 0, measured=False)


def measure_encoder(
    exact: Encoder,
    spec: EncoderSpec,
    others: Sequence[EncoderSpec],
    texts: Sequence[str],
    *,
    opened: Callable[[EncoderSpec], Encoder] = open_spec,
    clock: Clock = CLOCK,
) -> tuple[MeasuredWay, ...]:
    """Rates and errors of ways of encoding: first all with their usual batches, then other batches of the fastest.

    Args:
        clock: seconds of processor time.
    """
    some = list(texts[:: max(1, len(texts) // _DISTINCT)][:_DISTINCT])
    by_length = sorted(some, key=len)
    middle = [by_length[len(by_length) // 3], by_length[2 * len(by_length) // 3]]
    sample = some + middle * _COPIES

    def trial(each: EncoderSpec) -> Trial:
        encoder = exact if each == spec else opened(each)
        return lambda: encoder.encode(sample)

    def compared(specs: Sequence[EncoderSpec]) -> tuple[MeasuredWay, ...]:
        opening = [(_way(each), partial(trial, each)) for each in specs]
        on_gpu = spec.backend == "torch" and spec.device != "cpu"
        return compare_ways(opening, _largest, len(sample), clock, on_gpu=on_gpu)

    first = compared((spec, *others))
    best = (spec, *others)[fastest(first, FIRST_PASS_ERROR)]
    if best == spec or best.backend == "torch":
        return first
    changes = [replace(best, batch_tokens=tokens) for tokens in (_PACKED_TOKENS if best.packed else _BATCH_TOKENS)]
    if best.packed:
        changes.append(replace(best, packed=False))
    if processors() >= 4 and best.threads is None:
        changes.append(replace(best, threads=processors() // 2))
    # The reference runs again, for what else the machine does may have changed.
    again = compared((spec, *changes))
    slower = first[0].rate / again[0].rate
    return (*first, *(replace(each, rate=each.rate * slower) for each in again[1:]))


def _way(spec: EncoderSpec) -> Way:
    return Way(spec.backend, spec.precision, spec.threads, spec.batch_tokens, spec.packed)


def _largest(exact: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    """The largest difference of a cosine of two of the distinct texts."""
    left, right = (_cosines(vectors[:_DISTINCT]) for vectors in (exact, other))
    return round(float(np.abs(left - right).max()), 6)


def _cosines(vectors: NDArray[np.floating]) -> Vectors:
    cosines: Vectors = (vectors @ vectors.T).astype(np.float32)
    return cosines

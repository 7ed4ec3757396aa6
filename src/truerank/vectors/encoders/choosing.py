"""How an encoder's first pass runs: the ways that this machine has, measured on a sample of the texts at hand.

A first pass lets through what may have a pair above the floor, and the exact pass decides. So every way is allowed
whose error is small enough for few texts to be encoded twice; how large the error is on the data at hand is measured
by every search anew (`vectors.search`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from truerank.sources import open_queries
from truerank.sources.sample import SAMPLE
from truerank.vectors.encoders.base import Encoder, EncoderSpec, Vectors
from truerank.vectors.encoders.measuring import (
    CLOCK,
    ChosenWay,
    Clock,
    MeasuredWay,
    Trial,
    Way,
    compare_ways,
    fastest,
    instruction_sets,
    kept_choice,
    length_class,
    machine_key,
)
from truerank.vectors.encoders.opening import open_spec
from truerank.vectors.encoders.openvino import bf16_is_native
from truerank.work.engines import processors

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
    anew: bool = False,
) -> ChosenWay:
    """The fastest way of a first pass on this machine; the reference, where it is better to have none.

    Args:
        clock: seconds of processor time.
    """
    others = first_passes(spec)
    key = machine_key(exact.fingerprint, [each.precision for each in others], length_class(texts), spec.device)

    def measure() -> tuple[MeasuredWay, ...]:
        return measure_encoder(exact, spec, others, texts, opened=opened, clock=clock)

    return kept_choice(key, measure, usual_first_pass(spec).way, FIRST_PASS_ERROR, anew=anew)


def usual_first_pass(spec: EncoderSpec, *, elsewhere: bool = False) -> ChosenWay:
    """The way of a first pass where none is measured, by what the processor has: bf16, else int8, else none."""
    low = {each.precision: each for each in first_passes(spec) if each.backend == spec.backend == "openvino"}
    usual = None if elsewhere else low.get("bf16")
    if usual is None and (elsewhere or not _BYTE_PRODUCTS.isdisjoint(instruction_sets())):
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
    sample = _sample(texts)

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


def _sample(texts: Sequence[str]) -> list[str]:
    """Texts at even distances, and copies of two of middling length, which fill batches as a long log would."""
    some = list(texts[:: max(1, len(texts) // _DISTINCT)][:_DISTINCT])
    by_length = sorted(some, key=len)
    middle = [by_length[len(by_length) // 3], by_length[2 * len(by_length) // 3]]
    return some + middle * _COPIES


def _largest(exact: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    """The largest difference of a cosine of two of the distinct texts."""
    left, right = (_cosines(vectors[:_DISTINCT]) for vectors in (exact, other))
    return round(float(np.abs(left - right).max()), 6)


def _cosines(vectors: NDArray[np.floating]) -> Vectors:
    cosines: Vectors = (vectors @ vectors.T).astype(np.float32)
    return cosines

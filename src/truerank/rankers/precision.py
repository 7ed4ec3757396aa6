"""The ways of running a ranker on this machine, how fast each is, and which one precision "auto" takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.rankers.base import Pair, Ranker, RankerSpec, Scores
from truerank.vectors.encoders.speed import (
    CLOCK,
    ChosenWay,
    Clock,
    MeasuredWay,
    Trial,
    Way,
    compare_ways,
    kept_choice,
    length_class,
    machine_key,
)

#: So many pairs at most.
Sample = Callable[[int], Sequence[Pair]]

#: Pairs from which eight bits learn their ranges.
CALIBRATION_PAIRS: Final = 256
_COMPARED: Final = 200


def calibrated(spec: RankerSpec, sample: Sample) -> RankerSpec:
    """The same ranker; if it is to run in eight bits and was given no pairs to learn their ranges from, with pairs."""
    if spec.runtime.precision != "int8" or spec.runtime.calibration:
        return spec
    return replace(spec, runtime=replace(spec.runtime, calibration=tuple(sample(CALIBRATION_PAIRS))))


def agreement(spec: RankerSpec, ranker: Ranker, sample: Sample) -> dict[str, float]:
    """How the scores of a ranker in low precision agree with those of the same model in full precision."""
    if spec.runtime.precision == "fp32":
        return {}
    from scipy.stats import kendalltau

    pairs = list(sample(_COMPARED))
    full = replace(spec, runtime=replace(spec.runtime, precision="fp32", calibration=())).open().score(pairs)
    low = ranker.score(pairs)
    differences = np.abs(full.astype(np.float64) - low)
    tau = float(kendalltau(full, low).statistic)
    return {
        "pairs": float(len(pairs)),
        "largest difference": round(float(differences.max()), 6),
        "mean difference": round(float(differences.mean()), 6),
        # Of scores that are all equal, there is no order to agree on.
        "tau": round(tau, 6) if np.isfinite(tau) else 0.0,
    }


#: Pairs that are measured: their scores are compared, too.
_PAIRS: Final = 64
#: With a smaller tolerance eight bits are not tried: their ranges take a minute to learn, and no model has come near.
_EIGHT_BITS: Final = 1e-3


def ranker_ways(spec: RankerSpec, device: str) -> tuple[RankerSpec, ...]:
    """How a ranker may be run here, in full precision first."""
    ways = [("fp32", spec.runtime.backend)]
    if device != "cpu":
        ways += [("fp16", "torch"), ("bf16", "torch")]
    elif spec.runtime.backend != "torch":
        ways += [("fp32", "torch"), ("bf16x3", "openvino"), ("bf16", "openvino")]
        if spec.runtime.tolerance >= _EIGHT_BITS:
            ways.append(("int8", "openvino"))
    made = (replace(spec.runtime, precision=precision, backend=backend) for precision, backend in ways)  # type: ignore[arg-type]
    return tuple(replace(spec, runtime=runtime) for runtime in made)


def settled(spec: RankerSpec, sample: Sample, told: Callable[[ChosenWay], None] = lambda choice: None) -> RankerSpec:
    """How a ranker is opened: precision "auto" becomes the way that was chosen, and int8 gets pairs to learn from."""
    if spec.runtime.precision == "auto":
        choice = choose_runtime(spec, sample)
        told(choice)
        way: Any = choice.way
        backend = spec.runtime.backend if way.backend == "auto" else way.backend
        spec = replace(spec, runtime=replace(spec.runtime, precision=way.precision, backend=backend))
    return calibrated(spec, sample)


def choose_runtime(spec: RankerSpec, sample: Sample, *, clock: Clock = CLOCK) -> ChosenWay:
    """The fastest way of running a ranker whose scores differ by no more than the tolerance."""
    exact = spec.open()
    pairs = list(sample(_PAIRS))
    device = str(getattr(exact, "device", "cpu"))
    ways = ranker_ways(spec, device)
    texts = [pair.document for pair in pairs]
    key = machine_key(exact.fingerprint, device, spec.runtime.tolerance, spec.runtime.threads, length_class(texts))

    def measure() -> Sequence[MeasuredWay]:
        opening = [(_way(each), partial(_trial, each, exact if not place else None, pairs, sample))
                   for place, each in enumerate(ways)]  # fmt: skip
        return compare_ways(opening, _largest, len(pairs), clock, on_gpu=device != "cpu")

    return kept_choice(key, measure, _way(ways[0]), spec.runtime.tolerance)


def _way(spec: RankerSpec) -> Way:
    return Way(spec.runtime.backend, spec.runtime.precision, spec.runtime.threads)


def _trial(spec: RankerSpec, opened: Ranker | None, pairs: Sequence[Pair], sample: Sample) -> Trial:
    ranker = opened or calibrated(spec, lambda _: sample(CALIBRATION_PAIRS)).open()

    def score() -> Scores:
        return ranker.score(pairs)

    return score


def _largest(exact: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    return round(float(np.abs(exact.astype(np.float64) - other).max(initial=0.0)), 6)

"""Low precision: what it is calibrated with, and how far its scores are from those in full precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from truerank.rankers.base import Pair, Ranker, RankerSpec

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

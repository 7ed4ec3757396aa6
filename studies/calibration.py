"""What the thresholds of `leakage calibrate` are worth, where the truth is known.

    python studies/calibration.py --samples 500

Candidates are generated with three curves of the chance of a leak over the similarity: steep and flat (logistic), and
a plateau with a dip, which is not monotone. Of each, samples of 100, 200 and 375 pairs are drawn as
`judge new --sample strata:0.8-1/10:N` draws them (ten strata of equal width, equal parts), labelled with the truth, and
calibrated. For each rule: how often there is no answer; of the answers, the share whose true precision reaches the
target, how far the threshold lies above the true one, and how much precision is lacking in the worst 5%; and how often
the lower bound at the true threshold lies at or below the true precision there (its coverage; for the rule "lowest",
the paper's, the estimate stands in). The estimator was chosen on flat and plateau; steep was looked at afterwards.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.audits.leakage.calibration import calibrate
from truerank.records import Judgment

Floats = NDArray[np.float64]

_TARGET: Final = 0.9
_CANDIDATES: Final = 40_000
_DECAY: Final = 25
_STRATA: Final = np.round(np.arange(0.8, 1.001, 0.02), 2)
_RULES: Final = ("lower-bound", "lower-bound, candidates known", "lowest")


def _logistic(middle: float, width: float) -> Callable[[Floats], Floats]:
    return lambda similarity: 1 / (1 + np.exp(-(similarity - middle) / width))


def _plateau(similarity: Floats) -> Floats:
    ends = [0.80, 0.86, 0.88, 0.915, 0.93, 0.945, 0.955, 1.0]
    return np.interp(similarity, ends, [0.05, 0.15, 0.80, 0.88, 0.78, 0.95, 0.985, 0.995])


SHAPES: Final[dict[str, Callable[[Floats], Floats]]] = {
    "steep": _logistic(0.90, 0.008),
    "flat": _logistic(0.885, 0.025),
    "plateau": _plateau,
}


class World(NamedTuple):
    """Candidates with their truth; `precision` and `thresholds` are the true curve, `answer` its true threshold."""

    similarity: Floats
    leak: NDArray[np.bool_]
    thresholds: Floats
    precision: Floats
    answer: float


def world(shape: str, seed: int = 1) -> World:
    """40,000 candidates whose number falls with similarity."""
    rng = np.random.default_rng(seed)
    position = (np.arange(_CANDIDATES) + 0.5) / _CANDIDATES
    similarity = np.round(0.8 - np.log(1 - position * (1 - np.exp(-_DECAY * 0.2))) / _DECAY, 6)
    leak = rng.random(_CANDIDATES) < SHAPES[shape](similarity)
    thresholds = np.round(np.arange(0.8, 1, 0.001), 3)
    precision = np.array([leak[similarity > threshold].mean() for threshold in thresholds])
    below = np.flatnonzero(precision < _TARGET)
    return World(similarity, leak, thresholds, precision, float(thresholds[below[-1] + 1]))


def sample(known: World, size: int, seed: int) -> list[Judgment]:
    """Equal parts of ten strata, with their probabilities."""
    rng = np.random.default_rng([seed, size])
    strata = np.searchsorted(_STRATA, known.similarity, side="left") - 1
    count = len(_STRATA) - 1
    found = []
    for stratum in range(count):
        members = np.flatnonzero(strata == stratum)
        part = min(len(members), size // count + (stratum >= count - size % count))
        found += [
            Judgment(
                str(at % 50), "", f"query {at}", ("leak" if known.leak[at] else "no leak",),
                similarity=float(known.similarity[at]), probability=part / len(members),
            )
            for at in rng.choice(members, part, replace=False)
        ]  # fmt: skip
    return found


def row(known: World, size: int, rule: str, samples: int) -> tuple[float, ...]:
    """Refused, reached, coverage, mean distance above the true threshold, and what the worst 5% of answers lack."""
    true = dict(zip(known.thresholds.tolist(), known.precision, strict=True))
    refused, covered, reached, distance, lacking = 0, 0, [], [], []
    for seed in range(samples):
        found = calibrate(
            sample(known, size, seed),
            min_precision=_TARGET,
            rule="lowest" if rule == "lowest" else "lower-bound",
            population=known.similarity if rule.endswith("known") else None,
        )
        at = int(np.argmin(np.abs(found.thresholds - known.answer)))
        covered += bool(found.low[at] <= true[known.answer])
        if found.chosen is None:
            refused += 1
            continue
        precision = true[min(max(round(found.chosen, 3), 0.8), 0.999)]
        reached.append(precision >= _TARGET)
        distance.append(found.chosen - known.answer)
        lacking.append(_TARGET - precision)
    if not reached:
        return (refused / samples, np.nan, covered / samples, np.nan, np.nan)
    worst = max(0.0, float(np.quantile(lacking, 0.95)))
    return (refused / samples, float(np.mean(reached)), covered / samples, float(np.mean(distance)), worst)


def main() -> None:
    """Prints the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=500, help="samples of each size and shape")
    parser.add_argument("--shape", action="append", choices=list(SHAPES), help="only these")
    parser.add_argument("--size", action="append", type=int, help="labels in a sample; default 100, 200, 375")
    parser.add_argument("--rule", action="append", choices=_RULES, help="only these")
    given = parser.parse_args()
    print(
        "| shape | true threshold | labels | rule | refused | reaches 0.9 | coverage | above the true one "
        "| worst 5% lack |"
    )
    print("|---|---:|---:|---|---:|---:|---:|---:|---:|")
    for shape in given.shape or SHAPES:
        known = world(shape)
        for size in given.size or (100, 200, 375):
            for rule in given.rule or _RULES:
                refused, reached, covered, distance, worst = row(known, size, rule, given.samples)
                figures = f"{refused:.1%} | {reached:.1%} | {covered:.1%} | {distance:+.3f} | {worst:.3f}"
                print(f"| {shape} | {known.answer:.3f} | {size} | {rule} | {figures} |", flush=True)


if __name__ == "__main__":
    main()

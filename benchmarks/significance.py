"""Permutations and bootstrap against SciPy: the same numbers, and how long they take.

    python benchmarks/significance.py [--permutations 100000] [--large]

Scores are drawn (seeded), continuous as nDCG gives them or in eleven steps as RR@10 does, for one baseline and the
runs compared with it. SciPy works on one comparison at a time, in batches of the same size as ours. With --large the
numbers of topics are those of MS MARCO's development sets, where SciPy is left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shared_data import peak_memory, table
from truerank.measures.resampling import bootstrap_interval
from truerank.measures.significance import randomisation_columns, unpaired_randomisation

Floats = NDArray[np.float64]
STEPS = np.array([0.0, *(1 / rank for rank in range(10, 0, -1))])


def scores(topics: int, runs: int, *, steps: bool, seed: int = 1) -> Floats:
    """A baseline and runs, shape (topics, 1 + runs); each run is a little better than the one before."""
    rng = np.random.default_rng(seed)
    base = rng.beta(1.2, 1.5, topics)[:, None]
    drawn = base + rng.normal(0.0, 0.15, (topics, 1 + runs)) + 0.1 / np.sqrt(topics) * np.arange(1 + runs)
    clipped = np.clip(drawn, 0, 1)
    return STEPS[np.round(clipped * 10).astype(int)] if steps else clipped


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What the call gives, and the seconds it takes."""
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


def scipy_signs(differences: Floats, permutations: int) -> float:
    """SciPy's sign flips of one comparison."""
    batch = max(1, 2_000_000 // len(differences))
    found = stats.permutation_test(
        (differences,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        n_resamples=permutations,
        batch=batch,
        vectorized=True,
        rng=7,
    )
    return float(found.pvalue)


def scipy_sides(first: Floats, second: Floats, permutations: int) -> float:
    """SciPy's permutations of one unpaired comparison."""
    found = stats.permutation_test(
        (first, second),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        n_resamples=permutations,
        batch=max(1, 2_000_000 // (len(first) + len(second))),
        vectorized=True,
        rng=7,
    )
    return float(found.pvalue)


def paired_row(topics: int, runs: int, permutations: int, *, steps: bool, peer: bool) -> list[object]:
    """All runs against the baseline by sign flips."""
    values = scores(topics, runs, steps=steps)
    first, second = values[:, 1:], np.repeat(values[:, :1], runs, axis=1)
    ours, seconds = timed(lambda: randomisation_columns(first, second, permutations=permutations))
    row: list[object] = ["sign flips", f"{topics:,}", runs, "steps" if steps else "continuous", f"{seconds:.2f} s"]
    if not peer:
        return [*row, "", "", ""]
    theirs, peer_seconds = timed(lambda: [scipy_signs((first - second)[:, i], permutations) for i in range(runs)])
    gap = max(abs(a.p - b) for a, b in zip(ours, theirs, strict=True))
    return [*row, f"{peer_seconds:.2f} s", f"{peer_seconds / seconds:.1f}×", f"{gap:.4f}"]


def unpaired_row(topics: int, others: int, permutations: int, *, steps: bool, peer: bool) -> list[object]:
    """One run on some topics against the same run on others."""
    first, second = scores(topics, 0, steps=steps)[:, 0], scores(others, 0, steps=steps, seed=2)[:, 0] + 0.01
    ours, seconds = timed(lambda: unpaired_randomisation(first, second, permutations=permutations))
    kind = "steps" if steps else "continuous"
    row: list[object] = ["sides", f"{topics:,} + {others:,}", 1, kind, f"{seconds:.2f} s"]
    if not peer:
        return [*row, "", "", ""]
    theirs, peer_seconds = timed(lambda: scipy_sides(first, second, permutations))
    return [*row, f"{peer_seconds:.2f} s", f"{peer_seconds / seconds:.1f}×", f"{abs(ours.p - theirs):.4f}"]


def bootstrap_row(topics: int, resamples: int, *, peer: bool) -> list[object]:
    """A BCa interval of one mean difference."""
    values = scores(topics, 1, steps=False)
    differences = values[:, 1] - values[:, 0]
    ours, seconds = timed(lambda: bootstrap_interval([differences], resamples=resamples))
    row: list[object] = ["BCa bootstrap", f"{topics:,}", 1, "continuous", f"{seconds:.2f} s"]
    if not peer:
        return [*row, "", "", ""]
    batch = max(1, 2_000_000 // topics)
    theirs, peer_seconds = timed(
        lambda: stats.bootstrap((differences,), np.mean, n_resamples=resamples, batch=batch, rng=7).confidence_interval
    )
    gap = max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / (theirs.high - theirs.low)
    return [*row, f"{peer_seconds:.2f} s", f"{peer_seconds / seconds:.1f}×", f"{gap:.4f} of the width"]


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--permutations", type=int, default=100_000)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    number = given.permutations
    if given.large:
        rows = [
            paired_row(6_980, 5, number, steps=False, peer=False),
            paired_row(6_980, 5, number, steps=True, peer=False),
            paired_row(55_578, 4, number, steps=True, peer=False),
            unpaired_row(8_197, 55_578, number, steps=True, peer=False),
            bootstrap_row(6_980, 10_000, peer=False),
            bootstrap_row(55_578, 10_000, peer=False),
        ]
    else:
        rows = [
            paired_row(43, 36, number, steps=False, peer=True),
            paired_row(250, 36, number, steps=False, peer=True),
            paired_row(1_000, 5, number, steps=False, peer=True),
            unpaired_row(43, 54, number, steps=False, peer=True),
            unpaired_row(2_000, 2_000, number, steps=True, peer=True),
            bootstrap_row(43, 10_000, peer=True),
            bootstrap_row(1_000, 10_000, peer=True),
        ]
    columns = ["what", "topics", "comparisons", "scores", "truerank", "SciPy", "ratio", "largest difference"]
    print(table(columns, rows))
    print(f"\n{number:,} permutations; peak memory {peak_memory():,.0f} MiB.")


if __name__ == "__main__":
    main()

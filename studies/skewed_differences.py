"""How often does the paired t-test call equal systems unlike, where differences have a tail?

    python studies/skewed_differences.py [--samples 40000]

Differences with the mean 0 are drawn from four populations; a rate is the share of samples whose 95% interval lies
above 0, or below 0. The last column has those that `check` calls a plain HOLDS: at least six topics differ, and no tail
of losses is seen (skewness above -1, an error by Edgeworth's first term of at most 8%, or a lead that losses by
chance would not end).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import scipy

from truerank.arrays import Floats

SIZES = (8, 10, 15, 25, 50, 100)


def populations(draw: np.random.Generator, shape: tuple[int, int]) -> Iterator[tuple[str, Floats]]:
    """Differences by population, shape (samples, topics)."""
    yield "normal", draw.normal(size=shape)
    yield "few large losses (exponential)", 0.15 - draw.exponential(0.15, size=shape)
    fails = draw.random(shape) < 0.1
    yield "one topic in ten fails", np.where(fails, -0.9, 0.1) + draw.normal(0, 0.05, shape)
    ranks = 1 / draw.choice([1, 2, 3, 4], size=shape, p=[0.1, 0.4, 0.3, 0.2])
    yield "RR, all or nothing against second places", ranks - (draw.random(shape) < 0.45)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=40_000)
    samples = parser.parse_args().samples
    draw = np.random.default_rng(0)
    print("| differences | topics | above 0 | below 0 | plain HOLDS |\n| --- | ---: | ---: | ---: | ---: |")
    for topics in SIZES:
        for name, values in populations(draw, (samples, topics)):
            t = values.mean(1) / np.maximum(values.std(1, ddof=1) / topics**0.5, 1e-12)
            limit = scipy.special.stdtrit(topics - 1, 0.975)
            skew = scipy.stats.skew(values, axis=1)
            seen = (skew <= -1) & (2 * (0.025 - 0.0845 * skew / topics**0.5) > 0.08)
            seen &= values.mean(1) <= (3 + 2 * (values < 0).sum(1) ** 0.5) / topics * (1 + values.mean(1))
            plain = (t > limit) & ~seen & ((np.abs(values) > 1e-9).sum(1) >= 6)
            print(f"| {name} | {topics} | {(t > limit).mean():.3f} | {(t < -limit).mean():.3f} | {plain.mean():.3f} |")


if __name__ == "__main__":
    main()

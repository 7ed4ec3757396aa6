"""Resampling in bounded memory: sign flips of paired differences, shuffles of two samples, bootstrap intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from truerank.arrays import Floats

Bootstrap = Literal["percentile", "bca"]

_CELLS_AT_ONCE: Final = 2_000_000
# From so many topics on, scores that take few values are drawn by value: a reciprocal rank takes eleven.
_MANY_TOPICS: Final = 2_000
_TOPICS_PER_VALUE: Final = 32
#: Sums of the same numbers in another order differ in their last bits; such differences count as equal.
_ROUNDING: Final = 1e-12


class Resampled(NamedTuple):
    """The p-values of a randomisation test.

    `p` has one value per column; `counts` says of each out of how many arrangements, `exact` whether these were all
    that there are.
    """

    p: Floats
    counts: NDArray[np.int64]
    exact: NDArray[np.bool_]


def sign_flip_p(differences: Floats, *, permutations: int = 100_000, seed: int = 0) -> Resampled:
    """Two-sided p-values of the mean of paired differences when the sign of each could as well be the other one.

    A zero has no sign: it takes no part. Where a column has no more arrangements than `permutations`, all of them are
    counted; else as many are drawn, shared by all columns, and p is (1 + as extreme) / (1 + drawn), which is never 0.

    Args:
        differences: shape (topics, comparisons); finite.

    Source: Smucker, Allan, Carterette (CIKM 2007), section 2.3; Phipson, Smyth (2010) for the 1 that is added.
    """
    topics, columns = differences.shape
    p, counts = np.ones(columns), np.full(columns, permutations, dtype=np.int64)
    exact, by_size = np.zeros(columns, dtype=bool), np.zeros(columns, dtype=bool)
    for column in range(columns):
        signed = differences[differences[:, column] != 0, column]
        if 1 << min(len(signed), 62) <= permutations:
            p[column], counts[column], exact[column] = _all_flips_p(signed), 1 << len(signed), True
        elif (found := _values(np.abs(signed))) is not None:
            p[column], by_size[column] = _few_sizes_p(signed, *found, permutations, seed), True
    sampled = np.flatnonzero(~exact & ~by_size)
    if len(sampled):
        values = np.ascontiguousarray(differences[:, sampled])
        bar, total = _bar(np.abs(values.sum(axis=0)), np.abs(values).sum(axis=0)), values.sum(axis=0)
        beyond = np.zeros(len(sampled))
        rng = np.random.default_rng(seed)
        for rows in _chunks(permutations, topics):
            bits = rng.integers(0, 256, size=(rows, -(-topics // 8)), dtype=np.uint8)
            kept = np.unpackbits(bits, axis=1, count=topics).astype(np.float64)
            beyond += (np.abs(2 * (kept @ values) - total) >= bar).sum(axis=0)
        p[sampled] = (1 + beyond) / (1 + permutations)
    return Resampled(p, counts, exact)


def shuffle_p(values: Floats, inside: NDArray[np.bool_], *, permutations: int = 100_000, seed: int = 0) -> Resampled:
    """Two-sided p-values of the difference of two means when any topic could as well be on the other side.

    All ways to choose the sides are counted where there are no more than `permutations`; else as many are drawn,
    shared by all columns, and p is (1 + as extreme) / (1 + drawn).

    Args:
        values: shape (topics of both sides, comparisons); finite.
        inside: which topics are on the first side, shape (topics,); at least one on each side.

    Source: Pitman (1937); Phipson, Smyth (2010) for the 1 that is added.
    """
    topics, size = len(inside), int(inside.sum())
    total, columns = values.sum(axis=0), values.shape[1]

    def differences(chosen: Floats) -> Floats:
        sums = chosen @ values
        return np.asarray(np.abs(sums / size - (total - sums) / (topics - size)))

    bar = _bar(differences(inside[None, :].astype(np.float64))[0], np.abs(values).max(axis=0))
    ways = math.comb(topics, size)
    if ways <= permutations:
        beyond = np.zeros(columns)
        for chosen in _all_sides(topics, size):
            beyond += (differences(chosen) >= bar).sum(axis=0)
        return Resampled(beyond / ways, np.full(columns, ways), np.ones(columns, dtype=bool))
    found = [_values(values[:, column]) for column in range(columns)]
    p = np.ones(columns)
    for column, of_values in enumerate(found):
        if of_values is not None:
            p[column] = _few_values_p(*of_values, size, float(bar[column]), permutations=permutations, seed=seed)
    sampled = np.array([of_values is None for of_values in found], dtype=bool)
    if sampled.any():
        beyond = np.zeros(columns)
        rng = np.random.default_rng(seed)
        for rows in _chunks(permutations, topics):
            same = np.tile(inside.astype(np.float64), (rows, 1))
            beyond += (differences(rng.permuted(same, axis=1)) >= bar).sum(axis=0)
        p[sampled] = ((1 + beyond) / (1 + permutations))[sampled]
    return Resampled(p, np.full(columns, permutations, dtype=np.int64), np.zeros(columns, dtype=bool))


def bootstrap_interval(
    samples: Sequence[Floats],
    *,
    confidence: float = 0.95,
    method: Bootstrap = "bca",
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[float, float]:
    """The bootstrap interval of a mean, or of the difference of two means.

    Args:
        samples: one sample of shape (topics,), or two, of which each is drawn again for itself; none is empty.
        confidence: of the interval.
        method: "percentile", or "bca" (bias-corrected and accelerated).
        resamples: how often the samples are drawn again.
        seed: of the draws.

    Returns:
        Its ends. Where all values of each sample are equal, both are the estimate.

    Source: Efron, Tibshirani (1993), An Introduction to the Bootstrap, sections 13.3 and 14.3.
    """
    signs = (1.0, -1.0)
    estimate = sum(sign * float(sample.mean()) for sign, sample in zip(signs, samples, strict=False))
    if all(np.ptp(sample) == 0 for sample in samples):
        return estimate, estimate
    rng = np.random.default_rng(seed)
    drawn = np.zeros(resamples)
    for sign, sample in zip(signs, samples, strict=False):
        done = 0
        for rows in _chunks(resamples, len(sample)):
            drawn[done : done + rows] += sign * sample[rng.integers(0, len(sample), (rows, len(sample)))].mean(axis=1)
            done += rows
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if method == "bca":
        tails = _bca_tails(tails, samples, estimate, drawn)
    low, high = np.quantile(drawn, tails)
    return float(low), float(high)


def _bca_tails(tails: Floats, samples: Sequence[Floats], estimate: float, drawn: Floats) -> Floats:
    """The quantiles to read instead of `tails`: moved by the bias and by the skewness of the jackknife's values."""
    margin = _ROUNDING * max(abs(estimate), float(np.abs(drawn).max()))
    below = (np.mean(drawn < estimate - margin) + np.mean(drawn <= estimate + margin)) / 2
    bias = scipy.special.ndtri(np.clip(below, 1 / (2 * len(drawn)), 1 - 1 / (2 * len(drawn))))
    # The jackknife's influence values of a mean are the deviations from it; those of the second sample count negative.
    cubes = squares = 0.0
    for sign, sample in zip((1.0, -1.0), samples, strict=False):
        influence = sign * (sample - sample.mean())
        cubes += float((influence**3).sum()) / len(sample) ** 3
        squares += float((influence**2).sum()) / len(sample) ** 2
    skew = cubes / (6 * squares**1.5)
    shifted = bias + scipy.special.ndtri(tails)
    return np.asarray(scipy.special.ndtr(bias + shifted / (1 - skew * shifted)))


def _all_flips_p(signed: Floats) -> float:
    """The exact p over all signs of at most some twenty differences; the observed one is among them."""
    total, beyond = float(signed.sum()), 0
    bar = abs(total) - _ROUNDING * float(np.abs(signed).sum())
    places = np.arange(len(signed))
    for start in range(0, 1 << len(signed), rows := max(1, _CELLS_AT_ONCE // max(1, len(signed)))):
        numbers = np.arange(start, min(start + rows, 1 << len(signed)))
        kept = ((numbers[:, None] >> places) & 1).astype(np.float64)
        beyond += int((np.abs(2 * (kept @ signed) - total) >= bar).sum())
    return beyond / (1 << len(signed))


def _values(values: Floats) -> tuple[Floats, NDArray[np.int64]] | None:
    """The different values and how often each is there, where there are many topics and few values."""
    if len(values) <= _MANY_TOPICS:
        return None
    found, counts = np.unique(values, return_counts=True)
    return (found, counts) if len(found) * _TOPICS_PER_VALUE <= len(values) else None


def _few_sizes_p(signed: Floats, sizes: Floats, counts: NDArray[np.int64], permutations: int, seed: int) -> float:
    """Sign flips where many differences have one size: how many of them are positive is binomial."""
    bar = abs(float(signed.sum())) - _ROUNDING * float(np.abs(signed).sum())
    beyond, rng = 0, np.random.default_rng(seed)
    for rows in _chunks(permutations, len(sizes)):
        positive = rng.binomial(counts, 0.5, size=(rows, len(sizes)))
        beyond += int((np.abs((2 * positive - counts) @ sizes) >= bar).sum())
    return (1 + beyond) / (1 + permutations)


def _few_values_p(
    values: Floats, counts: NDArray[np.int64], size: int, bar: float, *, permutations: int, seed: int
) -> float:
    """Shuffles where many topics have one score: how many of each are on the first side is hypergeometric."""
    topics, total = int(counts.sum()), float(values @ counts)
    beyond, rng = 0, np.random.default_rng(seed)
    for rows in _chunks(permutations, len(values)):
        sums = rng.multivariate_hypergeometric(counts, size, size=rows, method="marginals") @ values
        beyond += int((np.abs(sums / size - (total - sums) / (topics - size)) >= bar).sum())
    return (1 + beyond) / (1 + permutations)


def _all_sides(topics: int, size: int) -> Iterator[Floats]:
    """All ways to choose `size` topics, as rows of zeros and ones, in blocks."""
    combinations = itertools.combinations(range(topics), size)
    for rows in _chunks(math.comb(topics, size), topics):
        chosen = np.zeros((rows, topics))
        members = np.array(list(itertools.islice(combinations, rows)), dtype=np.int64).reshape(rows, size)
        np.put_along_axis(chosen, members, 1.0, axis=1)
        yield chosen


def _bar(observed: Floats, scale: Floats) -> Floats:
    """What a resampled statistic must reach to be as extreme as the observed one."""
    return np.asarray(observed - _ROUNDING * scale)


def _chunks(rows: int, columns: int) -> Iterator[int]:
    """Numbers of rows that add up to `rows`, each small enough for memory."""
    most = max(1, _CELLS_AT_ONCE // max(1, columns))
    for start in range(0, rows, most):
        yield min(most, rows - start)

"""How the chance of a leak depends on the similarity, told from labels: a smooth monotone curve, and how sure it is.

The log odds of a leak are a piecewise linear function of the similarity with 21 knots over the range of the labels. A
random-walk prior of second order on the knots makes it smooth: without evidence for a bend it is logistic regression,
and how much it bends is averaged over, with a prior that prefers few bends. The posterior is approximated by normal
distributions (Laplace), draws from it are made non-decreasing, and the precision above a threshold is the mean chance
of the candidates above it, draw by draw. Labels inform each other across the whole range, so that fewer are needed than
for counting above each threshold; the price is the assumption that leaks do not become rarer with similarity.

Source: second-order random walk: Rue and Held, Gaussian Markov Random Fields, 2005, section 3.4; prior of the bends:
Simpson et al., Penalising model component complexity, 2017; normal approximation: Tierney and Kadane, 1986. The choice
among estimators is measured in `benchmarks/calibration.py`.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

_KNOTS: Final = 21
_BENDS: Final = np.logspace(-2, 3, 9)
#: Rate of the prior of a bend's standard deviation (log odds from knot to knot); 5: one above 0.6 has a chance of 0.05.
_RATE: Final = 5.0
#: Standard deviations of the prior of level and slope (log odds, over the whole range): they rule nothing out.
_LEVEL: Final = 10.0
_SLOPE: Final = 60.0
_STEPS: Final = 60


class _Mode(NamedTuple):
    """The most likely knots for one amount of bending, its log evidence, curvature, and spread of the gradient."""

    evidence: float
    knots: Floats
    curvature: Floats
    spread: Floats


def precision_draws(
    similarity: Floats,
    leak: NDArray[np.bool_],
    positions: Floats,
    weights: Floats,
    rng: np.random.Generator,
    *,
    draws: int,
    clusters: NDArray[np.int64] | None = None,
    cases: Floats | None = None,
) -> Floats:
    """Draws of the precision above each of several thresholds.

    Args:
        similarity: of the labelled pairs, shape (n,).
        leak: whether each is a leak, shape (n,).
        positions: similarities at which candidates lie, ascending, shape (T,).
        weights: how many candidates lie at each, shape (T,).
        clusters: which pairs belong together (their leaks are not independent), shape (n,); None where none do.
        cases: for how many labels each counts, shape (n,); 1 without it.

    Returns:
        Shape (draws, T): the mean chance of a leak of the candidates at each position and above; there must be some.
    """
    low, high = float(similarity.min()), float(similarity.max())
    knots = np.linspace(low, high if high > low else low + 1e-6, _KNOTS)
    base = _hats(similarity, knots)
    cases = np.ones(len(leak)) if cases is None else cases
    modes = [_mode(base, leak.astype(np.float64), cases, clusters, bend) for bend in _BENDS]
    evidence = np.array([mode.evidence for mode in modes])
    shares = np.exp(evidence - evidence.max())
    counts = rng.multinomial(draws, shares / shares.sum())
    found = [
        mode.knots[:, None]
        + np.linalg.solve(mode.curvature, np.linalg.cholesky(mode.spread) @ rng.standard_normal((_KNOTS, count)))
        for mode, count in zip(modes, counts, strict=True)
        if count
    ]
    chances = 1 / (
        1 + np.exp(-np.clip(_hats(np.clip(positions, low, high), knots) @ np.concatenate(found, axis=1), -40, 40))
    )
    # Positions without a candidate take part with next to no weight.
    weighed = weights + 1e-9 * max(float(weights.sum()), 1.0)
    rising = chances.T.copy()
    for draw in np.flatnonzero((np.diff(rising, axis=1) < 0).any(axis=1)):
        rising[draw] = scipy.optimize.isotonic_regression(rising[draw], weights=weighed).x
    above: Floats = (rising * weights)[:, ::-1].cumsum(axis=1)[:, ::-1] / weights[::-1].cumsum()[::-1]
    return above


def _hats(values: Floats, knots: Floats) -> Floats:
    """The piecewise linear basis at some values, shape (values, knots)."""
    places = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    share = (values - knots[places]) / (knots[places + 1] - knots[places])
    base = np.zeros((len(values), len(knots)))
    rows = np.arange(len(values))
    base[rows, places], base[rows, places + 1] = 1 - share, share
    return base


def _mode(base: Floats, leak: Floats, cases: Floats, clusters: NDArray[np.int64] | None, bend: float) -> _Mode:
    """Newton's method from a flat curve; steps are bounded, since labels that part cleanly have no finite slope."""
    bends = np.diff(np.eye(_KNOTS), 2, axis=0)
    level = np.full(_KNOTS, 1 / _KNOTS)
    line = np.linspace(-0.5, 0.5, _KNOTS)
    slope = line / (line @ line)
    prior = np.outer(level, level) / _LEVEL**2 + np.outer(slope, slope) / _SLOPE**2 + bend * bends.T @ bends
    knots = np.zeros(_KNOTS)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-base @ knots))
        curvature = base.T @ (base * (cases * chance * (1 - chance))[:, None]) + prior
        step = np.linalg.solve(curvature, base.T @ (cases * (leak - chance)) - prior @ knots)
        largest = float(np.abs(step).max())
        knots = knots + step * min(1.0, 3 / max(largest, 1e-12))
        if largest < 1e-6:
            break
    odds = base @ knots
    likelihood = float((cases * (leak * odds - np.logaddexp(0, odds))).sum() - 0.5 * knots @ prior @ knots)
    evidence = likelihood + 0.5 * (np.linalg.slogdet(prior)[1] - np.linalg.slogdet(curvature)[1])
    deviation = bend**-0.5
    evidence += np.log(deviation) - _RATE * deviation
    spread = curvature
    if clusters is not None:
        gradient = np.zeros((int(clusters.max()) + 1, _KNOTS))
        np.add.at(gradient, clusters, base * (cases * (leak - 1 / (1 + np.exp(-odds))))[:, None])
        spread = gradient.T @ gradient + prior
    return _Mode(float(evidence), knots, curvature, spread)

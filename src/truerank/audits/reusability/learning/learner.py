"""The loss of the learner and its solver: class-weighted logistic regression to its optimum, warm-started.

The loss, `LOSS` by name, of weights w and an intercept b over the relevant rows and the non-relevant ones is

    λ/2 ‖w‖² + ½ mean over relevant of ln(1 + e^−(w·x + b)) + ½ mean over non-relevant of ln(1 + e^(w·x + b)).

Both classes weigh the same however many rows they have, as in the sampled pairs of the original. The loss is strictly
convex in w and has one optimum, found by Newton's method with conjugate gradients; only the terms that the rows hold
take part.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats

LOSS: Final = "class-weighted logistic"

_NEWTON_STEPS: Final = 50
_INNER_STEPS: Final = 250
#: The norm of the gradient, relative to λ, at which the optimum counts as found: it bounds the error of the weights.
_TOLERANCE: Final = 1e-5
_HALVINGS: Final = 30


class LinearModel(NamedTuple):
    """Weights of the terms, shape (terms,), and the intercept; `steps` of Newton's method were taken."""

    weights: Floats
    intercept: float
    steps: int = 0


def fit(rows: Any, relevant: NDArray[np.bool_], regularisation: float, start: LinearModel) -> LinearModel:
    """The optimum of the loss.

    Args:
        rows: SciPy CSR, shape (rows, terms), 64-bit floats; one relevant row and one other at least.
        relevant: which rows are, shape (rows,).
    """
    signs = np.where(relevant, 1.0, -1.0)
    shares = np.where(relevant, 0.5 / relevant.sum(), 0.5 / (~relevant).sum())
    squares = rows.copy()
    squares.data *= squares.data
    problem = _Problem(rows, rows.T, squares.T, signs, shares, regularisation)
    point = np.append(start.weights, start.intercept)
    margins = problem.margins(point)
    loss = problem.loss(point, margins)
    for step in range(_NEWTON_STEPS):
        gradient = problem.gradient(point, margins)
        size = float(np.sqrt(_dot(gradient, gradient)))
        if size <= _TOLERANCE * regularisation:
            return LinearModel(point[:-1], float(point[-1]), step)
        direction = problem.newton(gradient, margins, size)
        moved = problem.margins(direction)
        slope = _dot(gradient, direction)
        length = 1.0
        for _ in range(_HALVINGS):
            trial = problem.loss(point + length * direction, margins + length * moved)
            if trial <= loss + 1e-4 * length * slope:
                break
            length /= 2
        else:
            break
        point, margins, loss = point + length * direction, margins + length * moved, trial
    return LinearModel(point[:-1], float(point[-1]), _NEWTON_STEPS)


class _Problem(NamedTuple):
    """The loss at points: weights with the intercept behind them, shape (terms + 1,)."""

    rows: Any
    columns: Any
    squares: Any
    signs: Floats
    shares: Floats
    regularisation: float

    def margins(self, point: Floats) -> Floats:
        """w·x + b of every row."""
        found: Floats = self.rows @ point[:-1] + point[-1]
        return found

    def loss(self, point: Floats, margins: Floats) -> float:
        weights = point[:-1]
        logs = np.logaddexp(0.0, -self.signs * margins)
        return _dot(self.shares, logs) + 0.5 * self.regularisation * _dot(weights, weights)

    def gradient(self, point: Floats, margins: Floats) -> Floats:
        pulls = -self.shares * self.signs * _sigmoid(-self.signs * margins)
        return np.append(self.columns @ pulls + self.regularisation * point[:-1], pulls.sum())

    def newton(self, gradient: Floats, margins: Floats, size: float) -> Floats:
        """An approximate Newton direction by preconditioned conjugate gradients."""
        chances = _sigmoid(margins)
        curvature = self.shares * chances * (1 - chances)
        scale = 1 / np.append(self.squares @ curvature + self.regularisation, curvature.sum() + 1e-12)
        found = np.zeros_like(gradient)
        bent = np.empty_like(gradient)
        residual = -gradient
        direction = scale * residual
        energy = _dot(residual, direction)
        enough = (min(0.1, np.sqrt(size)) * size) ** 2
        for _ in range(_INNER_STEPS):
            pulls = curvature * self.margins(direction)
            np.multiply(direction, self.regularisation, out=bent)
            bent[:-1] += self.columns @ pulls
            bent[-1] = pulls.sum()
            length = energy / _dot(direction, bent)
            found += length * direction
            residual -= length * bent
            if _dot(residual, residual) <= enough:
                break
            ahead = scale * residual
            before, energy = energy, _dot(residual, ahead)
            direction *= energy / before
            direction += ahead
        return found


def _dot(first: Floats, second: Floats) -> float:
    # Not by BLAS: its threads share out a sum, so that the last bits would depend on how many there are; and on a busy
    # machine they wait for each other longer than the sum takes.
    return float(np.einsum("i,i->", first, second))


def _sigmoid(values: Floats) -> Floats:
    found: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return found

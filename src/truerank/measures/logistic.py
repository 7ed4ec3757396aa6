"""Logistic regression with a normal prior."""

from __future__ import annotations

from typing import Final

import numpy as np

from truerank.arrays import Flags, Floats

_STEPS: Final = 30
_SMALLEST: Final = 1e-7
#: Steps of the search for the odds that give a mean.
_HALVINGS: Final = 40


def logistic_slopes(features: Floats, outcomes: Floats, weights: Floats, prior: float = 1.0) -> Floats:
    """The slopes of a logistic regression with a normal prior, by Newton's method.

    Args:
        features: shape (rows, features); the first column is the constant.
        outcomes: 0 or 1, shape (rows,).
        weights: of the rows, shape (rows,).
        prior: the precision of the prior of each slope but the constant's; 1 is a standard deviation of 1.

    Returns:
        Shape (features,).

    Source: Bishop (2006), Pattern Recognition and Machine Learning, sections 4.3.3 and 4.4.
    """
    slopes, precision = np.zeros(features.shape[1]), np.diag([1e-3, *[prior] * (features.shape[1] - 1)])

    def loss(tried: Floats) -> float:
        logits = features @ tried
        fit = float((weights * (np.logaddexp(0, logits) - outcomes * logits)).sum())
        return fit + float(tried @ precision @ tried) / 2

    best = loss(slopes)
    for _ in range(_STEPS):
        fitted = 1 / (1 + np.exp(-np.clip(features @ slopes, -30, 30)))
        slope = features.T @ (weights * (outcomes - fitted)) - precision @ slopes
        step = np.linalg.solve((features.T * (weights * fitted * (1 - fitted))) @ features + precision, slope)
        # Half a step is taken where a whole one overshoots.
        while (value := loss(slopes + step)) > best and float(np.abs(step).max()) > _SMALLEST:
            step = step / 2
        slopes, best = slopes + step, value
        if float(np.abs(step).max()) <= _SMALLEST:
            break
    return slopes


def rates_of_mean(rates: Floats, within: Flags, mean: float | None) -> Floats:
    """Rates in the same order whose mean is another one: their odds times a constant.

    Args:
        rates: shape (rows,).
        within: the rows that the mean is over, shape (rows,).
        mean: None leaves the rates as they are.
    """
    if mean is None or not within.any():
        return rates
    if mean <= 0 or mean >= 1:
        return np.full(len(rates), float(np.clip(mean, 0, 1)))
    held = np.clip(rates, 1e-9, 1 - 1e-9)
    logits, low, high = np.log(held / (1 - held)), -40.0, 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float((1 / (1 + np.exp(-logits[within] - middle))).mean()) < mean:
            low = middle
        else:
            high = middle
    found: Floats = 1 / (1 + np.exp(-logits - low))
    return found

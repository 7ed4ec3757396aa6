"""Weighted kappa and alpha of an interval scale, against other implementations and the formula."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from truerank.judging.coefficients import Coefficients

CODES = np.random.default_rng(1).integers(0, 4, size=(60, 2))
ONCE = np.ones((1, len(CODES)))


@pytest.mark.parametrize("weighting", ["linear", "quadratic"])
def test_weighted_kappa(weighting: str) -> None:
    found = Coefficients(CODES, 4).cohen(ONCE, weighting)  # type: ignore[arg-type]
    assert found[0] == pytest.approx(cohen_kappa_score(*CODES.T, weights=weighting), abs=1e-12)


def test_distances_are_those_of_the_grades() -> None:
    """With the grades 0, 1 and 10, an error of nine grades weighs nine times one of a grade."""
    codes = np.array([[0, 0], [1, 1], [2, 2], [0, 1], [1, 2], [2, 1]])
    once = np.ones((1, len(codes)))
    apart = np.abs(np.subtract.outer([0, 1, 10], [0, 1, 10])) / 10
    table = np.zeros((3, 3))
    np.add.at(table, tuple(codes.T), 1 / len(codes))
    expected = 1 - (table * apart).sum() / (np.outer(table.sum(1), table.sum(0)) * apart).sum()
    assert Coefficients(codes, 3, values=[0, 1, 10]).cohen(once, "linear")[0] == pytest.approx(expected, abs=1e-12)
    assert Coefficients(codes, 3).cohen(once, "linear")[0] != pytest.approx(expected, abs=1e-3)


def test_alpha_of_an_interval_scale() -> None:
    values = CODES.ravel()
    observed = ((CODES[:, 0] - CODES[:, 1]) ** 2).mean()
    expected = (np.subtract.outer(values, values) ** 2).sum() / (len(values) * (len(values) - 1))
    found = Coefficients(CODES, 4, "interval").krippendorff(ONCE)[0]
    assert found == pytest.approx(1 - observed / expected, abs=1e-12)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_a_cell_drawn_n_times_is_n_units(level: str) -> None:
    """What the audit of assessors rests on: the cells of a table as units, their counts as weights."""
    counts = np.bincount(CODES[:, 0] * 4 + CODES[:, 1], minlength=16).astype(float)[None]
    cells = np.stack(np.divmod(np.arange(16), 4), axis=1)
    one, other = Coefficients(cells, 4, level), Coefficients(CODES, 4, level)  # type: ignore[arg-type]
    assert one.krippendorff(counts)[0] == pytest.approx(other.krippendorff(ONCE)[0], abs=1e-12)
    assert one.cohen(counts, "quadratic")[0] == pytest.approx(other.cohen(ONCE, "quadratic")[0], abs=1e-12)

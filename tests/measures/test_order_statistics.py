"""Correlations of many orders at once, against those of one order, SciPy, and loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from truerank.measures.orders import ORDER_STATISTICS, kendall, order_statistics, tau_ap
from truerank.measures.significance import paired_t, paired_t_columns

DRAW = np.random.default_rng(0)
TRUTH = DRAW.normal(size=(30, 12))
OTHER = TRUTH + DRAW.normal(size=(30, 12))


def rbo(first: np.ndarray, second: np.ndarray, persistence: float = 0.9) -> float:
    one, two = list(np.argsort(-first)), list(np.argsort(-second))
    total = 0.0
    for depth in range(1, len(one) + 1):
        total += len(set(one[:depth]) & set(two[:depth])) / depth * persistence**depth
    return (1 - persistence) / persistence * total + persistence ** len(one)


def test_rows_are_single_orders() -> None:
    found = order_statistics(TRUTH, OTHER)
    assert found.shape == (30, len(ORDER_STATISTICS))
    for row, first, second in zip(found, TRUTH, OTHER, strict=True):
        expected = (
            kendall(first, second).tau, tau_ap(first, second).tau, scipy.stats.spearmanr(first, second).statistic,
            rbo(first, second),
        )  # fmt: skip
        assert row == pytest.approx(expected, abs=1e-12)


def test_tau_ap_is_what_scipy_counts_in_growing_beginnings() -> None:
    """The pairs in the right order that each further system adds, from Kendall's τ of all systems down to it."""
    for first, second in zip(TRUTH, OTHER, strict=True):
        order = np.argsort(-second)
        right = [0.0]
        for size in range(2, len(order) + 1):
            top = order[:size]
            tau = scipy.stats.kendalltau(first[top], second[top]).statistic
            right.append((tau + 1) / 2 * size * (size - 1) / 2)
        expected = 2 * np.mean(np.diff(right) / np.arange(1, len(order))) - 1
        assert tau_ap(first, second).tau == pytest.approx(expected, abs=1e-12)


def test_rbo_is_the_infinite_sum_over_depths() -> None:
    """Below the last system, where no list has another one, the agreement stays as it is at the last."""
    endless = np.arange(1, 2001)
    for first, second in zip(TRUTH, OTHER, strict=True):
        one, two = np.argsort(-first).tolist(), np.argsort(-second).tolist()
        agreement = [len({*one[:depth]} & {*two[:depth]}) / min(depth, len(one)) for depth in endless]
        expected = 0.1 * float(np.sum(0.9 ** (endless - 1) * agreement))
        assert order_statistics(first[None], second[None])[0, 3] == pytest.approx(expected, abs=1e-12)


def test_ties() -> None:
    first, second = np.array([[3.0, 2, 2, 1]]), np.array([[3.0, 3, 2, 1]])
    tau, ap, rho, _ = order_statistics(first, second)[0]
    assert tau == pytest.approx(scipy.stats.kendalltau(first[0], second[0]).statistic, abs=1e-12)
    assert rho == pytest.approx(scipy.stats.spearmanr(first[0], second[0]).statistic, abs=1e-12)
    assert np.isnan(ap)
    assert np.isnan(order_statistics(np.ones((1, 3)), second[:, :3])[0, [0, 1, 2]]).all()
    assert np.isnan(order_statistics(np.ones((2, 1)), np.ones((2, 1)))).all()


def test_the_same_order() -> None:
    assert order_statistics(TRUTH, TRUTH) == pytest.approx(np.ones((30, 4)), abs=1e-12)


def test_columns_of_paired_t() -> None:
    first, second = DRAW.normal(size=(20, 4)), DRAW.normal(size=(20, 4))
    second[:, 2] = first[:, 2]
    second[:, 3] = first[:, 3] + 1
    found = paired_t_columns(first, second)
    assert found[:2] == pytest.approx([paired_t(first[:, at], second[:, at]).p for at in (0, 1)], rel=1e-9)
    assert (paired_t(first[:, 2], second[:, 2]).p, found[2]) == (1.0, 1.0)
    assert paired_t(first[:, 3], second[:, 3]).p is None and np.isnan(found[3])
    assert np.isnan(paired_t_columns(first[:1], second[:1])).all()

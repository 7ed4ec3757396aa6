"""Intervals of shares against the formulas that define them."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from truerank.errors import OptionError
from truerank.measures import proportion
from truerank.measures.magnitudes import exact_interval


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 10), (10, 10), (57, 400)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_wilson_solves_its_equation(k: int, n: int, confidence: float) -> None:
    """The ends are the shares p whose distance to k/n is z standard errors at p."""
    found = proportion(k, n, confidence=confidence)
    z = float(stats.norm.ppf((1 + confidence) / 2))
    assert found.share == k / n
    for end in (found.low, found.high):
        if 0 < end < 1:
            assert abs(k / n - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-9)
    assert 0 <= found.low <= k / n <= found.high <= 1


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 10), (10, 10)])
def test_the_exact_interval_has_half_of_the_rest_on_each_side(k: int, n: int) -> None:
    found = proportion(k, n, method="exact")
    if k:
        assert float(stats.binom.sf(k - 1, n, found.low)) == pytest.approx(0.025)
    if k < n:
        assert float(stats.binom.cdf(k, n, found.high)) == pytest.approx(0.025)
    assert exact_interval(k, n) == pytest.approx((found.low, found.high), abs=1e-9)


def test_without_items_nothing_is_known_and_faults_are_named() -> None:
    assert proportion(0, 0) == (0, 0, None, 0.0, 1.0)
    assert exact_interval(0, 0) == (0.0, 1.0)
    for counts in ((3, 2), (-1, 2)):
        with pytest.raises(ValueError, match=f"{counts[0]} of 2"):
            proportion(*counts)
    with pytest.raises(OptionError, match="confidence"):
        proportion(1, 2, confidence=1.0)

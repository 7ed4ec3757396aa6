"""The lead of the best of many configurations: its level where none is better, and what one configuration alone has."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from truerank.errors import InputError
from truerank.measures.selection import chosen_lead


def grid(topics: int, tried: int, seed: int, better: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    scores = draw.normal(0.4, 0.2, (topics, 1)) + draw.normal(0, 0.1, (topics, tried + 1))
    scores[:, 0] += better
    return scores[:, :-1], scores[:, -1]


def test_one_configuration_has_the_interval_of_a_paired_t_test() -> None:
    scores, baseline = grid(60, 1, 4, better=0.03)
    found = chosen_lead(scores, baseline, 0, resamples=40_000)
    expected = scipy.stats.ttest_rel(scores[:, 0], baseline)
    low, high = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.001)
    assert found.p == pytest.approx(expected.pvalue, abs=0.01)
    assert found.cross_fitted == pytest.approx(found.lead, abs=1e-12)


@pytest.mark.parametrize("tried", [5, 60])
def test_the_best_of_equal_ones_is_rarely_shown_to_be_better(tried: int) -> None:
    shown, plain, cross = 0, 0, []
    for seed in range(200):
        scores, baseline = grid(40, tried, seed)
        best = int(np.argmax(scores.mean(axis=0)))
        found = chosen_lead(scores, baseline, best, resamples=500, seed=seed)
        shown += found.low > 0
        plain += scipy.stats.ttest_rel(scores[:, best], baseline).confidence_interval(0.95).low > 0
        cross.append(found.cross_fitted)
        assert found.place == 1 and (found.low > 0) == (found.low > 0 and found.p < 0.06)
    assert shown <= 12  # 2.5% of 200 are 5; 12 or more have a chance of 0.5%.
    assert plain > 2 * shown + 5
    assert abs(float(np.mean(cross))) < 0.004


def test_a_large_lead_survives_the_choice() -> None:
    scores, baseline = grid(80, 40, 1, better=0.1)
    found = chosen_lead(scores, baseline, 0)
    assert found.low > 0 and found.p < 0.01 and found.tried == 40
    assert chosen_lead(scores, baseline, 0) == found


def test_what_the_best_of_many_leads_by_where_none_is_better() -> None:
    scores, baseline = grid(50, 40, 2)
    found = chosen_lead(scores, baseline, 0, resamples=4_000)
    sizes = [size for size, _, _ in found.by_chance]
    assert sizes == [1, 2, 3, 5, 10, 20, 40]
    # Draws of new topics and configurations, none of which is better.
    drawn = [grid(50, 40, seed) for seed in range(1_000, 1_400)]
    leads = np.array([(own - other[:, None]).mean(axis=0) for own, other in drawn])
    for size, mean, high in found.by_chance[2:]:
        best = leads[:, :size].max(axis=1)
        assert mean == pytest.approx(best.mean(), abs=0.006)
        assert high == pytest.approx(np.quantile(best, 0.975), abs=0.012)


def test_edges_are_named() -> None:
    scores, baseline = grid(1, 3, 1)
    with pytest.raises(InputError, match="1 topics"):
        chosen_lead(scores, baseline, 0)
    same = np.ones((10, 4))
    found = chosen_lead(same, np.ones(10), 2)
    assert (found.lead, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)

"""The noise of running again: variance components against simulation and an analysis of variance by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from truerank.errors import InputError
from truerank.measures.repeats import repeat_noise, repeated_difference


def runs(draw: np.random.Generator, base: np.ndarray, repeats: int, noise: float) -> np.ndarray:
    own = draw.normal(0, 0.1, base.shape) + draw.normal(0, noise, (1, repeats))
    return base + own + draw.normal(0, 0.06, (len(base), repeats))


@pytest.mark.parametrize("repeats", [2, 3, 5])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_intervals_cover_the_truth(repeats: int, noise: float) -> None:
    draw = np.random.default_rng(repeats)
    covered, alone, component, draws = 0, 0, 0, 400
    for _ in range(draws):
        base = draw.normal(0.4, 0.2, (50, 1))
        found = repeated_difference(runs(draw, base, repeats, noise), runs(draw, base, repeats, noise))
        covered += found.low <= 0 <= found.high
        alone += found.topics_only[0] <= 0 <= found.topics_only[1]
        high = np.inf if found.system.high is None else found.system.high
        component += found.system.low <= noise <= high
    # 95% of 400 are 380; fewer than 368 or more than 397 have a chance of about 1%.
    assert covered >= 368 and component >= 368
    if noise:
        assert alone < covered - 12


def test_the_components_are_those_of_a_table_by_hand() -> None:
    scores = np.array([[1.0, 2.0, 4.0], [2.0, 4.0, 5.0], [4.0, 4.0, 8.0], [5.0, 7.0, 9.0]])
    topic, repeat, mean = scores.mean(axis=1), scores.mean(axis=0), scores.mean()
    squares = [
        3 * ((topic - mean) ** 2).sum() / 3,
        4 * ((repeat - mean) ** 2).sum() / 2,
        sum((scores[t, r] - topic[t] - repeat[r] + mean) ** 2 for t in range(4) for r in range(3)) / 6,
    ]
    found = repeat_noise(scores)
    assert (found.by_topic, found.by_repeat, found.rest) == pytest.approx(
        (((squares[0] - squares[2]) / 3) ** 0.5, ((squares[1] - squares[2]) / 4) ** 0.5, squares[2] ** 0.5)
    )
    assert found.low < found.by_repeat < (found.high or 0)
    assert repeat_noise(scores[:, :2]).high is None


def test_without_noise_between_repetitions_it_is_a_paired_t_test() -> None:
    draw = np.random.default_rng(3)
    base = draw.normal(0.4, 0.2, (40, 1))
    one, other = base + draw.normal(0, 0.1, base.shape), base
    found = repeated_difference(np.repeat(one, 3, axis=1), other)
    low, high = scipy.stats.ttest_rel(one[:, 0], other[:, 0]).confidence_interval(0.95)
    assert (found.low, found.high, found.freedom) == pytest.approx((low, high, 39))
    assert found.system.by_repeat == 0 and found.baseline.repeats == 1


def test_more_repetitions_and_topics_show_smaller_differences() -> None:
    draw = np.random.default_rng(9)
    base = draw.normal(0.4, 0.2, (50, 1))
    plan = repeated_difference(runs(draw, base, 5, 0.03), runs(draw, base, 5, 0.03)).detectable
    assert [one[:2] for one in plan[:4]] == [(1, 50), (1, 200), (2, 50), (2, 200)]
    assert all(first[2] > second[2] for first, second in zip(plan[::2], plan[1::2], strict=True))
    assert all(first[2] > second[2] for first, second in zip(plan[::2], plan[2::2], strict=False))


@pytest.mark.parametrize(("repeats", "planned"), [(10, {10}), (12, {12, 24})])
def test_what_more_than_any_planned_number_of_repetitions_would_show_is_planned(
    repeats: int, planned: set[int]
) -> None:
    draw = np.random.default_rng(9)
    base = draw.normal(0.4, 0.2, (50, 1))
    plan = repeated_difference(runs(draw, base, repeats, 0.03), base).detectable
    assert {count for count, _, _ in plan if count >= repeats} == planned


def test_too_little_is_refused() -> None:
    with pytest.raises(InputError, match="1 repeats"):
        repeat_noise(np.ones((5, 1)))
    with pytest.raises(InputError, match="no repetitions"):
        repeated_difference(np.ones((5, 1)), np.ones((5, 1)))

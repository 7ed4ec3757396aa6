"""Ranks, first groups and components of variance against other programs; skipped where these are not installed."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.measures.rank_groups import rank_groups
from truerank.measures.repeats import repeat_noise


def scores(seed: int, rows: int = 400) -> np.ndarray:
    """So many rows that tests by the normal distribution, and ours, have the same limits but for random draws."""
    draw = np.random.default_rng(seed)
    return draw.normal(size=(rows, 1)) + draw.normal(size=(rows, 8)) + np.linspace(0, 0.5, 8)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ranks_of_own_pairs_and_of_all(seed: int) -> None:
    sets = pytest.importorskip("multiple_inference.confidence_set")
    drawn = scores(seed)
    found = rank_groups(drawn, resamples=4_000)
    spread = np.cov(drawn.T) / len(drawn)
    for kind, low, high in (
        (sets.MarginalRanking, found.own_low, found.own_high),
        (sets.SimultaneousRanking, found.low, found.high),
    ):
        ends = kind(drawn.mean(axis=0), spread).fit().conf_int()
        apart = np.abs(ends - np.stack([low, high], axis=1))
        # A pair at the limit may fall on either side; ours goes on by steps, and may exclude more.
        assert apart.max() <= 1 and (apart > 0).mean() <= 0.25
        assert low.max() > 1 and high.min() < 8


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_first_group_is_a_model_confidence_set(seed: int) -> None:
    arch = pytest.importorskip("arch.bootstrap")
    drawn = scores(seed)
    reference = arch.MCS(-drawn, size=0.05, method="R", reps=2_000, block_size=1, bootstrap="stationary", seed=5)
    reference.compute()
    own = set(np.flatnonzero(rank_groups(drawn, resamples=2_000).first).tolist())
    assert len(own ^ set(reference.included)) <= 1 and 7 in own and 0 not in own


def test_components_of_an_analysis_of_variance() -> None:
    pandas = pytest.importorskip("pandas")
    formula = pytest.importorskip("statsmodels.formula.api")
    from statsmodels.stats.anova import anova_lm

    draw = np.random.default_rng(4)
    drawn = draw.normal(size=(30, 1)) + draw.normal(0, 0.3, (1, 4)) + draw.normal(0, 0.5, (30, 4))
    topic, repeat = np.indices(drawn.shape)
    rows = pandas.DataFrame({"y": drawn.ravel(), "topic": topic.ravel(), "repeat": repeat.ravel()})
    squares = anova_lm(formula.ols("y ~ C(topic) + C(repeat)", rows).fit())["mean_sq"]
    found = repeat_noise(drawn)
    rest = squares["Residual"]
    assert found.rest**2 == pytest.approx(rest)
    assert found.by_repeat**2 == pytest.approx((squares["C(repeat)"] - rest) / 30)
    assert found.by_topic**2 == pytest.approx((squares["C(topic)"] - rest) / 4)

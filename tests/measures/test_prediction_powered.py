"""Prediction-powered estimates against every sample that there is, and against simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from truerank.errors import InputError
from truerank.measures.prediction_powered import (
    Labelled,
    Pairs,
    allocate,
    basis,
    estimate,
    estimate_topics,
    half_widths,
)


def _world(pairs: int, topics: int, scores: int, seed: int = 0) -> tuple[Pairs, np.ndarray]:
    rng = np.random.default_rng(seed)
    model = rng.integers(0, 3, pairs).astype(float)
    people = np.clip(model + rng.integers(-1, 2, pairs), 0, 3).astype(float)
    weights = rng.random((pairs, scores)) * (rng.random((pairs, scores)) < 0.8)
    return Pairs(np.sort(rng.integers(0, topics, pairs)), weights, basis(model, "fixed")), people


def test_the_mean_over_all_samples_is_the_truth_and_so_is_the_variance() -> None:
    """Two strata, all 10 × 15 samples: the estimate and the estimate of its variance are unbiased."""
    pairs, people = _world(11, 3, 2)
    stratum = np.array([0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0])
    truth = (pairs.weights * people[:, None]).sum(axis=0) / 3
    for power in (0.0, 0.6, 1.0):
        means, variances = [], []
        for first in itertools.combinations(np.flatnonzero(stratum == 0), 3):
            for second in itertools.combinations(np.flatnonzero(stratum == 1), 4):
                rows = np.array([*first, *second])
                chance = np.where(stratum[rows] == 0, 3 / 5, 4 / 6)
                found = estimate(pairs, Labelled(rows, people[rows], stratum[rows], chance), 3, fixed=np.array([power]))
                means.append(found.means)
                variances.append(found.design)
        assert np.mean(means, axis=0) == pytest.approx(truth)
        assert np.mean(variances, axis=0) == pytest.approx(np.var(means, axis=0))


def test_all_labels_give_the_truth_without_doubt() -> None:
    pairs, people = _world(60, 5, 3)
    rows = np.arange(60)
    labelled = Labelled(rows, people, rows % 4, np.ones(60))
    found = estimate(pairs._replace(features=basis(pairs.features[:, 0], "tuned")), labelled, 5)
    assert found.means == pytest.approx((pairs.weights * people[:, None]).sum(axis=0) / 5)
    assert found.design == pytest.approx(np.zeros(3))
    by_topic = [(pairs.weights * people[:, None])[pairs.topic == topic].sum(axis=0) for topic in range(5)]
    assert found.by_topic == pytest.approx(np.array(by_topic))
    # What is left is the variance between the topics.
    assert found.total == pytest.approx(np.var(by_topic, axis=0, ddof=1) / 5)
    assert half_widths(found, 0.95, "collection", topics=5) == pytest.approx(np.zeros(3))


def test_the_variance_over_topics_and_labels_is_that_of_simulations() -> None:
    """Topics drawn from eight kinds, one stratum over all of them: mean of the variance, variance of the means."""
    rng = np.random.default_rng(3)
    kinds = [_world(12, 1, 1, seed) for seed in range(8)]
    means, totals = [], []
    for _ in range(1000):
        chosen = [kinds[number] for number in rng.integers(0, 8, 6)]
        pairs = Pairs(
            np.repeat(np.arange(6), 12),
            np.concatenate([one.weights for one, _ in chosen]),
            np.concatenate([one.features for one, _ in chosen]),
        )
        people = np.concatenate([grades for _, grades in chosen])
        rows = rng.permutation(72)[:30]
        labelled = Labelled(rows, people[rows], np.zeros(30, int), np.full(30, 30 / 72))
        found = estimate(pairs, labelled, 6, fixed=np.zeros(1))
        means.append(found.means)
        totals.append(found.total)
    assert np.mean(totals) == pytest.approx(np.var(means), rel=0.1)


def test_the_tuned_power_minimises_the_variance_among_all_powers() -> None:
    pairs, people = _world(400, 10, 3, seed=5)
    rng = np.random.default_rng(1)
    rows = rng.permutation(400)[:120]
    labelled = Labelled(rows, people[rows], np.zeros(120, int), np.full(120, 0.3))
    tuned = estimate(pairs, labelled, 10, folds=1)
    best = min(
        np.linspace(-0.5, 1.5, 401),
        key=lambda power: float(estimate(pairs, labelled, 10, fixed=np.array([power])).design.sum()),
    )
    assert tuned.coefficients[0] == pytest.approx(best, abs=0.006)
    # One score decides alone where only that one counts.
    first = estimate(pairs, labelled, 10, folds=1, tuned_on=1)
    alone = estimate(pairs._replace(weights=pairs.weights[:, :1]), labelled, 10, folds=1)
    assert first.coefficients == pytest.approx(alone.coefficients)


def test_the_formula_of_ppi_for_one_mean() -> None:
    """Each pair a topic of its own, one stratum: θ = mean(λ f) + mean(y − λ f), and the two-phase variance."""
    rng = np.random.default_rng(0)
    size, labels = 5000, 200
    model = rng.random(size)
    people = (rng.random(size) < 0.2 + 0.6 * model).astype(float)
    rows = np.sort(rng.permutation(size)[:labels])
    labelled = Labelled(rows, people[rows], np.zeros(labels, int), np.full(labels, labels / size))
    for power in (0.0, 0.4, 1.0):
        pairs = Pairs(np.arange(size), np.ones((size, 1)), basis(model, "fixed"))
        found = estimate(pairs, labelled, size, fixed=np.array([power]))
        errors = people[rows] - power * model[rows]
        assert found.means[0] == pytest.approx(power * model.mean() + errors.mean())
        assert found.design[0] == pytest.approx((1 / labels - 1 / size) * errors.var(ddof=1))


def test_folds_leave_the_estimate_unbiased_with_few_labels() -> None:
    """Each label is corrected by what other labels taught, so that the variance is not understated by much."""
    pairs, people = _world(300, 6, 1, seed=9)
    pairs = pairs._replace(features=basis(pairs.features[:, 0], "tuned"))
    truth = float((pairs.weights[:, 0] * people).sum() / 6)
    rng = np.random.default_rng(2)
    means, variances = [], []
    for number in range(600):
        rows = rng.permutation(300)[:40]
        labelled = Labelled(rows, people[rows], np.zeros(40, int), np.full(40, 40 / 300))
        found = estimate(pairs, labelled, 6, seed=number)
        means.append(found.means[0])
        variances.append(found.design[0])
    assert abs(np.mean(means) - truth) < 3.5 * np.std(means) / np.sqrt(600)
    assert np.mean(variances) == pytest.approx(np.var(means), rel=0.15)


def test_a_stratum_with_one_label_is_refused() -> None:
    pairs, people = _world(20, 2, 1)
    rows = np.array([0, 1, 2])
    with pytest.raises(InputError, match="one label"):
        estimate(pairs, Labelled(rows, people[rows], np.array([0, 0, 1]), np.array([0.2, 0.2, 0.1])), 2)


def test_whole_topics_over_all_samples() -> None:
    rng = np.random.default_rng(4)
    people, model = rng.random((7, 2)), rng.random((7, 2))
    for power in (0.0, 0.7):
        found = [
            estimate_topics(model, people[list(rows)], np.array(rows), fixed=power)
            for rows in itertools.combinations(range(7), 4)
        ]
        means = [one.means for one in found]
        assert np.mean(means, axis=0) == pytest.approx(people.mean(axis=0))
        assert np.mean([one.design for one in found], axis=0) == pytest.approx(np.var(means, axis=0))
    everything = estimate_topics(model, people, np.arange(7))
    assert everything.means == pytest.approx(people.mean(axis=0))
    assert everything.total == pytest.approx(people.var(axis=0, ddof=1) / 7)
    with pytest.raises(InputError, match="2 topics"):
        estimate_topics(model, people[:2], np.arange(2))


def test_labels_go_where_they_lower_the_variance_most() -> None:
    sizes, spread = np.array([6, 9, 12]), np.array([0.5, 0.1, 0.3])
    least = np.array([2, 2, 2])

    def variance(parts: tuple[int, ...]) -> float:
        return float(np.sum(sizes * (sizes / np.array(parts) - 1) * spread**2))

    for labels in range(6, 28):
        parts = allocate(sizes, spread, labels, least=least)
        assert parts.sum() == labels
        assert np.all(parts >= least) and np.all(parts <= sizes)
        every = itertools.product(*(range(2, size + 1) for size in sizes))
        best = min(variance(one) for one in every if sum(one) == labels)
        # Whole numbers that are rounded are not always the best ones.
        assert variance(tuple(parts)) <= 1.1 * best + 1e-12
    with pytest.raises(InputError, match="plan at least 6"):
        allocate(sizes, spread, 5, least=least)

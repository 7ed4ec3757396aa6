"""Removal of topics: exact p by enumeration, matched draws, what cannot be told, and the power that is stated."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.measures.placebo import difficulty_classes, placebo_removal


def _all_p(scores: np.ndarray, removed: np.ndarray, strata: np.ndarray) -> float:
    """Share of all removals of as many topics of each stratum that are as far from their middle, by a loop."""
    places = range(len(scores))
    wanted = {one: int(removed[strata == one].sum()) for one in set(strata.tolist())}
    changes = []
    for chosen in itertools.combinations(places, int(removed.sum())):
        if all(sum(strata[place] == one for place in chosen) == count for one, count in wanted.items()):
            changes.append(np.mean([scores[place] for place in places if place not in chosen]))
    own = scores[~removed].mean()
    middle = np.mean(changes)
    return float(np.mean([abs(one - middle) >= abs(own - middle) - 1e-9 for one in changes]))


@settings(max_examples=40)
@given(st.data())
def test_few_choices_are_all_taken_and_p_is_exact(data: st.DataObject) -> None:
    topics = data.draw(st.integers(4, 8))
    scores = np.array(data.draw(st.lists(st.integers(0, 6), min_size=topics, max_size=topics))) / 6
    removed = np.array(data.draw(st.permutations([True] * (topics // 2) + [False] * (topics - topics // 2))))
    strata = np.array(data.draw(st.lists(st.integers(0, 1), min_size=topics, max_size=topics)))
    found = placebo_removal({"a": scores}, removed, strata=strata)
    if found.draws == 0:
        assert found.word == "cannot tell" and found.systems == ()
    else:
        assert found.systems[0].p == pytest.approx(_all_p(scores, removed, strata))
    assert found == placebo_removal({"a": scores}, removed, strata=strata, seed=9)


def test_random_removals_come_near_the_exact_p() -> None:
    rng = np.random.default_rng(4)
    scores, removed = rng.random(14), np.arange(14) % 3 == 0
    exact = placebo_removal({"a": scores}, removed, draws=5000)
    drawn = placebo_removal({"a": scores}, removed, draws=1500)
    assert (exact.draws, drawn.draws) == (2001, 1500)
    assert exact.p == pytest.approx(_all_p(scores, removed, np.zeros(14)))
    assert drawn.p == pytest.approx(exact.p, abs=0.05)


@pytest.mark.parametrize(
    ("removed", "strata", "why"),
    [
        ([False] * 6, None, "No topic is removed"),
        ([True] * 6, None, "No topic is kept"),
        ([True, True, False, False, False, False], [1, 1, 2, 2, 2, 2], "removed or kept as a whole"),
    ],
)
def test_without_another_choice_nothing_can_be_told(removed: list[bool], strata: list[int] | None, why: str) -> None:
    values = {"a": np.linspace(0, 1, 6), "b": np.linspace(1, 0, 6)}
    matched = None if strata is None else np.array(strata)
    found = placebo_removal(values, np.array(removed), strata=matched, measure="AP")
    assert (found.word, found.draws, found.systems, found.p) == ("cannot tell", 0, (), 1.0)
    assert why in found.reason
    assert json.loads(json.dumps(found.json(), allow_nan=False))["order"]["tau"] is None


def test_too_few_choices_for_the_level_cannot_tell() -> None:
    """One of 19 topics: no p can be below 1/19. One of 20: the best is found."""
    for topics, word in ((19, "cannot tell"), (20, "moved more than chance")):
        scores = np.zeros(topics)
        scores[0] = 1.0
        found = placebo_removal({"a": scores}, np.arange(topics) == 0)
        assert found.systems[0].p == pytest.approx(1 / topics) and found.word == word


def test_classes_of_difficulty_are_quantiles_of_the_mean() -> None:
    rng = np.random.default_rng(6)
    values = {name: rng.random(103) for name in "abc"}
    means = np.mean(list(values.values()), axis=0)
    classes = difficulty_classes(values)
    assert set(np.bincount(classes).tolist()) <= {20, 21}
    order = np.argsort(means)
    assert (np.diff(classes[order]) >= 0).all()
    # Equal topics are in one class, also where that makes the classes unequal.
    assert difficulty_classes({"a": np.array([0, 0, 0, 0, 0, 1.0])}).tolist() == [2, 2, 2, 2, 2, 4]
    assert set(difficulty_classes({"a": np.ones(7)}).tolist()) == {2}


def test_matched_draws_do_not_blame_a_removal_of_easy_topics() -> None:
    """Topics that are easier for all systems move the means; among topics that are as easy the removal is random."""
    rng = np.random.default_rng(8)
    hard = rng.random(200)
    values = {f"s{i}": np.clip(hard + rng.normal(0, 0.1, 200), 0, 1) for i in range(4)}
    strata = difficulty_classes(values)
    words: dict[bool, list[str]] = {False: [], True: []}
    for trial in range(60):
        removed = np.zeros(200, bool)
        removed[rng.choice(np.flatnonzero(strata >= 3), 40, replace=False)] = True
        for matched, said in words.items():
            found = placebo_removal(
                values, removed, strata=strata if matched else None, draws=199, seed=trial, smallest=1
            )
            said.append(found.word)
    assert words[False].count("moved more than chance") == 60
    # 60 trials at 0.05: more than 9 in one of a thousand repetitions.
    assert words[True].count("moved more than chance") <= 9


def test_the_detectable_shift_is_found_with_the_power_that_is_stated() -> None:
    """One of six systems shifts by `detectable`: found in 80% of 300 removals, within a binomial's bounds."""
    rng = np.random.default_rng(12)
    difficulty = rng.random(80)
    values = {f"s{i}": difficulty + rng.normal(0, 0.2, 80) for i in range(6)}
    found = 0
    for trial in range(300):
        removed = np.zeros(80, bool)
        removed[rng.choice(80, 20, replace=False)] = True
        detectable = placebo_removal(values, removed, draws=199, seed=trial).systems[0].detectable
        # Lower on 20 removed topics by d: the mean of all falls by d/4, so that the clean mean is higher by d/4.
        planted = values | {"s0": np.where(removed, values["s0"] - 4 * detectable, values["s0"])}
        found += placebo_removal(planted, removed, draws=199, seed=trial).systems[0].p_corrected <= 0.05
    assert 0.73 <= found / 300 <= 0.87

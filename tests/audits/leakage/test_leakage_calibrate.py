"""The threshold from labels: recovered where the truth is known, refused where labels are missing."""

import functools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from places import DATA
from truerank.audits.leakage.calibration import LabelNext, Support, calibrate, precision_draws
from truerank.errors import InputError
from truerank.records import Judgment

ANY = Support(labels=1, window=1.0)


lowest = functools.partial(calibrate, rule="lowest")


def pair(number, similarity, leak, probability=1.0, topic="1"):
    return Judgment(
        topic, "", f"query {number}", ("yes" if leak else "no",), similarity=similarity, probability=probability
    )


def pairs(*rows, **more):
    return [pair(number, *row, **more) for number, row in enumerate(rows)]


def at(calibration, threshold):
    return int(np.flatnonzero(np.isclose(calibration.thresholds, threshold))[0])


def stratified(seed, precise_from=0.88, certain_from=0.93):
    """100 of 40,000 pairs, 25 per stratum of 0.05, whose chance of a leak grows from 0 to 1 between two similarities.

    Returns the threshold of precision 0.9 of the 40,000, and the labels with their sampling probabilities.
    """
    rng = np.random.default_rng(seed)
    position = (np.arange(40_000) + 0.5) / 40_000
    similarity = 0.8 - np.log(1 - position * (1 - np.exp(-40 * 0.2))) / 40
    leak = rng.random(40_000) < (similarity - precise_from) / (certain_from - precise_from)
    descending = np.argsort(-similarity)
    precision = np.cumsum(leak[descending]) / np.arange(1, 40_001)
    true = similarity[descending][np.flatnonzero(precision < 0.9)[0]]
    labels = []
    for low in (0.8, 0.85, 0.9, 0.95):
        members = np.flatnonzero((similarity > low) & (similarity <= low + 0.05))
        for i in rng.choice(members, 25, replace=False):
            labels.append(pair(i, float(similarity[i]), bool(leak[i]), 25 / len(members), topic=str(i % 20)))
    return true, labels


def test_hand_computed_curve():
    calibration = lowest(
        pairs((0.905, True), (0.91, False), (0.915, True), (0.92, True)), support=ANY, min_precision=0.7
    )
    curve = dict(zip(np.round(calibration.thresholds, 3), calibration.precision, strict=True))
    assert curve[0.904] == 0.75  # all four
    assert curve[0.905] == pytest.approx(2 / 3)  # 0.905 itself is not above 0.905
    assert curve[0.91] == 1.0
    assert list(calibration.thresholds[[0, -1]]) == [0.904, 0.919]
    assert list(calibration.n[[0, 1, -1]]) == [4, 3, 1]


def test_the_lowest_threshold_that_reaches_the_target():
    labels = pairs((0.905, True), (0.91, False), (0.915, True), (0.92, True))
    assert lowest(labels, support=ANY, min_precision=0.7).estimate == 0.904
    assert lowest(labels, support=ANY, min_precision=0.8).estimate == 0.91


def test_weights_are_one_over_the_probability():
    labels = [pair(0, 0.95, True, 0.5), pair(1, 0.9, False, 0.1), pair(2, 0.9, True, 0.1)]
    calibration = lowest(labels, support=ANY)
    assert calibration.precision[0] == pytest.approx((2 + 10) / (2 + 10 + 10))
    assert not any("counts alike" in note for note in calibration.notes)
    assert any("counts alike" in note for note in lowest(pairs((0.9, True)), support=ANY).notes)


def test_stratified_sample_recovers_the_threshold_and_unweighted_does_not():
    weighted, unweighted = [], []
    for seed in range(12):
        true, labels = stratified(seed)
        calibration = lowest(labels, encoder="e")
        weighted.append(calibration.estimate - true)
        unweighted.append(lowest([x._replace(probability=1.0) for x in labels]).estimate - true)
    assert 0.912 < true < 0.914
    assert abs(np.mean(weighted)) < 0.003
    assert max(map(abs, weighted)) < 0.02
    assert np.mean(unweighted) < -0.007


def test_a_believed_answer():
    labels = pairs(*[(0.80 + 0.001 * i, i >= 100) for i in range(200)])
    calibration = lowest(labels, encoder="paraphrase-MiniLM-L6-v2")
    # 100 leaks above 0.8995 and 11 false pairs below: 100 / 111 = 0.9009.
    assert calibration.chosen == calibration.estimate == 0.888
    assert not calibration.refused and calibration.interval == (None, None)
    assert repr(calibration).splitlines()[0] == (
        "0.888: point estimate; the estimated precision first reaches 0.9 (200 labelled pairs), for "
        "paraphrase-MiniLM-L6-v2."
    )


def test_refuses_when_the_target_is_never_reached_or_labels_are_few():
    never = lowest(pairs(*[(0.8 + 0.001 * i, i % 2 == 0) for i in range(200)]))
    assert (never.chosen, never.estimate, never.label_next) == (None, None, ())
    assert never.reason == "no threshold with 10 labelled pairs above it reaches a precision of 0.9"
    few = lowest(pairs((0.9, True), (0.8, False)))
    assert few.reason == "only 2 labelled pairs"
    assert few.label_next == (LabelNext(0.8, 1.0, 1, 199),)


def test_same_seed_same_numbers_and_json_is_plain():
    _, labels = stratified(1)
    first, second = calibrate(labels, seed=5), calibrate(labels, seed=5)
    assert json.dumps(first.json(), allow_nan=False) == json.dumps(second.json())
    assert first.json()["settings"]["seed"] == 5
    assert first.json()["curve"][0].keys() == {"threshold", "pairs", "precision", "low", "high"}
    assert not np.array_equal(first.low, calibrate(labels, seed=6).low)


def test_cosines_beyond_one_and_unusable_rows():
    labels = [
        *pairs((1.0000008345, True), (0.95, False)),
        Judgment("9", "", "no similarity", ("yes",)),
        Judgment("9", "", "tied", ("yes",), similarity=0.9, annotator="a"),
        Judgment("9", "", "tied", ("no",), similarity=0.9, annotator="b"),
        Judgment("9", "", "nothing", (), similarity=0.9),
    ]
    calibration = lowest(labels, support=ANY)
    assert calibration.counts == {"pairs": 2, "leaks": 1, "unresolved": 1, "unlabelled": 1, "without_similarity": 1}
    assert calibration.thresholds[-1] == 0.999


@pytest.mark.parametrize("options", [{"min_precision": 0}, {"min_precision": 90}, {"confidence": 1}])
def test_options_out_of_range(options):
    with pytest.raises(InputError, match="give a number between 0 and 1"):
        lowest(pairs((0.9, True)), **options)


def test_bad_input():
    with pytest.raises(InputError, match="no labelled pair carries a similarity"):
        lowest([Judgment("1", "", "a", ("yes",))])
    with pytest.raises(InputError, match="a sampling probability of 0"):
        lowest([pair(0, 0.9, True, 0.0)])


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(700, 1000), st.booleans()), min_size=1, max_size=60), st.sampled_from([0.5, 0.9]))
def test_the_estimate_is_the_first_to_reach_the_target(rows, target):
    calibration = lowest(
        pairs(*[(s / 1000, leak) for s, leak in rows]), min_precision=target, support=Support(labels=3)
    )
    reached = (calibration.n >= 3) & (calibration.precision >= target - 1e-9)
    first = calibration.thresholds[np.flatnonzero(reached)[0]] if reached.any() else None
    assert calibration.estimate == first
    assert calibration.chosen == (first if len(rows) >= 3 else None)


@pytest.mark.shared
@pytest.mark.parametrize("drawing", ["pairs", "topics"])
def test_the_827_labels(drawing):
    folder = DATA / "spire22/annotations"
    calibration = lowest(sorted(folder.glob("query-*.jsonl")), encoder="paraphrase-MiniLM-L6-v2")
    assert calibration.chosen == calibration.estimate == 0.926
    assert calibration.n[0] == 825 and calibration.precision[0] == pytest.approx(720 / 825)
    bounded = calibrate(sorted(folder.glob("query-*.jsonl")), drawing=drawing, encoder="paraphrase-MiniLM-L6-v2")
    assert 0.926 <= bounded.chosen < 0.97
    assert bounded.low[at(bounded, bounded.chosen)] >= 0.9


# The lower bound


def test_the_lower_bound_says_what_it_is():
    labels = pairs(*[(0.80 + 0.001 * i, i >= 100) for i in range(200)])
    found = calibrate(labels, encoder="packaged")
    assert found.bounded and found.estimate <= found.chosen
    at_chosen = at(found, found.chosen)
    assert found.low[at_chosen] >= 0.9 > found.low[at_chosen - 1]
    first, second = repr(found).splitlines()[:2]
    assert first == (
        f"{found.chosen:.3f}: lower bound; above it the precision is at least 0.9 with 95% confidence (estimate "
        f"{found.precision[at_chosen]:.3f}, lower bound {found.low[at_chosen]:.3f}, 200 labelled pairs), for packaged."
    )
    assert second.startswith(f"The point estimate is {found.estimate:.3f}")
    assert (np.diff(found.low[found.n >= 10]) > -0.02).all()


def test_the_lower_bound_without_an_answer_says_what_to_label():
    few = calibrate(pairs(*[(0.80 + 0.01 * i, i >= 10) for i in range(20)]), support=Support(labels=3))
    assert few.refused
    assert f"reaches 0.9 at {few.estimate:.3f}, but the labels are too few" in few.reason
    (wanted,) = few.label_next
    assert wanted.low < few.estimate < wanted.high and wanted.more >= wanted.have
    never = calibrate(pairs(*[(0.8 + 0.001 * i, i % 2 == 0) for i in range(200)]))
    assert (never.chosen, never.estimate, never.label_next) == (None, None, ())


def test_labels_that_begin_high_give_a_threshold_and_a_note():
    found = calibrate(pairs(*[(0.90 + 0.0005 * i, i % 50 > 0) for i in range(1, 200)]))
    assert found.chosen == found.thresholds[0]
    assert any(note.startswith("Labels begin at 0.9005: a lower threshold may do, too") for note in found.notes)


def test_a_gap_is_not_bridged():
    """Nothing was labelled between 0.83 and 0.96: a threshold in there is not supported."""
    found = calibrate(
        pairs(*[(0.80 + 0.001 * i, False) for i in range(30)], *[(0.96 + 0.001 * i, True) for i in range(40)])
    )
    assert found.chosen is None or found.chosen >= 0.93


def test_known_candidates_stand_in_for_sampling_probabilities():
    """The population moves the answer: many candidates at low similarities pull the precision down."""
    _, labels = stratified(3)
    alike = [label._replace(probability=None) for label in labels]
    low_heavy = np.concatenate([np.linspace(0.8, 0.92, 50_000), np.linspace(0.92, 1, 100)])
    light, heavy = calibrate(alike), calibrate(alike, population=low_heavy)
    assert heavy.precision[at(heavy, 0.85)] < light.precision[at(light, 0.85)]
    assert heavy.settings["candidates"] == 50_100
    weighted = calibrate(labels)
    assert not np.allclose(weighted.precision, light.precision)


def test_topics_widen_the_bound():
    rows = [(0.85 + 0.0005 * i, (i // 10) % 6 > 0) for i in range(300)]
    labels = [pair(i, s, leak, topic=str(i // 10)) for i, (s, leak) in enumerate(rows)]
    alone, clusters = (calibrate(labels, drawing=how, min_precision=0.7) for how in ("pairs", "topics"))
    middle = at(alone, 0.9)
    assert (clusters.high - clusters.low)[middle] > 1.1 * (alone.high - alone.low)[middle]


def test_the_bound_holds_where_the_truth_is_known():
    """In 30 samples of 100 labels: mostly at least the target, and more often than at the point estimate."""
    safe, point, answers = [], [], 0
    for seed in range(30):
        true, labels = stratified(seed)
        found = calibrate(labels)
        answers += not found.refused
        safe += [] if found.refused else [found.chosen >= true - 0.001]
        point.append(lowest(labels).estimate >= true - 0.001)
    assert answers >= 20
    assert np.mean(safe) >= 0.9 > np.mean(point)


def test_within_a_similarity_pairs_count_by_their_weight():
    """Half the pairs of every similarity are rare and no leaks: sampled four times as often, they must not count so."""
    rng = np.random.default_rng(5)
    rare = [pair(f"a{i}", s, False, 0.8) for i, s in enumerate(rng.uniform(0.9, 1, 160))]
    rest = [pair(f"b{i}", s, True, 0.1) for i, s in enumerate(rng.uniform(0.9, 1, 160))]
    found = calibrate([*rare, *rest], min_precision=0.5)
    # 200 candidates are not leaks, 1,600 are.
    assert found.precision[0] == pytest.approx(1600 / 1800, abs=0.03)
    everything = calibrate([label._replace(probability=None) for label in (*rare, *rest)], min_precision=0.5)
    assert everything.precision[0] == pytest.approx(0.5, abs=0.03)


def test_the_curve_is_logistic_regression_where_nothing_bends():
    """Against another implementation: with many labels on a logistic curve both find its chances."""
    rng = np.random.default_rng(7)
    similarity = rng.uniform(0.8, 1, 4000)
    leak = rng.random(4000) < 1 / (1 + np.exp(-(similarity - 0.9) / 0.02))
    positions = np.linspace(0.81, 0.99, 19)
    # All weight on one position after the other: the mean above it is the chance there.
    draws = [
        precision_draws(similarity, leak, positions, np.eye(19)[at] + 1e-12, np.random.default_rng(0), draws=400)[:, at]
        for at in range(19)
    ]
    line = LogisticRegression(C=1e6).fit((similarity[:, None] - 0.9) * 50, leak)
    other = line.predict_proba((positions[:, None] - 0.9) * 50)[:, 1]
    assert np.abs(np.mean(draws, axis=1) - other).max() < 0.03

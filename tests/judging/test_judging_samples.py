"""Samples: what is drawn, by whom it is judged, and that the stored probabilities are the true ones."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest

from truerank.errors import InputError
from truerank.judging import Item, assign, draw
from truerank.judging.report import sample_table
from truerank.judging.samples import parse_plan


def population(count: int = 60) -> list[Item]:
    """Items with scores 0, 1/60, …; six topics, three data sets of different sizes."""
    return [
        Item(f"{n * 7919 % 10007:05d}", str(n % 6), dataset="abb"[n % 3] if n % 4 else "c", score=n / count)
        for n in range(count)
    ]


def ids(items: object) -> list[str]:
    return [item.item_id for item in items]  # type: ignore[attr-defined]


def test_all() -> None:
    drawn = draw(population())
    assert list(drawn.items) == population() and drawn.population == 60
    assert {item.probability for item in drawn.items} == {1.0}


def test_random() -> None:
    drawn = draw(population(), "random:20", seed=3)
    assert len(drawn.items) == 20 and {item.probability for item in drawn.items} == {20 / 60}
    assert ids(drawn.items) == [item_id for item_id in ids(population()) if item_id in set(ids(drawn.items))]
    assert set(ids(draw(population()[::-1], "random:20", seed=3).items)) == set(ids(drawn.items))
    assert draw(population(), "random:20", seed=4) != drawn
    assert len(draw(population(), "random:600").items) == 60


def test_strata_of_the_score() -> None:
    drawn = draw(population(100), "strata:0.8-1:8", seed=1)
    assert all(item.score > 0.8 for item in drawn.items)  # type: ignore[operator]
    # Four strata of width 0.05; the topmost lacks the score 1, so it has four items.
    assert [(s.name, s.population, s.drawn) for s in drawn.strata] == [
        ("(0.8, 0.85]", 5, 2), ("(0.85, 0.9]", 5, 2), ("(0.9, 0.95]", 5, 2), ("(0.95, 1]", 4, 2),
    ]  # fmt: skip
    assert {item.stratum: item.probability for item in drawn.items} == {
        "(0.8, 0.85]": 0.4, "(0.85, 0.9]": 0.4, "(0.9, 0.95]": 0.4, "(0.95, 1]": 0.5,
    }  # fmt: skip
    assert "strata:0.8-1:8" in sample_table(drawn).text()


def test_a_small_stratum_gives_what_it_has_and_the_others_the_rest() -> None:
    drawn = draw(population(100), "strata:-1,0.015,0.5,1:50")
    assert [stratum.drawn for stratum in drawn.strata] == [2, 24, 24]
    drawn = draw(population(100), "strata:-1,0.015,0.5,1:51")
    assert [stratum.drawn for stratum in drawn.strata] == [2, 24, 25]
    assert len(draw(population(100), "strata:0-1:1000").items) == 99  # the score 0 is not above 0


def test_quantiles() -> None:
    drawn = draw(population(), "strata:q3:30")
    assert [(s.population, s.drawn) for s in drawn.strata] == [(20, 10), (20, 10), (20, 10)]
    flat = [replace(item, score=0.5) for item in population()]
    assert [(s.population, s.drawn) for s in draw(flat, "strata:q3:30").strata] == [(60, 30)]


def test_top_of_each_topic() -> None:
    drawn = draw(population(), "top:2@0.5")
    counts = Counter(item.topic_id for item in drawn.items)
    assert set(counts.values()) == {2} and len(counts) == 6
    assert {item.probability for item in drawn.items} == {1.0}
    best = sorted((item for item in population() if item.topic_id == "0"), key=lambda item: -(item.score or 0))[:2]
    assert {item.item_id for item in drawn.items if item.topic_id == "0"} == set(ids(best))
    assert all(item.score > 0.9 for item in draw(population(), "top:99@0.9").items)  # type: ignore[operator]
    tied = [Item(name, "1", score=0.5) for name in "dbca"]
    assert sorted(ids(draw(tied, "top:2").items)) == ["a", "b"]


def test_per_data_set_and_topic() -> None:
    drawn = draw(population(), "per:dataset:8")
    assert Counter(item.dataset for item in drawn.items) == {"a": 8, "b": 8, "c": 8}
    assert [(s.name, s.drawn) for s in drawn.strata] == [("a", 8), ("b", 8), ("c", 8)]
    some = draw(population(), "per:dataset:a=3,c=99")
    assert Counter(item.dataset for item in some.items) == {"a": 3, "c": 15}
    assert {item.probability for item in some.items if item.dataset == "c"} == {1.0}
    assert Counter(item.topic_id for item in draw(population(), "per:topic:3").items) == dict.fromkeys("012345", 3)


def test_a_probability_from_an_earlier_draw_is_multiplied() -> None:
    halves = [replace(item, probability=0.5) for item in population()]
    assert {item.probability for item in draw(halves, "random:20").items} == {0.5 * 20 / 60}


@pytest.mark.parametrize(
    "plans",
    [
        ["random:17"],
        ["strata:q4:19"],
        ["per:dataset:a=3,c=9"],
        ["strata:0.1,0.3,0.35,1:20 then random:11"],
        ["top:6 then per:dataset:4 then random:7"],
        ["top:1@0.8", "random:13", "per:dataset:3 then random:5"],
    ],
)
def test_the_probabilities_are_those_of_many_draws(plans: list[str]) -> None:
    """Every item's frequency over seeds agrees with the probability that is stored with it (five standard errors)."""
    items, draws = population(), 600
    counts: Counter[str] = Counter()
    stated: dict[str, float] = {}
    for seed in range(draws):
        for item in draw(items, plans, seed=seed).items:
            counts[item.item_id] += 1
            assert stated.setdefault(item.item_id, item.probability) == item.probability
    for item in items:
        # An item whose probability was never seen was never drawn: then the probability must be 0.
        p = stated.get(item.item_id, 0.0)
        assert abs(counts[item.item_id] / draws - p) <= 5 * math.sqrt(p * (1 - p) / draws) + 1e-9
    # The estimate of the population's size by 1/p is unbiased for what the plans reach.
    mean = sum(counts[item_id] / draws / p for item_id, p in stated.items())
    assert mean == pytest.approx(len(stated), rel=0.05)


def test_two_plans_of_one_kind_draw_apart() -> None:
    both = draw(population(), ["random:20", "random:20"], seed=1)
    assert 20 < len(both.items) < 40
    assert {round(item.probability, 9) for item in both.items} == {round(1 - (2 / 3) ** 2, 9)}


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        ("few", "'few' is not a sample. write all, random:N"),
        ("random:0", "'0' is not a number of items"),
        ("random:²", "'²' is not a number"),
        ("top:5@nan", "'nan' is not a score"),
        ("strata:1-0:5", "borders must rise, got '1-0'"),
        ("strata:5", "not a score"),
        ("per:hour:5", "no items per 'hour'"),
        ("per:dataset:x=5", "no dataset 'x'. there are a, b, c"),
        ("per:dataset:a=5,a=6", "'a=6' is not a number for a name"),
        ("random:5 then top:2", "'top' after 'random', which draws at random"),
        ("top:1@2", "no item fits the sample"),
    ],
)
def test_plans_that_cannot_be(plan: str, fault: str) -> None:
    with pytest.raises(InputError) as raised:
        draw(population(), plan)
    assert fault in str(raised.value)


def test_plans_by_score_need_scores() -> None:
    with pytest.raises(InputError, match="1 of 2 items have no score"):
        draw([Item("a", "1", score=0.5), Item("b", "1")], "top:1")


def test_plan_texts() -> None:
    stage = parse_plan("strata:0.8-1/2:10").stages[0]
    assert stage.edges == (0.8, 0.9, 1.0)
    assert parse_plan("strata:-0.5-0.5/2:10").stages[0].edges == (-0.5, 0.0, 0.5)


def test_one_annotator_gets_everything_in_an_order_of_the_seed() -> None:
    items = population()
    work = assign(items, ["ann"], seed=5).work["ann"]
    assert sorted(work) == sorted(ids(items)) and list(work) != ids(items)
    assert work == assign(items[::-1], ["ann"], seed=5).work["ann"]
    assert work != assign(items, ["ann"], seed=6).work["ann"]
    assert list(assign(items, ["ann"], order="given").work["ann"]) == ids(items)


def test_overlap_takes_whole_topics_and_the_rest_is_split_evenly() -> None:
    items = [replace(item, dataset="") for item in population()]
    topics = {item.item_id: item.topic_id for item in items}
    assignment = assign(items, ["ann", "bob", "cid"], overlap=15, seed=2)
    assert len(assignment.overlap) == 20  # topics have ten items each
    touched = {topics[item_id] for item_id in assignment.overlap}
    assert all((topics[item_id] in touched) == (item_id in assignment.overlap) for item_id in topics)
    parts = {name: set(work) - set(assignment.overlap) for name, work in assignment.work.items()}
    assert sorted(map(len, parts.values())) == [13, 13, 14]
    assert set().union(*parts.values()) | set(assignment.overlap) == set(topics)
    assert sum(map(len, parts.values())) == 40
    assert all(set(assignment.overlap) <= set(work) for work in assignment.work.values())
    assert (
        assign(items, ["ann", "bob"], overlap=999).work["ann"] != assign(items, ["ann", "bob"], overlap=999).work["bob"]
    )
    assert len(assign(items, ["ann", "bob"], overlap=999).overlap) == 60


def test_by_topic_keeps_topics_together() -> None:
    items = [replace(item, dataset="") for item in population()]
    topics = {item.item_id: item.topic_id for item in items}
    for work in assign(items, ["ann", "bob"], overlap=10, order="topic", seed=1).work.values():
        changes = sum(topics[a] != topics[b] for a, b in itertools.pairwise(work))
        assert changes == len({topics[item_id] for item_id in work}) - 1


def test_spot_checks_go_to_somebody_else() -> None:
    items = population()
    alone = assign(items, ["ann", "bob"], spot_check=11, seed=1)
    owners = Counter(item_id for work in alone.work.values() for item_id in work)
    assert sorted(item_id for item_id, count in owners.items() if count == 2) == sorted(alone.checked)
    assert len(alone.checked) == 11
    others = assign(items, ["ann"], spot_check=11, checkers=["carl", "dora"], seed=1)
    assert sorted(len(others.work[name]) for name in ("carl", "dora")) == [5, 6]
    assert not set(others.work["carl"]) & set(others.work["dora"])
    assert set(others.work["carl"]) | set(others.work["dora"]) == set(others.checked)


@pytest.mark.parametrize(
    ("people", "more", "fault"),
    [
        ([], {}, "no annotator"),
        (["a", "a"], {}, "'a' is named twice"),
        (["a"], {"overlap": 5}, "an overlap needs two annotators"),
        (["a"], {"spot_check": 5}, "a spot check needs a second person"),
        (["a"], {"spot_check": 5, "checkers": ["a"]}, "'a' is named twice"),
        (["a", "b"], {"overlap": -1}, "a negative number"),
    ],
)
def test_people_that_cannot_be(people: list[str], more: dict[str, object], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        assign(population(), people, **more)  # type: ignore[arg-type]

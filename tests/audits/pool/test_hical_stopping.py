"""Stopping rules: the track's procedure step by step, budgets, own rules, and what is kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.audits.pool import (
    ConstantBudget,
    Decision,
    Keeping,
    OriginalSize,
    StoppingRule,
    TopicJudgments,
    TopicOutcome,
    TopicProgress,
    TrackProcedure,
    apply_rule,
    follow,
    heuristic,
    load_rule,
)
from truerank.errors import InputError


def found(pool: int, *parts: tuple[int, int], topic: str = "t", whole: bool = False) -> TopicJudgments:
    """A topic whose judgments come in parts: so many, of which so many are relevant, the relevant ones first."""
    grades = [grade for size, relevant in parts for grade in [1] * relevant + [0] * (size - relevant)]
    return TopicJudgments(topic, pool, np.cumsum(np.array(grades, np.int64)), whole)


def short(outcome: TopicOutcome) -> tuple[int, int, str, bool]:
    return outcome.judged, outcome.relevant, outcome.reason, outcome.kept


@pytest.mark.parametrize(
    ("topic", "rule", "expected"),
    [
        # Step 1: 60 + 100 judged, R = 20 and 2R < P.
        pytest.param(found(60, (160, 20), (500, 0)), TrackProcedure(), (160, 20, "2R < P", True), id="few"),
        # Step 1: 2R = P goes on; at 2R + 100 = J nothing is below it, so step 3 adds R = 30, and R < J/2.
        pytest.param(found(60, (160, 30), (500, 0)), TrackProcedure(), (190, 30, "R < J/2", True), id="even"),
        pytest.param(
            found(60, (160, 30), (500, 0)), TrackProcedure(reached=True), (160, 30, "2R + 100 ≤ J", True), id="reached"
        ),
        # Step 2: to 2·80 + 100 = 260, where R* = 100; 300 is above J; step 3 adds 100; R* = 130 of 360.
        pytest.param(
            found(60, (160, 80), (100, 20), (100, 30), (500, 0)),
            TrackProcedure(),
            (360, 130, "R < J/2", True),
            id="grown",
        ),
        # An increment of a half adds 50 instead.
        pytest.param(
            found(60, (160, 80), (100, 20), (500, 0)),
            TrackProcedure(increment=0.5),
            (310, 100, "R < J/2", True),
            id="half",
        ),
        # Step 2: R* = 170 of 260 is above 0.6.
        pytest.param(
            found(60, (160, 80), (100, 90), (500, 0)),
            TrackProcedure(),
            (260, 170, "relevant/judged above 0.6", False),
            id="dropped",
        ),
        # Step 3, twice: 260 + 140 = 400 with 210 of 400 above one half; + 210 = 610.
        pytest.param(
            found(60, (160, 80), (100, 60), (140, 70), (500, 0)),
            TrackProcedure(),
            (610, 210, "R < J/2", True),
            id="twice",
        ),
        pytest.param(
            found(60, (160, 80), (100, 60), (140, 70), (500, 0)),
            heuristic(cap=500),
            (500, 210, "cap of 500 judgments", True),
            id="cap",
        ),
        # Two relevant documents are not enough to be kept.
        pytest.param(found(60, (160, 2), (500, 0)), TrackProcedure(), (160, 2, "2R < P", False), id="two"),
        pytest.param(
            found(60, (160, 150), (500, 0)), ConstantBudget(160), (160, 150, "160 judgments", True), id="budget"
        ),
        # A pool that is larger than the budget is judged in part.
        pytest.param(found(60, (160, 4)), ConstantBudget(20), (20, 4, "20 judgments", True), id="small budget"),
    ],
)
def test_the_steps(topic: TopicJudgments, rule: StoppingRule, expected: tuple[int, int, str, bool]) -> None:
    assert short(follow(rule, topic)) == expected


def test_original_size_and_what_the_official_set_lacks() -> None:
    rule = OriginalSize({"a": 30, "b": 20}, frozenset("a"))
    topics = [found(10, (100, 9), topic=name) for name in "abc"]
    outcomes = apply_rule(rule, topics)
    assert [(one.judged, one.kept, one.why_not) for one in outcomes] == [
        (30, True, ""), (20, False, "not in the official set"), (0, False, "not in the official set"),
    ]  # fmt: skip


def test_the_end_of_the_trace_bounds_a_rule() -> None:
    never = ConstantBudget(10**9)
    outcome = follow(never, found(10, (50, 20)))
    assert (outcome.ending, outcome.judged, outcome.until) == ("trace", 50, 10**9)
    assert outcome.reason == "not stopped by the end of the trace, 50 judgments"
    assert follow(never, found(10, (50, 20), whole=True)).reason == "all 50 documents are judged"
    assert follow(TrackProcedure(), found(10, (5, 1))).ending == "trace"
    nothing = follow(TrackProcedure(), TopicJudgments("t", 0, np.empty(0, np.int64)))
    assert (nothing.judged, nothing.kept, nothing.why_not) == (0, False, "fewer than 3 relevant")


def test_the_assessors_budget_cuts_topics_in_the_same_step() -> None:
    topics = [found(60, (160, 80), (900, 0), topic=name) for name in "abc"]
    free = apply_rule(TrackProcedure(), topics)
    assert [one.judged for one in free] == [340, 340, 340]
    # All three get their pool and 100 (480 in all); of the second step one is whole and one is cut.
    cut = apply_rule(TrackProcedure(), topics, budget=620)
    assert [one.judged for one in cut] == [260, 200, 160]
    assert [one.ending for one in cut] == ["budget", "budget", "budget"]
    assert cut[2].reason == "the assessors' budget was spent at 160 judgments"
    assert apply_rule(TrackProcedure(), topics, budget=1020) == free


@settings(max_examples=60)
@given(
    st.integers(0, 80),
    st.lists(st.booleans(), min_size=0, max_size=600),
    st.floats(0.1, 3),
    st.one_of(st.none(), st.integers(1, 500)),
)
def test_a_track_procedure_always_ends(pool: int, grades: list[bool], increment: float, cap: int | None) -> None:
    topic = TopicJudgments("t", pool, np.cumsum(np.array(grades, np.int64)))
    outcome = follow(TrackProcedure(increment, cap=cap), topic)
    assert outcome.judged <= min(len(grades), cap or len(grades))
    assert outcome.relevant == sum(grades[: outcome.judged])
    assert outcome.kept == (not outcome.why_not)
    if outcome.ending == "stop" and outcome.reason == "R < J/2":
        assert 2 * outcome.relevant < outcome.judged


def test_rules_by_name() -> None:
    assert load_rule("track") == TrackProcedure()
    assert load_rule("track:increment=0.5,bound=0.7,cap=none,reached=yes") == TrackProcedure(0.5, 0.7, None, True)
    assert load_rule("heuristic") == heuristic() == TrackProcedure(cap=1000, name="Heuristic")
    assert load_rule("heuristic:cap=900,min_relevant=5").keeping == Keeping(5, 0.6)
    assert load_rule("budget:401") == ConstantBudget(401)
    assert load_rule("budget:401,max_ratio=0.5").keeping == Keeping(3, 0.5)
    assert load_rule("original", sizes={"t": 4}).stop(TopicProgress("t", 1, 1, 0, np.zeros(1, np.int64))).until == 4


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("no-such", "no stopping rule"), ("track:speed=2", "not an option of a rule"),
        ("track:increment=fast", "not an option"), ("track:increment=0", "increment"), ("track:bound=0", "bound"),
        ("track:cap=0", "cap"), ("budget:many", "budget"), ("budget:0", "budget"), ("original", "needs official"),
        ("math:pi", "no stopping rule 'math:pi'. one of track, heuristic, budget:N, original"),
    ],
)  # fmt: skip
def test_rules_that_are_none(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_rule(spec)


def test_decisions_and_keeping() -> None:
    assert Decision.go_on(5, "x") == Decision("continue", "x", 5)
    assert Keeping().why_not(6, 10) == "" and Keeping().why_not(7, 11) == "relevant/judged above 0.6"
    assert Keeping().why_not(2, 10) == "fewer than 3 relevant" and Keeping(0, None).why_not(0, 0) == ""
    assert TopicProgress("t", 0, 0, 0, np.empty(0, np.int64)).ratio == 0.0

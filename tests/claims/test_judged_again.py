"""Claims beside second judgments: which say nothing about the first, and which show too little."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import truerank
from truerank.claims.results import ClaimAnswer

TOPICS, DOCUMENTS, RELEVANT = 40, 40, 10
Grades = dict[str, dict[str, int]]
DRAW = random.Random(6)
GRADES = {f"t{t}": {f"t{t}-d{d}": int(d < RELEVANT) for d in range(DOCUMENTS)} for t in range(TOPICS)}
RUNS = {
    name: {
        topic: {doc: clear * grade + DRAW.gauss(0, 1) for doc, grade in held.items()} for topic, held in GRADES.items()
    }
    for name, clear in (("good", 1.6), ("plain", 1.1))
}


def again(chosen: Callable[[str, int], bool], grade: Callable[[int], int], share: float = 1.0) -> Grades:
    """Second grades of some pairs, by topic and first grade."""
    draw = random.Random(2)
    return {
        topic: own
        for topic, held in GRADES.items()
        if (own := {doc: grade(g) for doc, g in held.items() if chosen(topic, g) and draw.random() < share})
    }


def answer(second: Grades, first: Grades = GRADES) -> tuple[ClaimAnswer, str]:
    result = truerank.check(qrels=first, run=RUNS, system="good", baseline="plain", judged_again=second)
    return result.answer("labels"), result.conclusion.word


def every(_topic: str, _grade: int) -> bool:
    return True


def moody(rate: float, seed: int = 3) -> Callable[[int], int]:
    draw = random.Random(seed)
    return lambda grade: grade ^ int(draw.random() < rate)


@pytest.mark.parametrize(
    ("second", "fault"),
    [
        ({f"x{topic}": held for topic, held in again(every, moody(0.1), 0.2).items()}, "of its 40 topics, 0 are in"),
        (again(lambda _, grade: grade == 1, moody(0.1), 0.6), "not a random sample: 100%"),
        ({f"t{int(t[1:]) + 1}": held for t, held in again(every, moody(0.1), 0.2).items()}, "topic ids have moved"),
        (again(every, lambda grade: 1 - grade, 0.2), "wrong way round"),
    ],
)
def test_second_judgments_that_are_at_fault_say_nothing_about_the_claim(second: Grades, fault: str) -> None:
    found, word = answer(second)
    assert (found.word, found.effect, word) == ("NOT USABLE", "unknown", "HOLDS")
    assert fault in found.evidence and found.settles and found.remark


@pytest.mark.parametrize(("extra", "told"), [(2, False), (30, True)])
def test_pairs_that_are_not_among_the_judgments_are_counted(extra: int, told: bool) -> None:
    own = again(every, moody(0.1), 0.4)
    found, _ = answer({t: held | {f"x{d}": d % 2 for d in range(extra)} for t, held in own.items()})
    assert f" {extra * TOPICS:,d} of the " in f" {found.evidence}" and found.word == "CANNOT TELL"
    assert ("have no first judgment" in found.remark) == told


def test_second_grades_of_another_scale_are_divided_or_refused() -> None:
    mood = moody(0.1)
    found, _ = answer(again(every, lambda grade: 3 * mood(grade), 0.4))
    plain, _ = answer(again(every, moody(0.1), 0.4))
    assert "at least 3 count as relevant" in found.evidence
    assert found.estimates == plain.estimates and plain.estimates
    graded = {topic: {doc: 2 * grade for doc, grade in held.items()} for topic, held in GRADES.items()}
    double, _ = answer(again(every, moody(0.1), 0.4), graded)
    assert "at least 1 count as 2" in double.evidence and double.estimates
    graded["t0"] = dict.fromkeys(graded["t0"], 1)
    chosen = again(lambda topic, _: topic != "t0", moody(0.1), 0.4)
    other, _ = answer(chosen, graded)
    assert other.word == "NOT USABLE" and "another scale" in other.evidence


def stepped(second: Grades, step: int) -> Grades:
    """Second grades beside pairs that stand some rows further on, of a file without an order of grades."""
    pairs = [(topic, doc) for topic, held in second.items() for doc in random.Random(8).sample(list(held), len(held))]
    grades = [second[topic][doc] for topic, doc in (*pairs[-step:], *pairs[:-step])]
    found: Grades = {}
    for (topic, doc), grade in zip(pairs, grades, strict=True):
        found.setdefault(topic, {})[doc] = grade
    return found


@pytest.mark.parametrize(
    ("second", "fault"),
    [
        (stepped(again(every, moody(0.1), 0.25), 1), "1 row below them in the order of the file"),
        (stepped(again(every, moody(0.1), 0.25), 7), "not shown to agree with the first beyond chance"),
    ],
)
def test_second_grades_that_are_not_those_of_their_pairs_are_named_and_make_no_exception(
    second: Grades, fault: str
) -> None:
    found, word = answer(second)
    assert (found.word, found.effect, word) == ("NOT USABLE", "unknown", "HOLDS")
    assert fault in found.evidence and fault in found.remark and "its own pair" in found.settles


@pytest.mark.parametrize(("rate", "share"), [(0.3, 0.5), (0.4, 0.02)])
def test_poor_agreement_and_few_pairs_are_no_fault(rate: float, share: float) -> None:
    found, word = answer(again(every, moody(rate), share))
    assert (found.word in {"CANNOT TELL", "MORE THAN WRONG JUDGMENTS"}, word) == (True, "HOLDS")
    assert not found.remark


@pytest.mark.parametrize("whole", [True, False])
def test_random_pairs_and_whole_topics_are_random_samples(whole: bool) -> None:
    draw = random.Random(9)
    first = {
        topic: {doc: grade & int(draw.random() < 0.9) for doc, grade in held.items()} for topic, held in GRADES.items()
    }
    second = again(lambda topic, _: not whole or topic < "t3", lambda grade: grade, 1.0 if whole else 0.3)
    assert answer(second, first)[0].word != "NOT USABLE"


def test_an_interval_with_zero_and_with_the_first_difference_is_no_exception() -> None:
    found, word = answer(again(every, moody(0.1), 0.4))
    row = found.estimates[0]
    assert row.low is not None and row.low < 0
    assert (found.word, found.effect, word) == ("CANNOT TELL", "unknown", "HOLDS")
    assert f"By second judgments of 613 of 1,600 pairs: +0.380 → {row.figures()}" in found.consequence
    assert "DCG@10. nDCG@10 needs topics that were judged again as a whole" in found.consequence

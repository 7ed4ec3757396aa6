"""Claims beside judgments of models: which say nothing, which err by chance, and which favour a run."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import truerank
from truerank.claims.results import Check

TOPICS, DOCUMENTS, RELEVANT = 30, 60, 8
Grades = dict[str, dict[str, int]]
#: A model's grade by people's: how often it calls what is relevant so, and what is not.
NOISE = (0.75, 0.07)


def collection() -> tuple[Grades, dict[str, dict[str, dict[str, float]]]]:
    """Judgments of other documents for each topic, and runs of which the first sees relevance more clearly."""
    draw = random.Random(4)
    grades = {
        f"{topic}": {f"d{(topic * 40 + n) % (TOPICS * 40)}": int(n < RELEVANT) for n in range(DOCUMENTS)}
        for topic in range(100, 100 + TOPICS)
    }
    runs = {
        name: {
            topic: {doc: clear * grade + draw.gauss(0, 1) for doc, grade in held.items()}
            for topic, held in grades.items()
        }
        for name, clear in (("good", 1.7), ("plain", 1.1))
    }
    return grades, runs


GRADES, RUNS = collection()


def model(rate: Callable[[str, str, int], float], seed: int = 1) -> Grades:
    draw = random.Random(seed)
    return {t: {d: int(draw.random() < rate(t, d, g)) for d, g in held.items()} for t, held in GRADES.items()}


def noisy(_topic: str, _doc: str, grade: int) -> float:
    return NOISE[0] if grade else NOISE[1]


def first(run: str, topic: str) -> set[str]:
    return set(sorted(RUNS[run][topic], key=RUNS[run][topic].__getitem__)[-8:])


def checked(**models: Grades) -> Check:
    return truerank.check(
        qrels=GRADES, run=RUNS, system="good", baseline="plain", model_judgments=models, resamples=50
    )  # fmt: skip


def moved(judgments: Grades) -> Grades:
    topics = sorted(judgments)
    return dict(zip(topics, (judgments[one] for one in (*topics[1:], topics[0])), strict=True))


FAULTY = {
    "wrong way round": model(lambda t, d, g: 1 - noisy(t, d, g)),
    "not shown to agree": model(lambda *_: 0.2),
    "the topic whose number is 1 higher": moved(model(noisy)),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_model_whose_grades_are_at_fault_says_nothing_about_the_claim(fault: str) -> None:
    result = checked(judge=FAULTY[fault])
    answer = result.answer("models")
    assert (answer.word, answer.effect, result.conclusion.word) == ("NOT USABLE", "unknown", "HOLDS")
    assert "judge" in answer.evidence and fault in answer.evidence
    assert (
        result.answer("models").effect == "unknown" and "judge says nothing about the claim" in result.conclusion.reason
    )


def test_a_model_at_fault_is_named_beside_one_that_agrees_with_people() -> None:
    both = checked(judge=FAULTY["wrong way round"], other=model(noisy)).answer("models")
    assert both.word == "NOT USABLE / SAYS THE SAME" and both.effect == "stands"
    assert "wrong way round" in both.evidence


@pytest.mark.parametrize(("rate", "copied"), [(0.01, True), (0.15, False)])
def test_grades_that_are_peoples_or_nearly_so_may_be_a_copy(rate: float, copied: bool) -> None:
    draw = random.Random(7)
    grades = {
        topic: {doc: grade * (draw.random() >= rate) for doc, grade in own.items()}
        for topic, own in collection()[0].items()
    }
    found = checked(m=grades)
    assert ("not a copy" in found.conclusion.reason) == copied


def test_a_model_without_a_pair_of_peoples_is_named_and_the_others_count() -> None:
    strange = {topic: {f"x{doc}": grade for doc, grade in own.items()} for topic, own in GRADES.items()}
    alone, beside = checked(m=strange), checked(m=strange, n=model(noisy))
    for found, word in ((alone, "NOT USABLE"), (beside, "")):
        answer = next(one for one in found.answers if one.question == "models")
        assert word in answer.word and found.conclusion.word == "HOLDS"
        assert "pairs that m graded is among the judgments: of its 30 topics, 30 are" in found.conclusion.reason
    assert "by the judgments of n" in repr([one.estimates for one in beside.answers])


def test_grades_on_another_scale_are_divided_where_they_agree_best_with_peoples() -> None:
    low, draw = 5, random.Random(3)
    graded = {t: {d: g * draw.choice((1, 2)) for d, g in held.items()} for t, held in GRADES.items()}
    near = {
        t: {d: g if draw.random() < 0.8 else draw.choice((0, 0, 1, 2)) for d, g in h.items()} for t, h in graded.items()
    }
    wide = {0: (low, low, low + 1), 1: (low + 2,), 2: (low + 3,)}
    same, other = (
        truerank.check(
            qrels=graded, run=RUNS, system="good", baseline="plain", model_judgments={"judge": judge}, resamples=50
        ).answer("models")
        for judge in (near, {t: {d: draw.choice(wide[g]) for d, g in h.items()} for t, h in near.items()})
    )
    assert other.estimates == same.estimates and other.effect == "stands"
    assert f"at least {low + 2} count as 1 and those of at least {low + 3} count as 2" in other.consequence


def test_a_model_of_which_the_relevant_rows_alone_are_there_is_called_so() -> None:
    kept = {t: {d: 1 for d, g in held.items() if g} for t, held in model(noisy).items()}
    answer = checked(judge=kept).answer("models")
    assert answer.word == "NOT USABLE" and "rows of other grades may be missing" in answer.remark


def test_a_model_that_graded_few_topics_cannot_remove_a_difference_that_people_do_not_show_on_them() -> None:
    some = {topic: held for topic, held in model(noisy).items() if topic < "104"}
    answer = checked(judge=some).answer("models")
    assert "on 4 of 30 topics" in answer.consequence
    assert (answer.effect, answer.exception) == ("unknown", ())
    assert answer.remark.startswith("judge cannot tell")


def test_errors_that_ignore_the_systems_are_neither_an_exception_nor_a_favour() -> None:
    weak = model(lambda _t, _d, g: 0.5 if g else 0.2, 0)
    result = checked(judge=weak)
    answer = result.answer("models")
    assert answer.estimates[0].effect == "not shown"
    assert (result.conclusion.word, answer.exception) == ("HOLDS", ())
    assert answer.facts["favours"]["judge"]["low"] < 0 < answer.facts["favours"]["judge"]["high"]
    assert "judge" in answer.possible


def test_the_favours_of_several_models_are_tested_together() -> None:
    judges = {f"m{number}": model(noisy, number) for number in range(3)}
    alone, together = (
        checked(**some).answer("models").facts["favours"]["m0"] for some in ({"m0": judges["m0"]}, judges)
    )
    assert alone["value"] == pytest.approx(together["value"])
    assert together["low"] < alone["low"] < alone["high"] < together["high"]


def test_a_model_that_favours_the_baseline_is_an_exception_although_it_agrees_with_people() -> None:
    biased = model(lambda t, d, g: 0.7 if d in first("plain", t) else noisy(t, d, g))
    result = checked(judge=biased)
    answer = result.answer("models")
    assert result.conclusion.word == "HOLDS EXCEPT" and result.conclusion.found == " ".join(answer.exception)
    assert answer.exception[0].startswith("By judge's judgments: ")
    assert answer.estimates[0].figures() in answer.exception[0]
    assert answer.facts["favours"]["judge"]["high"] < 0
    assert "judge favours plain: " in answer.consequence


def test_grades_of_documents_that_people_did_not_judge_can_remove_the_difference() -> None:
    unjudged = {t: {d for d in first("plain", t) - first("good", t) if GRADES[t][d] == 0} for t in GRADES}
    people = {t: {d: g for d, g in held.items() if d not in unjudged[t]} for t, held in GRADES.items()}
    filled = {t: {d: int(d in unjudged[t] or g) for d, g in held.items()} for t, held in GRADES.items()}
    result = truerank.check(
        qrels=people, run=RUNS, system="good", baseline="plain", model_judgments={"judge": filled}, resamples=50
    )  # fmt: skip
    assert result.answer("models").exception[0].startswith("By judge's judgments: ")


def graded(seed: int = 1) -> Grades:
    """Grades 0 to 3 of which people call 2 and 3 relevant."""
    draw, calls = random.Random(seed), model(noisy, seed)
    levels = {1: (2, 3), 0: (0, 0, 1)}
    return {topic: {doc: draw.choice(levels[call]) for doc, call in held.items()} for topic, held in calls.items()}


def test_of_more_grades_than_people_give_those_count_as_relevant_that_agree_best() -> None:
    answer = checked(judge=graded()).answer("models")
    same = checked(judge={t: {d: int(g > 1) for d, g in held.items()} for t, held in graded().items()})
    assert answer.estimates == same.answer("models").estimates
    assert "at least 2 count as relevant" in answer.consequence
    assert all(f"at least {other} as relevant it would be" in answer.consequence for other in (1, 3))


def test_grades_above_those_of_people_are_divided() -> None:
    people = {
        topic: {doc: grade * (1 + int(doc[1:]) % 2) for doc, grade in held.items()} for topic, held in GRADES.items()
    }
    wide = {topic: {doc: 2 * grade for doc, grade in held.items()} for topic, held in people.items()}
    result = truerank.check(
        qrels=people, run=RUNS, system="good", baseline="plain", model_judgments={"judge": wide}, resamples=50
    )  # fmt: skip
    assert "at least 2 count as 1 and those of at least 4 count as 2" in result.answer("models").consequence

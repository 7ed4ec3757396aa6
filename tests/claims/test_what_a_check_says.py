"""What a check says: twelve lines, the words of those who read them, and a table whose parts make the whole."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import polars as pl
import pytest
from test_check_claims import claim, collection

import truerank
from truerank.claims.claim import change_by
from truerank.claims.conclusion import concluded
from truerank.claims.data_questions import without_leaked
from truerank.claims.register import shortened
from truerank.claims.results import Check, ClaimAnswer, ClaimRow
from truerank.core.result import summary
from truerank.options import Resampling


def table(*names: str, questions: int = 40, copied: int = 0) -> pl.DataFrame:
    """Questions with results; each system has the expected document first less often than the one before.

    Args:
        names: of the systems.
        questions: how many there are.
        copied: so many are asked twice.
    """
    draw, rows = random.Random(4), []
    for number in range(questions):
        row = {"question": f"how to mend part {number}", "expected": f"kb-{number}"}
        for at, name in enumerate(names):
            others = [f"kb-{other}" for other in draw.sample(range(400, 900), 5)]
            right = draw.random() < 0.9 / (3 * at + 1)
            row[f"retrieved_{name}"] = [f"kb-{number}", *others[1:]] if right else others
        rows.append(row)
    copies = [{**row, "question": f"{row['question']}?".upper()} for row in rows[:copied]]
    return pl.DataFrame([*rows, *copies])


def scores(*gaps: float, missing: int = 0) -> dict[str, list[object]]:
    """A score table of two systems, by the differences of the questions."""
    draw = random.Random(2)
    old = [draw.uniform(0.3, 0.6) for _ in gaps]
    new = [score + gap for score, gap in zip(old, gaps, strict=True)]
    lost = [None if number < missing else score for number, score in enumerate(old)]
    return {"id": [f"q{number}" for number, _ in enumerate(gaps)], "new": [*new], "old": [*lost]}


def of_runs(lead: float, *, apart: bool = False, lacks: int = 0) -> Check:
    """Judgments and runs, of which one may answer other topics, or lack some."""
    grades, runs = collection(topics=24, lead=lead)
    if apart:
        half = [*grades][:12]
        for name, topics in (("good", half), ("plain", [one for one in grades if one not in half])):
            runs[name] = {topic: runs[name][topic] for topic in topics}
    runs["plain"] = {topic: own for at, (topic, own) in enumerate(runs["plain"].items()) if at >= lacks}
    return truerank.check(qrels=grades, run=runs, system="good", baseline="plain")


LONG = [f"my-long-experiment-of-the-year-2026-{name}" for name in ("dense-v2-large", "dense-v2-base", "sparse")]
INPUTS: dict[str, tuple[str, Callable[[], Check]]] = {
    "a lead": ("HOLDS", lambda: truerank.check(table("new", "old"))),
    "a lead of one of six": ("HOLDS", lambda: truerank.check(table("a", "b", "c", "d", "e", "f"))),
    "long names": ("HOLDS", lambda: truerank.check(table(*LONG))),
    "one system": ("UNKNOWN", lambda: truerank.check(table("new"))),
    "questions that repeat one": ("HOLDS", lambda: truerank.check(table("new", "old", copied=3))),
    "chance": ("CANNOT TELL", lambda: truerank.check(scores(*[0.1, -0.1, 0.2, -0.15] * 8))),
    "the same scores": ("CANNOT TELL", lambda: truerank.check(scores(*[0.0] * 30))),
    "scores that are missing": ("HOLDS", lambda: truerank.check(scores(*[0.2, 0.1] * 20, missing=2))),
    "runs: the other way round": ("DOES NOT HOLD", lambda: of_runs(-1.0)),
    "runs: topics without an answer": ("HOLDS SMALLER", lambda: of_runs(1.0, lacks=6)),
    "runs: no topic in common": ("FILES AT FAULT", lambda: of_runs(1.0, apart=True)),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_the_answer_has_twelve_lines_that_end_as_sentences_do(kind: str) -> None:
    word, made = INPUTS[kind]
    result = made()
    assert result.conclusion.word == word
    lines = summary(result).show().rpartition("\n\nIs ")[2].rpartition("\n\nHow ")[2].splitlines()
    assert len(lines) <= 12
    assert not any(line.endswith("…") or len(line) > 110 for line in lines)
    assert f"{result.asked} {word}".partition(" ")[2] in " ".join(" ".join(lines).split())
    told = [result.conclusion.reason, result.conclusion.caption, *result.conclusion.settles]
    told += [text for one in result.answers for text in (one.evidence, one.consequence, one.possible, one.settles)]
    assert not any("  " in text or re.search(r"\b(\d+) \1\b", text) for text in told)
    # Whose words these are, what was given says.
    foreign = r"\b(questions?|labels?|labelled)\b" if kind.startswith("runs: ") else r"\b(topics?|judg\w+|relevant)\b"
    assert not any(re.search(foreign, text) for text in told)


@pytest.mark.parametrize(
    "names",
    [
        ("topic", "judged-run"), ("Judge", "all judgments"), ("training query", "x"), ("gpt-4.1", "gpt-3.5"),
        ("bge-base-v1.5", "bge-small-v1.5"),
    ],
)  # fmt: skip
def test_names_of_systems_that_are_words_stay(names: tuple[str, str]) -> None:
    result = truerank.check(table(*names))
    first, second = names
    assert result.asked == f"Is {first} better than {second}?"
    assert result.conclusion.figure.startswith(f"{first} beats {second}: ")
    assert f"You can prefer {first} on questions like these." in result.conclusion.decision
    assert result.claim is not None and (result.claim.system, result.claim.baseline) == names
    assert result.json()["claim"]["system"] == first


def test_long_names_are_shortened_by_what_they_share() -> None:
    large, base, sparse = LONG
    assert shortened(LONG) == {large: "…dense-v2-large", base: "…dense-v2-base", sparse: "…sparse"}
    assert shortened([large]) == {large: large}
    assert shortened(["a" * 30, "b" * 30]) == {"a" * 30: "a" * 30, "b" * 30: "b" * 30}
    # Nothing is cut within a word.
    assert shortened(["common-experiment-number-12", "common-experiment-number-15"]) == {
        "common-experiment-number-12": "…12", "common-experiment-number-15": "…15",
    }  # fmt: skip
    result = truerank.check(table(*LONG[:2]))
    # Tables alone have the short ones.
    assert result.conclusion.figure.startswith(f"{large} beats {base}: ")
    assert "…large  …base" in summary(result).show()


def whole(rows: tuple[ClaimRow, ...], others: ClaimRow) -> None:
    """The rows of all, of the touched and of the others fit each other."""
    every, touched = rows[0].estimate, rows[1].estimate
    assert touched.topics + others.estimate.topics == every.topics
    sums = [(one.value or 0.0) * one.topics for one in (touched, others.estimate, every)]
    assert sums[0] + sums[1] == pytest.approx(sums[2])
    for row in rows:
        assert row.estimate.scores is not None
        assert row.estimate.scores[0] - row.estimate.scores[1] == pytest.approx(row.estimate.value)


def test_the_rows_of_a_fault_are_all_the_touched_and_the_others() -> None:
    grades, runs = collection(topics=40, lead=0.0)
    for topic in (leaked := frozenset(f"t{at}" for at in range(15))):
        runs["good"][topic] = {doc: 10 * grade + at / 100 for at, (doc, grade) in enumerate(grades[topic].items())}
    asked, resampling = claim(grades, runs), Resampling(resamples=200)
    clean = ClaimAnswer("leakage", "CONTAMINATED", "", "unknown", "")
    answer = without_leaked(asked, clean, leaked, frozenset(), resampling)
    assert answer.repair is not None
    told = concluded(asked, change_by(asked, [answer.repair], "", resampling), [answer])
    assert [row.name for row in told.rows] == ["All 40 topics", "15 topics that match", "25 other topics"]
    assert [row.role for row in told.rows] == ["", "touched", "answer"]
    whole(told.rows, told.rows[2])


def test_the_rows_of_questions_that_repeat_one_are_told_with_each_once() -> None:
    result = truerank.check(table("new", "old", copied=3))
    rows = result.conclusion.rows
    assert rows[0].name == "All 43 questions" and rows[0].estimate == result.base
    # A repeated question is as good as the one that stays: there is nothing to split.
    assert [(row.name, row.role) for row in rows[1:]] == [("40 questions, each once", "answer")]
    assert result.repaired is not None and rows[-1].estimate.value == result.repaired.value


def test_without_a_fault_the_only_row_is_all() -> None:
    rows = of_runs(1.0).conclusion.rows
    assert [(row.name, row.role) for row in rows] == [("All 24 topics", "answer")]


def test_topics_without_an_answer_are_told_with_the_others() -> None:
    told = of_runs(1.0, lacks=6).conclusion
    assert [row.name for row in told.rows] == ["All 24 topics", "6 topics that plain did not answer", "18 other topics"]
    every, failed, others = (row.estimate for row in told.rows)
    assert every.value is not None and failed.value is not None and others.value is not None
    assert every.value == pytest.approx((6 * failed.value + 18 * others.value) / 24)
    assert failed.scores is not None and failed.scores[1] == 0
    assert told.caption == f"good leads by {every.value:.3f} as given, by {others.value:.3f} on the other 18 topics"
    assert told.settles == ("Run plain on these topics. `missing` skip is for topics that it was never asked.",)
    # Few that lack are told, and change no word.
    assert of_runs(1.0, lacks=1).conclusion.word == "HOLDS"


@pytest.mark.parametrize(
    ("lead", "word", "role", "decision"),
    [
        (1.0, "HOLDS SMALLER", "answer", "You can prefer good on topics like these. "),
        (0.5, "HOLDS EXCEPT", "touched", "Prefer good only if its longer lists are what you want."),
    ],
)
def test_lists_that_end_early_have_a_row_of_their_own(lead: float, word: str, role: str, decision: str) -> None:
    grades, runs = collection(topics=24, lead=lead)
    short = {topic: dict(sorted(own.items(), key=lambda one: -one[1])[:4]) for topic, own in runs["plain"].items()}
    told = truerank.check(qrels=grades, run={"good": runs["good"], "plain": short}, system="good").conclusion
    assert (told.word, told.rows[-1].name) == (word, "With both lists as short as plain's")
    assert told.rows[-1].role == role and bool(told.caption) == (word == "HOLDS SMALLER")
    assert told.decision.startswith(decision)


@pytest.mark.parametrize(("empty", "word"), [(12, "HOLDS SMALLER"), (2, "HOLDS")])
def test_questions_for_which_nothing_was_returned_are_told(empty: int, word: str) -> None:
    rows = table("new", "old").to_dicts()
    rows = [{**row, "retrieved_old": [] if at < empty else row["retrieved_old"]} for at, row in enumerate(rows)]
    result = truerank.check(pl.DataFrame(rows))
    told = f"old returned nothing for {empty} of 40 questions; these count 0."
    assert result.conclusion.word == word and told in result.conclusion.reason
    assert "Results per question: new 5, old 0 to 5." in result.answer("files").evidence


def test_no_interval_reaches_beyond_what_two_scores_can_differ_by() -> None:
    result = truerank.check(table("new", "old", questions=14))
    assert result.base is not None and result.base.ends is not None and result.base.ends[1] == 1.0

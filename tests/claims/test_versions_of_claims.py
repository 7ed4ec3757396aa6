"""A claim beside two versions of the documents: what is gone, lost, cut short, or never was there."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import truerank
from truerank.claims.results import Check
from truerank.errors import InputError

Grades = dict[str, dict[str, int]]
Runs = dict[str, dict[str, dict[str, float]]]
Texts = dict[str, str]
WORDS = "river stone lamp field cloud paper glass tower bread winter garden market bridge copper silver".split()


def _data(topics: int = 24, seed: int = 3) -> tuple[Grades, Runs, Texts, Texts]:
    """Judgments, two runs of which "good" is better, topics and documents, of which a third is relevant."""
    draw = random.Random(seed)
    grades, runs, queries, docs = Grades(), Runs(good={}, plain={}), Texts(), Texts()
    for at in range(topics):
        topic = f"t{at}"
        queries[topic] = " ".join(draw.sample(WORDS, 3))
        grades[topic] = {f"D-{at * 15 + n + 1:04d}": int(n % 3 == 0) for n in range(15)}
        for key, grade in grades[topic].items():
            docs[key] = f"{queries[topic] if grade else ''} {' '.join(draw.choices(WORDS, k=25))} {key}"
        for name, sight in (("good", 2.5), ("plain", 1.0)):
            runs[name][topic] = {key: sight * grade + draw.gauss(0, 1) for key, grade in grades[topic].items()}
    return grades, runs, queries, docs


def _without(values: dict[str, dict[str, float]] | Grades, gone: set[str]) -> dict[str, dict[str, float]]:
    return {topic: {key: one for key, one in held.items() if key not in gone} for topic, held in values.items()}


Checked = Callable[[Grades, Runs, Texts, Texts, Texts | None], Check]


@pytest.fixture
def checked(tmp_path: Path) -> Checked:
    """Checks whether "good" is better, with texts in files."""

    def file(name: str, texts: Texts) -> str:
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps({'_id': key, 'text': text})}\n" for key, text in texts.items()))
        return str(path)

    def check(grades: Grades, runs: Runs, queries: Texts, docs: Texts, previous: Texts | None) -> Check:
        return truerank.check(
            qrels=grades, run=runs, test=file("topics.jsonl", queries), docs=file("docs.jsonl", docs),
            previous=None if previous is None else file("old.jsonl", previous), system="good", baseline="plain",
        )  # fmt: skip

    return check


@pytest.mark.parametrize("named", [True, False])
def test_documents_that_are_gone_leave_runs_of_both_indexes_alike(checked: Checked, named: bool) -> None:
    grades, runs, queries, before = _data()
    draw = random.Random(4)
    gone = {key for held in grades.values() for key in draw.sample([key for key in held if held[key]], 2)}
    now = {key: text for key, text in before.items() if key not in gone}
    both = {name: _without(run, gone) for name, run in runs.items()}
    kept = {topic: {key: int(grade) for key, grade in held.items()} for topic, held in _without(grades, gone).items()}
    truth = checked(kept, both, queries, now, None)
    mixed = {"good": runs["good"], "plain": both["plain"]}
    found = checked(grades, mixed, queries, now, before if named else None)
    assert found.base is not None and found.repaired is not None and truth.base is not None
    assert found.repaired.value == pytest.approx(truth.base.value)
    assert found.base.value != pytest.approx(truth.base.value, abs=0.01)
    repairs = [one.repair.what for one in found.answers if one.repair is not None]
    assert " ".join(repairs).count(f"without the {len(gone)} documents") == 1
    answer = found.answer("versions" if named else "collection")
    assert f"{len(gone)} documents" in answer.consequence and "another order" in answer.consequence


def test_nothing_is_gone_between_equal_versions_whatever_judgments_name(checked: Checked) -> None:
    grades, runs, queries, docs = _data()
    # Some ids are spelt without their zeros, which the question of the collection corrects.
    short = {topic: {key.replace("D-000", "D-"): one for key, one in held.items()} for topic, held in grades.items()}
    found = checked(short, runs, queries, docs, docs)
    answer = found.answer("versions")
    assert (answer.word, answer.facts["lost"], answer.facts["nowhere"]) == ("UNCHANGED", 0, 9)
    assert answer.repair is None and "9 judgments of documents of neither version" in answer.evidence
    assert "gone" not in found.conclusion.reason


NOTICE = "404 Not Found. The page you requested could not be found."


@pytest.mark.parametrize(
    ("notices", "grade", "lost"),
    [(20, 1, 20), (20, 0, 0), (1, 1, 0)],
    ids=["of relevant documents", "of others", "one alone"],
)
def test_documents_that_became_one_notice_are_lost_and_no_copies(
    checked: Checked, notices: int, grade: int, lost: int
) -> None:
    grades, runs, queries, before = _data()
    ids = [key for held in grades.values() for key, known in held.items() if known == grade]
    gone = set(random.Random(5).sample(ids, notices))
    now = {key: NOTICE if key in gone else text for key, text in before.items()}
    # Two documents with one honest text are copies as before.
    now["D-0002"] = now["D-0003"]
    found = checked(grades, runs, queries, now, None)
    answer, named = found.answer("collection"), "of which only a notice is left"
    assert (f"{lost} missing documents" in found.conclusion.reason) == (named in answer.evidence) == bool(lost)
    assert answer.repair is not None and (f"{lost} documents {named}" in answer.repair.what) == bool(lost)
    assert "1 duplicate" in found.conclusion.reason


def test_documents_that_are_cut_short_are_a_fault_and_no_documents_that_are_gone(checked: Checked) -> None:
    grades, runs, queries, before = _data()
    found = checked(grades, runs, queries, dict([*before.items()][:100]), before)
    assert found.conclusion.word == "FILES AT FAULT"
    assert "behind D-0100: " in found.conclusion.reason and "cut short" in found.conclusion.reason
    few = checked(grades, runs, queries, dict([*before.items()][:300]), before)
    assert few.conclusion.word != "FILES AT FAULT"
    assert "behind D-0300: are the documents cut short?" in few.answer("versions").evidence


def test_a_previous_version_whose_ids_do_not_meet_is_refused(checked: Checked) -> None:
    grades, runs, queries, docs = _data(topics=8)
    old = {str(int(key[2:])): text for key, text in docs.items()}
    with pytest.raises(InputError, match="another collection, or with other ids"):
        checked(grades, runs, queries, docs, old)


@pytest.mark.parametrize(("gone", "swapped"), [(0, True), (5, False)])
def test_judged_documents_that_the_previous_version_lacks_are_told(checked: Checked, gone: int, swapped: bool) -> None:
    grades, runs, queries, docs = _data()
    new = {key for at, key in enumerate(docs) if at % 6 == 0}
    old = {key: text for key, text in docs.items() if key not in new}
    found = checked(grades, runs, queries, dict([*docs.items()][gone:]), old)
    (told,) = (text for text in [found.answer("versions").possible] if "`previous` lacks" in text)
    assert f"`previous` lacks {len(new) - (gone > 0)} judged documents" in told
    assert ("are they swapped?" in told) == swapped


@pytest.mark.parametrize(("kept", "word"), [(0.5, "CANNOT TELL"), (0.97, "UNCHANGED")])
def test_a_previous_version_that_is_cut_short_says_nothing_of_the_rest(
    checked: Checked, kept: float, word: str
) -> None:
    grades, runs, queries, docs = _data()
    found = checked(grades, runs, queries, docs, dict([*docs.items()][: int(kept * len(docs))]))
    answer = next(one for one in found.answers if one.question == "versions")
    assert answer.word == word
    assert ("may be cut short" in found.conclusion.reason) == (kept < 0.9)


def test_doubtful_documents_leave_the_sentence_open_and_a_change_says_whether_chance_explains_it(
    checked: Checked,
) -> None:
    grades, runs, queries, before = _data()
    draw = random.Random(6)
    relevant = [key for held in grades.values() for key, grade in held.items() if grade]
    lost = {key: " ".join(draw.choices(WORDS, k=25)) for key in draw.sample(relevant, 30)}
    found = checked(grades, runs, queries, {**before, **lost}, before)
    answer = found.answer("versions")
    assert answer.facts["flagged"] > 10 and "fit" not in answer.consequence
    assert "if the doubtful documents still answer" in answer.consequence
    # All relevant documents of two topics, and some of others, are gone: the two topics are compared by themselves.
    gone = {*relevant[:10], *relevant[12::9]}
    less = checked(grades, runs, queries, {key: text for key, text in before.items() if key not in gone}, before)
    change = less.answer("versions").consequence
    assert "22 topics, 2 left out" in less.conclusion.reason
    assert "Leaving out these 2 topics alone changes the difference by " in change
    assert "Leaving out these 22 documents changes the difference by " in change
    assert "no more than 2 random ones would (" in change and "no more than 22 random ones would (" in change


def test_documents_that_are_gone_leave_the_runs_where_nobody_judged_them(checked: Checked) -> None:
    grades, runs, queries, before = _data()
    gone = {key for held in grades.values() for key in [*held][-2:]}
    kept = {topic: {key: int(grade) for key, grade in held.items()} for topic, held in _without(grades, gone).items()}
    found = checked(kept, runs, queries, {key: text for key, text in before.items() if key not in gone}, before)
    answer = found.answer("versions")
    assert (answer.word, answer.facts["lost"]) == ("CHANGED", 0)
    assert answer.repair is not None and answer.repair.documents == gone

"""The question of the files where only a sample of the topics is looked at."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

import truerank
from truerank.claims import file_questions
from truerank.claims.results import Check

TOPICS = 1200


def _claim(judged: list[str], documents: int = TOPICS) -> Check:
    """Two runs of many topics, the first of which ranks a topic's document higher, and judgments of given topics."""
    draw = random.Random(1)
    runs: dict[str, dict[str, dict[str, float]]] = {"good": {}, "plain": {}}
    for at in range(TOPICS):
        others = [f"d{draw.randrange(documents)}" for _ in range(10)]
        for name, place in (("good", draw.randrange(2)), ("plain", draw.randrange(1, 5))):
            ranked = [*dict.fromkeys([*others[:place], f"d{at}", *others[place:]])]
            runs[name][f"t{at}"] = {doc: float(-rank) for rank, doc in enumerate(ranked)}
    qrels = {topic: {f"d{at}": 1} for at, topic in enumerate(judged)}
    return truerank.check(qrels=qrels, run=runs, measure="nDCG@10")


def test_many_topics_with_their_own_judgments_hold() -> None:
    found = _claim([f"t{at}" for at in range(TOPICS)])
    assert found.conclusion.word.startswith("HOLDS")
    assert "As the files are" not in found.conclusion.reason


@pytest.mark.parametrize("moved", ["shuffled", "shifted"])
def test_judgments_of_other_topics_are_a_fault_of_all_though_a_sample_was_looked_at(moved: str) -> None:
    topics = [f"t{at}" for at in range(TOPICS)]
    other = random.Random(2).sample(topics, TOPICS) if moved == "shuffled" else [*topics[1:], topics[0]]
    found = _claim(other)
    assert found.conclusion.word == "FILES AT FAULT"
    assert "judgments" in found.conclusion.reason


def test_the_few_topics_that_are_concerned_are_left_out() -> None:
    moved = [f"t{at}" for at in range(TOPICS)]
    moved[600:640] = [*moved[601:640], moved[600]]
    found = _claim(moved)
    assert found.conclusion.word.startswith("HOLDS")
    assert "another topic" in found.conclusion.repairs[0]


@pytest.mark.parametrize("part", [0.2, 0.8])
def test_topics_that_got_judgments_of_others_without_a_rule_are_left_out_or_too_many(part: float) -> None:
    topics = [f"t{at}" for at in range(TOPICS)]
    some = random.Random(2).sample(range(TOPICS), round(part * TOPICS))
    moved = [*topics]
    for at, to in zip(some, [*some[1:], some[0]], strict=True):
        moved[at] = topics[to]
    found = _claim(moved, 20 * TOPICS)
    (fault,) = [one for one in found.answer("files").facts["faults"] if one["kind"] == "misplaced-judgments"]
    assert fault["reason"].startswith("The judgments belong to other topics: The relevant documents of ")
    assert found.conclusion.word.startswith("FILES AT FAULT" if part > 0.5 else "HOLDS")
    if part < 0.5:
        astray = {topics[at] for at in some}
        assert len(astray & {*fault["topics"]}) > max(0.9 * len(fault["topics"]), 0.4 * len(astray))
        assert "another topic" in found.conclusion.repairs[0]


@pytest.mark.parametrize("wanted", [1, 3, 7, 12])
def test_documents_are_looked_up_in_parts_and_keep_the_order_of_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: int
) -> None:
    monkeypatch.setattr(file_questions, "_LOOKED_UP", 2)
    ids = random.Random(3).sample(range(100), 12)
    docs = tmp_path / "docs.jsonl"
    docs.write_text("".join(json.dumps({"_id": f"d{one}", "text": "a text"}) + "\n" for one in [*ids, ids[0]]))
    some = pl.Series(["elsewhere", *(f"d{one}" for one in sorted(ids[:wanted]))])
    found = file_questions._among(str(docs), some)
    assert found.to_list() == [f"d{one}" for one in ids[:wanted]]

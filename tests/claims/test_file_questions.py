"""The question of the files where only a sample of the topics is looked at."""

from __future__ import annotations

import random

import pytest

import truerank
from truerank.claims.results import Check

TOPICS = 1200


def _claim(judged: list[str]) -> Check:
    """Two runs of many topics, the first of which ranks a topic's document higher, and judgments of given topics."""
    draw = random.Random(1)
    runs: dict[str, dict[str, dict[str, float]]] = {"good": {}, "plain": {}}
    for at in range(TOPICS):
        others = [f"d{draw.randrange(TOPICS)}" for _ in range(10)]
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
    assert "of another topic" in found.conclusion.repairs[0]

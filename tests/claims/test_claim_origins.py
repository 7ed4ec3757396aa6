"""Judgments that can be read in two ways: what the word says."""

from __future__ import annotations

from pathlib import Path

from test_check_claims import collection

import truerank

Scores = dict[str, dict[str, dict[str, float]]]


def checked(grades: dict[str, dict[str, int]], runs: Scores, system: str) -> truerank.claims.Check:  # type: ignore[name-defined]
    return truerank.check(qrels=grades, run=runs, system=system, baseline="plain", comparisons=1)


def test_pairs_that_are_judged_twice_are_read_in_both_ways(tmp_path: Path) -> None:
    grades, runs = collection(topics=30, lead=1.0)
    lines = [f"{topic} 0 {doc} {grade}" for topic, held in grades.items() for doc, grade in held.items()]
    third = {topic: sorted(held, key=held.__getitem__)[-3:] for topic, held in runs["good"].items()}
    twice = [f"{topic} 0 {doc} 0" for topic, docs in third.items() for doc in docs if grades[topic][doc]]
    known = {line.rsplit(" ", 1)[0] for line in twice}
    once = [line for line in lines if line.rsplit(" ", 1)[0] not in known]
    again = [line for line in lines if line.rsplit(" ", 1)[0] in known]
    path = tmp_path / "test.qrels"
    path.write_text("\n".join([*once, *twice, *again]) + "\n")
    result = truerank.check(qrels=path, run=runs, system="good", baseline="plain", comparisons=1)
    assert result.conclusion.word == "HOLDS EXCEPT"
    assert result.conclusion.found == "71 documents have two grades for a topic."
    assert result.conclusion.figure.startswith("With the lower grade of each, plain is ahead: ")
    assert "ith the higher grade" not in result.conclusion.reason
    assert "judged with several grades, such as" in result.conclusion.reason


def test_a_grade_outside_the_scale_that_carries_the_claim_is_named() -> None:
    grades, runs = collection(topics=40, lead=0.2)
    for topic, held in grades.items():
        mine, theirs = (
            sorted(runs[name][topic], key=runs[name][topic].__getitem__)[::-1] for name in ("good", "plain")
        )
        ahead = [doc for doc in mine[:10] if held[doc] and doc not in theirs[: mine.index(doc) + 1]]
        held.update(dict.fromkeys(ahead[:1], 20))
    result = checked(grades, runs, "good")
    assert result.base is not None and result.base.effect == "stands"
    assert result.conclusion.word == "HOLDS EXCEPT"
    assert result.conclusion.found.startswith("37 judgments have grades outside the scale")

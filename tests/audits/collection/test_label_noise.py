"""What wrong judgments allow, by pairs that were judged again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from truerank.audits import collection
from truerank.errors import TruerankError
from truerank.measures import evaluate

Grades = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]
DOCUMENTS = 40


def truth(topics: int = 40, seed: int = 2) -> Grades:
    draw = np.random.default_rng(seed)
    return {f"t{at}": {f"d{doc}": int(draw.random() < 0.3) for doc in range(DOCUMENTS)} for at in range(topics)}


def mistaken(true: Grades, share: float, seed: int = 3) -> Grades:
    draw = np.random.default_rng(seed)
    return {topic: {doc: grade ^ int(draw.random() < share) for doc, grade in own.items()}
            for topic, own in true.items()}  # fmt: skip


def ranked(by: Grades, noise: float, seed: int) -> Run:
    draw = np.random.default_rng(seed)
    return {topic: {doc: grade + noise * draw.normal() for doc, grade in own.items()} for topic, own in by.items()}


def some(true: Grades, share: float, seed: int = 4) -> Grades:
    draw = np.random.default_rng(seed)
    chosen = {topic: {doc: grade for doc, grade in own.items() if draw.random() < share} for topic, own in true.items()}
    return {topic: own for topic, own in chosen.items() if own}


def test_scores_are_those_of_the_second_judgments_where_all_were_judged_again() -> None:
    true = truth()
    judged = mistaken(true, 0.1)
    runs = {"good": ranked(true, 0.5, 5), "worse": ranked(true, 1.5, 6)}
    found = collection.audit(qrels=judged, run=runs, judged_again=true, measures="nDCG@10 P@10")
    facts = found.facts["noise"]
    by_truth = evaluate(true, runs, "nDCG@10 P@10")
    for one in facts["scores"]:
        assert one["corrected"] == pytest.approx(by_truth.of(one["run"], one["measure"]).mean())
    wrong = sum(judged[topic][doc] != grade for topic, own in true.items() for doc, grade in own.items())
    finding = found.finding("contradicted-again")
    assert finding is not None and (finding.count, finding.of) == (wrong, 40 * DOCUMENTS)
    perfect = {topic: {doc: 1.0 for doc, grade in own.items() if grade} for topic, own in true.items()}
    behind = {topic: {doc: grade - 1 / (2 + judged[topic][doc]) for doc, grade in own.items()}
              for topic, own in true.items()}  # fmt: skip
    ceilings = evaluate(judged, {"perfect": perfect, "behind": behind}, "nDCG@10")
    least, most = (ceilings.of(name, "nDCG@10").mean() for name in ("perfect", "behind"))
    assert facts["ceilings"][0]["least"] == pytest.approx(least)
    assert facts["ceilings"][0]["mean"] == pytest.approx(most)
    assert f"scores {most:.3f} at most" in finding.here
    assert found.finding("above-ceiling") is None


def test_a_run_that_follows_wrong_judgments_scores_more_than_they_allow(tmp_path: Path) -> None:
    true = truth()
    judged = mistaken(true, 0.2)
    runs = {"honest": ranked(true, 0.4, 5), "tuned on them": ranked(judged, 0.01, 6)}
    found = collection.audit(qrels=judged, run=runs, judged_again=true, out=tmp_path / "out")
    finding = found.finding("above-ceiling")
    assert finding is not None
    assert found.rows("above-ceiling")["other"].unique().to_list() == ["tuned on them"]
    assert "What wrong judgments allow" in (tmp_path / "out" / "report.html").read_text()


def test_a_sample_of_pairs_tells_sums_and_says_what_it_does_not_tell() -> None:
    true = truth(120)
    judged = mistaken(true, 0.15)
    runs = {"good": ranked(true, 0.5, 5)}
    facts = collection.audit(qrels=judged, run=runs, judged_again=some(true, 0.25)).facts["noise"]
    assert facts["ceilings"] == []
    (score,) = (one for one in facts["scores"] if one["measure"] == "DCG@10")
    mean = evaluate(true, runs, "DCG@10").of("good", "DCG@10").mean()
    assert score["corrected_low"] <= mean <= score["corrected_high"]
    facts = collection.audit(qrels=judged, run=runs, judged_again=some(true, 0.01)).facts["noise"]
    assert "DCG@10" not in {one["measure"] for one in facts["scores"]}
    assert "DCG@10" in facts["remarks"][0] and "too few for an interval" in facts["remarks"][0]


def test_golden_questions_with_one_document_each() -> None:
    """A share of the expected documents is wrong: so much a perfect system loses."""
    judged = {f"q{at}": {f"d{at}": 1} for at in range(100)}
    again = {topic: {doc: int(at >= 7) for doc in own} for at, (topic, own) in enumerate(judged.items())}
    facts = collection.audit(qrels=judged, judged_again=again, measures="RR Success@5").facts["noise"]
    assert [one["least"] for one in facts["ceilings"]] == pytest.approx([0.93, 0.93])
    # A document that nobody knows stands before the wrong one.
    assert [one["mean"] for one in facts["ceilings"]] == pytest.approx([0.93 + 0.07 / 2, 1.0])
    (grade,) = facts["grades"]
    assert (grade["k"], grade["n"]) == (93, 100)


def test_second_grades_that_are_not_those_of_their_pairs_call_no_judgment_wrong() -> None:
    true = truth()
    judged = mistaken(true, 0.1)
    pairs = [(topic, doc) for topic, own in true.items() for doc in own]
    grades = [true[topic][doc] for topic, doc in pairs]
    for moved, why in ((grades[1:] + grades[:1], "1 row"), ([1 - one for one in grades], "the wrong way round")):
        again: Grades = {}
        for (topic, doc), grade in zip(pairs, moved, strict=True):
            again.setdefault(topic, {})[doc] = grade
        found = collection.audit(qrels=judged, judged_again=again)
        finding = found.finding("unfit-second-grades")
        assert finding is not None and why in finding.examples[0]["detail"]
        assert ("a higher grade is a more relevant document" in finding.examples[0]["detail"]) is (why[0] == "t")
        assert found.finding("contradicted-again") is None and "noise" not in found.facts


def test_pairs_of_no_judgment_and_hostile_files(tmp_path: Path) -> None:
    judged = truth(5)
    finding = collection.audit(qrels=judged, judged_again={"t0": {"new": 1}}).finding("unfit-second-grades")
    assert finding is not None and "None of the 1 pairs" in finding.examples[0]["detail"]
    beside = {"t0": {**judged["t0"], "new": 1}, "else": {"d1": 0}}
    facts = collection.audit(qrels=judged, judged_again=beside).facts["noise"]
    assert (facts["again"], facts["beside"], facts["beside_relevant"]) == (DOCUMENTS, 2, 1)
    broken = tmp_path / "broken.qrels"
    broken.write_text("t0 0 d1 relevant\n")
    with pytest.raises(TruerankError, match=r"broken\.qrels"):
        collection.audit(qrels=judged, judged_again=[str(broken)])

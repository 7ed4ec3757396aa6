"""A corpus that lacks documents of an earlier version, and what that does to runs."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path

import numpy as np
import pytest

from truerank.audits import collection
from truerank.measures import evaluate
from truerank.measures.document_placebo import RankedDocuments, Unseen, document_placebos
from truerank.options import Resampling

TOPICS, RESULTS, DOCUMENTS = 30, 20, 400
Run = dict[str, dict[str, float]]


def material(seed: int = 5) -> tuple[dict[str, dict[str, int]], dict[str, Run]]:
    """Judgments of the first results, and two runs whose results are drawn from all documents."""
    draw = np.random.default_rng(seed)
    qrels: dict[str, dict[str, int]] = {}
    runs: dict[str, Run] = {"one": {}, "two": {}}
    for topic in (f"t{at}" for at in range(TOPICS)):
        for run in runs.values():
            found = [f"d{doc}" for doc in draw.choice(DOCUMENTS, RESULTS, replace=False)]
            run[topic] = {doc: float(RESULTS - at) for at, doc in enumerate(found)}
            qrels.setdefault(topic, {}).update({doc: int(draw.random() < 0.4) for doc in found[:10]})
    return qrels, runs


def written(folder: Path, name: str, ids: list[str]) -> str:
    texts = (json.dumps({"_id": one, "text": f"the text of document number {one}"}) + "\n" for one in ids)
    (folder / name).write_text("".join(texts))
    return str(folder / name)


def test_the_change_is_that_of_runs_and_judgments_without_them(tmp_path: Path) -> None:
    qrels, runs = material()
    ids = [f"d{at}" for at in range(DOCUMENTS)]
    gone = set(ids[::5])
    found = collection.audit(
        qrels=qrels, run=runs, docs=written(tmp_path, "now.jsonl", [one for one in ids if one not in gone]),
        previous=written(tmp_path, "before.jsonl", [*ids, "never seen"]), measures="nDCG@10 P@5", out=tmp_path / "out",
    )  # fmt: skip
    facts = found.facts["smaller"]
    known = {doc for own in (*qrels.values(), *(own for run in runs.values() for own in run.values())) for doc in own}
    assert (facts["before"], facts["now"], facts["counted"]) == (401, 320, len(gone & known))
    finding = found.finding("smaller-corpus")
    assert finding is not None and "of the same judged state" in finding.here
    left = {topic: {doc: grade for doc, grade in own.items() if doc not in gone} for topic, own in qrels.items()}
    left = {topic: own for topic, own in left.items() if any(own.values())}
    shorter = {name: {t: {d: s for d, s in own.items() if d not in gone} for t, own in run.items() if t in left}
               for name, run in runs.items()}  # fmt: skip
    before, after = evaluate(qrels, runs, "nDCG@10 P@5"), evaluate(left, shorter, "nDCG@10 P@5")
    for placebo in facts["placebos"]:
        for one in placebo["systems"]:
            assert one["before"] == pytest.approx(before.of(one["system"], placebo["measure"]).mean())
            assert one["after"] == pytest.approx(after.of(one["system"], placebo["measure"]).mean())
            assert one["low"] <= one["change"] <= one["high"]
    assert "What the smaller corpus does to the runs" in (tmp_path / "out" / "report.html").read_text()


def test_documents_that_one_run_confuses_move_it_more_than_random_ones() -> None:
    qrels, runs = material()
    relevant = {doc for own in qrels.values() for doc, grade in own.items() if grade}
    first = {doc for own in runs["one"].values() for doc in list(own)[:5]} - relevant
    (placebo,) = document_placebos(RankedDocuments.of(qrels, runs), first, "nDCG@10", by_state=Unseen())
    assert placebo.word == "moved more than chance"


def test_random_removals_take_as_many_of_each_state_with_those_that_nothing_names() -> None:
    qrels = {"1": {"a": 1, "b": 1, "x": 0, "y": 0, "z": 0}}
    run = {"1": {doc: float(9 - at) for at, doc in enumerate("xaybzuvw")}}
    ranked = RankedDocuments.of(qrels, {"one": run})
    # One of three documents that are judged not relevant: "x" is first, and the others do less or nothing.
    (placebo,) = document_placebos(ranked, ["x"], "RR", by_state=Unseen(3, 90), resampling=Resampling(500, 0.95, 0))
    (one,) = placebo.systems
    assert (one.before, one.after, one.low, one.high) == (0.5, 1.0, 0.0, 0.5)
    assert one.p == pytest.approx(1 / 3, abs=0.1)
    # Three of 96 documents without a judgment, of which the run has three: their removal shortens it.
    unseen = Unseen(2, 91)
    (placebo,) = document_placebos(ranked, ["u"], "SetP", by_state=unseen, resampling=Resampling(4000, 0.95, 0))
    assert placebo.what.startswith("3 of 101 documents removed, 0 relevant")
    assert placebo.systems[0].p == pytest.approx(1 - comb(93, 3) / comb(96, 3), abs=0.015)
    (placebo,) = document_placebos(ranked, ["x", "y", "z"], "RR", by_state=unseen._replace(gone=0))
    assert (placebo.word, placebo.systems) == ("cannot tell", ())


def test_nothing_gone_and_no_runs_are_no_fault(tmp_path: Path) -> None:
    qrels, runs = material()
    same = written(tmp_path, "same.jsonl", [f"d{at}" for at in range(DOCUMENTS)])
    assert collection.audit(qrels=qrels, run=runs, docs=same, previous=same).finding("smaller-corpus") is None
    assert "smaller" not in collection.audit(qrels=qrels, docs=same, previous=same).facts

"""Rankings that never read the query, in the audit of a collection."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from truerank.audits import collection

Grades = dict[str, dict[str, int]]


def grades(topics: int = 20, *, shared: int = 0, seed: int = 1) -> Grades:
    """Topics with their own relevant documents and others that are not, in random order; some share relevant ones."""
    draw = np.random.default_rng(seed)
    found: Grades = {}
    for topic in range(topics):
        own = {f"d{doc}": int(place < 3) for place, doc in enumerate(draw.choice(9_000, 12, replace=False).tolist())}
        own |= {f"shared{n}": 1 for n in range(shared)}
        names = list(own)
        found[f"t{topic}"] = {names[place]: own[names[place]] for place in draw.permutation(len(names))}
    return found


def test_documents_that_all_topics_share_make_a_floor() -> None:
    found = collection.audit(qrels=grades(shared=2))
    (finding,) = [one for one in found.findings if one.kind.code == "COLL16"]
    assert finding.count == finding.of == 20
    discounts = [1 / math.log2(rank + 1) for rank in range(1, 6)]
    floor = sum(discounts[:2]) / sum(discounts)
    assert f"The best fixed list scores {floor:.3f}" in finding.here
    rows = {(one["measure"], one["name"]): one["floor"]["mean"] for one in found.facts["floors"]}
    assert rows["nDCG@10", "the best fixed list"] == pytest.approx(floor)
    assert collection.audit(qrels=grades()).finding("high-floor") is None


@pytest.mark.parametrize("by", ["the order of the file", "the ids"])
def test_relevant_documents_first_are_told(by: str) -> None:
    first = {topic: dict(sorted(own.items(), key=lambda pair: -pair[1])) for topic, own in grades().items()}
    if by == "the ids":
        first = {t: {f"{n:02d}{doc}": g for n, (doc, g) in enumerate(own.items())} for t, own in first.items()}
        first = {t: dict(sorted(own.items(), key=lambda pair: pair[0][-2:])) for t, own in first.items()}
    ties = {topic: {doc: float(number < 2) for number, doc in enumerate(own)} for topic, own in first.items()}
    apart = {topic: {doc: -float(number) for number, doc in enumerate(own)} for topic, own in first.items()}
    found = collection.audit(qrels=first, run={"ties": ties, "apart": apart})
    finding = found.finding("telling-order")
    assert finding is not None and finding.count == 20 and finding.kind.severity == "note"
    assert ("document id" if by == "the ids" else "order of the file") in finding.here
    assert finding.here.endswith("Equal scores are in ties.")
    for judged, run in ((first, {"apart": apart}), (grades(), {"ties": ties})):
        assert collection.audit(qrels=judged, run=run).finding("telling-order") is None


def test_a_cutoff_that_takes_all_candidates_is_named(tmp_path: Path) -> None:
    judged = grades(4)
    runs = {
        name: {
            t: {doc: float(value) for value, doc in enumerate(draw.permutation([*own]))} for t, own in judged.items()
        }
        for name, draw in (("a", np.random.default_rng(1)), ("b", np.random.default_rng(2)))
    }
    finding = collection.audit(qrels=judged, run=runs, measures="R@12 nDCG@5").finding("few-candidates")
    assert finding is not None and (finding.count, finding.of) == (4, 8)
    assert finding.examples[0]["detail"] == "R@12: 12 candidates"
    runs["b"] = {topic: dict([*own.items()][:7]) for topic, own in runs["b"].items()}
    assert collection.audit(qrels=judged, run=runs, measures="R@12").finding("few-candidates") is None
    docs = tmp_path / "docs.jsonl"
    docs.write_text("".join(json.dumps({"_id": f"d{n}", "text": f"text number {n}"}) + "\n" for n in range(15)))
    few = collection.audit(qrels=judged, docs=str(docs), measures="nDCG@10 R@20").finding("few-candidates")
    assert few is not None and (few.count, few.of) == (4, 8)


def test_one_run_of_haystacks_shows_its_candidates() -> None:
    judged = {f"t{n}": {f"d{n}-0": 1, f"d{n}-1": 1} for n in range(20)}
    runs = {"system": {t: {f"d{t[1:]}-{n}": -float(n) for n in range(19 + int(t[1:]) % 7)} for t in judged}}
    found = collection.audit(qrels=judged, run=runs, measures="R@50 R@5")
    few = found.finding("few-candidates")
    assert few is not None and few.examples[0]["detail"] == "R@50: 19 candidates" and few.count == 20
    rows = {(one["measure"], one["of"]): one["floor"] for one in found.facts["floors"] if one["name"] == "random order"}
    assert rows["R@50", "candidates"]["mean"] == pytest.approx(1.0)
    assert rows["R@5", "candidates"]["mean"] == pytest.approx(np.mean([5 / (19 + n % 7) for n in range(20)]))
    # Lists that were cut at one length say nothing of what else there is.
    runs = {"system": {t: dict([*own.items()][:15]) for t, own in runs["system"].items()}}
    assert collection.audit(qrels=judged, run=runs, measures="R@50").finding("few-candidates") is None


def test_long_documents_and_high_ids_are_scored_as_lists(tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    texts = {f"{n}": "word " * (n % 7 + 5) + f"number {n}" for n in range(300)}
    longest = [key for key in texts if int(key) % 7 == 6][:5]
    texts |= {key: "word " * 200 + key for key in longest}
    docs.write_text("".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items()))
    judged = {f"t{n}": {longest[n % 5]: 1, longest[(n + 1) % 5]: 1} for n in range(20)}
    found = collection.audit(qrels=judged, docs=str(docs), measures="nDCG@10")
    by_name = {one["name"]: one["floor"]["mean"] for one in found.facts["floors"]}
    assert by_name["longest first"] > 0.5 > by_name["last of the file first"] == by_name["highest id first"]
    assert by_name["random order"] < 0.05


def test_judgments_without_a_relevant_document_have_no_floor() -> None:
    qrels = {"t1": {"a": 0}, "t2": {"b": 0}}
    found = collection.audit(qrels=qrels, run={"r": {"t1": {"a": 2.0}, "t2": {"b": 1.0}}})
    assert {one.kind.code for one in found.findings} >= {"QREL20", "COLL07"}
    assert found.facts["floors"] == []

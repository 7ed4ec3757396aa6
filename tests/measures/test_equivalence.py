"""Equivalent documents: rankings and judgments closed under equivalence, against loops over the definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from truerank.cli import main
from truerank.errors import InputError
from truerank.measures import evaluate
from truerank.measures.equivalence import Equivalence, EquivalenceOptions, read_equivalence

QRELS = {"1": {"a": 1, "b": 0, "c": 2}, "2": {"x": 1}}
RUN = {"1": {"b": 5.0, "a2": 4.0, "a": 3.0, "z": 2.5, "c2": 2.0, "c": 1.0}, "2": {"y": 2.0, "x": 1.0}}
MAP = {"a2": "a", "c2": "c"}


def _loop(qrels: dict, run: dict, groups: dict, *, drop: bool) -> tuple[dict, dict]:
    """Judgments and run closed by the definition: the highest grade of a group, the first of a group counts."""
    closed: dict = {}
    for topic, docs in qrels.items():
        for doc, grade in docs.items():
            own = closed.setdefault(topic, {})
            own[groups.get(doc, doc)] = max(grade, own.get(groups.get(doc, doc), grade))
    runs: dict = {}
    for topic, docs in run.items():
        seen: set = set()
        for place, (doc, _) in enumerate(sorted(docs.items(), key=lambda pair: pair[1], reverse=True)):
            name = groups.get(doc, doc)
            if name in seen:
                if drop:
                    continue
                name = f"{name} again {place}"
            seen.add(name)
            runs.setdefault(topic, {})[name] = float(1000 - place)
    return closed, runs


@pytest.mark.parametrize("repeats", ["dropped", "unjudged"])
def test_scores_are_those_of_closed_runs_and_judgments(repeats: str) -> None:
    rng = np.random.default_rng(4)
    docs = [f"d{i}" for i in range(30)]
    groups = {f"d{i}": f"d{i // 3}" for i in range(10, 30) if i % 4}
    qrels = {str(t): {d: int(rng.integers(0, 3)) for d in rng.choice(docs, 12, replace=False)} for t in range(8)}
    run = {str(t): {d: float(s) for d, s in zip(docs, rng.permutation(30), strict=True)} for t in range(8)}
    measures = "nDCG@10 AP P@5 RR R@20 Bpref RBP(p=0.8,rel=1)"
    found = evaluate(qrels, run, measures, equivalent=groups, repeats=repeats)
    expected = evaluate(*_loop(qrels, run, groups, drop=repeats == "dropped"), measures)
    assert found.measures == expected.measures
    assert found.values == pytest.approx(expected.values)
    assert not np.allclose(found.values, evaluate(qrels, run, measures).values)


@pytest.mark.parametrize("repeats", ["dropped", "unjudged"])
def test_runs_with_duplicates_by_the_definitions_of_the_measures(repeats: str) -> None:
    """No part of the package but what is tested: groups, gains, precision and average precision in loops."""
    rng = np.random.default_rng(9)
    docs = [f"d{i:02d}" for i in range(24)]
    groups = {doc: docs[at // 4 * 4] for at, doc in enumerate(docs) if at % 4 and at % 5}
    for _ in range(20):
        grades = dict(zip(rng.choice(docs, 14, replace=False).tolist(), rng.integers(0, 4, 14).tolist(), strict=True))
        ranking = rng.permutation(docs).tolist()[:18]
        best: dict[str, int] = {}
        for doc, grade in grades.items():
            best[groups.get(doc, doc)] = max(grade, best.get(groups.get(doc, doc), 0))
        gains, seen = [], set()
        for doc in ranking:
            name = groups.get(doc, doc)
            if name not in seen or repeats == "unjudged":
                gains.append(0 if name in seen else best.get(name, 0))
            seen.add(name)
        relevant = sum(grade > 0 for grade in best.values())
        hits = [place for place, gain in enumerate(gains, 1) if gain]
        ideal = sum(g / np.log2(at + 2) for at, g in enumerate(sorted(best.values(), reverse=True)[:10]))
        expected = (
            sum(gain > 0 for gain in gains[:5]) / 5,
            1 / hits[0],
            sum(number / place for number, place in enumerate(hits, 1)) / relevant,
            sum(g / np.log2(at + 2) for at, g in enumerate(gains[:10])) / ideal,
        )
        run = {"1": {doc: float(-place) for place, doc in enumerate(ranking)}}
        found = evaluate({"1": grades}, run, "P@5 RR AP nDCG@10", equivalent=groups, repeats=repeats)
        assert found.mean[0].tolist() == pytest.approx(expected, abs=1e-12)


def test_the_first_counts_whatever_its_name_and_ties_are_those_of_the_run() -> None:
    assert evaluate(QRELS, RUN, "RR", equivalent=MAP).of("run", "RR").tolist() == [0.5, 0.5]
    # c2 counts at rank 4 once a is dropped, at rank 5 if it keeps its place.
    by = {"dropped": 1 / 4, "unjudged": 1 / 5}
    for repeats, value in by.items():
        found = evaluate(QRELS, RUN, "RR(rel=2)", equivalent=MAP, repeats=repeats)
        assert found.of("run", "RR(rel=2)")[0] == pytest.approx(value)
    tied = {"1": {"a": 1.0, "b2": 1.0, "z": 1.0}}
    # trec_eval puts equal scores by document id descending: z, b2, a; the group's name does not matter.
    found = evaluate({"1": {"b": 1}}, tied, "RR", equivalent={"b2": "b", "a": "b"})
    assert found.mean[0, 0] == 0.5


def test_contradictory_grades_are_combined_as_asked() -> None:
    qrels = {"1": {"a": 0, "a2": 2, "a3": 0}}
    groups = {"a2": "a", "a3": "a"}
    frame = pl.DataFrame(
        [("1", d, g) for d, g in qrels["1"].items()], schema=["topic_id", "doc_id", "relevance"], orient="row"
    )
    grades = {}
    for combine in ("max", "min", "majority", "agree"):
        options = EquivalenceOptions(equivalent=groups, combine=combine)
        grades[combine] = Equivalence(read_equivalence(groups), options).closed(frame)["relevance"].to_list()
    assert grades == {"max": [2], "min": [0], "majority": [0], "agree": []}


def test_closing_twice_changes_nothing() -> None:
    groups = Equivalence(read_equivalence(MAP))
    frame = pl.DataFrame(
        [("1", "a2", 1), ("1", "a", 0), ("1", "q", 1)], schema=["topic_id", "doc_id", "relevance"], orient="row"
    )
    once = groups.closed(frame)
    assert once.rows() == [("1", "a", 1), ("1", "q", 1)]
    assert groups.closed(once).equals(once)


@pytest.mark.parametrize("content", ["document_id\trepresentative\na2\ta\nc2\tc\n", "a2\ta\nc2\tc\n", "a2 a\nc2 c\n"])
def test_maps_are_read_from_files(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "duplicates.tsv"
    path.write_text(content)
    assert dict(read_equivalence(path).iter_rows()) == MAP
    (tmp_path / "a.qrels").write_text("".join(f"{t} 0 {d} {g}\n" for t, docs in QRELS.items() for d, g in docs.items()))
    (tmp_path / "a.run").write_text(
        "".join(f"{t} Q0 {d} {i} {s} r\n" for t, docs in RUN.items() for i, (d, s) in enumerate(docs.items(), 1))
    )
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "--qrels", str(tmp_path / "a.qrels"), "--run", str(tmp_path / "a.run"), "--measures", "RR",
              "--equivalent", str(path), "--out", str(tmp_path / "out")])  # fmt: skip
    assert not ended.value.code and "the first of a group counts" in capsys.readouterr().out
    assert '"repeats": "dropped"' in (tmp_path / "out" / "manifest.json").read_text()


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ([("a", "b"), ("a", "c")], "'a' has several representatives"),
        ([("a", "b"), ("b", "c")], "'b' represents others"),
        (pl.DataFrame({"x": ["a"], "y": ["b"]}), "document_id and representative are needed"),
    ],
)
def test_maps_at_fault_are_refused(given: object, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        read_equivalence(given)

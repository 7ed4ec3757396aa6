"""The findings of both audits as SARIF: where they stand, and which there are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import leakage_example
import truerank
from truerank.audits.leakage.report import review
from truerank.records import Input


def found(text: str) -> list[tuple[str, str, int]]:
    """Rule, source and line of each result."""
    results: list[dict[str, Any]] = json.loads(text)["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"] for one in results]
    return [
        (one["ruleId"], place["artifactLocation"]["uri"], place["region"]["startLine"])
        for one, place in zip(results, places, strict=True)
    ]


ROWS = [
    ("robust", "1", "title", "log", "q7", "red apples", 0.97),
    ("robust", "1", "description", "log", "q7", "red apples", 0.93),
    ("robust", "2", "title", "log", "q9", "a whale", 0.905),
]


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Input]:
    monkeypatch.chdir(tmp_path)
    Path("log.tsv").write_text("q1\tnothing\n\nq7\tred apples\nq8\tother\nq9\ta whale\n")
    return [Input("log", "log.tsv", "train"), Input("robust", "topics.tsv", "test")]


def test_each_leaking_query_stands_in_its_line(inputs: list[Input]) -> None:
    audit = leakage_example.audit(ROWS)
    assert found(review(audit, inputs)) == [("LEAK01", "log.tsv", 3)]


def test_pairs_in_doubt_are_warnings(inputs: list[Input]) -> None:
    audit = leakage_example.audit(ROWS)
    frame = audit.candidates.with_columns(standing=pl.col("standing").replace("", "doubt"))
    pairs = found(review(replace(audit, candidates=frame), inputs))
    assert pairs == [("LEAK01", "log.tsv", 3), ("LEAK02", "log.tsv", 5)]


def test_with_a_baseline_only_what_is_new_is_listed(inputs: list[Input], tmp_path: Path) -> None:
    before = leakage_example.save(leakage_example.audit(ROWS[:1]), tmp_path / "before")
    inputs.append(Input("before", str(before), "baseline"))
    more = [*ROWS, ("robust", "3", "title", "log", "q8", "other", 0.99)]
    assert found(review(leakage_example.audit(ROWS[:1]), inputs)) == []
    assert ("LEAK01", "log.tsv", 4) in found(review(leakage_example.audit(more), inputs))


def test_an_unknown_verdict_is_said_of_the_test_set(inputs: list[Input]) -> None:
    audit = leakage_example.audit([])
    audit.summary["tests"]["robust"]["verdict"] = "UNKNOWN"
    assert found(review(audit, inputs)) == [("LEAK03", "topics.tsv", 1)]


def test_a_faulty_judgment_stands_in_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.qrels").write_text("1 0 a 1\n1 0 b 1\n1 0 b 0\n")
    truerank.collection.audit(qrels="bad.qrels", out="audit")
    log = Path("audit/findings.sarif").read_text()
    listed = found(log)
    assert listed[0][1:] == ("bad.qrels", 3)
    assert "topic 1, document b (grades 1, 0" in log
    manifest = json.loads(Path("audit/manifest.json").read_text())
    assert "findings.sarif" in manifest["artifacts"]


def test_what_is_not_listed_is_counted(inputs: list[Input], monkeypatch: pytest.MonkeyPatch) -> None:
    from truerank.audits.collection import report as collection_report
    from truerank.audits.leakage import report as leakage_report
    from truerank.core import sarif

    for module in (sarif, leakage_report, collection_report):
        monkeypatch.setattr(module, "MOST_FINDINGS", 2)
    rows = [("robust", str(at), "title", "log", f"q{at}", f"text {at}", 0.97) for at in range(5)]
    run = json.loads(review(leakage_example.audit(rows), inputs))["runs"][0]
    assert len(run["results"]) == 2
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["message"]["text"].startswith("3 of 5 findings are left out")
    Path("bad.qrels").write_text("".join(f"{at} 0 a 1\n{at} 0 a 0\n" for at in range(4)))
    found = truerank.collection.audit(qrels="bad.qrels")
    text = collection_report.review(found, [Input("bad", "bad.qrels", "qrels")])
    assert "findings are left out" in text
    assert len(json.loads(text)["runs"][0]["results"]) == 2

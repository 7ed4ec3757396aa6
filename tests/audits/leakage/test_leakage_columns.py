"""Training sources with several text columns: which ones are compared, and how."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from truerank import leakage

TOPICS = [
    "airport security", "black bear attacks", "wildlife extinction", "counterfeit money", "falkland petroleum",
    "hydrogen energy", "magnetic levitation", "tropical storms", "undersea cables", "women clergy",
]  # fmt: skip
OPTIONS = {"encoder": "packaged", "backend": "onnx"}


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def triples(tmp_path: Path) -> tuple[str, str]:
    """Triples whose positives hold ten topics, and the topics."""
    rows = [
        {"query": f"recipe number {i} for soup", "positive": f"soup {i} with onions", "negative": f"garden tool {i}"}
        for i in range(60)
    ]
    for place, title in enumerate(TOPICS):
        rows[6 * place + 1]["positive"] = title
    train, test = tmp_path / "triples.jsonl", tmp_path / "topics.tsv"
    train.write_text(lines(rows))
    test.write_text("".join(f"{number}\t{title}\n" for number, title in enumerate(TOPICS, start=1)))
    return str(train), str(test)


def test_positives_that_are_topics_leak_and_go(triples: tuple[str, str], tmp_path: Path) -> None:
    train, test = triples
    result = leakage.audit([train], [test], out=tmp_path / "audit", **OPTIONS)
    assert not result.summary["tests"]["topics"]["leaked_topics"]
    (kind,) = (one for one in leakage.kinds_of(result, "topics") if one.of)
    assert (kind.kind, kind.leaked, kind.of) == ("query-document", 10, 10)
    assert set(result.leaks["role"]) == {"positive"}
    out = tmp_path / "clean.jsonl"
    cleaning = leakage.clean(tmp_path / "audit", train, out=out, kinds=("query-document",))
    assert isinstance(cleaning, leakage.TrainCleaning)
    assert (cleaning.read, cleaning.removed, cleaning.kept, cleaning.not_found) == (60, 10, 50, 0)
    kept = [line for line in Path(train).read_text().splitlines() if json.loads(line)["positive"] not in TOPICS]
    assert out.read_text().splitlines() == kept


def test_a_column_that_is_no_role_is_named_as_not_compared(tmp_path: Path) -> None:
    rows = [{"query": f"recipe number {i} for soup", "remark": f"soup {i} with onions"} for i in range(20)]
    (tmp_path / "log.jsonl").write_text(lines(rows))
    (tmp_path / "topics.tsv").write_text("1\tairport security\n")
    result = leakage.audit([str(tmp_path / "log.jsonl")], [str(tmp_path / "topics.tsv")], **OPTIONS)
    assert result.summary["sources"]["log"]["not_compared"] == ["remark"]
    assert "the column 'query' was read as the query; 'remark' was not compared" in " ".join(str(result).split())


def test_a_training_source_is_named_with_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    from truerank.sources import hub, open_queries
    from truerank.sources.inputs import pinned

    monkeypatch.setattr(hub, "fingerprint", lambda spec: f"hf:{spec.name};revision=0123abc")
    for given in ("hf:org/name:train#anchor", "hf:org/name@main:train#anchor"):
        source = open_queries(given)
        assert pinned(source.spec, source.fingerprint) == "hf:org/name@0123abc:train#anchor"

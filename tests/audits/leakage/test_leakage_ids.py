"""Training data that holds ids finds what the same data with texts finds."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from truerank import leakage

NAMES = [f"{one}{other}{end}" for one in "bdklmnprst" for other in ("ari", "elo", "ino", "ude") for end in "mnrsx"]
TOPICS = {"t1": "how do coral reefs recover from bleaching", "t2": "history of suspension bridges in europe"}


def prose(name: str, size: int = 50) -> str:
    draw = random.Random(name)
    return " ".join(draw.choice(NAMES) for _ in range(size))


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    """A test collection, and the queries and passages of training data by id."""
    (tmp_path / "test/qrels").mkdir(parents=True)
    records = [json.dumps({"_id": f"d{n}", "text": prose(f"d{n}")}) for n in range(1, 31)]
    write(tmp_path / "test/corpus.jsonl", records)
    write(tmp_path / "test/queries.jsonl", [json.dumps({"_id": key, "text": text}) for key, text in TOPICS.items()])
    write(tmp_path / "test/qrels/test.tsv", ["query-id\tcorpus-id\tscore", "t1\td1\t1", "t2\td2\t1"])
    queries = {n: prose(f"q{n}", 5) for n in range(40)} | {1: "how coral reefs recover after bleaching"}
    passages = {n: prose(f"p{n}") for n in range(80)} | {1: f"Home. {prose('d1')}", 47: prose("d2")}
    return {
        "test": str(tmp_path / "test"),
        "train_queries": write(tmp_path / "queries.tsv", [f"{n}\t{text}" for n, text in queries.items()]),
        "train_docs": write(tmp_path / "collection.tsv", [f"{n}\t{text}" for n, text in passages.items()]),
        "ids": write(tmp_path / "qidpidtriples.tsv", [f"{n}\t{n}\t{n + 40}" for n in range(40)]),
        "texts": write(
            tmp_path / "triples.tsv", [f"{queries[n]}\t{passages[n]}\t{passages[n + 40]}" for n in range(40)]
        ),
    }


def test_ids_leak_as_their_texts_do(given: dict[str, str], tmp_path: Path) -> None:
    by_id = {name: given[name] for name in ("train_queries", "train_docs")}
    asked = {"sample": 20, "encoder": "words"}
    spelled = leakage.audit([given["texts"]], [given["test"]], **asked)
    rows = ["kind", "topic_id", "doc_id", "role", "training_text", "example_id", "evidence"]
    assert set(spelled.leaks["kind"]) >= {"pair", "query-query", "positive-relevant", "negative-relevant"}
    found = leakage.audit([given["ids"]], [given["test"]], out=tmp_path / "out", **asked, **by_id)
    assert found.leaks.select(rows).equals(spelled.leaks.select(rows))
    both = ([one.verdict for one in leakage.kinds_of(audit, "test")] for audit in (found, spelled))
    assert next(both) == next(both)
    cleaned = leakage.clean(tmp_path / "out", given["ids"], out=tmp_path / "clean.tsv")
    assert isinstance(cleaned, leakage.TrainCleaning)
    lines = Path(given["ids"]).read_text().splitlines()
    assert (tmp_path / "clean.tsv").read_text().splitlines() == [
        line for n, line in enumerate(lines) if n not in (1, 7)
    ]


def test_absent_ids_are_told_and_make_no_clean_result(given: dict[str, str], tmp_path: Path) -> None:
    by_id = {name: given[name] for name in ("train_queries", "train_docs")}
    lines = [f"{n}\t{n}\t{n + 40}" for n in range(2, 7)] + ["404\t3\t41", "3\t405\t41"]
    found = leakage.audit([write(tmp_path / "t.tsv", lines)], [given["test"]], sample=20, encoder="words", **by_id)
    absent = found.summary["sources"]["t"]["absent"]  # type: ignore[typeddict-item]
    assert absent == {"ids": 2, "roles": {"positive": 1, "query": 1}, "first": ["404", "405"]}
    (kind,) = (one for one in leakage.kinds_of(found, "test") if one.kind == "positive-relevant")
    assert (kind.verdict, "2 ids of t have no text (404, 405)" in kind.why) == ("UNKNOWN", True)
    assert found.summary["tests"]["test"]["verdict"] == "UNKNOWN"

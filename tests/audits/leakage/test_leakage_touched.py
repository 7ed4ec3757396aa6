"""What training examples hold of a test set, as `check` asks for it."""

from __future__ import annotations

import json
import random
from pathlib import Path

from truerank.audits.leakage.training_data.examples import touched_texts
from truerank.core.plain import plain

WORDS = (
    "amber barley cedar delta ember fossil granite harvest indigo jasmine kettle lantern marble nickel orchid".split()
)


def prose(name: str) -> str:
    draw = random.Random(name)
    return " ".join(f"{draw.choice(WORDS)}{draw.randint(10, 99)}" for _ in range(50))


def lines(path: Path, rows: list[dict[str, object]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def beir(folder: Path) -> str:
    lines(folder / "queries.jsonl", [{"_id": f"q{at}", "text": f"who sells {WORDS[at]} in bulk"} for at in range(4)])
    lines(folder / "corpus.jsonl", [{"_id": f"d{at}", "title": "", "text": prose(f"d{at}")} for at in range(8)])
    rows = "".join(f"q{at}\td{at}\t1\n" for at in range(4)) + "q1\td0\t1\n"
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return str(folder)


def test_relevant_documents_as_positives_of_other_queries_contaminate_a_beir_folder(tmp_path: Path) -> None:
    test = beir(tmp_path / "beir")
    rows = [{"query": f"where is river {at}", "positive": prose(f"d{at}" if at < 1 else f"x{at}"),
             "negative": prose(f"n{at}")} for at in range(30)]  # fmt: skip
    found = touched_texts((lines(tmp_path / "triples.jsonl", rows),), test)
    assert found is not None
    assert (found.word, found.documents) == ("CONTAMINATED", {"d0": ("positive-relevant", "document-corpus")})
    assert dict.fromkeys(found.topics) == dict.fromkeys(("q0", "q1"))
    assert found.verdicts["positive-relevant"] == "CONTAMINATED"
    assert "positive-relevant: 1 of 4" in found.why
    assert json.loads(json.dumps(plain(found)))["word"] == "CONTAMINATED"


def test_a_document_that_is_relevant_for_nothing_is_no_leak_of_topics(tmp_path: Path) -> None:
    rows = [{"query": f"where is river {at}", "positive": prose("d7" if at < 1 else f"x{at}")} for at in range(30)]
    found = touched_texts((lines(tmp_path / "pairs.jsonl", rows),), beir(tmp_path / "beir"))
    assert found is not None
    assert (found.word != "CONTAMINATED", found.documents, found.topics) == (True, {}, {})
    assert "negative-relevant" not in found.why


def test_texts_that_are_no_queries_are_no_gap_of_queries(tmp_path: Path) -> None:
    train = lines(tmp_path / "texts.jsonl", [{"text": prose(f"x{at}")} for at in range(30)])
    found = touched_texts((train,), beir(tmp_path / "beir"))
    assert found is not None
    assert found.word != "CONTAMINATED" and "read as a query" not in found.why


def test_queries_alone_are_left_to_the_audit_of_queries(tmp_path: Path) -> None:
    train = lines(tmp_path / "log.jsonl", [{"query": "where is the river"}, {"query": "what is a lake"}])
    assert touched_texts((train,), beir(tmp_path / "beir")) is None

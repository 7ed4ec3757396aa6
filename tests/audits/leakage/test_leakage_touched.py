"""Which verdict a test set gets from the kinds of leak that its training data can have."""

from __future__ import annotations

import json
import random
from pathlib import Path

from truerank import leakage

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


def audited(train: str, test: str) -> leakage.AuditResult:
    return leakage.audit([train], [test], encoder="words", sample=20)


def test_relevant_documents_as_positives_of_other_queries_contaminate_a_beir_folder(tmp_path: Path) -> None:
    rows = [{"query": f"where is river {at}", "positive": prose(f"d{at}" if at < 1 else f"x{at}"),
             "negative": prose(f"n{at}")} for at in range(30)]  # fmt: skip
    found = audited(lines(tmp_path / "triples.jsonl", rows), beir(tmp_path / "beir"))
    about = found.summary["tests"]["beir"]
    assert (about["verdict"], about["leaked_topics"]) == ("CONTAMINATED", [])
    assert set(found.leaks["doc_id"]) == {"d0"}
    assert set(found.leaks["kind"]) == {"positive-relevant", "document-corpus"}
    assert "relevant document in a training positive (1 of 4)" in about["sentence"]


def test_a_document_that_is_relevant_for_nothing_does_not_contaminate(tmp_path: Path) -> None:
    rows = [{"query": f"where is river {at}", "positive": prose("d7" if at < 1 else f"x{at}")} for at in range(30)]
    found = audited(lines(tmp_path / "pairs.jsonl", rows), beir(tmp_path / "beir"))
    about = found.summary["tests"]["beir"]
    assert about["verdict"] != "CONTAMINATED" and set(found.leaks["kind"]) == {"document-corpus"}
    # There are no negatives, so nothing could leak in this way.
    assert "negative" not in about["sentence"]


def test_documents_without_queries_are_no_gap_of_queries(tmp_path: Path) -> None:
    train = lines(tmp_path / "texts.jsonl", [{"document": prose(f"x{at}")} for at in range(30)])
    found = leakage.audit([train], [beir(tmp_path / "beir")], encoder="words", sample=20, roles="document=document")
    about = found.summary["tests"]["beir"]
    assert about["looked_for"] == 0 and "holds no query" not in about["sentence"]
    verdicts = {one.kind: one.of for one in leakage.kinds_of(found, "beir")}
    assert verdicts["document-corpus"] == 8 and verdicts["pair"] == 0


def test_queries_alone_compare_no_documents(tmp_path: Path) -> None:
    train = lines(tmp_path / "log.jsonl", [{"query": "where is the river"}, {"query": "what is a lake"}])
    found = audited(train, beir(tmp_path / "beir"))
    assert leakage.kinds_of(found, "beir") == () and [one["kind"] for one in found.summary["cells"]] == ["query-query"]

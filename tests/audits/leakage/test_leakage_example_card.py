"""The statement about leaks of whole examples: valid by its schema, the same bytes, hashes only where redacted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

import truerank
from truerank import leakage
from truerank.audits.leakage.card import Card, card_schema
from truerank.audits.leakage.training_data.results import LEAKS, ExampleAudit, KindVerdict
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.records import Judgment

ROW = {"source": "secret log", "example_id": "7", "examples": 2, "evidence": "exact"}
ROWS: list[dict[str, Any]] = [
    {"kind": "pair", "topic_id": "t|1", "doc_id": "d1", "role": "query+positive", "training_text": "reefs", **ROW},
    {"kind": "document-corpus", "doc_id": "d2", "role": "positive", "training_text": "private words", **ROW},
]
WHY = "Not looked for: no training text was read as a negative (secret log: query=q)."
KINDS = (
    KindVerdict("pair", "CONTAMINATED", "1 of 4 leaks.", leaked=1, of=4, low=0.01, high=0.8, topics=1, pairs=1),
    KindVerdict("negative-relevant", "UNKNOWN", WHY),
    KindVerdict("document-corpus", "CONTAMINATED", "1 of 9 leaks.", leaked=1, of=9, pairs=1, examples=2),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "audit"
    test = {"name": "<b>reefs</b>", "topics": 4, "texts": 4, "documents": 9, "relevant": None, "noun": "topics"}
    sources = {"secret log": {"examples": 5, "skipped": 1, "roles": "query=q, positive=p", "read": 11}}
    audit = ExampleAudit(KINDS, pl.DataFrame(ROWS, schema=LEAKS), test, sources, {"ngram": 13}, {}, folder=place)
    place.mkdir()
    (place / "summary.json").write_text(json.dumps(audit.json()))
    audit.leaks.write_parquet(place / "leaks.parquet")
    return place


def valid(statement: Card) -> dict[str, Any]:
    schema = card_schema("examples")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(statement.json())
    return statement.json()


def test_statement_of_kinds(folder: Path) -> None:
    content = valid(leakage.card(folder, date="2026-01-31", pairs=True))
    assert (content["verdict"], content["truerank"], content["date"]) == (
        "CONTAMINATED", truerank.__version__, "2026-01-31",
    )  # fmt: skip
    assert [(one["kind"], one["verdict"], one["leaked"], one["of"], one["share"]) for one in content["kinds"]] == [
        ("pair", "CONTAMINATED", 1, 4, 0.25),
        ("negative-relevant", "UNKNOWN", 0, 0, None),
        ("document-corpus", "CONTAMINATED", 1, 9, pytest.approx(1 / 9, abs=1e-6)),
    ]
    assert content["leaked_topics"] == ["t|1"] and len(content["leaks"]) == len("sha256:") + 64
    assert [pair["training_text"] for pair in content["pairs"]] == ["reefs", "private words"]
    assert repr(leakage.card(folder)) == repr(leakage.card(folder))
    audit = leakage.load_examples(folder)
    assert leakage.card(audit).json() == leakage.card(folder).json()


def test_redacted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    statement = leakage.card(folder, pairs=True, redact=True, redact_key=str(tmp_path / "key"))
    content, text = valid(statement), repr(statement) + summary(statement).show("markdown")
    assert "secret" not in text and "private" not in text and "leaks" not in content
    assert content["redacted"] is True and content["sources"][0]["name"].startswith("hmac:")


def test_markdown_and_cards(folder: Path) -> None:
    text = summary(leakage.card(folder)).show("markdown")
    assert text.startswith("## Train–test leakage\n\nChecked with truerank") and "<b>" not in text
    assert "| query and relevant document in one example | CONTAMINATED | 1 | 4 | 25.0% |" in text
    assert "| relevant document in a training negative | UNKNOWN | – | – | – |" in text
    assert "- **negative-relevant**: Not looked for" in text and "\n\nt\\|1\n\n</details>" in text
    audit = leakage.load_examples(folder)
    for found in (folder, audit):
        card = leakage.card(found, for_="model-card").json()["card"]
        assert "pair: 1/4" in card and "- **pair**: 1 of 4 leaks." in card


def test_labels_and_dates_that_do_not_fit(folder: Path) -> None:
    with pytest.raises(InputError, match="no threshold to calibrate"):
        leakage.card(folder, labels=[Judgment("1", "", "q1", ("yes",), similarity=0.9)])
    with pytest.raises(InputError, match="'2023-02-29' is not a date"):
        leakage.card(folder, date="2023-02-29")

"""The cards of both audits: what they state, and harmless in Markdown."""

from __future__ import annotations

from typing import Any

import polars as pl

import truerank
from leakage_example import audit
from truerank.audits.leakage.card import example_card, query_card
from truerank.audits.leakage.training_data.results import LEAKS, ExampleAudit, KindVerdict

ROWS = [
    ("robust", "301", "title", "secret log", "q1", "organized crime", 0.97),
    ("robust", "301", "description", "secret log", "q2", "crime, organized", 0.95),
    ("robust", "302", "title", "secret log", "q3", "polio", 0.905),
    ("core|17", "303", "title", "secret log", "q3", "polio", 0.905),
]
LEAK = {"source": "secret log", "example_id": "7", "examples": 2, "evidence": "exact"}
LEAKING: list[dict[str, Any]] = [
    {"kind": "pair", "topic_id": "t|1", "doc_id": "d1", "role": "query+positive", "training_text": "reefs", **LEAK},
    {"kind": "document-corpus", "doc_id": "d2", "role": "positive", "training_text": "private words", **LEAK},
]
WHY = "Not looked for: no training text was read as a negative (secret log: query=q)."
KINDS = (
    KindVerdict("pair", "CONTAMINATED", "1 of 4 leaks.", leaked=1, of=4, low=0.01, high=0.8, topics=1, pairs=1),
    KindVerdict("negative-relevant", "UNKNOWN", WHY),
    KindVerdict("document-corpus", "CONTAMINATED", "1 of 9 leaks.", leaked=1, of=9, pairs=1, examples=2),
)


def test_queries() -> None:
    text = query_card(audit(ROWS, sources=("secret log",), tests=("robust", "core|17"), fingerprint="sha256:ab;bytes"))
    assert text.startswith(f"## Train–test leakage\n\nChecked with truerank {truerank.__version__}: cosine similarity")
    assert "above 0.91 under" in text and "not calibrated for this encoder (but for paraphrase" in text
    assert "| robust | CONTAMINATED | 10 | 1 | 2 | 0 |" in text and "| core\\|17 | CLEAN | 10 | 0 | 2 | 0 |" in text
    assert "| secret log | 100 | 90 | 0 | sha256:ab;bytes |" in text
    assert "<summary>Leaked topics of robust (1)</summary>\n\n301\n\n</details>" in text


def test_names_that_hold_markup() -> None:
    rows = [("<b>x</b>", "[1](http://a)", "title", "log", "q1", "a b", 0.97)]
    text = query_card(audit(rows, tests=("<b>x</b>",), encoder="org/<script>"))
    assert "<b>" not in text and "<script>" not in text and "[1](http" not in text


def test_whole_examples() -> None:
    test = {"name": "<b>reefs</b>", "topics": 4, "texts": 4, "documents": 9, "relevant": None, "noun": "topics"}
    sources = {"secret log": {"examples": 5, "skipped": 1, "roles": "query=q, positive=p", "read": 11}}
    text = example_card(ExampleAudit(KINDS, pl.DataFrame(LEAKING, schema=LEAKS), test, sources, {"ngram": 13}, {}))
    assert text.startswith("## Train–test leakage\n\nChecked with truerank") and "<b>" not in text
    assert "| query and relevant document in one example | CONTAMINATED | 1 | 4 | 25.0% |" in text
    assert "| relevant document in a training negative | UNKNOWN | – | – | – |" in text
    assert "- **negative-relevant**: Not looked for" in text and "\n\nt\\|1\n\n</details>" in text
    assert "private words" not in text

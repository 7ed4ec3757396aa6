"""The cards of both audits: what they state, and harmless in Markdown."""

from __future__ import annotations

import truerank
from leakage_example import audit
from truerank.audits.leakage.report import leakage_card

ROWS = [
    ("robust", "301", "title", "secret log", "q1", "organized crime", 0.97),
    ("robust", "301", "description", "secret log", "q2", "crime, organized", 0.95),
    ("robust", "302", "title", "secret log", "q3", "polio", 0.905),
    ("core|17", "303", "title", "secret log", "q3", "polio", 0.905),
]


def test_queries() -> None:
    text = leakage_card(
        audit(ROWS, sources=("secret log",), tests=("robust", "core|17"), fingerprint="sha256:ab;bytes")
    )
    assert text.startswith(f"## Train–test leakage\n\nChecked with truerank {truerank.__version__}: cosine similarity")
    assert "above 0.91 under" in text and "not calibrated for this encoder (but for paraphrase" in text
    assert "| robust | CONTAMINATED | 10 | 1 | 2 | 0 |" in text and "| core\\|17 | CLEAN | 10 | 0 | 2 | 0 |" in text
    assert "| secret log | 100 | 90 | 0 | sha256:ab;bytes |" in text
    assert "<summary>Leaked topics of robust (1)</summary>\n\n301\n\n</details>" in text


def test_names_that_hold_markup() -> None:
    rows = [("<b>x</b>", "[1](http://a)", "title", "log", "q1", "a b", 0.97)]
    text = leakage_card(audit(rows, tests=("<b>x</b>",), encoder="org/<script>"))
    assert "<b>" not in text and "<script>" not in text and "[1](http" not in text

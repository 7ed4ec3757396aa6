"""The statement: valid by its schema, the same bytes every time, harmless in Markdown, hashes only where redacted."""

import json

import jsonschema
import pytest

import truerank
from leakage_example import audit, save
from truerank.audits.leakage.calibration import calibrate
from truerank.audits.leakage.card import card, card_markdown, card_schema
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.records import Judgment

KEY = b"0123456789abcdef"
ROWS = [
    ("robust", "301", "title", "secret log", "q1", "organized crime", 0.97),
    ("robust", "301", "description", "secret log", "q2", "crime, organized", 0.95),
    ("robust", "302", "title", "secret log", "q3", "polio", 0.905),
    ("core|17", "303", "title", "secret log", "q3", "polio", 0.905),
]


@pytest.fixture
def folder(tmp_path):
    result = audit(ROWS, sources=("secret log",), tests=("robust", "core|17"), fingerprint="sha256:ab;bytes=7")
    return save(result, tmp_path / "audit")


@pytest.fixture
def key(tmp_path):
    (tmp_path / "key").write_bytes(KEY)
    return str(tmp_path / "key")


def valid(statement):
    schema = card_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(statement.json())
    return statement


def test_statement(folder):
    content = valid(card(folder)).json()
    assert content["schema"] == "truerank/leakage-card/1"
    assert content["truerank"] == truerank.__version__
    assert (content["verdict"], content["encoder"], content["threshold"]) == ("CONTAMINATED", "all-MiniLM-L6-v2", 0.91)
    assert content["calibration"] == {"calibrated": False, "for": "paraphrase-MiniLM-L6-v2"}
    assert "date" not in content
    assert content["sources"][0]["hash"] == "sha256:ab;bytes=7"
    robust, core = content["tests"]
    assert (robust["leaked_topics"], robust["leaking_queries"], robust["topics"]) == (["301"], 2, 10)
    assert (core["verdict"], core["leaked_topics"]) == ("CLEAN", [])
    assert len(content["candidates"]) == len("sha256:") + 64


def test_same_bytes_and_the_date_only_if_given(folder):
    assert repr(card(folder)) == repr(card(folder))
    assert json.loads(repr(card(folder))) == card(folder).json()
    assert valid(card(folder, date="2024-02-29")).json()["date"] == "2024-02-29"
    with pytest.raises(InputError, match="'2023-02-29' is not a date"):
        card(folder, date="2023-02-29")


def test_worst_verdict_first():
    result = audit(ROWS[2:], sources=("secret log",), tests=("robust", "core|17"))
    assert valid(card(result)).json()["verdict"] == "CLEAN"
    result.summary["tests"]["robust"]["verdict"] = "UNKNOWN"
    assert valid(card(result)).json()["verdict"] == "UNKNOWN"


def test_calibration(folder):
    labels = [
        Judgment("1", "", f"q{i}", ("yes" if i >= 100 else "no",), similarity=0.8 + 0.001 * i) for i in range(200)
    ]
    right = calibrate(labels, encoder="all-MiniLM-L6-v2")
    stated = valid(card(folder, calibration=right)).json()["calibration"]
    assert stated["chosen"] == right.chosen == 0.892
    assert stated["rule"] == "lower-bound"
    assert stated["calibrated"] is True
    assert (stated["min_precision"], stated["pairs"]) == (0.9, 200)
    other = calibrate(labels, encoder="another")
    assert valid(card(folder, calibration=other)).json()["calibration"]["calibrated"] is False
    refused = calibrate(labels[:3], encoder="all-MiniLM-L6-v2")
    assert valid(card(folder, calibration=refused)).json()["calibration"]["chosen"] is None


def test_pairs_and_redaction(folder, key):
    stated = valid(card(folder, pairs=True)).json()
    assert [pair["query_text"] for pair in stated["tests"][0]["pairs"]] == ["organized crime", "crime, organized"]
    redacted = valid(card(folder, pairs=True, redact=True, redact_key=key))
    text = repr(redacted) + card_markdown(redacted)
    assert "organized" not in text and "secret" not in text and "ab;bytes" not in text
    assert redacted.json()["redacted"] is True
    assert [pair["query_id"] for pair in redacted.json()["tests"][0]["pairs"]] == ["q1", "q2"]
    assert redacted.json()["tests"][0]["leaked_topics"] == ["301"]


def test_source_names_do_not_slip_out_through_the_reason(key):
    result = audit(ROWS[2:], sources=("secret log", "secret log 2"), tests=("robust",))
    result.summary["tests"]["robust"]["why"] = "Nothing above the threshold, but secret log 2 holds no query."
    why = card(result, redact=True, redact_key=key).json()["tests"][0]["why"]
    assert "secret" not in why and "log" not in why


def test_markdown(folder):
    text = summary(card(folder, date="2024-01-31")).show("markdown")
    assert text.startswith("## Train–test leakage\n\nChecked with truerank")
    assert "on 2024-01-31: cosine similarity above 0.91 under" in text
    assert "not calibrated for this encoder" in text
    assert "core\\|17" in text
    assert "<summary>Leaked topics of robust (1)</summary>\n\n301\n\n</details>" in text


def test_markdown_of_names_that_hold_markup():
    rows = [("<b>x</b>", "[1](http://a)", "title", "log", "q1", "a b", 0.97)]
    text = card_markdown(card(audit(rows, tests=("<b>x</b>",), encoder="org/<script>")))
    assert "<b>" not in text and "<script>" not in text and "[1](http" not in text


def test_no_audit(tmp_path):
    with pytest.raises(InputError, match=r"no summary\.json here"):
        card(tmp_path)

"""SARIF: the shape that the standard asks for, checked against a strict schema of what truerank writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from truerank.core.rules import Finding, Rule
from truerank.core.sarif import MOST_FINDINGS, sarif


def record(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": sorted(required),
        "additionalProperties": False,
    }


TEXT = record({"text": {"type": "string", "minLength": 1, "pattern": r"[.…?!]$"}})
LEVEL = {"enum": ["error", "warning", "note"]}
#: The part of SARIF 2.1.0 that is written, with what GitHub asks for beyond the standard (rules with help, a line).
SCHEMA = record(
    {
        "$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": record(
                {
                    "tool": record(
                        {
                            "driver": record(
                                {
                                    "name": {"const": "truerank"},
                                    "version": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": record(
                                            {
                                                "id": {"type": "string", "pattern": r"^[A-Z]{4,5}[0-9]{2}$"},
                                                "name": {"type": "string", "pattern": r"^([A-Z][a-z0-9]*)+$"},
                                                "shortDescription": TEXT,
                                                "fullDescription": TEXT,
                                                "help": TEXT,
                                                "defaultConfiguration": record({"level": LEVEL}),
                                            }
                                        ),
                                    },
                                }
                            )
                        }
                    ),
                    "automationDetails": record({"id": {"type": "string", "pattern": "^[^/]+/$"}}),
                    "invocations": {
                        "type": "array",
                        "items": record(
                            {"executionSuccessful": {"const": True}},
                            toolExecutionNotifications={
                                "type": "array",
                                "items": record({"level": LEVEL, "message": TEXT}),
                            },
                        ),
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "maxItems": MOST_FINDINGS,
                        "items": record(
                            {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": LEVEL,
                                "message": TEXT,
                                "locations": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": record(
                                        {
                                            "physicalLocation": record(
                                                {
                                                    "artifactLocation": record(
                                                        {"uri": {"type": "string", "pattern": r"^[\x21-\x7e]+$"}}
                                                    ),
                                                    "region": record({"startLine": {"type": "integer", "minimum": 1}}),
                                                }
                                            )
                                        }
                                    ),
                                },
                                "partialFingerprints": record({"truerank/v1": {"type": "string", "minLength": 32}}),
                            }
                        ),
                    },
                }
            ),
        },
    }
)
SMALL = Rule("small-fault", "TEST01", "A note", "note", "It is so", "Do nothing")
LARGE = Rule("large-fault", "TEST02", "A fault", "fault", "It is so", "Mend it")
RULES = [SMALL, LARGE]


def checked(text: str) -> dict[str, Any]:
    """The run of a log that holds all that the schema asks for, and whose results name rules that are there."""
    log = json.loads(text)
    jsonschema.validate(log, SCHEMA)
    run: dict[str, Any] = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    for one in run["results"]:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"]
    return run


def uris(run: dict[str, Any]) -> list[str]:
    return [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]]


def test_severe_findings_come_first_and_lines_are_kept() -> None:
    found = [Finding(SMALL, "one", "a.tsv", 0, "x"), Finding(LARGE, "two", "a.tsv", 7, "y")]
    run = checked(sarif("audit of a/b", RULES, found))
    assert [one["level"] for one in run["results"]] == ["error", "note"]
    lines = [one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in run["results"]]
    assert lines == [7, 1]
    assert checked(sarif("x", RULES, []))["results"] == []


def test_a_line_that_moved_keeps_its_fingerprint() -> None:
    def mark(line: int, key: str) -> str:
        run = checked(sarif("x", RULES, [Finding(LARGE, "m", "a", line, key)]))
        found: str = run["results"][0]["partialFingerprints"]["truerank/v1"]
        return found

    assert mark(1, "key") == mark(99, "key") != mark(1, "other")


def test_sources_are_uri_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sources = ["a b/c#d.tsv", str(tmp_path / "in.tsv"), "/elsewhere/x y.tsv", "irds:beir/scifact", "hf:o/n@abc:test"]
    run = checked(sarif("x", RULES, [Finding(LARGE, "m", one, 1, "") for one in sources]))
    assert uris(run) == ["a%20b/c%23d.tsv", "in.tsv", "file:///elsewhere/x%20y.tsv", "irds:beir/scifact",
                         "hf:o/n@abc%3Atest"]  # fmt: skip


def test_texts_of_the_data_are_no_links_and_no_placeholders() -> None:
    hostile = "see [here](1) and {0} of {x}\nnext\ud800"
    run = checked(sarif("x", RULES, [Finding(LARGE, hostile, "a", 1, hostile)]))
    assert run["results"][0]["message"]["text"] == "see [here] (1) and { 0 } of {x} next?."[:-1]


def test_what_is_left_out_is_told() -> None:
    found = [Finding(SMALL, "m", "a", 1, str(at)) for at in range(MOST_FINDINGS)]
    found.append(Finding(LARGE, "m", "a", 1, ""))
    run = checked(sarif("x", RULES, found))
    assert len(run["results"]) == MOST_FINDINGS
    assert run["results"][0]["ruleId"] == "TEST02"
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["message"]["text"].startswith("1 of 5,001 findings")

"""The contract of `check --json`: keys and types on which programs rely. All else may change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
from test_what_a_check_says import of_runs, scores, table

import truerank
from truerank.claims.results import Check
from truerank.cli import main
from truerank.core.verdict import LEVELS

NUMBER: Final = (int, float)
ALWAYS: Final[Mapping[str, Any]] = {
    "verdict": str, "sentence": str, "verdicts": list, "findings": list, "facts": dict, "decided_by": str,
    "not_checked": list,
}  # fmt: skip
VERDICT: Final = {"subject": str, "word": str, "level": str, "sentence": str}
FINDING: Final = {"code": str, "title": str, "severity": str, "count": int, "of": (int, type(None))}
FIGURES: Final = {"value": NUMBER, "low": NUMBER, "high": NUMBER, "topics": int, "scores": list}
CLAIM: Final[Mapping[str, Any]] = {
    "system": str, "baseline": str, "measure": str, **FIGURES, "comparisons": int, "given": dict,
}  # fmt: skip
CODE: Final = re.compile(r"CLAIM\d\d")


def fits(found: Mapping[str, Any], shape: Mapping[str, Any], *, alone: bool = False) -> None:
    """The values have the keys and types of a shape, and no others where it stands alone."""
    assert shape.keys() <= found.keys() and (not alone or shape.keys() == found.keys())
    for key, kind in shape.items():
        assert isinstance(found[key], kind), (key, found[key])


def contract(result: Check) -> dict[str, Any]:
    """The JSON of a check, which keeps the contract."""
    found: dict[str, Any] = json.loads(json.dumps(result.json()))
    fits(found, ALWAYS)
    assert found["verdict"] == result.conclusion.word
    assert "," not in found["verdict"] and found["sentence"] == result.sentence()
    (verdict,) = found["verdicts"]
    fits(verdict, VERDICT, alone=True)
    assert (verdict["subject"], verdict["word"]) == (result.asked, found["verdict"])
    assert verdict["level"] == LEVELS[found["verdict"]]
    for finding in found["findings"]:
        fits(finding, FINDING, alone=True)
        assert (
            CODE.fullmatch(finding["code"]) and finding["title"] and finding["severity"] in ("fault", "doubt", "note")
        )
        assert finding["of"] is None or 0 < finding["count"] <= finding["of"]
    assert all(CODE.fullmatch(code) for code in (*found["not_checked"], *filter(None, [found["decided_by"]])))
    if found["claim"] is not None:
        fits(found["claim"], CLAIM)
        fits(found["claim"]["given"], FIGURES, alone=True)
        for row in (found["claim"], found["claim"]["given"]):
            assert len(row["scores"]) == 2 and row["low"] < row["value"] < row["high"]
            assert row["scores"][0] - row["scores"][1] == pytest.approx(row["value"])
    return found


def test_a_claim_without_a_fault_has_its_figures_twice() -> None:
    result = truerank.check(table("new", "old"))
    found = contract(result)
    assert (found["verdict"], found["decided_by"], found["findings"]) == ("HOLDS", "CLAIM02", [])
    own = found["claim"]
    assert (own["system"], own["baseline"], own["measure"], own["comparisons"]) == ("new", "old", "nDCG@10", 1)
    assert own["given"] == {name: own[name] for name in FIGURES}
    assert own["topics"] == 40 and result.base is not None and own["value"] == result.base.value
    assert {"CLAIM03", "CLAIM05"} <= {*found["not_checked"]} and "CLAIM02" not in found["not_checked"]


def test_what_a_repair_does_stands_beside_what_was_given() -> None:
    result = truerank.check(table("new", "old", copied=6))
    own = contract(result)["claim"]
    assert (own["topics"], own["given"]["topics"]) == (40, 46)
    assert result.repaired is not None and result.base is not None
    assert (own["value"], own["given"]["value"]) == (result.repaired.value, result.base.value)


def test_the_finding_that_decides_has_its_code_and_no_touched_topics_where_none_are_left_out() -> None:
    found = contract(of_runs(1.0, lacks=6))
    assert (found["verdict"], found["decided_by"]) == ("HOLDS SMALLER", "CLAIM01")
    (fault,) = [one for one in found["findings"] if one["code"] == "CLAIM01"]
    assert fault["title"].startswith("plain gave no answer to 6 of 24 topics")
    assert found["facts"]["files"]["faults"]


def test_without_a_claim_the_keys_stay() -> None:
    single = contract(truerank.check(table("new")))
    assert (single["claim"], single["verdict"], single["single"]["system"]) == (None, "UNKNOWN", "new")
    faulty = contract(of_runs(1.0, apart=True))
    assert (faulty["claim"], faulty["verdict"], faulty["decided_by"]) == (None, "FILES AT FAULT", "CLAIM01")
    assert faulty["findings"][0]["severity"] == "fault"


def test_what_is_printed_and_written_is_what_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame(scores(*[0.2, 0.1] * 20)).write_csv(tmp_path / "scores.csv")
    with pytest.raises(SystemExit):
        main(["check", str(tmp_path / "scores.csv"), "--json", "--out", str(tmp_path / "out")])
    printed = json.loads(capsys.readouterr().out)
    written = json.loads((tmp_path / "out/summary.json").read_text())
    assert printed == written and (printed["version"], printed["command"]) == (truerank.__version__, "check")
    found = contract(truerank.check(tmp_path / "scores.csv"))
    assert {key: printed[key] for key in (*ALWAYS, "claim")} == {key: found[key] for key in (*ALWAYS, "claim")}
    assert printed["claim"]["measure"] == "score"

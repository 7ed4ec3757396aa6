"""The audit of CONTRIBUTING.md is a whole one: built from the page, it runs as a command and writes its files."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from truerank.cli import main
from truerank.cli.commands import Program

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
PROGRAM = Program("truerank", "", {"contradictions": "contradictions:audit"}, {"Audits": {"contradictions": ""}})
QRELS = "1 0 a 1\n1 0 b 0\n1 0 a 0\n2 0 a 2\n2 0 a 2\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    lines = 0
    for name, text in re.findall(
        r"```(?:toml|python)\n# (contradictions/\S+)\n(.*?)```", PAGE.read_text("utf-8"), re.S
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        lines += text.count("\n")
    assert 100 < lines <= 150
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield importlib.import_module("contradictions")
    sys.modules.pop("contradictions")


def ended(*words: str) -> int:
    with pytest.raises(SystemExit) as raised:
        main(words, PROGRAM)
    return int(str(raised.value.code))


def test_it_writes_all_that_an_audit_writes(package: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.qrels").write_text(QRELS, encoding="utf-8")
    assert ended("contradictions", "a.qrels", "--out", "out", "--fail-on", "faulty") == 1
    shown = capsys.readouterr().out
    assert "FAULTY. 1 of 3 pairs have two grades." in shown
    assert "TWICE01" in shown
    out = tmp_path / "out"
    names = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    assert {"report.html", "summary.json", "manifest.json", "card.md", "contradicted.parquet"} <= names
    assert {
        f"tables/{table}.{form}" for table in ("contradicted", "findings") for form in ("csv", "md", "tex")
    } <= names
    log = json.loads((out / "findings.sarif").read_text("utf-8"))["runs"][0]
    assert [one["ruleId"] for one in log["results"]] == ["TWICE01"]
    assert log["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert (summary["command"], summary["verdict"], summary["facts"]["pairs"]) == ("contradictions", "FAULTY", 3)
    title = "Pairs that were judged twice, with different grades"
    assert summary["findings"] == [{"code": "TWICE01", "title": title, "severity": "fault", "count": 1, "of": None}]
    page = (out / "report.html").read_text("utf-8")
    assert "5 judgments of 2 topics." in page and "Find out which grade is meant" in page
    assert package.audit("a.qrels").verdict.word == "FAULTY"


def test_without_a_fault_it_is_sound(package: Any, capsys: pytest.CaptureFixture[str]) -> None:
    Path("b.qrels").write_text("1 0 a 1\n2 0 a 2\n", encoding="utf-8")
    assert ended("contradictions", "b.qrels", "--json") == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "SOUND"
    assert "No pair of 2 has two grades." in repr(package.audit("b.qrels"))

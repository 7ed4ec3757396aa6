"""Settings of a project stand behind the command line, and their faults are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truerank.cli import main


def ended(*words: str) -> int:
    with pytest.raises(SystemExit) as raised:
        main([*words])
    return int(str(raised.value.code or 0))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.qrels").write_text("1 0 a 1\n1 0 b 2\n2 0 c 1\n")
    Path("a.run").write_text("1 Q0 b 1 2.0 x\n1 Q0 a 2 1.0 x\n2 Q0 d 1 2.0 x\n2 Q0 c 2 1.0 x\n")
    return tmp_path


def measures(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert ended("evaluate", "--qrels", "a.qrels", "--run", "a.run", "--json", *words) == 0
    return list(json.loads(capsys.readouterr().out)["measures"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("truerank.toml", '[evaluate]\nmeasures = "RR@10"\n'),
        ("pyproject.toml", '[tool.truerank.evaluate]\nmeasures = "RR@10"\n'),
    ],
)
def test_options_come_from_the_project(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(name).write_text(text)
    assert measures(capsys) == ["RR@10"]
    assert measures(capsys, "--measures", "AP") == ["AP"]


def test_lists_flags_and_tables_of_groups(capsys: pytest.CaptureFixture[str]) -> None:
    Path("truerank.toml").write_text("[evaluate]\nper-topic = true\nrel = 2\n[leakage.audit]\nfields = 3\n")
    assert ended("evaluate", "--qrels", "a.qrels", "--run", "a.run", "--measures", "P@1") == 0
    captured = capsys.readouterr()
    assert "grades of 2 and more" in captured.out and "settings from truerank.toml" in captured.err


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[evaluate]\nmesures = "AP"\n', "did you mean 'measures'"),
        ("[evaluate]\nmeasures = 3\n", "'measures' cannot be 3"),
        ('[evaluate]\nrel = "two"\n', "'rel' cannot be 'two'"),
        ("[evaluate]\nrel = 0\n", "rel"),
        ("[evaluate\n", "no valid TOML"),
        ('[evaluate]\nformat = "word"\n', "give one of text, markdown"),
    ],
)
def test_faults_name_the_file(text: str, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("truerank.toml").write_text(text)
    assert ended("evaluate", "--qrels", "a.qrels", "--run", "a.run") == 2
    assert fault in capsys.readouterr().err


def test_output_and_what_fails_come_from_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    Path("truerank.toml").write_text('[evaluate]\nformat = "csv"\n[collection.audit]\nfail-on = "unknown"\n')
    assert ended("evaluate", "--qrels", "a.qrels", "--run", "a.run") == 0
    assert capsys.readouterr().out.startswith("run,nDCG@10")
    assert ended("collection", "audit", "--qrels", "a.qrels") == 1
    assert ended("collection", "audit", "--qrels", "a.qrels", "--fail-on", "never") == 0


def test_files_that_are_always_the_same_come_from_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    questions = [f'{{"question": "q {n}", "expected": "{n}", "a": ["{n}"], "b": ["x{n}", "{n}"]}}' for n in range(12)]
    Path("golden.jsonl").write_text("\n".join(questions))
    Path("truerank.toml").write_text('[check]\npaths = ["golden.jsonl"]\njson = true\nbaseline = "b"\n')
    assert ended("check") == 0
    assert [file["path"] for file in json.loads(capsys.readouterr().out)["files"]] == ["golden.jsonl"]
    assert ended("check", "a.qrels", "--format", "text") == 0
    printed = capsys.readouterr().out
    assert "a.qrels" in printed and "golden.jsonl" not in printed

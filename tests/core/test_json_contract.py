"""What programs can rely on in `--json` and `summary.json`, as docs/json.md says it."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from types import NoneType
from typing import Any

import pytest

from truerank.cli import main
from truerank.core.rules import SEVERITIES
from truerank.core.verdict import ORDER
from truerank.version import __version__

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
NUMBER = (int, float)
DIFFERENCE = {"value": NUMBER, "low": NUMBER, "high": NUMBER, "topics": int, "scores": [NUMBER]}
EVERY: dict[str, Any] = {
    "version": str,
    "command": str,
    "verdict": str,
    "sentence": str,
    "verdicts": [{"subject": str, "word": str, "level": str, "sentence": str}],
    "findings": [{"code": str, "title": str, "severity": str, "count": int, "of": (int, NoneType)}],
    "facts": {},
}
SHAPES = {
    "check": {
        **EVERY,
        "claim": {
            **DIFFERENCE,
            "system": str,
            "baseline": str,
            "measure": str,
            "comparisons": int,
            "given": DIFFERENCE,
        },
        "decided_by": str,
        "not_checked": [str],
    },
    "leakage audit": {
        **EVERY,
        "cells": [
            dict.fromkeys(("train", "test", "kind", "verdict"), str)
            | dict.fromkeys(("looked_for", "leaked", "doubtful", "texts", "records"), int)
        ],
    },
}


def faults(value: Any, shape: Any, place: str = "") -> list[str]:
    """Where a value has not the keys and types of a shape; keys beyond them are free."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{place} is no object"]
        lacking = [f"{place}.{key} is missing" for key in shape.keys() - value.keys()]
        inner = (faults(value[key], one, f"{place}.{key}") for key, one in shape.items() if key in value)
        return [*lacking, *(fault for some in inner for fault in some)]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{place} is no list"]
        return [fault for number, one in enumerate(value) for fault in faults(one, shape[0], f"{place}[{number}]")]
    fits = isinstance(value, shape) and not isinstance(value, bool)
    return [] if fits else [f"{place} is {type(value).__name__}"]


def keeps(value: dict[str, Any], command: str) -> None:
    """Whether an object keeps to the contract, in its words too."""
    assert faults(value, SHAPES[command]) == []
    assert (value["version"], value["command"]) == (__version__, command)
    for one in value["verdicts"]:
        assert one["word"].isupper() and "," not in one["word"] and one["level"] in ORDER
    assert value["verdict"] in {one["word"] for one in value["verdicts"]}
    for one in value["findings"]:
        assert re.fullmatch(r"[A-Z]{4,5}\d\d", one["code"]) and one["severity"] in SEVERITIES and one["count"] > 0


def written(command: str, *words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What a command prints, which is what its `summary.json` has."""
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), *words, "--out", "out", "--json"])
    assert not ended.value.code
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert json.loads(Path("out/summary.json").read_text("utf-8")) == printed
    return printed


@pytest.mark.parametrize("command", SHAPES)
def test_the_examples_of_the_page_keep_to_it(command: str) -> None:
    text = PAGE.read_text("utf-8").partition(f"## {command}\n")[2]
    example = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    assert example is not None
    keeps(json.loads(example[1]), command)
    assert all(f"`{key}`" in PAGE.read_text("utf-8") for key in SHAPES[command])


@pytest.mark.parametrize("query", ["red apples in winter", "a song of no whale"])
def test_leakage_audit(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.tsv").write_text(f"q1\t{query}\nq2\ttrain timetable to lyon\n")
    Path("topics.tsv").write_text("1\tred apples in winter\n2\tblue whale song\n")
    words = ("--train", "log.tsv", "--test", "topics.tsv", "--encoder", "words")
    value = written("leakage audit", *words, capsys=capsys)
    keeps(value, "leakage audit")
    leaked = query == "red apples in winter"
    assert (value["verdict"] == "CONTAMINATED") == leaked
    (cell,) = value["cells"]
    assert (cell["train"], cell["test"], cell["looked_for"], cell["leaked"]) == ("log", "topics", 2, int(leaked))
    counts = {one["code"]: one["count"] for one in value["findings"]}
    assert counts.get("LEAK01", 0) == int(leaked)


@pytest.mark.parametrize("better", [True, False])
def test_check(
    better: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    draw = random.Random(8)
    rows = ["question,expected,retrieved_new,retrieved_old\n"]
    for number in range(40):
        others = [[f"kb-{other}" for other in draw.sample(range(400, 900), 5)] for _ in range(2)]
        hits = (number % 5 > 0, number % 5 == 0) if better else (number % 2 == 0, number % 2 == 1)
        lists = [";".join([f"kb-{number}", *ids[1:]] if hit else ids) for hit, ids in zip(hits, others, strict=True)]
        rows.append(f"how to mend part {number},kb-{number},{lists[0]},{lists[1]}\n")
    Path("results.csv").write_text("".join(rows))
    value = written("check", "results.csv", "--system", "new", "--baseline", "old", capsys=capsys)
    keeps(value, "check")
    assert value["verdict"] == ("HOLDS" if better else "CANNOT TELL")
    claim = value["claim"]
    assert (claim["system"], claim["baseline"], claim["measure"], claim["topics"]) == ("new", "old", "nDCG@10", 40)
    for one in (claim, claim["given"]):
        assert one["low"] <= one["value"] <= one["high"]
        assert one["value"] == pytest.approx(one["scores"][0] - one["scores"][1], abs=1e-6)
    assert "CLAIM03" in value["not_checked"] and re.fullmatch(r"CLAIM\d\d", value["decided_by"])


def test_the_shape_is_told_from_others() -> None:
    text = PAGE.read_text("utf-8").partition("## check\n")[2]
    example = json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1])  # type: ignore[index]
    assert faults({**example, "not_checked": [3]}, SHAPES["check"]) == [".not_checked[0] is int"]
    assert faults({**example, "claim": None}, SHAPES["check"]) == [".claim is no object"]
    del example["claim"]["given"]["low"]
    assert faults(example, SHAPES["check"]) == [".claim.given.low is missing"]

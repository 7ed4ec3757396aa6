"""The command that runs every benchmark: no script is forgotten, and a broken one does not stop the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def every(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module, with scripts and records in a folder of its own."""
    monkeypatch.syspath_prepend(str(FOLDER))
    module = pytest.importorskip("all", reason="the benchmarks are not here")
    monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(module, "RECORDED", tmp_path / "recorded.json")
    return module


def test_every_script_is_run_or_stands_in_the_list_of_those_that_are_not(every: ModuleType) -> None:
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert set(every.SMALL) | set(every.LEFT_OUT) == scripts
    assert not set(every.SMALL) & set(every.LEFT_OUT)


def test_small_sizes_are_options_of_the_scripts(every: ModuleType) -> None:
    for name, small in every.SMALL.items():
        source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        for words in small.calls:
            options = [word.partition("=")[0] for word in words.split() if word.startswith("--")]
            assert not [option for option in options if f'"{option}"' not in source and "{option}" not in source]


def test_needs_real_data_where_the_script_asks_for_it(every: ModuleType) -> None:
    asks = {path.stem for path in FOLDER.glob("*.py") if "require_shared()" in path.read_text(encoding="utf-8")}
    # A part of them works without.
    asks -= {"leakage_sensitivity", "pool_simulation"}
    assert not [name for name, small in every.SMALL.items() if name in asks and not small.shared]


def test_outcomes(every: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("import sys; print('| ours | 1,234.5× |', sys.argv[1:])")
    (tmp_path / "bad.py").write_text("raise SystemExit('no such | thing')")
    (tmp_path / "peer.py").write_text("import a_package_that_nobody_has")
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    small = every.Small(["--a 1", "--b"], {"ratio": r"\| ours \| #×", "calls": "ours"}, shared=False)
    good = every.run("good", small, 60)
    assert (dict(good.figures), good.fault, good.skipped) == ({"ratio": 1234.5, "calls": 2.0}, "", "")
    assert good.seconds > 0
    assert every.run("good", every.Small([""], {"other": "theirs #"}, shared=False), 60).fault == "prints no 'other'"
    assert every.run("bad", every.Small([""], shared=False), 60).fault == "no such | thing"
    assert (
        every.run("peer", every.Small([""], shared=False), 60).skipped == "needs the package a_package_that_nobody_has"
    )
    assert every.run("slow", every.Small([""], shared=False), 0.5).fault == "not done after 0.5 s"


def test_figures_stand_beside_those_of_this_machine_and_of_others(every: ModuleType) -> None:
    outcomes = {"good": every.Outcome(2.0, {"ratio": 3.0}), "bad": every.Outcome(1.0, fault="a | b")}
    elsewhere = {"there": {"scripts": {"good": {every.SECONDS: 8.0, "ratio": 2.0}}}}
    every.RECORDED.write_text(json.dumps(elsewhere))
    every.record({"good": every.Outcome(4.0, {"ratio": 2.0}), "bad": outcomes["bad"]}, "here")
    every.record({"other": every.Outcome(1.0)}, "here")
    kept = every.read_recorded()
    assert kept["there"] == elsewhere["there"]
    assert set(kept["here"]["scripts"]) == {"good", "other"}
    assert every.rows(outcomes, kept, "here") == [
        ["good", every.SECONDS, "2", "4", "-50%", "8"],
        ["good", "ratio", "3", "2", "+50%", "2"],
        ["bad", "BROKEN: a / b", "", "", "", ""],
    ]


@pytest.mark.parametrize(
    ("pattern", "found"), [("x #", -1234.5), ("y #", 2e-05), ("z #", None), ("a", 2.0), ("q", None)]
)
def test_numbers_in_what_is_printed(every: ModuleType, pattern: str, found: float | None) -> None:
    assert every.figure(pattern, "a x −1,234.5× y 2e-05 a z nothing") == found


def test_the_exit_code_tells_and_nothing_is_skipped_in_silence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "all.py"), "--only", "prefilter_speed"],
        env={"TRUERANK_SHARED": str(tmp_path), "PYTHONPATH": str(FOLDER.parent / "src"), "PATH": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "SKIPPED: needs TRUERANK_SHARED" in done.stdout
    assert "SKIPPED 1 of 1: prefilter_speed" in done.stdout
    assert "[1/1] prefilter_speed: 0.0 s, SKIPPED" in done.stderr

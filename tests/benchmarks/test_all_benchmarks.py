"""The commands that run every benchmark and study: no script is forgotten, a broken one does not stop the others."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Scripts of which a part works without real data.
IN_PART = {"leakage_sensitivity", "pool_simulation"}


@pytest.fixture
def every(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What runs the scripts of both folders."""
    monkeypatch.syspath_prepend(str(ROOT / "studies"))
    return pytest.importorskip("small_sizes", reason="the studies are not here")


@pytest.fixture(params=["benchmarks", "studies"])
def listed(request: pytest.FixtureRequest, every: ModuleType) -> tuple[Path, ModuleType]:
    """A folder, and the list of its scripts."""
    folder = ROOT / request.param
    spec = importlib.util.spec_from_file_location(f"all_{request.param}", folder / "all.py")
    assert spec is not None and spec.loader is not None
    sys.modules.setdefault("shared_data", every)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return folder, module


def test_every_script_is_run_or_stands_in_the_list_of_those_that_are_not(listed: tuple[Path, ModuleType]) -> None:
    folder, module = listed
    scripts = {path.stem for path in folder.glob("*.py")}
    assert set(module.SMALL) | set(module.LEFT_OUT) == scripts
    assert not set(module.SMALL) & set(module.LEFT_OUT)


def test_small_sizes_are_options_of_the_scripts(listed: tuple[Path, ModuleType]) -> None:
    folder, module = listed
    for name, small in module.SMALL.items():
        source = (folder / f"{name}.py").read_text(encoding="utf-8")
        for words in small.calls:
            options = [word.partition("=")[0] for word in words.split() if word.startswith("--")]
            assert not [option for option in options if f'"{option}"' not in source and "{option}" not in source]


def test_needs_real_data_where_the_script_asks_for_it(listed: tuple[Path, ModuleType]) -> None:
    folder, module = listed
    asks = {path.stem for path in folder.glob("*.py") if "require_shared()" in path.read_text(encoding="utf-8")}
    assert not [name for name, small in module.SMALL.items() if name in asks - IN_PART and not small.shared]


def test_outcomes(every: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("import sys; print('| ours | 1,234.5× |', sys.argv[1:])")
    (tmp_path / "bad.py").write_text("raise SystemExit('no such | thing')")
    (tmp_path / "peer.py").write_text("import a_package_that_nobody_has")
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")

    def run(name: str, small: Any, limit: float = 60) -> Any:
        return every.run(tmp_path / f"{name}.py", small, limit)

    small = every.Small(["--a 1", "--b"], {"ratio": r"\| ours \| #×", "calls": "ours"}, shared=False)
    plain = every.Small([""], shared=False)
    good = run("good", small)
    assert (dict(good.figures), good.fault, good.skipped) == ({"ratio": 1234.5, "calls": 2.0}, "", "")
    assert good.seconds > 0
    assert run("good", every.Small([""], {"other": "theirs #"}, shared=False)).fault == "prints no 'other'"
    assert run("bad", plain).fault == "no such | thing"
    assert run("peer", plain).skipped == "needs the package a_package_that_nobody_has"
    assert run("slow", plain, 0.5).fault == "not done after 0.5 s"


def test_figures_stand_beside_those_of_this_machine_and_of_others(every: ModuleType, tmp_path: Path) -> None:
    place = tmp_path / "recorded.json"
    outcomes = {"good": every.Outcome(2.0, {"ratio": 3.0}), "bad": every.Outcome(1.0, fault="a | b")}
    elsewhere = {"there": {"scripts": {"good": {every.SECONDS: 8.0, "ratio": 2.0}}}}
    place.write_text(json.dumps(elsewhere))
    every.record({"good": every.Outcome(4.0, {"ratio": 2.0}), "bad": outcomes["bad"]}, "here", place)
    every.record({"other": every.Outcome(1.0)}, "here", place)
    kept = every.read_recorded(place)
    assert kept["there"] == elsewhere["there"]
    assert set(kept["here"]["scripts"]) == {"good", "other"}
    assert every.rows(outcomes, kept, "here") == [
        ["good", every.SECONDS, "2", "4", "-50%", "8"],
        ["good", "ratio", "3", "2", "+50%", "2"],
        ["bad", "BROKEN: a / b", "", "", "", ""],
    ]


@pytest.mark.parametrize(("now", "falls"), [(2.0, False), (1.61, False), (1.59, True), (9.0, False)])
def test_only_a_ratio_that_fell_by_more_than_a_fifth_is_a_fault(every: ModuleType, now: float, falls: bool) -> None:
    outcomes = {"good": every.Outcome(99.0, {"ours, times theirs": now, "lines/s": 1.0, "new, times theirs": 1.0})}
    own = {"scripts": {"good": {every.SECONDS: 1.0, "ours, times theirs": 2.0, "lines/s": 100.0}}}
    assert [one.partition(" ")[0] for one in every.fallen(outcomes, own)] == (["good:"] if falls else [])
    assert every.fallen(outcomes, {}) == []


@pytest.mark.parametrize(
    ("pattern", "found"), [("x #", -1234.5), ("y #", 2e-05), ("z #", None), ("a", 2.0), ("q", None)]
)
def test_numbers_in_what_is_printed(every: ModuleType, pattern: str, found: float | None) -> None:
    assert every.figure(pattern, "a x −1,234.5× y 2e-05 a z nothing") == found


def test_the_exit_code_tells_and_nothing_is_skipped_in_silence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "all.py"), "--only", "prefilter_speed"],
        env={"TRUERANK_SHARED": str(tmp_path), "PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "SKIPPED: needs TRUERANK_SHARED" in done.stdout
    assert "SKIPPED 1 of 1: prefilter_speed" in done.stdout
    assert "[1/1] prefilter_speed: 0.0 s, SKIPPED" in done.stderr


@pytest.mark.parametrize(("folder", "script"), [("studies", "calibration"), ("benchmarks", "judging_store")])
def test_a_script_runs_at_its_small_size(folder: str, script: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / folder / "all.py"), "--only", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"[1/1] {script}: " in done.stderr
    assert "| processor s |" in done.stdout


@pytest.mark.parametrize("folder", ["benchmarks", "studies", "scripts", "attacks"])
def test_what_a_script_takes_from_the_package_is_there(folder: str) -> None:
    """Few of them run here, and what nobody runs is not seen to be broken."""
    lacking = []
    for script in sorted((ROOT / folder).glob("*.py")):
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("truerank"):
                continue
            try:
                module = importlib.import_module(str(node.module))
            except ImportError as error:  # of an optional dependency
                lacking += [f"{script.name}: {node.module}"] * str(error.name).startswith("truerank")
                continue
            for one in node.names:
                name = f"{node.module}.{one.name}"
                submodule = hasattr(module, "__path__") and importlib.util.find_spec(name)
                lacking += [] if hasattr(module, one.name) or submodule else [f"{script.name}: {name}"]
    assert not lacking

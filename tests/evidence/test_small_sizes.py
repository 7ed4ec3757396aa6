"""Every study and benchmark runs at a small size, and takes from the package only what is there."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from places import ROOT

#: Of each script the options of a small run, by what it needs: nothing, or the real data.
ALONE = {
    "studies/calibration": "--samples 2 --size 100 --rule lowest",
    "studies/leakage_sensitivity": "titanic",
    "studies/peer_conventions": "--seeds 1 --only pytrec_eval scikit-learn bm25s",
    "studies/skewed_differences": "--samples 400",
    "benchmarks/check_scale": "scifact --topics 20",
    "benchmarks/measures": "--topics 100 --depth 200 --repeats 3",
    "benchmarks/pool_simulation": "scale --documents 6000 --rounds 1 --simulate 0 --work pools",
    "benchmarks/significance": "--permutations 500",
}
SHARED = {
    "studies/assessors": "--seeds 1 --resamples 20 --workers 1",
    "studies/collection_planted": "--collection cacm --only twice",
    "studies/collection_shares": "--only times --seeds 1",
    "studies/corrected_scores": "coverage --simulations 10",
    "studies/explain": "inject --sets cacm --pairs 3",
    "studies/faults_in_parts": "--collection cacm --shares 0.25 --only prefix --claims 1",
    "studies/floors": "claims --sets cacm --count 1",
    "studies/leaderboard": "planted --draws 1",
    "studies/leakage_verdicts": "--sets 2 --lines 200",
    "studies/placebo": "level --remove documents --only core17 --simulations 10",
    "studies/prefilter": "--coverage --lines 200",
    "studies/survivorship_depths": "--simulate 3 --queries 300",
    "studies/track_tables": "",
    "studies/transfer_planted": "--scale 300",
    "benchmarks/encoders": "--queries 200 --rounds 2 --no-error",
    "benchmarks/leakage_audit": "speed --rounds 1 --sample 600 --only core",
    "benchmarks/lexical": "--only speed --documents 2000 --rounds 1",
    "benchmarks/near_duplicates": "generate 1000 pages",
}
#: The gallery looks at every benchmark at hand: tests/docs/test_gallery.py calls its parts. Studies call the rest.
ELSEWHERE = {"studies/gallery", "studies/peer_scores", "studies/vaswani_runs"}
QUICK = {"studies/calibration", "benchmarks/significance"}


def scripts() -> set[str]:
    """What can be called, below both folders."""
    paths = [path for folder in ("studies", "benchmarks") for path in (ROOT / folder).glob("*.py")]
    called = [path for path in paths if "__main__" in path.read_text(encoding="utf-8")]
    return {f"{path.parent.name}/{path.stem}" for path in called}


def test_every_script_is_run_here_or_elsewhere() -> None:
    assert scripts() == ALONE.keys() | SHARED.keys() | ELSEWHERE


@pytest.mark.parametrize(
    ("script", "words"),
    [
        *(pytest.param(*one, marks=() if one[0] in QUICK else pytest.mark.slow) for one in ALONE.items()),
        *(pytest.param(*one, marks=(pytest.mark.slow, pytest.mark.shared)) for one in SHARED.items()),
    ],
)
def test_a_script_runs_at_its_small_size(script: str, words: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / f"{script}.py"), *words.split()], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "it prints nothing"


@pytest.mark.parametrize("folder", ["benchmarks", "studies", "scripts"])
def test_what_a_script_takes_from_the_package_is_there(folder: str) -> None:
    """Most of them do not run in `make test`, and what nobody runs is not seen to be broken."""
    lacking = []
    for script in sorted((ROOT / folder).rglob("*.py")):
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

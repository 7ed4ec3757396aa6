"""Builds the Containerfile and runs it; without a container engine it takes the same steps in an empty environment.

    python scripts/check_container.py [--steps]

With `podman` or a running `docker`, the image is built and started. Otherwise, or with --steps, every RUN of pip and
`python -m build` runs in an empty environment, COPY copies the committed files, and `check sample` starts as
ENTRYPOINT and CMD say. Steps that need a system of their own (users, folders at the root) are named and passed over.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Step(NamedTuple):
    """One instruction: its word and what stands behind it; `stage` counts the FROM lines."""

    stage: int
    word: str
    rest: str


def steps(text: str) -> Iterator[Step]:
    """The instructions of a Containerfile, comments and blank lines left out."""
    stage = 0
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            continue
        stage += word == "FROM"
        yield Step(stage, word, rest.strip())


def engine() -> str | None:
    """A container engine that answers; None where there is none."""
    for name in ("podman", "docker"):
        if shutil.which(name) and not subprocess.run([name, "info"], capture_output=True, check=False).returncode:
            return name
    return None


def build_and_run(name: str, out: Path) -> None:
    """Builds the image and runs it with a folder of this machine."""
    subprocess.run([name, "build", "--tag", "truerank-check", "--file", "Containerfile", "."], cwd=ROOT, check=True)
    out.chmod(0o777)
    subprocess.run([name, "run", "--rm", "--network", "none", "-v", f"{out}:/work", "truerank-check"], check=True)


def take_steps(text: str, folder: Path) -> Path:
    """Takes the steps without a container; returns the folder that the last stage works in.

    Args:
        text: of the Containerfile.
        folder: an empty folder, which stands for the root of the image.
    """
    found = list(steps(text))
    programs, place = folder / "none", folder
    start: list[str] = []
    for step in found:
        match step.word:
            case "FROM":
                environment = folder / f"python{step.stage}"
                subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
                programs = environment / "bin"
            case "WORKDIR":
                place = folder / step.rest.lstrip("/")
                place.mkdir(parents=True, exist_ok=True)
            case "COPY":
                _copy(step.rest, place, folder)
            case "RUN" if step.rest.startswith(("pip ", "python ")):
                _shell(step.rest, programs, place, folder)
            case "RUN" | "USER":
                print(f"passed over, needs a container: {step.word} {step.rest}")
            case "ENTRYPOINT" | "CMD":
                start += json.loads(step.rest)
            case _:
                raise SystemExit(
                    f"Containerfile: {step.word} is not known here. teach it to scripts/check_container.py"
                )
    program = programs / start[0]
    subprocess.run([str(program), *start[1:]], cwd=place, env=_environment(programs), check=True)
    return place


def _copy(rest: str, place: Path, folder: Path) -> None:
    if rest == ". .":
        names = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True).stdout
        for name in names.split():
            target = place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
        return
    source, target = (folder / part.lstrip("/") for part in rest.removeprefix("--from=wheel ").split())
    if source != target:
        shutil.copytree(source, target)


def _shell(command: str, programs: Path, place: Path, folder: Path) -> None:
    # A path that begins at the root of the image.
    command = re.sub(r"(?<= )/(?=\w)", f"{folder}/", command)
    subprocess.run(command, shell=True, cwd=place, env=_environment(programs), check=True)


def _environment(programs: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"}


def main() -> None:
    """Checks the Containerfile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", action="store_true", help="without a container engine")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = None if given.steps else engine()
        if found is None:
            place = take_steps((ROOT / "Containerfile").read_text(encoding="utf-8"), folder)
        else:
            build_and_run(found, folder)
            place = folder
        page = place / "sample-report" / "report.html"
        if not page.is_file():
            raise SystemExit("truerank check sample: it wrote no report.html")
        print(f"{found or 'without a container engine'}: `check` wrote its report, {page.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

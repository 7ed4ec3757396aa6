"""The docs say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_reference_is_what_the_code_says() -> None:
    finished = subprocess.run(
        [sys.executable, str(ROOT / "scripts/make_reference.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_scripts_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [target for target in re.findall(r"\]\(([^)#:]+)\)", text) if not target.startswith("http")]
    assert not [target for target in links if not (page.parent / target).exists()]
    assert not [name for name in re.findall(r"(?:benchmarks|scripts)/\w+\.py", text) if not (ROOT / name).is_file()]


def test_options_of_the_readme_exist() -> None:
    reference = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    for page in PAGES:
        for command in re.findall(
            r"truerank (?:leakage|demo)[^`\n#|]*(?:\\\n[^`\n#|]*)*", page.read_text(encoding="utf-8")
        ):
            for option in re.findall(r"--[a-z][a-z-]+", command):
                assert f"`{option}" in reference, f"{page.name}: {option}"

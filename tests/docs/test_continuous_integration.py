"""The workflow of the page on continuous integration: its steps run, and end with the exit codes that the page says."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PAGE = Path(__file__).parents[2] / "docs" / "continuous-integration.md"


def steps() -> list[str]:
    """The command lines of the workflow that are truerank's."""
    text = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    every = yaml.safe_load(text[1])["jobs"]["check"]["steps"]
    return [step["run"] for step in every if step.get("run", "").startswith("truerank ")]


@pytest.mark.parametrize(("shares", "code"), [((0.9, 0.2), 0), ((0.2, 0.9), 1), ((0.5, 0.5), 3)])
def test_the_steps_end_as_the_page_says(shares: tuple[float, float], code: int, tmp_path: Path) -> None:
    draw = random.Random(8)
    rows = []
    for number in range(40):
        lists = []
        for share in shares:
            others = [f"kb-{other}" for other in draw.sample(range(400, 900), 5)]
            lists.append([f"kb-{number}", *others[1:]] if draw.random() < share else others)
        new, old = map(";".join, lists)
        rows.append(f"how to mend part {number},kb-{number},{new},{old}\n")
    head = "question,expected,retrieved_new,retrieved_old\n"
    (tmp_path / "results.csv").write_text(head + "".join(rows))
    first, second = steps()
    found = [
        subprocess.run(
            line.replace("truerank ", f"{sys.executable} -m truerank ", 1), shell=True, cwd=tmp_path, check=False
        ).returncode
        for line in (first, second)
    ]
    assert found == [code, 0]
    assert json.loads((tmp_path / "check.json").read_text())["claim"]["system"] == "new"
    assert (tmp_path / "check" / "report.html").is_file()

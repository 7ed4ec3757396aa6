"""A release: one command writes the version everywhere; the recipe and the container file follow the project."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
import tomllib

import pytest
import yaml

from places import ROOT
from truerank.version import __version__

FILES = ("src/truerank/version.py", "CITATION.cff", "CHANGELOG.md", "pyproject.toml", "packaging/conda/recipe.yaml")


def script(name):
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "scripts"))


@pytest.fixture
def checkout(tmp_path):
    for name in FILES:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    changelog = tmp_path / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(text.replace("## Unreleased\n", "## Unreleased\n\n- What changes.\n", 1), encoding="utf-8")
    return tmp_path


def recipe():
    return yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert recipe()["context"]["version"] == citation["version"] == script("release").version_of() == __version__


def test_one_command_writes_version_and_changelog(checkout):
    release = script("release")
    before = (checkout / "CHANGELOG.md").read_text()
    release.prepare("1.2.3", "2030-01-02", checkout)
    assert release.version_of(checkout) == "1.2.3"
    citation = yaml.safe_load((checkout / "CITATION.cff").read_text())
    assert (citation["version"], str(citation["date-released"])) == ("1.2.3", "2030-01-02")
    after = (checkout / "CHANGELOG.md").read_text()
    assert "\n## Unreleased\n\n## 1.2.3 – 2030-01-02\n" in after
    assert after.replace("\n\n## 1.2.3 – 2030-01-02", "", 1) == before
    assert yaml.safe_load((checkout / "packaging/conda/recipe.yaml").read_text())["context"]["version"] == "1.2.3"
    with pytest.raises(SystemExit, match=r"nothing under|has a section"):
        release.prepare("1.2.3", "2030-01-02", checkout)
    with pytest.raises(SystemExit, match="nothing under"):
        release.prepare("1.2.4", "2030-01-02", checkout)


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3 ", "1.2.3.dev1"])
def test_a_version_that_is_none_is_refused(checkout, version):
    before = [(checkout / name).read_bytes() for name in FILES]
    with pytest.raises(SystemExit, match="no version"):
        script("release").prepare(version, "2030-01-02", checkout)
    assert [(checkout / name).read_bytes() for name in FILES] == before


def test_the_recipe_needs_what_the_project_needs():
    """Read from both files apart from the script that writes the recipe."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    other = {"huggingface_hub": "huggingface-hub", "matplotlib-base": "matplotlib"}
    run = dict(one.partition(" ")[::2] for one in recipe()["requirements"]["run"])
    assert run.pop("python") == ">=${{ python_min }}"
    assert f">={recipe()['context']['python_min']}" == project["requires-python"]
    wanted = {}
    for one in project["dependencies"]:
        name, bounds = re.match(r"([\w.-]+)(.*)", one.partition(";")[0].strip()).groups()
        wanted[name.lower()] = bounds.strip()
    assert {other.get(name, name): bounds for name, bounds in run.items()} == wanted
    assert recipe()["build"]["python"]["entry_points"] == [f"truerank = {project['scripts']['truerank']}"]
    assert recipe()["about"]["license"] == project["license"]


def test_the_recipe_is_the_one_that_the_script_writes():
    content = (ROOT / "packaging/conda/recipe.yaml").read_text()
    assert content == script("release").recipe(recipe()["source"]["sha256"])


def test_the_container_checks_the_sample_of_this_package():
    found = list(script("check_container").steps((ROOT / "Containerfile").read_text()))
    assert [step.word for step in found].count("FROM") == 2
    last = {step.word: step.rest for step in found if step.stage == 2}
    assert [*json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"])][:3] == ["truerank", "check", "sample"]
    assert last["USER"] != "root"
    assert {step.word for step in found} <= {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}


def test_steps_without_a_container_run_in_their_order(tmp_path, monkeypatch):
    checked = script("check_container")
    ran: list[str] = []
    monkeypatch.setattr(
        checked.subprocess, "run", lambda words, **_: ran.append(words if isinstance(words, str) else " ".join(words))
    )
    monkeypatch.setattr(checked, "_copy", lambda rest, *_: ran.append(f"copy {rest}"))
    lines = ("FROM a AS wheel", "COPY . .", "RUN pip install build", "", "FROM b", "RUN useradd x")
    lines += ("RUN python -m x /work", "WORKDIR /work", 'ENTRYPOINT ["truerank"]', 'CMD ["check", "sample"]')
    text = "\n".join(lines)
    place = checked.take_steps(text, tmp_path)
    assert place == tmp_path / "work"
    kinds = [line.split("/")[-1] if "venv" in line or line.endswith("sample") else line for line in ran]
    assert kinds == [
        "python1",
        "copy . .",
        "pip install build",
        "python2",
        f"python -m x {tmp_path}/work",
        "truerank check sample",
    ]
    with pytest.raises(SystemExit, match="HEALTHCHECK is not known"):
        checked.take_steps("HEALTHCHECK x", tmp_path)

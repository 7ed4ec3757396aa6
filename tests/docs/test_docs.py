"""The docs say what the code does."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import truerank
from places import ROOT

sys.path.append(str(ROOT / "scripts"))
gallery_pages = pytest.importorskip("gallery_pages", reason="the scripts are not here")
make_reference = pytest.importorskip("make_reference")

TOP = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PAGES = [*TOP, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "lab").rglob("*.md"))]
#: Pages that are made when the site is built, by their places in docs/.
MADE: dict[str, str] = {
    **make_reference.pages(),
    **{f"gallery/{name}": text for name, text in gallery_pages.pages()},
}


def test_stored_help_is_what_the_code_says() -> None:
    finished = subprocess.run(
        [sys.executable, str(ROOT / "scripts/make_reference.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


def _public(module: str) -> list[object]:
    """The functions and classes that a module offers."""
    home = importlib.import_module(module)
    values = [getattr(home, name) for name in home.__all__]
    return [value for value in values if inspect.isfunction(value) or inspect.isclass(value)]


def test_all_that_is_public_is_documented() -> None:
    missing = [value for module in make_reference.MODULES for value in _public(module) if not inspect.getdoc(value)]
    for value in (value for module in make_reference.MODULES for value in _public(module) if inspect.isclass(value)):
        methods = ((name, getattr(value, name)) for name in vars(value) if not name.startswith("_"))
        missing += [value for _, method in methods if inspect.isfunction(method) and not inspect.getdoc(method)]
    assert not missing


def test_reference_has_the_front_door_and_its_options() -> None:
    page = MADE["reference/python.md"]
    modules = make_reference.MODULES
    public = [value for module in modules for value in _public(module)]
    assert all(f"| `{module}` |" in page for module in modules)
    for name in truerank.__all__:
        value = getattr(truerank, name)
        assert name == "__version__" or f"| `truerank.{name}` |" in page
        if inspect.ismodule(value):
            assert value.__name__ in modules, name
        elif callable(value):
            assert value in public, name
    for value in filter(inspect.isfunction, public):
        for parameter in inspect.signature(value).parameters.values():
            if dataclasses.is_dataclass(parameter.default):
                assert type(parameter.default) in public, f"{value.__name__}: {parameter.name}"


def test_no_page_that_is_made_is_kept() -> None:
    assert not [name for name in MADE if (ROOT / "docs" / name).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_scripts_exist(page: Path) -> None:
    """Links go to files of the repository: a page that the site adds is none."""
    text = page.read_text(encoding="utf-8")
    links = [target for target in re.findall(r"\]\(([^)#:]+)[)#]", text) if not target.startswith("http")]
    assert not [one for one in links if not (page.parent / one).exists()]
    assert not [
        name for name in re.findall(r"(?:benchmarks|studies|scripts)/\w+\.py", text) if not (ROOT / name).is_file()
    ]


def _commands() -> dict[str, str]:
    """The section of each command in the reference."""
    text = MADE["reference/commands.md"]
    found: list[tuple[str, str]] = re.findall(r"^## `truerank ([\w -]+)`$(.*?)(?=^## )", text, re.M | re.S)
    return dict(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_docs_have_these_options(page: Path) -> None:
    commands = _commands()
    text = page.read_text(encoding="utf-8")
    for shown in re.findall(r"```(?:sh|bash)\n(.*?)```", text, re.DOTALL):
        for first, second in re.findall(r"^truerank ([a-z-]+)(?: ([a-z-]+))?", shown, re.MULTILINE):
            assert first in commands or f"{first} {second}" in commands
    written = re.findall(r"truerank ((?:[a-z-]+ ?){1,2})([^`\n#|]*(?:\\\n[^`\n#|]*)*)", text)
    for words, rest in written:
        name = words.strip() if words.strip() in commands else words.split()[0]
        if name not in commands:
            continue
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", rest):
            assert f"`{option}" in commands[name] or f", {option}" in commands[name], f"{name}: {option}"


def test_functions_of_the_reference_exist_for_every_command() -> None:
    """The reference of Python has a row for each group of commands, with one function for each command."""
    readme, reference = MADE["reference/python.md"], MADE["reference/commands.md"]
    commands = [words.split() for words in re.findall(r"^## `truerank ([\w -]+)`$", reference, flags=re.MULTILINE)]
    counts: dict[str, int] = {}
    for words in commands:
        group = words[0] if len(words) > 1 else "the others"
        counts[group] = counts.get(group, 0) + 1
    rows = re.findall(r"^\| `?([\w ]+?)`? \| `(truerank[\w.]*)` \| (.*?) \|$", readme, flags=re.MULTILINE)
    for group, home, functions in rows:
        names = re.findall(r"`([\w.]+)`", functions.partition(";")[0])
        assert len(names) == counts.pop(group), group
        for name in names:
            value: object = truerank
            for part in [*home.split(".")[1:], *name.split(".")]:
                if inspect.ismodule(value) and not hasattr(value, part):
                    value = importlib.import_module(f"{value.__name__}.{part}")
                else:
                    value = getattr(value, part)
            assert inspect.isfunction(value), f"{home}.{name}"
    assert not counts


def test_every_row_of_the_papers_has_a_status() -> None:
    page = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
    statuses = {"the paper's own data", "real data, small", "generated data", "not run yet"}
    tables = page.partition("\n## ")[2]
    rows = [line.strip("| ").split(" | ") for line in tables.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0] not in ("in the paper", "---")]
    assert len(rows) > 40
    assert not [row[0] for row in rows if len(row) != 4 or row[3] not in statuses]


def test_all_pages_together_have_at_most_60000_words() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "lab").rglob("*.md")]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 60_000


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_has_at_most_1500_words_and_a_place_in_the_navigation(page: Path) -> None:
    # In the list of the papers' tables a row is looked up.
    assert page.stem == "papers" or len(page.read_text(encoding="utf-8").split()) <= 1500
    assert f": {page.name}\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_figure_is_shown() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    figures = (ROOT / "docs/images").iterdir()
    assert not [path.name for path in figures if f"images/{path.name}" not in text]


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_named_modules_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    paths = {path for path in re.findall(r"`([\w/]+\.py|[a-z_]+/[\w/]*)`", text) if not path.endswith("NAME.py")}
    roots = (
        ROOT,
        ROOT / "src",
        ROOT / "src/truerank",
        ROOT / "src/truerank/audits/leakage",
        ROOT / "src/truerank/audits/assessors",
        ROOT / "src/truerank/work",
    )
    assert not [path for path in paths if not any((root / path).exists() for root in roots)]


def test_options_of_the_glossary_exist() -> None:
    reference = MADE["reference/commands.md"]
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    sections = _commands()
    for option in set(re.findall(r"`(--[a-z][a-z-]+)", glossary)):
        assert re.search(rf"`(?:-\w, )?{option}\b", reference), option
    named = r"`(--[a-z-]+)` in ((?:`[a-z][a-z -]*`(?:, | and |))+)"
    for option, commands in re.findall(named, glossary):
        for command in re.findall(r"`([a-z -]+)`", commands):
            texts = [text for name, text in sections.items() if name == command or name.startswith(f"{command} ")]
            texts = texts or [text for name, text in sections.items() if name.endswith(f" {command}")]
            assert any(f"`{option}" in text for text in texts), f"{option} in {command}"

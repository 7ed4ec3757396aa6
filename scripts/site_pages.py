"""A hook of MkDocs, named in mkdocs.yml: adds the pages of the documentation site that do not lie in docs/.

The home page is README.md, the page on contributing is CONTRIBUTING.md. The reference is made from the code, the
gallery from docs/gallery/gallery.json. Each module of the reference gets a page, which mkdocstrings fills from its
docstrings, and so does each command. A rule's heading gets its title.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import gallery_pages
import make_reference

ROOT = Path(__file__).resolve().parent.parent
INDEX = "reference/python.md"
COMMANDS = "reference/commands.md"
_MODULE = re.compile(r"^\| `(truerank[\w.]*)` \|", re.MULTILINE)
_COMMAND = re.compile(r"^## `(truerank [\w -]+)`$\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)

_RULE = re.compile(r"^## ([A-Z]+\d\d)\n\n\*\*(.+?)\*\* \((\w+), (`[\w-]+`)\)$", re.MULTILINE)

_CODE = re.compile(r"`[^`\n]+`")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages."""
    pages = {
        "index.md": "---\nhide: [navigation]\n---\n\n" + _moved("README.md"),
        "contributing.md": _moved("CONTRIBUTING.md"),
    }
    pages |= make_reference.pages()
    pages |= {f"gallery/{name}": text for name, text in gallery_pages.pages()}
    for module in make_reference.MODULES:
        pages[f"reference/python/{module}.md"] = _reference(module)
    for name, text in _COMMAND.findall(pages[COMMANDS]):
        pages[f"reference/command/{_page(name)}.md"] = f"# `{name}`\n{_CODE.sub(_plain, text)}"
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lets links go to the pages that were added."""
    if page.file.src_uri == INDEX:
        front, title, modules = markdown.partition("## Modules")
        return front + title + _MODULE.sub(r"| [`\1`](python/\1.md) |", modules)
    if page.file.src_uri == COMMANDS:
        rows = [
            f"| [`{name}`](command/{_page(name)}.md) | {text.strip().partition(chr(10))[0]} |"
            for name, text in _COMMAND.findall(markdown)
        ]
        head, tail = markdown[: markdown.index("\n## `")], markdown[markdown.rindex("\n## ") :]
        return "\n".join((head, "\n| command | what it does |\n| --- | --- |", *rows, tail))
    if page.file.src_uri.startswith("reference/rules/"):
        return _RULE.sub(
            lambda rule: f"## {rule[1]}: {rule[2]} {{#{rule[1].lower()}}}\n\nA {rule[3]}, {rule[4]}.", markdown
        )
    return markdown.replace("](../CONTRIBUTING.md", "](contributing.md").replace("](../README.md", "](index.md")


def _plain(code: re.Match[str]) -> str:
    """Code in a table as the site has it: a bar in it needs no backslash."""
    return code[0].replace("\\|", "|")


def _page(command: str) -> str:
    return command.removeprefix("truerank ").replace(" ", "-")


def _reference(name: str) -> str:
    """A page of the reference: the module, then every public name by the place where it is defined.

    The names are looked up by importing: several packages export a function that is named like its own module, and
    reading the source alone finds the module.
    """
    module = importlib.import_module(name)
    parts = [f"# {name}", f"::: {name}\n    options: {{members: false, show_root_heading: false}}"]
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(value):
            parts.append(f"::: {value.__module__}.{value.__qualname__}")
        else:
            shown = repr(value)
            parts.append(f"## `{public}`\n\n`{shown}`" if len(shown) < 200 else f"## `{public}`")
    return "\n\n".join(parts) + "\n"


def _moved(name: str) -> str:
    """A page of the project's root, with links as from docs/; links to files outside the site become plain text."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for old, new in (("docs/", ""), ("CONTRIBUTING.md", "contributing.md"), ("README.md", "index.md")):
        text = text.replace(f"]({old}", f"]({new}")
    return re.sub(r"\[([^\]]+)\]\((?!http|images/|gallery/|#)(?![^)]*\.md)[^)]*\)", r"\1", text)

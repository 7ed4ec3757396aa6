"""Names of public classes: one class each, nouns of the field, nothing that pytest takes for a test."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import truerank

ROOT = Path(truerank.__file__).parent
#: Past participles without a noun, as names of classes.
NO_NOUNS = {"Drawn", "Found", "Judged", "Said"}


def homes() -> dict[str, list[str]]:
    """Modules by the names of their public classes."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(ROOT).as_posix())
    return found


def test_no_two_public_classes_share_a_name() -> None:
    found = homes()
    assert len(found) > 400
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}


def test_names_are_nouns() -> None:
    assert not NO_NOUNS & homes().keys()

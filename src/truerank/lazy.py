"""Packages whose public names are imported on first use, so that no command waits for the others."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazily(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, from the imports that it has for type checkers only.

    What `__dir__` returns can be its `__all__`. No public name may be that of a module of the package, unless the
    module is meant: once imported, the module would hide it.
    """
    homes: dict[str, tuple[str, str]] = {}
    for node in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        checked = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for line in node.body if isinstance(node, ast.If) and checked else [node]:
            if isinstance(line, ast.ImportFrom) and line.module:
                # `import name as name` says that a name is public, also where it is imported at once.
                named = ((alias.asname or alias.name, alias) for alias in line.names if checked or alias.asname)
                homes |= {name: (line.module, alias.name) for name, alias in named}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, called = homes[name]
        home = None if module == package else importlib.import_module(module)
        # As for `from module import name`: what is no attribute is a module.
        return getattr(home, called) if hasattr(home, called) else importlib.import_module(f"{module}.{called}")

    return get, lambda: sorted(homes, key=lambda name: (not name.isupper(), not name[0].isupper(), name))

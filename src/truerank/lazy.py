"""Packages whose public names are imported on first use, so that no command waits for the others."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["lazily"]


def lazily(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, from the imports that it has for type checkers only.

    No public name may be that of a module of the package: once imported, the module would hide it.

    Args:
        package: `__name__`.
        file: `__file__`; the imports stand in it below `if TYPE_CHECKING:`.
    """
    homes: dict[str, tuple[str, str]] = {}
    for node in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    homes |= {alias.asname or alias.name: (line.module, alias.name) for alias in line.names}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, called = homes[name]
        return getattr(importlib.import_module(module), called)

    return get, lambda: sorted(homes)

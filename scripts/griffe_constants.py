"""Shows defaults in the reference as values: an extension of Griffe, named in mkdocs.yml.

Griffe reads the source, where a default may be the name of a constant: `threshold: float = DEFAULT_THRESHOLD`. The
reference shows 0.91.
"""

from __future__ import annotations

import importlib
from typing import Any

from griffe import Attribute, Expr, ExprAttribute, ExprName, Extension, Function

_SHOWN = (str, int, float, bool, tuple, frozenset, type(None))


class Constants(Extension):
    """Replaces names of constants by their values."""

    def on_function(self, *, func: Function, **_: Any) -> None:
        """Defaults of arguments."""
        for parameter in func.parameters:
            parameter.default = _value(parameter.default, func)

    def on_attribute(self, *, attr: Attribute, **_: Any) -> None:
        """Defaults of the fields of dataclasses."""
        if attr.parent is not None and attr.parent.is_class:
            attr.value = _value(attr.value, attr)


def _value(default: str | Expr | None, owner: Function | Attribute) -> str | Expr | None:
    if not isinstance(default, (ExprName, ExprAttribute)):
        return default
    try:
        found: Any = importlib.import_module(owner.module.path)
    except ImportError:
        # An integration with a package that is not here; the reference does not show it.
        return default
    for part in str(default).split("."):
        found = getattr(found, part, owner)
    return repr(found) if isinstance(found, _SHOWN) else default

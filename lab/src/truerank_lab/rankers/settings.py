"""Settings of a network from what a user wrote."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from truerank.errors import OptionError

S = TypeVar("S")


def settings_from(kind: type[S], values: Mapping[str, Any]) -> S:
    """Settings with these values, each as the type of its default."""
    defaults: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    taken: dict[str, Any] = {}
    for name, value in values.items():
        if name not in defaults:
            raise OptionError("set_", f"no setting '{name}'", f"there are {', '.join(defaults)}")
        try:
            taken[name] = type(defaults[name])(value)
        except (TypeError, ValueError) as error:
            raise OptionError("set_", f"{name} is '{value}'", f"give a value such as {defaults[name]}") from error
    return kind(**taken)

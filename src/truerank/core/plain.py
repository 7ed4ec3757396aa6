"""Values as JSON has them: the one way from results to `summary.json` and `--json`."""

from __future__ import annotations

import dataclasses
import inspect
import math
import operator
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np


def plain(value: Any, *without: str) -> Any:  # noqa: PLR0911 - one return for each kind of value
    """A value as JSON has it.

    Dataclasses and NamedTuples become objects by their fields, in that order; a value with a method `json` says
    itself what it becomes. Paths become texts; what is not finite becomes null.

    Args:
        value: texts, numbers, paths, NumPy values, mappings, sequences, dataclasses, NamedTuples, nested at will.
        *without: fields of the outermost value that are left out.

    Raises:
        TypeError: there is no JSON for a value in it.
    """
    if not without and hasattr(value, "json") and not isinstance(value, type):
        return value.json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: plain(each) for name, each in pairs.items() if name not in without}
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items() if name not in without}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items() if name not in without}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, set | frozenset):
        return [plain(each) for each in sorted(value)]
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"there is no JSON for a {type(value).__name__}")


def picked(value: Any, names: str) -> dict[str, Any]:
    """Parts of a value as JSON has them, in the order of a text such as `"runs, sets=options.sets, sentences"`.

    Each is a field, a property, a path to one, or a method that is called; `KEY=` before it is what JSON calls it.
    """
    found = {}
    for name in names.split(", "):
        key, _, path = name.rpartition("=")
        part = operator.attrgetter(path)(value)
        found[key or path] = plain(part() if inspect.ismethod(part) else part)
    return found

"""A scheme file's keys and types, with the line of every fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from truerank.errors import InputError

_TEXT: Final = "a text"
_FLAG: Final = "true or false"
_NUMBER: Final = "a whole number"
_TEXTS: Final = "a list of texts"
_TOP: Final = {
    "name": _TEXT, "title": _TEXT, "question": _TEXT, "view": _TEXT, "guideline": _TEXT, "skip_reasons": _TEXTS,
    "version": _TEXT,
}  # fmt: skip
_CHOICE: Final = {
    "name": _TEXT, "key": _TEXT, "text": _TEXT, "group": _TEXT, "help": _TEXT, "alone": _FLAG, "grade": _NUMBER,
    "aliases": _TEXTS,
}  # fmt: skip
_GROUP: Final = {"name": _TEXT, "title": _TEXT, "required": _FLAG, "exclusive": _FLAG}
_PER_TEXT: Final = {"prefix": _TEXT, "keys": _TEXT, "group": _TEXT}
_VIEWS: Final = ("pair", "versions", "passages", "document")


class _Place:
    """Where a key stands: its path for the message, and its line as far as the text tells."""

    def __init__(self, where: str | Path, text: str) -> None:
        self._where = where
        self._lines = text.split("\n")

    def fault(self, path: str, fault: str, remedy: str) -> InputError:
        return InputError(f"{path}: {fault}" if path else fault, remedy, where=self._where, line=self._line(path))

    def _line(self, path: str) -> int | None:
        """The line of a key: after the n-th header of its table in TOML, after the n-th object's name in JSON."""
        table, _, key = path.rpartition(".")
        start = 0
        if table:
            name, number = table.rstrip("]").split("[") if "[" in table else (table, "1")
            heads = [at for at, line in enumerate(self._lines) if re.match(rf"\s*\[+\s*{re.escape(name)}\s*\]", line)]
            if len(heads) < int(number):
                return None
            start = heads[int(number) - 1]
        for at in range(start, len(self._lines)):
            if re.match(rf'\s*"?{re.escape(key)}"?\s*[=:]', self._lines[at]):
                return at + 1
            if table and at > start and re.match(r"\s*\[", self._lines[at]):
                break
        return start + 1 if table else None


def checked_values(value: Mapping[str, Any], where: str | Path, text: str) -> dict[str, Any]:
    """The scheme's keys and values after their types were looked at."""
    place = _Place(where, text)
    tables = ("choices", "groups", "per_text")
    read = _typed({key: part for key, part in value.items() if key not in tables}, _TOP, "", place)
    for key in ("name", "title", "question", "view"):
        if not read.get(key):
            raise place.fault("", f"no '{key}'", f"write {key} = …")
    if read["view"] not in _VIEWS:
        raise place.fault("view", f"no view '{read['view']}'", f"one of {', '.join(_VIEWS)}")
    read["choices"] = _objects(value.get("choices", []), "choices", _CHOICE, ("name", "key", "text"), place)
    read["groups"] = _objects(value.get("groups", []), "groups", _GROUP, ("name",), place)
    if "per_text" in value:
        read["per_text"] = _object(value["per_text"], "per_text", _PER_TEXT, ("prefix",), place)
    return read


def _objects(
    value: Any, name: str, types: Mapping[str, str], needed: tuple[str, ...], place: _Place
) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise place.fault(name, "is no list of tables", f"write [[{name}]] before each of them")
    return [_object(part, f"{name}[{number}]", types, needed, place) for number, part in enumerate(value, start=1)]


def _object(value: Any, path: str, types: Mapping[str, str], needed: tuple[str, ...], place: _Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.fault(path, "is no table", f"write {', '.join(types)} in it")
    read = _typed(value, types, f"{path}.", place)
    for key in needed:
        if key not in read or (key != "key" and read[key] == "" and not path.startswith("groups")):
            raise place.fault(f"{path}.{key}", "is missing", f"write {key} = …")
    return read


def _typed(value: Mapping[str, Any], types: Mapping[str, str], prefix: str, place: _Place) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, part in value.items():
        if key not in types:
            raise place.fault(f"{prefix}{key}", "is no key of a scheme", f"there are {', '.join(types)}")
        if not _fits(part, types[key]):
            raise place.fault(f"{prefix}{key}", f"is not {types[key]}", "correct it")
        read[key] = part.strip() if isinstance(part, str) and key != "name" else part
    return read


def _fits(value: Any, kind: str) -> bool:
    if kind == _TEXT:
        return isinstance(value, str)
    if kind == _FLAG:
        return isinstance(value, bool)
    if kind == _NUMBER:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, list) and all(isinstance(part, str) for part in value)

"""Options of a project, in `truerank.toml` or in `[tool.truerank]` of `pyproject.toml`; the command line wins."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from truerank.cli.declarations import Option
from truerank.errors import InputError
from truerank.loading import toml_file

#: The files in their order, and where in them the settings stand.
_PLACES: Final[Mapping[str, tuple[str, ...]]] = {"truerank.toml": (), "pyproject.toml": ("tool", "truerank")}


def project_settings(name: str, options: Sequence[Option], folder: Path) -> tuple[dict[str, Any], Path | None]:
    """The options of a command that the project in a folder sets, and the file that sets them.

    A table is called like the command: `[check]`, `[leakage.audit]`. Its keys are options without their hyphens in
    front, and values without a flag by their names in the help (`path`).
    """
    for file, keys in _PLACES.items():
        path = folder / file
        if not path.is_file():
            continue
        table: Any = toml_file(path)
        for key in (*keys, *name.split()):
            table = table.get(key, {}) if isinstance(table, dict) else {}
        if table or file == "truerank.toml":
            return dict(_read(name, options, table, path)), path if table else None
    return {}, None


def _key(option: Option) -> str:
    """How a file of settings calls an option."""
    longest = option.name if option.positional else max(option.flags, key=len)
    return longest.lstrip("-").replace("_", "-")


def _read(name: str, declared: Sequence[Option], table: Any, path: Path) -> Sequence[tuple[str, Any]]:
    # What a command cannot do without is on its command line.
    options = {_key(option): option for option in declared if not (option.positional and option.required)}
    found = []
    for key, value in (table if isinstance(table, dict) else {}).items():
        if isinstance(value, dict):
            continue  # of a command of this group
        option = options.get(str(key).replace("_", "-"))
        if option is None:
            near = difflib.get_close_matches(str(key).replace("_", "-"), options, n=1)
            remedy = f"did you mean '{near[0]}'?" if near else f"see 'truerank {name} --help-all'"
            raise InputError(f"'truerank {name}' has no option '{key}'", remedy, where=path)
        found.append((option.name, _value(option, value, path)))
    return found


def _value(option: Option, value: Any, path: Path) -> Any:
    """A value as the command line reads it."""
    if get_origin(option.reads) is list:
        several = value if isinstance(value, list) else [value]
        return [_single(option, get_args(option.reads)[0], one, path) for one in several]
    return _single(option, option.reads, value, path)


def _single(option: Option, kind: Any, value: Any, path: Path) -> Any:
    wanted = kind if kind in (bool, int, float) else str
    fits = isinstance(value, wanted) and not (wanted is not bool and isinstance(value, bool))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value, fits = float(value), True
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if not fits or (choices and value not in choices):
        remedy = f"one of {', '.join(choices)}" if choices else f"a {wanted.__name__.replace('str', 'text')}"
        raise InputError(f"'{_key(option)}' cannot be {value!r}", f"give {remedy}", where=path)
    return Path(value) if kind is Path else value

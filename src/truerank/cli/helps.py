"""What `--help` shows of each command, as it is stored: nothing that a command needs is imported to show it."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from truerank.cli.commands import TRUERANK, Program
from truerank.cli.declarations import Command, Option, command_at, output_options, shown_default

#: Written by scripts/make_reference.py; a test compares it with the commands.
STORED: Final = Path(__file__).with_name("help.json")
_PLAIN: Final = {kind.__name__: kind for kind in (str, int, float, bool, Path)}


class Help(NamedTuple):
    """The help of one command; attributes as in `Command`, and the options of how results are shown."""

    summary: str
    text: str
    examples: Sequence[str]
    options: Sequence[Option]
    output: Sequence[Option]


def help_of(command: Command) -> Help:
    """The help of a command that was imported."""
    return Help(command.summary, command.text, command.examples, command.options, output_options(command))


def stored_help(name: str) -> Help:
    """The help of a command as it is stored."""
    kept = _stored()[name]
    options, output = ([_option(row) for row in kept[one]] for one in _OPTIONS)
    return Help(kept["summary"], kept["text"], kept["examples"], options, output)


def summary_of(name: str, program: Program = TRUERANK) -> str:
    """The first sentence of a command."""
    if program is TRUERANK:
        return str(_stored()[name]["summary"])
    return command_at(name, program.commands[name]).summary


def written() -> str:
    """The help of all commands, as it is stored: one line for each."""
    lines = []
    for name, path in TRUERANK.commands.items():
        shown = help_of(command_at(name, path))
        rows = {one: [_row(option) for option in getattr(shown, one)] for one in _OPTIONS}
        kept = {"summary": shown.summary, "text": shown.text, "examples": shown.examples, **rows}
        lines.append(f"{json.dumps(name)}: {json.dumps(kept, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


_OPTIONS: Final = ("options", "output")
#: What of an option is stored, where it is not empty.
_FIELDS: Final = ("name", "flags", "required", "help", "metavar", "panel", "positional", "rare")


@functools.cache
def _stored() -> Any:
    return json.loads(STORED.read_text(encoding="utf-8"))


def _row(option: Option) -> dict[str, Any]:
    row = {name: value for name in _FIELDS if (value := getattr(option, name))}
    default = {} if option.required or option.default is None else {"default": shown_default(option.default)}
    return {**row, "reads": _form(option.reads), **default}


def _option(row: dict[str, Any]) -> Option:
    empty = {"required": False, "metavar": "", "panel": "", "default": None}
    reads, flags = _kind(row["reads"]), tuple(row["flags"])
    return Option(**{**empty, **row, "reads": reads, "flags": flags}, owner="", made=str)


def _form(reads: Any) -> Any:
    """A type that the command line reads, for JSON."""
    if get_origin(reads) is list:
        return {"list": _form(get_args(reads)[0])}
    return list(get_args(reads)) if get_origin(reads) is Literal else reads.__name__


def _kind(form: Any) -> Any:
    """The type of such a form."""
    if isinstance(form, dict):
        return list[_kind(form["list"])]  # type: ignore[misc]
    return Literal[tuple(form)] if isinstance(form, list) else _PLAIN[form]

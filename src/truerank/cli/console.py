"""What all commands share: how results are printed and errors end."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from truerank.judging.votes import VOTES, Votes
from truerank.work.progress import Progress, terminal_progress

__all__ = ["JsonFlag", "VotesOption", "emit", "note", "pairs_option", "progress", "say"]

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]

VotesOption = Annotated[
    Votes,
    typer.Option(
        "--votes",
        help="How several voices make one answer. " + " ".join(f"{name}: {rule}." for name, rule in VOTES.items()),
    ),
]


def emit(text: str, value: Mapping[str, Any], as_json: bool) -> None:
    """Prints a result on stdout: as text for people, or as one JSON object."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n" if as_json else text.rstrip("\n") + "\n")


def say(text: str, as_json: bool) -> None:
    """Prints a line that belongs to a result: on stdout, or on stderr where stdout is for one JSON object."""
    (sys.stderr if as_json else sys.stdout).write(text + "\n")


def note(text: str) -> None:
    """Prints a line on stderr if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(text + "\n")


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """Progress bars on stderr, only if that is a terminal."""
    with terminal_progress() as shown:
        yield shown


def pairs_option(values: list[str], option: str) -> dict[str, str]:
    """Options of the form NAME=VALUE as a mapping."""
    pairs: dict[str, str] = {}
    for value in values:
        name, separator, rest = value.partition("=")
        if not separator or not name or not rest:
            raise typer.BadParameter(f"'{value}' is not of the form NAME=VALUE", param_hint=option)
        pairs[name] = rest
    return pairs

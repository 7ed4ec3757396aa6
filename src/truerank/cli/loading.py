"""Commands that are imported when they are called, so that no command waits for what the others need."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["Entry", "LazyGroup", "loaded"]


class Entry(NamedTuple):
    """A command or a group of commands: its name, its module below `truerank.cli`, what it is called there, its help.

    The help is the first sentence of the command's own, so that the list of commands imports none of them.
    """

    name: str
    module: str
    attribute: str
    help: str

    def target(self) -> typer.Typer | Callable[..., Any]:
        """The group, or the function behind the command."""
        found: typer.Typer | Callable[..., Any] = getattr(
            importlib.import_module(f"truerank.cli.{self.module}"), self.attribute
        )
        return found


class LazyGroup(TyperGroup):
    """A group whose commands are named by `entries`."""

    entries: ClassVar[tuple[Entry, ...]] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, in their order."""
        return [entry.name for entry in self.entries]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, not yet imported; None if there is none."""
        entry = next((entry for entry in self.entries if entry.name == cmd_name), None)
        return None if entry is None else _Unloaded(entry)


class _Unloaded(TyperCommand):
    """Stands for a command in lists; takes the command itself as soon as words are parsed."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.name, help=entry.help)
        self._entry = entry

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        return loaded(self._entry).make_context(info_name, args, parent, **extra)


@functools.cache
def loaded(entry: Entry) -> Any:
    """The command itself, ready to take words."""
    # A Typer of its own, so that groups and single commands are made alike, without options for completion.
    holder = typer.Typer(rich_markup_mode="markdown", add_completion=False, callback=lambda: None)
    target = entry.target()
    if isinstance(target, typer.Typer):
        holder.add_typer(target, name=entry.name)
    else:
        holder.command(entry.name)(target)
    return typer.main.get_group(holder).commands[entry.name]

"""YAML whose every value knows its line, so that a fault can be named where it stands."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import yaml

from truerank.errors import InputError, OptionError, TruerankError
from truerank.loading import load_yaml, text_file

_VARIABLE: Final = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")
#: More values than any design has; aliases can multiply a small file without end.
_MOST: Final = 100_000
_MERGE: Final = "tag:yaml.org,2002:merge"

T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True)
class Value:
    """A value of the file: a scalar, a list of values, or a mapping of values by key.

    `line` counts from 1; `path` has the keys above, with dots.
    """

    content: Any
    file: str
    line: int
    path: str

    def fault(self, what: str, remedy: str) -> NoReturn:
        """Raises what is wrong with it, with its place."""
        name = f"{self.path}: " if self.path else ""
        raise InputError(f"{name}{what}", remedy, where=self.file, line=self.line)

    def checked(self, read: Callable[[], T]) -> T:
        """What a function gives; its errors are named as faults of this value."""
        try:
            return read()
        except TruerankError as error:
            # The option is a key of the file here.
            name = f"{error.option}: " if isinstance(error, OptionError) else ""
            self.fault(f"{name}{error.fault}".replace("`", ""), error.remedy.replace("`", ""))

    def table(self, known: Collection[str] | None = None) -> YamlMapping:
        """As a mapping, whose keys are among the known ones."""
        if not isinstance(self.content, dict):
            self.fault("no mapping", "write 'key: value' lines below it")
        if known is not None:
            for key, value in self.content.items():
                if key not in known:
                    near = difflib.get_close_matches(key, known, 1)
                    meant = f"did you mean '{near[0]}'? " if near else ""
                    replace(value, path=self.path).fault(f"unknown key '{key}'", f"{meant}known: {', '.join(known)}")
        return YamlMapping(self)

    def text(self) -> str:
        """As text; a number is taken as it is written."""
        if isinstance(self.content, bool) or not isinstance(self.content, str | int | float) or self.content == "":
            self.fault("no text", "write a text here")
        return str(self.content)

    def items(self) -> list[Value]:
        """As a list; a single value is a list of one."""
        if isinstance(self.content, list):
            return list(self.content)
        if isinstance(self.content, dict) or self.content is None:
            self.fault("no list", "write [a, b, …]")
        return [self]


class YamlMapping:
    def __init__(self, value: Value) -> None:
        self.value = value

    def __iter__(self) -> Iterator[tuple[str, Value]]:
        return iter(self.value.content.items())

    def get(self, key: str) -> Value | None:
        """The value of a key; None where it is not there, or is empty."""
        found: Value | None = self.value.content.get(key)
        return None if found is None or found.content is None else found

    def need(self, key: str, remedy: str) -> Value:
        found = self.get(key)
        if found is None:
            self.value.fault(f"no '{key}'", remedy)
        return found

    def read(self, key: str, how: Callable[[Value], T], default: D) -> T | D:
        """What a function makes of the value of a key; the default where it is not there."""
        found = self.get(key)
        return default if found is None else how(found)


def read_tree(path: Path) -> Value:
    """The tree of a file, variables of the environment filled in."""
    tree = _parsed(text_file(path, "give a YAML file"), str(path))
    if not isinstance(tree.content, dict):
        tree.fault("no mapping of keys", "write 'key: value' lines")
    return _filled(tree)


def _parsed(text: str, file: str) -> Value:
    count = 0

    def value(loader: Any, node: Any, above: str, around: tuple[int, ...]) -> Value:
        """A node with its line; `above` is its path in the file, `around` are the nodes that it lies in."""
        nonlocal count
        count += 1
        made = Value(None, file, node.start_mark.line + 1, above)
        if id(node) in around or count > _MOST:
            made.fault("an alias that contains itself, or too many values", "write the values out")
        inside = (*around, id(node))
        if isinstance(node, yaml.MappingNode):
            return replace(
                made, content=dict(_entries(node, loader, made, lambda n, key: value(loader, n, key, inside)))
            )
        if isinstance(node, yaml.SequenceNode):
            return replace(made, content=[value(loader, each, above, inside) for each in node.value])
        return replace(made, content=loader.construct_object(node))

    found = load_yaml(text, file, lambda loader, node: value(loader, node, "", ()), remedy="mend it")
    return Value(None, file, 1, "") if found is None else found


def _entries(node: Any, loader: Any, made: Value, value: Callable[[Any, str], Value]) -> Iterable[tuple[str, Value]]:
    seen: set[str] = set()
    for key_node, _ in node.value:
        if key_node.tag == _MERGE:
            continue
        name = getattr(key_node, "value", None)
        here = replace(made, line=key_node.start_mark.line + 1)
        if not isinstance(name, str):
            here.fault("a key that is not text", "write 'key: value'")
        if name in seen:
            here.fault(f"'{name}' occurs twice", "give each key once")
        seen.add(name)
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        path = f"{made.path}.{key_node.value}" if made.path else key_node.value
        found = value(value_node, path)
        # The line of the key: where a value is long, or empty, that is where its reader looks.
        yield key_node.value, replace(found, line=key_node.start_mark.line + 1)


def _filled(value: Value) -> Value:
    """The tree with the variables of its texts replaced."""
    if isinstance(value.content, dict):
        return replace(value, content={key: _filled(each) for key, each in value.content.items()})
    if isinstance(value.content, list):
        return replace(value, content=[_filled(each) for each in value.content])

    def found(match: re.Match[str]) -> str:
        taken = os.environ.get(match["name"]) or match["default"]
        if taken is None:
            value.fault(f"the variable {match['name']} is not set", "set it")
        return taken

    return replace(value, content=_VARIABLE.sub(found, value.content)) if isinstance(value.content, str) else value

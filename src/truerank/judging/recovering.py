"""What can still be read of a damaged store, in a new one beside it. The damaged file is not touched."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from truerank.errors import InputError
from truerank.judging.events import Annotator, Draft, Event, Role
from truerank.judging.items import Item
from truerank.judging.schemes import Scheme
from truerank.judging.store import Store
from truerank.judging.store_rows import (
    EVENT,
    Contents,
    append_history,
    check_draft,
    connected,
    event_of,
    fill,
    item_of,
)
from truerank.loading import load_json

#: What a row can be that is not what it was.
_BROKEN: Final = (InputError, sqlite3.Error, UnicodeError, ValueError, TypeError, KeyError, AttributeError)
#: Numbers of rows that are asked for one by one, at most.
_MOST: Final = 1 << 20


@contextlib.contextmanager
def recovered(path: Path) -> Iterator[tuple[Store, int]]:
    """A store of the rows that can be read, and how many cannot; an event without its item or annotator is lost too."""
    if not path.is_file():
        raise InputError("no store there", "give the damaged store", where=path)
    with tempfile.TemporaryDirectory(prefix="truerank-") as temporary:
        copy, made = Path(temporary) / "copy", Path(temporary) / path.name
        shutil.copyfile(path, copy)
        wal = path.with_name(f"{path.name}-wal")
        if wal.is_file():
            shutil.copyfile(wal, copy.with_name("copy-wal"))
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            lost = _filled(made, connection, path)
        with Store.open(made) as store:
            yield store, lost


def _filled(made: Path, damaged: sqlite3.Connection, path: Path) -> int:
    """Writes the new store; how many rows it lacks."""
    meta = dict(_rows(damaged, "meta", "key", "value").values())
    try:
        scheme = Scheme.from_json(load_json(meta["scheme"], path), path)
        seed, plan = int(meta.get("seed", 0)), load_json(meta.get("plan", "{}"), path)
    except _BROKEN as error:
        raise InputError("not even its scheme can be read", "take a copy of the store", where=path) from error
    bodies, lost = _numbered(damaged, "items", "position", "body")
    items: dict[str, Item] = {}
    for (body,) in bodies:
        try:
            item = item_of(body, path)
        except _BROKEN:
            lost += 1
            continue
        items[item.item_id] = item
    people: dict[str, Annotator] = {}
    for row in _rows(damaged, "annotators", "name", "role, about").values():
        if all(isinstance(value, str) for value in row) and row[1] in get_args(Role):
            people[row[0]] = Annotator(*row)
    work: dict[str, list[str]] = {name: [] for name in people}
    for name, _, item_id in _rows(damaged, "assignments", "annotator, place", "item_id").values():
        if name in work and item_id in items:
            work[name].append(item_id)
    fill(made, Contents(scheme, items.values(), [*people.values()], work, {"seed": seed, "plan": plan}), path)
    events, missing = _numbered(damaged, "events", "number", EVENT)
    with contextlib.closing(connected(made)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # the copy need not outlive this process
        connection.execute("BEGIN IMMEDIATE")
        kept = _replayed(connection, events, (items, people, scheme), path)
        connection.execute("COMMIT")
    return lost + missing + len(events) - kept


def _replayed(
    connection: sqlite3.Connection,
    rows: list[tuple[Any, ...]],
    known: tuple[Mapping[str, Item], Mapping[str, Annotator], Scheme],
    path: Path,
) -> int:
    """Adds the events that are whole, in their order; how many."""
    items, people, scheme = known
    numbers: dict[int, int] = {}
    for row in rows:
        try:
            event = event_of(row, path)
            if event.item_id not in items or event.annotator not in people:
                continue
            # Labels that the scheme lacks are damaged ones; those that exclude each other may have been imported so.
            scheme.known(event.labels, items[event.item_id])
            numbers[event.number] = _added(connection, event, numbers, people[event.annotator].role, path)
        except _BROKEN:
            continue
    return len(numbers)


def _added(connection: sqlite3.Connection, event: Event, numbers: Mapping[int, int], role: Role, path: Path) -> int:
    draft = Draft(*event[2:10], at=event.at)
    check_draft(draft, role, path)
    back = numbers[event.undoes] if event.undoes is not None else 0
    return append_history(connection, [draft], [back])[0].number


def _rows(connection: sqlite3.Connection, table: str, key: str, columns: str) -> dict[Any, tuple[Any, ...]]:
    """The rows of a table that can be read from its beginning and from its end, by key."""
    names = key.split(", ")
    found: dict[Any, tuple[Any, ...]] = {}
    for order in ("ASC", "DESC"):
        asked = ", ".join(f"{name} {order}" for name in names)
        with contextlib.suppress(sqlite3.Error, UnicodeError):
            for row in connection.execute(f"SELECT {key}, {columns} FROM {table} ORDER BY {asked}"):
                found.setdefault(row[: len(names)], row)
    return dict(sorted(found.items(), key=lambda one: tuple(map(repr, one[0])))) if len(names) > 1 else found


def _numbered(connection: sqlite3.Connection, table: str, key: str, columns: str) -> tuple[list[tuple[Any, ...]], int]:
    """The rows of a table with numbers from 1, in order, and how many of those numbers have none."""
    found = {row[0]: row[1:] for (number,), row in _rows(connection, table, key, columns).items() if number > 0}
    last = max(found, default=0)
    with contextlib.suppress(sqlite3.Error, UnicodeError):
        for (number,) in connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)):
            last = number if isinstance(number, int) and last < number <= last + _MOST else last
    for number in range(1, min(last, _MOST) + 1):
        if number not in found:
            with contextlib.suppress(sqlite3.Error, UnicodeError):
                row = connection.execute(f"SELECT {columns} FROM {table} WHERE {key} = ?", (number,)).fetchone()
                if row is not None:
                    found[number] = row
    return [found[number] for number in sorted(found)], last - len(found)

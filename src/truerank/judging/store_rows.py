"""The rows of a store: its tables, and every statement that writes to them. All run inside a caller's transaction."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from truerank.errors import InputError
from truerank.judging.events import Annotator, Draft, Event, Kind, Role
from truerank.judging.items import Item
from truerank.judging.schemes import Scheme
from truerank.loading import load_json, opened
from truerank.sources.query_files import well_formed

#: "trkj": what `file` and we know a store by.
APPLICATION_ID: Final = 0x74726B6A
#: The layout of the tables; a store of a higher one is refused.
VERSION: Final = 1
#: The columns of an event, in the order of `Event`.
EVENT: Final = "number, at, item_id, annotator, kind, labels, comment, reason, seconds, token, undoes"
_LONGEST_NAME: Final = 200
_LONGEST_COMMENT: Final = 20_000
_BUSY_SECONDS: Final = 30.0

_OF_DAMAGE: Final = ("malformed", "not a database", "decode", "corrupt", "no such table", "no such column")
_ITEM_TEXTS: Final = ("item_id", "topic_id", "title", "description", "narrative", "variant", "dataset", "stratum")
#: What holds of every row.
_RIGHT: Final = {
    "meta": "typeof(key) = 'text' AND typeof(value) = 'text'",
    "items": "typeof(item_id) = 'text' AND typeof(topic_id) = 'text' AND typeof(body) = 'text'",
    "annotators": (
        "typeof(name) = 'text' AND role IN ('person', 'model', 'adjudicator') AND typeof(about) = 'text'"
        " AND typeof(token_hash) = 'text'"
    ),
    "assignments": (
        "typeof(place) = 'integer' AND state IN ('', 'label', 'skip')"
        " AND EXISTS (SELECT 1 FROM items AS i WHERE i.item_id = assignments.item_id)"
    ),
    "events": (
        "typeof(at) = 'text' AND typeof(item_id) = 'text' AND kind IN ('label', 'skip', 'undo', 'adjudicate')"
        " AND CASE WHEN json_valid(labels) THEN json_type(labels) = 'array' ELSE 0 END AND typeof(comment) = 'text'"
        " AND typeof(reason) = 'text' AND typeof(seconds) IN ('real', 'integer') AND typeof(token) = 'text'"
        " AND typeof(undoes) IN ('null', 'integer') AND annotator IN (SELECT name FROM annotators)"
    ),
    "live": "number IN (SELECT number FROM events) AND adjudication IN (0, 1)",
}

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE items (
    position INTEGER PRIMARY KEY, item_id TEXT NOT NULL UNIQUE, topic_id TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE annotators (
    name TEXT PRIMARY KEY, role TEXT NOT NULL CHECK (role IN ('person', 'model', 'adjudicator')),
    about TEXT NOT NULL, token_hash TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE assignments (
    annotator TEXT NOT NULL REFERENCES annotators, place INTEGER NOT NULL, item_id TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT '', PRIMARY KEY (annotator, place), UNIQUE (annotator, item_id)) WITHOUT ROWID;
CREATE INDEX assignments_by_state ON assignments (annotator, state, place);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, item_id TEXT NOT NULL,
    annotator TEXT NOT NULL REFERENCES annotators,
    kind TEXT NOT NULL CHECK (kind IN ('label', 'skip', 'undo', 'adjudicate')),
    labels TEXT NOT NULL, comment TEXT NOT NULL, reason TEXT NOT NULL, seconds REAL NOT NULL, token TEXT NOT NULL,
    undoes INTEGER REFERENCES events);
CREATE UNIQUE INDEX event_tokens ON events (annotator, token) WHERE token <> '';
CREATE INDEX events_by_item ON events (item_id, annotator);
CREATE INDEX events_by_annotator ON events (annotator, number);
CREATE TABLE live (
    annotator TEXT NOT NULL, number INTEGER NOT NULL, item_id TEXT NOT NULL, adjudication INTEGER NOT NULL,
    PRIMARY KEY (annotator, number)) WITHOUT ROWID;
CREATE INDEX live_by_item ON live (item_id, annotator, adjudication, number);
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
"""


def is_store(path: str | Path) -> bool:
    """Whether a file is a judging store of whatever version, by its first bytes."""
    try:
        with opened(Path(path)) as stream:
            head = stream.read(100)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:72] == APPLICATION_ID.to_bytes(4, "big")


def connected(path: Path) -> sqlite3.Connection:
    """A connection as stores want it: flushed at every commit, patient with other writers."""
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


@contextlib.contextmanager
def faults(path: Path) -> Iterator[None]:
    """What SQLite cannot do, as an error that the user can mend."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise broken(error, path) from error
    except sqlite3.DatabaseError as error:
        if any(words in str(error) for words in _OF_DAMAGE):
            raise broken(error, path) from error
        remedy = "check its permissions and the free space, or take a copy"
        raise InputError(f"the store cannot be used ({error})", remedy, where=path) from error


def broken(why: object, path: Path) -> InputError:
    """That a store does not hold what it should."""
    remedy = "take a copy, or save what can be read: truerank judge export STORE FILE --recover"
    return InputError(f"the store is damaged ({str(why).partition(chr(10))[0][:120]})", remedy, where=path)


def check_content(reader: Reader, path: Path) -> None:
    """Reads a store as a whole: its pages and indexes, and whether its rows have the types that they should."""
    answer = reader.row("PRAGMA integrity_check(1)")
    if answer != ("ok",):
        raise broken(answer and answer[0], path)
    for table, right in _RIGHT.items():
        if reader.row(f"SELECT 1 FROM {table} WHERE NOT ifnull({right}, 0) LIMIT 1") is not None:
            raise broken(f"a row of {table}", path)


def item_of(body: str, path: Path) -> Item:
    """The item of a row."""
    try:
        item = Item.from_json(load_json(body, path))
        texts = [getattr(item, name) for name in _ITEM_TEXTS]
        texts += [value for text in item.texts for value in (text.name, text.text, text.id, text.url)]
        numbers = [item.probability, 0.0 if item.score is None else item.score]
        if all(isinstance(text, str) for text in texts) and all(isinstance(one, int | float) for one in numbers):
            return item
        fault: object = "a row of items"
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        fault = error
    raise broken(fault, path)


def check_file(path: Path) -> None:
    """Raises an InputError for a file that is no store, or one of a newer version."""
    if not path.is_file():
        raise InputError("no store there", "make one with 'truerank judge new'", where=path)
    if not is_store(path):
        raise InputError("is no judging store", "give a file that 'truerank judge new' made", where=path)
    with path.open("rb") as stream:
        version = int.from_bytes(stream.read(64)[60:64], "big")
    if version > VERSION:
        raise InputError(f"a store of version {version}; this truerank knows {VERSION}", "update truerank", where=path)


class Contents(NamedTuple):
    """What a new store holds."""

    scheme: Scheme
    items: Iterable[Item]
    annotators: Sequence[Annotator]
    assignments: Mapping[str, Sequence[str]]
    meta: Mapping[str, Any]


def fill(temporary: Path, contents: Contents, path: Path) -> None:
    """Writes a new store to a temporary file; `path` is its name in messages."""
    scheme, items, annotators, assignments, meta = contents
    temporary.unlink(missing_ok=True)
    with contextlib.closing(connected(temporary)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_TABLES)
        connection.execute("BEGIN IMMEDIATE")
        values = {"scheme": scheme.json(), **meta, "created": _now()}
        texts = ((key, value if isinstance(value, str) else dumps(value)) for key, value in values.items())
        connection.executemany("INSERT INTO meta VALUES (?, ?)", texts)
        _insert_items(connection, items, path)
        for annotator in annotators:
            add_annotator(connection, checked_annotator(annotator, path), path)
        for name, item_ids in assignments.items():
            _assign(connection, name, item_ids, path)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _insert_items(connection: sqlite3.Connection, items: Iterable[Item], path: Path) -> None:
    number = 0
    for item in items:
        number += 1
        row = (number, item.item_id, item.topic_id, dumps(item.json()))
        try:
            connection.execute("INSERT INTO items VALUES (?, ?, ?, ?)", row)
        except sqlite3.IntegrityError as error:
            raise InputError(f"two items '{item.item_id[:80]}'", "give each an id of its own", where=path) from error
    if not number:
        raise InputError("nothing to judge", "give items, or a larger sample", where=path)


def _assign(connection: sqlite3.Connection, annotator: str, item_ids: Sequence[str], path: Path) -> None:
    known = "SELECT 1 FROM items WHERE item_id = ?"
    for place, item_id in enumerate(item_ids, start=1):
        if connection.execute(known, (item_id,)).fetchone() is None:
            raise InputError(f"'{annotator}' is to judge '{item_id[:80]}', which is no item", "check it", where=path)
        connection.execute(
            "INSERT INTO assignments (annotator, place, item_id) VALUES (?, ?, ?)", (annotator, place, item_id)
        )


def extend(connection: sqlite3.Connection, rows: list[tuple[str, str, str]], annotator: str, path: Path) -> int:
    """Adds items and assigns them; returns how many the annotator did not have."""
    added = 0
    (place,) = connection.execute(
        "SELECT IFNULL(MAX(place), 0) FROM assignments WHERE annotator = ?", (annotator,)
    ).fetchone()
    for item_id, topic_id, body in rows:
        there = connection.execute("SELECT body FROM items WHERE item_id = ?", (item_id,)).fetchone()
        if there is None:
            connection.execute(
                "INSERT INTO items SELECT IFNULL(MAX(position), 0) + 1, ?, ?, ? FROM items", (item_id, topic_id, body)
            )
        elif there[0] != body:
            raise InputError(f"another item '{item_id[:80]}' is there", "give each an id of its own", where=path)
        place += 1
        added += connection.execute(
            "INSERT OR IGNORE INTO assignments (annotator, place, item_id) VALUES (?, ?, ?)",
            (annotator, place, item_id),
        ).rowcount
        _settle(connection, annotator, item_id)
    return added


def checked_annotator(annotator: Annotator, path: Path) -> Annotator:
    """The annotator, if name and role can be stored."""
    name = annotator.name
    if not name or name != name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise InputError(f"'{name[:80]}' is no name for an annotator", "use visible characters", where=path)
    if annotator.role not in get_args(Role):
        raise InputError(f"no role '{annotator.role}'", f"one of {', '.join(get_args(Role))}", where=path)
    return annotator


def add_annotator(connection: sqlite3.Connection, annotator: Annotator, path: Path) -> None:
    """Adds an annotator, or takes over what is new about one of the same role."""
    row = connection.execute("SELECT role FROM annotators WHERE name = ?", (annotator.name,)).fetchone()
    if row is None:
        connection.execute("INSERT INTO annotators (name, role, about) VALUES (?, ?, ?)", annotator)
    elif row[0] != annotator.role:
        raise InputError(
            f"'{annotator.name}' is there as {row[0]}, not as {annotator.role}", "use another name", where=path
        )
    elif annotator.about:
        connection.execute("UPDATE annotators SET about = ? WHERE name = ?", (annotator.about, annotator.name))


def check_draft(draft: Draft, role: Role, path: Path) -> None:
    """Whether an event by somebody of this role may be added; labels are not looked at, but for their absence."""
    if draft.kind not in get_args(Kind):
        raise InputError(f"no event of the kind '{draft.kind}'", "use label, skip or adjudicate", where=path)
    if draft.kind in ("label", "adjudicate") and not draft.labels:
        raise InputError("no label", "leave the item out", where=path)
    if draft.kind == "adjudicate" and role == "model":
        raise InputError("a model does not adjudicate", "let a person do it", where=path)
    if draft.kind == "skip" and not draft.reason.strip():
        raise InputError("a skip without a reason", "give one", where=path)
    if not (math.isfinite(draft.seconds) and draft.seconds >= 0):
        raise InputError(f"{draft.seconds} seconds", "give a number of seconds from 0", where=path)
    for name, text in (("comment", draft.comment), ("reason", draft.reason)):
        if well_formed(text) != text:
            raise InputError(f"a {name} with halves of characters", "write it again", where=path)
        if len(text) > _LONGEST_COMMENT:
            raise InputError(f"a {name} of {len(text):,} characters", f"at most {_LONGEST_COMMENT:,}", where=path)
    if len(draft.token) > _LONGEST_NAME or not draft.token.isprintable():
        raise InputError("no token", f"at most {_LONGEST_NAME} visible characters", where=path)


def append(connection: sqlite3.Connection, draft: Draft) -> Event:
    """Adds an event that holds from now on; the earlier event of its token comes back instead."""
    earlier = _of_token(connection, draft.annotator, draft.token)
    if earlier is not None:
        return earlier
    event = _insert(connection, draft)
    live = (draft.annotator, event.number, draft.item_id, int(draft.kind == "adjudicate"))
    connection.execute("INSERT INTO live VALUES (?, ?, ?, ?)", live)
    _settle(connection, draft.annotator, draft.item_id)
    return event


def append_history(connection: sqlite3.Connection, drafts: Sequence[Draft], undoes: Sequence[int]) -> tuple[Event, ...]:
    """Adds events in order; `undoes` as in `Store.record_history`."""
    events: list[Event] = []
    for draft, back in zip(drafts, undoes, strict=True):
        if draft.kind != "undo":
            events.append(append(connection, draft))
            continue
        earlier = _of_token(connection, draft.annotator, draft.token)
        number = back if back > 0 else events[-back - 1].number
        if earlier is None:
            _take_back(connection, draft.annotator, number, draft.item_id)
        events.append(earlier or _insert(connection, draft, undoes=number))
    return tuple(events)


def undo(connection: sqlite3.Connection, annotator: str, token: str) -> Event | None:
    """Takes back the last event of an annotator that holds."""
    earlier = _of_token(connection, annotator, token)
    if earlier is not None:
        return earlier
    last = connection.execute(
        "SELECT number, item_id FROM live WHERE annotator = ? ORDER BY number DESC LIMIT 1", (annotator,)
    ).fetchone()
    if last is None:
        return None
    number, item_id = last
    _take_back(connection, annotator, number, item_id)
    return _insert(connection, Draft(item_id, annotator, "undo", token=token), undoes=number)


def _take_back(connection: sqlite3.Connection, annotator: str, number: int, item_id: str) -> None:
    connection.execute("DELETE FROM live WHERE annotator = ? AND number = ?", (annotator, number))
    _settle(connection, annotator, item_id)


def _settle(connection: sqlite3.Connection, annotator: str, item_id: str) -> None:
    """Notes beside an assignment what stands: nothing, a label or a skip. It follows from `live`."""
    connection.execute(
        """UPDATE assignments SET state = IFNULL((SELECT kind FROM events WHERE number = (
            SELECT MAX(number) FROM live WHERE item_id = ?1 AND annotator = ?2 AND adjudication = 0)), '')
        WHERE annotator = ?2 AND item_id = ?1""",
        (item_id, annotator),
    )


def _of_token(connection: sqlite3.Connection, annotator: str, token: str) -> Event | None:
    if not token:
        return None
    row = connection.execute(
        f"SELECT {EVENT} FROM events WHERE annotator = ? AND token = ? AND token <> ''", (annotator, token)
    ).fetchone()
    return None if row is None else event_of(row, Path("the store"))


def _insert(connection: sqlite3.Connection, draft: Draft, undoes: int | None = None) -> Event:
    at = draft.at or _now()
    values = (
        at, draft.item_id, draft.annotator, draft.kind, dumps(list(draft.labels)), draft.comment, draft.reason,
        float(draft.seconds), draft.token, undoes,
    )  # fmt: skip
    columns = EVENT.partition(", ")[2]
    number = connection.execute(f"INSERT INTO events ({columns}) VALUES ({', '.join('?' * 10)})", values).lastrowid
    return Event(
        number or 0, at, draft.item_id, draft.annotator, draft.kind, draft.labels, draft.comment, draft.reason,
        float(draft.seconds), draft.token, undoes,
    )  # fmt: skip


def event_of(row: tuple[Any, ...], path: Path) -> Event:
    """The event of a row."""
    return Event._make((*row[:5], labels_of(row[5], path), *row[6:]))


def labels_of(text: str, path: Path) -> tuple[str, ...]:
    """The labels of an event."""
    labels = load_json(text, path)
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise broken("labels of an event", path)
    return tuple(labels)


def _now() -> str:
    now = datetime.datetime.now(datetime.UTC)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def dumps(value: Any) -> str:
    """Compact JSON; halves of surrogate pairs, which no file can hold, are replaced."""
    return well_formed(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def put(temporary: Path, place: Path) -> None:
    """Gives the finished file its name, unless that is taken; where the disk knows no links, by renaming."""
    try:
        os.link(temporary, place)
    except FileExistsError:
        raise
    except OSError:
        if place.exists():
            raise FileExistsError(place) from None
        temporary.replace(place)


_FETCHED: Final = 500


class Reader:
    """Reads rows, from any thread.

    Args:
        path: the store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self.connections: list[sqlite3.Connection] = []

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._reading() as connection:
            return connection.execute(statement, values).fetchall()

    def row(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row of a query, None where there is none."""
        rows = self.rows(statement, *values)
        return rows[0] if rows else None

    def stream(self, statement: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a query one by one, as they were when it began."""
        with self._reading() as connection, contextlib.closing(connection.execute(statement, values)) as cursor:
            while rows := cursor.fetchmany(_FETCHED):
                yield from rows

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            connections, self.connections, self._idle = self.connections, [], []
        for connection in connections:
            connection.close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else uses meanwhile."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        with faults(self._path):
            connection = connection or self._opened()
            try:
                yield connection
            finally:
                with self._lock:
                    self._idle.append(connection)

    def _opened(self) -> sqlite3.Connection:
        connection = connected(self._path)
        with self._lock:
            self.connections.append(connection)
        return connection

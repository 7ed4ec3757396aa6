"""The store of an annotation: items, who judges which, and what was said, as events that are only ever added.

One SQLite file in WAL mode. `events` is the truth and is never changed; `live` lists the events that still hold, so
that the next item and the progress are found without reading the history.
"""

from __future__ import annotations

import contextlib
import datetime
import hmac
import json
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, cast, get_args

from truerank.errors import InputError
from truerank.judging.database import Reader, Writer, broken, connected, faults, unsettled
from truerank.judging.items import Annotator, Disagreement, Draft, Event, Item, JudgingProgress, Kind, Role, Standing
from truerank.judging.schemes import Scheme
from truerank.loading import load_json, opened
from truerank.records import Input
from truerank.sources.compressed import checked_file
from truerank.sources.query_files import well_formed
from truerank.work.artifacts import digest
from truerank.work.runs import Run, plain, run

#: "trkj": what `file` and we know a store by.
APPLICATION_ID: Final = 0x74726B6A
#: The layout of the tables; a store of another one is refused.
VERSION: Final = 2
#: The columns of an event, in the order of `Event`.
EVENT: Final = "number, at, item_id, annotator, kind, labels, comment, reason, seconds, token, undoes"
_KEPT: Final = {
    "meta": "key, value",
    "items": "item_id, topic_id, body",
    "annotators": "name, role, about, token_hash",
    "events": EVENT.removeprefix("number, "),
}
_SECONDS: Final = "CAST(seconds AS INTEGER), CAST((seconds - CAST(seconds AS INTEGER)) * 9007199254740992 AS INTEGER)"


def _sum(columns: str) -> str:
    """The checksum of a row, from the texts and types of its columns. Its number is in indexes, which are compared."""
    values = columns.replace("seconds", _SECONDS).split(", ") + [f"typeof({name})" for name in columns.split(", ")]
    return f"crc32(CAST(printf('{'%s|' * len(values)}', {', '.join(values)}) AS BLOB))"


_SUMS: Final = {table: _sum(columns) for table, columns in _KEPT.items()}
#: What holds of a row that is as it was written.
FITS: Final = {table: f"sum = {made}" for table, made in _SUMS.items()}
_ADD: Final = {
    table: f"INSERT INTO {table} ({columns}, sum) SELECT *, {_SUMS[table]} FROM (SELECT ? AS "
    f"{columns.replace(', ', ', ? AS ')})"
    for table, columns in _KEPT.items()
}
_ASSIGN: Final = "INSERT INTO assignments (annotator, place, item_id) VALUES (?, ?, ?)"
_LONGEST_NAME: Final = 200
_LONGEST_COMMENT: Final = 20_000

#: What holds of every row.
_RIGHT: Final = {
    **FITS,
    "events": f"{FITS['events']} AND annotator IN (SELECT name FROM annotators)",
    "assignments": (
        "typeof(place) = 'integer' AND state IN ('', 'label', 'skip')"
        " AND EXISTS (SELECT 1 FROM items AS i WHERE i.item_id = assignments.item_id)"
    ),
    "live": "number IN (SELECT number FROM events) AND adjudication IN (0, 1)",
}

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE items (
    position INTEGER PRIMARY KEY AUTOINCREMENT, item_id TEXT NOT NULL UNIQUE, topic_id TEXT NOT NULL,
    body TEXT NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE annotators (
    name TEXT PRIMARY KEY, role TEXT NOT NULL CHECK (role IN ('person', 'model', 'adjudicator')),
    about TEXT NOT NULL, token_hash TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE assignments (
    annotator TEXT NOT NULL REFERENCES annotators, place INTEGER NOT NULL, item_id TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT '', PRIMARY KEY (annotator, place), UNIQUE (annotator, item_id)) WITHOUT ROWID;
CREATE INDEX assignments_by_state ON assignments (annotator, state, place);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, item_id TEXT NOT NULL,
    annotator TEXT NOT NULL REFERENCES annotators,
    kind TEXT NOT NULL CHECK (kind IN ('label', 'skip', 'undo', 'adjudicate')),
    labels TEXT NOT NULL, comment TEXT NOT NULL, reason TEXT NOT NULL, seconds REAL NOT NULL, token TEXT NOT NULL,
    undoes INTEGER REFERENCES events, sum INTEGER NOT NULL);
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


def check_content(reader: Reader, path: Path) -> None:
    """Reads a store as a whole: its pages and indexes, and whether its rows are as they were written."""
    answer = reader.row("PRAGMA integrity_check(1)")
    if answer != ("ok",):
        raise broken(answer and answer[0], path)
    for table, right in _RIGHT.items():
        if reader.row(f"SELECT 1 FROM {table} WHERE NOT ifnull({right}, 0) LIMIT 1") is not None:
            raise broken(f"a row of {table}", path)


def item_of(body: str, path: Path) -> Item:
    try:
        return Item.from_json(load_json(body, path))
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise broken(error, path) from error


def check_file(path: Path) -> None:
    """Raises an InputError for a file that is not a store, or one of another version."""
    if not path.is_file():
        raise InputError("no store there", "make one with 'truerank judge new'", where=path)
    if not is_store(checked_file(path)):
        raise InputError("is not a judging store", "give a file that 'truerank judge new' made", where=path)
    refuse_older(path)
    with path.open("rb") as stream:
        head = stream.read(64)
    whole, there = int.from_bytes(head[16:18], "big") * int.from_bytes(head[28:32], "big"), path.stat().st_size
    if there < whole and not unsettled(path):
        raise broken(f"{there:,} of {whole:,} bytes", path)
    version = int.from_bytes(head[60:64], "big")
    if version != VERSION:
        raise InputError(f"a store of version {version}; this truerank knows {VERSION}", "update truerank", where=path)


def refuse_older(path: Path) -> None:
    """Raises an InputError for a store of an older version."""
    with path.open("rb") as stream:
        version = int.from_bytes(stream.read(64)[60:64], "big")
    if 0 < version < VERSION:
        remedy = "export its labels with the truerank that made it, and import them into a new store"
        raise InputError(f"a store of version {version}; this truerank knows {VERSION}", remedy, where=path)


def fill(
    temporary: Path,
    path: Path,
    scheme: Scheme,
    items: Iterable[Item],
    *,
    annotators: Iterable[Annotator],
    work: Mapping[str, Sequence[str]],
    meta: Mapping[str, Any],
) -> None:
    """Writes a new store to a temporary file; `path` is its name in messages."""
    temporary.unlink(missing_ok=True)
    with contextlib.closing(connected(temporary)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_TABLES)
        connection.execute("BEGIN IMMEDIATE")
        values = {"scheme": scheme.json(), **meta, "created": _now()}
        texts = ((key, value if isinstance(value, str) else dumps(value)) for key, value in values.items())
        connection.executemany(_ADD["meta"], texts)
        item = None
        for item in items:
            try:
                connection.execute(_ADD["items"], (item.item_id, item.topic_id, dumps(item.json())))
            except sqlite3.IntegrityError as error:
                fault = f"two items '{item.item_id[:80]}'"
                raise InputError(fault, "give each an id of its own", where=path) from error
        if item is None:
            raise InputError("nothing to judge", "give items, or a larger sample", where=path)
        for annotator in annotators:
            add_annotator(connection, checked_annotator(annotator, path), path)
        for name, item_ids in work.items():
            for place, item_id in enumerate(item_ids, start=1):
                if connection.execute("SELECT 1 FROM items WHERE item_id = ?", (item_id,)).fetchone() is None:
                    raise InputError(
                        f"'{name}' is to judge '{item_id[:80]}', which is not an item", "check it", where=path
                    )
                connection.execute(_ASSIGN, (name, place, item_id))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def extend(connection: sqlite3.Connection, rows: list[tuple[str, str, str]], annotator: str, path: Path) -> int:
    """Adds items and assigns them; returns how many the annotator did not have."""
    added = 0
    (place,) = connection.execute(
        "SELECT IFNULL(MAX(place), 0) FROM assignments WHERE annotator = ?", (annotator,)
    ).fetchone()
    for item_id, topic_id, body in rows:
        there = connection.execute("SELECT body FROM items WHERE item_id = ?", (item_id,)).fetchone()
        if there is None:
            connection.execute(_ADD["items"], (item_id, topic_id, body))
        elif there[0] != body:
            raise InputError(f"another item '{item_id[:80]}' is there", "give each an id of its own", where=path)
        place += 1
        added += connection.execute(_ASSIGN.replace("INSERT", "INSERT OR IGNORE"), (annotator, place, item_id)).rowcount
        _settle(connection, annotator, item_id)
    return added


def checked_annotator(annotator: Annotator, path: Path) -> Annotator:
    """The annotator, if name and role can be stored."""
    name = annotator.name
    if not name or name != name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise InputError(f"'{name[:80]}' is not a name for an annotator", "use visible characters", where=path)
    if annotator.role not in get_args(Role):
        raise InputError(f"no role '{annotator.role}'", f"one of {', '.join(get_args(Role))}", where=path)
    return annotator


def add_annotator(connection: sqlite3.Connection, annotator: Annotator, path: Path) -> None:
    """Adds an annotator, or takes over what is new about one of the same role."""
    row = connection.execute("SELECT role FROM annotators WHERE name = ?", (annotator.name,)).fetchone()
    if row is None:
        connection.execute(_ADD["annotators"], (*annotator, ""))
    elif row[0] != annotator.role:
        fault = f"'{annotator.name}' is there as {row[0]}, not as {annotator.role}"
        raise InputError(fault, "use another name", where=path)
    elif annotator.about:
        _change(connection, "about", annotator.about, annotator.name)


def _change(connection: sqlite3.Connection, column: str, value: str, name: str) -> None:
    connection.execute(f"UPDATE annotators SET {column} = ? WHERE name = ?", (value, name))
    connection.execute(f"UPDATE annotators SET sum = {_SUMS['annotators']} WHERE name = ?", (name,))


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
        if "\0" in text:
            raise InputError(f"a {name} with NUL characters", "leave them out", where=path)
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
    last = connection.execute(
        "SELECT number, item_id FROM live WHERE annotator = ? ORDER BY number DESC LIMIT 1", (annotator,)
    ).fetchone()
    if earlier is not None or last is None:
        return earlier
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
    event = Event(
        0, draft.at or _now(), draft.item_id, draft.annotator, draft.kind, draft.labels, draft.comment, draft.reason,
        float(draft.seconds), draft.token, undoes,
    )  # fmt: skip
    number = connection.execute(_ADD["events"], event._replace(labels=dumps(list(draft.labels)))[1:]).lastrowid  # type: ignore[arg-type]
    return event._replace(number=number or 0)


def event_of(row: tuple[Any, ...], path: Path) -> Event:
    return Event._make((*row[:5], labels_of(row[5], path), *row[6:]))


def labels_of(text: str, path: Path) -> tuple[str, ...]:
    return tuple(load_json(text, path))


def _now() -> str:
    now = datetime.datetime.now(datetime.UTC)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def dumps(value: Any) -> str:
    """Compact JSON; halves of surrogate pairs, which no file can hold, are replaced."""
    return well_formed(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _put(temporary: Path, place: Path) -> None:
    """Gives the finished file its name, unless that is taken; where the disk knows no links, by renaming."""
    try:
        os.link(temporary, place)
    except FileExistsError:
        raise
    except OSError:
        if place.exists():
            raise FileExistsError(place) from None
        temporary.replace(place)


def _where(item_id: str | None, annotator: str | None) -> tuple[str, list[str]]:
    """The condition of a query and its values; none for what is None."""
    given = {name: value for name, value in (("item_id", item_id), ("annotator", annotator)) if value is not None}
    return " WHERE " * bool(given) + " AND ".join(f"{name} = ?" for name in given), [*given.values()]


_KEPT_ITEMS: Final = 10_000


class Store:
    """An open store; safe for many threads and processes. Close it, or use it in a `with` statement.

    Made by `Store.create` and `Store.open`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._items: dict[str, Item] = {}
        self._reader = Reader(path)
        self._writer = Writer(path)
        check_content(self._reader, path)
        try:
            meta = self.meta()
            self.scheme = Scheme.from_json(load_json(meta["scheme"], path), path)
            self.seed = int(meta["seed"])
            self.plan: Mapping[str, Any] = dict(load_json(meta["plan"], path))
        except (KeyError, TypeError, ValueError) as error:
            raise broken(f"what it says about itself: {error}", path) from error

    @classmethod
    def create(
        cls,
        path: str | Path,
        scheme: Scheme,
        items: Iterable[Item],
        assignments: Mapping[str, Sequence[str]] | None = None,
        *,
        seed: int = 0,
        plan: Mapping[str, Any] | None = None,
        annotators: Sequence[Annotator] = (),
    ) -> Store:
        """Makes a store; it appears whole or not at all.

        Args:
            path: where; nothing may be there.
            scheme: what is asked.
            items: what is judged, in order.
            assignments: annotator → item ids in the order of work. Names that `annotators` lacks become persons.
            seed: of the sample and the order of work.
            plan: how the items were chosen, JSON-like; kept for reports.
            annotators: who judges, with their roles.

        Returns:
            The open store.

        Raises:
            InputError: something is there already; no items; two items of one id; an assignment to an item that is
                not there; a bad name of an annotator; not writable.
        """
        place = Path(path)
        taken = InputError("is there already", "choose another name; a store is never overwritten", where=place)
        if place.exists():
            raise taken
        temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
        work = assignments or {}
        known = {annotator.name for annotator in annotators}
        everyone = [*annotators, *(Annotator(name) for name in work if name not in known)]
        try:
            with faults(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                meta = {"seed": seed, "plan": plan or {}}
                fill(temporary, place, scheme, items, annotators=everyone, work=work, meta=meta)
                _put(temporary, place)
        except FileExistsError as error:
            raise taken from error
        except OSError as error:
            raise InputError(f"cannot be written ({error.strerror})", "choose another place", where=place) from error
        finally:
            for ending in ("", "-wal", "-shm"):
                temporary.with_name(temporary.name + ending).unlink(missing_ok=True)
        return cls.open(place)

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """Opens a store.

        Args:
            path: the file.

        Raises:
            InputError: nothing there, no store, a damaged one, or one of another version of truerank.
        """
        place = Path(path)
        check_file(place)
        with faults(place):
            return cls(place)

    @classmethod
    @contextlib.contextmanager
    def of(cls, store: str | Path | Store) -> Iterator[Store]:
        """A store that is open already and stays so, or one that is open within.

        Args:
            store: the store, or its file.

        Raises:
            InputError: as for `open`.
        """
        if isinstance(store, Store):
            yield store
        else:
            with cls.open(store) as opened:
                yield opened

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; what was acknowledged is on the disk already."""
        self._writer.close()
        self._reader.close()

    # What is judged, and by whom

    def items(self) -> Iterator[Item]:
        """The items in order."""
        for (body,) in self._reader.stream("SELECT body FROM items ORDER BY position"):
            yield item_of(body, self.path)

    def item(self, item_id: str) -> Item:
        """One item.

        Raises:
            InputError: it is not there.
        """
        found = self._items.get(item_id)
        if found is None:
            row = self._reader.row("SELECT body FROM items WHERE item_id = ?", item_id)
            if row is None:
                raise InputError(f"no item '{item_id[:80]}'", "take an id that the store has", where=self.path)
            found = item_of(row[0], self.path)
            if len(self._items) < _KEPT_ITEMS:
                self._items[item_id] = found
        return found

    def item_ids(self) -> tuple[str, ...]:
        """The ids of all items, in order."""
        return tuple(row[0] for row in self._reader.rows("SELECT item_id FROM items ORDER BY position"))

    def extend(self, items: Iterable[Item], annotator: str) -> int:
        """Adds items while people judge, at the end of an annotator's work.

        Args:
            items: what to add; items that are there already are only assigned.
            annotator: who judges them.

        Returns:
            How many items the annotator has now that were not theirs before.

        Raises:
            InputError: no such annotator, or an item of a known id with another content.
        """
        self.annotator(annotator)
        rows = [(item.item_id, item.topic_id, dumps(item.json())) for item in items]
        return cast(int, self._writer.run(lambda connection: extend(connection, rows, annotator, self.path)))

    def annotators(self) -> tuple[Annotator, ...]:
        """Everyone who judges or adjudicates, by name."""
        rows = self._reader.rows("SELECT name, role, about FROM annotators ORDER BY name")
        return tuple(Annotator(*row) for row in rows)

    def annotator(self, name: str) -> Annotator:
        """One of them.

        Raises:
            InputError: there is none of that name.
        """
        row = self._reader.row("SELECT name, role, about FROM annotators WHERE name = ?", name)
        if row is None:
            there = ", ".join(annotator.name for annotator in self.annotators()) or "none"
            raise InputError(f"no annotator '{name[:80]}'", f"there are {there}", where=self.path)
        return Annotator(*row)

    def add_annotator(self, name: str, role: Role = "person", about: str = "") -> Annotator:
        """Adds somebody, or finds them if they are there with the same role.

        Args:
            name: how they are called in the store and in exports.
            role: a person, a model, or the one who settles disagreements.
            about: for a model its name and settings; new text is taken over.

        Raises:
            InputError: a bad name or role, or somebody of that name has another role.
        """
        annotator = checked_annotator(Annotator(name, role, about), self.path)
        self._writer.run(lambda connection: add_annotator(connection, annotator, self.path))
        return self.annotator(name)

    def assigned(self, annotator: str) -> tuple[str, ...]:
        """The ids of an annotator's items in the order of work."""
        rows = self._reader.rows("SELECT item_id FROM assignments WHERE annotator = ? ORDER BY place", annotator)
        return tuple(row[0] for row in rows)

    def assign(self, annotator: str, item_ids: Sequence[str]) -> int:
        """Adds items of the store to the end of an annotator's work.

        Returns:
            How many of them were not theirs before.

        Raises:
            InputError: no such annotator or item.
        """
        return self.extend([self.item(item_id) for item_id in item_ids], annotator)

    # What was said

    def record(
        self,
        item_id: str,
        annotator: str,
        kind: Kind,
        labels: Sequence[str] = (),
        *,
        comment: str = "",
        reason: str = "",
        seconds: float = 0.0,
        token: str = "",
    ) -> Event:
        """Adds what an annotator said; it is on the disk when this returns.

        A label takes the place of the annotator's earlier label or skip of the item; an adjudication that of any
        earlier adjudication. A token that this annotator used before brings back the event that it made then, and
        nothing is added.

        Args:
            item_id: what was judged.
            annotator: who said it.
            kind: "label", "skip" or "adjudicate"; for "undo" see `undo`.
            labels: names or aliases of the scheme; none for a skip.
            comment: a remark.
            reason: why it was skipped; needed for a skip.
            seconds: how long it took.
            token: the idempotency key of the request; empty for none.

        Returns:
            The event.

        Raises:
            InputError: no such item or annotator, labels that the scheme lacks or that exclude each other, a skip
                without a reason, an adjudication by a model, a value out of range, or the file cannot be written.
        """
        if kind == "undo":
            raise InputError("an undo names no item", "use undo(annotator)", where=self.path)
        item = self.item(item_id)
        checked = self.scheme.check(labels, item) if kind in ("label", "adjudicate") else ()
        draft = Draft(item_id, annotator, kind, checked, comment, reason, seconds, token)
        if labels and kind == "skip":
            raise InputError("a skip with labels", "leave the labels out", where=self.path)
        check_draft(draft, self.annotator(annotator).role, self.path)
        return cast(Event, self._writer.run(lambda connection: append(connection, draft)))

    def record_history(
        self, drafts: Sequence[Draft], undoes: Sequence[int] = (), annotators: Sequence[tuple[str, Role, str]] = ()
    ) -> tuple[Event, ...]:
        """Adds many events in one transaction: all of them or none. How imports are written.

        Labels are taken over as they are, also those that exclude each other in the scheme; their names must be the
        scheme's.

        Args:
            drafts: what to add, in order.
            undoes: per draft of the kind "undo" what it takes back: the number of an event of the store, or -1, -2, …
                for the first, second, … draft; 0 for other kinds.
            annotators: name, role and description of those who are new.

        Returns:
            The events.

        Raises:
            InputError: as `record`.
        """
        people = [checked_annotator(Annotator(*person), self.path) for person in annotators]
        roles = {person.name: person.role for person in (*self.annotators(), *people)}
        checked = []
        for draft in drafts:
            labels = self.scheme.known(draft.labels, self.item(draft.item_id))
            checked.append(draft._replace(labels=labels))
            if draft.annotator not in roles:
                self.annotator(draft.annotator)
            check_draft(checked[-1], roles[draft.annotator], self.path)

        def write(connection: sqlite3.Connection) -> tuple[Event, ...]:
            for person in people:
                add_annotator(connection, person, self.path)
            return append_history(connection, checked, undoes or [0] * len(checked))

        return cast(tuple[Event, ...], self._writer.run(write))

    def undo(self, annotator: str, token: str = "") -> Event | None:
        """Takes back the last event of an annotator that still holds; what held before it holds again.

        Args:
            annotator: who.
            token: as for `record`.

        Returns:
            The undo as an event, or None where there is nothing to take back.

        Raises:
            InputError: no such annotator, or the file cannot be written.
        """
        self.annotator(annotator)
        return cast("Event | None", self._writer.run(lambda connection: undo(connection, annotator, token)))

    def events(self, item_id: str | None = None, annotator: str | None = None) -> Iterator[Event]:
        """The history in order, of everything, of an item, of an annotator, or of both."""
        where, values = _where(item_id, annotator)
        for row in self._reader.stream(f"SELECT {EVENT} FROM events{where} ORDER BY number", *values):
            yield event_of(row, self.path)

    def last_event(self) -> int:
        """The number of the last event, 0 before the first: what has changed when it is another one."""
        ((number,),) = self._reader.rows("SELECT IFNULL(MAX(number), 0) FROM events")
        return int(number)

    def standing(self, item_id: str | None = None, annotator: str | None = None) -> tuple[Standing, ...]:
        """What holds now, by item in the store's order, then by annotator; labels before adjudications.

        Args:
            item_id: only of this item.
            annotator: only of this annotator.
        """
        where, values = _where(item_id, annotator)
        rows = self._reader.rows(
            f"""SELECT e.item_id, e.annotator, e.kind, e.labels, e.comment, e.reason, e.at, e.seconds
            FROM (SELECT item_id, annotator, adjudication, MAX(number) AS number FROM live{where}
                  GROUP BY item_id, annotator, adjudication) AS l
            JOIN events AS e ON e.number = l.number JOIN items AS i ON i.item_id = l.item_id
            ORDER BY i.position, l.annotator, l.adjudication""",
            *values,
        )
        return tuple(Standing._make((*row[:3], labels_of(row[3], self.path), *row[4:])) for row in rows)

    def next_item(self, annotator: str) -> Item | None:
        """The first of an annotator's items that is neither labelled nor skipped; None when all are done."""
        row = self._reader.row(
            "SELECT item_id FROM assignments WHERE annotator = ? AND state = '' ORDER BY place LIMIT 1", annotator
        )
        return None if row is None else self.item(row[0])

    def progress(self, annotator: str) -> JudgingProgress:
        """How far an annotator is with the items that are assigned to them."""
        statement = "SELECT state, COUNT(*) FROM assignments WHERE annotator = ? GROUP BY state"
        counts = dict(self._reader.rows(statement, annotator))
        return JudgingProgress(counts.get("label", 0), counts.get("skip", 0), sum(counts.values()))

    def standing_by_item(self) -> dict[str, list[Standing]]:
        """What holds now of each item that somebody judged, in the store's order."""
        found: dict[str, list[Standing]] = {}
        for standing in self.standing():
            found.setdefault(standing.item_id, []).append(standing)
        return found

    def disagreements(self, *, roles: Iterable[Role] = ("person",), resolved: bool = True) -> tuple[Disagreement, ...]:
        """The items on which standing labels differ, in the store's order.

        Args:
            roles: whose labels are compared; models only where the caller says so.
            resolved: also items that were adjudicated.
        """
        wanted, chosen = set(roles), {annotator.name: annotator.role for annotator in self.annotators()}
        found = []
        for item_id, standings in self.standing_by_item().items():
            settled = [standing for standing in standings if standing.kind == "adjudicate"]
            said = [s for s in standings if s.kind == "label" and chosen[s.annotator] in wanted]
            if len({s.labels for s in said}) > 1 and (resolved or not settled):
                last = max(settled, key=lambda standing: standing.at, default=None)
                found.append(Disagreement(item_id, tuple(said), last))
        return tuple(found)

    # Access tokens; only their hashes are kept

    def set_token(self, annotator: str, token_hash: str) -> None:
        """Keeps the hash of an annotator's access token; an empty one withdraws it.

        Raises:
            InputError: no such annotator.
        """
        self.annotator(annotator)
        self._writer.run(lambda connection: _change(connection, "token_hash", token_hash, annotator))

    def check_token(self, annotator: str, token_hash: str) -> bool:
        """Whether the hash is the annotator's; compared in constant time. Never true where none was set."""
        row = self._reader.row("SELECT token_hash FROM annotators WHERE name = ?", annotator)
        kept = "" if row is None else row[0]
        return hmac.compare_digest(kept.encode(), token_hash.encode()) and bool(kept)

    def has_token(self, annotator: str) -> bool:
        """Whether an access token was made for the annotator."""
        row = self._reader.row("SELECT token_hash FROM annotators WHERE name = ?", annotator)
        return row is not None and bool(row[0])

    def meta(self) -> dict[str, str]:
        """What the store says about itself: scheme, seed, plan, created."""
        return dict(self._reader.rows("SELECT key, value FROM meta"))


def store_input(store: str | Path | Store) -> Input:
    """A store in a manifest, without a hash: its bytes change with every judgment."""
    path = store.path if isinstance(store, Store) else Path(store)
    return Input(path.name, str(path), "store")


@contextlib.contextmanager
def store_change(
    command: str, store: str | Path | Store, inputs: Sequence[Input], options: Mapping[str, Any]
) -> Iterator[Run]:
    """A command that adds to a store. Its manifest is `STORE.COMMAND-HASH.manifest.json`.

    The hash is that of inputs and options: the same command again writes the same file, another one a file of its own.
    """
    own = store_input(store)
    known = digest({"inputs": [one._asdict() for one in inputs], "options": plain(options)})[:8]
    place = f"{own.source}.{command.rpartition(' ')[2]}-{known}"
    with run(command, (own, *inputs), options, place, file=True) as job:
        yield job

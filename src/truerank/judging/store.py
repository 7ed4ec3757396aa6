"""The store of an annotation: items, who judges which, and what was said, as events that are only ever added.

One SQLite file in WAL mode. `events` is the truth and is never changed; `live` lists the events that still hold, so
that the next item and the progress are found without reading the history.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, cast

from truerank.errors import InputError
from truerank.judging.events import Annotator, Disagreement, Draft, Event, JudgingProgress, Kind, Role, Standing
from truerank.judging.items import Item
from truerank.judging.schemes import Scheme
from truerank.judging.store_rows import (
    EVENT,
    Contents,
    Reader,
    add_annotator,
    append,
    append_history,
    broken,
    check_content,
    check_draft,
    check_file,
    checked_annotator,
    connected,
    dumps,
    event_of,
    extend,
    faults,
    fill,
    is_store,
    item_of,
    labels_of,
    put,
    undo,
)
from truerank.loading import load_json
from truerank.records import Input
from truerank.work.artifacts import digest
from truerank.work.runs import Run, plain, run

__all__ = [
    "Annotator",
    "Disagreement",
    "Draft",
    "Event",
    "JudgingProgress",
    "Kind",
    "Role",
    "Standing",
    "Store",
    "is_store",
]

_MOST_AT_ONCE: Final = 256


class _Request:
    """One transaction and its outcome."""

    def __init__(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        self.work = work
        self.done = False
        self.value: Any = None
        self.error: BaseException | None = None


class Writer:
    """The only way rows get into a store from this process.

    Args:
        path: the store; it is opened at the first write.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._waiting: list[_Request] = []
        self._queue = threading.Lock()
        self._disk = threading.Lock()

    def run(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """Runs a transaction; what it wrote is on the disk when this returns."""
        request = _Request(work)
        with self._queue:
            self._waiting.append(request)
        with self._disk:
            while not request.done:
                with self._queue:
                    batch, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
                self._commit(batch)
        if request.error is not None:
            raise self._fault(request.error)
        return request.value

    def close(self) -> None:
        """Waits for what is being written, then closes the file."""
        with self._disk:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _commit(self, batch: list[_Request]) -> None:
        connection = None
        try:
            connection = self._connection = self._connection or connected(self._path)
            connection.execute("BEGIN IMMEDIATE")
            for request in batch:
                _attempt(connection, request)
            connection.execute("COMMIT")
        except BaseException as error:
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            for request in batch:
                request.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            for request in batch:
                request.done = True

    def _fault(self, error: BaseException) -> BaseException:
        if not isinstance(error, sqlite3.Error):
            return error
        fault = InputError(
            f"the store cannot be written ({error})", "check its permissions and the free space", where=self._path
        )
        fault.__cause__ = error
        return fault


def _attempt(connection: sqlite3.Connection, request: _Request) -> None:
    connection.execute("SAVEPOINT one")
    try:
        request.value = request.work(connection)
    except (InputError, sqlite3.IntegrityError) as error:
        request.error = error
        connection.execute("ROLLBACK TO one")
    connection.execute("RELEASE one")


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
        known = {annotator.name: annotator for annotator in annotators}
        everyone = [*annotators, *(Annotator(name) for name in work if name not in known)]
        try:
            with faults(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                contents = Contents(scheme, items, everyone, work, {"seed": seed, "plan": plan or {}})
                fill(temporary, contents, place)
                put(temporary, place)
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
            InputError: nothing there, no store, a damaged one, or one of a newer version of truerank.
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
        self,
        drafts: Sequence[Draft],
        undoes: Sequence[int] = (),
        annotators: Sequence[tuple[str, Role, str]] = (),
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
        conditions, values = [], []
        for column, value in (("item_id", item_id), ("annotator", annotator)):
            if value is not None:
                conditions.append(f"{column} = ?")
                values.append(value)
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        for row in self._reader.stream(f"SELECT {EVENT} FROM events {where} ORDER BY number", *values):
            yield event_of(row, self.path)

    def last_event(self) -> int:
        """The number of the last event, 0 before the first: what has changed when it is another one."""
        row = self._reader.row("SELECT IFNULL(MAX(number), 0) FROM events")
        return 0 if row is None else int(row[0])

    def standing(self, item_id: str | None = None, annotator: str | None = None) -> tuple[Standing, ...]:
        """What holds now, by item in the store's order, then by annotator; labels before adjudications.

        Args:
            item_id: only of this item.
            annotator: only of this annotator.
        """
        conditions, values = "", []
        for column, value in (("item_id", item_id), ("annotator", annotator)):
            if value is not None:
                conditions += f" WHERE {column} = ?" if not conditions else f" AND {column} = ?"
                values.append(value)
        rows = self._reader.rows(
            f"""SELECT e.item_id, e.annotator, e.kind, e.labels, e.comment, e.reason, e.at, e.seconds
            FROM (SELECT item_id, annotator, adjudication, MAX(number) AS number FROM live{conditions}
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
        counts = dict(
            self._reader.rows("SELECT state, COUNT(*) FROM assignments WHERE annotator = ? GROUP BY state", annotator)
        )
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
        statement = "UPDATE annotators SET token_hash = ? WHERE name = ?"
        self._writer.run(lambda connection: connection.execute(statement, (token_hash, annotator)))

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

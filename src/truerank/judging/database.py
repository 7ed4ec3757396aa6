"""The SQLite file of a store: connections for many threads, one writer, and what can go wrong with the file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from truerank.errors import InputError

_BUSY_SECONDS: Final = 30.0


_OF_DAMAGE: Final = ("malformed", "not a database", "decode", "corrupt", "no such table", "no such column")


def connected(path: Path) -> sqlite3.Connection:
    """A connection as stores want it: flushed at every commit, patient with other writers.

    Where nothing can be written, the store is read as it lies; what a writer left beside it is read too.
    """
    address, place = str(path), path.resolve()
    if path.exists() and not (os.access(place, os.W_OK) and os.access(place.parent, os.W_OK)):
        address = f"{place.as_uri()}?mode=ro" + "&immutable=1" * (not unsettled(path))
    connection = sqlite3.connect(
        address, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=address != str(path)
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.create_function("crc32", 1, zlib.crc32, deterministic=True)
    return connection


def unsettled(path: Path) -> bool:
    """Whether a writer has left something beside the store that is not in it yet."""
    log = path.resolve().with_name(f"{path.resolve().name}-wal")
    return log.exists() and log.stat().st_size > 0


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


_FETCHED: Final = 500


class Reader:
    """Reads rows, from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self.connections: list[sqlite3.Connection] = []

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
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
            if connection is None:
                connection = connected(self._path)
                with self._lock:
                    self.connections.append(connection)
            try:
                yield connection
            finally:
                with self._lock:
                    self._idle.append(connection)


_MOST_AT_ONCE: Final = 256


@dataclass
class _Request:
    """One transaction and its outcome."""

    work: Callable[[sqlite3.Connection], Any]
    done: bool = False
    value: Any = None
    error: BaseException | None = None


class Writer:
    """The only way rows get into a store from this process; the file is opened at the first write."""

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
        if isinstance(request.error, sqlite3.Error):
            fault = f"the store cannot be written ({request.error})"
            raise InputError(fault, "check its permissions and the free space", where=self._path) from request.error
        if request.error is not None:
            raise request.error
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
                connection.execute("SAVEPOINT one")
                try:
                    request.value = request.work(connection)
                except (InputError, sqlite3.IntegrityError) as error:
                    request.error = error
                    connection.execute("ROLLBACK TO one")
                connection.execute("RELEASE one")
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

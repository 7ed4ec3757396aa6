"""Writing to the store: transactions that wait together share one flush to the disk.

A flush costs milliseconds, whatever it carries. Whoever comes first writes for all who have come meanwhile; nobody
hears an answer before the flush that carries their own rows has returned.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from truerank.errors import InputError
from truerank.judging.store_rows import connected

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

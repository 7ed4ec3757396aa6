"""Reading a store: as many connections as ever read at once, and streams that do not hold the file in memory."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from truerank.judging.store_rows import connected, faults

__all__ = ["Reader"]

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

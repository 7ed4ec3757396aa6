"""MS MARCO QnA files: one JSON object of columns, gigabytes long, read as rows in bounded memory."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from truerank.errors import InputError
from truerank.loading import load_json, whole_number
from truerank.sources import compressed, json_stream
from truerank.sources.json_stream import Parsed, Place
from truerank.sources.rows import Row

#: The columns that are read; "passages" leads, because it holds nearly all of the bytes.
COLUMNS: Final[tuple[str, ...]] = ("passages", "query_id", "query", "query_type", "answers")
#: Records that a column may run ahead of the others before it is put on the disk.
_AHEAD: Final = 1 << 12
_BLOCK: Final = 1 << 12


def column_rows(path: Path, *, strict: bool = False) -> Iterator[Row]:
    """The records of a file of columns, joined by their keys, in the order of the passages.

    One pass finds where the columns begin; then all of them are read side by side. In a column whose keys ascend, a
    missing one is known at once. Records of other columns that stand in another order than the passages are looked for
    a little ahead; where that does not do, that column goes to a temporary file on the disk. Records without passages
    come last.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    with ExitStack() as stack:
        plain = stack.enter_context(compressed.plain_file(path))
        try:
            yield from _joined(plain, stack, strict)
        except InputError as error:
            raise (
                error if plain == path else InputError(error.fault, error.remedy, where=path, line=error.line)
            ) from error


def _joined(path: Path, stack: ExitStack, strict: bool) -> Iterator[Row]:
    places = json_stream.member_places(path)
    for needed in ("passages", "query"):
        if needed not in places:
            fault = f"no column '{needed}'; there are {', '.join(list(places)[:12]) or 'none'}"
            raise InputError(fault, "give the MS MARCO QnA file, or name the format with ?format=", where=path, line=1)
    names = [name for name in COLUMNS if name in places]
    others: dict[str, _Column] = {name: stack.enter_context(_Column(path, places[name], strict)) for name in names[1:]}
    for found in json_stream.parsed_at(path, places[names[0]], strict=strict):
        yield _row(found, names[0], others)
    # What no passages belong to: each column in turn leads through what is left of it.
    while others:
        lead = next(iter(others))
        column = others.pop(lead)
        for found in column.rest():
            yield _row(found, lead, others)


def _row(found: Parsed, lead: str, others: dict[str, _Column]) -> Row:
    values: dict[str, Any] = {"key": found.key, lead: found.value}
    repaired = found.repaired
    for name, column in others.items():
        other = column.take(found.key)
        if other is not None:
            values[name] = other.value
            repaired |= other.repaired
    return Row(found.line, values, repaired)


class _Column:
    """The values of one column, taken by key; cheap where the keys come in the column's own order."""

    def __init__(self, path: Path, place: Place, strict: bool) -> None:
        self._path, self._place = path, place
        self._stream = json_stream.parsed_at(path, place, strict=strict)
        self._last = ""
        self._ahead: dict[str, Parsed] = {}
        self._stored: _Stored | None = None

    def __enter__(self) -> _Column:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stored is not None:
            self._stored.close()

    def take(self, key: str) -> Parsed | None:
        """The value of a key, which is then gone; None where the column lacks it."""
        if (found := self._ahead.pop(key, None)) is not None:
            return found
        if self._stored is not None:
            return self._stored.take(key)
        while len(self._ahead) < _AHEAD:
            if self._is_behind(key):
                return None
            found = next(self._stream, None)
            if found is None:
                return None
            self._last = found.key
            if found.key == key:
                return found
            self._ahead[found.key] = found
        self._stored = _Stored(self._stream)
        return self._stored.take(key)

    def _is_behind(self, key: str) -> bool:
        """Whether a key would have to stand before what was read, so that the column lacks it."""
        last, number = whole_number(self._last), whole_number(key)
        if last is None or number is None or last <= number:
            return False
        return self._ascends

    @cached_property
    def _ascends(self) -> bool:
        # Asked for at the first hole only: one more pass over this column.
        return json_stream.ascending_at(self._path, self._place)

    def rest(self) -> Iterator[Parsed]:
        """What nobody took, in the column's order."""
        yield from self._ahead.values()
        self._ahead = {}
        yield from self._stream if self._stored is None else self._stored.rest()


class _Stored:
    """The rest of a column in a temporary data base."""

    def __init__(self, stream: Iterator[Parsed]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="truerank-")
        self._base = sqlite3.connect(Path(self._folder.name) / "column.sqlite", isolation_level=None)
        self._base.execute("PRAGMA journal_mode = OFF")
        self._base.execute("PRAGMA synchronous = OFF")
        self._base.execute("CREATE TABLE rows (key TEXT, value TEXT, line INTEGER, repaired INTEGER)")
        self._base.execute("BEGIN")
        self._base.executemany(
            "INSERT INTO rows VALUES (?, ?, ?, ?)",
            ((one.key, json.dumps(one.value), one.line, int(one.repaired)) for one in stream),
        )
        self._base.execute("COMMIT")
        self._base.execute("CREATE INDEX by_key ON rows (key)")

    def take(self, key: str) -> Parsed | None:
        found = self._base.execute(
            "SELECT rowid, key, value, line, repaired FROM rows WHERE key = ? ORDER BY rowid LIMIT 1", (key,)
        ).fetchone()
        if found is None:
            return None
        self._base.execute("DELETE FROM rows WHERE rowid = ?", found[:1])
        return _parsed(found)

    def rest(self) -> Iterator[Parsed]:
        last = 0
        while True:
            found = self._base.execute(
                "SELECT rowid, key, value, line, repaired FROM rows WHERE rowid > ? ORDER BY rowid LIMIT ?",
                (last, _BLOCK),
            ).fetchall()
            if not found:
                return
            last = found[-1][0]
            yield from map(_parsed, found)

    def close(self) -> None:
        self._base.close()
        self._folder.cleanup()


def _parsed(row: tuple[int, str, str, int, int]) -> Parsed:
    _, key, value, line, repaired = row
    return Parsed(key, load_json(value, "a temporary table"), line, bool(repaired))

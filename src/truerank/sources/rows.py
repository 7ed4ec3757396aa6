"""Rows of named values: CSV, TSV with a header, Parquet, JSONL and JSON, large objects among them, as a stream."""

from __future__ import annotations

import contextlib
import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.errors import InputError, TruerankError
from truerank.loading import load_json, whole_number
from truerank.sources import columns, compressed
from truerank.sources.grammar import SOURCES
from truerank.sources.lines import decoded, line_blocks

_PARQUET_ROWS: Final = 1 << 16
_REMEDY: Final = "correct the line, or download the file again"


class Row(NamedTuple):
    """One record: its line (its number, where the format has no lines), its values by name, whether it was repaired."""

    line: int
    values: Mapping[str, Any]
    repaired: bool = False


def rows(path: Path, form: str, *, strict: bool = False) -> Iterator[Row]:
    """The records of a table, streamed.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    if form == "parquet":
        return _parquet_rows(path)
    if form == "saved":
        return _saved_rows(path)
    if form == "jsonl":
        return _jsonl_rows(path, strict)
    if form == "json":
        return _json_rows(path, strict)
    if form not in ("csv", "tsv") and form in SOURCES:
        return _other_rows(path, form)
    return _csv_rows(path, strict, quoted=form == "csv")


def parquet_frames(path: Path, wanted: list[str] | None = None, size: int = _PARQUET_ROWS) -> Iterator[pl.DataFrame]:
    """The row groups of a Parquet file as frames of at most so many rows or one row group."""
    with _parquet(path) as table:
        chosen = table if wanted is None else table.select(wanted)
        yield from chosen.collect_batches(chunk_size=size, maintain_order=True)


def parquet_columns(path: Path) -> list[str]:
    """The names of the columns of a Parquet file."""
    with _parquet(path) as table:
        return table.collect_schema().names()


@contextlib.contextmanager
def _parquet(path: Path) -> Iterator[pl.LazyFrame]:
    with compressed.plain_file(path) as plain:
        try:
            yield pl.scan_parquet(plain, glob=False)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"no valid Parquet ({reason})", "download or write the file again", where=path) from error


def _other_rows(path: Path, form: str) -> Iterator[Row]:
    """The records of a format that another package reads."""
    reader, number = SOURCES.load(form), 0
    try:
        with compressed.plain_file(path) as plain:
            for number, values in enumerate(reader.records(plain), start=1):
                if not isinstance(values, Mapping):
                    fault = f"the format '{form}' gives a {type(values).__name__} for a record"
                    raise InputError(fault, "its reader must give mappings", where=path, line=number)
                yield Row(number, values)
    except (TruerankError, MemoryError):
        raise
    except Exception as error:  # a reader of others can fail in any way
        fault = f"cannot be read as '{form}' after {number} records ({type(error).__name__}: {error})"
        raise InputError(fault, "correct the file, or the package that reads it", where=path) from error


def _parquet_rows(path: Path) -> Iterator[Row]:
    number = 0
    for frame in parquet_frames(path):
        for values in frame.iter_rows(named=True):
            number += 1
            yield Row(number, values)


def saved_files(folder: Path) -> list[Path]:
    """The Arrow files of a folder that `Dataset.save_to_disk` wrote, in the order of its records."""
    state = folder / "state.json"
    value = loads(compressed.head(state), state, 1, strict=True)[0]
    listed = value.get("_data_files") if isinstance(value, dict) else None
    names = [one.get("filename") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    files = [folder / name for name in names if isinstance(name, str) and "/" not in name]
    absent = [file.name for file in files if not file.is_file()]
    if absent or not files:
        fault = f"{absent[0]} is missing" if absent else "it names no files of data"
        raise InputError(fault, "copy the whole folder again", where=state)
    return files


def _saved_rows(folder: Path) -> Iterator[Row]:
    """The records of a saved data set; one file of it at a time is in memory (`datasets` writes 500 MB in each)."""
    number = 0
    for file in saved_files(folder):
        try:
            frame = pl.read_ipc_stream(compressed.checked_file(file))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"no valid Arrow stream ({reason})", "copy the folder again", where=file) from error
        for values in frame.iter_rows(named=True):
            number += 1
            yield Row(number, values)


def _jsonl_rows(path: Path, strict: bool) -> Iterator[Row]:
    for block in line_blocks(path, strict=strict):
        for offset, text in enumerate(block.lines):
            if not text or text.isspace():
                continue
            yield json_row(text, path, block.first + offset, repaired=offset in block.repaired)


def json_row(text: str, path: Path, line: int, *, repaired: bool = False) -> Row:
    """The record of a line of JSON."""
    return Row(line, _named_values(load_json(text, path, line=line, remedy=_REMEDY), path, line), repaired)


def _json_rows(path: Path, strict: bool) -> Iterator[Row]:
    """The items of an array; the members of an object (`{"301": "text"}` or `{"301": {"title": …}}`)."""
    if first_byte(path) == b"[":
        for item in array_items(path):
            value, repaired = loads(item.raw, path, item.line, strict=strict)
            yield Row(item.line, _named_values(value, path, item.line), repaired)
        return
    for item in object_items(path):
        value, repaired = loads(item.raw, path, item.line, strict=strict)
        values = value if isinstance(value, dict) else {"text": value}
        yield Row(item.line, {"_id": item.key, **values}, repaired)


def _named_values(value: Any, path: Path, line: int) -> Mapping[str, Any]:
    """A record's values by name: Label Studio's `data` is unfolded, a list (`["query", "passage"]`) is numbered."""
    if isinstance(value, dict):
        inner = value.get("data")
        return {**{key: value[key] for key in value if key != "data"}, **inner} if isinstance(inner, dict) else value
    if isinstance(value, list):
        return {str(number): item for number, item in enumerate(value, start=1)}
    if isinstance(value, str):
        return {"text": value}
    raise InputError(
        "a record that is neither an object, a list nor a text", "give one record a line", where=path, line=line
    )


def _csv_rows(path: Path, strict: bool, quoted: bool) -> Iterator[Row]:
    mended: list[int] = []

    def lines() -> Iterator[str]:
        for block in line_blocks(path, strict=strict):
            for offset, text in enumerate(block.lines):
                if offset in block.repaired:
                    mended.append(block.first + offset)
                yield text + "\n"

    source = lines()
    header = next(source, "")
    delimiter = (columns.csv_header(header.rstrip("\n")) or max((",", ";", "\t"), key=header.count)) if quoted else "\t"
    reader = csv.reader(
        itertools.chain([header], source), delimiter=delimiter, strict=quoted,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
    )  # fmt: skip
    begins, names = 1, None
    try:
        for cells in reader:
            line, begins = begins, reader.line_num + 1
            repaired = bool(mended)
            mended.clear()
            if names is None:
                names = [name.strip() for name in cells]
                if twice := [name for name, count in Counter(names).items() if name and count > 1]:
                    remedy = "give each column a name of its own"
                    raise InputError(f"column '{twice[0]}' appears twice", remedy, where=path, line=line)
            elif cells:
                yield Row(line, dict(zip(names, cells, strict=False)), repaired)
    except csv.Error as error:
        raise InputError(
            f"no valid CSV ({error})", "quote texts that hold quotes or line ends", where=path, line=begins
        ) from error


_BLANKS: Final = b" \t\r\n"
_SKIP_BLANKS: Final = re.compile(rb"[ \t\r\n]*")
_STRING_BODY: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+'
#: A whole string, a string that the buffer cuts off, or a bracket.
_TOKEN: Final = re.compile(
    rb"(?s)(?P<string>" + _STRING_BODY + rb'")|(?P<cut>' + _STRING_BODY + rb"\\?\Z)|(?P<bracket>[\[\]{}])"
)
_PLAIN_KEY: Final = re.compile(rb'"([ !#-\[\]-~]*)"[ \t\r\n]*:')
_SCALAR: Final = re.compile(rb"[^\s,\[\]{}:\"]*")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = np.array([1 if byte in b"[{" else -1 for byte in range(256)], np.int8)
_WORTH_A_LEAP: Final = 1 << 12
_SOON: Final = 64
_LARGEST: Final = 1 << 28
#: Where a list ends, most likely: behind it comes another member whose key is a number.
_NEXT_LIST: Final = re.compile(rb'\][ \t\r\n]*,[ \t\r\n]*"[0-9]+"[ \t\r\n]*:')
_PIECE: Final = 1 << 20


class JsonItem(NamedTuple):
    """One value inside the large one: its key ("" in an array), its bytes, and the line where it begins."""

    key: str
    raw: bytes
    line: int


class Place(NamedTuple):
    """Where a value begins in an uncompressed file: its offset in bytes and its line."""

    offset: int
    line: int


class Parsed(NamedTuple):
    """One value inside a large one: its key, the value, the line where it begins, whether bytes had to be repaired."""

    key: str
    value: Any
    line: int
    repaired: bool


def first_byte(path: Path) -> bytes:
    """The first byte that is not a blank, after a byte order mark."""
    return compressed.head(path).removeprefix(b"\xef\xbb\xbf").lstrip(_BLANKS)[:1]


def loads(raw: bytes, path: Path, line: int, *, strict: bool) -> tuple[Any, bool]:
    """A JSON value, and whether bytes in it had to be repaired."""
    text, repaired = decoded(raw, path, line, strict=strict)
    return load_json(text, path, line=line, remedy="correct the line, or download the file again"), repaired


def array_items(path: Path) -> Iterator[JsonItem]:
    """The items of the array that the file holds."""
    scanner = _Scanner(path)
    scanner.expect(b"[")
    yield from scanner.items()
    scanner.end()


def object_items(path: Path) -> Iterator[JsonItem]:
    """The members of the object that the file holds."""
    scanner = _Scanner(path)
    scanner.expect(b"{")
    yield from scanner.members()
    scanner.end()


def member_items(path: Path, name: str) -> Iterator[JsonItem]:
    """The members (or items) of the member with this name of the file's object; the others are passed over."""
    scanner = _Scanner(path)
    scanner.expect(b"{")
    for key in scanner.names():
        if key != name:
            scanner.value(keep=False)
            continue
        opening = scanner.peek()
        if opening not in (b"{", b"["):
            scanner.fail(f"'{name}' is not a table", "give the MS MARCO QnA file, or name the format with ?format=")
        scanner.expect(opening)
        yield from scanner.members() if opening == b"{" else scanner.items()
        return
    scanner.fail(f"no column '{name}'", "give a file that has it, or name another with #COLUMN")


def member_places(path: Path) -> dict[str, Place]:
    """Where the values of the members of the file's object begin, by name; the file must not be compressed.

    One pass over the file, in which nothing is held; of members with the same name the first one counts.
    """
    scanner = _Scanner(path)
    scanner.expect(b"{")
    places: dict[str, Place] = {}
    for name in scanner.names():
        scanner.peek()
        places.setdefault(name, Place(scanner.offset, scanner.line()))
        scanner.value(keep=False)
    scanner.end()
    return places


def parsed_at(path: Path, place: Place, *, strict: bool) -> Iterator[Parsed]:
    """The members of the object (or items of the array, numbered from 0) that begins at a place, as values.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    scanner = _Scanner(path, place)
    opening = scanner.peek()
    if opening not in (b"{", b"["):
        scanner.fail("a column that is not a table", "give the MS MARCO QnA file, or name the format with ?format=")
    scanner.expect(opening)
    if opening == b"[":
        for number, item in enumerate(scanner.items()):
            value, repaired = loads(item.raw, path, item.line, strict=strict)
            yield Parsed(str(number), value, item.line, repaired)
        return
    for key in scanner.names():
        yield Parsed(key, *scanner.parsed(strict=strict))


def ascending_at(path: Path, place: Place) -> bool:
    """Whether all keys of the object that begins at a place are numbers that ascend; items of an array always do."""
    scanner = _Scanner(path, place)
    opening = scanner.peek()
    scanner.expect(opening)
    last = -1
    if opening == b"{":
        for key in scanner.names():
            number = whole_number(key)
            if number is None or number <= last:
                return False
            last = number
            scanner.value(keep=False)
    return True


class _Scanner:
    """A position in a stream of JSON bytes that only moves forward."""

    def __init__(self, path: Path, place: Place | None = None) -> None:
        self._path = path
        self._chunks = compressed.chunks(path) if place is None else _pieces(path, place.offset)
        self._data = b""
        self._at = 0
        self._before = 0
        self._line = 1 if place is None else place.line
        self._counted = 0
        self._fill()
        if place is None and self._data.startswith(b"\xef\xbb\xbf"):
            self._at = 3

    @property
    def offset(self) -> int:
        """Bytes before the position, of the file as it is when unfolded."""
        return self._before + self._at

    def fail(self, fault: str, remedy: str) -> None:
        raise InputError(fault, remedy, where=self._path, line=self.line())

    def line(self) -> int:
        self._line += self._data.count(b"\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def peek(self) -> bytes:
        """The next byte that is not a blank; empty at the end."""
        while True:
            if (byte := self._data[self._at : self._at + 1]) > b" ":
                return byte
            match = _SKIP_BLANKS.match(self._data, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._data):
                return self._data[self._at : self._at + 1]
            if not self._fill():
                return b""

    def expect(self, byte: bytes) -> None:
        if (found := self.peek()) != byte:
            self._unexpected(found, f"'{byte.decode()}'")
        self._at += 1

    def end(self) -> None:
        if found := self.peek():
            self._unexpected(found, "the end of the file")

    def items(self) -> Iterator[JsonItem]:
        """The items of the array that has just been opened."""
        if self._closes(b"]"):
            return
        while True:
            self.peek()
            line = self.line()
            yield JsonItem("", self.value(), line)
            if not self._goes_on(b"]"):
                return

    def members(self) -> Iterator[JsonItem]:
        """The members of the object that has just been opened."""
        for key in self.names():
            self.peek()
            line = self.line()
            yield JsonItem(key, self.value(), line)

    def names(self) -> Iterator[str]:
        """The keys of the object that has just been opened; the caller takes or skips each value."""
        if self._closes(b"}"):
            return
        while True:
            if (found := self.peek()) != b'"':
                self._unexpected(found, "a key")
            yield self._key()
            if not self._goes_on(b"}"):
                return

    def _key(self) -> str:
        plain = _PLAIN_KEY.match(self._data, self._at)
        if plain is not None:
            self._at = plain.end()
            return plain[1].decode("ascii")
        line = self.line()
        key, _ = loads(self.value(), self._path, line, strict=False)
        self.expect(b":")
        return str(key)

    def value(self, *, keep: bool = True) -> bytes:
        """The bytes of the next value; with keep=False it is passed over and nothing is held."""
        opening = self.peek()
        if opening in (b"{", b"[", b'"'):
            return self._composite(keep)
        parts = [b""]
        while True:
            match = _SCALAR.match(self._data, self._at)
            end = match.end() if match else self._at
            parts.append(self._data[self._at : end])
            self._at = end
            if end < len(self._data) or not self._fill():
                break
        raw = b"".join(parts)
        if not raw:
            self._unexpected(self.peek(), "a value")
        return raw

    def parsed(self, *, strict: bool) -> tuple[Any, int, bool]:
        """The next value, its line, and whether bytes in it had to be repaired."""
        opening = self.peek()
        line = self.line()
        if opening == b"[" and (match := _NEXT_LIST.search(self._data, self._at)):
            # A list that closes too early is not JSON, so that a wrong guess cannot give a wrong value.
            with contextlib.suppress(InputError):
                value = load_json(self._data[self._at : match.start() + 1], self._path)
                self._at = match.start() + 1
                return value, line, False
        value, repaired = loads(self.value(), self._path, line, strict=strict)
        return value, line, repaired

    def _composite(self, keep: bool) -> bytes:
        start, depth, at, tokens = self._at, 0, self._at, 0
        while True:
            # Most values end soon; a leap looks at all that lies in the buffer.
            if tokens == _SOON and depth and not keep:
                depth, at = self._leap(depth, at)
            tokens += 1
            match = _TOKEN.search(self._data, at)
            if match is None or match.lastgroup == "cut":
                resume = len(self._data) if match is None else match.start()
                held = start if keep else resume
                self._at = held
                if not self._fill():
                    self.fail("the file ends within a value", "it is cut off: download or copy it again")
                if len(self._data) - self._at > _LARGEST:
                    self.fail(f"a value of more than {_LARGEST >> 20} MiB", "write the data as JSONL")
                start, at, tokens = self._at, self._at + resume - held, _SOON
                continue
            at = match.end()
            if match.lastgroup == "bracket":
                depth += 1 if match.group() in b"[{" else -1
            if depth == 0:
                self._at = at
                return self._data[start:at] if keep else b""

    def _leap(self, depth: int, at: int) -> tuple[int, int]:
        """Depth and position behind what lies in the buffer, as far as it does not close the value."""
        if len(self._data) - at < _WORTH_A_LEAP:
            return depth, at
        # Between quotes that are not escaped lie the strings, every second part; an odd quote cuts the last one off.
        data = self._data[at:] if b"\\" not in self._data else _unescaped(self._data[at:])
        parts = data.split(b'"')
        outside = b"".join(parts[::2])
        if b"\\" in outside:
            return depth, at
        stop = len(self._data) - (0 if len(parts) % 2 else len(parts[-1]) + 1)
        brackets = np.frombuffer(outside.translate(None, _NO_BRACKETS), np.uint8)
        depths = depth + np.cumsum(_STEP[brackets], dtype=np.int64)
        if not len(depths):
            return depth, stop
        return (int(depths[-1]), stop) if depths.min() > 0 else (depth, at)

    def _closes(self, byte: bytes) -> bool:
        if self.peek() == byte:
            self._at += 1
            return True
        return False

    def _goes_on(self, closing: bytes) -> bool:
        """Passes over a comma (True) or the closing bracket (False)."""
        found = self.peek()
        if found not in (b",", closing):
            self._unexpected(found, f"',' or '{closing.decode()}'")
        self._at += 1
        return found == b","

    def _unexpected(self, found: bytes, wanted: str) -> None:
        if not found:
            self.fail(f"the file ends where {wanted} should come", "it is cut off: download or copy it again")
        self.fail(
            f"no valid JSON ({wanted} expected, found {found.decode('latin-1')!r})", "correct it or download it again"
        )

    def _fill(self) -> bool:
        """Drops what lies behind the position and adds the next piece of the file; False at its end."""
        self.line()
        try:
            piece = next(self._chunks, b"")
        except compressed.BrokenFileError as error:
            raise InputError(error.fault, error.remedy, where=self._path, line=self._line) from error
        if not piece:
            return False
        self._before += self._at
        self._data = self._data[self._at :] + piece
        self._at = self._counted = 0
        return True


def _unescaped(data: bytes) -> bytes:
    """Bytes from outside a string with escaped quotes and backslashes overwritten, as long as before."""
    return data.replace(b"\\\\", b"__").replace(b'\\"', b"__")


def _pieces(path: Path, offset: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            while piece := stream.read(_PIECE):
                yield piece
    except OSError as error:
        fault = f"cannot be read ({error.strerror or error})"
        raise InputError(fault, "check the disk or copy it again", where=path) from error

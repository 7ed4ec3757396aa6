"""Rows of named values: CSV, TSV with a header, Parquet, JSONL and JSON, large objects among them, as a stream."""

from __future__ import annotations

import codecs
import contextlib
import csv
import itertools
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError, TruerankError
from truerank.loading import LARGEST, load_json, load_json_at, whole_number
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
    if form in ("parquet", "saved"):
        frames = parquet_frames(path) if form == "parquet" else _saved_frames(path)
        records = (values for frame in frames for values in frame.iter_rows(named=True))
        return (Row(number, values) for number, values in enumerate(records, start=1))
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
    with compressed.plain_file(path) as plain, _refusing(path, "Parquet"):
        yield pl.scan_parquet(plain, glob=False)


@contextlib.contextmanager
def _refusing(path: Path, form: str) -> Iterator[None]:
    """Turns what Polars raises for a damaged file into an error that names it."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"no valid {form} ({reason})", "download or write it again", where=path) from error


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


def saved_files(folder: Path) -> list[Path]:
    """The Arrow files of a folder that `Dataset.save_to_disk` wrote, in the order of its records."""
    state = folder / "state.json"
    value = load_json(compressed.head(state), state, line=1)
    listed = value.get("_data_files") if isinstance(value, dict) else None
    names = [one.get("filename") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    files = [folder / name for name in names if isinstance(name, str) and "/" not in name]
    absent = [file.name for file in files if not file.is_file()]
    if absent or not files:
        fault = f"{absent[0]} is missing" if absent else "it names no files of data"
        raise InputError(fault, "copy the whole folder again", where=state)
    return files


def _saved_frames(folder: Path) -> Iterator[pl.DataFrame]:
    """The records of a saved data set; one file of it at a time is in memory (`datasets` writes 500 MB in each)."""
    for file in saved_files(folder):
        with _refusing(file, "Arrow stream"):
            frame = pl.read_ipc_stream(compressed.checked_file(file))
        yield frame


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
    reader = _JsonReader(path, strict)
    listed = reader.sign() == "["
    for key, value, line, repaired in reader.items():
        if listed:
            yield Row(line, _named_values(value, path, line), repaired)
        else:
            yield Row(line, {"_id": key, **(value if isinstance(value, dict) else {"text": value})}, repaired)
    reader.end()


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


def column_rows(path: Path, names: Sequence[str], needed: Sequence[str], *, strict: bool = False) -> Iterator[Row]:
    """The records of one JSON object of columns, gigabytes long in MS MARCO QnA, each with its `key`.

    One pass finds the columns; then they are read side by side, so that none is held in memory. A column may lack a
    record where keys are numbers that ascend; any other keys must be the same in all columns, in one order.

    Args:
        names: the columns that are read.
        needed: those that must be there.
        strict: raise for bytes that are not UTF-8.
    """
    reader, streams = _JsonReader(path, strict), dict[str, Iterator[_JsonItem]]()
    others: list[str] = []
    for name in reader.names():
        if name not in names:
            others.append(name)
        elif reader.sign() not in ("{", "["):
            raise reader.fault(f"'{name}' is not a table", _NO_QNA)
        else:
            streams.setdefault(name, reader.fork().items())
        reader.skip()
    reader.end()
    for name in needed:
        if name not in streams:
            listed = ", ".join([*streams, *others][:12]) or "none"
            raise reader.fault(f"no column '{name}'; there are {listed}", _NO_QNA)
    heads = {name: next(streams[name], None) for name in names if name in streams}
    last = -1
    while keys := {head.key for head in heads.values() if head}:
        numbers = {-1 if (number := whole_number(key)) is None else number: key for key in keys}
        least = min(numbers)
        taken = {name: head for name, head in heads.items() if head and head.key == numbers[least]}
        if least <= last and len(taken) < len(streams):
            fault = f"columns in different orders (at the key '{numbers[least]}')"
            raise InputError(fault, "write the records of all columns in one order", where=path)
        last = max(last, least)
        values = {"key": numbers[least], **{name: head.value for name, head in taken.items()}}
        yield Row(next(iter(taken.values())).line, values, any(head.repaired for head in taken.values()))
        heads |= {name: next(streams[name], None) for name in taken}


_BLANKS: Final = re.compile(r"[ \t\r\n]*")
#: Characters by which the end of a text can hide what a number, a word or an escape sequence is.
_NEAR: Final = 16
_NO_QNA: Final = "give the MS MARCO QnA file, name another column with #COLUMN, or the format with ?format="
_CUT_OFF: Final = "it is cut off: download or copy it again"


class _JsonItem(NamedTuple):
    """One value inside a large one: its key, the line where it begins, and whether bytes had to be repaired."""

    key: str
    value: Any
    line: int
    repaired: bool


class _JsonReader:
    """A position in a JSON text that only moves forward; little more than one value is in memory."""

    def __init__(self, path: Path, strict: bool) -> None:
        self._path, self._strict = path, strict
        self._pieces, self._taken = compressed.chunks(path), 0
        # A byte that is not UTF-8 becomes half a surrogate pair, which UTF-8 does not hold.
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._text, self._at, self._ended = "", 0, False
        self._line, self._counted = 1, 0

    def fork(self) -> _JsonReader:
        """Another reader that stands where this one does."""
        other = copy(self)
        other._pieces = itertools.islice(compressed.chunks(self._path), self._taken, None)
        other._decoder = copy(self._decoder)
        return other

    def line(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def fault(self, fault: str, remedy: str) -> InputError:
        return InputError(fault, remedy, where=self._path, line=self.line())

    def sign(self) -> str:
        """The next character that is not a blank; empty at the end."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def names(self) -> Iterator[str]:
        """The keys of the object that begins here, or numbers from 0 for an array; the caller takes each value."""
        closing = {"{": "}", "[": "]"}[self._expected("{[")]
        if self.sign() == closing:
            self._at += 1
            return
        for number in itertools.count():
            key = str(number)
            if closing == "}":
                if self.sign() != '"':
                    self._expected('"')
                key = self._item().value
                self._expected(":")
            yield key
            if self._expected("," + closing) == closing:
                return

    def items(self) -> Iterator[_JsonItem]:
        """The members of the object, or the items of the array, that begins here."""
        return (self._item(key) for key in self.names())

    def skip(self) -> None:
        """Passes over a value, of which one member at a time is in memory."""
        if self.sign() in ("{", "["):
            deque(self.items(), maxlen=0)
        else:
            self._item()

    def end(self) -> None:
        if sign := self.sign():
            raise self.fault(f"no valid JSON (the end of the file expected, found {sign!r})", _REMEDY)

    def _expected(self, signs: str) -> str:
        """Passes over one of some signs."""
        sign = self.sign()
        wanted = " or ".join(f"'{each}'" for each in signs)
        if not sign:
            raise self.fault(f"the file ends where {wanted} should come", _CUT_OFF)
        if sign not in signs:
            raise self.fault(f"no valid JSON ({wanted} expected, found {sign!r})", _REMEDY)
        self._at += 1
        return sign

    def _item(self, key: str = "") -> _JsonItem:
        self.sign()
        line = self.line()
        while True:
            known = len(self._text) - (0 if self._ended else _NEAR)
            try:
                value, end = load_json_at(self._text, self._at, self._path, line=line, remedy=_REMEDY)
                if end <= known:
                    break
            except InputError as error:
                if not _is_cut(error.__cause__, known):
                    raise
                if self._ended:
                    raise self.fault("the file ends within a value", _CUT_OFF) from error
            self._read_on()
        raw, self._at = self._text[self._at : end], end
        try:
            raw.encode()
        except UnicodeEncodeError:
            text, _ = decoded(raw.encode("utf-8", "surrogateescape"), self._path, line, strict=self._strict)
            return _JsonItem(key, load_json(text, self._path, line=line, remedy=_REMEDY), line, True)
        return _JsonItem(key, value, line, False)

    def _read_on(self) -> None:
        """Drops what lies behind the position, and adds more text than is left."""
        self.line()
        texts, size = [self._text[self._at :]], 0
        if len(texts[0]) > LARGEST:
            raise self.fault(f"a value of more than {LARGEST >> 20} MiB", "write the data as JSONL")
        while size <= len(texts[0]) and not self._ended:
            try:
                piece = next(self._pieces, b"")
            except compressed.BrokenFileError as error:
                raise self.fault(error.fault, error.remedy) from error
            self._taken, self._ended = self._taken + 1, not piece
            texts.append(self._decoder.decode(piece, self._ended))
            size += len(texts[-1])
        self._text, self._at, self._counted = "".join(texts), 0, 0


def _is_cut(error: BaseException | None, known: int) -> bool:
    """Whether a value is no JSON only because its text ends, whose end from some position on is not known."""
    return isinstance(error, JSONDecodeError) and (error.pos >= known or error.msg.startswith("Unterminated string"))

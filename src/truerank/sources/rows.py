"""Tables as rows of named values: CSV, TSV with a header, JSONL, JSON, Parquet; doccano and Label Studio exports."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError, TruerankError
from truerank.loading import load_json
from truerank.sources import columns, compressed, json_stream
from truerank.sources.grammar import SOURCES
from truerank.sources.lines import line_blocks

_FIELD_LIMIT: Final = 1 << 26
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


def parquet_frames(path: Path, wanted: list[str] | None = None) -> Iterator[pl.DataFrame]:
    """The row groups of a Parquet file as frames of at most 65,536 rows or one row group."""
    with compressed.plain_file(path) as plain:
        try:
            frame = pl.scan_parquet(plain, glob=False)
            if wanted is not None:
                frame = frame.select(wanted)
            yield from frame.collect_batches(chunk_size=_PARQUET_ROWS, maintain_order=True)
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
    except TruerankError:
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
    value = json_stream.loads(compressed.head(state), state, 1, strict=True)[0]
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
            line = block.first + offset
            value = load_json(text, path, line=line, remedy=_REMEDY)
            yield Row(line, _named_values(value, path, line), offset in block.repaired)


def _json_rows(path: Path, strict: bool) -> Iterator[Row]:
    """The items of an array; the members of an object (`{"301": "text"}` or `{"301": {"title": …}}`)."""
    if json_stream.first_byte(path) == b"[":
        for item in json_stream.array_items(path):
            value, repaired = json_stream.loads(item.raw, path, item.line, strict=strict)
            yield Row(item.line, _named_values(value, path, item.line), repaired)
        return
    for item in json_stream.object_items(path):
        value, repaired = json_stream.loads(item.raw, path, item.line, strict=strict)
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
    source = _CsvLines(path, strict)
    header = source.first()
    delimiter = (columns.csv_header(header) or _likeliest(header)) if quoted else "\t"
    csv.field_size_limit(max(csv.field_size_limit(), _FIELD_LIMIT))
    reader = csv.reader(
        source, delimiter=delimiter, strict=quoted, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    )
    begins, names = 1, None
    try:
        for cells in reader:
            line, begins = begins, reader.line_num + 1
            repaired = source.take_repaired()
            if names is None:
                names = [name.strip() for name in cells]
                if twice := [name for name, count in Counter(names).items() if name and count > 1]:
                    remedy = "give each column a name of its own"
                    raise InputError(f"column '{twice[0]}' stands there twice", remedy, where=path, line=line)
            elif cells:
                yield Row(line, dict(zip(names, cells, strict=False)), repaired)
    except csv.Error as error:
        raise InputError(
            f"no valid CSV ({error})", "quote texts that hold quotes or line ends", where=path, line=begins
        ) from error


def _likeliest(header: str) -> str:
    return max((",", ";", "\t"), key=header.count)


class _CsvLines:
    """The lines of a file as the csv module wants them, with their ends; remembers whether one was repaired."""

    def __init__(self, path: Path, strict: bool) -> None:
        self._lines = self._read(path, strict)
        self._repaired = False
        self._pending: list[str] = []

    def first(self) -> str:
        """The first line, which stays in the stream."""
        self._pending = [next(self._lines, "")]
        return self._pending[0].rstrip("\n")

    def take_repaired(self) -> bool:
        """Whether a line since the last call was repaired."""
        repaired, self._repaired = self._repaired, False
        return repaired

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return self._pending.pop() if self._pending else next(self._lines)

    def _read(self, path: Path, strict: bool) -> Iterator[str]:
        for block in line_blocks(path, strict=strict):
            for offset, text in enumerate(block.lines):
                self._repaired |= offset in block.repaired
                yield text + "\n"

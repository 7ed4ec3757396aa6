"""Writes a source again without some of its records; what is kept keeps its bytes.

The reader that the audit used says on which line each query stands, and the lines of the others are copied as they
are. So a record is always the one that was audited, whatever its format, and a header, empty lines and lines that
cannot be read stay.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path, PurePath
from typing import IO, Final, NamedTuple

import polars as pl

from truerank.audits.outputs import Target, refuse_overwrite, written
from truerank.errors import InputError
from truerank.sources import columns, compressed, formats
from truerank.sources.grammar import SourceSpec
from truerank.sources.queries import QuerySource
from truerank.sources.query_files import file_queries

__all__ = [
    "BREAKS", "Drop", "Record", "SourceForm", "Target", "copy", "form_of", "output_format",
    "refuse_overwrite", "rewrite", "written",
]  # fmt: skip

_COMPRESSIONS: Final = (".gz", ".zst", ".bz2", ".xz")
_FORMATS: Final = {
    ".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".parquet": "parquet",
}  # fmt: skip
#: Turns what would break a line of TSV into blanks.
BREAKS: Final = str.maketrans("\t\r\n", "   ")


class Record(NamedTuple):
    """One query of a source and the line (in Parquet: the row) on which it begins, counted from 1; 0 if unknown."""

    query_id: str
    text: str
    line: int


#: Says of each record whether it is left out.
Drop = Callable[[Record], bool]


class SourceForm(NamedTuple):
    """How a source is written again: a file (None for others), and its format; "" for TSV in place of its own form."""

    path: Path | None
    format: str


def form_of(spec: SourceSpec, out: Path) -> SourceForm:
    if spec.scheme != "file":
        form = SourceForm(None, "")
    else:
        found = formats.detect(spec.path if spec.path.is_dir() else compressed.checked_file(spec.path), spec.format)
        path, found = (formats.queries_file(spec.path), "jsonl") if found == "beir" else (spec.path, found)
        form = SourceForm(path, found if found in ("lines", "tsv", "csv", "jsonl", "parquet") else "")
    refuse_overwrite(form.path, out)
    named, wanted = output_format(out), form.format or "tsv"
    packed = out.suffix.lower() in _COMPRESSIONS
    if wanted == "parquet" and named == "parquet" and packed:
        raise InputError("Parquet is compressed inside", "give --out a name that ends in .parquet", where=out)
    right = named == "parquet" if wanted == "parquet" else named in ("", wanted) or {named, wanted} == {"tsv", "lines"}
    if not right:
        reason = (
            f"the output keeps the source's format ({wanted})" if form.format else "such a source is written as TSV"
        )
        ending = "txt" if wanted == "lines" else wanted
        raise InputError(reason, f"give --out a name that ends in .{ending}", where=out)
    return form


def output_format(out: Path) -> str:
    """The format that a file name stands for, whatever its compression; "" if it says none."""
    name = PurePath(out.name.lower())
    while name.suffix in _COMPRESSIONS:
        name = name.with_suffix("")
    return _FORMATS.get(name.suffix, "")


def rewrite(
    source: QuerySource,
    form: SourceForm,
    target: Target,
    drop: Drop,
    *,
    strict: bool = False,
) -> tuple[int, int]:
    """Writes a source of queries again without some of them.

    Lines keep their bytes, order and line ends; Parquet keeps its columns, types and metadata; the compression is that
    of the target. Other sources become `id TAB text`, tabs and line ends in texts blanks.
    """
    removed = skipped = 0
    if form.path is None or not form.format:
        with target.open() as stream:
            for block in source.batches():
                for query_id, text in zip(block.ids, block.texts, strict=True):
                    if drop(Record(query_id, text, 0)):
                        removed += 1
                    else:
                        stream.write(f"{query_id.translate(BREAKS)}\t{text.translate(BREAKS)}\n".encode())
        return removed, source.counts.skipped
    path, single = form.path, source.spec.format == "lines"

    def leaking() -> Iterator[int]:
        nonlocal skipped
        for block in file_queries(path, form.format, source.spec.column, single=single, strict=strict):
            skipped += block.skipped
            for record in map(Record, block.ids, block.texts, block.lines):
                if drop(record):
                    yield record.line

    def dropped() -> Iterator[int]:
        nonlocal removed
        # A list of texts stands on one line.
        for line, _ in groupby(leaking()):
            removed += 1
            yield line

    copy(form, target, dropped())
    return removed, skipped


def copy(form: SourceForm, target: Target, dropped: Iterable[int]) -> None:
    """Copies a file without the records that begin on some lines (in Parquet: rows), ascending and from 1."""
    if form.path is None:
        raise ValueError("only files can be copied")
    if form.format == "parquet":
        _copy_rows(form.path, target.path, list(dropped))
    else:
        with target.open() as stream:
            _copy_lines(form.path, form.format, stream, dropped)


def _copy_lines(path: Path, form: str, stream: IO[bytes], dropped: Iterable[int]) -> None:
    lines = _lines(path)
    header = columns.csv_header(_head(path)) or max((",", ";", "\t"), key=_head(path).count) if form == "csv" else ""
    number = 1
    try:
        for line in dropped:
            while number < line:
                stream.write(next(lines))
                number += 1
            number += _csv_lines(lines, header) if form == "csv" else len([next(lines)])
    except StopIteration as error:
        raise _changed(path) from error
    for rest in lines:
        stream.write(rest)


def _copy_rows(path: Path, target: Path, dropped: Sequence[int]) -> None:
    with compressed.plain_file(path) as plain:
        frame = pl.scan_parquet(plain, glob=False)
        names = frame.collect_schema().names()
        index = next(name for name in ("row", *(f"row{i}" for i in range(len(names) + 1))) if name not in names)
        gone = pl.lit(pl.Series([row - 1 for row in dropped], dtype=pl.UInt32)).implode()
        kept = frame.with_row_index(index).filter(~pl.col(index).is_in(gone)).select(names)
        metadata = {key: value for key, value in pl.read_parquet_metadata(plain).items() if key != "ARROW:schema"}
        kept.sink_parquet(target, metadata=metadata or None, maintain_order=True)
        before, after = (
            pl.scan_parquet(file, glob=False).select(pl.len()).collect().item() for file in (plain, target)
        )
    if before - after != len(dropped):
        raise _changed(path)


def _changed(path: Path) -> InputError:
    return InputError("the file changed while it was read", "run it again when nobody writes to it", where=path)


def _lines(path: Path) -> Iterator[bytes]:
    r"""The lines with their ends, split at "\n" only, as the readers count them."""
    rest: list[bytes] = []
    for piece in compressed.chunks(path):
        first, *more = piece.split(b"\n")
        rest.append(first)
        if more:
            yield b"".join(rest) + b"\n"
            rest = [more.pop()]
            for line in more:
                yield line + b"\n"
    if last := b"".join(rest):
        yield last


def _head(path: Path) -> str:
    return compressed.head(path).partition(b"\n")[0].decode("utf-8", "replace").removeprefix("\ufeff")


def _csv_lines(lines: Iterator[bytes], delimiter: str) -> int:
    """Reads one CSV record and says how many lines it had."""
    texts = (line.decode("utf-8", "replace") for line in lines)
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
    next(reader)
    return reader.line_num

"""Runs in TREC format, as a stream of rows or as columns, with the line of every fault."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.errors import InputError
from truerank.records import RunRow
from truerank.sources import compressed, formats, frames, grammar
from truerank.sources.duplicates import pair_records
from truerank.sources.sharing import is_shared, shared_frames

#: The columns of a run as a frame.
RUN_SCHEMA: Final[dict[str, Any]] = {
    "topic_id": pl.String,
    "doc_id": pl.String,
    "rank": pl.Int64,
    "score": pl.Float64,
    "tag": pl.String,
}
_REMEDY: Final = "write topic, Q0, document, rank, score, tag"
_LAYOUT: Final = ("topic_id", None, "doc_id", "rank", "score", "tag")
_LARGEST: Final = 2**63 - 1


def read_run(path: str | Path) -> Iterator[RunRow]:
    """Reads a run: lines `topic Q0 document rank score tag`, compressed or not.

    Args:
        path: the file.

    Yields:
        The rows in the order of the file, block by block; ranks are as they stand there.

    Raises:
        InputError: not readable; a line with another number of columns, a rank that is no whole number or a score that
            is no finite number; a document that stands twice for a topic (within the last million lines); no row.
    """
    return _rows(_checked(path))


def read_run_frame(path: str | Path) -> pl.DataFrame:
    """Reads a run as columns; the format is that of `read_run`.

    Args:
        path: the file.

    Returns:
        The rows in the order of the file, columns as in `RUN_SCHEMA`.

    Raises:
        InputError: as in `read_run`; a document that stands twice for a topic anywhere in the file.
    """
    frame = pl.concat([pl.DataFrame(schema=RUN_SCHEMA), *run_frames(path)], rechunk=True)
    if pair := frames.repeated_pair(frame["topic_id"], frame["doc_id"]):
        frames.raise_repeat(_checked(path), pair)
    return frame


def run_frames(path: str | Path, columns: Collection[str] = tuple(RUN_SCHEMA)) -> Iterator[pl.DataFrame]:
    """Reads a run as columns, some 16 MiB of text at a time; documents that stand twice are not looked for.

    Args:
        path: the file.
        columns: those of `RUN_SCHEMA` that are wanted.

    Yields:
        Frames of these columns, in the order of the file.

    Raises:
        InputError: as in `read_run`.
    """
    checked = _checked(path)
    schema = {name: kind for name, kind in RUN_SCHEMA.items() if name in columns}
    # Ranks and scores are read in any case: they may be no numbers. What is kept for other readers is the whole.
    read = {name: kind for name, kind in RUN_SCHEMA.items() if name in schema or kind != pl.String or is_shared()}
    layout = tuple(name if name in read else None for name in _LAYOUT)
    found = False
    for frame in shared_frames(checked, "run", lambda: frames.frames(checked, read, [layout], _values_of(read))):
        found = True
        yield frame.select(list(schema))
    if not found:
        raise InputError("no rows in this run", f"{_REMEDY}, one a line", where=checked)


def _checked(path: str | Path) -> Path:
    spec = grammar.parse(str(path))
    if spec.scheme != "file":
        raise InputError("runs are read from files", "give a path", where=spec.spec)
    formats.detect(compressed.checked_file(spec.path))
    return spec.path


def _values_of(columns: Collection[str]) -> frames.LineReader:
    positions = [RunRow._fields.index(name) for name in columns]

    def values(cells: list[str], path: Path, line: int) -> tuple[Any, ...]:
        row = _row(cells, path, line)
        return tuple(row[position] for position in positions)

    return values


def _rows(path: Path) -> Iterator[RunRow]:
    if not (yield from pair_records(path, _row)):
        raise InputError("no rows in this run", f"{_REMEDY}, one a line", where=path)


def _row(cells: list[str], path: Path, line: int) -> RunRow:
    if len(cells) != 6:
        raise InputError(f"{len(cells)} columns instead of 6", _REMEDY, where=path, line=line)
    topic, _, document, rank, score, tag = cells
    try:
        row = RunRow(topic, document, int(rank), float(score), tag)
    except ValueError as error:
        fault = f"rank '{rank[:40]}' or score '{score[:40]}' is no number"
        raise InputError(fault, _REMEDY, where=path, line=line) from error
    if not -_LARGEST - 1 <= row.rank <= _LARGEST:
        raise InputError(f"the rank '{rank[:40]}' is too large", _REMEDY, where=path, line=line)
    if not math.isfinite(row.score):
        raise InputError(f"the score '{score}' is not finite", "write a finite number", where=path, line=line)
    return row

"""Runs in TREC format, streamed, with the line of every fault."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from truerank.errors import InputError
from truerank.records import RunRow
from truerank.sources import compressed, formats, grammar
from truerank.sources.duplicates import PairWindow
from truerank.sources.lines import line_blocks

__all__ = ["read_run"]

_REMEDY = "write topic, Q0, document, rank, score, tag"


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
    spec = grammar.parse(str(path))
    if spec.scheme != "file":
        raise InputError("runs are read from files", "give a path", where=spec.spec)
    formats.detect(compressed.checked_file(spec.path))
    return _rows(spec.path)


def _rows(path: Path) -> Iterator[RunRow]:
    window = PairWindow(path)
    found = False
    for block in line_blocks(path):
        rows: list[RunRow] = []
        numbers: list[int] = []
        for number, line in enumerate(block.lines, start=block.first):
            if cells := line.split():
                rows.append(_row(cells, path, number))
                numbers.append(number)
        window.add([(row.topic_id, row.doc_id) for row in rows], numbers)
        found = found or bool(rows)
        yield from rows
    if not found:
        raise InputError("no rows in this run", f"{_REMEDY}, one a line", where=path)


def _row(cells: list[str], path: Path, line: int) -> RunRow:
    if len(cells) != 6:
        raise InputError(f"{len(cells)} columns instead of 6", _REMEDY, where=path, line=line)
    topic, _, document, rank, score, tag = cells
    try:
        row = RunRow(topic, document, int(rank), float(score), tag)
    except ValueError as error:
        raise InputError(f"rank '{rank}' or score '{score}' is no number", _REMEDY, where=path, line=line) from error
    if not math.isfinite(row.score):
        raise InputError(f"the score '{score}' is not finite", "write a finite number", where=path, line=line)
    return row

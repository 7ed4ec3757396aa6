"""Files that say which id of one version is which id of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from truerank.errors import InputError
from truerank.sources import compressed, grammar, rows
from truerank.sources.lines import line_blocks
from truerank.sources.query_files import as_text, well_formed

_NAMED: Final = (".jsonl", ".ndjson", ".csv", ".parquet", ".json")
_HEADERS: Final = frozenset(("from", "source", "old", "passage_id", "pid", "doc_id", "docid", "docno", "id", "qid"))
_PACKED: Final = (".gz", ".zst", ".bz2", ".xz")


def read_mapping(spec: str, names: Sequence[str]) -> pl.DataFrame:
    """Reads a mapping of ids.

    JSONL, CSV and Parquet have named columns: those called like the versions are taken, or else the first ones. Text
    files have two or more columns, separated by tabs (or blanks, where there are no tabs); a first line that names
    them is a header. An id may stand in several rows, on either side; an empty cell says that there is none.
    """
    found = grammar.parse(spec)
    if found.scheme != "file":
        raise InputError("a mapping is a file", "give the path of a table", where=spec)
    path = compressed.checked_file(found.path)
    form = found.format or _form(path.name)
    frame = _of_lines(path, names) if form == "lines" else _of_rows(path, form, names)
    if not len(frame):
        raise InputError("no pair of ids in it", "write one pair a line: id TAB id", where=path)
    return frame


def _form(name: str) -> str:
    lowered = name.lower()
    for packing in _PACKED:
        lowered = lowered.removesuffix(packing)
    ending = next((known for known in _NAMED if lowered.endswith(known)), "")
    return {"": "lines", ".ndjson": "jsonl"}.get(ending, ending.lstrip("."))


def _of_rows(path: Any, form: str, names: Sequence[str]) -> pl.DataFrame:
    columns: list[list[str | None]] = [[] for _ in names]
    keys: tuple[str, ...] | None = None
    chosen: list[str] = []
    for row in rows.rows(path, form):
        if tuple(row.values) != keys:
            keys = tuple(row.values)
            chosen = _chosen(keys, names, path, row.line)
        for column, key in zip(columns, chosen, strict=True):
            column.append(well_formed(as_text(row.values[key]) or "").strip() or None)
    return _frame(columns, names)


def _of_lines(path: Any, names: Sequence[str]) -> pl.DataFrame:
    columns: list[list[str | None]] = [[] for _ in names]
    places: list[int] = []
    for block in line_blocks(path):
        for number, line in enumerate(block.lines, start=block.first):
            if not line.strip():
                continue
            cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())]
            if not places:
                places, header = _places(cells, names, path, number)
                if header:
                    continue
            if len(cells) <= max(places):
                raise InputError(
                    f"{len(cells)} columns instead of {max(places) + 1}",
                    "write one pair a line: id TAB id",
                    where=path,
                    line=number,
                )
            for column, place in zip(columns, places, strict=True):
                column.append(cells[place] or None)
    return _frame(columns, names)


def _places(cells: list[str], names: Sequence[str], path: Any, line: int) -> tuple[list[int], bool]:
    """Which column belongs to which version, and whether the line is a header."""
    header = set(names) <= set(cells)
    if header:
        return [cells.index(name) for name in names], True
    if len(cells) < len(names):
        raise InputError(
            f"{len(cells)} columns for {len(names)} versions", "write one pair a line: id TAB id", where=path, line=line
        )
    return list(range(len(names))), cells[0].lower() in _HEADERS


def _chosen(keys: tuple[str, ...], names: Sequence[str], path: Any, line: int) -> list[str]:
    if set(names) <= set(keys):
        return list(names)
    if len(keys) < len(names):
        raise InputError(
            f"{len(keys)} columns for {len(names)} versions",
            f"name columns {', '.join(names)}",
            where=path,
            line=line,
        )
    return list(keys[: len(names)])


def _frame(columns: list[list[str | None]], names: Sequence[str]) -> pl.DataFrame:
    data = {name: pl.Series(name, column, dtype=pl.String) for name, column in zip(names, columns, strict=True)}
    return pl.DataFrame(data).filter(pl.col(names[0]).is_not_null())

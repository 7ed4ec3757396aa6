"""What the commands of this audit share: where a file of judgments comes from, and tables as TSV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import polars as pl

import truerank
from truerank.sources import compressed, grammar, irds
from truerank.sources.beir import qrels_file

__all__ = ["file_record", "provenance", "tsv", "write_tsv"]

#: Turns what would break a line of TSV into blanks.
_BREAKS: Final = str.maketrans("\t\r\n", "   ")
_AT_ONCE: Final = 1 << 16


def file_record(spec: str) -> dict[str, str]:
    """Name and content of a source of judgments or ids, for a manifest."""
    found = grammar.parse(spec)
    if found.scheme == "irds":
        return {"name": found.name, "hash": irds.fingerprint(found.location)}
    path: Path | None = found.path
    if compressed.is_folder(found.path):
        path = qrels_file(found.path)
    return {"name": found.name, "hash": "" if path is None else compressed.fingerprint(path)}


def tsv(frame: pl.DataFrame) -> Iterator[str]:
    """The lines of a frame as TSV with a header; tabs and line ends in texts become blanks."""
    yield "\t".join(frame.columns) + "\n"
    for part in frame.iter_slices(_AT_ONCE):
        for row in part.iter_rows():
            yield "\t".join("" if cell is None else str(cell).translate(_BREAKS) for cell in row) + "\n"


def write_tsv(stream: IO[bytes], frame: pl.DataFrame) -> None:
    """Writes a frame as TSV in UTF-8."""
    for line in tsv(frame):
        stream.write(line.encode("utf-8", "replace"))


def provenance(command: str, **content: Any) -> dict[str, Any]:
    """The beginning of a manifest."""
    return {"truerank": truerank.__version__, "command": f"transfer {command}", **content}

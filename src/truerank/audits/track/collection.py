"""How many records the files of a test collection hold, and how large they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.sources import compressed, formats, grammar, irds, open_queries, read_qrels_frame, read_topics

__all__ = ["FileStatistics", "Kind", "file_statistics"]

Kind = Literal["collection", "queries", "qrels"]

_DOCUMENT: Final = re.compile(rb"<doc[\s>]", re.IGNORECASE)
#: Length of what `_DOCUMENT` matches.
_TAG: Final = 5


class FileStatistics(NamedTuple):
    """One file or data set: what it is, where it lies, its records and its size; None where the size is not known."""

    description: str
    location: str
    kind: Kind
    records: int
    size: int | None


def file_statistics(spec: str, kind: Kind, description: str = "") -> FileStatistics:
    """Counts the records of a source.

    Documents are counted without being read into memory: lines of TSV and JSONL, `<DOC>` elements of TREC text, rows of
    Parquet; a folder is the sum of its files. Queries and judgments are counted by the readers that read them.

    Args:
        spec: a path, or an ir_datasets id with `irds:`.
        kind: what it holds.
        description: what to call it; by default its kind.

    Returns:
        The counts.

    Raises:
        InputError: not readable, or the format of a collection is not known.
    """
    parsed = grammar.parse(spec)
    if parsed.scheme == "hf":
        raise InputError("files on Hugging Face are not counted", "give a file or an irds: id", where=spec)
    described = description or kind.capitalize()
    if parsed.scheme == "irds":
        return FileStatistics(described, spec, kind, _irds_records(parsed.location, kind), None)
    size = sum(path.stat().st_size for path in _files(parsed.path))
    records = {"collection": _documents, "queries": _queries, "qrels": _judgments}[kind](spec)
    return FileStatistics(described, spec, kind, records, size)


def _files(path: Path) -> Sequence[Path]:
    if not compressed.is_folder(path):
        return [compressed.checked_file(path)]
    files = sorted(found for found in path.rglob("*") if found.is_file() and not found.name.startswith("."))
    if not files:
        raise InputError("an empty folder", "give the folder or file of the documents", where=path)
    return files


def _irds_records(dataset_id: str, kind: Kind) -> int:
    if kind == "qrels":
        return sum(1 for _ in irds.qrels(dataset_id))
    if kind == "queries":
        return sum(len(block.texts) for block in irds.queries(dataset_id))
    return irds.count_documents(dataset_id)


def _queries(spec: str) -> int:
    parsed = grammar.parse(spec)
    if formats.detect(parsed.path, parsed.format) in ("trec", "xml"):
        return len(read_topics(spec).topics)
    source = open_queries(spec)
    for _ in source.batches():
        pass
    return source.counts.read


def _judgments(spec: str) -> int:
    return read_qrels_frame(spec).height


def _documents(spec: str) -> int:
    parsed = grammar.parse(spec)
    return sum(_documents_in(path, parsed.format) for path in _files(parsed.path))


def _documents_in(path: Path, forced: str | None) -> int:
    form = formats.detect(path, forced)
    if form == "parquet":
        with compressed.plain_file(path) as plain:
            return int(pl.scan_parquet(plain, glob=False).select(pl.len()).collect().item())
    counters: dict[str, Callable[[Path], int]] = dict.fromkeys(("lines", "tsv", "jsonl"), _lines)
    counters |= {"trec": _tags, "xml": _tags}
    if form not in counters:
        raise InputError(
            f"documents are not counted in {form} files", "give TREC text, TSV, JSONL or Parquet", where=path
        )
    count = counters[form](path)
    if not count:
        raise InputError("no document in it", "give TREC text, TSV, JSONL or Parquet", where=path)
    return count


def _lines(path: Path) -> int:
    """Lines, blank ones included; an unfinished last one counts."""
    count, last = 0, b"\n"
    for piece in compressed.chunks(path):
        count += piece.count(b"\n")
        last = piece[-1:] or last
    return count + (last != b"\n")


def _tags(path: Path) -> int:
    count, rest = 0, b""
    for piece in compressed.chunks(path):
        whole = rest + piece
        count += sum(1 for _ in _DOCUMENT.finditer(whole))
        # Too short to hold a tag that was counted, long enough for all but the end of one that was not.
        rest = whole[-(_TAG - 1) :]
    return count

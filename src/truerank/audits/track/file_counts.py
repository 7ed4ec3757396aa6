"""The files of a track's collection: how many records they have, and how large they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from truerank.errors import InputError
from truerank.sources import compressed, grammar, irds, open_queries, read_qrels_frame
from truerank.sources.documents import open_documents

Kind = Literal["collection", "queries", "qrels"]


class FileStatistics(NamedTuple):
    """One file or data set: what it is, where it lies, its records and its size; None where the size is not known."""

    description: str
    location: str
    kind: Kind
    records: int
    size: int | None


def file_statistics(spec: str, kind: Kind, description: str = "") -> FileStatistics:
    """Counts the records of a source.

    Files are streamed by the readers that open them elsewhere; a folder's size is the sum of its files. What is on
    ir_datasets has no size of its own.

    Args:
        spec: a path, or an ir_datasets id with `irds:`.
        kind: what it holds.
        description: what to call it; by default its kind.

    Returns:
        The counts.

    Raises:
        InputError: not readable, of no known format, or on Hugging Face.
    """
    parsed = grammar.parse(spec)
    if parsed.scheme == "hf":
        raise InputError("files on Hugging Face are not counted", "give a file or an irds: id", where=spec)
    irds_id = parsed.location if parsed.scheme == "irds" else None
    size = sum(path.stat().st_size for path in _files(parsed.path, kind)) if irds_id is None else None
    return FileStatistics(description or kind.capitalize(), spec, kind, _records(spec, kind, irds_id), size)


def _records(spec: str, kind: Kind, irds_id: str | None) -> int:
    if kind == "qrels":
        return read_qrels_frame(spec).height
    if kind == "collection" and irds_id is not None:
        return irds.count_documents(irds_id)
    source = open_queries(spec) if kind == "queries" else open_documents(spec, keep_empty=True)
    for _ in source.batches():
        pass
    return source.counts.read


def _files(path: Path, kind: Kind) -> Sequence[Path]:
    if not compressed.is_folder(path):
        return [compressed.checked_file(path)]
    # Of a BEIR folder only the part that is counted; of any other folder all files.
    part = {"collection": "corpus.jsonl*", "queries": "queries.jsonl*", "qrels": "qrels/test.tsv*"}[kind]
    found = sorted(path.glob(part)) or sorted(path.rglob("*"))
    files = [file for file in found if file.is_file() and not file.name.startswith(".")]
    if not files:
        raise InputError("an empty folder", "give the folder or file that holds them", where=path)
    return files

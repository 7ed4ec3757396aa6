"""Versions of a collection, and which document of one is which document of another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import polars as pl

from truerank.arrays import frame_schema
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.loading import json_file
from truerank.options import Flag
from truerank.records import Document, Input
from truerank.sources import compressed, grammar, rows
from truerank.sources.documents import DocumentSource, open_documents
from truerank.sources.grammar import named_source, parse, unique_names
from truerank.sources.inputs import shown_source
from truerank.sources.lines import line_blocks
from truerank.sources.query_files import as_text, well_formed
from truerank.text.printable import counted
from truerank.work.artifacts import hash_file, written_by

#: What became of a judged document in another version.
STATUSES: Final = ("matched", "lost", "ambiguous")
#: The columns of `Matched.pairs`: one row per judged document and other version.
FOUND_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "doc_id key version status found: String, candidates: UInt32, listed reason: String"
)
#: Names that a version cannot have, since they are columns.
RESERVED: Final = ("key", "doc_id", "topic_id", "status", "reason", "relevance")


#: The option that names versions.
VersionSources = Annotated[Mapping[str, str] | Sequence[str], Flag(metavar="NAME=SRC", reads=list[str])]


class Version(NamedTuple):
    """One version of a collection."""

    name: str
    source: DocumentSource

    def documents(self, wanted: Collection[str]) -> Iterator[Document]:
        """Streams the documents with these ids, in the order of the collection; also those without text."""
        for block in self.source.batches():
            yield from (document for document in block if document.doc_id in wanted)


def read_versions(versions: Mapping[str, str] | Sequence[str], *, strict: bool = False) -> tuple[Version, ...]:
    """Opens versions of a collection; the first is the one that was judged.

    Args:
        versions: sources of documents by name, or `NAME=SRC` each; without a name a version is called like its file.
        strict: raise for bytes that are not UTF-8.

    Returns:
        The versions in order; documents without text are handed on too.

    Raises:
        InputError: fewer than two, a source that cannot be opened, two of one name or a name that is a column's.
    """
    if isinstance(versions, Mapping):
        named = [(name, parse(spec)) for name, spec in versions.items()]
    else:
        named = [named_source(text) for text in versions]
        names = unique_names([spec for _, spec in named])
        named = [(name or fallback, spec) for (name, spec), fallback in zip(named, names, strict=True)]
    if len(named) < 2:
        raise OptionError("version", "one version has nothing to be compared with", "give two or more")
    seen: set[str] = set()
    for name, _ in named:
        if name in seen:
            raise OptionError("version", f"two versions called '{name}'", "give NAME=SRC with different names")
        if name in RESERVED or not name.strip() or any(mark in name for mark in "\t\r\n"):
            raise OptionError("version", f"a version cannot be called '{name}'", "give NAME=SRC")
        seen.add(name)
    return tuple(Version(name, open_documents(spec, strict=strict, keep_empty=True)) for name, spec in named)


def version_inputs(versions: Sequence[Version], rows: Mapping[str, int] | None = None) -> tuple[Input, ...]:
    """The versions as a manifest names them; each file is hashed once, however often this is asked for."""
    inputs = []
    for name, source in versions:
        found = source.fingerprint.removeprefix("sha256:").partition(";")[0]
        digest = found if source.fingerprint.startswith("sha256:") else None
        inputs.append(Input(name, shown_source(source.spec), "version", (rows or {}).get(name), digest))
    return tuple(inputs)


@dataclass(frozen=True, eq=False, repr=False)
class Matched(Result, shown_in="truerank.audits.transfer.report"):
    """Which document of the judged version is which one of the others.

    Attributes:
        frame: one row per judged document, in order of first appearance: `key` (what was matched: normalised URL, id
            or id of the mapping), `doc_id` (as judged), and one column per version with the document's id there, null
            where it is lost or ambiguous; the judged version's is null where that lacks the document.
        pairs: one row per judged document and other version, columns as in `FOUND_SCHEMA`, the same order.
        versions: the names, that of the judged version first.
        by: "url", "id" or "mapping".
        counts: per version what was read of it: documents, without URL, of several with one URL.
        warnings: what a user must know, one sentence each.
        folder: where the files lie.
    """

    frame: pl.DataFrame
    pairs: pl.DataFrame
    versions: tuple[str, ...]
    by: str
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    folder: Path | None = None

    @property
    def judged(self) -> str:
        """The version that was judged."""
        return self.versions[0]

    def complete(self) -> pl.DataFrame:
        """The rows of `frame` with a document in every version."""
        return self.frame.drop_nulls(list(self.versions))

    def status(self, version: str) -> dict[str, int]:
        """How many judged documents were matched, lost and ambiguous in a version."""
        found = self.pairs.filter(pl.col("version") == version)["status"].value_counts()
        known = dict(found.iter_rows())
        return {status: int(known.get(status, 0)) for status in STATUSES}

    def reasons(self) -> pl.DataFrame:
        """Version, status, reason and the number of documents, the most frequent first."""
        grouped = self.pairs.filter(pl.col("reason") != "").group_by("version", "status", "reason", maintain_order=True)
        order = {name: at for at, name in enumerate(self.versions)}
        place = pl.col("version").replace_strict(order, default=-1)
        counted = grouped.len("documents").with_columns(pl.col("documents").cast(pl.Int64))
        return counted.sort(place, "status", "documents", "reason", descending=[False, True, True, False])

    def json(self) -> dict[str, Any]:
        """The counts."""
        return {
            "judged": self.judged,
            "by": self.by,
            "documents": len(self.frame),
            "complete": len(self.complete()),
            "versions": {name: {**self.status(name), **self.counts.get(name, {})} for name in self.versions[1:]},
            "judged_version": dict(self.counts.get(self.judged, {})),
            "reasons": self.reasons().to_dicts(),
            "warnings": list(self.warnings),
        }


def matched_input(matched: Matched | str | Path | None) -> tuple[Input, ...]:
    """The matched versions as a manifest names them; nothing where there are none."""
    if matched is None:
        return ()
    folder = matched.folder if isinstance(matched, Matched) else Path(matched)
    if folder is None:
        return (Input("matched", "", "matched"),)
    return (Input(folder.name, str(folder), "matched", None, hash_file(folder / "pairs.parquet")),)


def load_matched(folder: str | Path) -> Matched:
    """Opens the folder that `transfer match --out` wrote.

    Raises:
        InputError: a file is missing or broken.
    """
    folder = Path(folder)
    with written_by("transfer match", folder, "matched.parquet", "pairs.parquet", "summary.json"):
        summary = json_file(folder / "summary.json")
        frame = pl.read_parquet(folder / "matched.parquet", glob=False)
        pairs = pl.read_parquet(folder / "pairs.parquet", glob=False)
        versions = tuple(summary["version_names"])
        frame, pairs = frame.select("key", "doc_id", *versions), pairs.select(list(FOUND_SCHEMA))
        warnings = tuple(summary["warnings"])
        return Matched(frame, pairs, versions, summary["by"], summary["counts"], warnings, folder)


_NAMED: Final = (".jsonl", ".ndjson", ".csv", ".parquet", ".json")
_HEADERS: Final = frozenset(("from", "source", "old", "passage_id", "pid", "doc_id", "docid", "docno", "id", "qid"))
_PACKED: Final = (".gz", ".zst", ".bz2", ".xz")


def read_mapping(spec: str, names: Sequence[str]) -> pl.DataFrame:
    """Reads a mapping of ids.

    JSONL, CSV and Parquet have named columns: those called like the versions are taken, or else the first ones. Text
    files have two or more columns, separated by tabs (or blanks, where there are no tabs); a first line that names
    them is a header. An id may be in several rows, on either side; an empty cell says that there is none.
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
                fault = f"{counted(len(cells), 'column')} instead of {max(places) + 1}"
                raise InputError(fault, "write one pair a line: id TAB id", where=path, line=number)
            for column, place in zip(columns, places, strict=True):
                column.append(cells[place] or None)
    return _frame(columns, names)


def _places(cells: list[str], names: Sequence[str], path: Any, line: int) -> tuple[list[int], bool]:
    """Which column belongs to which version, and whether the line is a header."""
    if set(names) <= set(cells):
        return [cells.index(name) for name in names], True
    if len(cells) < len(names):
        fault = f"{counted(len(cells), 'column')} for {len(names)} versions"
        raise InputError(fault, "write one pair a line: id TAB id", where=path, line=line)
    return list(range(len(names))), cells[0].lower() in _HEADERS


def _chosen(keys: tuple[str, ...], names: Sequence[str], path: Any, line: int) -> list[str]:
    if set(names) <= set(keys):
        return list(names)
    if len(keys) < len(names):
        fault = f"{counted(len(keys), 'column')} for {len(names)} versions"
        raise InputError(fault, f"name columns {', '.join(names)}", where=path, line=line)
    return list(keys[: len(names)])


def _frame(columns: list[list[str | None]], names: Sequence[str]) -> pl.DataFrame:
    data = {name: pl.Series(name, column, dtype=pl.String) for name, column in zip(names, columns, strict=True)}
    return pl.DataFrame(data).filter(pl.col(names[0]).is_not_null())

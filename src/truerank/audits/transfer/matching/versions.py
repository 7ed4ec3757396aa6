"""Versions of a collection, and which document of one is which document of another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import polars as pl

from truerank.errors import OptionError
from truerank.loading import json_file
from truerank.options import Flag
from truerank.records import Document, Input
from truerank.reports.results import Result
from truerank.sources.documents import DocumentSource, open_documents
from truerank.sources.grammar import parse, unique_names
from truerank.sources.inputs import shown_source
from truerank.work.artifacts import written_by

#: What became of a judged document in another version.
STATUSES: Final = ("matched", "lost", "ambiguous")
#: The columns of `Matched.pairs`: one row per judged document and other version.
FOUND_SCHEMA: Final[dict[str, Any]] = {
    "doc_id": pl.String, "key": pl.String, "version": pl.String, "status": pl.String, "found": pl.String,
    "candidates": pl.UInt32, "listed": pl.String, "reason": pl.String,
}  # fmt: skip
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
        named = [_named(text) for text in versions]
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
    return tuple(
        Input(
            one.name,
            shown_source(one.source.spec),
            "version",
            (rows or {}).get(one.name),
            _sha256(one.source.fingerprint),
        )
        for one in versions
    )


def _sha256(fingerprint: str) -> str | None:
    found = fingerprint.removeprefix("sha256:").partition(";")[0]
    return found if fingerprint.startswith("sha256:") else None


def _named(text: str) -> tuple[str, Any]:
    name, equals, rest = text.partition("=")
    if equals and rest and name.strip() and not set(name) & set("/?#:") and not Path(text).exists():
        return name.strip(), parse(rest)
    return "", parse(text)


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
        return (
            grouped.len("documents")
            .sort(
                pl.col("version").replace_strict(order, default=-1),
                "status",
                "documents",
                "reason",
                descending=[False, True, True, False],
            )
            .with_columns(pl.col("documents").cast(pl.Int64))
        )

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
        return Matched(
            frame.select("key", "doc_id", *versions),
            pairs.select(list(FOUND_SCHEMA)),
            versions,
            summary["by"],
            summary["counts"],
            tuple(summary["warnings"]),
            folder,
        )

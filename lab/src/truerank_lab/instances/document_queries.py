"""Training queries made from a collection's own documents, for collections that come without any."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import among
from truerank.core.result import Result, Summary, summarises
from truerank.errors import InputError
from truerank.options import Flag, command
from truerank.records import Document
from truerank.sources.blocks import QueryBlock, SourceCounts
from truerank.sources.documents import DocumentSource, open_documents
from truerank.sources.grammar import SourceSpec
from truerank.sources.inputs import inputs_of
from truerank.text.normalising import normalise
from truerank.work.artifacts import atomic_path
from truerank.work.runs import run as started
from truerank_lab.instances.draws import Keyed

_PREFIX: Final = "doc-"
#: Words that make the query where a document has no title, and words that must be left of it.
_WORDS: Final = 8
_REST: Final = 20


class MadeQuery(NamedTuple):
    """A query, and what is left of the document that it was taken from."""

    query: str
    rest: str


def divided(document: Document, ends: str) -> MadeQuery | None:
    """The title and the body of a document; without a title its first words and the words behind them; None for a
    record that has a title only.

    What stands behind the first match of the regular expression `ends` counts neither as query nor as text.
    """
    body = normalise(document.body)
    match = re.search(ends, body) if ends else None
    own, tail = (body, "") if match is None else (body[: match.start()], body[match.start() :])
    title, words = normalise(document.title), own.split()
    if title:
        return MadeQuery(title, body) if len(words) >= _REST else None
    if len(words) < _WORDS + _REST:
        return None
    return MadeQuery(" ".join(words[:_WORDS]), " ".join([*words[_WORDS:], *tail.split()]))


class DocumentQueries:
    """The queries that a collection's documents make, as a source; the id of a query is `doc-` and the document's id.

    Args:
        docs: the collection.
        ends: what stands behind its first match is not counted.
    """

    def __init__(self, docs: str | DocumentSource, ends: str) -> None:
        self._docs = open_documents(docs) if isinstance(docs, str) else docs
        self._ends = ends
        self._counts = SourceCounts()

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._docs.name

    @property
    def spec(self) -> SourceSpec:
        """Where the collection is."""
        return self._docs.spec

    @property
    def counts(self) -> SourceCounts:
        """What the last pass read; `skipped` are the records that have a title only."""
        return self._counts

    @property
    def fingerprint(self) -> str:
        """The identity of the collection and of the rule."""
        return f"{self._docs.fingerprint};ends={self._ends}"

    @staticmethod
    def query_of(doc_id: str) -> str:
        """The id of the query that a document makes."""
        return f"{_PREFIX}{doc_id}"

    @staticmethod
    def document_of(query_id: str) -> str:
        """The document that a query was made from."""
        return query_id.removeprefix(_PREFIX)

    def batches(self, size: int = 1 << 10) -> Iterator[QueryBlock]:
        """The queries in blocks of at most `size`.

        Raises:
            InputError: a fault in the collection, or every record has a title only.
        """
        read = skipped = 0
        for block in self._docs.batches(size):
            made = [(document.doc_id, divided(document, self._ends)) for document in block]
            kept = [(self.query_of(doc_id), one.query) for doc_id, one in made if one is not None]
            read, skipped = read + len(block), skipped + len(block) - len(kept)
            if kept:
                yield QueryBlock([query_id for query_id, _ in kept], [query for _, query in kept])
        self._counts = SourceCounts(read=read, skipped=skipped)
        if read == skipped:
            fault = f"none of {read:,} documents leaves {_REST} words beside its title or first words"
            raise InputError(fault, "give a collection with longer texts", where=self.spec.location)

    def usable(self, doc_ids: Sequence[str]) -> Sequence[bool]:
        """Which documents have more than a title."""
        found: list[bool] = among(self._numbers.many(doc_ids), self._whole).tolist()
        return found

    @cached_property
    def _numbers(self) -> Keyed:
        return Keyed(0, "documents")

    @cached_property
    def _whole(self) -> NDArray[np.uint64]:
        # Eight bytes for a document, so that the collection may be large.
        parts = [self._numbers.many([self.document_of(one) for one in block.ids]) for block in self.batches()]
        return np.sort(np.concatenate(parts))


@dataclass(frozen=True, eq=False, repr=False)
class QueryFile(Result, shown_in="truerank_lab.instances.document_queries"):
    """The queries that a collection's documents make, in a file.

    Attributes:
        out: the file.
        read: documents read.
        skipped: of them, those that have a title only.
    """

    out: Path
    read: int
    skipped: int


@command
def queries(
    docs: Annotated[str, Flag(metavar="SRC", positional=True)],
    *,
    ends: Annotated[str, Flag(metavar="REGEX")] = "",
    out: Annotated[str | Path, Flag(metavar="FILE", reads=Path)],
) -> QueryFile:
    """Writes the queries that a collection's own documents make, so that they can be audited.

    The title is the query and the body the document; without a title, the first words and what follows them. Records
    with a title only make none.

    Args:
        docs: the collection.
        ends: a regular expression; what stands behind its first match counts neither as query nor as text.
        out: lines: id TAB query; the ids are those of the training sets. A manifest lies beside it.

    Returns:
        How many documents were read, and how many have a title only.

    Raises:
        InputError: a fault in the collection, or every record has a title only.

    Examples:

        truerank-lab queries docs.trec.gz --out queries.tsv
    """
    source, target = DocumentQueries(docs, ends), Path(out)
    with started("instances queries", inputs_of(docs=docs), {"ends": ends}, target, file=True) as job:
        with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
            for block in source.batches():
                stream.writelines(
                    f"{query_id}\t{text}\n" for query_id, text in zip(block.ids, block.texts, strict=True)
                )
        job.note(target.name)
        job.skipped = {"title_only": source.counts.skipped}
    return QueryFile(target, source.counts.read, source.counts.skipped)


@summarises(QueryFile)
def _query_file(found: QueryFile) -> Summary:
    made = found.read - found.skipped
    text = f"{made:,} queries of {found.read:,} documents; {found.skipped:,} have a title only\nwritten: {found.out}"
    facts = {"out": str(found.out), "documents": found.read, "queries": made, "title_only": found.skipped}
    return Summary((text,), facts)

"""Training queries made from a collection's own documents, for collections that come without any."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import among
from truerank.errors import InputError
from truerank.records import Document
from truerank.sources.blocks import QueryBlock, SourceCounts
from truerank.sources.documents import DocumentSource, open_documents
from truerank.text.normalising import normalise
from truerank.work.artifacts import atomic_path
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
        #: Of the collection.
        self.name = self._docs.name
        #: What the last pass read; `skipped` are the records that have a title only.
        self.counts = SourceCounts()

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
            kept = [(f"{_PREFIX}{doc_id}", one.query) for doc_id, one in made if one is not None]
            read, skipped = read + len(block), skipped + len(block) - len(kept)
            if kept:
                yield QueryBlock([query_id for query_id, _ in kept], [query for _, query in kept])
        self.counts = SourceCounts(read=read, skipped=skipped)
        if read == skipped:
            fault = f"none of {read:,} documents leaves {_REST} words beside its title or first words"
            raise InputError(fault, "give a collection with longer texts", where=self._docs.spec.location)

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


def write_queries(docs: str, ends: str, out: Path) -> SourceCounts:
    """Writes the queries that a collection's documents make, so that they can be audited; a line is id TAB query."""
    source = DocumentQueries(docs, ends)
    with atomic_path(out) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        for block in source.batches():
            stream.writelines(f"{query_id}\t{text}\n" for query_id, text in zip(block.ids, block.texts, strict=True))
    return source.counts

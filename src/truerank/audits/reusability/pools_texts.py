"""The texts of documents by id, kept on the disk: memory does not grow with the collection."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from truerank.errors import InputError
from truerank.records import Document
from truerank.sources import open_documents
from truerank.work.artifacts import atomic_path
from truerank.work.progress import Progress, Quiet

__all__ = ["DocumentTexts"]

_SCHEMA: Final = (
    "CREATE TABLE documents (doc_id TEXT PRIMARY KEY, url TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL) "
    "WITHOUT ROWID"
)
_AT_ONCE: Final = 1 << 14


class DocumentTexts:
    """Documents by id.

    Args:
        path: the file, made by `collect`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def collect(
        cls, docs: str, path: Path, wanted: Collection[str] | None = None, *, progress: Progress | None = None
    ) -> DocumentTexts:
        """Reads a collection and keeps its documents, or those that are wanted; the file appears whole or not at all.

        Args:
            docs: the collection, see `sources.open_documents`.
            path: the file to make.
            wanted: ids; None for all.
            progress: is told how many documents were read.

        Raises:
            InputError: a fault in the collection.
        """
        told = progress or Quiet()
        told.start("reading documents")
        with atomic_path(path) as temporary:
            connection = sqlite3.connect(temporary)
            try:
                connection.execute("PRAGMA journal_mode=OFF")
                connection.execute(_SCHEMA)
                # Empty documents too: that a document has no text is not that it is missing.
                for block in open_documents(docs, keep_empty=True).batches():
                    found = [tuple(map(_whole, one)) for one in block if wanted is None or one.doc_id in wanted]
                    connection.executemany("INSERT OR IGNORE INTO documents VALUES (?, ?, ?, ?)", found)
                    told.advance(len(block))
                connection.commit()
            finally:
                connection.close()
        return cls(path)

    def of(self, doc_ids: Iterable[str]) -> dict[str, Document]:
        """Those of the documents that are there, by id."""
        distinct = list(dict.fromkeys(doc_ids))
        found: dict[str, Document] = {}
        connection = sqlite3.connect(self.path)
        try:
            for start in range(0, len(distinct), _AT_ONCE):
                some = distinct[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = connection.execute(
                    f"SELECT doc_id, url, title, body FROM documents WHERE doc_id IN ({marks})", some
                )
                found.update((row[0], Document(*row)) for row in rows)
        finally:
            connection.close()
        return found

    def missing(self, doc_ids: Collection[str], what: str) -> None:
        """Refuses ids that the collection lacks.

        Raises:
            InputError: there are some.
        """
        there = self.of(doc_ids)
        absent = [doc_id for doc_id in doc_ids if doc_id not in there]
        if absent:
            shown = ", ".join(absent[:3]) + (" …" if len(absent) > 3 else "")
            raise InputError(
                f"{len(absent):,} documents of {what} are not in it: {shown}", "give their collection", where="--docs"
            )


def _whole(text: str) -> str:
    # SQLite takes no halves of characters.
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")

"""The texts of the documents that are to be reranked, taken out of a collection in one pass and kept on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from truerank.sources.documents import open_documents
from truerank.work.progress import Progress

__all__ = ["CandidateTexts"]

_SCHEMA: Final = (
    "CREATE TABLE documents (doc_id TEXT PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, url TEXT NOT NULL) "
    "WITHOUT ROWID"
)
_AT_ONCE: Final = 1 << 14


class CandidateTexts:
    """Titles, bodies and URLs by document id; memory does not grow with the collection.

    Args:
        path: the file, made by `collect`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def collect(
        cls, path: Path, docs: str, wanted: frozenset[str], progress: Progress, *, strict: bool = False
    ) -> None:
        """Reads a collection and keeps the documents that are wanted, all of them or none.

        Args:
            path: the file; left as it is where it is there.
            docs: the collection, see `sources.open_documents`.
            wanted: the ids.
            progress: is told how many documents were read.
            strict: as for `open_documents`.

        Raises:
            InputError: a fault in the collection.
        """
        if path.is_file():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.unlink(missing_ok=True)
        progress.start("reading documents")
        connection = sqlite3.connect(temporary)
        try:
            connection.execute("PRAGMA journal_mode=OFF")
            connection.execute(_SCHEMA)
            # Empty documents too: that a document has no text is not that it is missing.
            for block in open_documents(docs, strict=strict, keep_empty=True).batches():
                kept = (one for one in block if one.doc_id in wanted)
                rows = [(one.doc_id, _whole(one.title), _whole(one.body), _whole(one.url)) for one in kept]
                connection.executemany("INSERT OR IGNORE INTO documents VALUES (?, ?, ?, ?)", rows)
                progress.advance(len(block))
            connection.commit()
        finally:
            connection.close()
        temporary.replace(path)

    def ids(self) -> Iterator[str]:
        """The ids of all documents that were found."""
        connection = sqlite3.connect(self.path)
        try:
            for (doc_id,) in connection.execute("SELECT doc_id FROM documents ORDER BY doc_id"):
                yield doc_id
        finally:
            connection.close()

    def texts(self, doc_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Title and body of those of the documents that were found."""
        return {doc_id: (title, body) for doc_id, title, body in self._rows("title, body", doc_ids)}

    def urls(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """URLs of those of the documents that were found; empty where a document has none."""
        return {doc_id: url for doc_id, url in self._rows("url", doc_ids)}  # noqa: C416

    def _rows(self, columns: str, doc_ids: Sequence[str]) -> Iterator[tuple[str, ...]]:
        distinct = list(dict.fromkeys(doc_ids))
        connection = sqlite3.connect(self.path)
        try:
            for start in range(0, len(distinct), _AT_ONCE):
                some = distinct[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                yield from connection.execute(
                    f"SELECT doc_id, {columns} FROM documents WHERE doc_id IN ({marks})", some
                )
        finally:
            connection.close()


def _whole(text: str) -> str:
    # SQLite takes no halves of characters.
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")

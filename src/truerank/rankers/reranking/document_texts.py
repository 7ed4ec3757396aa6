"""The texts of documents by id, taken out of a collection in one pass and kept on the disk."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from truerank.errors import OptionError
from truerank.records import Document
from truerank.sources.documents import open_documents
from truerank.text.printable import first_few
from truerank.work.kept import is_whole, kept_path
from truerank.work.progress import Progress, Quiet

_SCHEMA: Final = (
    "CREATE TABLE documents (doc_id TEXT PRIMARY KEY, url TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL) "
    "WITHOUT ROWID"
)
_AT_ONCE: Final = 1 << 14


class DocumentTexts:
    """Documents by id, in the file that `collect` made; memory does not grow with the collection."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def collect(
        cls,
        path: Path,
        docs: str,
        wanted: Collection[str] | None = None,
        progress: Progress | None = None,
        *,
        strict: bool = False,
    ) -> DocumentTexts:
        """Keeps the documents of a collection, or those that are wanted; the file appears whole or not at all."""
        if is_whole(path):
            return cls(path)
        told = progress or Quiet()
        told.start("reading documents")
        with cls.writing(path) as add:
            # Empty documents too: that a document has no text is not that it is missing.
            for block in open_documents(docs, strict=strict, keep_empty=True).batches():
                add(one for one in block if wanted is None or one.doc_id in wanted)
                told.advance(len(block))
        return cls(path)

    @classmethod
    @contextlib.contextmanager
    def writing(cls, path: Path) -> Iterator[Callable[[Iterable[Document]], None]]:
        """Gives what adds documents to a new file; the file appears when the block ends without an error."""
        with kept_path(path) as temporary, contextlib.closing(sqlite3.connect(temporary)) as connection:
            connection.execute("PRAGMA journal_mode=OFF")
            connection.execute(_SCHEMA)

            def add(documents: Iterable[Document]) -> None:
                rows = (tuple(map(_whole, one)) for one in documents)
                connection.executemany("INSERT OR IGNORE INTO documents VALUES (?, ?, ?, ?)", rows)

            yield add
            connection.commit()

    def ids(self) -> Iterator[str]:
        """The ids of all documents that are there, in their order."""
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            for (doc_id,) in connection.execute("SELECT doc_id FROM documents ORDER BY doc_id"):
                yield doc_id

    def of(self, doc_ids: Iterable[str]) -> dict[str, Document]:
        """Those of the documents that are there, by id."""
        return {row[0]: Document(*row) for row in self._rows("url, title, body", doc_ids)}

    def texts(self, doc_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Title and body of those of the documents that are there."""
        return {doc_id: (title, body) for doc_id, title, body in self._rows("title, body", doc_ids)}

    def urls(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """URLs of those of the documents that are there; empty where a document has none."""
        return {doc_id: url for doc_id, url in self._rows("url", doc_ids)}  # noqa: C416

    def check(self, doc_ids: Collection[str], what: str) -> None:
        """Refuses ids that the collection lacks; `what` holds them."""
        there = {doc_id for doc_id, _ in self._rows("url", doc_ids)}
        absent = [doc_id for doc_id in doc_ids if doc_id not in there]
        if absent:
            fault = f"{len(absent):,} documents of {what} are not in it: {first_few(absent, 3)}"
            raise OptionError("docs", fault, "give their collection")

    def _rows(self, columns: str, doc_ids: Iterable[str]) -> Iterator[tuple[str, ...]]:
        distinct = list(dict.fromkeys(doc_ids))
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            for start in range(0, len(distinct), _AT_ONCE):
                some = distinct[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                query = f"SELECT doc_id, {columns} FROM documents WHERE doc_id IN ({marks})"
                yield from connection.execute(query, some)


def _whole(text: str) -> str:
    # SQLite takes no halves of characters.
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")

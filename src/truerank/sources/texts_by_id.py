"""Texts by id, on the disk: training data that holds ids only is read with them."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from truerank.sources.documents import open_documents
from truerank.sources.queries import open_queries

_ROWS: Final = 1 << 14
#: Ids of one look-up.
_ASKED: Final = 500
_FILE: Final = "texts.sqlite"


class TextsById:
    """Texts by id in a temporary file: memory grows with neither.

    Args:
        texts: ids and texts, read once. Of an id that comes again, the first text counts.
    """

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        # A source may be read by another thread than the one that opened it.
        self._texts = sqlite3.connect(Path(self._folder.name) / _FILE, check_same_thread=False)
        self._texts.execute("PRAGMA journal_mode=OFF")
        self._texts.execute("PRAGMA synchronous=OFF")
        self._texts.execute("CREATE TABLE texts (id TEXT NOT NULL, text TEXT NOT NULL)")
        stream = iter(texts)
        while rows := list(islice(stream, _ROWS)):
            self._texts.executemany("INSERT INTO texts VALUES (?, ?)", (tuple(map(_whole, row)) for row in rows))
        # Sorted once, which costs less than to keep it sorted.
        self._texts.execute("CREATE INDEX ids ON texts (id)")
        self._texts.commit()

    def of(self, ids: Collection[str]) -> dict[str, str]:
        """The texts of those ids that are there."""
        found: dict[str, str] = {}
        wanted = iter(sorted(set(ids)))
        while some := [_whole(one) for one in islice(wanted, _ASKED)]:
            query = f"SELECT id, text FROM texts WHERE id IN ({','.join('?' * len(some))}) ORDER BY rowid DESC"
            found.update(self._texts.execute(query, some))
        return found


@lru_cache(maxsize=8)
def texts_by_id(noun: Literal["queries", "docs"], spec: str, fingerprint: str, strict: bool = False) -> TextsById:
    """The texts of a source by id, of documents title and body as one; kept while the process lasts.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    if noun == "queries":
        return TextsById((query.query_id, query.text) for query in open_queries(spec, strict=strict))
    return TextsById((one.doc_id, one.text) for one in open_documents(spec, strict=strict))


def _whole(text: str) -> str:
    """SQLite takes no half of a surrogate pair."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")

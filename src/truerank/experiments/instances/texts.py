"""The texts of the documents that stand in rows, taken out of the collections in one pass each and kept on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from truerank.experiments.instances.document_queries import CutRule
from truerank.experiments.instances.drafts import Draft
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.records import Document
from truerank.text.normalising import normalise
from truerank.work.artifacts import digest
from truerank.work.progress import Progress

__all__ = ["Texts", "filled"]

_BLOCK: Final = 1000


class Texts:
    """The texts of one collection's documents.

    Args:
        docs: the collection; None where no row needs it.
        folder: where they are kept.
        rule: for collections whose documents make the queries: what is left of a training document.
        progress: is told how many documents were read.
    """

    def __init__(self, docs: str | None, folder: Path, rule: CutRule | None, progress: Progress) -> None:
        self._docs, self._folder, self._rule, self._progress = docs, folder, rule, progress
        self._store: DocumentTexts | None = None
        self._there: frozenset[str] = frozenset()

    def collect(self, doc_ids: Iterable[str]) -> None:
        """Reads the collection for these documents."""
        wanted = frozenset(doc_ids)
        if not wanted or self._docs is None:
            return
        path = self._folder / f"texts-{digest(sorted(wanted))[:32]}.sqlite"
        DocumentTexts.collect(path, self._docs, wanted, self._progress)
        self._store = DocumentTexts(path)
        there: set[str] = set()
        ids = self._store.ids()
        while some := list(islice(ids, _BLOCK)):
            there.update(doc_id for doc_id, text in self._read(some, cut=False).items() if normalise(text))
        self._there = frozenset(there)

    def has(self, doc_id: str) -> bool:
        """Whether the collection holds this document, and a text in it."""
        return doc_id in self._there

    def of(self, doc_ids: Sequence[str], *, cut: bool) -> dict[str, str]:
        """The texts of documents that were collected; `cut` says without the words that make the query."""
        return self._read(doc_ids, cut=cut and self._rule is not None)

    def _read(self, doc_ids: Sequence[str], *, cut: bool) -> dict[str, str]:
        if self._store is None:
            return {}
        documents = {
            doc_id: Document(doc_id, "", title, body)
            for doc_id, (title, body) in self._store.texts(list(doc_ids)).items()
        }
        if not cut or self._rule is None:
            return {doc_id: document.text for doc_id, document in documents.items()}
        made = {doc_id: self._rule(document) for doc_id, document in documents.items()}
        return {doc_id: one.rest for doc_id, one in made.items() if one is not None}


def filled(drafts: Sequence[Draft], training: Texts, testing: Texts) -> list[tuple[str, str]]:
    """The texts of the relevant and the non-relevant document of each row."""
    texts = {}
    for of_test, store in ((False, training), (True, testing)):
        ids = [doc_id for one in drafts if one.of_test is of_test for doc_id in (one.relevant_id, one.nonrelevant_id)]
        texts[of_test] = store.of(ids, cut=not of_test)
    return [(texts[one.of_test][one.relevant_id], texts[one.of_test][one.nonrelevant_id]) for one in drafts]

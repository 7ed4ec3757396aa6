"""The features of HiCAL: one sparse row for each document of a collection."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.lexical import Analyser, Index, build_index, open_index
from truerank.lexical.postings import BlockTask, IndexField, RunBuffer
from truerank.records import Document
from truerank.sources import open_documents
from truerank.work.progress import Progress

__all__ = ["ANALYSER", "Features", "TermCounts", "weighted"]

#: Alphabetic tokens of two or more letters, lower-cased, stemmed by Porter; no word is left out.
ANALYSER: Final = Analyser("letters", "none", "porter")
_MIN_FREQUENCY: Final = 2
_BLOCK: Final = 1 << 10
#: Documents whose weights are worked out at once.
_AT_ONCE: Final = 1 << 15


class TermCounts(NamedTuple):
    """Terms of consecutive documents: how many each holds, shape (documents,); their numbers, document after document
    and ascending within each, and how often each stands there, shape (postings,)."""

    sizes: NDArray[Any]
    terms: NDArray[Any]
    counts: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Features:
    """Documents as rows of a sparse matrix: (1 + ln tf) · ln(N/df), of length 1.

    Terms are stems of alphabetic tokens of two or more letters that stand in two documents or more. A document without
    such a term has an empty row.

    Attributes:
        doc_ids: of the rows, in the order of the collection.
        terms: of the columns, ascending.
        idf: ln(N/df) of the terms, shape (terms,).
        matrix: SciPy CSR, shape (documents, terms), 32-bit floats.

    Source: the features that BMI, the core of HiCAL, uses (Cormack and Grossman).
    """

    doc_ids: tuple[str, ...]
    terms: tuple[str, ...]
    idf: NDArray[np.float64]
    matrix: Any

    @classmethod
    def of_documents(cls, documents: Iterable[Document]) -> Features:
        """The features of documents, made in memory.

        Args:
            documents: with distinct ids; title and body count.

        Raises:
            InputError: no document, or two of one id.
        """
        task, buffer = BlockTask(ANALYSER, (IndexField.parse("contents"),)), RunBuffer()
        ids: list[str] = []
        block: list[Document] = []

        def flush() -> None:
            buffer.add(task(len(ids), block))
            ids.extend(document.doc_id for document in block)
            block.clear()

        for document in documents:
            block.append(document)
            if len(block) == _BLOCK:
                flush()
        if block:
            flush()
        if not ids:
            raise OptionError("docs", "no documents", "give a collection that holds some")
        if len(set(ids)) != len(ids):
            raise OptionError("docs", "two documents of one id", "give every document an id of its own")
        run = buffer.sorted()
        found = run.by_document()
        sizes = np.bincount(found.documents, minlength=len(ids))
        frequency = np.bincount(found.terms, minlength=len(run.terms))
        return weighted(ids, run.terms, frequency, [TermCounts(sizes, found.terms, found.counts.sum(axis=1))])

    @classmethod
    def of_index(cls, index: Index | str | Path) -> Features:
        """The features of an index's documents; memory grows with its postings, about 12 bytes each.

        Args:
            index: made with the analyser `ANALYSER` (letters, no stopwords, Porter) of titles and bodies.

        Raises:
            InputError: no index, or one whose terms are others.
        """
        opened = open_index(index)
        if opened.analyser != ANALYSER or opened.fields != ("contents",):
            raise InputError(
                f"the terms of this index are others ({opened.analyser.name}; fields {', '.join(opened.fields)})",
                "build it with --tokeniser letters --stopwords none --stemmer porter",
                where=opened.folder,
            )
        names = [opened.term(number) for number in range(opened.terms)]
        return weighted(opened.doc_ids(range(len(opened))), names, np.diff(opened.starts), _blocks(opened))

    @classmethod
    def of_collection(
        cls, docs: str, folder: str | Path | None = None, *, workers: int = 1, progress: Progress | None = None
    ) -> Features:
        """The features of a collection that is read as a stream.

        Args:
            docs: the documents, see `sources.open_documents`.
            folder: where their index is kept and found again; None for a temporary one.
            workers: processes that analyse documents.
            progress: is told how many documents are done.

        Raises:
            InputError: a fault in the documents; the folder holds the index of another collection.
        """
        if folder is None:
            with tempfile.TemporaryDirectory(prefix="truerank-features-") as temporary:
                built = build_index(docs, temporary, analyser=ANALYSER, workers=workers, progress=progress)
                return cls.of_index(built)
        if not Index.is_index(Path(folder)):
            return cls.of_index(build_index(docs, folder, analyser=ANALYSER, workers=workers, progress=progress))
        found = open_index(folder)
        if found.manifest["source"]["fingerprint"] != open_documents(docs).fingerprint:
            raise InputError("made from another collection", "remove the folder, or name another", where=found.folder)
        return cls.of_index(found)

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.doc_ids)

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each document."""
        return {doc_id: row for row, doc_id in enumerate(self.doc_ids)}

    @cached_property
    def columns(self) -> dict[str, int]:
        """The column of each term."""
        return {term: column for column, term in enumerate(self.terms)}

    def vector(self, text: str) -> Any:
        """The row of any text, weighted as a document of the collection: SciPy CSR, shape (1, terms), 64-bit floats."""
        counts: dict[int, int] = {}
        for term in ANALYSER(text):
            column = self.columns.get(term)
            if column is not None:
                counts[column] = counts.get(column, 0) + 1
        columns = np.array(sorted(counts), np.int32)
        weights = (1 + np.log([counts[column] for column in columns.tolist()])) * self.idf[columns]
        norm = np.linalg.norm(weights)
        weights = weights / norm if norm else weights
        return scipy.sparse.csr_matrix((weights, columns, [0, len(columns)]), shape=(1, len(self.terms)))


def weighted(
    doc_ids: Sequence[str], names: Sequence[str], frequency: NDArray[Any], blocks: Iterable[TermCounts]
) -> Features:
    """The features from term counts; beside them memory holds one block.

    Args:
        doc_ids: of the documents.
        names: of the terms.
        frequency: how many documents hold each term, shape (terms,).
        blocks: the counts of all documents, in order.
    """
    with np.errstate(divide="ignore"):
        idf = np.log(len(doc_ids) / frequency)
    kept = frequency >= _MIN_FREQUENCY
    columns = np.cumsum(kept) - 1
    total = int(frequency[kept].sum())
    kind = np.int32 if total < 2**31 else np.int64
    data, indices, sizes = np.empty(total, np.float32), np.empty(total, kind), [np.zeros(1, np.int64)]
    at = 0
    for block in blocks:
        stays = kept[block.terms]
        rows = np.repeat(np.arange(len(block.sizes)), block.sizes)[stays]
        terms = block.terms[stays]
        weights = (1 + np.log(block.counts[stays])) * idf[terms]
        norms = np.sqrt(np.bincount(rows, weights**2, len(block.sizes)))
        end = at + len(terms)
        data[at:end] = weights / np.where(norms > 0, norms, 1)[rows]
        indices[at:end] = columns[terms]
        sizes.append(np.bincount(rows, minlength=len(block.sizes)))
        at = end
    indptr = np.cumsum(np.concatenate(sizes)).astype(kind)
    matrix = scipy.sparse.csr_matrix((data, indices, indptr), shape=(len(doc_ids), int(kept.sum())))
    shown = tuple(name for name, stays in zip(names, kept.tolist(), strict=True) if stays)
    return Features(tuple(doc_ids), shown, idf[kept], matrix)


def _blocks(index: Index) -> Iterator[TermCounts]:
    for first in range(0, len(index), _AT_ONCE):
        size = min(_AT_ONCE, len(index) - first)
        rows, terms, counts = index.vectors(np.arange(first, first + size))
        yield TermCounts(np.bincount(rows, minlength=size), terms, counts.sum(axis=1))

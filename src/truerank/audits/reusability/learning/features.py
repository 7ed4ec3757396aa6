"""The features of HiCAL: one sparse row for each document of a collection, in files that all workers map."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from truerank.audits.reusability.learning.feature_files import (
    ColumnBlock,
    HeldNames,
    Names,
    RowBlock,
    StoredFeatures,
    is_stored,
    shared,
    store,
)
from truerank.errors import InputError, OptionError
from truerank.lexical import Analyser, Index, build_index, open_index
from truerank.lexical.index import BlockTask, IndexField, RunBuffer
from truerank.records import Document
from truerank.sources import open_documents
from truerank.work.progress import Progress

#: Alphabetic tokens of two or more letters, lower-cased, stemmed by Porter; no word is left out.
ANALYSER: Final = Analyser("letters", "none", "porter")
_MIN_FREQUENCY: Final = 2
_BLOCK: Final = 1 << 10
#: Documents whose weights are worked out, and that are scored, at once.
_AT_ONCE: Final = 1 << 15
#: The folder of the features, in that of their index.
_FOLDER: Final = "features"


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
    such a term has an empty row. Features of an index lie in files beside it: every process that opens them maps the
    same pages, and needs no memory of its own for them.

    Attributes:
        doc_ids: of the rows, in the order of the collection; `find` gives the row of an id.
        terms: of the columns, ascending; `find` gives the column of a term.
        idf: ln(N/df) of the terms, shape (terms,).
        starts: where the postings of each row begin, shape (documents + 1,).
        columns: of the postings, row after row and ascending within each, shape (postings,).
        weights: of the postings, 32-bit floats, shape (postings,).
        stored: the blocks that documents are scored in, where they lie on the disk; None where they are made in memory.

    Source: the features that BMI, the core of HiCAL, uses (Cormack and Grossman).
    """

    doc_ids: Names
    terms: Names
    idf: NDArray[np.float64]
    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    weights: NDArray[np.float32]
    stored: tuple[ColumnBlock, ...] | None = field(default=None, repr=False)

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
    def of_index(cls, index: Index | str | Path, *, progress: Progress | None = None) -> Features:
        """The features of an index's documents, mapped from files in the index's folder.

        The first call writes the files, about 16 bytes for each posting, and needs memory for one block of documents
        and one number for each document and term. Where the folder cannot be written to, the features are made in
        memory.

        Args:
            index: made with the analyser `ANALYSER` (letters, no stopwords, Porter) of titles and bodies.
            progress: is told how many documents are written.

        Raises:
            InputError: no index, or one whose terms are others; files that are cut off.
        """
        opened = open_index(index)
        if opened.analyser != ANALYSER or opened.fields != ("contents",):
            raise InputError(
                f"the terms of this index are others ({opened.analyser.name}; fields {', '.join(opened.fields)})",
                "build it with --tokeniser letters --stopwords none --stemmer porter",
                where=opened.folder,
            )
        place = opened.folder / _FOLDER
        if is_stored(place, opened.fingerprint):
            return cls.open(place)
        frequency = np.diff(opened.starts)
        if not os.access(opened.folder, os.W_OK):
            names = [opened.term(number) for number in range(opened.terms)]
            return weighted(opened.doc_ids(range(len(opened))), names, frequency, _blocks(opened, progress))
        kept = np.flatnonzero(frequency >= _MIN_FREQUENCY).tolist()
        weighting = _Weighting.of(len(opened), frequency)
        store(
            place,
            doc_ids=_doc_ids(opened),
            order=opened.by_rank,
            terms=map(opened.term, kept),
            idf=weighting.idf,
            blocks=map(weighting, _blocks(opened, progress)),
            source=opened.fingerprint,
        )
        return cls.open(place)

    @classmethod
    def open(cls, folder: str | Path) -> Features:
        """The features that lie in a folder, mapped.

        Args:
            folder: written by `of_index` or `write_features`.

        Raises:
            InputError: no features there, or files that are cut off.
        """
        files = StoredFeatures.of(Path(folder))
        return cls(
            files.names("documents", files.array("order")), files.names("terms"), files.array("idf"),
            files.array("starts"), files.array("columns"), files.array("weights"), files.blocks(),
        )  # fmt: skip

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
                return cls.of_index(built, progress=progress).held()
        if not Index.is_index(Path(folder)):
            built = build_index(docs, folder, analyser=ANALYSER, workers=workers, progress=progress)
            return cls.of_index(built, progress=progress)
        found = open_index(folder)
        if found.manifest["source"]["fingerprint"] != open_documents(docs).fingerprint:
            raise InputError("made from another collection", "remove the folder, or name another", where=found.folder)
        return cls.of_index(found, progress=progress)

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.starts) - 1

    @cached_property
    def matrix(self) -> Any:
        """All rows: SciPy CSR, shape (documents, terms), 32-bit floats; it shares memory with the features below 2^31
        postings and holds a copy of the columns above."""
        kind = np.int32 if len(self.columns) < 2**31 else np.int64
        shape = (len(self), len(self.terms))
        return scipy.sparse.csr_matrix((self.weights, self.columns, self.starts.astype(kind)), shape=shape)

    @cached_property
    def blocks(self) -> tuple[ColumnBlock, ...]:
        """The documents in blocks, each by term, as they are scored."""
        if self.stored is not None:
            return self.stored
        found = []
        for first in range(0, len(self), _AT_ONCE):
            last = min(first + _AT_ONCE, len(self))
            begin, end = int(self.starts[first]), int(self.starts[last])
            rows = RowBlock(np.diff(self.starts[first : last + 1]), self.columns[begin:end], self.weights[begin:end])
            found.append(ColumnBlock.of(first, begin, rows, len(self.terms)))
        return tuple(found)

    @property
    def disk_bytes(self) -> int:
        """What the postings take on the disk, where they lie there."""
        return 2 * (self.columns.nbytes + self.weights.nbytes) if self.stored is not None else 0

    def held(self) -> Features:
        """The same in the memory of this process."""
        return Features(
            HeldNames(self.doc_ids), HeldNames(self.terms), np.array(self.idf), np.array(self.starts),
            np.array(self.columns), np.array(self.weights),
        )  # fmt: skip

    def gather(self, rows: NDArray[np.int64]) -> RowBlock:
        """Some rows, in the order given."""
        begins = self.starts[rows]
        sizes = self.starts[rows + 1] - begins
        places = np.arange(int(sizes.sum())) + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
        return RowBlock(sizes, self.columns[places], self.weights[places])

    def scores(self, block: ColumnBlock, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """The scores of a block's documents by one model: weights of all terms, shape (terms,)."""
        begin, end = int(block.begins[0]), int(block.begins[-1])
        empty = scipy.sparse.csr_matrix((len(block.begins) - 1, len(self.terms)), dtype=np.float32)
        starts = (block.begins - begin).astype(np.int32)
        matrix = shared(empty, self.weights[begin:end], self.columns[begin:end], starts)
        found: NDArray[np.float32] = matrix @ weights
        return found

    def vector(self, text: str) -> Any:
        """The row of any text, weighted as a document of the collection: SciPy CSR, shape (1, terms), 64-bit floats."""
        counts: dict[int, int] = {}
        for term in ANALYSER(text):
            column = self.terms.find(term)
            if column is not None:
                counts[column] = counts.get(column, 0) + 1
        columns = np.array(sorted(counts), np.int32)
        weights = (1 + np.log([counts[column] for column in columns.tolist()])) * self.idf[columns]
        norm = np.linalg.norm(weights)
        weights = weights / norm if norm else weights
        return scipy.sparse.csr_matrix((weights, columns, [0, len(columns)]), shape=(1, len(self.terms)))


@dataclass(frozen=True)
class _Weighting:
    """Makes rows of term counts: ln(N/df) of all terms, which of them are kept, and the columns of these."""

    every: NDArray[np.float64]
    kept: NDArray[np.bool_]
    columns: NDArray[np.int32]

    @classmethod
    def of(cls, documents: int, frequency: NDArray[Any]) -> _Weighting:
        with np.errstate(divide="ignore"):
            idf = np.log(documents / frequency)
        kept = frequency >= _MIN_FREQUENCY
        return cls(idf, kept, np.cumsum(kept, dtype=np.int32) - 1)

    @property
    def idf(self) -> NDArray[np.float64]:
        """Of the columns."""
        return self.every[self.kept]

    def __call__(self, block: TermCounts) -> RowBlock:
        stays = self.kept[block.terms]
        documents = len(block.sizes)
        rows = np.repeat(np.arange(documents), block.sizes)[stays]
        terms = block.terms[stays]
        weights = (1 + np.log(block.counts[stays])) * self.every[terms]
        norms = np.sqrt(np.bincount(rows, weights**2, documents))
        weights = (weights / np.where(norms > 0, norms, 1)[rows]).astype(np.float32)
        return RowBlock(np.bincount(rows, minlength=documents), self.columns[terms], weights)


def weighted(
    doc_ids: Sequence[str], names: Sequence[str], frequency: NDArray[Any], blocks: Iterable[TermCounts]
) -> Features:
    """The features from term counts, in memory.

    Args:
        frequency: how many documents hold each term, shape (terms,).
    """
    weighting = _Weighting.of(len(doc_ids), frequency)
    total = int(frequency[weighting.kept].sum())
    weights, columns, sizes = np.empty(total, np.float32), np.empty(total, np.int32), [np.zeros(1, np.int64)]
    at = 0
    for block in map(weighting, blocks):
        end = at + len(block.columns)
        weights[at:end], columns[at:end] = block.weights, block.columns
        sizes.append(block.sizes)
        at = end
    shown = HeldNames(name for name, stays in zip(names, weighting.kept.tolist(), strict=True) if stays)
    starts = np.cumsum(np.concatenate(sizes), dtype=np.int64)
    return Features(HeldNames(doc_ids), shown, weighting.idf, starts, columns, weights)


def write_features(
    folder: str | Path,
    doc_ids: Sequence[str],
    names: Sequence[str],
    frequency: NDArray[Any],
    blocks: Iterable[TermCounts],
) -> Features:
    """The features from term counts, in files; beside the ids and the terms, memory holds one block.

    Args:
        names: of the terms, ascending.
        frequency: how many documents hold each term, shape (terms,).
    """
    weighting = _Weighting.of(len(doc_ids), frequency)
    order = np.argsort(np.array(doc_ids, dtype=np.bytes_), kind="stable").astype(np.int32)
    shown = (names[number] for number in np.flatnonzero(weighting.kept).tolist())
    store(
        Path(folder),
        doc_ids=iter(doc_ids),
        order=order,
        terms=shown,
        idf=weighting.idf,
        blocks=map(weighting, blocks),
        source="",
    )
    return Features.open(folder)


def _doc_ids(index: Index) -> Iterator[str]:
    for first in range(0, len(index), _AT_ONCE):
        yield from index.doc_ids(range(first, min(first + _AT_ONCE, len(index))))


def _blocks(index: Index, progress: Progress | None) -> Iterator[TermCounts]:
    if progress is not None:
        progress.start("weighting terms", len(index))
    for first in range(0, len(index), _AT_ONCE):
        size = min(_AT_ONCE, len(index) - first)
        rows, terms, counts = index.vectors(np.arange(first, first + size))
        yield TermCounts(np.bincount(rows, minlength=size), terms, counts.sum(axis=1))
        if progress is not None:
            progress.advance(size)

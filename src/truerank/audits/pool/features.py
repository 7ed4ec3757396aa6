"""The features of HiCAL: one sparse row for each document of a collection, in files that all workers map."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.lexical import Analyser, Index, build_index, open_index
from truerank.lexical.building import StringFile, move_folder, temporary_folder
from truerank.lexical.index import BlockTask, IndexField, RunBuffer
from truerank.loading import json_file
from truerank.records import Document
from truerank.sources import open_documents
from truerank.work.kept import all_whole, keep_json, kept_json, record
from truerank.work.progress import Progress

# Features as they lie on the disk: rows by document and, block by block, by term; mapped, so that workers share them.
#
# `columns` and `weights` hold the rows, from which the learner trains. The files `block.*` hold the same postings
# once more in the order in which documents are scored: block after block of documents, by term within each.

_KIND: Final = "truerank features"
_VERSION: Final = 1
_MANIFEST: Final = "features.json"
_REMEDY: Final = "remove the folder; it is made again"
#: The arrays by name; "block.shapes" has for each block its documents, terms and postings.
_ARRAYS: Final[Mapping[str, type[np.generic]]] = {
    "order": np.int32, "idf": np.float64, "starts": np.int64, "columns": np.int32, "weights": np.float32,
    "block.shapes": np.int64, "block.terms": np.int32, "block.starts": np.int32, "block.rows": np.int32,
    "block.weights": np.float32,
}  # fmt: skip


#: Names that are written at once.
_NAMES: Final = 1 << 16


class RowBlock(NamedTuple):
    """Rows: how many postings each has, shape (rows,); their columns and weights, shape (postings,)."""

    sizes: NDArray[Any]
    columns: NDArray[np.int32]
    weights: NDArray[np.float32]


class ColumnBlock(NamedTuple):
    """Consecutive documents by term, for scores of all of them at once.

    Attributes:
        first: the row of the first document.
        begins: where the postings of each document begin among all, shape (documents + 1,).
        terms: the columns that occur, ascending, shape (terms,).
        starts: where the postings of each begin, shape (terms + 1,).
        rows: of the postings, counted from `first`.
        weights: of the postings.
    """

    first: int
    begins: NDArray[np.int64]
    terms: NDArray[np.int32]
    starts: NDArray[np.int32]
    rows: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, first: int, begin: int, block: RowBlock, columns: int) -> ColumnBlock:
        """Rows by term, of so many columns in all; `begin` is where their postings begin."""
        terms, places = touched(block.columns, columns)
        begins = np.concatenate([[0], np.cumsum(block.sizes, dtype=np.int64)])
        shape = (len(block.sizes), len(terms))
        turned = scipy.sparse.csr_matrix((block.weights, places, begins.astype(np.int32)), shape=shape).tocsc()
        return cls(first, begin + begins, terms.astype(np.int32), turned.indptr, turned.indices, turned.data)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.begins)

    @property
    def matrix(self) -> Any:
        """SciPy CSC, shape (documents, terms), over the same memory."""
        shape = (len(self.begins) - 1, len(self.terms))
        return shared(scipy.sparse.csc_matrix(shape, dtype=np.float32), self.weights, self.rows, self.starts)


def shared(empty: Any, data: NDArray[Any], indices: NDArray[Any], starts: NDArray[Any]) -> Any:
    """An empty matrix of SciPy filled with these very arrays; its constructor copies views of much larger ones."""
    empty.data, empty.indices, empty.indptr = data, indices, starts
    return empty


def touched(columns: NDArray[Any], width: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The columns, of so many, that occur, ascending, and the number of each among them."""
    marks = np.zeros(width, np.bool_)
    marks[columns] = True
    return np.flatnonzero(marks), (np.cumsum(marks, dtype=np.int32) - 1)[columns]


class Names(Protocol):
    def __len__(self) -> int: ...

    def __getitem__(self, number: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[str]: ...

    def find(self, name: str) -> int | None:
        """The number of a text; None where it is not there."""


class HeldNames(tuple[str, ...]):
    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self)}

    def find(self, name: str) -> int | None:
        return self._numbers.get(name)


class StoredNames(Sequence[str]):
    """Distinct texts in a mapped file, found by bisection.

    Args:
        data: the texts one behind the other, UTF-8.
        starts: where each begins, shape (texts + 1,).
        order: the numbers of the texts in their order; None where they are in order.
    """

    def __init__(self, data: NDArray[np.uint8], starts: NDArray[np.int64], order: NDArray[np.int32] | None) -> None:
        self._data, self._starts, self._order = data, starts, order
        self._asked: dict[str, int | None] = {}

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return tuple(self[each] for each in range(*number.indices(len(self))))
        place = range(len(self))[number]
        return self._bytes(place).decode()

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def find(self, name: str) -> int | None:
        if name not in self._asked:
            self._asked[name] = self._find(name.encode())
        return self._asked[name]

    def _bytes(self, number: int) -> bytes:
        return self._data[self._starts[number] : self._starts[number + 1]].tobytes()

    def _find(self, name: bytes) -> int | None:
        # Bytes of UTF-8 sort as code points do.
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._bytes(self._at(middle)) < name:
                low = middle + 1
            else:
                high = middle
        return self._at(low) if low < len(self) and self._bytes(self._at(low)) == name else None

    def _at(self, place: int) -> int:
        return place if self._order is None else int(self._order[place])


def is_stored(folder: Path, source: str) -> bool:
    """Whether the features made from this source lie in a folder, as they were written."""
    manifest = kept_json(folder / _MANIFEST)
    if manifest is None or not all_whole([folder]):
        return False
    return isinstance(manifest, dict) and (manifest.get("version"), manifest.get("source")) == (_VERSION, source)


def store(
    folder: Path,
    *,
    doc_ids: Iterator[str],
    order: NDArray[np.int32],
    terms: Iterator[str],
    idf: NDArray[np.float64],
    blocks: Iterable[RowBlock],
    source: str,
) -> None:
    """Writes features, whole or not at all; memory holds one block."""
    with temporary_folder(folder) as temporary:
        for name, texts in (("documents", doc_ids), ("terms", terms)):
            with StringFile(temporary, name) as strings:
                while piece := list(islice(texts, _NAMES)):
                    strings.write(piece)
        with ExitStack() as opened:
            files = {name: opened.enter_context((temporary / f"{name}.bin").open("wb")) for name in _ARRAYS}
            _write(files, "order", order)
            _write(files, "idf", idf)
            _write(files, "starts", [0])
            rows = postings = 0
            for block in blocks:
                _write(files, "starts", postings + np.cumsum(block.sizes, dtype=np.int64))
                _write(files, "columns", block.columns)
                _write(files, "weights", block.weights)
                turned = ColumnBlock.of(rows, postings, block, len(idf))
                _write(files, "block.shapes", [len(block.sizes), len(turned.terms), len(turned.rows)])
                for name in ("terms", "starts", "rows", "weights"):
                    _write(files, f"block.{name}", getattr(turned, name))
                rows, postings = rows + len(block.sizes), postings + len(block.columns)
        sizes = {path.name: path.stat().st_size for path in sorted(temporary.iterdir())}
        manifest = {"kind": _KIND, "version": _VERSION, "source": source, "files": sizes}
        keep_json(temporary / _MANIFEST, manifest)
        for name in sizes:
            record(temporary / name)
        move_folder(temporary, folder)


def _write(files: Mapping[str, IO[bytes]], name: str, values: Any) -> None:
    files[name].write(np.ascontiguousarray(values, _ARRAYS[name]).data)


@dataclass(frozen=True)
class StoredFeatures:
    """The files of features in a folder, and the size of each."""

    folder: Path
    sizes: Mapping[str, int] = field(repr=False)

    @classmethod
    def of(cls, folder: Path) -> StoredFeatures:
        manifest = json_file(folder / _MANIFEST, _REMEDY)
        if not isinstance(manifest, dict) or (manifest.get("kind"), manifest.get("version")) != (_KIND, _VERSION):
            raise InputError("no features of this version", _REMEDY, where=folder / _MANIFEST)
        sizes: dict[str, int] = manifest["files"]
        for name, size in sizes.items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != size:
                raise InputError(f"the features lack {name}, or it is cut off", _REMEDY, where=folder)
        return cls(folder, sizes)

    def array(self, name: str) -> NDArray[Any]:
        return self._mapped(f"{name}.bin", _ARRAYS[name])

    def names(self, name: str, order: NDArray[np.int32] | None = None) -> StoredNames:
        # A plain view: slices of a memmap are memmaps, which cost microseconds each.
        starts = np.load(self.folder / f"{name}.starts.npy", mmap_mode="r").view(np.ndarray)
        return StoredNames(self._mapped(f"{name}.bin", np.uint8), starts, order)

    def blocks(self) -> tuple[ColumnBlock, ...]:
        starts = self.array("starts")
        terms, begins, rows, weights = (self.array(f"block.{name}") for name in ("terms", "starts", "rows", "weights"))
        found: list[ColumnBlock] = []
        first = term = posting = 0
        for documents, own_terms, postings in self.array("block.shapes").reshape(-1, 3).tolist():
            of_terms, of_postings = slice(term, term + own_terms), slice(posting, posting + postings)
            # Every block has one start more than it has terms.
            own = slice(term + len(found), term + own_terms + len(found) + 1)
            found.append(
                ColumnBlock(
                    first, starts[first : first + documents + 1], terms[of_terms], begins[own], rows[of_postings],
                    weights[of_postings],
                )
            )  # fmt: skip
            first, term, posting = first + documents, term + own_terms, posting + postings
        return tuple(found)

    def _mapped(self, name: str, kind: type[np.generic]) -> NDArray[Any]:
        if not self.sizes.get(name):
            return np.empty(0, kind)
        return np.memmap(self.folder / name, kind, "r").view(np.ndarray)


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
    and ascending within each, and how often each is there, shape (postings,)."""

    sizes: NDArray[Any]
    terms: NDArray[Any]
    counts: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Features:
    """Documents as rows of a sparse matrix: (1 + ln tf) · ln(N/df), of length 1.

    Terms are stems of alphabetic tokens of two or more letters that are in two documents or more. A document without
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
            progress: receives the number of documents done.

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
    """The features from term counts, in memory."""
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
    """The features from term counts, in files; beside the ids and the terms, memory holds one block."""
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

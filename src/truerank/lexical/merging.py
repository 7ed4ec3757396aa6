"""Sorted runs of postings on disk, and one index out of them: the memory needed does not grow with the collection."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.lib.format import dtype_to_descr, write_array_header_1_0
from numpy.typing import NDArray

from truerank.lexical.index import Longs, SortedRun, term_flags

#: Postings that are moved at once.
_CHUNK: Final = 1 << 21
#: Terms of all runs that are merged at once, and terms of one run at least.
_TERMS: Final = 1 << 20
_FEWEST_TERMS: Final = 1 << 8
_STRINGS: Final = 1 << 16


class ArrayFile:
    """A `.npy` file that is written piece by piece, with the bytes that `numpy.save` gives the whole array.

    Unlike a memory-mapped array it takes no memory, and a full disk is an error.

    Args:
        path: the new file.
        kind: of the values.
        columns: the shape behind the first axis.
    """

    def __init__(self, path: Path, kind: np.dtype[Any] | type, columns: tuple[int, ...] = ()) -> None:
        self._kind, self._columns, self._rows = np.dtype(kind), columns, 0
        self._file = path.open("wb")
        self._header()

    def write(self, values: NDArray[Any]) -> None:
        """Adds rows."""
        self._file.write(np.ascontiguousarray(values, self._kind).data)
        self._rows += len(values)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.seek(0)
            self._header()  # of the same length: NumPy leaves room for any number of rows

    def _header(self) -> None:
        shape = (self._rows, *self._columns)
        told = {"descr": dtype_to_descr(self._kind), "fortran_order": False, "shape": shape}
        write_array_header_1_0(self._file, told)


class StringFile:
    """Texts one behind the other (`NAME.bin`), and the places where they begin (`NAME.starts.npy`).

    Args:
        folder: where the two files lie.
        name: of the files.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._texts = (folder / f"{name}.bin").open("wb")
        self._starts = ArrayFile(folder / f"{name}.starts.npy", np.int64)
        self._starts.write(np.zeros(1, np.int64))
        self._size = 0

    def write(self, texts: Sequence[str]) -> None:
        """Adds texts."""
        encoded = [text.encode() for text in texts]
        ends = self._size + np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
        self._texts.write(b"".join(encoded))
        self._starts.write(ends)
        self._size = int(ends[-1]) if encoded else self._size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._texts.close()
        self._starts.__exit__(kind, error, at)

    @staticmethod
    def read(folder: Path, name: str) -> Iterator[pl.Series]:
        """All texts, in pieces."""
        starts = np.load(folder / f"{name}.starts.npy", mmap_mode="r")
        with (folder / f"{name}.bin").open("rb") as texts:
            for first in range(0, len(starts) - 1, _STRINGS):
                ends = starts[first : first + _STRINGS + 1].tolist()
                piece = texts.read(ends[-1] - ends[0])
                places = [end - ends[0] for end in ends]
                yield pl.Series([piece[a:b].decode() for a, b in pairwise(places)], dtype=pl.String)


@dataclass(frozen=True)
class StoredRun:
    """A run that lies on the disk in plain binary files, of which pieces are read.

    Attributes:
        folder: where its files lie.
        documents: how many documents it covers.
        terms: how many terms it has.
        postings: how many postings it has.
        largest: the largest count in it.
    """

    folder: Path
    documents: int
    terms: int
    postings: int
    largest: int

    @property
    def count_type(self) -> np.dtype[Any]:
        """The type of its counts."""
        return _smallest(self.largest)

    def read(self, name: str, kind: np.dtype[Any] | type, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """A piece of one of its arrays."""
        count = -1 if stop is None else stop - start
        return np.fromfile(self.folder / name, kind, count, offset=start * np.dtype(kind).itemsize)

    def remove(self) -> None:
        """Removes its files."""
        shutil.rmtree(self.folder)

    def names(self, start: int, stop: int) -> list[str]:
        """Some of its terms, in order."""
        if start == stop:
            return []
        begin, *_, end = self.read("term_starts", np.int64, start, stop + 1).tolist()
        with (self.folder / "terms").open("rb") as stream:
            stream.seek(begin)
            return stream.read(end - begin).decode().split("\n")[:-1]


def store_run(run: SortedRun, folder: Path, first: int, documents: int) -> StoredRun:
    """Writes a run."""
    folder.mkdir(parents=True)
    postings, vectors = run.postings, run.by_document()
    stored = StoredRun(folder, documents, len(run.terms), len(postings.terms), int(postings.counts.max(initial=0)))
    lines = [f"{term}\n".encode() for term in run.terms]
    (folder / "terms").write_bytes(b"".join(lines))
    arrays: dict[str, NDArray[Any]] = {
        "term_starts": _starts(np.fromiter(map(len, lines), np.int64, len(lines))),
        "starts": _starts(np.bincount(postings.terms, minlength=len(lines))),
        "documents": postings.documents,
        "counts": postings.counts.astype(stored.count_type),
        "vector_sizes": np.bincount(vectors.documents - first, minlength=documents).astype(np.int32),
        "vector_terms": vectors.terms,
        "vector_counts": vectors.counts.astype(stored.count_type),
    }
    for name, array in arrays.items():
        (folder / name).write_bytes(np.ascontiguousarray(array).data)
    return stored


def merge_runs(runs: Sequence[StoredRun], folder: Path, fields: int) -> None:
    """Merges runs of consecutive documents into the files of an index; the same bytes however the runs were cut.

    Terms are merged piece by piece in their order, and with them their postings, so that every file is read and written
    in one direction. The runs' files are removed when they are not needed any more.
    """
    kind = _smallest(max(run.largest for run in runs))
    with ExitStack() as opened:

        def array(name: str, kind: np.dtype[Any] | type, columns: tuple[int, ...] = ()) -> ArrayFile:
            return opened.enter_context(ArrayFile(folder / f"{name}.npy", kind, columns))

        terms = opened.enter_context(StringFile(folder, "terms"))
        flags, totals = array("terms.flags", np.uint8), array("terms.totals", np.int64, (fields,))
        starts, documents = array("postings.starts", np.int64), array("postings.documents", np.int32)
        counts = array("postings.counts", kind, (fields,))
        starts.write(np.zeros(1, np.int64))
        end = 0
        for piece in _merged_terms(runs):
            frequency = np.zeros(len(piece.names), np.int64)
            for part in piece.parts:
                frequency[part.places] += np.diff(part.starts)
            terms.write(piece.names.to_list())
            flags.write(term_flags(piece.names))
            starts.write(end + np.cumsum(frequency))
            end += int(frequency.sum())
            for some_documents, some_counts, some_totals in _postings(piece.parts, _starts(frequency), kind, fields):
                documents.write(some_documents)
                counts.write(some_counts)
                totals.write(some_totals)
    for run in runs:
        (run.folder / "documents").unlink()
        (run.folder / "counts").unlink()
    _merge_vectors(runs, folder, kind, fields)


class _Part(NamedTuple):
    """Consecutive terms of a run: their places among the terms of a piece, ascending, and where their postings begin
    in the run, shape (terms + 1,)."""

    run: StoredRun
    places: Longs
    starts: Longs


class _Piece(NamedTuple):
    """Consecutive terms of the index, and where they stand in the runs."""

    names: pl.Series
    parts: list[_Part]


def _merged_terms(runs: Sequence[StoredRun]) -> Iterator[_Piece]:
    """The terms of all runs in order; what number each has now is written beside the run."""
    at_once = max(_FEWEST_TERMS, _TERMS // len(runs))
    cursors, number = [0] * len(runs), 0
    while any(cursor < run.terms for cursor, run in zip(cursors, runs, strict=True)):
        stops = [min(cursor + at_once, run.terms) for cursor, run in zip(cursors, runs, strict=True)]
        names = [
            pl.Series(run.names(cursor, stop), dtype=pl.String)
            for run, cursor, stop in zip(runs, cursors, stops, strict=True)
        ]
        # Up to this term all are known.
        last = [own[-1] for own, stop, run in zip(names, stops, runs, strict=True) if stop < run.terms]
        if last:
            names = [own.head(int(own.search_sorted(min(last), side="right"))) for own in names]
        every = pl.concat(names)
        merged = every.unique().sort()
        numbered = pl.DataFrame({"term": merged, "place": np.arange(len(merged))})
        joined = every.to_frame("term").join(numbered, on="term", how="left", maintain_order="left")["place"].to_numpy()
        parts = []
        for at, own in enumerate(np.split(joined, np.cumsum([len(one) for one in names])[:-1])):
            if len(own):
                with (runs[at].folder / "numbers").open("ab") as stream:
                    stream.write((number + own).astype(np.int32).data)
                starts = runs[at].read("starts", np.int64, cursors[at], cursors[at] + len(own) + 1)
                parts.append(_Part(runs[at], own, starts))
                cursors[at] += len(own)
        number += len(merged)
        yield _Piece(merged, parts)


def _postings(
    parts: Sequence[_Part], starts: Longs, kind: np.dtype[Any], fields: int
) -> Iterator[tuple[NDArray[np.int32], NDArray[Any], Longs]]:
    """The postings of a piece's terms and, for each term, the total of its counts, in chunks.

    Of each term they go run after run: since runs follow one another, so do the documents of a term.
    """
    for first, last in _term_chunks(starts):
        begin, size = int(starts[first]), int(starts[last] - starts[first])
        documents, counts = np.empty(size, np.int32), np.empty((size, fields), kind)
        free = starts[first:last] - begin
        for run, places, own in parts:
            a, b = np.searchsorted(places, (first, last)).tolist()
            if a == b:
                continue
            s, e = int(own[a]), int(own[b])
            sizes, chosen = np.diff(own[a : b + 1]), places[a:b] - first
            targets = np.repeat(free[chosen] - own[a:b] + s, sizes) + np.arange(e - s)
            documents[targets] = run.read("documents", np.int32, s, e)
            counts[targets] = run.read("counts", run.count_type, s * fields, e * fields).reshape(-1, fields)
            free[chosen] += sizes
        totals = np.add.reduceat(counts, starts[first:last] - begin, axis=0, dtype=np.int64)
        yield documents, counts, totals


def _merge_vectors(runs: Sequence[StoredRun], folder: Path, kind: np.dtype[Any], fields: int) -> None:
    with (
        ArrayFile(folder / "vectors.terms.npy", np.int32) as terms,
        ArrayFile(folder / "vectors.counts.npy", kind, (fields,)) as counts,
        ArrayFile(folder / "vectors.starts.npy", np.int64) as starts,
    ):
        starts.write(np.zeros(1, np.int64))
        end = 0
        for run in runs:
            numbers = run.read("numbers", np.int32)
            terms.write(numbers[run.read("vector_terms", np.int32)])
            counts.write(run.read("vector_counts", run.count_type).reshape(-1, fields))
            starts.write(end + np.cumsum(run.read("vector_sizes", np.int32), dtype=np.int64))
            end += run.postings
            run.remove()


def _term_chunks(starts: Longs) -> Iterator[tuple[int, int]]:
    """Ranges of terms with about `_CHUNK` postings each; a term is never cut."""
    first, last = 0, len(starts) - 1
    while first < last:
        stop = int(np.searchsorted(starts, starts[first] + _CHUNK, side="left"))
        stop = min(max(stop, first + 1), last)
        yield first, stop
        first = stop


def _starts(sizes: NDArray[Any]) -> Longs:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _smallest(largest: int) -> np.dtype[Any]:
    return np.dtype(next(kind for kind in (np.uint8, np.uint16, np.int32) if largest <= np.iinfo(kind).max))

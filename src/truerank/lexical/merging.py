"""Sorted runs of postings on disk, and one index out of them: the memory needed does not grow with the postings."""

from __future__ import annotations

import errno
import heapq
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from truerank.lexical.postings import SortedRun

__all__ = ["StoredRun", "merge_runs", "new_array", "store_run", "write_strings"]

#: Postings that are moved at once.
_CHUNK: Final = 1 << 21
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class StoredRun:
    """A run that lies on the disk, its arrays memory-mapped when they are asked for.

    Attributes:
        folder: where its files lie.
        first: the number of its first document.
        documents: how many documents it covers.
        terms: how many terms it has.
        postings: how many postings it has.
        largest: the largest count in it.
    """

    folder: Path
    first: int
    documents: int
    terms: int
    postings: int
    largest: int

    def array(self, name: str) -> NDArray[Any]:
        """One of its arrays."""
        found: NDArray[Any] = np.load(self.folder / f"{name}.npy", mmap_mode="r")
        return found

    def names(self) -> Iterator[str]:
        """Its terms in order."""
        with (self.folder / "terms.txt").open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                yield line[:-1]


class _Counting(NamedTuple):
    """Shape (postings, fields) and type of the counts."""

    shape: tuple[int, int]
    kind: np.dtype[Any]


def store_run(run: SortedRun, folder: Path, first: int, documents: int) -> StoredRun:
    """Writes a run.

    Args:
        run: its terms and postings.
        folder: made for it.
        first: the number of its first document.
        documents: how many documents it covers.
    """
    folder.mkdir(parents=True)
    with (folder / "terms.txt").open("w", encoding="utf-8", newline="\n") as target:
        target.writelines(f"{term}\n" for term in run.terms)
    postings, vectors = run.postings, run.by_document()
    largest = int(postings.counts.max(initial=0))
    kind = _smallest(largest)
    frequency = np.bincount(postings.terms, minlength=len(run.terms))
    np.save(folder / "starts.npy", _starts(frequency))
    np.save(folder / "documents.npy", postings.documents)
    np.save(folder / "counts.npy", postings.counts.astype(kind))
    np.save(folder / "vector_sizes.npy", np.bincount(vectors.documents - first, minlength=documents).astype(np.int32))
    np.save(folder / "vector_terms.npy", vectors.terms)
    np.save(folder / "vector_counts.npy", vectors.counts.astype(kind))
    return StoredRun(folder, first, documents, len(run.terms), len(postings.terms), largest)


def merge_runs(runs: Sequence[StoredRun], folder: Path, fields: int) -> None:
    """Merges runs of consecutive documents into the files of an index; the same bytes however the runs were cut.

    Args:
        runs: in the order of their documents.
        folder: gets `terms.*`, `postings.*` and `vectors.*`.
        fields: number of fields.
    """
    places = _merge_terms(runs, folder)
    counting = _Counting((sum(run.postings for run in runs), fields), _smallest(max(run.largest for run in runs)))
    frequency = np.zeros(max(int(place[-1]) + 1 for place in places if len(place)), np.int64)
    for run, place in zip(runs, places, strict=True):
        frequency[place] += np.diff(run.array("starts"))
    starts = _starts(frequency)
    np.save(folder / "postings.starts.npy", starts)
    _merge_postings(runs, places, folder, starts, counting)
    _merge_vectors(runs, places, folder, counting)


def write_strings(folder: Path, name: str, texts: Iterator[str]) -> int:
    """Writes texts one behind the other (`NAME.bin`) with the places where they begin (`NAME.starts.npy`).

    Returns:
        How many there are.
    """
    ends, size = [np.zeros(1, np.int64)], 0
    with (folder / f"{name}.bin").open("wb") as target:
        while True:
            encoded = [text.encode() for _, text in zip(range(1 << 16), texts, strict=False)]
            if not encoded:
                break
            target.write(b"".join(encoded))
            ends.append(size + np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded))))
            size = int(ends[-1][-1])
    starts = np.concatenate(ends)
    np.save(folder / f"{name}.starts.npy", starts)
    return len(starts) - 1


def _merge_terms(runs: Sequence[StoredRun], folder: Path) -> list[NDArray[np.int32]]:
    """Writes the terms of all runs and returns, for each run, the numbers that its terms have now."""
    places = [np.empty(run.terms, np.int32) for run in runs]
    filled = [0] * len(runs)

    def merged() -> Iterator[str]:
        number, before = -1, None
        streams = (zip(run.names(), itertools.repeat(at)) for at, run in enumerate(runs))
        for name, at in heapq.merge(*streams):
            if name != before:
                number, before = number + 1, name
                yield name
            places[at][filled[at]] = number
            filled[at] += 1

    write_strings(folder, "terms", merged())
    return places


def _merge_postings(
    runs: Sequence[StoredRun],
    places: Sequence[NDArray[np.int32]],
    folder: Path,
    starts: Longs,
    counting: _Counting,
) -> None:
    """The postings of each term, run after run: since runs follow one another, so do the documents of a term."""
    shape, kind = counting
    documents = new_array(folder / "postings.documents.npy", np.dtype(np.int32), shape[:1])
    counts = new_array(folder / "postings.counts.npy", kind, shape)
    totals = np.zeros((len(starts) - 1, shape[1]), np.int64)
    free = starts[:-1].copy()
    for run, place in zip(runs, places, strict=True):
        own = run.array("starts")
        run_documents, run_counts = run.array("documents"), run.array("counts")
        for a, b in _term_chunks(own):
            s, e = int(own[a]), int(own[b])
            sizes = np.diff(own[a : b + 1])
            targets = np.repeat(free[place[a:b]] - own[a:b], sizes) + np.arange(s, e)
            piece = np.asarray(run_counts[s:e])
            documents[targets], counts[targets] = run_documents[s:e], piece
            free[place[a:b]] += sizes
            totals[place[a:b]] += np.add.reduceat(piece.astype(np.int64), own[a:b] - s, axis=0)
    documents.flush()
    counts.flush()
    np.save(folder / "terms.totals.npy", totals)


def _merge_vectors(
    runs: Sequence[StoredRun],
    places: Sequence[NDArray[np.int32]],
    folder: Path,
    counting: _Counting,
) -> None:
    shape, kind = counting
    terms = new_array(folder / "vectors.terms.npy", np.dtype(np.int32), shape[:1])
    counts = new_array(folder / "vectors.counts.npy", kind, shape)
    at = 0
    for run, place in zip(runs, places, strict=True):
        run_terms, run_counts = run.array("vector_terms"), run.array("vector_counts")
        for s in range(0, run.postings, _CHUNK):
            e = min(s + _CHUNK, run.postings)
            terms[at + s : at + e] = place[run_terms[s:e]]
            counts[at + s : at + e] = run_counts[s:e]
        at += run.postings
    terms.flush()
    counts.flush()
    np.save(folder / "vectors.starts.npy", _starts(np.concatenate([run.array("vector_sizes") for run in runs])))


def new_array(file: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> np.memmap[Any, Any]:
    """A memory-mapped array in a new `.npy` file, whose blocks the disk has already set aside.

    Without them the file is sparse, and the first write to a page that a full disk has no room for ends the process
    with a signal instead of an error.

    Args:
        file: the new file.
        kind: of its values.
        shape: of the array.

    Raises:
        OSError: the disk has no room for it.
    """
    array = open_memmap(file, "w+", kind, shape)
    if hasattr(os, "posix_fallocate"):
        with file.open("r+b") as opened:
            try:
                os.posix_fallocate(opened.fileno(), 0, os.fstat(opened.fileno()).st_size)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise
    return array


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

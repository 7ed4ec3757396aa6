"""Features as they lie on the disk: rows by document and, block by block, by term; mapped, so that workers share them.

`columns` and `weights` hold the rows, from which the learner trains. The files `block.*` hold the same postings once
more in the order in which documents are scored: block after block of documents, by term within each.
"""

from __future__ import annotations

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

from truerank.errors import InputError
from truerank.lexical.building import StringFile, move_folder, temporary_folder
from truerank.loading import json_file
from truerank.work.kept import all_whole, keep_json, kept_json, record

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
        """How many terms each document has, shape (documents,)."""
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
    """Distinct texts by number."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[str]: ...

    def find(self, name: str) -> int | None:
        """The number of a text; None where it is not there."""


class HeldNames(tuple[str, ...]):
    """Distinct texts in memory."""

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self)}

    def find(self, name: str) -> int | None:
        """The number of a text; None where it is not there."""
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
        """The number of a text; None where it is not there."""
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
    """Writes features, whole or not at all; memory holds one block.

    Args:
        terms: of the columns, ascending.
    """
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
        """Opens them."""
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
        """One of the arrays, mapped."""
        return self._mapped(f"{name}.bin", _ARRAYS[name])

    def names(self, name: str, order: NDArray[np.int32] | None = None) -> StoredNames:
        """The ids of the documents or the terms."""
        # A plain view: slices of a memmap are memmaps, which cost microseconds each.
        starts = np.load(self.folder / f"{name}.starts.npy", mmap_mode="r").view(np.ndarray)
        return StoredNames(self._mapped(f"{name}.bin", np.uint8), starts, order)

    def blocks(self) -> tuple[ColumnBlock, ...]:
        """The documents in blocks, by term."""
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

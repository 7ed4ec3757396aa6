"""Records that are written by one kind of piece and read by another, through the disk.

Each piece writes its records in the order of the parts that will read them. A part then reads its share from every
piece, in the order of the pieces. So no step holds more than one piece or one part in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from truerank.near_duplicates.shingling import Numbers
from truerank.work.engines import Engine, LocalEngine
from truerank.work.jobs import Job
from truerank.work.kept import forget, is_whole, keep_bytes, keep_text

Records = NDArray[Any]
_DONE: Final = "done"
_FEW: Final = 8


class Piece(NamedTuple):
    """A piece of a step, by its number."""

    number: int


class Step(Protocol):
    """A step of the comparison: opened once by each worker, then called for every piece, whose files it writes."""

    def open(self) -> Callable[[Piece], None]:
        """The function that does a piece."""

    def done(self, piece: int) -> bool:
        """Whether the files of a piece are there."""


@dataclass(frozen=True)
class Shuffle:
    """The records between two steps, in a folder.

    Attributes:
        folder: where they lie.
        pieces: how many pieces write.
        dtype: of a record.
    """

    folder: Path
    pieces: int
    dtype: tuple[tuple[str, str], ...]

    def write(self, piece: int, records: Records, bounds: Numbers) -> None:
        """Writes the records of a piece.

        Args:
            bounds: where the records for each part begin, and the end; shape (parts + 1,).
        """
        save_array(self._data(piece), records)
        save_array(self._bounds(piece), bounds.astype(np.int64))

    def done(self, piece: int) -> bool:
        """Whether a piece is written."""
        return is_whole(self._bounds(piece)) and is_whole(self._data(piece))

    def read(self, part: int) -> Records:
        """The records for a part, in the order of the pieces."""
        return np.concatenate([self.read_piece(piece, part) for piece in range(self.pieces)])

    def read_piece(self, piece: int, part: int) -> Records:
        """The records of one piece for a part."""
        begin, end = np.fromfile(self._bounds(piece), np.int64, 2, offset=8 * part).tolist()
        if end == begin:
            return np.zeros(0, list(self.dtype))
        return load_array(self._data(piece), list(self.dtype), begin, end)

    def of_piece(self, piece: int) -> Records:
        """All records of one piece."""
        return load_array(self._data(piece), list(self.dtype))

    def drop(self) -> None:
        """Removes the records; the step counts as done all the same."""
        for piece in range(self.pieces):
            forget(self._data(piece))

    def _data(self, piece: int) -> Path:
        return self.folder / f"{piece:06d}.records"

    def _bounds(self, piece: int) -> Path:
        return self.folder / f"{piece:06d}.bounds"


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Writes the values of an array, whole or not at all."""
    keep_bytes(path, np.ascontiguousarray(values))


def load_array(path: Path, dtype: DTypeLike, begin: int = 0, end: int | None = None) -> NDArray[Any]:
    """Some values of an array."""
    size = np.dtype(dtype).itemsize
    count = -1 if end is None else end - begin
    return np.fromfile(path, dtype, count, offset=size * begin)


def engine_for(pieces: int, job: Job) -> Engine:
    """What runs so many pieces: processes cost more than they save where there is little to do."""
    return job.engine if pieces > _FEW else LocalEngine()


def spans(sizes: Numbers, most: int) -> Iterator[tuple[int, int]]:
    """Cuts a sequence into spans whose sizes together are at most `most`, or of one element."""
    total = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = int(total[first - 1]) if first else 0
        end = max(first + 1, int(np.searchsorted(total, before + most, side="right")))
        yield first, end
        first = end


def run_pieces(name: str, step: Step, pieces: int, job: Job) -> None:
    """Does the pieces of a step that are not done."""
    mark = job.folder / f"{name}.{_DONE}".replace(" ", "-")
    if is_whole(mark):
        return
    job.progress.start(name, pieces)
    for _ in engine_for(pieces, job).run(step, (Piece(number) for number in range(pieces) if not step.done(number))):
        job.progress.advance(1)
    keep_text(mark, "")

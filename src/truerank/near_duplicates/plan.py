"""The plan of a comparison: which documents have which numbers, and into how many parts the work is cut."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Hashes
from truerank.near_duplicates.options import Shingles
from truerank.near_duplicates.shingling import Numbers, shingled, starts_of
from truerank.near_duplicates.shuffling import load_array, save_array
from truerank.near_duplicates.sketches import Sketches
from truerank.work.kept import is_whole

#: Shingles that a part sorts at a time, and the most parts there are.
_PART: Final = 1 << 21
_MOST_PARTS: Final = 1 << 12
#: Of documents with one shingle: in a longer list, each is compared with the first ones and with its neighbours only.
CROWD: Final = 128
_BOILERPLATE: Final = "boilerplate.u8"


class SketchBlock(NamedTuple):
    """A block of one of the collections."""

    sketches: Sketches
    block: int


@dataclass(frozen=True)
class ComparisonPlan:
    """One comparison. Documents are numbered in order, those of the second collection after those of the first.

    Attributes:
        folder: where unfinished work lies.
        sides: one collection, or two.
        options: what counts as nearly the same.
        crowd: documents with one shingle up to which all are compared.
    """

    folder: Path
    sides: tuple[Sketches, ...]
    options: Shingles
    crowd: int = CROWD

    @cached_property
    def places(self) -> tuple[SketchBlock, ...]:
        """All blocks in order."""
        return tuple(SketchBlock(side, block) for side in self.sides for block in range(len(side.sizes)))

    @cached_property
    def firsts(self) -> Numbers:
        """The number of the first document of each block, and at the end how many documents there are."""
        return starts_of(np.array([size for side in self.sides for size in side.sizes], np.int64))

    @property
    def border(self) -> int | None:
        """The number of the first document of the second collection; None for one collection."""
        return len(self.sides[0]) if len(self.sides) == 2 else None

    @cached_property
    def parts(self) -> int:
        """Into how many parts the space of hashes is cut, a power of two."""
        wanted = sum(side.shingles for side in self.sides) // _PART
        return int(min(1 << wanted.bit_length(), _MOST_PARTS))

    def part_bounds(self, hashes: Hashes) -> Numbers:
        """Where each part begins among ascending hashes, and the end."""
        edges = np.arange(1, self.parts, dtype=np.uint64) << np.uint64(64 - self.parts.bit_length() + 1)
        inner = np.searchsorted(hashes, edges) if self.parts > 1 else np.zeros(0, np.int64)
        return np.concatenate(([0], inner, [len(hashes)])).astype(np.int64)

    def block_bounds(self, documents: NDArray[np.integer]) -> Numbers:
        """Where each block begins among ascending document numbers, and the end."""
        return np.searchsorted(documents, self.firsts).astype(np.int64)

    def write_sizes(self) -> None:
        """Writes how many shingles and words each document has, for access by number."""
        for name in ("size", "words"):
            path = self.folder / f"{name}.u4"
            if not is_whole(path):
                columns = [place.sketches.column(place.block, name) for place in self.places]
                save_array(path, np.concatenate([np.zeros(0, np.uint32), *columns]).astype("<u4"))

    def write_boilerplate(self, passages: Iterable[str]) -> None:
        """Writes the shingles of these passages, for all workers."""
        path = self.folder / _BOILERPLATE
        if not is_whole(path):
            save_array(path, np.unique(shingled(tuple(passages), self.options).shingles))

    def boilerplate(self) -> Hashes:
        """The shingles of boilerplate, ascending."""
        return load_array(self.folder / _BOILERPLATE, np.uint64)

    def sizes(self, name: str) -> NDArray[np.uint32]:
        """The number of shingles (`size`) or of words (`words`) of each document, read where it is needed."""
        if not self.firsts[-1]:
            return np.zeros(0, np.uint32)
        return np.memmap(self.folder / f"{name}.u4", np.dtype("<u4"), "r").view(np.ndarray)

    def size_of(self, block: int) -> Numbers:
        """The number of shingles of each document of a block."""
        return load_array(self.folder / "size.u4", "<u4", int(self.firsts[block]), int(self.firsts[block + 1])).astype(
            np.int64
        )

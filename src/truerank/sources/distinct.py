"""Which texts of a stream are new, and which ids stand for two different texts, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Hashes, among

_SEED = 0x7275_6E6B
_HASHES = 2.0**64


def text_hashes(texts: Sequence[str]) -> Hashes:
    """64-bit hashes of the texts, shape (n,); the same in every process."""
    return pl.Series("text", texts, dtype=pl.String).hash(_SEED).to_numpy()


class DistinctTexts:
    """Finds the texts of a stream that were not seen before.

    The first `remember` distinct texts are remembered by a 64-bit hash, so memory is bounded by 8 bytes for each of
    them. Beyond that, a text seen earlier may pass as new, and the count becomes an estimate from the smallest
    hashes (Bar-Yossef et al., 2002) with a relative standard error of 1/sqrt(sketch).

    Args:
        remember: how many distinct texts are remembered.
        sketch: how many of the smallest hashes the estimate uses.
    """

    def __init__(self, remember: int = 1 << 21, sketch: int = 1 << 16) -> None:
        self._remember = remember
        self._sketch = sketch
        self._seen: Hashes = np.empty(0, np.uint64)
        self._smallest: Hashes = np.empty(0, np.uint64)
        #: Whether `count` is an estimate.
        self.estimated = False

    @property
    def count(self) -> int:
        """Number of distinct texts so far; exact while `estimated` is false."""
        if not self.estimated:
            return len(self._seen)
        return round((self._sketch - 1) * _HASHES / float(self._smallest[self._sketch - 1]))

    def new(self, texts: Sequence[str]) -> NDArray[np.intp]:
        """Positions of the texts that were not seen before, ascending; they count as seen afterwards.

        Returns:
            Positions of the first occurrence of every new text, shape (m,), m ≤ len(texts).
        """
        hashes, first = np.unique(text_hashes(texts), return_index=True)
        self._note_smallest(hashes)
        fresh = ~among(hashes, self._seen)
        hashes, first = hashes[fresh], first[fresh]
        room = self._remember - len(self._seen)
        self.estimated |= len(hashes) > room
        if room:
            added = np.sort(hashes[np.argsort(first)[:room]])
            self._seen = np.insert(self._seen, np.searchsorted(self._seen, added), added)
        return np.sort(first)

    def _note_smallest(self, hashes: Hashes) -> None:
        if len(self._smallest) == self._sketch:
            hashes = hashes[hashes < self._smallest[-1]]
        if len(hashes):
            self._smallest = np.union1d(self._smallest, hashes)[: self._sketch]


_WINDOW: Final = 1 << 20
_Keys = npt.NDArray[np.int64]


class Conflict(NamedTuple):
    """An id that was read twice with different texts: where (position in the block; line of the first one)."""

    position: int
    first_line: int


class _Run(NamedTuple):
    """Ids in the order of their hashes, with the hash of each text and its line."""

    ids: _Keys
    texts: _Keys
    lines: _Keys


class IdWindow:
    """Remembers the ids of at least the last 2^19 records (at most three million, 24 bytes each) and texts' hashes.

    Within that window every repeated id is found, up to collisions of 64-bit hashes (below one in ten million for ten
    million records); beyond it none is. The memory is that of sorted runs which are merged as they grow, so that a
    record costs a few hundred nanoseconds.
    """

    def __init__(self, window: int = _WINDOW) -> None:
        self._window = window
        self._runs: list[_Run] = []

    def add(
        self, ids: Sequence[str], texts: Sequence[str], lines: Sequence[int]
    ) -> tuple[npt.NDArray[np.intp], Conflict | None]:
        """Takes the next records.

        Returns:
            The positions, ascending, of those that repeat an id with the same text, and the first one that repeats an
            id with another text.
        """
        size = len(ids)
        if not size:
            return np.zeros(0, np.intp), None
        hashed = _Run(
            np.fromiter(map(hash, ids), np.int64, size),
            np.fromiter(map(hash, texts), np.int64, size),
            np.array(lines, np.int64) if not isinstance(lines, range) else np.arange(lines.start, lines.stop),
        )
        order = np.argsort(hashed.ids, kind="stable")
        run = _Run(*(values[order] for values in hashed))
        starts = np.flatnonzero(np.concatenate(([True], run.ids[1:] != run.ids[:-1])))
        first = np.repeat(starts, np.diff(np.append(starts, len(run.ids))))
        earlier_texts, earlier_lines = run.texts[first], run.lines[first]
        repeats = first != np.arange(size)
        for past in reversed(self._runs):  # so that the earliest has the last word
            found = np.searchsorted(past.ids, run.ids)
            found[found == len(past.ids)] = 0
            known = past.ids[found] == run.ids
            earlier_texts = np.where(known, past.texts[found], earlier_texts)
            earlier_lines = np.where(known, past.lines[found], earlier_lines)
            repeats |= known
        differs = repeats & (earlier_texts != run.texts)
        conflict = None
        if differs.any():
            worst = np.flatnonzero(differs)[np.argmin(order[differs])]
            conflict = Conflict(int(order[worst]), int(earlier_lines[worst]))
        self._keep(run)
        return np.sort(order[repeats & ~differs]), conflict

    def _keep(self, run: _Run) -> None:
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2].ids) <= 2 * len(self._runs[-1].ids):
            newer, older = self._runs.pop(), self._runs.pop()
            if len(older.ids) >= self._window:
                self._runs.append(newer)
                continue
            merged = [np.concatenate(pair) for pair in zip(older, newer, strict=True)]
            order = np.argsort(merged[0], kind="stable")
            self._runs.append(_Run(*(values[order] for values in merged)))

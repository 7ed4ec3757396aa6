"""Which texts of a stream are new, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Hashes

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
        self._overflowed = False

    @property
    def estimated(self) -> bool:
        """Whether `count` is an estimate."""
        return self._overflowed

    @property
    def count(self) -> int:
        """Number of distinct texts so far; exact while `estimated` is false."""
        if not self._overflowed:
            return len(self._seen)
        return round((self._sketch - 1) * _HASHES / float(self._smallest[self._sketch - 1]))

    def new(self, texts: Sequence[str]) -> NDArray[np.intp]:
        """Positions of the texts that were not seen before, ascending; they count as seen afterwards.

        Returns:
            Positions of the first occurrence of every new text, shape (m,), m ≤ len(texts).
        """
        hashes, first = np.unique(text_hashes(texts), return_index=True)
        self._note_smallest(hashes)
        fresh = ~self._remembered(hashes)
        hashes, first = hashes[fresh], first[fresh]
        room = self._remember - len(self._seen)
        if len(hashes) > room:
            self._overflowed = True
            earliest = np.argsort(first, kind="stable")[:room]
            added = np.sort(hashes[earliest])
        else:
            added = hashes
        if len(added):
            self._seen = np.insert(self._seen, np.searchsorted(self._seen, added), added)
        return np.sort(first)

    def _remembered(self, hashes: Hashes) -> NDArray[np.bool_]:
        if not len(self._seen):
            return np.zeros(len(hashes), np.bool_)
        places = np.minimum(np.searchsorted(self._seen, hashes), len(self._seen) - 1)
        found: NDArray[np.bool_] = self._seen[places] == hashes
        return found

    def _note_smallest(self, hashes: Hashes) -> None:
        if len(self._smallest) == self._sketch:
            hashes = hashes[hashes < self._smallest[-1]]
        if len(hashes):
            self._smallest = np.union1d(self._smallest, hashes)[: self._sketch]

"""What the readers hand on: blocks of queries with their lines, and the counts of what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class SourceCounts:
    """What was read of one source.

    Attributes:
        read: all records, those counted below included.
        empty: records whose normalised text is empty; they are not handed on.
        repaired: records with bytes that are not UTF-8 (read as latin-1) or with halves of Unicode surrogate pairs
            (replaced by U+FFFD).
        skipped: records that hold no usable text: too few columns, the key missing, null, or not a text.
        repeated: records whose id and text were read before. A query log hands them on, a topic set does not; for a
            query log this is a lower bound, because earlier ids are remembered within a window only.
    """

    read: int = 0
    empty: int = 0
    repaired: int = 0
    skipped: int = 0
    repeated: int = 0

    def __add__(self, other: SourceCounts) -> SourceCounts:
        read, empty, repaired = self.read + other.read, self.empty + other.empty, self.repaired + other.repaired
        return SourceCounts(read, empty, repaired, self.skipped + other.skipped, self.repeated + other.repeated)


class QueryBlock(NamedTuple):
    """Consecutive queries of a source: `ids[i]` belongs to `texts[i]`; the texts are as they were read."""

    ids: list[str]
    texts: list[str]


class RawBlock(NamedTuple):
    """Consecutive records as a reader found them, empty texts included.

    `lines[i]` is the line (or, in formats without lines, the record number) of record i, counted from 1. `own_ids` is
    False where all ids are such numbers, because the source has none.
    """

    ids: list[str]
    texts: list[str]
    lines: Sequence[int]
    own_ids: bool = True
    repaired: int = 0
    skipped: int = 0

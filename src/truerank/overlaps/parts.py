"""Texts as they are compared: what is kept of up to a million, read column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from truerank.near_duplicates import Sketches


@dataclass(frozen=True)
class _JoinedSketches(Sketches):
    """The blocks of several sketches, one after the other."""

    members: tuple[Sketches, ...] = ()

    @cached_property
    def _places(self) -> list[tuple[Sketches, int]]:
        return [(member, block) for member in self.members for block in range(len(member.sizes))]

    def load(self, block: int, *names: str) -> pl.DataFrame:
        member, own = self._places[block]
        return member.load(own, *names)

    @classmethod
    def of(cls, members: Sequence[Sketches]) -> Sketches:
        first = members[0]
        sizes = tuple(size for member in members for size in member.sizes)
        shingles, empty = sum(member.shingles for member in members), sum(member.empty for member in members)
        return cls(first.folder, first.options, sizes, shingles, empty, first.columns, tuple(members))


@dataclass(frozen=True)
class TextPart:
    """Up to a million texts as they are compared.

    Attributes:
        shingles: by shingles of three words.
        ngrams: the same texts by n-grams.
    """

    shingles: Sketches
    ngrams: Sketches

    def __len__(self) -> int:
        return len(self.shingles)

    @classmethod
    def joined(cls, parts: Sequence[TextPart]) -> TextPart:
        """Several parts as one, their texts one after the other."""
        if len(parts) == 1:
            return parts[0]
        sides = [[getattr(part, name) for part in parts] for name in ("shingles", "ngrams")]
        return cls(*map(_JoinedSketches.of, sides))

    @cached_property
    def firsts(self) -> Any:
        """The number of the first text of each block, and at the end how many there are."""
        return np.concatenate(([0], np.cumsum(self.shingles.sizes))).astype(np.int64)

    def column(self, name: str) -> Any:
        """A column of numbers of all texts: `folded`, `sequence` or `measured` (words as a reader counts)."""
        blocks = [self.shingles.column(block, name) for block in range(len(self.shingles.sizes))]
        return np.concatenate([np.zeros(0, np.uint64), *blocks])

    def short(self, block: int) -> pl.Series:
        """The texts of a block that are short enough to compare their words; null for longer ones."""
        return self.shingles.load(block, "short")["short"]

    def gathered(self, column: str, numbers: Any) -> pl.Series:
        """A column of texts by their numbers: `document_id`, or `shown` (of a long text its beginning)."""
        every, place = np.unique(np.asarray(numbers, np.int64), return_inverse=True)
        block_of = np.searchsorted(self.firsts, every, side="right") - 1
        found = [pl.Series(column, [], pl.String)]
        for block in np.unique(block_of).tolist():
            inside = every[block_of == block] - self.firsts[block]
            found.append(self.shingles.load(block, column)[column].gather(inside))
        return pl.concat(found).gather(place)

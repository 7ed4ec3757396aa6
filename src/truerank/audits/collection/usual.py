"""What is usual in a collection: its words, how texts end, how long they are; and documents that are unlike it.

Nothing is known of any language: a text in another one is a text without the words that make half of the collection.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Row = dict[str, Any]

#: Words of a text that are looked at; texts with fewer than so many are too short to say.
_LOOKED_AT, _FEWEST_WORDS = 300, 20
#: Texts with so small a share of the usual words, beside the median, are unlike the others; from so many texts on, and
#: only where words are written apart.
_UNLIKE, _FEWEST_TEXTS, _APART = 0.25, 50, 0.25
#: Candidates that are remembered.
_MOST: Final = 20_000
#: The end of a sentence inside a text, behind a word.
_INNER: Final = re.compile(r"\b([^\W\d_]+)[.!?…。！？؟।]+[\"'”’»)\]]*\s")
#: A word that should have ended so many texts or sentences by chance, and ended at most this share of them, ends none.
_EXPECTED, _NEVER = 20.0, 0.05
#: One length that is so much more frequent than its neighbours, at this level over all lengths, is a limit.
_SPIKE, _AROUND, _LEVEL, _LEAST, _LONGEST = 5, 10, 0.001, 100, 1 << 20


class UsualWords:
    """The words that make half of the texts seen so far, and texts that hold few of them."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._usual: frozenset[str] = frozenset()
        self._next = _FEWEST_TEXTS
        self._shares = array("d")
        self._seen = 0
        self._candidates: list[tuple[Row, list[str]]] = []

    def add(self, row: Row, words: Sequence[str]) -> None:
        """Takes the words of a text."""
        if len(words) < _FEWEST_WORDS:
            return
        words = words[:_LOOKED_AT]
        self._seen += 1
        if self._seen <= _MOST:
            self._counts.update(words)
        if self._seen == self._next:
            self._next *= 2
            self._usual = self._half()
        share = self._share(words) if self._usual else 0.0
        if self._usual:
            self._shares.append(share)
        if share < 0.5 * _UNLIKE and len(self._candidates) < _MOST:  # a median share is about a half
            self._candidates.append((row, list(words)))

    def _half(self) -> frozenset[str]:
        words, counts = zip(*self._counts.most_common(), strict=True)
        ends = np.cumsum(counts)
        return frozenset(words[: int(np.searchsorted(ends, ends[-1] / 2)) + 1])

    def _share(self, words: Sequence[str]) -> float:
        return sum(word in self._usual for word in words) / len(words)

    def unlike(self) -> list[Row]:
        """The texts that hold few of the usual words, with what shows it."""
        if self._seen < 2 * _FEWEST_TEXTS:
            return []
        self._usual, middle = self._half(), median(self._shares)
        if middle < _APART:
            return []
        shares = ((row, words, self._share(words)) for row, words in self._candidates)
        return [
            {**row, "detail": f"{share:.0%} usual words, median {middle:.0%}: '{' '.join(words[:8])}'"}
            for row, words, share in shares
            if share <= _UNLIKE * middle
        ]


class Endings:
    """The words with which texts and sentences end."""

    def __init__(self) -> None:
        self._ends: Counter[str] = Counter()

    def add(self, text: str, words: Sequence[str]) -> bool:
        """Takes a text and its words; says whether a sentence ends inside it."""
        inner = [word.casefold() for word in _INNER.findall(text)]
        self._ends.update(inner)
        self._ends.update(words[-1:])
        return bool(inner)

    def never_last(self, words: Mapping[str, int]) -> frozenset[str]:
        """Frequent words that end next to no text or sentence, such as articles; one letter may be a name's."""
        share = self._ends.total() / max(1, sum(words.values()))
        return frozenset(
            word
            for word, count in words.items()
            if len(word) > 1 and count * share >= _EXPECTED and self._ends[word] - 1 <= _NEVER * count * share
        )


def limits(lengths: NDArray[np.int64]) -> dict[int, int]:
    """Lengths at which far more texts end than at any length beside them, with the number of texts.

    A text that was cut at a blank is one shorter: the two lengths count as one.
    """
    counts = np.bincount(lengths[lengths <= _LONGEST], minlength=_LEAST).astype(float)
    found = {}
    for length in np.flatnonzero(counts >= _SPIKE):
        here = counts[length - 1 : length + 1].sum()
        beside = np.append(counts[max(0, length - 1 - _AROUND) : length - 1], counts[length + 1 :][:_AROUND])
        usual = 2 * beside.max(initial=0.5)
        if length >= _LEAST and stats.poisson.sf(here - 1, usual) * np.count_nonzero(counts) <= _LEVEL:
            found[int(length)] = int(here)
    return found

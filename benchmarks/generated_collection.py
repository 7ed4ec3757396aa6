"""Generated documents of subjects, for simulated judging.

They draw their words by Zipf's law, so that a few words stand in most documents and most words in few: about 100
different ones of 120, as in a short web page.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from truerank.audits.pool.features import TermCounts

VOCABULARY = 400_000
PARTS = 1 << 22
#: Documents of a subject.
OF_SUBJECT = 250
CHUNK = 1 << 15


class GeneratedCollection:
    """Documents of made-up words, the same whenever they are asked for, chunk after chunk.

    Args:
        count: of the documents.
        words: of each document.
        seed: of all that is drawn.
    """

    def __init__(self, count: int, words: int = 120, seed: int = 11) -> None:
        self.count, self.length, self.seed = count, words, seed
        draw = np.random.default_rng(seed)
        # Zipf with a shift, the words' numbers mixed so that frequency says nothing about the column.
        ranks = 1 / (np.arange(VOCABULARY) + 2.7)
        names = draw.permutation(VOCABULARY).astype(np.int32)
        # The word of each of many equal parts of the whole: drawing one is drawing a number.
        self._parts = names[np.searchsorted(np.cumsum(ranks / ranks.sum()), (np.arange(PARTS) + 0.5) / PARTS)]
        self.subjects = max(1, count // OF_SUBJECT)
        self._own = names[draw.integers(VOCABULARY // 100, VOCABULARY, (self.subjects, 40))]
        # Words of letters only, so that a query's words are found again; in the order of their numbers.
        alphabet = "abcdefghij"
        self.words = [f"x{''.join(alphabet[int(digit)] for digit in f'{number:06d}')}x" for number in range(VOCABULARY)]

    @cached_property
    def ids(self) -> list[str]:
        """Of the documents."""
        return [f"d{number:08d}" for number in range(self.count)]

    def query(self, subject: int) -> str:
        """Three words of a subject."""
        return " ".join(self.words[number] for number in self._own[subject, :3])

    def about(self) -> np.ndarray:
        """The subject of each document, shape (documents,)."""
        return np.concatenate([self._drawn(first)[0] for first in range(0, self.count, CHUNK)])

    def terms(self) -> Iterator[np.ndarray]:
        """The words of the documents of each chunk, shape (documents, words)."""
        for first in range(0, self.count, CHUNK):
            subjects, draw = self._drawn(first)
            size = len(subjects)
            found = self._parts[draw.integers(0, PARTS, (size, self.length), dtype=np.int32)]
            # A tenth of a document, by chance, is about its subject.
            tenth = self.length // 10
            chosen = self._own[subjects[:, None], draw.integers(0, 40, (size, tenth))]
            found[:, :tenth] = np.where(draw.random((size, tenth)) < 0.6, chosen, found[:, :tenth])
            yield found

    def counts(self) -> Iterator[TermCounts]:
        """The same, counted."""
        for terms in self.terms():
            terms.sort(axis=1)
            starts = np.flatnonzero(np.diff(terms, axis=1, prepend=-1))
            sizes = np.bincount(starts // self.length, minlength=len(terms))
            counts = np.diff(np.append(starts, terms.size)).astype(np.int32)
            yield TermCounts(sizes, terms.ravel()[starts], counts)

    def frequency(self) -> np.ndarray:
        """How many documents hold each word, shape (words,)."""
        found = np.zeros(VOCABULARY, np.int64)
        for block in self.counts():
            found += np.bincount(block.terms, minlength=VOCABULARY)
        return found

    def documents(self) -> Iterator[tuple[str, str]]:
        """Ids and texts."""
        ids = iter(self.ids)
        for terms in self.terms():
            for row in terms.tolist():
                yield next(ids), " ".join(self.words[number] for number in row)

    def _drawn(self, first: int) -> tuple[np.ndarray, np.random.Generator]:
        draw = np.random.default_rng([self.seed, first])
        return draw.integers(0, self.subjects, min(CHUNK, self.count - first)), draw

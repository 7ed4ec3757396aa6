"""How alike two words are, by the sentence encoder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from truerank.vectors.encoders.base import Encoder


class WordVectors:
    """Cosines of words, each encoded once.

    Args:
        encoder: encodes the words.
        vocabulary: all words that will be asked for; others are encoded when they come.
    """

    def __init__(self, encoder: Encoder, vocabulary: Iterable[str] = ()) -> None:
        self._encoder = encoder
        self._rows: dict[str, int] = {}
        self._vectors = np.empty((0, encoder.dimension), np.float32)
        self._add(vocabulary)

    def __call__(self, left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
        """Cosines of every word on the left with every word on the right, shape (left, right)."""
        self._add([*left, *right])
        rows = [self._rows[word] for word in left]
        columns = [self._rows[word] for word in right]
        cosines: NDArray[np.float32] = self._vectors[rows] @ self._vectors[columns].T
        return cosines

    def _add(self, words: Iterable[str]) -> None:
        new = sorted({word for word in words if word not in self._rows})
        if new:
            self._rows |= {word: row for row, word in enumerate(new, start=len(self._rows))}
            self._vectors = np.concatenate([self._vectors, self._encoder.encode(new)])

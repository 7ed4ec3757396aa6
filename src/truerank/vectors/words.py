"""How alike two words are, by the sentence encoder or by their stems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from truerank.text.words import stem
from truerank.vectors.encoders.base import Encoder


def same_stems(left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
    """1 where two words have the same stem, else 0, shape (left, right): what is known without an encoder."""
    stems = [np.array([stem(word) for word in side], dtype=np.str_) for side in (left, right)]
    same: NDArray[np.float32] = (stems[0][:, None] == stems[1]).astype(np.float32)
    return same


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

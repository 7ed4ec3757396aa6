"""Which texts an encoder can read, so that a cosine of them says something.

A text is doubtful where the tokenizer has no piece for a part of it, or cuts its words into many pieces. Whether the
encoder reads a doubtful text is then measured with that very text: its words are written backwards, and its letters
are exchanged for each other. That leaves nothing of what it says, so an encoder that reads the text gives other
vectors; one that sees unknown pieces, letters and endings gives nearly the same. So each text is decided by itself,
whatever else a log holds, and no list of languages or scripts has a say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.near_duplicates import Shingles
from truerank.near_duplicates.shingling import shingled
from truerank.vectors.encoders.base import Encoder, Vectors

#: Pieces for each word up to which a text is not doubtful. English questions have 1.1 to 1.3.
_FEW_PIECES: Final = 1.5
#: How far towards itself, from what unrelated texts have, a text's cosine with its words backwards and with its letters
#: exchanged, may lie: the first number, and the second for each word, because chance has more to say of few words.
_MOST_ALIKE: Final = ((0.2, 0.3), (0.3, 0.6))
#: Texts on nothing in common: their cosines are where an encoder's scale begins.
_UNRELATED: Final = (
    "how to repair a bicycle chain", "symptoms of low blood sugar", "history of the roman senate", "chess openings",
    "growing tomatoes on a balcony", "price of crude oil in winter", "the painter of mona lisa", "jazz guitar scales",
    "tax on rented apartments", "why do whales sing", "install a printer driver", "recipe for onion soup",
)  # fmt: skip


class ReadTexts:
    """An encoder that is asked about texts only that it can read; of others, each cosine is 0.

    Args:
        encoder: makes the vectors. One without a method `pieces` is taken to read everything.
        judge: decides what can be read, where that is another precision of the encoder; by default the encoder.
    """

    def __init__(self, encoder: Encoder, judge: Encoder | None = None) -> None:
        self._encoder = encoder
        self._judge = encoder if judge is None else judge

    @classmethod
    def of(cls, encoder: Encoder) -> ReadTexts:
        """The encoder as one of these, where it is none yet."""
        return encoder if isinstance(encoder, cls) else cls(encoder)

    @property
    def name(self) -> str:
        """The name of the encoder inside."""
        return self._encoder.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._encoder.dimension

    @property
    def precision(self) -> str:
        """Arithmetic of the encoder inside."""
        return self._encoder.precision

    @property
    def fingerprint(self) -> str:
        """That of the encoder inside; another where it is not asked about every text."""
        own = self._encoder.fingerprint
        return own if self._pieces is None else f"{own}-read-2"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, and zeros for texts that the encoder cannot read, shape (len(texts), dimension), float32."""
        vectors = self._encoder.encode(texts)
        own = vectors if self._judge is self._encoder else None
        unread = ~self.reads(texts, own)
        if unread.any():
            vectors = vectors.copy()
            vectors[unread] = 0
        return vectors

    def reads(self, texts: Sequence[str], vectors: Vectors | None = None) -> NDArray[np.bool_]:
        """Which texts the encoder can read, shape (len(texts),)."""
        read = np.ones(len(texts), np.bool_)
        places = self._doubtful(texts)
        if not len(places):
            return read
        own = self._judge.encode([texts[place] for place in places.tolist()]) if vectors is None else vectors[places]
        for senseless, most in zip((_backwards, _exchanged), _MOST_ALIKE, strict=True):
            blind = self._alike(own, [texts[place] for place in places.tolist()], senseless, most)
            read[places[blind]] = False
            places, own = places[~blind], own[~blind]
        return read

    def _alike(
        self, own: Vectors, texts: Sequence[str], senseless: Callable[[str], str], most: tuple[float, float]
    ) -> NDArray[np.bool_]:
        """Whether texts have nearly the same vectors when nothing is left of what they say."""
        if not texts:
            return np.zeros(0, np.bool_)
        start = self._unrelated
        others = self._judge.encode([senseless(text) for text in texts])
        alike = (np.einsum("ij,ij->i", own, others) - start) / max(1e-6, 1 - start)
        return alike > most[0] + most[1] / np.array([max(1, len(text.split())) for text in texts])  # type: ignore[no-any-return]

    @property
    def _pieces(self) -> Callable[[Sequence[str]], Sequence[tuple[int, int]]] | None:
        counted: Any = getattr(self._judge, "pieces", None)
        return counted  # type: ignore[no-any-return]

    def _doubtful(self, texts: Sequence[str]) -> NDArray[np.intp]:
        """Places of texts with unknown pieces or many pieces for each word, as a reader counts words."""
        none = np.zeros(0, np.intp)
        if self._pieces is None or not len(texts):
            return none
        counts = np.array(self._pieces(texts), np.int64).reshape(-1, 2)
        fewest = np.array([len(text.split()) for text in texts], np.int64)
        unknown = counts[:, 1] > 0
        many = np.flatnonzero(~unknown & (counts[:, 0] > _FEW_PIECES * fewest))
        if len(many):
            measured = shingled([texts[place] for place in many.tolist()], Shingles(), measured=True).measured
            many = many[counts[many, 0] > _FEW_PIECES * np.maximum(measured, fewest[many])]
        return np.union1d(np.flatnonzero(unknown), many).astype(np.intp)

    @cached_property
    def _unrelated(self) -> float:
        """The mean cosine of unrelated texts."""
        vectors = self._judge.encode(_UNRELATED)
        products = vectors @ vectors.T
        return float(products[~np.eye(len(vectors), dtype=np.bool_)].mean())


def _backwards(text: str) -> str:
    """A text whose words are written backwards; signs that stand alone are left out, since they have no direction."""
    return " ".join(word[::-1] for word in text.split() if any(map(str.isalnum, word)))


def _exchanged(text: str) -> str:
    """A text in which each letter is another one of its letters, the same one everywhere."""
    letters = sorted({letter for letter in text if letter.isalpha()})
    half = len(letters) // 2
    return text.translate(str.maketrans("".join(letters), "".join(letters[half:] + letters[:half])))

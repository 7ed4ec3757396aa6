"""Which texts an encoder can read, so that a cosine of them says something.

A text is doubtful where the tokenizer has no piece for a part of it, or cuts its words into many pieces. Whether the
encoder reads a doubtful text is then measured with that very text: its words are written backwards, and its letters are
exchanged for each other. That leaves nothing of what it says, so an encoder that reads the text gives other vectors;
one that sees unknown pieces, letters and endings gives nearly the same. No list of languages or scripts has a say. It
takes a few times as long as encoding: a scan asks it about a sample and about what it names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress
from random import Random
from typing import Any, Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from truerank.near_duplicates import Shingles
from truerank.near_duplicates.shingles import shingled
from truerank.text.words import script_of
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
#: Texts of a sample that says which share of a source an encoder cannot read.
_SAMPLE: Final = 512


def unread(texts: Sequence[str], encoder: Encoder) -> NDArray[np.bool_]:
    """Which texts an encoder cannot read, shape (len(texts),); only doubtful ones are encoded.

    Args:
        encoder: in full precision. One without a method `pieces` is taken to read everything.
    """
    found = np.zeros(len(texts), np.bool_)
    pieces: Any = getattr(encoder, "pieces", None)
    if pieces is None or not len(doubtful := _doubtful(texts, pieces)):
        return found
    asked = [texts[place] for place in doubtful.tolist()]
    vectors = encoder.encode([*_UNRELATED, *asked, *map(_backwards, asked), *map(_exchanged, asked)])
    few, own, *others = np.split(vectors, len(_UNRELATED) + len(asked) * np.arange(3))
    start = float((few @ few.T)[~np.eye(len(few), dtype=np.bool_)].mean())
    for senseless, most in zip(others, _MOST_ALIKE, strict=True):
        bars = most[0] + most[1] / np.array([max(1, len(text.split())) for text in asked])
        alike = (np.einsum("ij,ij->i", own, senseless) - start) / max(1e-6, 1 - start)
        found[doubtful] |= alike > bars
    return found


def read_vectors(texts: Sequence[str], encoder: Encoder) -> Vectors:
    """Unit vectors, and zeros for texts that the encoder cannot read, shape (len(texts), dimension), float32; of texts
    that stand several times, one is encoded."""
    row = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    vectors = np.array(encoder.encode(list(row)))
    vectors[unread(list(row), encoder)] = 0
    return vectors[[row[text] for text in texts]]


class UnreadShare(TypedDict):
    """Of a sample of a source's first texts, how many there are, and how many an encoder cannot read, by script."""

    texts: int
    unread: dict[str, int]


def unread_share(texts: Sequence[str], unread: Callable[[Sequence[str]], NDArray[np.bool_]]) -> UnreadShare:
    """What is true of the texts that a source begins with; the scripts with most texts that are not read come first."""
    sample = Random(0).sample(texts, min(_SAMPLE, len(texts)))
    scripts = Counter(map(script_of, compress(sample, unread(sample))))
    return UnreadShare(texts=len(sample), unread=dict(scripts.most_common()))


def _doubtful(texts: Sequence[str], pieces: Callable[[Sequence[str]], Sequence[tuple[int, int]]]) -> NDArray[np.intp]:
    """Places of texts with unknown pieces or many pieces for each word, as a reader counts words."""
    counts = np.array(pieces(texts), np.int64).reshape(-1, 2)
    fewest = np.array([len(text.split()) for text in texts], np.int64)
    unknown = counts[:, 1] > 0
    many = np.flatnonzero(~unknown & (counts[:, 0] > _FEW_PIECES * fewest))
    if len(many):
        measured = shingled([texts[place] for place in many.tolist()], Shingles(), measured=True).measured
        many = many[counts[many, 0] > _FEW_PIECES * np.maximum(measured, fewest[many])]
    return np.union1d(np.flatnonzero(unknown), many).astype(np.intp)


def _backwards(text: str) -> str:
    """A text whose words are written backwards; signs that stand alone are left out, since they have no direction."""
    return " ".join(word[::-1] for word in text.split() if any(map(str.isalnum, word)))


def _exchanged(text: str) -> str:
    """A text in which each letter is another one of its letters, the same one everywhere."""
    letters = sorted({letter for letter in text if letter.isalpha()})
    half = len(letters) // 2
    return text.translate(str.maketrans("".join(letters), "".join(letters[half:] + letters[:half])))

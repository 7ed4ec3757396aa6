"""Documents of MS MARCO's length out of a random generator: a file of any size, the same for the same numbers.

MS MARCO's documents (version 1) have some 1,100 words and 7 KB on average. The generator draws a document's length
from a log-normal distribution with that mean. Words come from a vocabulary of a million made-up words. The frequencies
of the first 5,000 follow Zipf's law, those of the others fall with the square of the rank (Ferrer i Cancho and Solé,
2001). The most frequent words are English words of grammar. Four of ten words repeat one of the same document, and of
a thousand words eight are numbers that hardly stand elsewhere: 3.2 million documents have some 30 million words.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from truerank.lexical.analysis import LISTS

WORDS = 1_000_000
MEAN_LENGTH = 1100
#: Of the logarithm of a document's length.
_SPREAD = 0.9
#: The share of words that are made for one place.
_RARE = 0.008
#: Zipf's law holds up to this rank; the frequency of rank r is as 1 / (r + offset).
_KERNEL = 5_000
_OFFSET = 3
#: The share of words that repeat one of the document.
_REPEATED = 0.4
_ENDINGS = ("", "", "", "", "s", "ed", "ing", "ation", "ly", "er")
_PART = 256


def vocabulary(seed: int = 1) -> list[str]:
    """Made-up words, by frequency; the first are words of grammar."""
    draw = random.Random(seed)
    syllables = [first + vowel for first in "bcdfghklmnprstvw" for vowel in "aeiou"]
    common = sorted(LISTS["grammar"], key=lambda word: (word not in LISTS["lucene"], len(word), word))
    words = dict.fromkeys(common)
    while len(words) < WORDS:
        size = 2 + (len(words) > 3_000) + (len(words) > 100_000) * (draw.random() < 0.5)  # rarer words are longer
        words["".join(draw.choices(syllables, k=size)) + draw.choice(_ENDINGS)] = None
    return list(words)


def texts(
    number: int, words: list[str], seed: int = 1, *, mean: int = MEAN_LENGTH, spread: float = _SPREAD
) -> Iterator[str]:
    """So many texts, of so many words on average."""
    head = np.log(_KERNEL / _OFFSET) / (np.log(_KERNEL / _OFFSET) + 1)
    part = max(_PART, _PART * MEAN_LENGTH // mean)
    for first in range(0, number, part):
        draw = np.random.default_rng((seed, first))
        some = min(part, number - first)
        lengths = np.exp(draw.normal(np.log(mean) - spread**2 / 2, spread, some)).astype(int) + 5
        even = draw.random(int(lengths.sum())) / head
        ranks = (_OFFSET * (_KERNEL / _OFFSET) ** np.minimum(even, 1) - _OFFSET).astype(np.int64)
        tail = np.flatnonzero(even > 1)
        ranks[tail] = np.minimum(_KERNEL / draw.random(len(tail)), len(words) - 1)
        at = np.arange(len(ranks)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        repeated = np.flatnonzero(draw.random(len(ranks)) < _REPEATED)
        ranks[repeated] = ranks[repeated - (draw.random(len(repeated)) * at[repeated]).astype(np.int64)]
        tokens = list(map(words.__getitem__, ranks.tolist()))
        for place in np.flatnonzero(draw.random(len(tokens)) < _RARE).tolist():
            tokens[place] = f"{draw.integers(1 << 36):x}"
        for place in np.flatnonzero(draw.random(len(tokens)) < 0.06).tolist():
            tokens[place] += ". The"
        end = 0
        for length in lengths.tolist():
            yield " ".join(tokens[end : end + length])
            end += length


def write_documents(number: int, path: Path, words: list[str], seed: int = 1) -> int:
    """Writes JSONL; returns the number of bytes."""
    with path.open("w", encoding="ascii") as target:
        for place, text in enumerate(texts(number, words, seed)):
            target.write(
                f'{{"_id": "D{place:07d}", "url": "https://example.org/{place}", "title": "", "body": "{text}"}}\n'
            )
    return path.stat().st_size


def queries(number: int, words: list[str], seed: int = 2) -> list[str]:
    """Queries of two to six words, rarer ones than texts have."""
    draw = random.Random(seed)
    return [
        " ".join(words[int(np.exp(draw.uniform(np.log(100), np.log(len(words)))))] for _ in range(draw.randint(2, 6)))
        for _ in range(number)
    ]

"""What the tests of the small rankers share: a small vocabulary, texts, and instances that can be learned."""

from __future__ import annotations

import random

import numpy as np

from truerank.audits.survivorship.instances import Instance
from truerank.rankers.base import Pair
from truerank_lab.rankers.vocabulary import Frequencies, WordVocabulary

WORDS = tuple(f"w{number:02d}" for number in range(40))


def vocabulary(dimension: int = 16) -> WordVocabulary:
    """Forty words with random vectors; the first are the commonest."""
    vectors = np.random.default_rng(3).standard_normal((len(WORDS), dimension)).astype(np.float32)
    return WordVocabulary(WORDS, vectors, Frequencies(100, {word: 60 - n for n, word in enumerate(WORDS)}))


def pairs(count: int = 12, seed: int = 5) -> list[Pair]:
    """Pairs of all lengths, empty texts and unknown words among them."""
    draw = random.Random(seed)
    made = [Pair("", ""), Pair("w01", ""), Pair("", "w01 w02"), Pair("never seen", "seen never seen")]
    for number in range(count):
        query = draw.choices(WORDS, k=1 + number % 6)
        made.append(Pair(" ".join(query), " ".join(draw.choices(WORDS, k=1 + 7 * number) + query[:1])))
    return made


def instances(count: int, seed: int = 1) -> list[Instance]:
    """Queries whose words are in the relevant document and not in the other."""
    draw = random.Random(seed)
    made = []
    for number in range(count):
        words = draw.sample(WORDS, 12)
        query, others = words[:3], words[3:]
        relevant = draw.sample([*query, *others[:4]], 7)
        nonrelevant = draw.sample(others, 7)
        made.append(Instance(f"q{number}", " ".join(query), "a", " ".join(relevant), "b", " ".join(nonrelevant)))
    return made

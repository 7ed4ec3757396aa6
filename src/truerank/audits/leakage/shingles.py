"""Evidence of shingles for queries: texts that share most of their runs of three words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truerank.arrays import Hashes, among
from truerank.near_duplicates.shingles import Numbers, TextShingles, shingled
from truerank.overlaps import OverlapRules
from truerank.overlaps.results import BRIEF_SHARE, BRIEF_WORDS, PART_SHARE, PART_WORDS
from truerank.text.wording import INSIDE, SHINGLES, WordingProbe


@dataclass(frozen=True)
class ShingleProbe:
    """Names the pairs of texts that are near-duplicates (`SHINGLES`), or of which one holds the other (`SHINGLES` for
    texts of 13 words or more, else `INSIDE`: a word more may make another question).

    In a text of fewer than 13 words all shingles of one must be in the other.

    Args:
        texts: of topics, normalised.
        rules: the shares of shingles from which on a pair counts.
    """

    texts: tuple[str, ...]
    rules: OverlapRules = OverlapRules()

    @cached_property
    def _topics(self) -> tuple[TextShingles, Hashes, Numbers]:
        """The shingles of topics, all of them ascending, and the topic of each."""
        found = shingled(self.texts, self.rules.shingles, measured=True)
        owner = np.repeat(np.arange(len(self.texts)), np.diff(found.starts))
        order = np.argsort(found.shingles, kind="stable")
        return found, found.shingles[order], owner[order]

    def __call__(self, texts: Sequence[str]) -> list[tuple[int, int, int]]:
        """Triples of place in `texts`, number of the topic text, and what proposes the pair."""
        topics, known, owner = self._topics
        found = shingled(texts, self.rules.shingles, measured=True)
        place = np.repeat(np.arange(len(texts)), np.diff(found.starts))
        there = among(found.shingles, known) & (found.measured[place] >= self.rules.contained_words)
        first = np.searchsorted(known, found.shingles[there], side="left")
        holders = np.searchsorted(known, found.shingles[there], side="right") - first
        begins = np.repeat(np.cumsum(holders) - holders, holders)
        topic = owner[np.repeat(first, holders) + np.arange(holders.sum()) - begins]
        pair, both = np.unique(np.repeat(place[there], holders) * len(self.texts) + topic, return_counts=True)
        at, number = np.divmod(pair, max(1, len(self.texts)))
        sizes = np.diff(found.starts)[at], np.diff(topics.starts)[number]
        words = found.measured[at], topics.measured[number]
        jaccard, inside = both / (sizes[0] + sizes[1] - both), both / np.minimum(*sizes)
        fewest = np.minimum(*words)
        short = fewest < self.rules.ngram
        least = [
            np.where(short, 1.0, np.where(fewest < BRIEF_WORDS, max(share, BRIEF_SHARE), share))
            for share in (self.rules.similarity, self.rules.containment)
        ]
        # A changed word is no part; a name in a topic is no leak of it.
        unequal = (words[0] != words[1]) | ((sizes[0] != sizes[1]) & (jaccard < 1))
        part = (words[0] < PART_WORDS) & (words[0] <= words[1]) & (jaccard < PART_SHARE)
        held = (fewest >= self.rules.contained_words) & (inside >= least[1]) & unequal & ~part
        near = jaccard >= least[0]
        what = np.where(near | ~short, SHINGLES, INSIDE)
        columns = (column[near | held].tolist() for column in (at, number, what))
        return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class QueryProbe:
    """Names pairs by their words, letters and shingles."""

    words: WordingProbe
    shingles: ShingleProbe

    @classmethod
    def of(cls, texts: Sequence[str], held: Mapping[str, int] | None = None) -> QueryProbe:
        """The probe of normalised topic texts; `held` as in `WordingProbe`."""
        return cls(WordingProbe(texts, held, inside=True), ShingleProbe(tuple(texts)))

    def __call__(self, texts: Sequence[str]) -> list[tuple[int, int, int]]:
        """Triples of place in `texts`, number of the topic text, and what proposes the pair, each pair once."""
        found = {(place, number): what for place, number, what in self.shingles(texts)}
        found |= {
            (place, number): what for place, number, what in self.words(texts) if found.get((place, number)) != SHINGLES
        }
        return [(*pair, what) for pair, what in sorted(found.items())]

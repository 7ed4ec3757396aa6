"""The rule of what counts as an overlap: which evidence there is, and from which value on it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from truerank.near_duplicates import Shingles
from truerank.options import Options, Range

#: Texts with more words than this are not compared by their content words.
WORDING_LIMIT: Final = 32
#: In a text with fewer words, another word in some places may make another question. So near-duplicates and containment
#: ask for at least this share there, however low the thresholds are.
BRIEF_WORDS: Final = 20
BRIEF_SHARE: Final = 0.8


@dataclass(frozen=True)
class OverlapRules(Options):
    """Which evidence makes a pair of texts an overlap; any one kind is enough.

    A text with fewer words than `ngram` is short, and so is a pair with one: changing one word of a short text changes
    what it says. So *near* asks for the same words in the same order there, and *contains* for all shingles. Short
    texts are compared by their content words and their letters besides. With fewer than 20 words, *near* and *contains*
    ask for at least 0.8, and *ngram* for at least a half, where the thresholds are lower.

    Attributes:
        ngram: words in an n-gram.
        ngram_share: share of the n-grams of either text that the other one has, from which on it counts; of the text
            with fewer n-grams.
        similarity: Jaccard similarity of the three-word shingles from which on texts are near-duplicates.
        containment: share of the three-word shingles of the smaller text that the larger one has, from which on the
            pair counts.
        contained_words: a text with fewer words is not looked for inside others.
        threshold: cosine similarity of two texts, or of two of their passages, above which it counts.
    """

    ngram: Annotated[int, Range(at_least=4, at_most=64)] = 13
    ngram_share: Annotated[float, Range(above=0, at_most=1)] = 0.5
    similarity: Annotated[float, Range(above=0, at_most=1)] = 0.8
    containment: Annotated[float, Range(above=0, at_most=1)] = 0.8
    contained_words: Annotated[int, Range(at_least=3)] = 5
    threshold: Annotated[float, Range(at_least=-1, below=1)] = 0.91

    @property
    def shingles(self) -> Shingles:
        """How near-duplicates are looked for."""
        return Shingles(similarity=self.similarity, containment=self.containment, contained_words=self.contained_words)

    @property
    def ngrams(self) -> Shingles:
        """How n-grams are looked for: as shingles of that many words."""
        return Shingles(
            shingle_size=self.ngram, similarity=1.0, containment=self.ngram_share, contained_words=self.ngram
        )

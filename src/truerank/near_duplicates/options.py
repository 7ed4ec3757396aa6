"""How near-duplicates are defined: what a shingle is, and from which similarity on two documents are alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from truerank.options import Options, Range


@dataclass(frozen=True)
class Shingles(Options):
    """What counts as nearly the same text.

    Attributes:
        shingle_unit: what a shingle is made of: words (lower case, without punctuation; signs of scripts without blanks
            count as words) or letters (the same with one blank between words, for short texts).
        shingle_size: words or letters in a shingle; a shorter text is one shingle.
        similarity: Jaccard similarity of the sets of shingles from which on two documents are near-duplicates.
        containment: share of the shingles of the smaller document that the larger one has, from which on it contains
            the smaller one; what both have as boilerplate is not enough.
        contained_words: a document with fewer words is not looked for in others.
        boilerplate: share of the documents that hold a passage of eight words or more, from which on it is boilerplate.
    """

    shingle_unit: Literal["words", "letters"] = "words"
    shingle_size: Annotated[int, Range(at_least=1, at_most=64)] = 3
    similarity: Annotated[float, Range(above=0, at_most=1)] = 0.8
    containment: Annotated[float, Range(above=0, at_most=1)] = 0.8
    contained_words: Annotated[int, Range(at_least=1)] = 8
    boilerplate: Annotated[float, Range(above=0, at_most=1)] = 0.01

    @property
    def least_share(self) -> float:
        """The share of its shingles that the smaller document of a pair has in common with the larger one, at least.

        A Jaccard similarity s of sets of a and b ≥ a shingles needs s / (1 + s) · (a + b) ≥ 2s / (1 + s) · a in common.
        """
        return min(2 * self.similarity / (1 + self.similarity), self.containment)

    def least_common(self, shingles: int) -> int:
        """How many of so many shingles that share is, rounded up."""
        return max(1, math.ceil(self.least_share * shingles - 1e-9))

    @property
    def least_own(self) -> int:
        """How many shingles beside boilerplate a document must have in another one to be contained in it.

        As many as `contained_words` words have; in letters, as many as that many words of one letter.
        """
        units = self.contained_words if self.shingle_unit == "words" else 2 * self.contained_words - 1
        return max(1, units - self.shingle_size + 1)

    @property
    def identity(self) -> dict[str, str | int]:
        """What kept sketches depend on; thresholds may change without reading the documents again."""
        return {"unit": self.shingle_unit, "size": self.shingle_size}

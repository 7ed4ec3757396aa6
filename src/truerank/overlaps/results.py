"""The rules, and what was found: one row for each pair of texts, one column for each kind of evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import frame_schema
from truerank.near_duplicates import Shingles, Sketches
from truerank.near_duplicates.shingles import UNSPACED_SIGN
from truerank.options import Options, Range
from truerank.text.contrasts import contrast

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
        ngram_share: a pair counts if at least this share of the n-grams of the text with fewer of them is in the other
            text.
        similarity: Texts are near-duplicates if the Jaccard similarity of their three-word shingles is at least this.
        containment: a pair counts if the larger text has at least this share of the smaller one's three-word shingles.
        contained_words: texts with fewer words are not looked for inside others.
    """

    ngram: Annotated[int, Range(at_least=4, at_most=64)] = 13
    ngram_share: Annotated[float, Range(above=0, at_most=1)] = 0.5
    similarity: Annotated[float, Range(above=0, at_most=1)] = 0.8
    containment: Annotated[float, Range(above=0, at_most=1)] = 0.8
    contained_words: Annotated[int, Range(at_least=3)] = 5

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


#: What can make a pair an overlap, in the order in which the column `evidence` joins them with "+".
EVIDENCE_KINDS: Final = ("exact", "ngram", "near", "contains", "words", "letters")

OVERLAPS: Final[dict[str, Any]] = frame_schema(
    "test_id training_id: String, exact: Boolean, ngram_test ngram_training jaccard containment: Float64, "
    "wording: String, test_words training_words: Int64, test_text training_text evidence: String"
)

#: In scripts without blanks, a text with this share of `contained_words` is looked for inside others: a question has
#: fewer words there, and nothing else finds it in a longer one, as its words are not cut.
_UNSPACED_SHARE: Final = 0.4
#: A training text with fewer words that is a part of a test text, of less than this share of it, and nothing else says
#: something else: "in the 20th century", a name. Above it, a word more or less is left. Chosen on the logs and MIRACL.
PART_WORDS: Final = 10
PART_SHARE: Final = 0.75


class Overlaps(NamedTuple):
    """The pairs of texts of two sides that overlap.

    `frame` has columns as in `OVERLAPS`, in the order of the test side, then of the training side (of each million
    texts of the training side); a pair stands once.
    `exact`: the same text; blanks, case and marks at the end do not count. `ngram_test`: the share of the test text's
    distinct n-grams that are in the training text; `ngram_training`: the other way round; null where one of the two has
    fewer words than an n-gram. `jaccard`, `containment`: of the sets of three-word shingles; containment is that of the
    smaller text in the larger one. Shares leave out what four or more texts of the test side hold where a pair shares
    little else. `wording`: "words" where short texts have the same content words, "letters" where these are one letter
    apart or several words are damaged, else null. `test_text`, `training_text`: of texts of more than 32 words, the
    first 200 characters. `evidence`: the kinds (`EVIDENCE_KINDS`) that count.

    `crowded` counts shingles and n-grams that so many texts have that not all pairs with them were compared; where
    above 0, pairs may be missing among texts that share nothing rarer.
    """

    frame: pl.DataFrame
    crowded: int


def with_evidence(frame: pl.DataFrame, rules: OverlapRules) -> pl.DataFrame:
    """The pairs that overlap by some rules, with the column `evidence`."""
    fewest = pl.min_horizontal("test_words", "training_words")
    short = fewest < rules.ngram

    def least(share: float, brief: float) -> pl.Expr:
        return pl.when(fewest < BRIEF_WORDS).then(max(share, brief)).otherwise(share)

    texts = ("test_text", "training_text")
    # Where signs are parts of words, numbers of words are rounded, and may be the same where one text has more signs.
    signs = pl.all_horizontal(pl.col(text).str.contains(UNSPACED_SIGN) for text in texts)
    unequal = (pl.col("test_words") != pl.col("training_words")) | (signs & (pl.col("jaccard") < 1))
    unspaced = pl.all_horizontal(map(_unspaced, texts))
    least_words = pl.when(unspaced).then(math.ceil(_UNSPACED_SHARE * rules.contained_words))
    inside = (fewest >= least_words.otherwise(rules.contained_words)) & unequal
    fires = {
        "exact": pl.col("exact"),
        "ngram": pl.max_horizontal("ngram_test", "ngram_training") >= least(rules.ngram_share, 0.5),
        "near": pl.col("jaccard") >= pl.when(short).then(1.0).otherwise(least(rules.similarity, BRIEF_SHARE)),
        "contains": inside
        & (pl.col("containment") >= pl.when(short).then(1.0).otherwise(least(rules.containment, BRIEF_SHARE))),
        "words": pl.col("wording") == "words",
        "letters": pl.col("wording") == "letters",
    }
    names = [pl.when(fires[kind]).then(pl.lit(kind)) for kind in EVIDENCE_KINDS]
    evidence = pl.concat_str(names, separator="+", ignore_nulls=True)
    return frame.with_columns(evidence=evidence).filter(pl.col("evidence") != "")


def without_parts(pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs without those whose training text is only a small part of the test text, such as a name in it."""
    part = (pl.col("training_words") < PART_WORDS) & (pl.col("training_words") <= pl.col("test_words"))
    part &= (pl.col("evidence") == "contains") & (pl.col("jaccard") < PART_SHARE)
    return pairs.filter(~part)


def contrasting(pairs: pl.DataFrame) -> pl.Series:
    """Which pairs are of short texts that differ in what decides, and so are no overlaps, however much they share."""
    brief = (~pl.col("exact") & (pl.max_horizontal("test_words", "training_words") <= WORDING_LIMIT)).alias("brief")
    rows = pairs.select(brief, "test_text", "training_text").iter_rows()
    return pl.Series([short and contrast(one, other) != "" for short, one, other in rows], dtype=pl.Boolean)


def _unspaced(column: str) -> pl.Expr:
    """Whether at least half of the characters of a text are of a script without blanks."""
    return 2 * pl.col(column).str.count_matches(UNSPACED_SIGN) >= pl.col(column).str.len_chars()


@dataclass(frozen=True)
class TextPart:
    """Up to a million texts as they are compared."""

    shingles: Sketches
    ngrams: Sketches

    def __len__(self) -> int:
        return len(self.shingles)

    @cached_property
    def firsts(self) -> Any:
        return np.concatenate(([0], np.cumsum(self.shingles.sizes))).astype(np.int64)

    def column(self, name: str) -> Any:
        """A column of numbers of all texts: `folded`, `sequence` or `measured` (words as a reader counts)."""
        blocks = [self.shingles.column(block, name) for block in range(len(self.shingles.sizes))]
        return np.concatenate([np.zeros(0, np.uint64), *blocks])

    def short(self, block: int) -> pl.Series:
        """The texts of a block that are short enough to compare their words; null for longer ones."""
        return self.shingles.load(block, "short")["short"]

    def gathered(self, column: str, numbers: Any) -> pl.Series:
        """A column of texts by their numbers: `document_id`, or `shown` (of a long text its beginning)."""
        every, place = np.unique(np.asarray(numbers, np.int64), return_inverse=True)
        block_of = np.searchsorted(self.firsts, every, side="right") - 1
        found = [pl.Series(column, [], pl.String)]
        for block in np.unique(block_of).tolist():
            inside = every[block_of == block] - self.firsts[block]
            found.append(self.shingles.load(block, column)[column].gather(inside))
        return pl.concat(found).gather(place)

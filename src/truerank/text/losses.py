"""What of a text that answered a query is missing in another version of it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.text.page_faults import WORD, PageWords, covered, cut_of

#: Words of a piece that is looked for as a whole, and pieces on each side that share the query with it.
_PIECE: Final = 12
_AROUND: Final = 1
#: A version that has so large a share of the distinct words, and what is asked for, has lost nothing worth a look.
_ALL_THERE: Final = 0.9
#: Words of one piece that any text on the subject has in one place, and that a rewording keeps, as shares.
_CHANCE: Final = 0.3
_SAME: Final = 0.7
#: What a piece far from the words of the query counts beside the best one.
_FAR: Final = 0.02
_POWER: Final = 3.0
#: So much of the query, by weight, is much.
_ASKED: Final = 0.15
#: A body with fewer words is no text of its own: the title counts with it.
NO_BODY: Final = 8
#: What is left with fewer words, and no title, need not have one of those that are gone, although it was about that.
_STUMP: Final = 18


class Loss(NamedTuple):
    """What of a text another version lacks, from 0 to 1.

    Attributes:
        share: of what answered the query.
        akin: of the words that are gone, by the square of their weight, those that the rest has: a text that was cut is
            about its title, a comment below it is not. All where much of the query is gone for good, and where too
            little is left to tell.
    """

    share: float
    akin: float


@dataclass(frozen=True)
class WordWeights:
    """How much a word tells: the logarithm of how rare it is.

    Attributes:
        weights: by form, see `PageWords.forms`.
        unknown: of a form that was not seen.
    """

    weights: Mapping[str, float]
    unknown: float

    def of(self, some: Iterable[str]) -> Floats:
        """The weights of some forms, in their order."""
        known, other = self.weights, self.unknown
        return np.array([known.get(form, other) for form in some])


def word_weights(texts: Iterable[Sequence[str]]) -> WordWeights:
    """Weights from the words of a sample of documents."""
    counts: Counter[str] = Counter()
    size = 0
    for forms in texts:
        counts.update(set(forms))
        size += 1
    weights = {form: math.log1p((size - count + 0.5) / (count + 0.5)) for form, count in counts.items()}
    return WordWeights(weights, math.log1p((size + 0.5) / 0.5))


def lost_share(before: PageWords, after: PageWords, query: frozenset[str], weights: WordWeights) -> Loss:
    """How much of what answered a query another version lacks.

    The text is cut into pieces. A piece is there where its runs of words are, or most of its words close to one
    another. Pieces weigh by how rare their words are and by how much of the query stands in and around them.
    The title counts only where there is no body: pages keep titles above whatever they show. Of a text that breaks off
    within a sentence, all that followed counts half, and what stands near the query half.
    """
    titled = before.size < NO_BODY
    text = before.whole if titled else before
    other = after.whole
    mine, theirs = text.forms, other.forms
    if not mine:
        return Loss(0.0, 0.0)
    distinct, there = set(mine), set(theirs)
    much = _ASKED * float(weights.of(sorted(query)).sum())
    asked = float(weights.of(sorted(query & distinct - there)).sum())
    # A title that stays is a text where a page never had another one.
    stays = bool(before.title) and there.issuperset(PageWords("", before.title).forms)
    if asked <= much and ((titled and stays) or len(distinct & there) >= _ALL_THERE * len(distinct)):
        return Loss(0.0, 0.0)
    cuts = range(0, max(1, len(mine) - _PIECE // 2), _PIECE)
    ends = [*cuts[1:], len(mine)]
    pieces = [mine[start:end] for start, end in zip(cuts, ends, strict=True)]
    runs = covered(text, other)
    kept = _kept(pieces, np.add.reduceat(runs, cuts), theirs, weights)
    worth = np.array([float(weights.of(set(piece)).sum()) for piece in pieces]) * _near_query(pieces, query, weights)
    total = float(worth.sum())
    gone = list(dict.fromkeys(form for form, run in zip(mine, runs.tolist(), strict=True) if not run))
    value = weights.of(gone) ** 2
    known = np.array([form in there for form in gone], dtype=np.bool_)
    share = float(worth @ (1.0 - kept)) / total if total else 0.0
    if _cut_off(text, runs):
        # What followed in the sentence is of the same text, wherever the query's words stand.
        return Loss(max(share, (share + 1.0 - float(runs.mean())) / 2), 1.0)
    # Words of scripts without blanks are those of whole lines: a title has none of them.
    stump = after.size < (NO_BODY if stays else _STUMP) and (not stays or text.size > len(text.words))
    if asked >= much > 0 or stump:
        return Loss(share, 1.0)
    return Loss(share, float(value[known].sum()) / float(value.sum() or 1.0))


def _cut_off(text: PageWords, runs: NDArray[np.bool_]) -> bool:
    """Whether a text is kept up to a word within a sentence: no comments and no other article begin there."""
    cut = cut_of(runs)
    if not cut:
        return False
    last, following = itertools.islice(WORD.finditer(text.body), cut - 1, cut + 1)
    between, letter = text.body[last.end() : following.start()], following[0][0]
    return between.strip(" \t\u00a0") == "" and letter.isalpha() and not letter.isupper()


def _kept(
    pieces: Sequence[Sequence[str]], runs: NDArray[np.integer], theirs: Sequence[str], weights: WordWeights
) -> Floats:
    """For each piece how much of it the other text has."""
    kept: Floats = runs / np.array([len(piece) for piece in pieces])
    numbers: dict[str, int] = {}
    places = np.array([numbers.setdefault(form, len(numbers)) for form in theirs], dtype=np.int64)
    for number in np.flatnonzero(kept < _SAME).tolist():
        distinct = list(dict.fromkeys(pieces[number]))
        value = weights.of(distinct)
        worth = np.zeros(len(numbers))
        for form, weight in zip(distinct, value.tolist(), strict=True):
            if form in numbers:
                worth[numbers[form]] = weight
        sums = np.concatenate([[0.0], np.cumsum(worth[places])])
        width = min(len(places), 2 * len(pieces[number]))
        most = float((sums[width:] - sums[: len(sums) - width]).max()) / float(value.sum() or 1.0)
        kept[number] = max(float(kept[number]), (most - _CHANCE) / (_SAME - _CHANCE))
    return np.clip(kept, 0.0, 1.0)


def _near_query(pieces: Sequence[Sequence[str]], query: frozenset[str], weights: WordWeights) -> Floats:
    """How much each piece counts by the words of the query in and around it, from `_FAR` to 1."""
    hits = [query.intersection(piece) for piece in pieces]
    around = [set().union(*hits[max(0, at - _AROUND) : at + _AROUND + 1]) for at in range(len(pieces))]
    match = np.array([float(weights.of(sorted(some)).sum()) for some in around])
    if not match.max(initial=0.0):
        return np.ones(len(pieces))
    near: Floats = _FAR + (1 - _FAR) * (match / match.max()) ** _POWER
    return near

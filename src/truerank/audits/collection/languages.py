"""Estimate: which languages texts of one script are in. No language is known beforehand.

The most frequent words of a language are few and short, make much of every text, and are rare in other languages.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Final

import numpy as np
import scipy

from truerank.arrays import Flags, Floats, Ints
from truerank.audits.collection.texts import plain_words

#: Texts of the sample, their characters, and those by which texts are the same; the frequent words that are counted,
#: and the words that tell a language.
_SAMPLE, _BEGINNING, _SAME, _COUNTED, _KEYS = 5_000, 600, 100, 5_000, 30
#: Words of a text that can be told, texts that tell anything, and those that tell of a second language.
_FEWEST, _FEWEST_TEXTS, _FEWEST_OTHERS = 8, 50, 6
#: A word is a language's own if it is so many times as frequent as elsewhere; so many of its texts have each key.
_OWN, _IN_TEXTS, _FEWEST_KEYS, _FEWEST_OWN = 10.0, 0.1, 8, 3
#: A text has the keys of its language at least half as often as most texts, and in what is left over hardly ever.
_FITS, _HARDLY = 0.5, 1 / 3
#: The ten first keys of a language make a share of its words between these: lists of few words have more. The ten are
#: shorter than its other words, by a factor of at most the third: names and terms are not. The longer they are, the
#: larger the share has to be, by the fourth.
_TEN, _LEAST, _MOST, _SHORTER, _BY_LENGTH = 10, 0.08, 0.5, 0.8, 0.2
#: So many keys are in such a share of its texts, unlike the words of a subject.
_SEVERAL, _MANY = 3, 0.35
#: Between blanks are words, unlike in code and formulas; inside a sentence keys begin with no capital, unlike names.
_PROSE, _CAPITALS = 0.8, 0.5
_MARKS, _ENDS = ".,;:!?()\"'", ".:!?"
_WORD: Final = re.compile(r"[^\w\s]{0,3}[^\W\d_]+(?:['’-][^\W\d_]+)*[^\w\s]{0,3}")
#: Other words that two languages share, as a share of those that texts of one of them share.
_COMMON: Final = 0.6
#: Frequent words with which a search begins, the share of the texts that one of them has to find, and other searches.
_BEGINNINGS, _A_PART, _SEARCHES = 5, 0.25, 8


@dataclass(frozen=True, eq=False)
class Language:
    """The words that tell a language.

    Attributes:
        keys: some of its most frequent words.
        own: the words that are far more frequent in it than in the others.
        share: the median share of these in its texts.
        texts: how many of the sample are in it.
    """

    keys: tuple[str, ...]
    own: frozenset[str]
    share: float
    texts: int

    def fit(self, words: Sequence[str]) -> float:
        """The share of the own words in a text beside the median; 0 where it has fewer than three of them."""
        held = [word for word in words if word in self.own]
        return len(held) / len(words) / self.share if len({*held}) >= _FEWEST_OWN else 0.0


def language_of(text: str, languages: Sequence[Language]) -> int | None:
    """The place of the language that a text is in, beyond doubt; None where it is too short or in none of them."""
    words = plain_words(text)
    if len(words) < _FEWEST:
        return None
    fits = [one.fit(words) for one in languages]
    *others, best = sorted(range(len(fits)), key=fits.__getitem__)
    return best if fits[best] >= _FITS and all(fits[at] < min(_HARDLY, fits[best] / 2) for at in others) else None


def asked_languages(texts: Iterable[str], languages: Sequence[Language]) -> Counter[int]:
    """How many topics have more words of each language than of the others, two at least: one may be a name.

    They are too short for `language_of`.
    """
    found = Counter[int]()
    for text in texts:
        words = {*plain_words(text)}
        counts = [len(words & one.own) + (not (words & one.own).isdisjoint(one.keys)) for one in languages]
        if counts.count(most := max(counts)) == 1 and most > 1:
            found[counts.index(most)] += 1
    return found


class LanguageSample:
    """Takes texts, and keeps the beginnings of a random sample of them."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._draw, self._share = random.Random(0), 1.0

    def add(self, text: str) -> None:
        """Takes a text."""
        if self._draw.random() < self._share:
            self._texts.append(text[:_BEGINNING])
        if len(self._texts) > 2 * _SAMPLE:
            self._share /= 2
            self._texts = [one for one in self._texts if self._draw.random() < 0.5]

    def languages(self) -> list[Language]:
        """The languages of the texts, one that a quarter of them has first; fewer than two where none stands out."""
        different = {text[:_SAME]: text for text in self._texts}  # notices that come often are no language
        words = {text: some for text in different.values() if len(some := plain_words(text)) >= _FEWEST}
        return _Table(words).languages() if len(words) >= _FEWEST_TEXTS else []


@dataclass(frozen=True, eq=False)
class _Group:
    members: Flags
    keys: Ints
    share: float


class _Table:
    """How often each frequent word is in each text."""

    def __init__(self, words: Mapping[str, Sequence[str]]) -> None:
        self.texts, self._said = [*words], [*words.values()]
        held = Counter[str]()
        for some in self._said:
            held.update({*some})
        self.words = [word for word, count in held.most_common(_COUNTED) if count > 1]
        places = {word: at for at, word in enumerate(self.words)}
        known = [[places[word] for word in some if word in places] for some in self._said]
        ends = np.cumsum([0, *map(len, known)])
        columns = np.fromiter((at for some in known for at in some), np.int64, int(ends[-1]))
        shape = (len(self.texts), len(self.words))
        self.counts = scipy.sparse.csr_matrix((np.ones(len(columns)), columns, ends), shape)
        self.counts.sum_duplicates()
        self.held = self.counts.sign()
        self.sizes = np.array([*map(len, self._said)])
        self.letters = np.array([len(word) for word in self.words])

    def _rates(self, members: Flags) -> Floats:
        rates: Floats = (self.counts.T @ members + 1) / (self.sizes @ members + 1)
        return rates

    def _held(self, members: Flags) -> Floats:
        shares: Floats = (self.held.T @ members) / max(1, members.sum())
        return shares

    def languages(self) -> list[Language]:
        every = np.ones(len(self.texts), np.bool_)
        anything = np.ones(len(self.words), np.bool_)
        # A frequent word may be in two languages: texts of one have most of what they share.
        begun = [self._group(every, at, anything) for at in range(min(_BEGINNINGS, len(self.words)))]
        large = [one for one in begun if one is not None and one.members.sum() >= _A_PART * len(self.texts)]
        first = max(large, key=lambda one: one.share, default=None)
        if first is None or not self._speaks(first):
            return []
        found = [first]
        rest = ~first.members & (self._shares(first) < _HARDLY * first.share)
        for _ in range(_SEARCHES):
            own = self._rates(rest) >= _OWN * np.max([self._rates(one.members) for one in found], axis=0)
            held = self._held(rest) * own
            if rest.sum() < _FEWEST_OTHERS or not held.any():
                break
            begin = int(np.argmax(held))
            group = self._group(rest, begin, own)
            if group is not None and self._speaks(group) and self._differ(group, first):
                same = next((at for at, one in enumerate(found) if at and not self._differ(group, one)), None)
                if same is None:
                    found.append(group)
                else:
                    found[same] = replace(found[same], members=found[same].members | group.members)
                rest &= self._shares(group) < _HARDLY * group.share
            rest &= ~self._has(begin)
        return self._told(found) if len(found) > 1 else []

    def _has(self, word: int) -> Flags:
        there: Flags = self.held[:, [word]].toarray()[:, 0] > 0
        return there

    def _shares(self, group: _Group) -> Floats:
        shares: Floats = self.counts[:, group.keys].sum(1).A1 / self.sizes
        return shares

    def _group(self, among: Flags, begin: int, words: Flags) -> _Group | None:
        """The texts that share frequent words with those that have one word."""
        members, group = among & self._has(begin), None
        for _ in range(4):
            inside, outside = self._held(members), self._held(among & ~members)
            inside *= words & (inside > outside) & (inside >= _IN_TEXTS)
            keys = np.argsort(-inside, kind="stable")[:_KEYS]
            keys = keys[inside[keys] > 0]
            if len(keys) < _FEWEST_KEYS:
                return None
            shares = self.counts[:, keys].sum(1).A1 / self.sizes
            middle = float(np.median(shares[members]))
            several = self.held[:, keys].sum(1).A1 > 1
            members = among & several & (shares >= _FITS * middle)
            if members.sum() < _FEWEST_OTHERS:
                return None
            group = _Group(members, keys, middle)
        return group

    def _speaks(self, group: _Group) -> bool:
        """Whether the keys are those of a language rather than of code, names, terms or lists of few words."""
        rates, letters = self._rates(group.members)[group.keys], self.letters[group.keys]
        ten = np.argsort(-rates, kind="stable")[:_TEN]
        share = float(rates[ten].sum())
        keys = {self.words[at] for at in group.keys}
        members = np.flatnonzero(group.members)[:500].tolist()
        others = [len(word) for at in members for word in self._said[at] if word not in keys]
        length = float(rates[ten] @ letters[ten]) / share / fmean(others or [1])
        many = np.sort(self._held(group.members)[group.keys])[-_SEVERAL] >= _MANY
        if not many or length > _SHORTER or not max(_LEAST, _BY_LENGTH * length) <= share <= _MOST:
            return False
        pieces = [self.texts[at].split() for at in members]
        prose = [_WORD.fullmatch(piece) is not None for some in pieces for piece in some]
        inside = [piece.strip(_MARKS) for some in pieces for last, piece in pairwise(some) if last[-1] not in _ENDS]
        capitals = [piece.istitle() and piece != "I" for piece in inside if piece.casefold() in keys]
        return fmean(prose) >= _PROSE and fmean(capitals or [1]) <= _CAPITALS

    def _differ(self, group: _Group, other: _Group) -> bool:
        """Whether words beside the keys are not those of another group, as those of stems and headlines are."""
        common = self._held(other.members) >= max(0.001, 2 / other.members.sum())

        def shared(of: _Group) -> float:
            """The share of words beside the keys that are common in texts of the other group."""
            beside = np.ones(len(self.words), np.bool_)
            beside[of.keys] = False
            total = self.counts.T @ of.members
            return float(total[common & beside].sum() / max(1, self.sizes @ of.members - total[~beside].sum()))

        return shared(group) <= _COMMON * shared(other)

    def _told(self, groups: Sequence[_Group]) -> list[Language]:
        rates = [self._rates(one.members) for one in groups]
        found = []
        for at, group in enumerate(groups):
            elsewhere = np.max([rate for other, rate in enumerate(rates) if other != at], axis=0)
            own = np.flatnonzero((rates[at] >= _OWN * elsewhere) & (self._held(group.members) > 0))
            keys = group.keys[np.argsort(-rates[at][group.keys], kind="stable")]
            share = float(np.median((self.counts[:, own].sum(1).A1 / self.sizes)[group.members]))
            words = [[self.words[word] for word in some] for some in (keys, own)]
            found.append(Language(tuple(words[0]), frozenset(words[1]), share, int(group.members.sum())))
        return found

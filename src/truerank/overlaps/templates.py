"""Which pairs of texts have a frame in common and say other things: the same template, no copy of each other.

Agency news end in the same lines, clauses of contracts differ in a name, reports of the weather in numbers. What counts
is what differs once the frame is taken away. A frame is what further texts of these data hold, on either side; of a
copy, what only the two texts have is kept as well, of a template it is exchanged. Where no further text has the frame,
names and numbers decide: whoever edits a copy keeps most of them, while a template exchanges them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.near_duplicates import Shingles, Sketches
from truerank.near_duplicates.shingling import UNSPACED_SIGN, Hashes, Numbers, among, word_shingles
from truerank.overlaps.familiar import holders
from truerank.overlaps.spelling import alike
from truerank.text.words import FUNCTION_WORDS

#: Of what only the two texts can have in common, the part below which they have the frame in common.
_KEPT: Final = 0.4
#: The share of what two texts share that further texts hold, from which on it is a frame.
_FRAME: Final = 0.5
#: A frame has more holders than what differs, by this factor.
_MORE: Final = 2
#: Where no further text has the frame: the share of names and numbers, and of content words, that are exchanged.
_NAMES: Final = 0.5
_CONTENT: Final = 0.5
#: Letters of a part of a word that was broken or joined.
_BROKEN: Final = 3
_UNSPACED: Final = re.compile(UNSPACED_SIGN)
_WORD: Final = re.compile(r"\w+")
_OPENS: Final = ".!?:;\n\"'([{*>-•|"

Flags = NDArray[np.bool_]


class _Text(NamedTuple):
    """A text as templates are told.

    Attributes:
        words: in order; of a script without blanks, two signs at a time.
        shingles: that which begins at each word.
        content: the words that say something.
        names: those of them with a capital letter inside a sentence.
    """

    words: tuple[str, ...]
    shingles: Hashes
    content: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, text: str, options: Shingles) -> _Text:
        found = word_shingles(text, options)
        signs = [bool(_UNSPACED.match(word)) for word in found.words]
        words = tuple(
            word + found.words[at + 1] if signs[at] and at + 1 < len(signs) and signs[at + 1] else word
            for at, word in enumerate(found.words)
        )
        return cls(words, found.shingles, frozenset(words) - FUNCTION_WORDS, frozenset(_names(text)))

    def specific(self, words: Iterable[str]) -> set[str]:
        """The names and numbers among some words."""
        return {word for word in words if word in self.names or _is_number(word)}

    def words_at(self, places: Flags) -> set[str]:
        """The words that say something at some places."""
        return {self.words[at] for at in np.flatnonzero(places).tolist()} & self.content


class _Differing(NamedTuple):
    """The content words that only one text has, and those that are the same but for damage."""

    one: frozenset[str]
    other: frozenset[str]
    damaged: frozenset[str]


def same_templates(
    pairs: Sequence[tuple[str, str]],
    texts: tuple[Mapping[str, str], Mapping[str, str]],
    sides: Sequence[Sketches],
    options: Shingles,
    *,
    inside: int = 2,
) -> list[bool]:
    """Whether the texts of each pair have a frame in common and say other things.

    Args:
        pairs: ids of a test text and of a training text.
        texts: by id, of the test side and of the training side; a pair without its texts is no template.
        sides: all texts of both sides, in which holders of a frame are counted.
        options: what a shingle is.
        inside: how many texts of a pair are in the sides.
    """
    known = [(one, other) for one, other in pairs if one in texts[0] and other in texts[1]]
    read = [{name: _Text.of(side[name], options) for name in {pair[at] for pair in known}}
            for at, side in enumerate(texts)]  # fmt: skip
    every = [np.zeros(0, np.uint64), *(text.shingles for side in read for text in side.values())]
    wanted = np.unique(np.concatenate(every))
    counts = np.zeros(len(wanted), np.int64)
    for side in sides:
        counts += holders(wanted, side)

    def further(text: _Text, shared: Flags) -> Numbers:
        """How many further texts hold each shingle of a text of a pair."""
        found = counts[np.searchsorted(wanted, text.shingles)]
        return np.maximum(found - np.where(shared, inside, inside - 1), 0)

    found = {}
    for one, other in known:
        left, right = read[0][one], read[1][other]
        shared = among(left.shingles, np.sort(right.shingles)), among(right.shingles, np.sort(left.shingles))
        known_by = further(left, shared[0]), further(right, shared[1])
        found[one, other] = _differ((left, right), shared, known_by)
    return [found.get(pair, False) for pair in pairs]


def _differ(pair: tuple[_Text, _Text], shared: tuple[Flags, Flags], further: tuple[Numbers, Numbers]) -> bool:
    """Whether two texts say other things in one frame."""
    left, right = pair
    only = _differing(left, right)
    if not only.one or not only.other:
        return False
    fewest = min(len(only.one), len(only.other))
    usual = max(_median(known[~same]) for known, same in zip(further, shared, strict=True))
    frame = shared[0] & (further[0] >= max(1, _MORE * usual))
    if frame.sum() >= _FRAME * shared[0].sum() > 0:
        within = _covered(left, frame)
        own = left.words_at((_covered(left, shared[0] & ~frame) > 0) & (within < 2)) | only.damaged
        return len(own) < _KEPT * (len(own) + fewest)
    return _exchanged(left, right, only, fewest)


def _exchanged(left: _Text, right: _Text, only: _Differing, fewest: int) -> bool:
    """Whether names, numbers or most content words of two texts are others, where no further text has their frame."""
    names = [text.specific(words) for text, words in ((left, only.one), (right, only.other))]
    classes = [{_is_number(word) for word in some} for some in names]
    kept = left.specific(left.content & right.content) | right.specific(left.content & right.content)
    kept |= left.specific(only.damaged)
    if classes[0] & classes[1]:
        several = min(map(len, names))
        if several >= _NAMES * (several + len(kept)):
            return True
    shared = len(left.content & right.content) + len(only.damaged)
    return fewest >= _CONTENT * (fewest + shared)


def _median(values: Numbers) -> float:
    return float(np.median(values)) if len(values) else 0.0


def _covered(text: _Text, shingles: Flags) -> Numbers:
    """In how many of some shingles each word stands."""
    size = len(text.words) - len(text.shingles) + 1
    found = np.zeros(len(text.words), np.int64)
    for at in range(size):
        found[at : at + len(shingles)] += shingles
    return found


def _differing(left: _Text, right: _Text) -> _Differing:
    one, other = left.content - right.content, right.content - left.content
    near = defaultdict[str, list[str]](list)
    for word in other:
        for key in _keys(word):
            near[key].append(word)
    damaged = {
        word: found for word in one if (found := {w for key in _keys(word) for w in near[key] if _same(word, w)})
    }
    lost = set().union(*damaged.values())
    return _Differing(frozenset(one - damaged.keys()), frozenset(other - lost), frozenset(damaged))


def _keys(word: str) -> Iterator[str]:
    """By which damaged words are looked for: one end of them is whole."""
    yield f"^{word[:1]}"
    yield f"{word[-2:]}$"


def _same(one: str, other: str) -> bool:
    """Whether two words are the same but for damage, or one is a part of the other that was broken off."""
    short, long = sorted((one, other), key=len)
    if short.isdigit() or long.isdigit():
        return False
    return (len(short) >= _BROKEN and (long.startswith(short) or long.endswith(short))) or alike((one,), (other,))


def _is_number(word: str) -> bool:
    return any(sign.isdigit() for sign in word)


def _names(text: str) -> Iterator[str]:
    """The words with a capital letter inside a sentence, in lower case; none where most words have one."""
    words = [(found[0], found.start()) for found in _WORD.finditer(text) if found[0][0].isalpha()]
    large = [(word, start) for word, start in words if word[0].isupper()]
    if 2 * len(large) > len(words):
        return
    for word, start in large:
        before = text[:start].rstrip(" \t")
        if before and before[-1] not in _OPENS:
            yield word.casefold()

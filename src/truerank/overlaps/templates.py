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
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Flags, Hashes, among
from truerank.near_duplicates import Shingles, Sketches
from truerank.near_duplicates.shingles import UNSPACED_SIGN, Numbers, word_shingles
from truerank.overlaps.wording import alike, holders
from truerank.text.words import FUNCTION_WORDS

#: Of what only the two texts can have in common, the part below which they have the frame in common.
_KEPT: Final = 0.55
#: The share of what two texts share that further texts hold, from which on it is a frame.
_FRAME: Final = 0.5
#: Texts that hold a shingle, above which it is usual: a frame, or a turn of phrase.
USUAL: Final = 64
#: A further text with this share of what the two texts share has their frame, too, and one with this share of what only
#: one of them has is a copy of it, which says nothing of frames.
_FAMILY: Final = 1 / 3
_COPY: Final = 0.4
#: From so many such shingles on, the share counts beside that of what the two texts share: copies are damaged, too.
_TELLING: Final = 8
#: A text with fewer shingles of its own is a part of the two.
_OWN: Final = 2
#: With so many shingles beside the frame in both texts, and next to none of them in common, they say other things even
#: where they use the same words.
_BESIDE: Final = 10
_NOTHING: Final = 0.08
#: A word in so many shingles of a frame is part of it.
_WITHIN: Final = 2
#: Where no further text has the frame: the share of content words that are exchanged, and how many numbers.
_CONTENT: Final = 0.6
_NUMBERS: Final = 2
#: Places at which content words are exchanged for others that do not look like them, with which a text is filled in
#: anew; the share of the content words that goes there; how alike damage leaves what stands at a place; and words of
#: each text that are read for it.
_PLACES: Final = 3
_FILLED: Final = 0.08
_ALIKE: Final = 0.5
_READ: Final = 2_000
#: Shingles in a row that only the two texts have in common, and their share of the test text, from which on it is there
#: in one piece.
_PIECE: Final = 30
_WHOLE: Final = 0.8
#: Letters of a part of a word that was broken or joined.
_BROKEN: Final = 3
_UNSPACED: Final = re.compile(UNSPACED_SIGN)
_WORD: Final = re.compile(r"\w+")
_OPENS: Final = ".!?:;\n\"'([{*>-•|"


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
        return {word for word in words if word in self.names or _is_number(word)}

    def words_at(self, places: Flags) -> set[str]:
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
) -> list[bool]:
    """Whether the texts of each pair have a frame in common and say other things."""
    known = [(one, other) for one, other in pairs if one in texts[0] and other in texts[1]]
    read = [
        {name: _Text.of(side[name], options) for name in {pair[at] for pair in known}} for at, side in enumerate(texts)
    ]
    held = _Held.of([text.shingles for side in read for text in side.values()], sides)
    found = {pair: _differ(read[0][pair[0]], read[1][pair[1]], held) for pair in known}
    return [found.get(pair, False) for pair in pairs]


@dataclass(frozen=True)
class _Held:
    """Which texts hold some shingles.

    Attributes:
        shingles: ascending.
        starts: where the holders of each begin, and at the end where the last ones end; none of a usual one.
        texts: the holders, as numbers.
        usual: whether so many hold it that they are not listed.
        sizes: how many shingles each text has.
    """

    shingles: Hashes
    starts: Numbers
    texts: Numbers
    usual: Flags
    sizes: Numbers

    @classmethod
    def of(cls, wanted: Sequence[Hashes], sides: Sequence[Sketches]) -> _Held:
        every = np.unique(np.concatenate([np.zeros(0, np.uint64), *wanted]))
        counts = np.sum([np.zeros(len(every), np.int64), *(holders(every, side) for side in sides)], axis=0)
        listed, first = every[counts <= USUAL], 0
        places, texts, sizes = ([np.zeros(0, np.int64)] for _ in range(3))
        for side in sides:
            for block, size in enumerate(side.sizes):
                shingles = side.shingles_of(block)
                there = among(shingles, listed)
                sizes.append(side.column(block, "size").astype(np.int64))
                owner = np.repeat(np.arange(first, first + size), sizes[-1])
                places.append(np.searchsorted(every, shingles[there]))
                texts.append(owner[there])
                first += size
        place, text = np.concatenate(places), np.concatenate(texts)
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(len(every) + 1))
        return cls(every, starts, text[order], counts > USUAL, np.concatenate(sizes))

    def of_each(self, shingles: Hashes) -> tuple[Numbers, Numbers]:
        """The holders of some shingles, one after the other, and the place of the shingle of each."""
        at = np.searchsorted(self.shingles, shingles)
        sizes = self.starts[at + 1] - self.starts[at]
        place = np.repeat(np.arange(len(at)), sizes)
        inside = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.texts[self.starts[at][place] + inside], place

    def shares(self, shingles: Hashes) -> tuple[Numbers, NDArray[np.float64]]:
        """The texts that hold some of these shingles, ascending, and how large a share; usual ones do not count."""
        names, counts = np.unique(self.of_each(shingles)[0], return_counts=True)
        return names, counts / max(1, len(shingles) - self.usual_among(shingles))

    def parts(self, shingles: Hashes) -> Numbers:
        names, counts = np.unique(self.of_each(shingles)[0], return_counts=True)
        return names[self.sizes[names] - counts - self.usual_among(shingles) < _OWN]

    def usual_among(self, shingles: Hashes) -> int:
        return int(self.usual[np.searchsorted(self.shingles, shingles)].sum())


def _differ(left: _Text, right: _Text, held: _Held) -> bool:
    """Whether two texts say other things in one frame."""
    only = _differing(left, right)
    fewest = min(len(only.one), len(only.other))
    shared = among(left.shingles, np.sort(right.shingles))
    frame = shared & _framed(left, right, shared, held)
    # What stands before and behind a text that is there in one piece makes no other text of it.
    if (whole := _longest(shared & ~frame)) >= max(_PIECE, _WHOLE * len(left.shingles)) and whole:
        return False
    if frame.sum() >= _FRAME * shared.sum() > 0:
        beside = min(len(left.shingles), len(right.shingles)) - int(frame.sum())
        if beside >= _BESIDE and (shared & ~frame).sum() < _NOTHING * beside:
            return True
        apart = (_covered(left, shared & ~frame) > 0) & (_covered(left, frame) < _WITHIN)
        own = left.words_at(apart) | only.damaged
        return fewest > 0 and (len(own) < _KEPT * (len(own) + fewest) or _filled(left, right, only))
    return fewest > 0 and (_exchanged(left, right, only, shared, fewest) or _filled(left, right, only))


def _longest(marked: Flags) -> int:
    """The longest run of marked places."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], marked, [False])).astype(np.int8)))
    return int(np.diff(edges)[::2].max(initial=0))


def _framed(left: _Text, right: _Text, shared: Flags, held: _Held) -> Flags:
    """Which shingles of the left text are those of a frame: further texts hold them that are copies of neither text."""
    theirs = right.shingles[~among(right.shingles, np.sort(left.shingles))]
    members, common = held.shares(left.shingles[shared])
    copies = held.parts(np.unique(np.concatenate((left.shingles, theirs))))
    for own in (left.shingles[~shared], theirs):
        names, shares = held.shares(own)
        # A damaged copy of a text holds less of it, and as much of what only that text has as of the rest.
        of_common = np.zeros(len(names))
        there = np.isin(names, members)
        of_common[there] = common[np.searchsorted(members, names[there])]
        copies = np.union1d(copies, names[shares >= _COPY * (of_common if len(own) >= _TELLING else 1)])
    family = np.setdiff1d(members[common >= _FAMILY], copies)
    names, place = held.of_each(left.shingles)
    found = held.usual[np.searchsorted(held.shingles, left.shingles)]
    found[place[np.isin(names, family)]] = True
    return found


def _exchanged(left: _Text, right: _Text, only: _Differing, shared: Flags, fewest: int) -> bool:
    """Whether names, numbers or most content words of two texts are others, where no further text has their frame.

    Either all over the texts, or from the first such word to the last with a part of the frame in between.
    """
    same = left.content & right.content
    one, other = left.specific(only.one), right.specific(only.other)
    kept = left.specific(same | only.damaged) | right.specific(same)
    several = min(len(one), len(other))
    of_names = min(sum(not _is_number(word) for word in words) for words in (one, other))
    # A number alone may be a misprint, where no names tell.
    if several > len(kept) and (of_names or several >= _NUMBERS):
        return True
    places = [at for at, word in enumerate(left.words) if word in one]
    if several >= _NUMBERS and (_covered(left, shared)[places[0] : places[-1]] > 0).any():
        return len(kept & set(left.words[places[0] : places[-1]])) < several
    return fewest >= _CONTENT * (fewest + len(same) + len(only.damaged))


def _filled(left: _Text, right: _Text, only: _Differing) -> bool:
    """Whether words are exchanged one for one at several places, names or numbers among them, as in a form.

    Whoever edits a copy changes few places, and whoever says it in other words leaves the names.
    """
    words = min(len(only.one), len(only.other))
    if words < _PLACES or words < _FILLED * min(len(left.content), len(right.content)):
        return False
    one, other = left.words[:_READ], right.words[:_READ]
    places = specific = 0
    for what, start, end, begins, ends in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        here, there = only.one.intersection(one[start:end]), only.other.intersection(other[begins:ends])
        if what == "replace" and here and there and not _looks_alike(one[start:end], other[begins:ends]):
            places += 1
            specific += bool(left.specific(here) and right.specific(there))
    kept = (left.names & right.content) | (right.names & left.content)
    return places >= _PLACES and places > len(only.damaged) and specific > len(kept)


def _looks_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    return SequenceMatcher(None, " ".join(one), " ".join(other), autojunk=False).ratio() >= _ALIKE


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
    broken = len(short) >= _BROKEN and (long.startswith(short) or long.endswith(short))
    turned = len(short) > _BROKEN and sorted(short) == sorted(long)
    return broken or turned or alike((one,), (other,))


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

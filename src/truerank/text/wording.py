"""Evidence beside the encoder: the same content words, and nearly the same letters.

*Words*: the query has the topic text's core (`truerank.text.matching`): order, inflection, function words and the form
of the question differ at most. One content word is enough where it is the whole core of both texts ("deafness", "what
is deafness"): that is a weak sign of a leak, and rare, because nothing else may stand in the query. Words by which
people ask ("used" in "what is carvedilol used for") are compared, too, where both texts have them. Letters that stand
alone are an abbreviation where the topic texts have it ("u s").

*Letters*: one change makes the cores the same: a letter more, less, other or swapped with its neighbour in one word
(Damerau, 1964), two words written as one, or one written as two. Digits must agree. The shorter the text, the longer a
word must be before one letter may differ in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from truerank.text.matching import FORM_WORDS, Core, asks, core, core_of, folded, key

#: What a probe says of a pair.
WORDS: Final = 1
LETTERS: Final = 2
#: The names of what proposes pairs, in the order in which the column `evidence` joins them with "+".
EVIDENCE: Final = ("encoder", "words", "letters")

_REMEMBERED: Final = 1 << 18
_LONGEST_ABBREVIATION: Final = 5
#: By number of core words of the topic text: the fewest letters of a core word in which one may differ, and of a word
#: that is not of the core. Longer texts are as those of four.
_FEWEST_LETTERS: Final = ((4, 3), (4, 3), (3, 2), (3, 2), (2, 1))


class _Token(NamedTuple):
    """What stands between two blanks, as far as it matters here."""

    words: tuple[str, ...]
    possible: bool


class _Topic(NamedTuple):
    """A topic text: all its words, those that its core could do without, and how many the core has."""

    words: frozenset[str]
    spare: frozenset[str]
    size: int


class WordingProbe:
    """Names the queries that have a topic text's words, or nearly its letters.

    Args:
        texts: the topic texts; a place in this list is a topic text's number.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        cores = [core(text) for text in texts]
        self._topics = [_topic(found) for found in cores]
        bags: defaultdict[frozenset[str], list[int]] = defaultdict(list)
        for number, found in enumerate(cores):
            if found.keys:
                bags[frozenset(found.keys)].append(number)
        for number, found in enumerate(cores):
            asked = _content(found)
            if asked != frozenset(found.keys):
                bags[asked].append(number)
        self._bags = dict(bags)
        self._vocabulary = frozenset(name for bag in bags for name in bag)
        self._written = frozenset(word for topic in self._topics for word in topic.words)
        self._joined = _joined(cores)
        parts = {part for word in self._written for at in range(1, len(word)) for part in _cut(word, at)}
        self._parts = parts.union(*(word for word in self._written if len(word) <= _LONGEST_ABBREVIATION))
        self._by_rest: defaultdict[str, list[str]] = defaultdict(list)
        for word in sorted(self._written):
            for rest in letter_rests(word):
                self._by_rest[rest].append(word)
        self._by_rest.default_factory = None
        self._tokens: dict[str, _Token] = {}
        #: Tokens that no text with evidence has.
        self._foreign: set[str] = set()
        self._nearest: dict[str, tuple[str, ...]] = {}

    def __call__(self, texts: Sequence[str]) -> list[tuple[int, int, int]]:
        """Triples of (place in `texts`, number of the topic text, `WORDS` or `LETTERS`)."""
        found: list[tuple[int, int, int]] = []
        for place, text in enumerate(texts):
            written = text.split()
            if self._foreign.isdisjoint(written) and self._all_possible(written):
                every = [word for token in written for word in self._token(token).words]
                query = core_of(self._spelled(every))
                found += ((place, number, what) for number, what in sorted(self._matches(query).items()))
        return found

    def _all_possible(self, written: list[str]) -> bool:
        """Whether no token rules the text out; long ones first, which are rare and no topic text has them."""
        for token in sorted(written, key=len, reverse=True):
            if not self._token(token).possible:
                if len(self._foreign) >= _REMEMBERED:
                    self._foreign.clear()
                self._foreign.add(token)
                return False
        return True

    def _spelled(self, every: list[str]) -> list[str]:
        """The words; letters that stand alone are one where a topic text has what they spell."""
        if sum(len(word) == 1 for word in every) < 2:
            return every
        found: list[str] = []
        for alone, run in groupby(every, key=lambda word: len(word) == 1):
            letters = list(run)
            whole = "".join(letters)
            found += [whole] if alone and len(letters) > 1 and whole in self._written else letters
        return found

    def _token(self, written: str) -> _Token:
        """A token; remembered, because words come back."""
        token = self._tokens.get(written)
        if token is None:
            if len(self._tokens) >= _REMEMBERED:
                self._tokens.clear()
            every = folded(written)
            token = self._tokens[written] = _Token(every, all(map(self._possible, every)))
        return token

    def _possible(self, word: str) -> bool:
        """Whether a text with this word can be evidence for any topic text."""
        return (
            # A letter may be one of a word that is spelled out.
            len(word) == 1
            or word in FORM_WORDS
            or asks(word)
            or key(word) in self._vocabulary
            or word in self._parts
            or word in self._joined
            or bool(self._near(word))
        )

    def _near(self, word: str) -> tuple[str, ...]:
        """The words of topic texts from which this one is one letter apart."""
        near = self._nearest.get(word)
        if near is None:
            if len(self._nearest) >= _REMEMBERED:
                self._nearest.clear()
            rests = letter_rests(word)
            # Nearly all words share no rest with a topic text's, and this is soon known.
            apart = self._by_rest.keys().isdisjoint(rests)
            others = set() if apart else {other for rest in rests for other in self._by_rest.get(rest, ())}
            near = self._nearest[word] = tuple(sorted(other for other in others if one_letter_apart(word, other)))
        return near

    def _matches(self, query: Core) -> dict[int, int]:
        bag = frozenset(query.keys)
        found = dict.fromkeys((*self._bags.get(bag, ()), *self._bags.get(_content(query), ())), WORDS)
        unknown = bag - self._vocabulary
        if len(unknown) <= 2:
            for number in self._repaired(query, bag, unknown):
                found.setdefault(number, LETTERS)
        return found

    def _repaired(self, query: Core, bag: frozenset[str], unknown: frozenset[str]) -> Iterator[int]:
        """Topic texts whose core this one has after one change."""
        if len(unknown) <= 1:
            for place, name in zip(query.places, query.keys, strict=True):
                if unknown <= {name}:
                    yield from self._other_word(query, place)
        if not unknown:
            inside = set(query.places)
            for place, word in enumerate(query.words):
                if place not in inside:
                    yield from self._lost_word(word, query, bag)
        yield from self._written_apart(query, unknown)

    def _other_word(self, query: Core, place: int) -> Iterator[int]:
        """The core word at this place stands for another one, or for two."""
        word = query.words[place]
        near, joined = self._near(word), self._joined.get(word, ())
        if not near and not joined:
            return
        rest = _without(query, (place,))
        for other in near:
            for number in self._bags.get(rest, ()):
                topic = self._topics[number]
                if other in topic.spare and word not in topic.words and _long_enough(other, topic, 1):
                    yield number
            for number in self._bags.get(rest | {key(other)}, ()):
                topic = self._topics[number]
                if other in topic.words and word not in topic.words and _long_enough(other, topic, 0):
                    yield number
        for names in joined:
            yield from self._bags.get(rest | names, ())

    def _lost_word(self, word: str, query: Core, bag: frozenset[str]) -> Iterator[int]:
        """A function word of the query is a core word of the topic text with another letter."""
        for other in self._near(word):
            for number in self._bags.get(bag | {key(other)}, ()):
                topic = self._topics[number]
                if (
                    other in topic.words
                    and other not in query.words
                    and word not in topic.words
                    and _long_enough(other, topic, 0)
                ):
                    yield number

    def _written_apart(self, query: Core, unknown: frozenset[str]) -> Iterator[int]:
        """Two neighbours are one word of the topic text."""
        for place, pair in enumerate(zip(query.words, query.words[1:], strict=False)):
            whole = "".join(pair)
            if whole in self._written:
                rest = _without(query, (place, place + 1))
                if unknown <= {*map(key, pair)}:
                    for number in self._bags.get(rest | {key(whole)}, ()):
                        if whole in self._topics[number].words:
                            yield number


def one_letter_apart(left: str, right: str) -> bool:
    """Whether one letter more, less, other or swapped with its neighbour makes one word the other.

    Args:
        left: a word.
        right: another one; words whose digits differ are not one letter apart.

    Source: Damerau, A technique for computer detection and correction of spelling errors, 1964.
    """
    if left == right or abs(len(left) - len(right)) > 1 or _digits(left) != _digits(right):
        return False
    if len(left) > len(right):
        left, right = right, left
    start = next((at for at, sign in enumerate(left) if sign != right[at]), len(left))
    if len(left) < len(right):
        return left[start:] == right[start + 1 :]
    swapped = left[start : start + 2] == right[start : start + 2][::-1] and left[start + 2 :] == right[start + 2 :]
    return left[start + 1 :] == right[start + 1 :] or swapped


def _digits(word: str) -> str:
    return "" if word.isalpha() else "".join(filter(str.isdigit, word))


def letter_rests(word: str) -> set[str]:
    """The word, and what is left of it without one letter: words one letter apart share one of these."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def _cut(word: str, at: int) -> tuple[str, str]:
    return word[:at], word[at:]


def _topic(found: Core) -> _Topic:
    inside = Counter(found.keys)
    places = set(found.places)
    spare = {word for place, word in enumerate(found.words) if place not in places}
    spare |= {found.words[place] for place, name in zip(found.places, found.keys, strict=True) if inside[name] > 1}
    return _Topic(frozenset(found.words), frozenset(spare), len(inside))


def _joined(cores: Sequence[Core]) -> Mapping[str, tuple[frozenset[str], ...]]:
    """Two neighbours of a topic text written as one, and the keys of those of them that are of the core."""
    found: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
    for one in cores:
        keys = dict(zip(one.places, one.keys, strict=True))
        for place, pair in enumerate(zip(one.words, one.words[1:], strict=False)):
            found["".join(pair)].add(frozenset(keys[at] for at in (place, place + 1) if at in keys))
    return {word: tuple(names if len(names) == 1 else sorted(names, key=sorted)) for word, names in found.items()}


def _content(found: Core) -> frozenset[str]:
    """The keys of all words but form words: the core and the words by which people ask."""
    inside = dict(zip(found.places, found.keys, strict=True))
    return frozenset(
        inside.get(place) or key(word)
        for place, word in enumerate(found.words)
        if place in inside or word not in FORM_WORDS
    )


def _without(query: Core, places: Sequence[int]) -> frozenset[str]:
    return frozenset(name for place, name in zip(query.places, query.keys, strict=True) if place not in places)


def _long_enough(word: str, topic: _Topic, part: int) -> bool:
    return len(word) >= _FEWEST_LETTERS[min(topic.size, 4)][part]

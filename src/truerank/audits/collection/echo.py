"""Estimate: whether topics repeat the words of their relevant documents, as questions that were made from them do."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import scipy

from truerank.arrays import Floats
from truerank.audits.collection.instances import Instances, instances
from truerank.audits.collection.texts import plain_words
from truerank.records import Document
from truerank.text.words import FUNCTION_WORDS, stem

#: A document echoes where it has so many content words of a topic in one piece, and such a share of all, or so many.
_RUN, _PIECE, _SHARE = 3, 0.5, 0.7
#: Different content words that show an echo at least; words of a topic that are looked at, and of a document.
_FEWEST, _MOST, _READ = 4, 100, 5_000
#: Fewer topics with relevant documents than that show nothing.
_TOPICS: Final = 10
#: Relevant documents of a topic that are looked at.
_OF_TOPIC: Final = 20
#: The share of echoes that is a finding.
_HIGH: Final = 0.15
#: People's topics of public collections, with which topics are compared: means over topics and their standard errors.
PEOPLE: Final[Mapping[str, Mapping[str, tuple[float, float]]]] = {
    "CACM": {
        "share": (0.2911, 0.0204), "run": (0.1544, 0.0150), "reciprocal": (0.0872, 0.0227), "first": (0.0554, 0.0227),
        "echo": (0.0477, 0.0159),
    },
    "Vaswani": {
        "share": (0.3839, 0.0126), "run": (0.1996, 0.0078), "reciprocal": (0.0603, 0.0070), "first": (0.0289, 0.0083),
        "echo": (0.0699, 0.0152),
    },
}  # fmt: skip
#: What is measured of each topic.
MEASURED: Final = ("share", "run", "reciprocal", "first", "echo")
_BLOCK: Final = 2_000
#: Relevant documents that stand so few standard errors above the middle of all documents, by a topic's words, may be
#: any documents; topics of which so many errors can be reached may show it. At most the third share of them does so in
#: sound collections; more are a finding at a level, where the median of the others is so far above the middle.
_ASTRAY, _REACHED, _USUALLY, _LEVEL, _FITTING = 1.0, 2.5, 0.04, 0.01, 4.0


class _Relevant(NamedTuple):
    """What a topic has in common with one of its relevant documents.

    Attributes:
        shared: the number of different content words.
        run: content words in the longest stretch that is in both in one piece.
    """

    topic: int
    doc_id: str
    shared: int
    run: int


class _Words(dict[str, int]):
    """A number for each word: 0 and above for the stem of a topic's content word, below -1 for a function word."""

    def __init__(self) -> None:
        super().__init__((word, -2 - at) for at, word in enumerate(sorted(FUNCTION_WORDS)))
        self.stems: dict[str, int] = {}
        self._others = {*self}

    def of_topic(self, text: str) -> list[int]:
        """The numbers of a topic's words, which become known."""
        found = plain_words(text)[:_MOST]
        for word in found:
            if word not in FUNCTION_WORDS:
                self[word] = self.stems.setdefault(stem(word), len(self.stems))
        return [self[word] for word in found]

    def of_topics(self, words: Iterable[str]) -> set[int]:
        """The numbers of the content words of topics among some words."""
        # Most words were seen before, and are none.
        return {number for word in {*words} - self._others if (number := self[word]) >= 0}

    def __missing__(self, word: str) -> int:
        number = self.stems.get(stem(word), -1)
        if len(self) <= 1 << 20:
            self[word] = number
            if number < 0:
                self._others.add(word)
        return number


def longest_run(one: Sequence[int], other: Sequence[int]) -> int:
    """Content words in the longest stretch of words that both texts have in one piece."""
    best, before = 0, dict[int, int]()
    places: dict[int, list[int]] = {}
    wanted = {*one}
    for at, word in enumerate(other):
        if word in wanted:
            places.setdefault(word, []).append(at)
    for word in one:
        here = {at: before.get(at - 1, 0) + (word >= 0) for at in places.get(word, ())}
        best, before = max(best, *here.values(), 0), here
    return best


class WordOverlap:
    """How many documents have how many words of each text, and what relevant ones have, gathered in one pass.

    Attributes:
        sizes: their different content words, shape (texts,).
        relevant: what was found for relevant documents.
    """

    def __init__(self, texts: Mapping[str, str], wanted: Mapping[str, Collection[str]]) -> None:
        words = self._words = _Words()
        self.topics = list(texts)
        self._forms = [words.of_topic(text) for text in texts.values()]
        held = [sorted({word for word in one if word >= 0}) for one in self._forms]
        self.sizes = np.array([len(one) for one in held], np.int64)
        columns = np.repeat(np.arange(len(held)), self.sizes)
        rows = np.array([word for one in held for word in one], np.int64)
        self._asked = scipy.sparse.csr_matrix(
            (np.ones(len(rows), np.int32), (rows, columns)), shape=(max(1, len(words.stems)), len(held))
        )
        self._seen = np.zeros((len(held), int(self.sizes.max(initial=0)) + 1), np.int64)
        self.documents = 0
        self.relevant: list[_Relevant] = []
        self._of: dict[str, list[int]] = {}
        for at, topic in enumerate(self.topics):
            for doc in sorted(wanted.get(topic, ()))[:_OF_TOPIC] if self.sizes[at] >= _FEWEST else ():
                self._of.setdefault(doc, []).append(at)

    def passing(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Takes all documents, and hands them on."""
        held: list[set[int]] = []
        for one in documents:
            held.append(self._look(one))
            yield one
            if len(held) == _BLOCK:
                self._count(held)
                held.clear()
        self._count(held)
        # Documents that share no word were not counted.
        self._seen[:, 0] = self.documents - self._seen[:, 1:].sum(axis=1)

    def read(self, documents: Iterable[Document]) -> WordOverlap:
        """Takes all documents."""
        deque(self.passing(documents), maxlen=0)
        return self

    def _look(self, document: Document) -> set[int]:
        """The numbers of the topics' words that a document has."""
        words = plain_words(document.text)[:_READ]
        found = self._words.of_topics(words)
        if not (relevant := self._of.get(document.doc_id, ())):
            return found
        numbers = [*map(self._words.__getitem__, words)]
        for at in relevant:
            own = len(found.intersection(self._forms[at]))
            longest = longest_run(self._forms[at], numbers) if own else 0
            self.relevant.append(_Relevant(at, document.doc_id, own, longest))
        return found

    def _count(self, block: Sequence[Collection[int]]) -> None:
        """Counts documents by the words that they share with each text."""
        sizes = np.array([*map(len, block)], np.int64)
        places = np.fromiter(chain.from_iterable(block), np.int64, sizes.sum())
        rows, ones = np.repeat(np.arange(len(block)), sizes), np.ones(len(places), np.int32)
        shape = (len(block), self._asked.shape[0])
        shared = (scipy.sparse.csr_matrix((ones, (rows, places)), shape=shape) @ self._asked).tocoo()
        counts, width = shared.data.astype(np.int64), self._seen.shape[1]
        flat = np.bincount(shared.col.astype(np.int64) * width + counts, minlength=self._seen.size)
        self._seen += flat.reshape(self._seen.shape)
        self.documents += len(block)

    def place(self, topic: int, shared: int) -> float:
        """The mean place of a document that has so many words, as equals are in any order."""
        return float(self._seen[topic, shared + 1 :].sum()) + (float(self._seen[topic, shared]) + 1) / 2

    def share(self, topic: int) -> float:
        """The mean share of a topic's words that a document has."""
        seen = self._seen[topic]
        return float(seen @ np.arange(len(seen))) / max(1, self.documents) / int(self.sizes[topic])


def shared_words(seen: WordOverlap, confidence: float = 0.95) -> tuple[dict[str, Any] | None, list[Instances]]:
    """What topics have in common with their relevant documents: figures for the page, and what is a finding.

    Returns:
        Figures, each with its interval: shares of a topic's content words in its relevant documents and in all, and in
        their longest piece; the reciprocal place of these documents by words alone, how many stand first, and how many
        echo; and how far all that is above people's topics of public collections. None with fewer than ten topics.
    """
    by_topic: dict[int, list[_Relevant]] = {}
    for one in seen.relevant:
        by_topic.setdefault(one.topic, []).append(one)
    if len(by_topic) < _TOPICS:
        return None, []
    means, rows = [], []
    for at, found in by_topic.items():
        size = int(seen.sizes[at])
        echo = [one.run >= max(_RUN, _PIECE * size) or one.shared >= _SHARE * size for one in found]
        places = [seen.place(at, one.shared) for one in found]
        own = (
            [one.shared / size for one in found], [one.run / size for one in found], [1 / one for one in places],
            [one < 2 for one in places], echo,
        )  # fmt: skip
        means.append([float(np.mean(each)) for each in own])
        best = max(found, key=lambda one: (one.run, one.shared))
        if 2 * sum(echo) >= len(found):
            detail = f"{best.shared} of {size} words, {best.run} in one piece"
            rows.append({"topic_id": seen.topics[at], "other": best.doc_id, "detail": detail})
    z = float(scipy.special.ndtri((1 + confidence) / 2))
    columns = dict(zip(MEASURED, np.array(means).T, strict=True))
    echoed = _interval(columns["echo"], z)
    facts: dict[str, Any] = {
        "topics": len(by_topic), **{name: _interval(column, z) for name, column in columns.items()},
        "people": {of: {name: _apart(columns[name], *own[name], z) for name in MEASURED} for of, own in PEOPLE.items()},
        "others": float(np.mean([seen.share(at) for at in by_topic])),
    }  # fmt: skip
    kinds = []
    if echoed[1] >= _HIGH:
        people = " and ".join(f"{own['echo'][0]:.0%} in {of}" for of, own in PEOPLE.items())
        here = (
            f"Of a topic's relevant documents, {echoed[0]:.0%} hold its words as if it were made from them; of those "
            f"of people's topics, {people} do."
        )
        kinds.append(replace(instances("echo", rows, len(by_topic)), here=here))
    return facts, kinds


def astray(seen: WordOverlap) -> Instances | None:
    """Topics whose relevant documents have no more of their words than any documents have, where others' have far more.

    Random documents would be in the middle of all; that so many topics are near it is compared with sound collections.
    None where too few topics have words and relevant documents enough, or where words find too little.
    """
    below: dict[int, list[float]] = {}
    for one in seen.relevant:
        below.setdefault(one.topic, []).append(1 - (seen.place(one.topic, one.shared) - 0.5) / seen.documents)
    above: dict[int, float] = {}
    for topic, shares in below.items():
        counts = seen._seen[topic]
        middles = (np.cumsum(counts) - counts / 2) / seen.documents
        error = math.sqrt(float(counts @ (middles - 0.5) ** 2) / seen.documents / len(shares))
        if 0.5 >= _REACHED * error > 0:
            above[topic] = (float(np.mean(shares)) - 0.5) / error
    low = [topic for topic, errors in above.items() if errors < _ASTRAY]
    others = [errors for errors in above.values() if errors >= _ASTRAY]
    if len(above) < _TOPICS or not others or np.median(others) < _FITTING:
        return None
    if scipy.special.bdtrc(len(low) - 1, len(above), _USUALLY) > _LEVEL:
        low = []
    rows = [
        {
            "topic_id": seen.topics[topic],
            "detail": f"{len(below[topic]):,d} relevant documents; on average {np.mean(below[topic]):.0%} of all "
            "documents have fewer of its words, half by chance",
        }
        for topic in low
    ]
    return instances("random-judgments", rows, len(above))


def _interval(values: Floats, z: float) -> list[float]:
    mean, reach = float(values.mean()), z * float(values.std(ddof=1)) / math.sqrt(len(values))
    return [mean, mean - reach, mean + reach]


def _apart(values: Floats, other: float, error: float, z: float) -> list[float]:
    """The mean above another one with a standard error, and the interval of the difference."""
    mean = float(values.mean()) - other
    reach = z * math.hypot(float(values.std(ddof=1)) / math.sqrt(len(values)), error)
    return [mean, mean - reach, mean + reach]

"""Propose: whether texts moved among documents: judged documents fit their topics better by a neighbour's text.

Neighbours are often alike, so that judgments fit far better than by chance also where every document has the text of
the next one. Asked is whether a neighbour's text fits better than the own one, in the order of the source,
from some document to some other. On either side of a text that moved, at the own place and as far on,
are two texts that are as much like it, and fit as well. Documents that are pieces, as questions and answers, have the
pieces of the same whole on one side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.audits.collection.crossings import FEWEST, stretch
from truerank.audits.collection.documents import Spool
from truerank.audits.collection.fit import Fit, bm25
from truerank.audits.collection.texts import plain_words
from truerank.records import Document

#: Steps that are asked; the place on the other side is twice as far.
STEPS: Final = (1, -1, 2, -2)
_REACH: Final = 2 * max(STEPS)
#: Relevant pairs that are looked at, and characters of a text.
_PAIRS, _READ = 500, 4_000
#: The level, after correction; and that at which the two places beside the text that fits are unlike.
_LEVEL, _UNLIKE = 0.001, 0.01
#: A neighbour's text fits better so many times as often as it fits worse, and the two places beside it differ by at
#: most this share of the difference.
_TIMES, _SIDES = 2, 0.5
#: A stretch of such a share of the documents is all of them.
_ALL: Final = 0.9


class Neighbours:
    """The texts around some relevant documents (columns topic_id, doc_id), gathered while all documents pass."""

    def __init__(self, relevant: pl.DataFrame, seed: int) -> None:
        self.relevant = relevant.select("topic_id", "doc_id")
        chosen = self.relevant.sort("topic_id", "doc_id").unique("doc_id", maintain_order=True)
        self.pairs = chosen.sample(min(_PAIRS, len(chosen)), seed=seed)
        self.wanted = frozenset(self.pairs["doc_id"])
        self._last = deque[tuple[int, str, str]](maxlen=_REACH)
        self._count = self._left = 0
        self.kept = Spool()

    def add(self, document: Document) -> None:
        """Takes the next document."""
        self._last.append((self._count, document.doc_id, document.text[:_READ]))
        self._count += 1
        if document.doc_id in self.wanted:
            self._left = _REACH + 1
        if self._left > 0:
            for row in self._last:
                self.kept.add(*row)
            self._last.clear()
        self._left -= 1


class _Three(NamedTuple):
    """A relevant document, its text and those at one step and at two, and how well these fit its topic."""

    doc_id: str
    texts: tuple[str, ...]
    own: float
    there: float
    beyond: float


def displacement(
    around: Neighbours, topics: Mapping[str, str], places: Mapping[str, int]
) -> tuple[Fit, pl.DataFrame] | None:
    """Whether relevant documents fit their topics better by the texts of neighbours, and the pairs concerned.

    Args:
        around: the relevant documents with the texts around some of them.
        places: of the relevant documents in the source.
    """
    texts, at = dict[int, str](), dict[str, int]()
    for place, doc_id, text in around.kept:
        texts[place], at[doc_id] = text, place
    pairs = [(topic, doc) for topic, doc in around.pairs.iter_rows() if doc in at and topics.get(topic)]
    if (found := moved(pairs, topics, texts, at)) is None:
        return None
    first, last = found.first, found.last
    text = (
        f"By the text of the document {found.where}, {found.more:,d} of {found.of:,d} relevant documents that were "
        f"looked at, from {first} to {last}, fit their topic better than by their own, and {found.less:,d} worse."
    )
    there = set(around.relevant["doc_id"]) & places.keys()
    ordered = sorted(there, key=places.__getitem__)
    if not found.whole:
        ordered = ordered[ordered.index(first) : ordered.index(last) + 1]
    touched = around.relevant.with_columns(detail=pl.lit(text)).filter(pl.col("doc_id").is_in(ordered))
    return Fit("displaced", text, p=found.p, offset=found.offset, order="file", source="words"), touched


class Moved(NamedTuple):
    """A stretch of documents whose topics fit the texts of neighbours better, and worse, and how surely.

    Attributes:
        of: documents of the stretch that were looked at.
        whole: whether it is all of them.
    """

    first: str
    last: str
    offset: int
    more: int
    less: int
    of: int
    whole: bool
    p: float

    @property
    def where(self) -> str:
        """Where the neighbours stand."""
        far = "just" if abs(self.offset) == 1 else "two places"
        side = "after" if self.offset > 0 else "before"
        return f"{far} {side} them in the file"


def moved(
    pairs: list[tuple[str, str]], topics: Mapping[str, str], texts: Mapping[int, str], at: Mapping[str, int]
) -> Moved | None:
    """Whether topics fit the neighbours of their documents better, by one step for all in a stretch.

    Args:
        pairs: ids of topics and documents.
        topics: texts by id.
        texts: those of documents by place.
        at: places by id.
    """
    asked = {topic: column for column, topic in enumerate(dict.fromkeys(topic for topic, _ in pairs))}
    if len(asked) < FEWEST:
        return None
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts.values()))}
    scores = bm25([*rows], [topics[topic] for topic in asked])[0]
    most, found = 0.0, list[_Three]()
    pairs = sorted(pairs, key=lambda one: at[one[1]])
    for step in STEPS:
        rule = []
        for topic, doc in pairs:
            three = tuple(texts.get(at[doc] + way, "") for way in (0, step, 2 * step))
            # A neighbour that is the topic itself, as the turn before an answer, did not move.
            if all(three[1:]) and three[1].strip() != topics[topic].strip():
                fits = (float(scores[rows[one], asked[topic]]) for one in three)
                rule.append(_Three(doc, three, *fits))
        size, start, end = stretch(np.array([np.sign(one.there - one.own) for one in rule]))
        if size > most:
            most, found, offset = size, rule[start:end], step
    more, less = (sum(sign * (one.there - one.own) > 0 for one in found) for sign in (1, -1))
    # Any stretch may have been found, by any of the rules.
    p = len(pairs) ** 2 * len(STEPS) * float(scipy.special.betainc(more, less + 1, 0.5)) if found else 1.0
    if p > _LEVEL or more < _TIMES * less or not _even(found, most):
        return None
    ends, whole = (found[0].doc_id, found[-1].doc_id), len(found) >= _ALL * len(pairs)
    return Moved(*ends, offset, more, less, len(found), whole, min(1.0, p))


def _even(found: Sequence[_Three], most: float) -> bool:
    """Whether the two texts beside those that fit are as much like these, and fit the topics as well."""
    fits = sum(np.sign(one.own - one.beyond) for one in found)
    words = [[frozenset(plain_words(text)) for text in one.texts] for one in found]
    shares = ([len(there & one) / max(1, len(one)) for one in (own, beyond)] for own, there, beyond in words)
    signs = [np.sign(left - right) for left, right in shares]
    times, of = signs.count(1), signs.count(1) + signs.count(-1)
    return abs(fits) <= _SIDES * most and bool(scipy.stats.binomtest(times, max(1, of)).pvalue > _UNLIKE)

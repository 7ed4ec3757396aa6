"""Propose: whether titles belong to the bodies below them, by the words that both have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import scipy

from truerank.audits.collection.crossings import FEWEST, stretch
from truerank.audits.collection.displacement import STEPS, moved
from truerank.audits.collection.documents import Spool
from truerank.audits.collection.instances import Instances, instances
from truerank.audits.collection.texts import plain_words
from truerank.records import Document

Words: TypeAlias = frozenset[str]

#: Documents in a row that are looked at; a next row begins so many times as far from the beginning.
_ROW, _FURTHER = 25, 1.2
#: Characters of a body that are looked at.
_READ: Final = 4_000
#: A word that so large a share of the titles have tells none from another.
_SHARED: Final = 0.02
#: Titles fit their own bodies better not beyond chance, and in fewer cases than this share, at a level.
_CHANCE, _BETTER, _LEVEL = 0.01, 0.75, 0.001


class Titles:
    """Titles and bodies of some rows of documents, gathered while all pass."""

    def __init__(self) -> None:
        self.count = self._titled = 0
        self._next = self._end = 0
        self._kept = Spool()

    def add(self, document: Document) -> None:
        """Takes the next document."""
        place = self.count
        self.count += 1
        self._titled += bool(document.title and document.body)
        if place == self._next:
            self._end = place + _ROW
            self._next = max(self._end, int(_FURTHER * place))
        if place < self._end:
            self._kept.add(place, document.doc_id, document.title, document.body[:_READ])

    def instances(self) -> Iterator[Instances]:
        """Titles of neighbours, or of other documents altogether."""
        titles, texts, at = dict[str, str](), dict[int, str](), dict[str, int]()
        for place, doc_id, title, body in self._kept:
            if title and body and doc_id not in at:
                titles[doc_id], at[doc_id] = title, place
                texts[place] = body
        words = {one: frozenset(plain_words(title)) for one, title in titles.items()}
        held = {place: frozenset(plain_words(texts[place])) for place in at.values()}
        near = any(_beside(words, held, at, step) >= FEWEST for step in STEPS)
        if near and (found := moved([(one, one) for one in titles], titles, texts, at)) is not None:
            text = (
                f"The titles of {found.more:,d} of {found.of:,d} documents that were looked at, from {found.first} to "
                f"{found.last}, fit the document {found.where} better, and of {found.less:,d} worse."
            )
            count = self._titled if found.whole else at[found.last] - at[found.first] + 1
            yield instances("displaced-title", [{"detail": text}], self.count, count)
        elif text := _unrelated([*words.values()], [*held.values()]):
            yield instances("unrelated-title", [{"detail": text}], self.count, self._titled)


def _beside(words: Mapping[str, Words], held: Mapping[int, Words], at: Mapping[str, int], step: int) -> float:
    """How many more bodies of a stretch, so far from a title, have more of its words than fewer: a quick look."""
    pairs = ((some, at[one]) for one, some in words.items() if at[one] + step in held)
    return stretch(np.array([np.sign(len(some & held[own + step]) - len(some & held[own])) for some, own in pairs]))[0]


def _unrelated(words: Sequence[Words], held: Sequence[Words]) -> str:
    """How titles fit their bodies, where they fit those of others as well; empty where they do not."""
    often = Counter(word for some in words for word in some)
    telling = [{word for word in some if often[word] <= max(2, _SHARED * len(words))} for some in words]
    # The other document stands far away: those beside may be of the same subject.
    far = len(held) // 2
    own = [len(some & held[at]) - len(some & held[at - far]) for at, some in enumerate(telling)]
    more, less = (sum(sign * one > 0 for one in own) for sign in (1, -1))
    # Functions of scipy.special: scipy.stats takes most of a second to load.
    chance = float(scipy.special.bdtrc(more - 1, more + less, 0.5)) if more else 1.0
    if chance < _CHANCE or scipy.special.bdtr(more, more + less, _BETTER) > _LEVEL:
        return ""
    return (
        f"Of {len(words):,d} documents that were looked at, {more:,d} hold more of the words that their title has and "
        f"few others have than a document far away does, and {less:,d} fewer."
    )

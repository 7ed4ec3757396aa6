"""What stands around the queries of a source and is no part of them: an instruction, a label, a template.

*Shared*: more than half of the texts begin or end with it. Behind a mark ("query:", "[/INST]") that is enough; without
one it must have three words, begin as no question, and leave queries of three words. *Of topics*: at least three topics
follow the same words, and hardly anything else does, which no log of its own has.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median
from typing import Final

from truerank.text.normalising import normalise
from truerank.text.wording import ASKING, folded, without_form

#: Texts that it takes to say what most of them share, and words of it, and of what it leaves, where it has no mark.
_FEWEST_TEXTS: Final = 10
_FEWEST_WORDS: Final = 3
#: Topics that must follow the same words, and their share of the texts that begin with these.
_FEWEST_TOPICS: Final = 3
_TOPIC_SHARE: Final = 0.5
#: A beginning up to the last mark, or to the last blank; an end from the first mark on.
_TO_MARK: Final = re.compile(r"\A.*[:>\])}|]\s*", re.DOTALL)
_TO_BLANK: Final = re.compile(r"\A.*\s", re.DOTALL)
_FROM_MARK: Final = re.compile(r"(?:\s+|\A)[\[(<{|].*\Z", re.DOTALL)


@dataclass(frozen=True)
class Carrier:
    """What texts begin with, the longest first, and end with; called, it gives a text without it."""

    before: tuple[str, ...] = ()
    after: str = ""

    def __bool__(self) -> bool:
        return bool(self.before or self.after)

    def __call__(self, text: str) -> str:
        query = text.removeprefix(next((begins for begins in self.before if text.startswith(begins)), ""))
        return query.removesuffix(self.after).strip() or text


def carrier_of(read: Iterable[str], topic_texts: Iterable[str]) -> Carrier:
    """The carrier of a source, by some of its texts; what a topic text begins or ends with is part of a query."""
    distinct, topics = (list(dict.fromkeys(map(normalise, side))) for side in (read, topic_texts))
    before = _shared(distinct)
    if found := _TO_MARK.match(before):
        before = found[0]
    else:
        before = found[0] if (found := _TO_BLANK.match(before)) else ""
        left = [len(text.removeprefix(before).split()) for text in distinct if text.startswith(before)]
        own = len(before.split()) < _FEWEST_WORDS or before.split()[0].lower() in ASKING
        before = "" if own or median(left) < _FEWEST_WORDS else before
    backwards = _shared([text[::-1] for text in distinct])
    after = found[0] if (found := _FROM_MARK.search(backwards[::-1])) else ""
    every = {before, *_before_topics(distinct, topics)} - {""}
    begins = [one for one in every if not any(topic.startswith(one) for topic in topics)]
    ends = "" if any(topic.endswith(after) for topic in topics) else after
    return Carrier(tuple(sorted(begins, key=lambda one: (-len(one), one))), ends)


def _shared(texts: Sequence[str]) -> str:
    """The longest beginning that more than half of the texts have."""
    if len(texts) < _FEWEST_TEXTS:
        return ""
    ordered, half = sorted(texts), len(texts) // 2
    pairs = [(one, zip(one, other, strict=False)) for one, other in zip(ordered, ordered[half:], strict=False)]
    return max((one[: sum(1 for _ in takewhile(lambda two: two[0] == two[1], both))] for one, both in pairs), key=len)


def _before_topics(texts: Sequence[str], topics: Sequence[str]) -> list[str]:
    """The words before the topics in texts that end with one, whose words of grammar may differ."""
    written = {_words(topic) for topic in topics}
    known = {without_form(words) for words in written} - {()}
    ends = {words[-1] for words in known}
    found: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for text in texts:
        if ends.isdisjoint(without_form(_words(text))[-1:]):
            continue
        parts = [(text[: blank.end()], _words(text[blank.end() :])) for blank in re.finditer(r"\s+", text)]
        named = [(before, words) for before, words in parts if without_form(words) in known]
        # The topic as it is written, or else the longest words before it.
        for before, words in [part for part in named if part[1] in written][:1] or named[-1:]:
            found[before].add(without_form(words))
    often = {before: len(own) for before, own in found.items() if len(own) >= _FEWEST_TOPICS}
    return [
        before for before, own in often.items() if own > _TOPIC_SHARE * sum(text.startswith(before) for text in texts)
    ]


def _words(text: str) -> tuple[str, ...]:
    return tuple([word for token in text.split() for word in folded(token)])

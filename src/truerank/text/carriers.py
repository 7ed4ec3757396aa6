"""What stands around the queries of a source and is no part of them: an instruction, a label, a template.

*Shared*: more than half of the texts begin or end with it. It ends with a bracket, or it is a label ("query:") or three
words before a colon; or else it has three words, tells somebody to search ("please find"), and leaves queries of three
words. What a source is about ("side effects of", "COVID-19:") is part of its texts. *Of topics*: at least three topics
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
from truerank.text.wording import folded, without_form

#: Texts that it takes to say what most of them share, and words of it, and of what it leaves, where it has no mark.
_FEWEST_TEXTS: Final = 10
_FEWEST_WORDS: Final = 3
#: Words that stand before a text as its kind, and words with which an instruction begins.
_LABELS: Final = frozenset(
    """
    anchor claim document human input instruct instruction keyword keywords passage prompt q query question request
    search sentence statement task text title topic user utterance
    """.split()
)
_TELLING: Final = frozenset(
    "answer find give given i identify please provide rank represent retrieve return search select show tell we".split()
)
#: Topics that must follow the same words, and their share of the texts that begin with these.
_FEWEST_TOPICS: Final = 3
_TOPIC_SHARE: Final = 0.5
#: A beginning up to the last mark, or to the last blank; an end from the first mark, sentence or label on.
_TO_MARK: Final = re.compile(r"\A.*[:>\])}|]\s*", re.DOTALL)
_TO_BLANK: Final = re.compile(r"\A.*\s", re.DOTALL)
_FROM_MARK: Final = re.compile(r"(?:(?:\s+|\A)[\[(<{|]|(?<=[.!?])\s+(?=\S+\s)).*\Z|\s+[^\s:]+:\Z", re.DOTALL)


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
    found = shared_carrier(distinct, topics)
    begins = [one for one in _before_topics(distinct, topics) if not any(topic.startswith(one) for topic in topics)]
    return Carrier(tuple(sorted({*found.before, *begins}, key=lambda one: (-len(one), one))), found.after)


def shared_carrier(read: Iterable[str], others: Iterable[str]) -> Carrier:
    """What most texts of a side share; where a text of the other side has it, it is part of a text, but not behind a
    mark where most texts there have it, too.
    """
    distinct, theirs = (list(dict.fromkeys(map(normalise, side))) for side in (read, others))
    before = _shared(distinct)
    if marked := _TO_MARK.match(before):
        before = marked[0] if _is_label(marked[0]) else ""
    else:
        before = found[0] if (found := _TO_BLANK.match(before)) else ""
        left = [len(text.removeprefix(before).split()) for text in distinct if text.startswith(before)]
        named = len(before.split()) < _FEWEST_WORDS or before.split()[0].lower() not in _TELLING
        before = "" if named or median(left) < _FEWEST_WORDS else before
    backwards = _shared([text[::-1] for text in distinct])
    after = found[0] if (found := _FROM_MARK.search(backwards[::-1])) else ""
    begin, end = sum(text.startswith(before) for text in theirs), sum(text.endswith(after) for text in theirs)
    most = max(len(theirs) // 2, _FEWEST_TEXTS - 1)
    begins = bool(before) and (not begin or (marked is not None and begin > most))
    return Carrier((before,) if begins else (), after if end > most or not end else "")


def _is_label(before: str) -> bool:
    """Whether what ends with a mark names the kind of text, or is an instruction; a name alone is part of the text."""
    own = _words(before)
    return before.rstrip()[-1] != ":" or len(own) >= _FEWEST_WORDS or not _LABELS.isdisjoint(own)


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

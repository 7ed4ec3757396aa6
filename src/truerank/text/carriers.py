"""What stands around the queries of a source and is no part of them: an instruction, a label, a template.

*Shared*: a twentieth of the texts begin with it, and it is a label ("query:") or three words before a mark; or more
than half do, and it ends with a bracket, or has three words, tells somebody to search ("please find"), and leaves
queries of three words. More than half of all texts, or of those that begin so, end with it. What a source is about
("side effects of", "COVID-19:") is part of its texts. *Of topics*: at least three topics
follow the same words, and hardly anything else does, which no log of its own has.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Final

from truerank.text.normalising import normalise
from truerank.text.wording import folded, without_form
from truerank.text.words import alike

#: Texts that it takes to say what most of them share, and words of it, and of what it leaves, where it has no mark.
_FEWEST_TEXTS: Final = 10
_FEWEST_WORDS: Final = 3
#: The share of the texts that have one of several templates, and where a template ends at the latest.
_MANY: Final = 0.05
_LONGEST: Final = 1000
#: Words that stand before a text as its kind, and words with which an instruction begins.
_LABELS: Final = frozenset(
    """
    anchor claim document human input inst instruct instruction keyword keywords passage prompt q query question request
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
_MARK: Final = re.compile(r"[:>\])}|]\s*(?:user\s+)?|[.?!]\s+|(?<=\s)[\"“]")
_TO_MARK: Final = re.compile(rf"\A.*(?:{_MARK.pattern})", re.DOTALL)
_OF_SENTENCES: Final = frozenset('.?!"“')
_TO_BLANK: Final = re.compile(r"\A.*\s", re.DOTALL)
_FROM_MARK: Final = re.compile(
    r"(?:(?:\s+|\A)[\[(<{|]|\s*<[|/]|[\"”](?=\s)|(?<=[.!?])\s+(?=\S+\s)).*\Z|\s+[^\s:]+:\Z", re.DOTALL
)


@dataclass(frozen=True)
class Carrier:
    """What texts begin with, the longest first, and end with; called, it gives a text without one of either."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.before or self.after)

    def __call__(self, text: str) -> str:
        query = text.removeprefix(next(filter(text.startswith, self.before), ""))
        return query.removesuffix(next(filter(query.endswith, self.after), "")).strip() or text


def carrier_of(read: Iterable[str], topic_texts: Iterable[str]) -> Carrier:
    """The carrier of a source, by some of its texts; what a topic text begins or ends with is part of a query."""
    distinct, topics = (list(dict.fromkeys(map(normalise, side))) for side in (read, topic_texts))
    found = shared_carrier(distinct, topics)
    begins = [one for one in _before_topics(distinct, topics) if not any(topic.startswith(one) for topic in topics)]
    return Carrier(tuple(sorted({*found.before, *begins}, key=_longest_first)), found.after)


def shared_carrier(read: Iterable[str], others: Iterable[str]) -> Carrier:
    """What stands around texts of one side, by what they and the others share.

    A label that many texts of either side begin with is no part of any text. What else a text of the other side begins
    or ends with is part of a text.
    """
    (distinct, own), (theirs, labels) = (_labelled(tuple(side)) for side in (read, others))
    before = {begin for begin in (*own, *labels) if any(text.startswith(begin) for text in distinct)}
    parts = ([text for text in side if text.startswith(begin)] for begin in before for side in (distinct, theirs))
    after = {*map(_end, parts)} - {""}
    telling, end = {*_telling(distinct)}, {_end(distinct, labelled=False)} - {""}
    before |= {one for one in telling if not any(text.startswith(one) for text in theirs)}
    after |= {one for one in end if sum(text.endswith(one) for text in theirs) not in range(1, _many(theirs))}
    return Carrier(tuple(sorted(before, key=_longest_first)), tuple(sorted(after, key=_longest_first)))


def _longest_first(text: str) -> tuple[int, str]:
    return -len(text), text


def may_be_labelled(texts: Iterable[str]) -> bool:
    """Whether a text begins with what may be a label."""
    read = map(normalise, texts)
    return any(_is_label(text[: one.end()], most=False) for text in read for one in _MARK.finditer(text, 0, _LONGEST))


def _many(texts: Sequence[str]) -> int:
    return max(_FEWEST_TEXTS, math.ceil(_MANY * len(texts)))


@lru_cache(maxsize=2)
def _labelled(texts: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The distinct texts, and the beginnings up to a mark that many have, without those that begin with another one."""
    distinct = list(dict.fromkeys(map(normalise, texts)))
    ordered, many = sorted(distinct), _many(distinct)
    # What many begin with, those in order that are so far apart do.
    begins = {one[: alike(one, other)] for one, other in zip(ordered, ordered[many - 1 :], strict=False)}
    found = {begin[: mark.end()] for begin in begins for mark in _MARK.finditer(begin)}
    labels, left = list[str](), {*range(len(ordered))}
    for begin in sorted(found, key=_longest_first):
        own = {at for at in left if ordered[at].startswith(begin)}
        if len(own) >= many and _is_label(begin, most=2 * len(own) > len(ordered)):
            labels.append(begin)
            left -= own
    return distinct, labels


def _is_label(before: str, *, most: bool) -> bool:
    """Whether it names the kind of text, or is an instruction; a name before a colon is part of the text.

    A sentence has to name it, too; a bracket will do where most texts have it.
    """
    own, mark = _words(before), before.rstrip()[-1]
    names, long = not _LABELS.isdisjoint(own), len(own) >= _FEWEST_WORDS
    if mark in _OF_SENTENCES:
        return long and (names or own[0] in _TELLING)
    return long or names or (most and mark != ":")


def _telling(texts: Sequence[str]) -> list[str]:
    """The words without a mark with which most texts tell somebody to search."""
    shared = _shared(texts)
    if _TO_MARK.match(shared) or not (found := _TO_BLANK.match(shared)):
        return []
    left = [len(text.removeprefix(found[0]).split()) for text in texts if text.startswith(found[0])]
    words = found[0].split()
    tells = len(words) >= _FEWEST_WORDS and words[0].lower() in _TELLING and median(left) >= _FEWEST_WORDS
    return [found[0]] if tells else []


def _end(texts: Sequence[str], *, labelled: bool = True) -> str:
    """What most texts end with, from a mark, a sentence or a label on; or three words, where they begin alike."""
    shared = _shared([text[::-1] for text in texts])[::-1]
    found = _FROM_MARK.search(shared)
    if found is None and labelled and len(shared.split(" ")[1:]) >= _FEWEST_WORDS:
        return shared[shared.index(" ") :]
    return found[0] if found else ""


def _shared(texts: Sequence[str]) -> str:
    """The longest beginning that more than half of the texts have."""
    if len(texts) < _FEWEST_TEXTS:
        return ""
    ordered = sorted(texts)
    pairs = zip(ordered, ordered[len(ordered) // 2 :], strict=False)
    return max((one[: alike(one, other)] for one, other in pairs), key=len)


def _before_topics(texts: Sequence[str], topics: Sequence[str]) -> list[str]:
    """The words before the topics in texts that end with one, whose words of grammar may differ."""
    written = {_words(topic) for topic in topics}
    known = {without_form(words) for words in written} - {()}
    ends, sizes = {words[-1] for words in known}, set(map(len, known))
    found: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for text in texts:
        if ends.isdisjoint(without_form(_words(text))[-1:]):
            continue
        parts, size = list[tuple[str, tuple[str, ...]]](), 0
        for token in reversed([*re.finditer(r"\S+", text)]):
            size += len(without_form(folded(token[0])))
            if size in sizes and token.start():
                parts.insert(0, (text[: token.start()], _words(text[token.start() :])))
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

"""Passages: how a document is cut for a ranker that reads a few hundred words at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from truerank.errors import OptionError

#: Words and signs, as tokenizers for sentences count them.
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_WORD: Final = re.compile(r"\S+")
#: The end of a sentence: its mark, closing quotes and brackets, a blank, the beginning of another; or an empty line.
#: No part of it goes over a run of signs or blanks twice, however long that is.
_END: Final = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s+[\"'“‘«(\[]?[^\W_a-z])|[。！？]++[」』”）]*+|(?<!\s)[^\S\n]*+\n[^\S\n]*+\n"
)
#: What stands before a full stop that ends no sentence.
_ABBREVIATED: Final = re.compile(
    r"(?:^|[\s(\[\"'“‘.])(?:[^\W\d_]|mr|mrs|ms|dr|prof|rev|hon|gen|col|sgt|capt|lt|st|sr|jr|vs|cf|eg|ie|no|nos|vol|pp|fig|eq"
    r"|sec|ed|eds|inc|ltd|co|corp|dept|univ|est|approx|al|etc|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\Z",
    re.IGNORECASE,
)
#: No abbreviation with what stands before it is longer than this.
_LOOK_BACK: Final = 8


class Policy(Protocol):
    """A way to cut a text into passages."""

    @property
    def name(self) -> str:
        """The name that `policy_named` takes."""

    def cut(self, text: str) -> Iterator[str]:
        """The passages in the order of the text, at least one, which is empty where the text is; a stream, so that
        the first passage costs no more than itself."""


@dataclass(frozen=True)
class Whole:
    """The document as one passage; what is too long for a ranker is cut by the ranker."""

    @property
    def name(self) -> str:
        """Its name."""
        return "whole"

    def cut(self, text: str) -> Iterator[str]:
        yield text.strip()


@dataclass(frozen=True)
class Sliding:
    """Windows of so many words, each beginning some words after the one before; the last may be shorter.

    Windows end with the one that holds the last word, so that no window repeats the end of another.

    Attributes:
        words: in a window, words being what stands between blanks.
        stride: words from the beginning of one window to that of the next.
    """

    words: int = 150
    stride: int = 75

    def __post_init__(self) -> None:
        if self.words < 1 or not 1 <= self.stride <= self.words:
            fault = f"windows of {self.words} words, each {self.stride} after the other"
            raise OptionError("split", fault, "give 1 word or more, and a stride from 1 to that")

    @property
    def name(self) -> str:
        """Its name."""
        return f"sliding:{self.words}:{self.stride}"

    def cut(self, text: str) -> Iterator[str]:
        """The windows."""
        spans = [match.span() for match in _WORD.finditer(text)]
        if not spans:
            yield ""
            return
        for start in range(0, max(1, len(spans) - self.words + self.stride), self.stride):
            window = spans[start : start + self.words]
            yield text[window[0][0] : window[-1][1]]


@dataclass(frozen=True)
class Sentences:
    """Whole sentences up to so many tokens: words and signs.

    Attributes:
        tokens: the size of a passage.
        rule: "close at" ends a passage with the sentence that brings it to `tokens`; "fit" ends it before the sentence
            that would bring it above, and a longer sentence is a passage of its own.
        label: its name.

    Source: the tools of TREC CAsT 2021 ("close at" 0.67 × 250) and 2022 ("fit" 250; theirs repeats a passage that is
        pending when a longer sentence comes, this one does not).
    """

    tokens: float
    rule: Literal["close at", "fit"]
    label: str

    @property
    def name(self) -> str:
        """Its name."""
        return self.label

    def cut(self, text: str) -> Iterator[str]:
        """The passages."""
        begin, end, held, any_passage = 0, 0, 0, False
        for sentence in sentences(text):
            size = len(_TOKEN.findall(text, sentence.start, sentence.end))
            full = held >= self.tokens if self.rule == "close at" else held + size > self.tokens
            if held and full:
                yield text[begin:end]
                any_passage, held = True, 0
            if not held:
                begin = sentence.start
            end, held = sentence.end, held + size
        if held or not any_passage:
            yield text[begin:end]


WHOLE: Final = Whole()
CAST2021: Final = Sentences(0.67 * 250, "close at", "cast2021")
CAST2022: Final = Sentences(250, "fit", "cast2022")
#: The policies without parameters, and the usual window.
POLICIES: Final = ("whole", "cast2021", "cast2022", "sliding:150:75")


def passages(document_title: str, body: str, policy: Policy) -> tuple[str, ...]:
    """The passages of a document, whose title and body are joined first."""
    return tuple(policy.cut(joined(document_title, body)))


def joined(document_title: str, body: str) -> str:
    """Title and body with a blank between them."""
    return f"{document_title} {body}" if document_title and body else document_title or body


def policy_named(name: str) -> Policy:
    """The policy of a name: `whole`, `cast2021`, `cast2022`, `sliding`, `sliding:WORDS` or `sliding:WORDS:STRIDE`.

    Without a stride, windows overlap by half.
    """
    fixed: dict[str, Policy] = {policy.name: policy for policy in (WHOLE, CAST2021, CAST2022)}
    if name in fixed:
        return fixed[name]
    if match := re.fullmatch(r"sliding(?::(\d{1,9})(?::(\d{1,9}))?)?", name, re.ASCII):
        words = int(match[1] or 150)
        return Sliding(words, int(match[2] or max(1, words // 2)))
    raise OptionError("split", f"no passage policy '{name}'", f"one of {', '.join(POLICIES)}, or sliding:WORDS:STRIDE")


class Span(NamedTuple):
    """A part of a text: the places of its first character and after its last."""

    start: int
    end: int


def sentences(text: str) -> Iterator[Span]:
    """Where each sentence of a text begins and ends, without blanks around it.

    A sentence ends at `. ! ? …` before a blank and a word that does not begin with a small Latin letter, except after
    initials and common English abbreviations; at the full stops of Chinese and Japanese; and at an empty line.
    """
    start = 0
    for match in _END.finditer(text):
        mark = match.group()
        if mark == "." and _ABBREVIATED.search(text, max(start, match.start() - _LOOK_BACK), match.start()):
            continue
        yield from _stripped(text, start, match.end())
        start = match.end()
    yield from _stripped(text, start, len(text))


def _stripped(text: str, start: int, end: int) -> Iterator[Span]:
    part = text[start:end]
    if kept := part.strip():
        begin = start + len(part) - len(part.lstrip())
        yield Span(begin, begin + len(kept))

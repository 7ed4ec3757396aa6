"""The words of an answer: those of people with a table of questions, or with TREC files; set by what was given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from truerank.claims.results import Check
from truerank.text.printable import capital

#: What stands for what in answers about questions.
_OF_QUESTIONS: Final = {
    "training query": "training question", "training queries": "training questions", "topic": "question",
    "topics": "questions", "judgment": "label", "judgments": "labels", "judged": "labelled", "unjudged": "unlabelled",
    "judge": "label", "judging": "labelling", "relevant document": "expected document",
    "relevant documents": "expected documents", "relevant": "right",
}  # fmt: skip
_WORDS: Final = re.compile(
    rf"(?<![\w-])(?:{'|'.join(sorted(_OF_QUESTIONS, key=len, reverse=True))})(?![\w-])", re.IGNORECASE
)
#: No sentence: names of questions, words of verdicts, places.
_NO_SENTENCES: Final = frozenset(("word", "question", "folder", "effect", "facts", "decided_by", "unknown", "example"))
#: Letters of a name that a column holds.
_LONG: Final = 24


def spoken(text: str, *, golden: bool) -> str:
    """A sentence without names in the words of those who read it."""
    return _WORDS.sub(lambda found: _other(found[0]), text) if golden else text


def _other(text: str) -> str:
    other = _OF_QUESTIONS.get(text.lower(), text)
    return capital(other) if text[0].isupper() else other


def in_register(check: Check, systems: Iterable[str], names: Iterable[str], *, golden: bool) -> Check:
    """A check whose sentences have the words of those who read them, and short names of systems for its tables.

    Args:
        systems: their names.
        names: of other things, which are no words either.
        golden: whether it is about questions.
    """
    short = shortened(systems)
    if not golden:
        return replace(check, names=short)
    # Commands and names are no words.
    every = sorted({*names, *short} - {""}, key=lambda name: (-len(name), name))
    kept = re.compile(rf"(`[^`]*`|(?<![\w-])(?:{'|'.join(map(re.escape, every))})(?![\w-]))")

    def say(text: str) -> str:
        parts = kept.split(text)
        parts[::2] = (spoken(part, golden=golden) for part in parts[::2])
        return "".join(parts)

    answers, conclusion = _said(check.answers, say), _said(check.conclusion, say)
    return replace(check, answers=answers, conclusion=conclusion, names=short)


def _said(value: Any, say: Callable[[str], str]) -> Any:
    """The same with all its sentences in other words."""
    if isinstance(value, str):
        return say(value)
    if hasattr(value, "_asdict"):
        return value._make(_said(each, say) for each in value)
    if isinstance(value, tuple):
        return tuple(_said(each, say) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            each.name: _said(getattr(value, each.name), say) for each in fields(value) if each.name not in _NO_SENTENCES
        }
        return replace(value, **changed)
    return value


def shortened(names: Iterable[str]) -> dict[str, str]:
    """Names as a column holds them: of long ones, what all begin with becomes "…" where that is enough."""
    every, cut = [*names], 0
    for at, letters in enumerate(zip(*(f"{name}-" for name in every), strict=False), 1):
        if len({*letters}) > 1:
            break
        cut = at if letters[0] in "-_./ " else cut
    short = {name: f"…{name[cut:]}" if cut and len(name) > max(_LONG, cut) else name for name in every}
    return {name: other if len(other) <= _LONG + 1 else name for name, other in short.items()}

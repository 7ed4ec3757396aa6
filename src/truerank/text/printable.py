"""What of a text may be written to a terminal, and names in a sentence: all of them, or the first few."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

#: Control characters but tab and line feed, marks that turn the direction of writing, and halves of surrogate pairs.
_HARMFUL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with each character that commands a terminal, or turns its line around, replaced by U+FFFD."""
    return text if text.isascii() and text.isprintable() else _HARMFUL.sub("\ufffd", text)


def listed(names: Sequence[str]) -> str:
    """`a, b and c`; empty without names."""
    return " and ".join((*filter(None, [", ".join(names[:-1])]), *names[-1:]))


def counted(number: int, noun: str, several: str = "") -> str:
    """`1 item`, `2,000 items`."""
    return f"{number:,d} {noun if number == 1 else several or noun + 's'}"


def first_few(names: Sequence[str], most: int) -> str:
    """`a, b …`, where there are more than so many."""
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def and_more(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """`a, b and 3 more`, where there are more than so many."""
    return separator.join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def capital(text: str) -> str:
    """The text as a sentence begins."""
    return f"{text[:1].upper()}{text[1:]}"

"""What of a text may be written to a terminal."""

from __future__ import annotations

import re
from typing import Final

#: Control characters but tab and line feed, marks that turn the direction of writing, and halves of surrogate pairs.
_HARMFUL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with each character that commands a terminal, or turns its line around, replaced by U+FFFD."""
    return text if text.isascii() and text.isprintable() else _HARMFUL.sub("\ufffd", text)

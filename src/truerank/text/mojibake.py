"""Repairing text whose UTF-8 bytes were read as latin-1 (or Windows-1252) in some places and not in others."""

from __future__ import annotations

import re
from typing import Final

#: What programs show for the bytes 0x80 to 0x9F when they take them for Windows-1252; five of them have no sign there.
_WINDOWS: Final = {
    sign: chr(code) for code in range(0x80, 0xA0) if (sign := bytes([code]).decode("cp1252", errors="ignore"))
}


def _continuation(low: int, high: int) -> str:
    """A class of the signs that stand for the bytes low to high."""
    aliases = "".join(sign for sign, code in _WINDOWS.items() if low <= ord(code) <= high)
    return f"[{chr(low)}-{chr(high)}{aliases}]"


_ANY: Final = _continuation(0x80, 0xBF)
#: The bytes of one character above U+007F in well-formed UTF-8 (the Unicode standard, table 3-7), each as a character.
_ENCODED: Final = re.compile(
    "|".join(
        (
            f"[\xc2-\xdf]{_ANY}",
            f"\xe0{_continuation(0xA0, 0xBF)}{_ANY}",
            f"[\xe1-\xec\xee\xef]{_ANY}{{2}}",
            f"\xed{_continuation(0x80, 0x9F)}{_ANY}",
            f"\xf0{_continuation(0x90, 0xBF)}{_ANY}{{2}}",
            f"[\xf1-\xf3]{_ANY}{{3}}",
            f"\xf4{_continuation(0x80, 0x8F)}{_ANY}{{2}}",
        )
    )
)
_TO_BYTES: Final = str.maketrans(_WINDOWS)


def repair(text: str) -> str:
    """The text with every character restored that is there as its UTF-8 bytes, however often it was damaged.

    Each replacement makes the text shorter and no two of them can overlap, because no byte of UTF-8 both begins and
    continues a character. So the outcome does not depend on their order: a text and all its damaged forms, wherever
    and however often the damage was done, have the same repaired form. A text that only looks damaged is changed too,
    in the same way on both sides of a comparison.
    """
    if text.isascii():
        return text
    while True:
        repaired = _ENCODED.sub(_character, text)
        if repaired == text:
            return text
        text = repaired


def _character(match: re.Match[str]) -> str:
    return match[0].translate(_TO_BYTES).encode("latin-1").decode("utf-8")

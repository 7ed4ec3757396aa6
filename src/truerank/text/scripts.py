"""The script of a text."""

from __future__ import annotations

import functools
import unicodedata
from typing import Final

_SAMPLED: Final = 600
_FEWEST_LETTERS: Final = 4
#: `bytes.translate` is many times as fast as a test of each sign.
_NO_LETTERS: Final = bytes(code for code in range(128) if not chr(code).isalnum())


@functools.lru_cache(maxsize=1 << 14)
def _script(sign: str) -> str:
    name = unicodedata.name(sign, "").partition(" ")[0].partition("-")[0]
    return "CJK" if name in ("CJK", "HIRAGANA", "KATAKANA") else "" if name in ("FULLWIDTH", "MODIFIER") else name


def script_of(text: str) -> str:
    """The script of more than half of a text's letters ("LATIN", "CYRILLIC", "CJK" …); empty where it has few.

    Han and kana are one, since Japanese mixes them.
    """
    if text.isascii():
        return "LATIN" if letters(text[:60]) >= _FEWEST_LETTERS else ""
    counts: dict[str, int] = {}
    for sign in text[:_SAMPLED]:
        if sign.isalpha():
            counts[_script(sign)] = counts.get(_script(sign), 0) + 1
    total = sum(counts.values())
    best = max(counts, key=lambda name: counts[name], default="")
    return best if total >= _FEWEST_LETTERS and 2 * counts[best] > total else ""


def has_script(text: str, script: str, share: float = 0.0) -> bool:
    """Whether more than this share of the letters at a text's beginning are of a script: names may be in another."""
    scripts = [_script(sign) for sign in text[:_SAMPLED] if sign.isalpha()]
    return scripts.count(script) > share * len(scripts)


def letters(text: str) -> int:
    """How many letters and digits a text has."""
    if text.isascii():
        return len(text.encode().translate(None, _NO_LETTERS))
    return sum(map(str.isalnum, text))

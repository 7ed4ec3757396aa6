"""Tokenisers: how a text becomes words, each way under a name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

Tokeniser = Callable[[str], list[str]]

# Unicode's word boundaries (UAX 29) as far as Lucene's standard tokeniser follows them: runs of letters, digits and
# underscores; an apostrophe, dot or colon joins letters, an apostrophe, dot, comma or semicolon digits.
_STANDARD: Final = re.compile(
    r"(?=_*[^\W_])\w+(?:(?<=[^\W\d_])['.:·’․‘﹒＇．](?=[^\W\d_])\w+|(?<=\d)['.,;’․‘﹒＇．，；٫٬](?=\d)\w+)*"
)
_ALPHANUMERIC: Final = re.compile(r"[^\W_]+")
_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")
#: Scripts that are written without blanks, of which each sign is a word: Han and Hiragana.
_SINGLE: Final = re.compile("[\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_LONGEST: Final = 255
#: What Terrier's English tokeniser drops.
_TERRIER_LONGEST: Final = 20
_TERRIER_DIGITS: Final = 4
_SAME_SIGNS: Final = re.compile(r"(.)\1{3}")


def _shadow(text: str) -> str:
    """The text with a letter for every combining mark, which `re` would take for a separator."""
    return "".join("a" if unicodedata.category(sign)[0] == "M" else sign for sign in text)


def _standard(text: str) -> list[str]:
    if text.isascii():
        found = _STANDARD.findall(text)
        return found if len(text) <= _LONGEST or max(map(len, found), default=0) <= _LONGEST else _chopped(found)
    words: list[str] = []
    for match in _STANDARD.finditer(_shadow(text)):
        word = text[match.start() : match.end()]
        words += [word] if word.isascii() else _signs(word)
    return _chopped(words)


def _signs(word: str) -> list[str]:
    """A word with the signs of scripts without blanks standing alone."""
    return [part for part in re.split(f"({_SINGLE.pattern})", word) if part] if _SINGLE.search(word) else [word]


def _chopped(words: list[str]) -> list[str]:
    """Words in pieces of at most 255 signs."""
    return [word[at : at + _LONGEST] for word in words for at in range(0, len(word), _LONGEST)]


def _alphanumeric(text: str) -> list[str]:
    if text.isascii():
        return _ALPHANUMERIC.findall(text)
    return [text[match.start() : match.end()] for match in _ALPHANUMERIC.finditer(_shadow(text))]


def _terrier(text: str) -> list[str]:
    return [
        word
        for word in _alphanumeric(text.lower())
        if len(word) <= _TERRIER_LONGEST
        and (word.isalpha() or sum(map(str.isdigit, word)) <= _TERRIER_DIGITS)
        and not _SAME_SIGNS.search(word)
    ]


def _letters(text: str) -> list[str]:
    if text.isascii():
        return _LETTERS.findall(text)
    return [text[match.start() : match.end()] for match in _LETTERS.finditer(_shadow(text))]


#: What may belong to a word: every sign beyond ASCII, so that the tokeniser decides about those.
_PART: Final = r"[0-9A-Z_a-z\x{80}-\x{10FFFF}]+"
_BETWEEN_BLANKS: Final = r"[^ \t\n\r]+"
#: For each tokeniser a pattern of Rust's `regex` for pieces of a text: no word, and nothing that decides about one,
#: reaches beyond its piece, so that the words of a text are those of its pieces. Cutting a text so is several times as
#: fast, and a tokeniser then sees each different piece once.
PIECES: Final[dict[str, str]] = {
    "lucene": f"{_PART}(?:['.,:;]{_PART})*",
    "alphanumeric": _PART,
    "letters": _PART,
    "terrier": _BETWEEN_BLANKS,
    "whitespace": _BETWEEN_BLANKS,
}

#: Each tokeniser by its name; the words are as they are written in the text.
TOKENISERS: Final[dict[str, Tokeniser]] = {
    "lucene": _standard,
    "alphanumeric": _alphanumeric,
    "letters": _letters,
    "terrier": _terrier,
    "whitespace": str.split,
}

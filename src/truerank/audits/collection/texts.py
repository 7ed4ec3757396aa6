"""What is wrong with a text by itself: damage, markup, placeholders, notices, its script. No language is assumed."""

from __future__ import annotations

import functools
import re
from typing import Final, NamedTuple

from truerank.text.mojibake import repair
from truerank.text.normalising import normalise
from truerank.text.words import letters, script_of

_LOST: Final = re.compile("[\ufffd\x00-\x08\x0b\x0e-\x1f\x7f]")
_TAGS: Final = (
    "a|abbr|b|big|blockquote|body|br|button|center|cite|code|dd|div|dl|dt|em|font|footer|form|h[1-6]|head|header|hr|"
    "html|i|iframe|img|input|label|li|link|meta|nav|object|ol|option|p|pre|script|section|select|small|span|strike|"
    "strong|style|sub|sup|table|tbody|td|textarea|th|thead|title|tr|tt|u|ul"
)
_TAG: Final = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]{{0,300}})?/?>", re.IGNORECASE)
_ENTITY: Final = re.compile(
    r"&(?:amp|lt|gt|nbsp|quot|apos|ndash|mdash|hellip|lsquo|rsquo|ldquo|rdquo|copy|reg|#\d{2,6}|#x[0-9a-f]{2,5});", re.I
)
_CODE: Final = re.compile(
    r"function\s*\([^)]*\)\s*\{|document\.(?:write|getElement|createElement)|window\.\w+\s*=|"
    r"\{\s*(?:color|margin|padding|font|display|width|background)[\w-]*\s*:",
)
_WIKI: Final = re.compile(r"\{\{[^{}]{2,200}\}\}|\[\[[^\[\]]{2,200}\]\]|</?ref\b[^<>]*>")
_PLACEHOLDERS: Final = frozenset(
    """
    null|none|nan|n/a|undefined|deleted|removed|missing|empty|no text|no content|no title|no abstract|untitled|tbd|todo|
    no abstract available|abstract not available|not available|text not available|content not available|
    object object|placeholder|dummy|xxx|test|test test
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
)
_LONGEST_PLACEHOLDER: Final = max(map(len, _PLACEHOLDERS))
_EDGE: Final = re.compile(r"^[\W_]+|[\W_]+$")
_LOREM: Final = re.compile(r"lorem ipsum", re.IGNORECASE)
#: Signs of these scripts stand for about three letters of an alphabet.
_DENSE: Final = frozenset({"CJK", "HANGUL"})
_DENSITY: Final = 3
#: Characters of the longest notice, and different signs of its kind in it: one may be in a title by chance.
_NOTICE, _SIGNS = 400, 2
#: The share of a notice that is signs, at least; of a lone sentence that speaks to nobody, as titles are.
_SHARE, _SHARE_OF_TITLE = 0.15, 0.5
#: The mark at which a sentence ends.
_MARK: Final = re.compile(r"([.!?…。！？؟।])[.!?…]*[\"'”’»)\]]*(?:\s+|\Z)")
#: A pattern of words, and the same for ASCII: `bytes.translate` is many times as fast.
_WORD: Final = re.compile(r"[^\W\d_]+")
_ASCII: Final = [chr(code) for code in range(128)]
_PLAIN: Final = "".join(sign.lower() if sign.isalpha() else " " for sign in _ASCII).encode().ljust(256)
_TERMINAL: Final = frozenset(".!?…。！？｡؟۔।॥”’»)]}>\"'་៖။።")


class Measured(NamedTuple):
    """The size of a text: characters, words between blanks, and letters, signs of dense scripts counted threefold."""

    characters: int
    words: int
    letters: int


def damage(text: str) -> tuple[str, str] | None:
    """What a wrong decoding did to a text: "wrong-decoding" or "lost-characters", and what shows it."""
    if text.isascii() and text.isprintable():
        return None
    lost = _LOST.search(text)
    if lost is not None:
        return "lost-characters", f"U+{ord(lost[0]):04X} in '{_around(text, lost.start())}'"
    mended = repair(text)
    if mended != text:
        at = next(i for i, (a, b) in enumerate(zip(text, mended, strict=False)) if a != b)
        return "wrong-decoding", f"'{_around(text, at)}' is '{_around(mended, at)}'"
    return None


def _around(text: str, at: int) -> str:
    return normalise(text[max(0, at - 12) : at + 16].replace("\ufffd", "?"))


def markup(text: str) -> str:
    """What is left of markup in a text; empty where there is none."""
    if "<" in text and (found := _TAG.search(text)):
        return f"tag '{normalise(found[0])[:60]}'"
    if "&" in text and (found := _ENTITY.search(text)):
        return f"entity '{found[0]}'"
    if ("{" in text or "document." in text) and (found := _CODE.search(text)):
        return f"script or style '{normalise(found[0])[:60]}'"
    if ("{{" in text or "[[" in text or "<ref" in text) and len(wiki := _WIKI.findall(text)) > 1:
        return f"wiki markup '{normalise(wiki[0])[:60]}'"
    return ""


def placeholder(text: str) -> bool:
    """Whether a text stands for a missing one, such as "null" or "[deleted]"."""
    if len(text) > 400 or (letters(text) > _LONGEST_PLACEHOLDER and not _LOREM.search(text)):
        return False
    plain = _EDGE.sub("", normalise(text).casefold())
    plain = re.sub(r"[\[\]()]", "", plain)
    return plain in _PLACEHOLDERS or _LOREM.match(plain) is not None


def notice(text: str, *, titled: bool = False, share: float = _SHARE) -> str:
    """The kind of notice that stands in place of a text, such as an error page; empty where it is none.

    Args:
        titled: whether it begins with a title, which ends with no mark.
        share: how much of it is signs, at least.
    """
    # Here: topics have no notices, and without documents an audit need not load what finds them.
    from truerank.text.page_faults import notice_of

    found = None if len(text) > _NOTICE else notice_of(text, fewest=_SIGNS)
    if found is None or len(found.signs) < _SIGNS:
        return ""
    *sentences, rest = _MARK.split(text)
    marks = sentences[1::2]
    # Somebody asks about logins and errors; a notice says something.
    asks = bool(marks) and not rest and {*marks} <= {*"?？؟"}
    lone = titled + len(marks) + bool(rest) < 2 and not found.addressed
    # Manuals have numbers such as those of errors.
    numbered = sum(not sign.rstrip(".").isdecimal() for sign in found.signs) < _SIGNS
    if asks or found.share_of_all < (_SHARE_OF_TITLE if lone or numbered else share):
        return ""
    return f"{found.kind}: {', '.join(found.signs[:4])}"


def measured(text: str) -> Measured:
    """The size of a normalised text."""
    words = text.count(" ") + 1 if text else 0
    dense = not text.isascii() and script_of(text) in _DENSE
    return Measured(len(text), words, letters(text) * (_DENSITY if dense else 1))


@functools.lru_cache(maxsize=1)
def plain_words(text: str) -> tuple[str, ...]:
    """The runs of letters of a text in lower case; kept until another text comes, as several ask for them in turn."""
    if text.isascii():
        return tuple(text.encode().translate(_PLAIN).decode().split())
    return tuple(_WORD.findall(text.casefold()))


def doubled(text: str) -> bool:
    """Whether a normalised text is one text twice in a row."""
    half = len(text) // 2
    return half >= 30 and text[:half].rstrip() == text[len(text) - half :].lstrip()


def ending(text: str) -> str:
    """How a normalised text ends: "mark" of the end of a sentence, "digit", "letter" or "other"."""
    last = text[-1:]
    if last in _TERMINAL:
        return "mark"
    return "digit" if last.isdigit() else "letter" if last.isalpha() else "other"

"""What counts as the same text."""

from __future__ import annotations

import re
import unicodedata

from truerank.text.mojibake import repair

__all__ = ["mended", "normalise", "spoken"]

_APOSTROPHES = re.compile("['’`]")
_MARKS = re.compile(r"[-–—](?!\d)|[.,;:!?…\"“”„()\[\]¿¡«»。、？！]")
_NOISE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+")


def normalise(text: str) -> str:
    """The form of a text by which queries are compared and counted.

    Unicode NFC; every run of blanks, control characters and invisible direction or joining marks becomes one blank;
    none at either end. Letter case stays: whether it matters is the encoder's business.

    Args:
        text: any text.

    Returns:
        The normalised text; empty if nothing visible is left.
    """
    if text.isprintable():  # no control, format or line characters: blanks are all that can be wrong
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        return " ".join(text.split()) if "  " in text else text.strip()
    return _NOISE.sub(" ", unicodedata.normalize("NFC", text)).strip()


def spoken(text: str) -> str:
    """A question as it is read aloud: without case, blanks, and the marks of sentences; "C++" and "-5" stay.

    Args:
        text: a question.
    """
    text = normalise(text).casefold()
    return " ".join(_MARKS.sub(" ", _APOSTROPHES.sub("", text)).split()) or text


def mended(text: str) -> str:
    """A text normalised, with characters whole that are there as their UTF-8 bytes; control characters may be bytes."""
    return normalise(repair(text))

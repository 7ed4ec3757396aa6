"""Notices that stand in place of a page: errors, logins, paywalls, consent, robot checks, maintenance, parked domains.

A notice is known by what it speaks of, not by its sentences: words for pages, for not finding, for accounts, for
subscriptions and so on, by their beginnings and in several languages. One such word proves nothing, since pages write
about errors and subscriptions, too; several different ones in a short text do, where they make up much of it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from truerank.loading import toml_file

__all__ = ["Notice", "notice_of", "speaks_as_notice"]

#: In notices.toml, who speaks to somebody: no sign of a kind of notice.
_ADDRESS: Final = "spoken to"
#: Letters that are no letter with an accent.
_LETTERS: Final = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae"})
#: What stands between words in a text as of `_plain`, beside blanks; and letters of scripts without blanks.
_BETWEEN: Final = "$€£/.@-"
_NO_BLANKS: Final = "[\u3040-\uffdc]"
_ANY_NO_BLANKS: Final = re.compile(_NO_BLANKS)
#: A longer text is about its subject, whatever it mentions.
_LONGEST: Final = 150
#: Different things spoken of, and the share of the words that speak of them.
_FEWEST_SIGNS: Final = 2
_SHARE: Final = 0.12
_SHARE_OF_MANY: Final = 0.07
_MANY: Final = 4
_BRIEF: Final = 4
_MOST: Final = 0.5


class _Thing(NamedTuple):
    """One thing that notices speak of.

    Attributes:
        pattern: finds where a text speaks of it.
        quick: tells whether a text with blanks does at all, in half the time: it can skip from word to word.
    """

    pattern: re.Pattern[str]
    quick: re.Pattern[str]

    @classmethod
    def of(cls, signs: str) -> _Thing:
        """Signs of scripts without blanks stand anywhere, others at the beginning of a word."""
        folded = _folded(signs)
        begun = rf"(?:(?<!\w)|(?={_NO_BLANKS}))"
        return cls(re.compile(f"{begun}(?:{folded})"), re.compile(f"[ {_BETWEEN}](?:{folded})"))

    def spoken_of(self, plain: str) -> bool:
        """Whether a text, as of `_plain`, has a sign."""
        if _ANY_NO_BLANKS.search(plain):
            return self.pattern.search(plain) is not None
        return self.quick.search(f" {plain}") is not None


class Notice(NamedTuple):
    """What kind of notice a text is, the words that show it, and how much of the text the signs of this kind are."""

    kind: str
    signs: tuple[str, ...]
    share: float


def notice_of(text: str, *, title: bool = False) -> Notice | None:
    """The kind of notice that a text is, or None where it is none.

    Args:
        text: title and body, or what is new in them.
        title: the text is a title of few words: then one sign that makes up most of it is enough.

    Returns:
        The kind of which the text has most signs.
    """
    plain = _plain(text)
    size = len(plain.split())
    if not size or size > _LONGEST:
        return None
    found: dict[str, list[str]] = {}
    covered: dict[str, set[int]] = {}
    (spoken_to,), *kinds = _signs()[_ADDRESS], *(item for item in _signs().items() if item[0] != _ADDRESS)
    for kind, things in kinds:
        for thing in things:
            if thing.spoken_of(plain):
                hits = list(thing.pattern.finditer(plain))
                found.setdefault(kind, []).append(plain[hits[0].start() : _end(plain, hits[0].end())])
                # A sign is the beginning of a word: the whole of it counts.
                places = (place for hit in hits for place in range(hit.start(), _end(plain, hit.end())))
                covered.setdefault(kind, set()).update(places)
    signs = sum(map(len, found.values()))
    if not signs:
        return None
    share = len(set().union(*covered.values())) / len(plain)
    spoken = spoken_to.spoken_of(plain)
    enough = (signs + spoken >= _FEWEST_SIGNS and share >= _SHARE) or (signs >= _MANY and share >= _SHARE_OF_MANY)
    brief = title and size <= _BRIEF and share >= _MOST
    if not (enough or brief):
        return None
    kind = max(found, key=lambda name: len(found[name]))
    return Notice(kind, tuple(dict.fromkeys(found[kind])), len(covered[kind]) / len(plain))


def speaks_as_notice(text: str) -> bool:
    """Whether a text speaks to the reader, or of anything that notices speak of; alone that is no sign of a notice."""
    plain = _plain(text)
    return any(thing.spoken_of(plain) for things in _signs().values() for thing in things)


def _end(text: str, place: int) -> int:
    end = text.find(" ", place)
    return len(text) if end < 0 else end


def _folded(text: str) -> str:
    """Lower case without the accents of Latin and Cyrillic letters."""
    apart = unicodedata.normalize("NFKD", text.casefold()).translate(_LETTERS)
    return unicodedata.normalize("NFC", "".join(sign for sign in apart if not "\u0300" <= sign <= "\u036f"))


def _plain(text: str) -> str:
    """Folded, with single blanks between words."""
    return " ".join(re.sub(rf"[^\w{_BETWEEN}]+", " ", _folded(text)).split())


@cache
def _signs() -> dict[str, tuple[_Thing, ...]]:
    """By kind each thing that notices speak of, from notices.toml."""
    listed = toml_file(Path(__file__).with_name("notices.toml"))
    return {kind: tuple(_Thing.of("|".join(some)) for some in things.values()) for kind, things in listed.items()}

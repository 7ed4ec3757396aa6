"""Notices that stand in place of a page: errors, logins, paywalls, consent, robot checks, maintenance, parked domains.

A notice is known by what it speaks of, not by its sentences: words for pages, for not finding, for accounts, for
subscriptions and so on, by their beginnings and in several languages. One such word proves nothing, since pages write
about errors and subscriptions, too; several different ones in a short text do, where they make up much of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from truerank.loading import toml_file

#: In notices.toml, who speaks to somebody: no sign of a kind of notice.
_ADDRESS: Final = "spoken to"
#: There, what hardly anything but a notice speaks of: one such sign is as much as two others.
_PLAIN: Final = "plain"
#: Letters that are no letter with an accent.
_LETTERS: Final = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae"})
#: What stands between words in a text as of `_plain`, beside blanks; and letters of scripts without blanks.
_BETWEEN: Final = "$€£/.@-"
_NO_BLANKS: Final = "[\u3040-\uffdc]"
_ANY_NO_BLANKS: Final = re.compile(_NO_BLANKS)
_WORDS: Final = re.compile(f"[ {_BETWEEN}]+")
#: So many letters and blanks, from the beginning of a word on, tell whether a sign may be there.
_START: Final = 6
_BEGINS: Final = re.compile(rf"(?:\\b)?([^\W\d_](?:[^\W\d_]| ){{{_START - 1}}})(?![?*{{|])")
#: A choice, or something that may be lacking, at the beginning of a sign.
_CHOICE: Final = re.compile(r"((?:[^\W\d_]| )*)\(\?:([^()]*)\)(\?|(?![?*+{]))(.*)")
#: A longer text is about its subject, whatever it mentions.
_LONGEST: Final = 150
#: Different things spoken of, and the share of the words that speak of them.
_FEWEST_SIGNS: Final = 2
_SHARE: Final = 0.12
_SHARE_OF_MANY: Final = 0.07
_MANY: Final = 4
_BRIEF: Final = 4
_MOST: Final = 0.5


class _Plain(NamedTuple):
    """A text as of `_plain`.

    Attributes:
        text: between blanks.
        starts: the first signs from each beginning of a word on.
        blanks: it has no letters of scripts without blanks.
    """

    text: str
    starts: frozenset[str]
    blanks: bool

    @classmethod
    def of(cls, text: str) -> _Plain:
        """The text, folded."""
        plain = _plain(text)
        places = (match.end() for match in _WORDS.finditer(f" {plain}"))
        starts = frozenset(plain[place - 1 : place - 1 + _START] for place in places)
        return cls(plain, starts, _ANY_NO_BLANKS.search(plain) is None)


class _Thing(NamedTuple):
    """One thing that notices speak of.

    Attributes:
        pattern: finds where a text speaks of it.
        quick: tells in half the time whether a text with blanks has a sign: it can skip from word to word.
        starts: the first letters, and blanks, of the signs that begin with so many.
        others: tells whether a text has one of the other signs; None where there are none.
        worth: as how many signs it counts.
    """

    pattern: re.Pattern[str]
    quick: re.Pattern[str]
    starts: frozenset[str]
    others: re.Pattern[str] | None
    worth: int = 1

    @classmethod
    def of(cls, signs: Sequence[str], worth: int = 1) -> _Thing:
        """Signs of scripts without blanks stand anywhere, others at the beginning of a word or behind such a script."""
        folded = [_folded(sign) for sign in signs]
        begun = rf"(?:(?<!\w)|(?={_NO_BLANKS})|(?<={_NO_BLANKS}))"
        # Most texts have none of the beginnings; what begins with a letter of a script without blanks is asked for only
        # where a text has one.
        each = [one for sign in folded for one in _choices(sign) if not _ANY_NO_BLANKS.match(one)]
        starts = {one: match[1] for one in each if (match := _BEGINS.match(one))}
        others = [one for one in each if one not in starts]
        pattern = re.compile(f"{begun}(?:{'|'.join(folded)})")
        quick, rest = (re.compile(f"[ {_BETWEEN}](?:{'|'.join(some)})") for some in (folded, others))
        return cls(pattern, quick, frozenset(starts.values()), rest if others else None, worth)

    def spoken_of(self, plain: _Plain) -> bool:
        """Whether a text has a sign."""
        if not plain.blanks:
            return self.pattern.search(plain.text) is not None
        if not self.starts.isdisjoint(plain.starts):
            return self.quick.search(f" {plain.text}") is not None
        return self.others is not None and self.others.search(f" {plain.text}") is not None


class Notice(NamedTuple):
    """What kind of notice a text is, the words that show it, and how much of the text the signs of this kind are."""

    kind: str
    signs: tuple[str, ...]
    share: float


def notice_of(text: str, *, title: bool = False) -> Notice | None:
    """The kind of notice that a text is, or None where it is none."""
    known = _Plain.of(text)
    plain = known.text
    size = len(plain.split())
    if not size or size > _LONGEST:
        return None
    found: dict[str, list[str]] = {}
    worth: Counter[str] = Counter()
    covered: dict[str, set[int]] = {}
    (spoken_to,), *kinds = _signs()[_ADDRESS], *(item for item in _signs().items() if item[0] != _ADDRESS)
    for kind, things in kinds:
        for thing in things:
            if thing.spoken_of(known):
                worth[kind] += thing.worth
                hits = list(thing.pattern.finditer(plain))
                found.setdefault(kind, []).append(plain[hits[0].start() : _end(plain, hits[0].end())])
                # A sign is the beginning of a word: the whole of it counts.
                places = (place for hit in hits for place in range(hit.start(), _end(plain, hit.end())))
                covered.setdefault(kind, set()).update(places)
    signs = sum(map(len, found.values()))
    if not signs:
        return None
    share = len(set().union(*covered.values())) / len(plain)
    spoken = spoken_to.spoken_of(known)
    enough = (worth.total() + spoken >= _FEWEST_SIGNS and share >= _SHARE) or (
        signs >= _MANY and share >= _SHARE_OF_MANY
    )
    brief = title and size <= _BRIEF and share >= _MOST
    if not (enough or brief):
        return None
    kind = max(found, key=worth.__getitem__)
    return Notice(kind, tuple(dict.fromkeys(found[kind])), len(covered[kind]) / len(plain))


def speaks_as_notice(text: str) -> bool:
    """Whether a text speaks to the reader, or of anything that notices speak of; alone that is no sign of a notice."""
    plain = _Plain.of(text)
    return any(thing.spoken_of(plain) for things in _signs().values() for thing in things)


def _choices(sign: str) -> list[str]:
    """A sign without the choices among its first letters: one for each of them."""
    found = _CHOICE.fullmatch(sign)
    if found is None or len(found[1]) >= _START:
        return [sign]
    options = [*found[2].split("|"), *([""] if found[3] else [])]
    return [one for option in options for one in _choices(f"{found[1]}{option}{found[4]}")]


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
    return {
        kind: tuple(_Thing.of(some, 2 if name == _PLAIN else 1) for name, some in things.items())
        for kind, things in listed.items()
    }

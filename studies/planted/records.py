"""A second family of faults, apart from the first: records of one title and one abstract, as other crawls show them.

Pages of `faults.py` hold many abstracts, so that a loss is a part of a page. Here a document is one record, as in most
collections of abstracts: what a fault leaves is seldom more than the title. The wordings of notices are collected from
public projects, see notices.toml; those of the development draws and those of the reported one have no project in
common. Kinds in `UNSEEN` are planted in reported draws only. The draw `third` has wordings of further projects and the
kinds of `THIRD`: some of them had been tried on Vaswani when the rule was made that names the damaged version (another
record or a text from outside under a kept title, related titles, teasers, menus), the others had not. The draw `fourth`
has the kinds and shares of `third`, with wordings of a collector who had not read the rules, and with harmless changes
by other templates: other pairs of phrases, sentences moved as a block, other menus, comments, citations and dates.
The draw `sixth` is for emptied pages, pages of which a part is left, maintenance and pages that need scripts.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from planted.abstracts import Abstract
from planted.faults import Half, Struck
from planted.pages import Body, texts

#: Kinds of faults with their shares of the judged records, and the reason that a reader of the tutorial would give.
FAULTS: Final[dict[str, tuple[float, str]]] = {
    "cut to a fifth": (0.06, "truncated"),
    "cut in the middle": (0.04, "content missing"),
    "similar record": (0.06, "redirect"),
    "other record": (0.03, "redirect"),
    "paywall": (0.05, "error page"),
    "paywall behind a teaser": (0.02, "error page"),
    "metered": (0.02, "error page"),
    "login": (0.04, "error page"),
    "soft error": (0.05, "error page"),
    "two words": (0.02, "empty"),
}
UNSEEN: Final[dict[str, tuple[float, str]]] = {
    "consent wall": (0.03, "error page"),
    "removed": (0.03, "error page"),
    "robot check": (0.02, "error page"),
    "maintenance": (0.02, "error page"),
    "only the end": (0.03, "content missing"),
    "list of titles": (0.02, "redirect"),
    "another text after the first lines": (0.02, "content changed"),
}
HARMLESS: Final[dict[str, float]] = {
    "reworded": 0.1,
    "sentences in another order": 0.05,
    "comments below": 0.05,
    "cookie banner above": 0.05,
    "other typography": 0.05,
    "last words gone": 0.03,
}
THIRD: Final[dict[str, tuple[float, str]]] = {
    "parked": (0.02, "error page"),
    "record of another collection": (0.03, "redirect"),
    "front page": (0.02, "redirect"),
    "first sentence": (0.03, "truncated"),
    "other record under the kept title": (0.03, "redirect"),
}
THIRD_HARMLESS: Final[dict[str, float]] = {
    "related titles below": 0.03,
    "teasers below": 0.03,
    "menu above": 0.03,
    "citation below": 0.03,
    "licence below": 0.03,
    "hyphenated": 0.03,
}
#: Kinds of the draw `sixth`, which has those of the others that need no further wordings, too.
SIXTH: Final[dict[str, tuple[float, str]]] = {
    "emptied": (0.08, "empty"),
    "emptied under its title": (0.05, "empty"),
    "first part": (0.08, "truncated"),
    "first part without its title": (0.05, "truncated"),
    "last part": (0.06, "content missing"),
    "script": (0.06, "error page"),
    "maintenance": (0.07, "error page"),
}
#: Draws that have these kinds, too.
FURTHER: Final[tuple[Half, ...]] = ("third", "fourth", "fifth", "sixth")
#: The shares of the other kinds beside them.
_BESIDE_HARMFUL: Final = 0.7
_BESIDE_HARMLESS: Final = 0.6
_BESIDE_SIXTH: Final = 0.2
#: These keep the title, or a part of the text: what has a title only loses nothing by them.
_NEED_TEXT: Final = frozenset(
    {
        "cut to a fifth",
        "cut in the middle",
        "paywall",
        "paywall behind a teaser",
        "metered",
        "two words",
        "only the end",
        "another text after the first lines",
        "sentences in another order",
        "last words gone",
        "first sentence",
        "other record under the kept title",
        "hyphenated",
        "emptied under its title",
        "first part",
        "first part without its title",
        "last part",
    }
)
_ENOUGH: Final = 25
_NOTICES: Final = {
    "paywall": "paywall",
    "paywall behind a teaser": "paywall",
    "metered": "metered",
    "login": "login",
    "soft error": "error",
    "consent wall": "consent",
    "removed": "removed",
    "robot check": "robot",
    "maintenance": "maintenance",
    "parked": "parked",
    "script": "script",
}


@cache
def notices() -> dict[str, Any]:
    """The contents of notices.toml."""
    return tomllib.loads(Path(__file__).with_name("notices.toml").read_text(encoding="utf-8"))


def reason_of(fault: str) -> str:
    """The reason that a fault should be given; empty for what does no harm."""
    return {**FAULTS, **UNSEEN, **THIRD, **SIXTH}.get(fault, (0.0, ""))[1]


def kinds(half: Half) -> dict[str, float]:
    """The shares of all kinds of a draw."""
    harmful = FAULTS if half == "development" else {**FAULTS, **UNSEEN}
    shares = {name: share for name, (share, _) in harmful.items()}
    if half not in FURTHER:
        return {**shares, **HARMLESS}
    new = {name: share for name, (share, _) in THIRD.items()}
    harmless = {name: share * _BESIDE_HARMLESS for name, share in HARMLESS.items()}
    if half == "sixth":
        worded = {*_NOTICES} - {"soft error"}
        others = {name: share * _BESIDE_SIXTH for name, share in {**shares, **new}.items() if name not in worded}
        return {**{name: share for name, (share, _) in SIXTH.items()}, **others, **harmless, **THIRD_HARMLESS}
    return {**{name: share * _BESIDE_HARMFUL for name, share in shares.items()}, **new, **harmless, **THIRD_HARMLESS}


def fits(record: Abstract, fault: str) -> bool:
    """Whether a record can have a fault: what keeps the title needs a text to lose."""
    return fault not in _NEED_TEXT or len(" ".join(record.sentences).split()) >= _ENOUGH


@dataclass
class Records:
    """Strikes records.

    Attributes:
        half: whose wordings are used.
        near: a record like this one that is relevant to none of its topics.
        spare: any record that is relevant to nothing.
        outside: likewise, of another collection.
    """

    half: Half
    near: Callable[[Abstract, random.Random], Abstract]
    spare: Callable[[random.Random], Abstract]
    outside: Callable[[random.Random], Abstract]

    def strike(self, record: Abstract, fault: str, draw: random.Random) -> Struck:
        """The record with a fault of that name, or, for "none", as another crawl found it."""
        if fault in _NOTICES:
            return Struck(self._notice(record, fault, draw), True)
        made: dict[str, Callable[[Abstract, random.Random], Body]] = {
            "cut to a fifth": self._fifth,
            "cut in the middle": self._middle,
            "only the end": self._end,
            "similar record": lambda one, draw: self._plain(self.near(one, draw)),
            "other record": lambda _, draw: self._plain(self.spare(draw)),
            "two words": lambda one, draw: Body(one.title, draw.choice(notices()[self.half]["two_words"])),
            "list of titles": self._list,
            "another text after the first lines": self._another,
            "record of another collection": lambda _, draw: self._plain(self.outside(draw)),
            "front page": self._front,
            "emptied": lambda _, draw: Body("", draw.choice(notices()[self.half]["emptied"])),
            "emptied under its title": lambda one, draw: Body(one.title, draw.choice(notices()[self.half]["emptied"])),
            "first part": lambda one, draw: Body(one.title, self._part(one, draw, 0)),
            "first part without its title": lambda one, draw: Body("", self._part(one, draw, 0)),
            "last part": lambda one, draw: Body(one.title, self._part(one, draw, 1)),
            "first sentence": lambda one, draw: Body(one.title, one.sentences[0] + draw.choice(["", " Read on"])),
            "other record under the kept title": lambda one, draw: Body(one.title, self._text(draw)),
        }
        if fault in made:
            return Struck(made[fault](record, draw), True)
        return Struck(self._harmless(record, fault, draw), False)

    def _plain(self, record: Abstract) -> Body:
        return Body(record.title, " ".join(record.sentences))

    def _notice(self, record: Abstract, fault: str, draw: random.Random) -> Body:
        title, text = draw.choice(notices()[self.half][_NOTICES[fault]])
        words = self._plain(record).text.split()
        if fault == "paywall behind a teaser":
            return Body(record.title, f"{' '.join(words[: len(words) // 5])} … {title}. {text}")
        if fault in ("paywall", "metered"):
            return Body(record.title, f"{title}. {text}")
        around = draw.choice(notices()[self.half]["around"]) if fault == "soft error" else ""
        return Body(title, f"{around}\n{text}".strip())

    def _fifth(self, record: Abstract, draw: random.Random) -> Body:
        words = self._plain(record).text.split()
        return Body(record.title, " ".join(words[: len(words) // 5]) + draw.choice(["", "…", " [more]"]))

    def _part(self, record: Abstract, draw: random.Random, side: int) -> str:
        """From a twentieth to two fifths of the words at one end."""
        words = self._plain(record).text.split()
        size = max(3, round(draw.uniform(0.05, 0.4) * len(words)))
        return " ".join((words[:size], words[-size:])[side])

    def _middle(self, record: Abstract, draw: random.Random) -> Body:
        words = self._plain(record).text.split()
        start, end = round(0.12 * len(words)), round(draw.uniform(0.8, 0.9) * len(words))
        return Body(record.title, " ".join([*words[:start], *words[end:]]))

    def _end(self, record: Abstract, draw: random.Random) -> Body:
        words = self._plain(record).text.split()
        return Body(record.title, " ".join(words[-round(draw.uniform(0.15, 0.25) * len(words)) :]))

    def _list(self, record: Abstract, draw: random.Random) -> Body:
        titles = [self.spare(draw).title for _ in range(draw.randint(6, 12))]
        return Body(draw.choice(notices()[self.half]["lists"]), "\n".join(titles))

    def _front(self, record: Abstract, draw: random.Random) -> Body:
        return Body(draw.choice(notices()[self.half]["front"]), "\n".join(self._teaser(draw) for _ in range(4)))

    def _teaser(self, draw: random.Random) -> str:
        one = self.spare(draw)
        return " ".join(f"{one.title}. {' '.join(one.sentences)}".split()[:25]) + " …"

    def _text(self, draw: random.Random) -> str:
        one = next(one for one in iter(lambda: self.spare(draw), None) if one.sentences)
        return " ".join(one.sentences)

    def _another(self, record: Abstract, draw: random.Random) -> Body:
        words = self._plain(record).text.split()
        other = self.spare(draw)
        return Body(record.title, f"{' '.join(words[: len(words) // 5])} {other.title}. {' '.join(other.sentences)}")

    def _moved(self, sentences: tuple[str, ...], draw: random.Random) -> list[str]:
        if self.half != "fourth" or len(sentences) < 2:
            return draw.sample(sentences, len(sentences))
        start = draw.randrange(1, len(sentences))
        return [*sentences[start:], *sentences[:start]]

    def _harmless(self, record: Abstract, fault: str, draw: random.Random) -> Body:
        words = notices()[self.half]
        banner, footer, comments = draw.choice(words["banners"]), draw.choice(words["footers"]), words["comments"]
        title, text = self._plain(record).title, self._plain(record).text
        cut = text.split()[: -max(1, len(text.split()) // 10)]
        plain = re.sub(r"-", "\u2010", text.replace('"', "\u201d")).replace(". ", ".  ")
        return {
            "reworded": lambda: Body(title, _reworded(text, words.get("rewordings"))),
            "sentences in another order": lambda: Body(title, " ".join(self._moved(record.sentences, draw))),
            "comments below": lambda: Body(title, "\n\n".join([text, *draw.sample(comments, 3)])),
            "cookie banner above": lambda: Body(title, f"{banner}\n\n{text}"),
            "other typography": lambda: Body(title.upper(), plain),
            "last words gone": lambda: Body(title, " ".join(cut)),
            "none": lambda: Body(title, f"{text}\n{footer}"),
            "related titles below": lambda: Body(title, "\n".join([text, *(self.spare(draw).title for _ in range(5))])),
            "teasers below": lambda: Body(title, "\n".join([text, *(self._teaser(draw) for _ in range(3))])),
            "menu above": lambda: Body(title, f"{draw.choice(words['menus'])}\n{text}"),
            "citation below": lambda: Body(
                title, f"{text}\n{draw.choice(words['cite']).format(title=title, number=8)}"
            ),
            "licence below": lambda: Body(title, f"{text}\n\n{draw.choice(words['licence'])}"),
            "hyphenated": lambda: Body(title, _hyphenated(text, draw)),
        }[fault]()


def _reworded(text: str, instead: list[list[str]] | None) -> str:
    pairs = dict(instead or texts()["rewordings"]["pairs"])
    phrase = re.compile(rf"\b({'|'.join(sorted(map(re.escape, pairs), key=len, reverse=True))})\b", re.IGNORECASE)
    return phrase.sub(lambda match: pairs[match[0].lower()], text)


def _hyphenated(text: str, draw: random.Random) -> str:
    """Some of the long words broken at the end of a line, as in a text that was taken from a PDF."""
    words = [
        f"{word[: len(word) // 2]}-\n{word[len(word) // 2 :]}" if len(word) > 8 and draw.random() < 0.5 else word
        for word in text.split()
    ]
    return " ".join(words)

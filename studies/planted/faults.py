"""What may have become of a page by the other crawl."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from planted.abstracts import Abstract
from planted.pages import Body, Page, dressed, section_text, texts

#: Whose wordings are used; there are three more parts for records alone, see notices.toml.
Half = Literal["development", "report", "third", "fourth", "fifth", "sixth"]

#: Share of the judged pages by fault; the rest changes harmlessly.
SHARES = {
    "error page": 0.03,
    "other document, far": 0.025,
    "other document, near": 0.025,
    "truncated": 0.08,
    "boilerplate": 0.025,
    "empty": 0.01,
    "content missing": 0.025,
    "content changed": 0.03,
    "reworded": 0.15,
}
#: Faults that lose the relevant abstract always; "truncated" does where it stood behind the cut.
LOSES = (
    "error page",
    "other document, far",
    "other document, near",
    "boilerplate",
    "empty",
    "content missing",
    "content changed",
)


class Struck(NamedTuple):
    """A page after a fault, and whether the relevant abstract is lost."""

    body: Body
    harmful: bool


@dataclass
class Faults:
    """Strikes pages.

    Attributes:
        half: whose texts are used for error pages, boilerplate and notices.
        far: any page that takes the place of another.
        near: for a relevant abstract, one like it that no topic of it is judged relevant to.
        spare: gives abstracts that are relevant to nothing.
    """

    half: Half
    far: Callable[[random.Random], Page]
    near: Callable[[Page, random.Random], Page]
    spare: Callable[[random.Random], Abstract]
    _phrases: dict[str, str] = field(init=False)
    _phrase: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        self._phrases = dict(texts()["rewordings"]["pairs"])
        alternatives = "|".join(sorted(map(re.escape, self._phrases), key=len, reverse=True))
        self._phrase = re.compile(rf"\b({alternatives})\b", re.IGNORECASE)

    def strike(self, page: Page, fault: str, draw: random.Random) -> Struck:
        """The page with a fault of that name, or, for "none", as another crawl found it."""
        harmful = fault in LOSES
        if fault == "truncated":
            return self._truncated(page, draw)
        made: dict[str, Callable[[Page, random.Random], Body]] = {
            "none": lambda page, draw: dressed(page, _sections(page), draw),
            "reworded": lambda page, draw: dressed(page, [self._reworded(one) for one in _sections(page)], draw),
            "error page": self._error,
            "other document, far": lambda _, draw: _whole(self.far(draw), draw),
            "other document, near": lambda page, draw: _whole(self.near(page, draw), draw),
            "boilerplate": self._boilerplate,
            "empty": lambda page, draw: Body(page.title if draw.random() < 0.5 else "", ""),
            "content missing": self._missing,
            "content changed": self._changed,
        }
        return Struck(made[fault](page, draw), harmful)

    def _error(self, page: Page, draw: random.Random) -> Body:
        title, text = draw.choice(texts()["errors"][self.half])
        around = self._lines(page, draw, 2) if draw.random() < 0.5 else []
        return Body(page.filled(title), "\n".join([*around[:1], page.filled(text), *around[1:]]))

    def _boilerplate(self, page: Page, draw: random.Random) -> Body:
        return Body(page.name, "\n".join(self._lines(page, draw, draw.randint(4, 8))))

    def _lines(self, page: Page, draw: random.Random, count: int) -> list[str]:
        return [page.filled(line) for line in draw.sample(texts()["boilerplate"][self.half], count)]

    def _missing(self, page: Page, draw: random.Random) -> Body:
        sections = _sections(page)
        sections[page.relevant] = draw.choice(texts()["notices"][self.half])
        return dressed(page, sections, draw)

    def _changed(self, page: Page, draw: random.Random) -> Body:
        sections = _sections(page)
        others = [place for place in range(len(sections)) if place != page.relevant]
        also = draw.sample(others, draw.randint(len(sections) // 4, len(sections) // 2))
        for place in (page.relevant, *also):
            sections[place] = section_text(self.spare(draw))
        return dressed(page, sections, draw)

    def _truncated(self, page: Page, draw: random.Random) -> Struck:
        sections = _sections(page)
        # The cut lies within an abstract that is not the relevant one, so that this one is there or is not.
        place = draw.choice([place for place in range(len(sections)) if place != page.relevant])
        words = sections[place].split()
        kept = [*sections[:place], " ".join(words[: draw.randrange(len(words))])]
        body = dressed(page, kept, draw)
        text = body.text.rpartition("\n")[0].rstrip() + draw.choice(["", " …", "...", " Read more"])
        return Struck(Body(body.title, text), page.relevant > place)

    def _reworded(self, text: str) -> str:
        return self._phrase.sub(self._instead, text)

    def _instead(self, match: re.Match[str]) -> str:
        new = self._phrases[match[0].lower()]
        return new[:1].upper() + new[1:] if match[0][:1].isupper() else new


def _whole(page: Page, draw: random.Random) -> Body:
    return dressed(page, _sections(page), draw)


def _sections(page: Page) -> list[str]:
    return [section_text(section) for section in page.sections]


def assigned(keys: Sequence[int], shares: dict[str, float], draw: random.Random) -> dict[int, str]:
    """A fault for some of the pages, as many as the shares say; "none" for the rest."""
    shuffled = draw.sample(list(keys), len(keys))
    faults: dict[int, str] = {}
    for fault, share in shares.items():
        taken = shuffled[len(faults) : len(faults) + round(share * len(keys))]
        faults.update(dict.fromkeys(taken, fault))
    return {key: faults.get(key, "none") for key in keys}

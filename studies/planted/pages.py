"""Pages: a site, an address, and some abstracts between navigation and footer."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from planted.abstracts import Abstract, Abstracts

SECTIONS = range(5, 11)


@cache
def texts() -> dict[str, Any]:
    """The contents of texts.toml."""
    return tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Page:
    """One page before it is written.

    Attributes:
        key: its number, equal in both versions.
        url: its address in the first version.
        host: of that address.
        name: the site's.
        volume: of the imagined periodical; stands in title and navigation.
        number: likewise.
        sections: its abstracts.
        relevant: the place of the relevant one among them; -1 where there is none.
    """

    key: int
    url: str
    host: str
    name: str
    volume: int
    number: int
    sections: tuple[Abstract, ...]
    relevant: int

    @property
    def title(self) -> str:
        """The page's title, which says nothing of its abstracts."""
        return f"{self.name}, volume {self.volume}, number {self.number}"

    def filled(self, pattern: str, **more: object) -> str:
        """A pattern of texts.toml with what the page knows."""
        known = {"host": self.host, "name": self.name, "volume": self.volume, "number": self.number}
        return pattern.format(**known, **more)


@dataclass(frozen=True)
class Body:
    """A page as it is written in one version: title and text."""

    title: str
    text: str


def make_pages(source: Abstracts, unjudged: int, seed: int) -> Iterator[Page]:
    """A page around each relevant abstract, and further ones; the other abstracts of a page are relevant to nothing."""
    draw = random.Random(f"{seed}:pages")
    deck = _deck([one for one in source.abstracts.values() if one.doc_id not in source.relevant], draw)
    judged = [source.abstracts[doc_id] for doc_id in source.relevant]
    for key, centre in enumerate([*judged, *([None] * unjudged)]):
        size = draw.choice(SECTIONS)
        others = [next(deck) for _ in range(size - (centre is not None))]
        place = -1 if centre is None else draw.randrange(size)
        sections = others if centre is None else [*others[:place], centre, *others[place:]]
        yield _placed(key, tuple(sections), place, draw)


def section_text(section: Abstract) -> str:
    """An abstract on a page."""
    return f"{section.title}. {' '.join(section.sentences)}"


def dressed(page: Page, sections: Sequence[str], draw: random.Random) -> Body:
    """Sections between navigation and footer, as one crawl found them: dates, counters and blanks differ by crawl."""
    site = texts()["sites"]
    head = page.filled(draw.choice(site["navigation"]))
    year, views = draw.randint(2015, 2021), f"{draw.randint(100, 99999):,}"
    foot = page.filled(draw.choice(site["footers"]), year=year, views=views)
    gap = draw.choice(["\n\n", "\n", " \n\n ", "\n\n\n"])
    return Body(page.title, gap.join([head, *sections, foot]))


def _placed(key: int, sections: tuple[Abstract, ...], relevant: int, draw: random.Random) -> Page:
    name, host, pattern = draw.choice(texts()["sites"]["names"])
    slug = "-".join(re.findall(r"[a-z]+", sections[0].title.lower())[: draw.randint(2, 5)]) or "item"
    volume, number = draw.randint(1, 40), draw.randint(1, 12)
    path = pattern.format(volume=volume, number=number, item=10_000 + key, slug=f"{slug}-{key}")
    return Page(key, f"http://www.{host}{path}", host, name, volume, number, sections, relevant)


def _deck(cards: list[Abstract], draw: random.Random) -> Iterator[Abstract]:
    while True:
        draw.shuffle(cards)
        yield from cards


def other_address(url: str, draw: random.Random) -> str:
    """The same address as another crawl wrote it."""
    changed = url.replace("http://", "https://") if draw.random() < 0.5 else url
    if draw.random() < 0.3:
        changed = changed.replace("www.", "WWW.")
    if draw.random() < 0.2:
        changed += "#top"
    if draw.random() < 0.2 and changed.count("/") > 3 and "?" not in changed and "#" not in changed:
        changed += "/"
    return changed

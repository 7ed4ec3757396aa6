"""Texts of strangers as safe markup: nothing of theirs is live or goes unseen, and differing words are marked."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from truerank.judging.items import Item, Text
from truerank.judging.schemes import View
from truerank.reports.tables import escape_html
from truerank.text.differences import MarkedPiece, mark

#: Marks of writing direction and blanks of no width: they change what a reader sees without being seen.
_INVISIBLE: Final = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
#: Longer texts are shown without marks: nobody compares them word by word, and marking them would take seconds.
_LONGEST_MARKED: Final = 200_000


@dataclass(frozen=True)
class ShownText:
    """A text with its heading; `body` is safe markup."""

    name: str
    body: Markup
    id: str = ""
    url: str = ""


@dataclass(frozen=True)
class Shown:
    """An item as a page shows it.

    Attributes:
        topic: what the item is judged against: query or title, description, narrative, variant, as far as there.
        texts: what is judged.
        marked: whether differing words are marked.
    """

    topic: tuple[ShownText, ...]
    texts: tuple[ShownText, ...]
    marked: bool


def safe(text: object) -> Markup:
    """A text as markup that shows it: escaped, and invisible signs as their code points."""
    return Markup(_INVISIBLE.sub(_sign, escape_html(str(text))))


@functools.lru_cache(maxsize=512)
def shown_item(item: Item, view: View) -> Shown:
    """An item as the scheme lays it out."""
    bodies: dict[str, Markup] = {}
    texts = [(text, safe(text.text)) for text in item.texts]
    marked = sum(len(text.text) for text in item.texts) <= _LONGEST_MARKED
    if view == "pair" and marked:
        bodies, texts = _pair(item)
    elif view == "versions" and marked and len(item.texts) > 1:
        texts = [(text, _pieces(mark(_others(item, text), text.text).query)) for text in item.texts]
    else:
        marked = False
    asked = "Title" if view == "pair" else "Query"
    topic = [
        ShownText(name, bodies.get(field, safe(getattr(item, field))))
        for field, name in (
            ("title", asked), ("variant", "Variant"), ("description", "Description"), ("narrative", "Narrative")
        )
        if getattr(item, field).strip()
    ]  # fmt: skip
    return Shown(
        tuple(topic),
        tuple(ShownText(_heading(text, view), body, text.id, text.url) for text, body in texts),
        marked,
    )


def _pair(item: Item) -> tuple[dict[str, Markup], list[tuple[Text, Markup]]]:
    """Title and variant against what is judged, and that against both; without them, two texts against each other."""
    if not item.texts:
        return {}, []
    first = item.texts[0]
    fields = {name: getattr(item, name) for name in ("title", "variant") if getattr(item, name).strip()}
    if fields:
        bodies = {name: _pieces(mark(text, first.text).topic) for name, text in fields.items()}
        reference = " \n ".join(fields.values())
        return bodies, [(text, _pieces(mark(reference, text.text).query)) for text in item.texts]
    if len(item.texts) == 1:
        return {}, [(first, safe(first.text))]
    return {}, [(text, _pieces(mark(_others(item, text), text.text).query)) for text in item.texts]


def _others(item: Item, text: Text) -> str:
    return " \n ".join(other.text for other in item.texts if other is not text)


def _heading(text: Text, view: View) -> str:
    if view == "versions" and re.fullmatch(r"V\d+", text.name):
        return f"Version {text.name[1:]}"
    return text.name[:1].upper() + text.name[1:]


def _pieces(pieces: Iterable[MarkedPiece]) -> Markup:
    parts = (
        safe(token) if status == "same" else Markup('<mark class="{}">{}</mark>').format(status, safe(token))
        for token, status in pieces
    )
    return Markup("").join(parts)


def _sign(match: re.Match[str]) -> str:
    return f'<span class="sign">U+{ord(match[0]):04X}</span>'

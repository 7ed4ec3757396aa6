"""What the templates are given: choices by group, lists of items, and how far everybody is."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

from truerank.judging.events import Disagreement, JudgingProgress, Standing
from truerank.judging.items import Item
from truerank.judging.schemes import Choice, Scheme
from truerank.judging.store import Store

#: The keys of the page itself, beside those of the scheme's choices.
PAGE_KEYS: Final = (
    (("Enter",), "confirm"),
    (("u",), "undo what you said last"),
    (("s",), "skip; then the number of the reason, and Enter"),
    (("c",), "write a comment"),
    (("n", "→"), "next item"),
    (("p", "←"), "previous item"),
    (("g",), "guideline"),
    (("h", "?"), "keys"),
    (("Esc",), "leave the comment, the reasons or this list"),
)
_LONGEST_EXCERPT: Final = 90


class ShownGroup(NamedTuple):
    """Choices under one heading; `field` is their name in the form, `alone` marks those that exclude all others."""

    title: str
    field: str
    exclusive: bool
    required: bool
    alone: bool
    choices: tuple[Choice, ...]


class ShownStanding(NamedTuple):
    """What one annotator says about an item."""

    annotator: str
    role: str
    kind: str
    text: str
    comment: str


class ListRow(NamedTuple):
    """An item in a list."""

    address: str
    place: int
    topic: str
    text: str
    said: tuple[str, ...]
    state: str


@dataclass(frozen=True)
class Person:
    """How far one annotator is."""

    name: str
    role: str
    progress: JudgingProgress
    settled: int
    pace: str

    @property
    def percent(self) -> int:
        """The share of the items that are labelled or skipped, rounded down."""
        return 100 * (self.progress.done + self.progress.skipped) // max(self.progress.total, 1)


def shown_groups(scheme: Scheme, item: Item) -> tuple[ShownGroup, ...]:
    """The choices of an item by group, then those that exclude every other.

    The optional group "variant" is left out where the item has no variant.
    """
    named = {group.name for group in scheme.groups}
    groups = [
        ShownGroup(group.title, f"label.{number}", group.exclusive, group.required, False, choices)
        for number, group in enumerate(scheme.groups)
        if (choices := tuple(choice for choice in scheme.choices if choice.group == group.name))
        and (group.required or group.name != "variant" or item.variant.strip())
    ]
    alone = tuple(choice for choice in scheme.choices if choice.group not in named)
    if alone:
        groups.append(ShownGroup("or", "label.alone", False, False, True, alone))
    return tuple(groups)


def counted(items: int) -> str:
    """A number of items in words: "1 item", "2,000 items"."""
    return f"{items:,} item{'s' * (items != 1)}"


def item_mark(item: Item) -> str:
    """What a form names its item by, so that an answer never lands on another one when the order of work changes."""
    return hashlib.sha256(item.item_id.encode("utf-8", "replace")).hexdigest()[:20]


def said_text(standing: Standing) -> str:
    """A standing in words."""
    if standing.kind == "skip":
        return f"skipped: {standing.reason}"
    return ", ".join(standing.labels)


def who_said_what(store: Store, item_id: str) -> tuple[ShownStanding, ...]:
    """Everybody's standing for an item; people first, then models, then the adjudication."""
    roles = {annotator.name: annotator.role for annotator in store.annotators()}
    rows = [
        ShownStanding(s.annotator, roles[s.annotator], s.kind, said_text(s), s.comment)
        for s in store.standing(item_id=item_id)
    ]
    return tuple(sorted(rows, key=lambda row: (row.kind == "adjudicate", row.role == "model", row.annotator)))


def own_rows(store: Store, annotator: str, first: int, last: int) -> tuple[ListRow, ...]:
    """An annotator's items in the order of work, from place `first` to `last`, counted from 1."""
    said: dict[str, Standing] = {}
    for standing in store.standing(annotator=annotator):
        if standing.kind != "adjudicate":
            said[standing.item_id] = standing
    rows = []
    for place, item_id in enumerate(store.assigned(annotator)[first - 1 : last], start=first):
        item, own = store.item(item_id), said.get(item_id)
        words = () if own is None else (said_text(own),)
        state = "open" if own is None else "skipped" if own.kind == "skip" else "labelled"
        rows.append(ListRow(f"/judge/{place}", place, item.topic_id, excerpt(item), words, state))
    return tuple(rows)


def adjudication_rows(
    store: Store, found: Sequence[Disagreement], places: Sequence[int], query: str
) -> tuple[ListRow, ...]:
    """Items on which annotators disagree, with who said what."""
    models = {annotator.name for annotator in store.annotators() if annotator.role == "model"}
    rows = []
    for one, place in zip(found, places, strict=True):
        item = store.item(one.item_id)
        said = tuple(
            f"{s.annotator}{' (model)' if s.annotator in models else ''}: {said_text(s)}" for s in one.standings
        )
        state = "open" if one.adjudicated is None else f"{said_text(one.adjudicated)} ({one.adjudicated.annotator})"
        rows.append(ListRow(f"/adjudicate/{place}{query}", place, item.topic_id, excerpt(item), said, state))
    return tuple(rows)


def people(store: Store) -> tuple[Person, ...]:
    """Everybody with their progress; people first, then adjudicators, then models, which are assigned nothing."""
    standings = store.standing()
    settled = Counter(standing.annotator for standing in standings if standing.kind == "adjudicate")
    times: dict[str, list[float]] = {}
    for standing in standings:
        if standing.kind == "label" and standing.seconds > 0:
            times.setdefault(standing.annotator, []).append(standing.seconds)
    rows = []
    for who in store.annotators():
        progress = store.progress(who.name)
        if who.role == "model" and not progress.total:
            kinds = Counter(standing.kind for standing in standings if standing.annotator == who.name)
            progress = JudgingProgress(kinds["label"], kinds["skip"], len(store.item_ids()))
        rows.append(Person(who.name, who.role, progress, settled[who.name], _pace(times.get(who.name, ()))))
    order = ("person", "adjudicator", "model")
    return tuple(sorted(rows, key=lambda row: (order.index(row.role), row.name)))


def excerpt(item: Item) -> str:
    """A few words that tell an item from others in a list: the query of a pair, else the title."""
    texts: Iterable[str] = (text.text for text in item.texts if text.name == "query")
    text = " ".join((next(iter(texts), "") or item.title or (item.texts[0].text if item.texts else "")).split())
    return text if len(text) <= _LONGEST_EXCERPT else text[: _LONGEST_EXCERPT - 1].rstrip() + "…"


def _pace(times: Sequence[float]) -> str:
    return f"{median(times):.0f}" if times else "–"

"""What is exported: every statement, the whole history, or one answer per item by a rule that is named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from truerank.judging.events import Event, Kind, Role, Standing
from truerank.judging.items import Item
from truerank.judging.store import Store
from truerank.judging.votes import decide

Which = Literal["standing", "events", "adjudicated", "majority"]
LabelFormat = Literal["jsonl", "csv", "doccano", "labelstudio", "qrels"]

#: What each rule says, for reports.
RULES: Final = {
    "standing": "every annotator's standing labels",
    "events": "the whole history",
    "adjudicated": "the adjudication of an item; without one the labels on which all who labelled it agree",
    "majority": "the adjudication of an item; without one the labels of more than half of those who labelled it",
}


class Outgoing(NamedTuple):
    """One statement about an item, or none (`said` is None) for an item on which nobody said anything.

    `by` are those whose labels decided, where a rule made one answer of several.
    """

    item: Item
    said: Standing | Event | None
    role: Role = "person"
    about: str = ""
    by: tuple[str, ...] = ()


class StatementSelection(NamedTuple):
    """The statements to write, in the order of the items, and the items for which the rule gave no answer."""

    rows: tuple[Outgoing, ...]
    which: Which
    left_out: tuple[str, ...] = ()
    open: int = 0
    models: tuple[str, ...] = ()


def select(
    store: Store, which: Which = "standing", *, annotators: Sequence[str] = (), include_models: bool | None = None
) -> StatementSelection:
    """Chooses what to export."""
    people = {person.name: person for person in store.annotators()}
    for name in annotators:
        store.annotator(name)
    models = which in ("standing", "events") if include_models is None else include_models
    named = [people[name] for name in annotators] if annotators else list(people.values())
    chosen = {person.name: person for person in named if models or person.role != "model" or annotators}

    def outgoing(item: Item, said: Standing | Event) -> Outgoing:
        return Outgoing(item, said, people[said.annotator].role, people[said.annotator].about)

    if which == "events":
        events = [outgoing(store.item(e.item_id), e) for e in store.events() if e.annotator in chosen]
        return StatementSelection(tuple(events), which, models=_models(events))
    standing: defaultdict[str, list[Outgoing]] = defaultdict(list)
    for said in store.standing():
        if said.annotator in chosen:
            standing[said.item_id].append(outgoing(store.item(said.item_id), said))
    if which == "standing":
        every = [row for item in store.items() for row in standing.get(item.item_id, [Outgoing(item, None)])]
        return StatementSelection(
            tuple(every), which, open=sum(row.said is None for row in every), models=_models(every)
        )
    rows, left_out = [], []
    for item_id, said_of_item in standing.items():
        answer = _answer(said_of_item, which)
        if answer is not None:
            rows.append(answer)
        elif any(row.said is not None and row.said.kind == "label" for row in said_of_item):
            left_out.append(item_id)
    answered = {row.item.item_id for row in rows}
    open_items = sum(item_id not in answered for item_id in store.item_ids()) - len(left_out)
    return StatementSelection(tuple(rows), which, tuple(left_out), open_items, _models(rows))


def _answer(rows: Sequence[Outgoing], which: Which) -> Outgoing | None:
    """The one answer of an item; None where the rule gives none."""
    settled = [row for row in rows if row.said is not None and row.said.kind == "adjudicate"]
    if settled:
        last = max(settled, key=lambda row: row.said.at if row.said else "")
        return last._replace(by=_names([last]))
    said = [row for row in rows if row.said is not None and row.said.kind == "label"]
    heard = [(row.said.annotator, row.said.labels) for row in said if row.said]
    labels = decide(heard, "unanimous" if which == "adjudicated" else "majority")
    if labels is None:
        return None
    agreeing = [row for row in said if row.said is not None and row.said.labels == labels]
    role: Role = "model" if all(row.role == "model" for row in agreeing) else "person"
    first = agreeing[0].said
    if first is None:
        return None
    kind: Kind = "label"
    name = first.annotator if len(agreeing) == 1 and len(said) == 1 else which
    answer = Standing(first.item_id, name, kind, labels, "", "", max(_times(agreeing)), 0.0)
    return Outgoing(agreeing[0].item, answer, role, by=_names(agreeing))


def _names(rows: Iterable[Outgoing]) -> tuple[str, ...]:
    return tuple(
        f"{row.said.annotator} (model)" if row.role == "model" else row.said.annotator for row in rows if row.said
    )


def _times(rows: Iterable[Outgoing]) -> Iterator[str]:
    return (row.said.at for row in rows if row.said)


def _models(rows: Iterable[Outgoing]) -> tuple[str, ...]:
    names = {row.said.annotator for row in rows if row.said is not None and row.role == "model"}
    names |= {name.removesuffix(" (model)") for row in rows for name in row.by if name.endswith(" (model)")}
    return tuple(sorted(names))

"""What is exported, and how doccano and Label Studio want it: all statements, the history, or one answer per item."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, Literal, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from truerank.core.plain import plain
from truerank.judging.items import Event, Item, Role, Standing
from truerank.judging.ratings import decide
from truerank.judging.schemes import Choice, Scheme
from truerank.judging.store import Store

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
    item = agreeing[0].item
    name = heard[0][0] if len(said) == 1 else which
    at = max(row.said.at for row in agreeing if row.said)
    answer = Standing(item.item_id, name, "label", labels, "", "", at, 0.0)
    return Outgoing(item, answer, role, by=_names(agreeing))


def _names(rows: Iterable[Outgoing]) -> tuple[str, ...]:
    return tuple(
        f"{row.said.annotator} (model)" if row.role == "model" else row.said.annotator for row in rows if row.said
    )


def _models(rows: Iterable[Outgoing]) -> tuple[str, ...]:
    names = {row.said.annotator for row in rows if row.said is not None and row.role == "model"}
    names |= {name.removesuffix(" (model)") for row in rows for name in row.by if name.endswith(" (model)")}
    return tuple(sorted(names))


def item_record(item: Item) -> dict[str, Any]:
    """The item's columns; what is empty is left out."""
    query = next((text for text in item.texts if text.name == "query"), None)
    value: dict[str, Any] = {"item_id": item.item_id, "topic_id": item.topic_id}
    if query is not None:
        value |= {"query_id": query.id, "query_text": query.text}
    for name in ("title", "description", "narrative", "variant", "dataset", "stratum", "score", "probability"):
        value[name] = getattr(item, name)
    return {key: part for key, part in value.items() if part not in ("", None)}


def text_columns(item: Item) -> dict[str, str]:
    """The texts besides the query as columns: V1, V1_id, V1_url; passage_1, …; document with doc_id and url."""
    columns: dict[str, str] = {}
    for text in item.texts:
        if text.name == "query":
            continue
        name = text.name.replace(" ", "_")
        id_name, url_name = ("doc_id", "url") if name == "document" else (f"{name}_id", f"{name}_url")
        columns[name] = text.text
        columns |= {key: part for key, part in ((id_name, text.id), (url_name, text.url)) if part}
    return columns


def said_record(row: Outgoing) -> dict[str, Any]:
    """Who said what; for an item without a label only that it is open."""
    said = row.said
    if said is None:
        return {"kind": "open"}
    value: dict[str, Any] = {"annotator": said.annotator, "role": row.role, "about": row.about, "kind": said.kind}
    value |= {"labels": list(said.labels), "comment": said.comment, "reason": said.reason}
    value |= {"seconds": said.seconds, "at": said.at, "by": ", ".join(row.by)}
    if isinstance(said, Event):
        value |= {"number": said.number, "token": said.token, "undoes": said.undoes}
    return {key: part for key, part in value.items() if part not in ("", None, [], 0.0)}


#: Background colours of the groups in turn; labels that stand alone are red.
_COLOURS: Final = ("#8BC34A", "#FFEB3B", "#4FC3F7", "#CE93D8", "#FFB74D", "#A1887F")
_ALONE: Final = "#F44336"
_KEYS: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")


def doccano_lines(rows: Iterable[Outgoing]) -> Iterator[str]:
    """One line per statement: `text` and `label` as doccano reads them, everything else as its metadata."""
    for number, row in enumerate(rows, start=1):
        said, texts = said_record(row), row.item.texts
        # It shows one text: the query alone where it is all there is.
        shown = texts[0].text if len(texts) == 1 else "\n\n".join(f"[{text.name}] {text.text}" for text in texts)
        value: dict[str, Any] = {"id": number, "text": shown, "label": said.pop("labels", []), **item_record(row.item)}
        if len(texts) > 1:
            value["texts"] = plain(texts)
        if row.item.data:
            value["extra"] = dict(row.item.data)
        yield json.dumps({**value, **said}, ensure_ascii=False) + "\n"


def label_config(scheme: Scheme) -> str:
    """The labels of a scheme as doccano's label import reads them."""
    colours = {group.name: _COLOURS[place % len(_COLOURS)] for place, group in enumerate(scheme.groups)}
    labels = [
        {
            "id": number,
            "text": choice.name,
            "prefixKey": None,
            "suffixKey": choice.key if choice.key in _KEYS else None,
            "backgroundColor": _ALONE if choice.alone else colours.get(choice.group, _COLOURS[0]),
            "textColor": "#ffffff" if choice.alone else "#000000",
        }
        for number, choice in enumerate(scheme.choices, start=1)
    ]
    return json.dumps(labels, indent=2, ensure_ascii=False) + "\n"


_ALONE_THERE = "alone"
_NO_GROUP = "label"


def tasks(rows: Iterable[Outgoing], scheme: Scheme) -> Iterator[str]:
    """The lines of a JSON array of tasks, one task per item."""
    yield "[\n"
    for number, (_, group) in enumerate(groupby(rows, key=lambda row: row.item.item_id), start=1):
        yield ",\n" * (number > 1) + json.dumps(_task(number, list(group), scheme), ensure_ascii=False)
    yield "\n]\n"


def interface(scheme: Scheme, items: Iterable[Item]) -> str:
    """The labelling interface (XML) for a scheme."""
    # The columns of the texts, without those of their ids and addresses.
    shown = dict.fromkeys(
        name
        for item in items
        for name in ("query_text", *(text.name.replace(" ", "_") for text in item.texts if text.name != "query"))
    )
    whole = scheme.for_texts([name.replace("_", " ") for name in shown])
    lines = ["<View>", f"  <Header value={quoteattr(scheme.question)}/>"]
    for name in ("title", "description", "narrative", "variant"):
        lines.append(f'  <Text name="topic_{name}" value="${name}"/>')
    for name in shown:
        lines.append(f'  <Header value={quoteattr(name.replace("_", " "))} size="5"/>')
        lines.append(f'  <Text name="{name}" value="${name}"/>')
    for group in whole.groups:
        choices = [choice for choice in whole.choices if choice.group == group.name and not choice.alone]
        lines += _block(group.name or _NO_GROUP, group.title, choices, "single" if group.exclusive else "multiple")
    lines += _block(_ALONE_THERE, "", [choice for choice in whole.choices if choice.alone], "single")
    for name in ("comment", "reason"):
        lines.append(f'  <TextArea name="{name}" toName="query_text" placeholder="{name}" maxSubmissions="1"/>')
    return "\n".join([*lines, "</View>", ""])


def _block(name: str, title: str, choices: list[Choice], choice: str) -> list[str]:
    if not choices:
        return []
    head = [f'  <Header value={quoteattr(title)} size="5"/>'] if title else []
    lines = [*head, f'  <Choices name={quoteattr(name)} toName="query_text" choice="{choice}" showInline="true">']
    for entry in choices:
        hotkey = f" hotkey={quoteattr(entry.key)}" if entry.key else ""
        hint = f" hint={quoteattr(entry.help)}" if entry.help else ""
        lines.append(f"    <Choice value={quoteattr(entry.name)} html={quoteattr(escape(entry.text))}{hotkey}{hint}/>")
    return [*lines, "  </Choices>"]


def _task(number: int, rows: list[Outgoing], scheme: Scheme) -> dict[str, Any]:
    item = rows[0].item
    data = {**item_record(item), **text_columns(item), "texts": plain(item.texts)}
    if item.data:
        data["extra"] = dict(item.data)
    known = scheme.for_item(item)
    said = [(row.role == "model", _annotation(row, row.said, known)) for row in rows if row.said is not None]
    return {
        "id": number,
        "data": data,
        "annotations": [value for by_model, value in said if not by_model],
        "predictions": [value for by_model, value in said if by_model],
    }


def _annotation(row: Outgoing, said: Standing | Event, scheme: Scheme) -> dict[str, Any]:
    """A person's statement as an annotation, a model's as a prediction."""
    about = {"about": row.about} if row.about else {}
    if row.role == "model":
        value = {"model_version": said.annotator, "created_at": said.at, **({"meta": about} if about else {})}
        return {**value, "result": _results(said, scheme)}
    return {
        "completed_by": {"email": said.annotator},
        "was_cancelled": said.kind == "skip",
        "ground_truth": said.kind == "adjudicate",
        "created_at": said.at,
        "lead_time": said.seconds,
        "meta": {"role": row.role, **about},
        "result": _results(said, scheme),
    }


def _results(said: Standing | Event, scheme: Scheme) -> list[dict[str, Any]]:
    """The labels by the block they stand in, then comment and reason."""
    blocks: dict[str, list[str]] = {}
    for choice in scheme.choices:
        if choice.name in said.labels:
            blocks.setdefault(_ALONE_THERE if choice.alone else choice.group or _NO_GROUP, []).append(choice.name)
    results: list[dict[str, Any]] = [
        {"from_name": name, "to_name": "query_text", "type": "choices", "value": {"choices": labels}}
        for name, labels in blocks.items()
    ]
    return results + [
        {"from_name": name, "to_name": "query_text", "type": "textarea", "value": {"text": [text]}}
        for name, text in (("comment", said.comment), ("reason", said.reason))
        if text
    ]

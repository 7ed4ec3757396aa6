"""Label Studio: tasks with annotations, and the labelling interface that shows them.

People's statements are annotations, a model's are predictions, which is how Label Studio itself marks them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from truerank.judging.events import Event
from truerank.judging.exchange.flat import item_record, text_columns
from truerank.judging.exchange.outgoing import Outgoing
from truerank.judging.items import Item
from truerank.judging.schemes import Choice, Scheme

_ALONE = "alone"
_NO_GROUP = "label"


def tasks(rows: Iterable[Outgoing], scheme: Scheme) -> Iterator[str]:
    """The lines of a JSON array of tasks, one task per item."""
    yield "[\n"
    first = True
    for number, (_, group) in enumerate(groupby(rows, key=lambda row: row.item.item_id), start=1):
        task = _task(number, list(group), scheme)
        yield ("" if first else ",\n") + json.dumps(task, ensure_ascii=False)
        first = False
    yield "\n]\n"


def interface(scheme: Scheme, items: Iterable[Item]) -> str:
    """The labelling interface (XML) for a scheme."""
    shown = dict.fromkeys(name for item in items for name in ("query_text", *_columns(item)))
    longest = [name.replace("_", " ") for name in shown]
    whole = scheme.for_texts(longest)
    lines = ["<View>", f"  <Header value={quoteattr(scheme.question)}/>"]
    for name in ("title", "description", "narrative", "variant"):
        lines.append(f'  <Text name="topic_{name}" value="${name}"/>')
    for name in shown:
        lines.append(f'  <Header value={quoteattr(name.replace("_", " "))} size="5"/>')
        lines.append(f'  <Text name="{name}" value="${name}"/>')
    for group in whole.groups:
        choices = [choice for choice in whole.choices if choice.group == group.name and not choice.alone]
        lines += _block(group.name or _NO_GROUP, group.title, choices, "single" if group.exclusive else "multiple")
    lines += _block(_ALONE, "", [choice for choice in whole.choices if choice.alone], "single")
    for name in ("comment", "reason"):
        lines.append(f'  <TextArea name="{name}" toName="query_text" placeholder="{name}" maxSubmissions="1"/>')
    return "\n".join([*lines, "</View>", ""])


def _columns(item: Item) -> list[str]:
    """The columns of the texts, without those of their ids and addresses."""
    return [text.name.replace(" ", "_") for text in item.texts if text.name != "query"]


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
    texts = [{"name": text.name, "text": text.text, "id": text.id, "url": text.url} for text in item.texts]
    data = {**item_record(item), **text_columns(item), "texts": texts}
    if item.data:
        data["extra"] = dict(item.data)
    known = scheme.for_item(item)
    return {
        "id": number,
        "data": data,
        "annotations": [_annotation(row, known) for row in rows if row.said is not None and row.role != "model"],
        "predictions": [_prediction(row, known) for row in rows if row.said is not None and row.role == "model"],
    }


def _annotation(row: Outgoing, scheme: Scheme) -> dict[str, Any]:
    said = row.said
    if said is None or isinstance(said, Event):
        return {}
    return {
        "completed_by": {"email": said.annotator},
        "was_cancelled": said.kind == "skip",
        "ground_truth": said.kind == "adjudicate",
        "created_at": said.at,
        "lead_time": said.seconds,
        "meta": {"role": row.role, **({"about": row.about} if row.about else {})},
        "result": _results(row, scheme),
    }


def _prediction(row: Outgoing, scheme: Scheme) -> dict[str, Any]:
    said = row.said
    if said is None:
        return {}
    return {
        "model_version": said.annotator,
        "created_at": said.at,
        **({"meta": {"about": row.about}} if row.about else {}),
        "result": _results(row, scheme),
    }


def _results(row: Outgoing, scheme: Scheme) -> list[dict[str, Any]]:
    """The labels by the block they stand in, then comment and reason."""
    said = row.said
    if said is None:
        return []
    blocks: dict[str, list[str]] = {}
    for choice in scheme.choices:
        if choice.name in said.labels:
            blocks.setdefault(_ALONE if choice.alone else choice.group or _NO_GROUP, []).append(choice.name)
    results: list[dict[str, Any]] = [
        {"from_name": name, "to_name": "query_text", "type": "choices", "value": {"choices": labels}}
        for name, labels in blocks.items()
    ]
    written = (("comment", said.comment), ("reason", said.reason))
    return results + [_written(name, text) for name, text in written if text]


def _written(name: str, text: str) -> dict[str, Any]:
    return {"from_name": name, "to_name": "query_text", "type": "textarea", "value": {"text": [text]}}

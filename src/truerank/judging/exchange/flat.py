"""An item and what was said of it as one flat record: the columns of JSONL, CSV, doccano and Label Studio alike."""

from __future__ import annotations

import json
from typing import Any

from truerank.judging.events import Event
from truerank.judging.exchange.outgoing import Outgoing
from truerank.judging.items import Item


def item_record(item: Item) -> dict[str, Any]:
    """The item's columns; what is empty is left out."""
    query = next((text for text in item.texts if text.name == "query"), None)
    value: dict[str, Any] = {"item_id": item.item_id, "topic_id": item.topic_id}
    if query is not None:
        value |= {"query_id": query.id, "query_text": query.text}
    for name in ("title", "description", "narrative", "variant", "dataset", "stratum", "score"):
        value[name] = getattr(item, name)
    value["probability"] = item.probability
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


def shown_text(item: Item) -> str:
    """The item's texts in one, for tools that show one text: the query alone where it is all there is."""
    if len(item.texts) == 1:
        return item.texts[0].text
    return "\n\n".join(f"[{text.name}] {text.text}" for text in item.texts)


def extra_text(item: Item) -> str:
    """The item's further data as JSON text, for a cell of a table."""
    return json.dumps(dict(item.data), ensure_ascii=False) if item.data else ""

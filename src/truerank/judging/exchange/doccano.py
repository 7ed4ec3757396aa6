"""doccano: one JSON line per statement, and the labels with their keys and colours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from truerank.judging.exchange.flat import item_record, said_record, shown_text
from truerank.judging.exchange.outgoing import Outgoing
from truerank.judging.schemes import Scheme

#: Background colours of the groups in turn; labels that stand alone are red.
_COLOURS: Final = ("#8BC34A", "#FFEB3B", "#4FC3F7", "#CE93D8", "#FFB74D", "#A1887F")
_ALONE: Final = "#F44336"
_KEYS: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")


def lines(rows: Iterable[Outgoing]) -> Iterator[str]:
    """One line per statement: `text` and `label` as doccano reads them, everything else as its metadata."""
    for number, row in enumerate(rows, start=1):
        said = said_record(row)
        labels = said.pop("labels", [])
        value: dict[str, Any] = {"id": number, "text": shown_text(row.item), "label": labels}
        value |= {key: part for key, part in item_record(row.item).items() if key != "text"}
        if len(row.item.texts) > 1:
            value["texts"] = [
                {"name": text.name, "text": text.text, "id": text.id, "url": text.url} for text in row.item.texts
            ]
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

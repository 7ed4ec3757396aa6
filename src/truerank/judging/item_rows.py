"""Items out of tables: one row is one item; which columns are read is documented in docs/judging-schemes.md."""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from truerank.errors import InputError
from truerank.judging.items import Item, Text
from truerank.judging.schemes import Scheme
from truerank.loading import load_json
from truerank.sources import compressed, formats
from truerank.sources.grammar import SourceSpec
from truerank.sources.labels import (
    DATASET_NAMES,
    PROBABILITY_NAMES,
    QUERY_ID_NAMES,
    QUERY_NAMES,
    SIMILARITY_NAMES,
    TOPIC_NAMES,
)
from truerank.sources.rows import Row, rows
from truerank.sources.tables import as_text, number_in, well_formed

#: Columns of annotations, which are no part of an item.
ANNOTATION_NAMES: Final = frozenset((
    "label", "labels", "choice", "choices", "annotations", "completions", "predictions", "annotator", "annotator_id",
    "username", "user", "completed_by", "created_by", "comment", "comments", "reason", "seconds", "lead_time", "at",
    "kind", "number", "token", "undoes", "role", "about", "events", "standing", "who", "rule", "record", "model",
    "status",
))  # fmt: skip
_SCORES: Final = ("score",)
_DOC_IDS: Final = ("doc_id", "docno", "docid", "passage_id", "pid", "did")
_DOC_TEXTS: Final = ("document", "passage", "doc_text", "passage_text", "body", "contents", "text")
_VERSION: Final = re.compile(r"[vV](\d{1,2})")
_NUMBERED_PASSAGE: Final = re.compile(r"passage[ _-]?(\d{1,3})", re.IGNORECASE)
_TABLES: Final = ("csv", "tsv", "jsonl", "json", "parquet")


def row_items(spec: SourceSpec, scheme: Scheme, *, strict: bool = False) -> Iterator[tuple[int, Item]]:
    """The items of a table with the line of each.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    path = compressed.checked_file(spec.path)
    form = formats.detect(path, spec.format)
    form = "tsv" if form == "lines" else form
    if form not in _TABLES:
        raise InputError(f"items are not read from {form} files", "give JSONL, CSV, TSV or Parquet", where=path)
    for row in rows(path, form, strict=strict):
        yield row.line, item_of_row(row, scheme, spec.location)


def item_of_row(row: Row, scheme: Scheme, where: str) -> Item:
    """The item of one row; its id is empty where the row gives none."""
    values = row.values
    used: set[str] = set()
    topic_id = text_of(
        values, (*TOPIC_NAMES, *(() if scheme.view == "pair" else (*QUERY_ID_NAMES, "id"))), used
    ).strip()
    texts = _given_texts(values, used) or _texts(values, scheme, topic_id, used)
    if not topic_id or not texts or any(not text.text.strip() for text in texts if text.name == "query"):
        raise _missing(topic_id, texts, scheme, row, where)
    fields = {name: text_of(values, (name,), used) for name in ("title", "description", "narrative", "variant")}
    given = text_of(values, ("item_id",), used).strip()
    similarity, score = (number_of(row, names, where, used) for names in (SIMILARITY_NAMES, _SCORES))
    probability = number_of(row, PROBABILITY_NAMES, where, used)
    if probability is not None and not 0 < probability <= 1:
        fault = f"the probability {probability:g} is not above 0 and at most 1"
        raise InputError(fault, "correct it", where=where, line=row.line)
    return Item(
        item_id=given,
        topic_id=topic_id,
        **fields,
        texts=texts,
        dataset=text_of(values, DATASET_NAMES, used),
        stratum=text_of(values, ("stratum",), used),
        # A cosine above 1 is a rounding of the encoder.
        score=score if similarity is None else min(1.0, similarity),
        probability=1.0 if probability is None else probability,
        data=_rest(values, used),
    )


def text_of(values: Mapping[str, Any], names: tuple[str, ...], used: set[str] | None = None) -> str:
    """The text or number in the first of the columns that is there and not empty; empty if there is none."""
    there = {name.strip().lower(): name for name in reversed(list(values))}
    for name in names:
        key = there.get(name)
        text = None if key is None else as_text(values[key])
        if key is not None and text is not None and text.strip():
            if used is not None:
                used.add(key)
            return well_formed(text)
    return ""


def number_of(row: Row, names: tuple[str, ...], where: str, used: set[str] | None = None) -> float | None:
    """The number in the first of the columns that is there."""
    return number_in(text_of(row.values, names, used), names[0], where, row.line)


def _given_texts(values: Mapping[str, Any], used: set[str]) -> tuple[Text, ...]:
    """The texts of a row that lists them, as our own exports do."""
    given = values.get("texts")
    if not isinstance(given, list) or not all(isinstance(part, dict) for part in given):
        return ()
    used.add("texts")
    used.update(key for key in values if key.strip().lower() in ("query_text", "query_id"))
    found = (tuple(text_of(part, (key,)) for key in ("name", "text", "id", "url")) for part in given)
    return tuple(Text(*parts) for parts in found if parts[0])


def _texts(values: Mapping[str, Any], scheme: Scheme, topic_id: str, used: set[str]) -> tuple[Text, ...]:
    names = QUERY_NAMES if scheme.view == "pair" else QUERY_NAMES[:-1]
    query = text_of(values, names if scheme.view != "document" else (*names, "title"), used)
    if not query:
        return ()
    if scheme.view == "pair":
        return (Text("query", query, text_of(values, QUERY_ID_NAMES, used).strip()),)
    rest = {"versions": _versions, "passages": _passages, "document": _document}[scheme.view](values, used)
    return (Text("query", query, topic_id), *rest) if rest else ()


def _versions(values: Mapping[str, Any], used: set[str]) -> tuple[Text, ...]:
    """Columns V1, V2, … with V1_url and V1_id beside them."""
    found = sorted((int(match[1]), key) for key in values if (match := _VERSION.fullmatch(key.strip())))
    texts = []
    for number, key in found:
        used.add(key)
        url = text_of(values, (f"v{number}_url", f"url_v{number}", "url"), used)
        doc_id = text_of(values, (f"v{number}_id", f"id_v{number}", *_DOC_IDS), used)
        texts.append(Text(f"V{number}", well_formed(as_text(values[key]) or ""), doc_id, url))
    return tuple(texts) if len(texts) > 1 else ()


def _passages(values: Mapping[str, Any], used: set[str]) -> tuple[Text, ...]:
    """A list `passages` of texts or objects, or the columns passage_1, passage_2, …"""
    given = next((key for key in ("passages", "results") if isinstance(values.get(key), list)), None)
    parts: list[Any] = []
    if given is not None:
        used.add(given)
        parts = values[given]
    else:
        keys = sorted((int(match[1]), key) for key in values if (match := _NUMBERED_PASSAGE.fullmatch(key.strip())))
        for number, key in keys:
            used.add(key)
            doc_id, url = (text_of(values, (f"passage_{number}_{name}",), used) for name in ("id", "url"))
            parts.append({"text": values[key], "id": doc_id, "url": url})
    texts: list[Text] = []
    for part in parts:
        record = part if isinstance(part, Mapping) else {"text": part}
        text = text_of(record, ("text", "passage_text", "passage", "contents", "body"))
        if text:
            doc_id = text_of(record, ("id", "_id", *_DOC_IDS))
            texts.append(Text(f"passage {len(texts) + 1}", text, doc_id, text_of(record, ("url",))))
    return tuple(texts)


def _document(values: Mapping[str, Any], used: set[str]) -> tuple[Text, ...]:
    text = text_of(values, _DOC_TEXTS, used)
    doc_id = text_of(values, _DOC_IDS, used).strip()
    return (Text("document", text, doc_id, text_of(values, ("url",), used)),) if text else ()


def _rest(values: Mapping[str, Any], used: set[str]) -> Mapping[str, Any]:
    """What no column of the item holds: the row's `data` object and all other values, made JSON-like."""
    rest: dict[str, Any] = {}
    extra = values.get("extra")
    if isinstance(extra, str) and extra.startswith("{"):
        with contextlib.suppress(InputError):
            extra = load_json(extra, "extra")
    if isinstance(extra, Mapping):
        used.add("extra")
        rest = _plain(extra)
    for key, value in values.items():
        if key in used or key.strip().lower() in ANNOTATION_NAMES or value is None or value == "":
            continue
        rest[key] = _plain(value)
    return MappingProxyType(rest)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    return value.isoformat() if isinstance(value, (datetime.date, datetime.datetime)) else str(value)


def _missing(topic_id: str, texts: tuple[Text, ...], scheme: Scheme, row: Row, where: str) -> InputError:
    needed = {
        "pair": "topic_id and query_text",
        "versions": "topic_id, query, V1 and V2",
        "passages": "topic_id, query and passages (a list) or passage_1, passage_2, …",
        "document": "topic_id, query, doc_id and text",
    }[scheme.view]
    what = "topic" if not topic_id else "text to judge" if not texts else "query text"
    there = ", ".join(list(row.values)[:12]) or "none"
    return InputError(
        f"no {what} in it (columns: {there})", f"the scheme {scheme.name} needs {needed}", where=where, line=row.line
    )

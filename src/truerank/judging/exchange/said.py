"""What stands in files of labels: one statement of one annotator about one item."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast, get_args

from truerank.errors import InputError
from truerank.judging.events import Kind, Role
from truerank.judging.item_rows import item_of_row, number_of, text_of
from truerank.judging.items import Item, Text
from truerank.judging.schemes import Scheme
from truerank.sources import compressed, formats, read_qrels
from truerank.sources.grammar import SourceSpec
from truerank.sources.rows import Row, rows
from truerank.sources.tables import as_text, well_formed

__all__ = ["Said", "read_said"]

_LABELS: Final = ("labels", "label", "choices", "choice")
_ANNOTATORS: Final = ("annotator", "annotator_id", "user", "username", "completed_by", "created_by")
_SEPARATORS: Final = re.compile(r"\s*[|;,]\s*")
_TABLES: Final = ("csv", "tsv", "jsonl", "json", "parquet")


class Said(NamedTuple):
    """One statement as a file has it.

    `item` is what the file says about the item, for finding it in the store; `number` and `undoes` link the events of
    a history; `role` and `about` are empty where the file does not say who the annotator is.
    """

    line: int
    item: Item
    kind: Kind
    labels: tuple[str, ...] = ()
    annotator: str = ""
    role: Role | None = None
    about: str = ""
    comment: str = ""
    reason: str = ""
    seconds: float = 0.0
    at: str = ""
    number: int | None = None
    undoes: int | None = None


def read_said(spec: SourceSpec, scheme: Scheme, *, strict: bool = False) -> Iterator[Said | int]:
    """The statements of a file; for a record on which nobody said anything its line.

    Our own JSONL and CSV, doccano JSONL, Label Studio JSON, tables with the same columns, and for graded schemes TREC
    qrels. What is a JSON record and what it means is told from its keys.

    Args:
        spec: the file.
        scheme: of the store.
        strict: raise for bytes that are not UTF-8.

    Raises:
        InputError: not readable, no such file format, or a record without topic and text or item id.
    """
    if spec.scheme != "file":
        raise InputError("labels are read from files", "give a path", where=spec.spec)
    form = formats.detect(compressed.checked_file(spec.path), spec.format)
    if form == "qrels" or (form in ("tsv", "lines") and scheme.graded and _is_qrels(spec)):
        return _of_qrels(spec, scheme)
    form = "tsv" if form == "lines" else form
    if form not in _TABLES:
        remedy = "give JSONL, CSV, a doccano or Label Studio export, or qrels"
        raise InputError(f"labels are not read from {form} files", remedy, where=spec.location)
    return (said for row in rows(spec.path, form, strict=strict) for said in _of_row(row, scheme, spec))


def _is_qrels(spec: SourceSpec) -> bool:
    with compressed.checked_file(spec.path).open("rb") as stream:
        cells = stream.readline(4096).split()
    return len(cells) == 4 and cells[3].lstrip(b"-").isdigit()


def _of_qrels(spec: SourceSpec, scheme: Scheme) -> Iterator[Said]:
    if not scheme.graded:
        remedy = "import them into a store of a relevance scheme"
        raise InputError(f"the scheme {scheme.name} has no grades", remedy, where=spec.location)
    names = {choice.grade: choice.name for choice in scheme.choices}
    for line, qrel in enumerate(read_qrels(SourceSpec(**{**vars(spec), "format": None})), start=1):
        if qrel.relevance not in names:
            there = ", ".join(str(grade) for grade in sorted(grade for grade in names if grade is not None))
            fault = f"the scheme {scheme.name} has no grade {qrel.relevance} (topic {qrel.topic_id})"
            raise InputError(fault, f"there are {there}", where=spec.location)
        item = Item("", qrel.topic_id, texts=(Text("document", "", qrel.doc_id),))
        role: Role | None = "model" if qrel.iteration == "model" else None
        yield Said(line, item, "label", (names[qrel.relevance],), role=role)


def _of_row(row: Row, scheme: Scheme, spec: SourceSpec) -> Iterator[Said | int]:
    item = _item(row, scheme, spec)
    annotations = _objects(row.values.get("annotations", row.values.get("completions")))
    predictions = _objects(row.values.get("predictions"))
    if annotations is not None or predictions is not None:
        found = [
            *(_annotation(row, item, part) for part in annotations or ()),
            *(_prediction(row, item, part) for part in predictions or ()),
        ]
        heard = [said for said in found if said is not None]
        yield from heard
        if not heard:
            yield row.line
        return
    said = _plain(row, item, spec)
    yield row.line if said is None else said


def _objects(value: Any) -> list[Mapping[str, Any]] | None:
    return value if isinstance(value, list) and all(isinstance(part, dict) for part in value) else None


def _item(row: Row, scheme: Scheme, spec: SourceSpec) -> Item:
    """What the row says about its item; with an item id nothing else is needed."""
    try:
        return item_of_row(row, scheme, spec.location)
    except InputError:
        item_id = text_of(row.values, ("item_id",)).strip()
        if not item_id:
            raise
        return Item(item_id, text_of(row.values, ("topic_id", "topic")).strip())


def _plain(row: Row, item: Item, spec: SourceSpec) -> Said | None:
    """The statement of a row of a table or of doccano; None where the row has no labels."""
    values = row.values
    labels = next((found for name in _LABELS if (found := _texts(values.get(name)))), ())
    kind = text_of(values, ("kind",)) or ("label" if labels else "")
    if not kind or kind == "open":
        return None
    if kind not in get_args(Kind):
        fault = f"'{kind}' is no kind of event"
        raise InputError(fault, f"one of {', '.join(get_args(Kind))}", where=spec.location, line=row.line)
    role = text_of(values, ("role",))
    if role and role not in get_args(Role):
        fault = f"'{role}' is no role"
        raise InputError(fault, f"one of {', '.join(get_args(Role))}", where=spec.location, line=row.line)
    number, undoes = (number_of(row, (name,), spec.location) for name in ("number", "undoes"))
    return Said(
        row.line, item, cast(Kind, kind), labels,
        annotator=text_of(values, _ANNOTATORS),
        role=cast("Role | None", role or None),
        about=text_of(values, ("about",)),
        comment=text_of(values, ("comment",)),
        reason=text_of(values, ("reason",)),
        seconds=number_of(row, ("seconds",), spec.location) or 0.0,
        at=_time(values.get("at")),
        number=None if number is None else int(number),
        undoes=None if undoes is None else int(undoes),
    )  # fmt: skip


def _annotation(row: Row, item: Item, annotation: Mapping[str, Any]) -> Said | None:
    """A statement of a Label Studio annotation; None where nothing was chosen."""
    labels, texts = _results(annotation)
    cancelled = bool(annotation.get("was_cancelled"))
    if not labels and not cancelled:
        return None
    meta = _meta(annotation)
    role = meta.get("role")
    kind: Kind = "skip" if cancelled else "adjudicate" if annotation.get("ground_truth") is True else "label"
    seconds = annotation.get("lead_time")
    return Said(
        row.line, item, kind, () if cancelled else labels,
        annotator=_person(annotation.get("completed_by")),
        role=role if role in get_args(Role) else None,
        about=as_text(meta.get("about")) or "",
        comment=texts.get("comment", ""),
        reason=texts.get("reason", "") or ("cancelled" if cancelled else ""),
        seconds=float(seconds) if isinstance(seconds, (int, float)) and seconds >= 0 else 0.0,
        at=_time(annotation.get("created_at")),
    )  # fmt: skip


def _prediction(row: Row, item: Item, prediction: Mapping[str, Any]) -> Said | None:
    """A model's statement in a Label Studio task."""
    labels, texts = _results(prediction)
    skipped = not labels and "reason" in texts
    if not labels and not skipped:
        return None
    return Said(
        row.line, item, "skip" if skipped else "label", labels,
        annotator=as_text(prediction.get("model_version")) or "model",
        role="model",
        about=as_text(_meta(prediction).get("about")) or "",
        comment=texts.get("comment", ""),
        reason=texts.get("reason", ""),
        at=_time(prediction.get("created_at")),
    )  # fmt: skip


def _meta(statement: Mapping[str, Any]) -> Mapping[str, Any]:
    """What our own exports note beside a statement."""
    meta = statement.get("meta")
    return meta if isinstance(meta, dict) else {}


def _results(annotation: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The labels and the free texts of a Label Studio annotation or prediction."""
    labels: list[str] = []
    texts: dict[str, str] = {}
    results = annotation.get("result")
    for result in results if isinstance(results, list) else ():
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            continue
        for key in ("choices", "labels", "taxonomy"):
            labels += _texts(value.get(key))
        written = value.get("text")
        if isinstance(written, list) and "choices" not in value:
            texts[str(result.get("from_name"))] = well_formed("\n".join(as_text(part) or "" for part in written))
    return tuple(dict.fromkeys(labels)), texts


def _person(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("email") or value.get("username") or value.get("id")
    return well_formed(as_text(value) or "").strip()


def _texts(value: Any) -> tuple[str, ...]:
    """The labels in a value: a text with separators, true or false, or a list of texts (or of lists of texts)."""
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, list):
        parts = [text for part in value for text in (_texts(part) if isinstance(part, list) else [as_text(part) or ""])]
    else:
        parts = _SEPARATORS.split(as_text(value) or "")
    return tuple(dict.fromkeys(well_formed(part.strip()) for part in parts if part.strip()))


def _time(value: Any) -> str:
    """A time as the store writes it; empty for anything that is no ISO 8601 time."""
    try:
        time = value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(as_text(value) or "")
        time = (time if time.tzinfo else time.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return ""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""What people said about pairs of a topic and a training query: annotation exports and plain tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.records import Label
from truerank.sources import columns, compressed, formats, grammar
from truerank.sources.grammar import SourceSpec
from truerank.sources.rows import Row, rows
from truerank.sources.tables import as_text, well_formed

__all__ = ["LabelRow", "label_rows", "read_labels"]

_TOPICS: Final = ("topic_id", "topic", "topic_number", "test_id")
_QUERIES: Final = ("query_id", "ms-marco-qid", "qid", "query-id")
_TEXTS: Final = ("query_text", "query", "text", "data")
_LABELS: Final = ("label", "labels", "choice", "choices", "type", "annotations")
_SIMILARITIES: Final = ("similarity", "cosine_similarity", "cosine", "score")
_PROBABILITIES: Final = ("probability", "sampling_probability", "inclusion_probability")
_ANNOTATORS: Final = ("annotator", "annotator_id", "user", "completed_by", "created_by")
_ROLES: Final = ("role", "annotator_role")
_KINDS: Final = ("kind", "event")
_SEPARATORS: Final = re.compile(r"\s*[|;,]\s*")


class LabelRow(NamedTuple):
    """What one annotator said about one record of a file; `values` is the record as it was read."""

    line: int
    values: Mapping[str, Any]
    labels: tuple[str, ...]
    annotator: str = ""
    role: str = ""
    probability: float = 1.0
    about: str = ""


def read_labels(specs: str | SourceSpec | Iterable[str | SourceSpec], *, strict: bool = False) -> tuple[Label, ...]:
    """Reads labelled pairs.

    doccano JSONL (`topic`, `data` or `query_text`, `ms-marco-qid` or `query_id`, `label`: a list), Label Studio JSON
    (one Label per annotation that was not cancelled; the task's `data` carries the pair; a reduced export with the
    choice beside the data opens too), CSV, TSV with a header, JSONL or Parquet with `topic_id`, `query_id`,
    `query_text`, `label` and, where known, `similarity`, `probability`, `annotator`, `title`, `description`, `variant`.
    In a table several labels of one pair stand in one cell, separated by `|`, `;` or `,`. A similarity above 1 (a
    rounding of the encoder) becomes 1.

    Args:
        specs: one file or several; their order is kept.
        strict: raise for bytes that are not UTF-8.

    Returns:
        The labels in order. Pairs that nobody has labelled are left out.

    Raises:
        InputError: not readable; a record without topic, query or label column; a number out of range; no label at all.
    """
    several = (specs,) if isinstance(specs, (str, SourceSpec)) else specs
    labels: list[Label] = []
    for given in several:
        spec = grammar.parse(given) if isinstance(given, str) else given
        read = [_label(row, spec) for row in label_rows(spec, strict=strict)]
        found = [label for label in read if label.labels]
        if not found:
            raise InputError("no labelled pair in it", "export the annotations again", where=spec.location)
        labels.extend(found)
    if not labels:
        raise InputError("no label files", "give at least one")
    return tuple(labels)


def label_rows(spec: str | SourceSpec, *, strict: bool = False) -> Iterator[LabelRow]:
    """The annotations of a file, whatever was annotated: `read_labels` for items of any kind.

    Args:
        spec: the file, as for `read_labels`; it needs the labels, and a column `annotator`, `role` ("person", "model",
            "adjudicator"), `kind` ("label", "skip", "adjudicate") or `probability` is understood.
        strict: raise for bytes that are not UTF-8.

    Yields:
        One per annotation. A record that nobody has labelled comes once, without labels; so does a skip.

    Raises:
        InputError: not readable, no label column, a number out of range, or a history with events taken back.
    """
    source = grammar.parse(spec) if isinstance(spec, str) else spec
    for row in _rows(source, strict):
        yield from _label_rows(row, source)


def _rows(spec: SourceSpec, strict: bool) -> Iterator[Row]:
    if spec.scheme != "file":
        raise InputError("labels are read from files", "give a path", where=spec.spec)
    form = formats.detect(compressed.checked_file(spec.path), spec.format)
    if form not in ("csv", "tsv", "jsonl", "json", "parquet"):
        raise InputError(
            f"labels are not read from {form} files",
            "give a doccano or Label Studio export, or a table with topic_id, query_id, query_text, label",
            where=spec.location,
        )
    return rows(spec.path, form, strict=strict)


def _label(found: LabelRow, spec: SourceSpec) -> Label:
    values = found.values
    topic, text = _value(values, _TOPICS), _value(values, _TEXTS)
    if topic is None or text is None:
        raise _missing("topic_id" if topic is None else "query_text", found, spec)
    return Label(
        topic_id=topic.strip(),
        query_id=(_value(values, _QUERIES) or "").strip(),
        query_text=text,
        labels=found.labels,
        title=_value(values, ("title",)) or "",
        description=_value(values, ("description",)) or "",
        variant=_value(values, ("variant",)) or "",
        similarity=_similarity(found, spec),
        annotator=found.annotator,
        probability=found.probability,
        role=found.role,
    )


def _label_rows(row: Row, spec: SourceSpec) -> Iterator[LabelRow]:
    """One per annotation of a record; one without labels where nobody, or nobody but a skip, said anything."""
    values = row.values
    who = _value(values, _ANNOTATORS) or ""
    role = (_value(values, _ROLES) or "").strip().lower()
    kind = (_value(values, _KINDS) or "").strip().lower()
    if kind == "undo":
        raise InputError(
            "a history of events, of which some were taken back",
            "export what stands, or give the store itself",
            where=spec.location,
            line=row.line,
        )
    if kind == "adjudicate":
        role = "adjudicator"
    elif kind == "label" and role == "adjudicator":
        # Who settles disagreements may also have labelled like everybody else.
        role = "person"
    plain = LabelRow(row.line, values, (), who, role, _probability(row, spec), _value(values, ("about",)) or "")
    annotations = values.get("annotations", values.get("completions"))
    if isinstance(annotations, list) and all(isinstance(item, dict) for item in annotations):
        yield from _label_studio(plain, annotations, values.get("predictions"))
        return
    if kind in ("skip", "open"):
        yield plain
        return
    key = columns.named(list(values), _LABELS)
    if key is None:
        raise _missing("label", row, spec)
    yield plain._replace(labels=_texts(values[key]))


def _label_studio(plain: LabelRow, annotations: list[dict[str, Any]], predictions: Any) -> Iterator[LabelRow]:
    """What people chose, then what models predicted."""
    found = False
    predicted = [part for part in predictions if isinstance(part, dict)] if isinstance(predictions, list) else []
    of_models = [
        {**part, "completed_by": as_text(part.get("model_version")) or "model", "role": "model"} for part in predicted
    ]
    for annotation in (*annotations, *of_models):
        results = annotation.get("result")
        if annotation.get("was_cancelled") or not isinstance(results, list):
            continue
        chosen = (result.get("value") for result in results if isinstance(result, dict))
        labels = tuple(dict.fromkeys(label for value in chosen for label in _texts(value)))
        if labels:
            found = True
            who = _annotator(annotation.get("completed_by")) or plain.annotator
            given = annotation.get("meta")
            about = given if isinstance(given, dict) else {}
            role = (as_text(annotation.get("role")) or as_text(about.get("role")) or plain.role).strip().lower()
            # What somebody declared the truth settles the item; their other annotations are like everybody's.
            role = "adjudicator" if annotation.get("ground_truth") is True else role.replace("adjudicator", "person")
            yield plain._replace(labels=labels, annotator=who, role=role, about=as_text(about.get("about")) or "")
    if not found:
        yield plain


def _texts(value: Any) -> tuple[str, ...]:
    """The labels in a value: a text, a list, or Label Studio's `{"choices": […]}`."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("choices", "labels", "taxonomy") if key in value), None)
    if isinstance(value, list):
        texts = [text for text in map(_label_text, value) if text is not None]
    else:
        text = _label_text(value)
        texts = [] if text is None else _SEPARATORS.split(text)
    return tuple(dict.fromkeys(well_formed(text.strip()) for text in texts if text.strip()))


def _label_text(value: Any) -> str | None:
    """A label as text; the booleans of JSON and Parquet are labels too."""
    return str(value).lower() if isinstance(value, bool) else as_text(value)


def _annotator(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("email") or value.get("username") or value.get("id")
    return as_text(value) or ""


def _value(values: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    key = columns.named(list(values), names)
    text = None if key is None else as_text(values[key])
    return None if text is None else well_formed(text)


def _similarity(row: LabelRow, spec: SourceSpec) -> float | None:
    value = _number(row, _SIMILARITIES, spec)
    return None if value is None else min(1.0, value)


def _probability(row: Row, spec: SourceSpec) -> float:
    value = _number(row, _PROBABILITIES, spec)
    if value is not None and not 0 < value <= 1:
        raise InputError(
            f"the probability {value:g} is not above 0 and at most 1", "correct it", where=spec.location, line=row.line
        )
    return 1.0 if value is None else value


def _number(row: Row | LabelRow, names: tuple[str, ...], spec: SourceSpec) -> float | None:
    text = (_value(row.values, names) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"'{text}' is no number", f"correct the column {names[0]}", where=spec.location, line=row.line)
    return value


def _missing(name: str, row: Row | LabelRow, spec: SourceSpec) -> InputError:
    there = ", ".join(map(repr, list(row.values)[:12])) or "none"
    return InputError(f"no column or key '{name}'", f"there are {there}", where=spec.location, line=row.line)

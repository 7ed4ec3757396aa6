"""Judgments and runs as people have them in a notebook: frames, dictionaries, records, objects of ranx."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl

from truerank.errors import InputError

#: What other programs call the columns.
_NAMES: Final = {
    "topic_id": ("query_id", "query-id", "qid", "topic"),
    "doc_id": ("corpus-id", "docno", "docid", "document"),
    "relevance": ("label", "grade", "rel"),
    "score": (),
    "rank": (),
}


def of_ranx(value: object) -> bool:
    """Whether a value is a `Qrels` or a `Run` of ranx: neither frame nor mapping, but with a `to_dict`."""
    return (
        not isinstance(value, Mapping | type)
        and callable(getattr(value, "to_dict", None))
        and not (hasattr(value, "columns") or hasattr(value, "column_names"))
    )


def is_single(value: object) -> bool:
    """Whether a value is one run, and not runs by name: a frame, scores by topic and document, or records."""
    if hasattr(value, "columns") or of_ranx(value):
        return True
    if isinstance(value, list | tuple | Iterator):
        return isinstance(value, Iterator) or (bool(value) and all(_is_record(one) for one in value))
    if not isinstance(value, Mapping) or not value:
        return False
    inner = next(iter(value.values()))
    return isinstance(inner, Mapping) and all(isinstance(score, int | float) for score in inner.values())


def frame_of(value: Any, schema: Mapping[str, Any], number: str) -> pl.DataFrame:
    """A frame of judgments or of a run."""
    if hasattr(value, "columns"):
        frame = (
            value if isinstance(value, pl.DataFrame) else pl.DataFrame({n: value[n].to_list() for n in value.columns})
        )
        return _renamed(frame)
    if of_ranx(value):
        value = value.to_dict()
    if isinstance(value, Mapping):
        rows = [(topic, doc, one) for topic, documents in value.items() for doc, one in documents.items()]
        return pl.DataFrame(
            rows, schema={"topic_id": pl.String, "doc_id": pl.String, number: schema[number]}, orient="row"
        )
    try:
        rows = list(value)
        if rows and all(_is_record(row) for row in rows):
            return _of_records(rows, schema)
        return pl.DataFrame([tuple(row)[: len(schema)] for row in rows], schema=dict(schema), orient="row")
    except TypeError as error:
        remedy = f"give a source, a frame with {', '.join(schema)}, or {{topic: {{document: {number}}}}}"
        raise InputError(f"cannot read a {type(value).__name__}", remedy) from error


def _is_record(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _of_records(rows: Sequence[Any], schema: Mapping[str, Any]) -> pl.DataFrame:
    """A frame of records that name their fields as truerank or another program does, such as those of ir_measures."""
    fields = type(rows[0])._fields
    if any(type(row)._fields != fields for row in rows):
        raise InputError("records of several kinds", "give records of one kind")
    frame = _renamed(
        pl.DataFrame({name: [row[place] for row in rows] for place, name in enumerate(fields)}, strict=False)
    )
    return frame.cast({name: kind for name, kind in schema.items() if name in frame.columns})


def _renamed(frame: pl.DataFrame) -> pl.DataFrame:
    names = {
        other: name
        for name, others in _NAMES.items()
        for other in others
        if other in frame.columns and name not in frame.columns
    }
    return frame.rename(names)

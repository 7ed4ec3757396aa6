"""Judgments and runs as people have them in a notebook: frames of Polars or pandas, dictionaries, records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from truerank.errors import InputError

__all__ = ["frame_of", "is_single"]

#: What other programs call the columns.
_NAMES: Final = {
    "topic_id": ("query_id", "query-id", "qid", "topic"),
    "doc_id": ("corpus-id", "docno", "docid", "document"),
    "relevance": ("label", "grade", "rel"),
    "score": (),
    "rank": (),
}


def is_single(value: object) -> bool:
    """Whether a value is one run, and not runs by name: a frame, or scores by topic and document."""
    if hasattr(value, "columns"):
        return True
    if not isinstance(value, Mapping) or not value:
        return False
    inner = next(iter(value.values()))
    return isinstance(inner, Mapping) and all(isinstance(score, int | float) for score in inner.values())


def frame_of(value: Any, schema: Mapping[str, Any], number: str) -> pl.DataFrame:
    """A frame of judgments or of a run.

    Args:
        value: a frame of Polars or pandas (columns as in the schema, or as ir_datasets and PyTerrier name them);
            numbers by topic and document, as pytrec_eval takes them; or records.
        schema: the columns in the order of the records' fields.
        number: the column that a dictionary's numbers are.

    Raises:
        InputError: it is none of these.
    """
    if hasattr(value, "columns"):
        frame = (
            value if isinstance(value, pl.DataFrame) else pl.DataFrame({n: value[n].to_list() for n in value.columns})
        )
        return _renamed(frame)
    if isinstance(value, Mapping):
        rows = [(topic, doc, one) for topic, documents in value.items() for doc, one in documents.items()]
        return pl.DataFrame(
            rows, schema={"topic_id": pl.String, "doc_id": pl.String, number: schema[number]}, orient="row"
        )
    try:
        return pl.DataFrame([tuple(row)[: len(schema)] for row in value], schema=dict(schema), orient="row")
    except TypeError as error:
        remedy = f"give a source, a frame with {', '.join(schema)}, or {{topic: {{document: {number}}}}}"
        raise InputError(f"cannot read a {type(value).__name__}", remedy) from error


def _renamed(frame: pl.DataFrame) -> pl.DataFrame:
    names = {
        other: name
        for name, others in _NAMES.items()
        for other in others
        if other in frame.columns and name not in frame.columns
    }
    return frame.rename(names)

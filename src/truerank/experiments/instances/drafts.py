"""A row before its documents' texts are there."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import polars as pl

__all__ = ["SCHEMA", "Draft"]

#: The columns of `instances.parquet`.
SCHEMA: Final[dict[str, Any]] = {
    "number": pl.Int64,
    "role": pl.String,
    "topic_id": pl.String,
    "source": pl.String,
    "query_id": pl.String,
    "query": pl.String,
    "relevant_id": pl.String,
    "relevant": pl.String,
    "nonrelevant_id": pl.String,
    "nonrelevant": pl.String,
    "origin": pl.String,
}


class Draft(NamedTuple):
    """A row with ids only.

    `origin` says where the relevant and the non-relevant document come from; `of_test` whether their texts are looked
    up in the test collection.
    """

    role: str
    topic_id: str | None
    source: str
    query_id: str
    query: str
    relevant_id: str
    nonrelevant_id: str
    origin: str
    of_test: bool = False

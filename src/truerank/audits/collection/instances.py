"""What a detector hands on: the instances of one kind of finding, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

#: `findings.parquet`: one row for each instance. `line` is the line of the source, or 0; `other` is a second document
#: or topic; `detail` says what was seen.
INSTANCE_SCHEMA: Final[dict[str, Any]] = {
    "part": pl.String, "kind": pl.String, "topic_id": pl.String, "doc_id": pl.String, "other": pl.String,
    "line": pl.Int64, "detail": pl.String,
}  # fmt: skip
_OWN: Final = [name for name in INSTANCE_SCHEMA if name not in ("part", "kind")]


@dataclass(frozen=True, eq=False)
class Instances:
    """The instances of one kind: rows of topic_id, doc_id, other, line, detail, `of` so many that there could be.

    There may be more than rows, where one row stands for a property of all. `here` says in a sentence what it does to
    scores in this collection.
    """

    kind: str
    rows: pl.DataFrame
    of: int
    count: int
    here: str = ""


def instances(
    kind: str, rows: pl.DataFrame | Iterable[Mapping[str, Any]], of: int, count: int | None = None
) -> Instances:
    """Instances of a kind; columns that the rows lack are empty."""
    if not isinstance(rows, pl.DataFrame):
        listed = list(rows)
        columns = {name: [row.get(name, 0 if name == "line" else "") for row in listed] for name in _OWN}
        rows = pl.DataFrame(columns, schema={name: INSTANCE_SCHEMA[name] for name in _OWN})
    lacking = [
        pl.lit(0 if name == "line" else "", INSTANCE_SCHEMA[name]).alias(name)
        for name in _OWN
        if name not in rows.columns
    ]
    frame = rows.with_columns(lacking).select([pl.col(name).cast(INSTANCE_SCHEMA[name]) for name in _OWN])
    return Instances(kind, frame, of, len(frame) if count is None else count)

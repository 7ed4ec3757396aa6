"""Cells: every training source against every test set."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any, Final

import polars as pl

from truerank.arrays import frame_schema

#: By training source, test set and kind: items (topics, documents) that were looked for, that leak and that are in
#: doubt, the distinct training texts that leak, and the lines or examples that hold them.
CELLS: Final[dict[str, Any]] = frame_schema(
    "train test kind: String, looked_for leaked doubtful texts records: Int64, verdict: String"
)


def cells_of(
    pairs: pl.DataFrame, sources: Sequence[str], looked_for: Mapping[str, int], clean: Collection[str]
) -> pl.DataFrame:
    """The cells of queries in training queries, columns as in `CELLS`.

    Args:
        pairs: the candidates of an audit, columns as in `results.CANDIDATE_SCHEMA`.
        sources: the training sources.
        looked_for: by test set, the topics that were compared.
        clean: test sets of which nothing but a pair would speak against CLEAN.
    """
    by_cell = ["source", "test"]
    leaks = pairs.filter(standing="leak")
    counts = leaks.group_by(by_cell).agg(leaked=pl.col("topic_id").n_unique(), texts=pl.col("query_text").n_unique())
    doubtful = pairs.filter(standing="doubt").join(leaks, on=[*by_cell, "topic_id"], how="anti")
    every = pl.DataFrame(list(product(sources, looked_for)), {"source": pl.String, "test": pl.String}, orient="row")
    found = every.join(counts, on=by_cell, how="left", maintain_order="left").join(
        doubtful.group_by(by_cell).agg(doubtful=pl.col("topic_id").n_unique()), on=by_cell, how="left",
        maintain_order="left",
    )  # fmt: skip
    found = found.with_columns(
        pl.col("leaked", "doubtful", "texts").fill_null(0),
        kind=pl.lit("query-query"),
        records=pl.lit(0),
        looked_for=pl.col("test").replace_strict(dict(looked_for), return_dtype=pl.Int64),
    )
    seen = (pl.col("doubtful") == 0) & pl.col("test").is_in(list(clean))
    word = pl.when(pl.col("leaked") > 0).then(pl.lit("CONTAMINATED")).when(seen).then(pl.lit("CLEAN"))
    return found.with_columns(verdict=word.otherwise(pl.lit("UNKNOWN"))).select(
        pl.col({"train": "source"}.get(name, name)).cast(kind).alias(name) for name, kind in CELLS.items()
    )

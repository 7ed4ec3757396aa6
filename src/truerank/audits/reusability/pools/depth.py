"""Depth pools: the first documents of every run, topic by topic."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from truerank.errors import OptionError

#: The columns of a pool.
POOL_SCHEMA = {"topic_id": pl.String, "doc_id": pl.String}


def depth_pool(runs: Mapping[str, pl.DataFrame], depth: int, *, sparse: pl.DataFrame | None = None) -> pl.DataFrame:
    """The documents that some run has among its first, and those that sparse judgments name.

    Args:
        runs: by name; columns topic_id, doc_id, score (equal scores by document id descending, as trec_eval reads).
        depth: documents of each run and topic.
        sparse: judgments whose documents are added; columns topic_id, doc_id. Topics that no run has are left out.

    Returns:
        Columns topic_id and doc_id; each pair once, ordered by topic, then document id.

    Raises:
        InputError: no run, or a depth below 1.
    """
    if not runs:
        raise OptionError("run", "no runs", "give one or more")
    if depth < 1:
        raise OptionError("depth", f"the depth is {depth}", "give 1 or more")
    pool = pl.concat([first_documents(frame, depth).select("topic_id", "doc_id") for frame in runs.values()])
    if sparse is not None:
        pool = pl.concat([pool, sparse.select("topic_id", "doc_id").join(pool, on="topic_id", how="semi")])
    return pool.unique().sort("topic_id", "doc_id")


def first_documents(run: pl.DataFrame, depth: int | None = None) -> pl.DataFrame:
    """The first documents of each topic of a run.

    Args:
        run: columns topic_id, doc_id and score; equal scores by document id descending.
    """
    # As trec_eval reads scores: in 32 bits.
    narrow = run.with_columns(pl.col("score").cast(pl.Float32))
    ordered = narrow.sort("topic_id", "score", "doc_id", descending=[False, True, True])
    ordered = ordered.select("topic_id", "doc_id", (pl.int_range(pl.len()).over("topic_id") + 1).alias("place"))
    return ordered if depth is None else ordered.filter(pl.col("place") <= depth)

"""The judged documents that a scan scores, and the documents that its probabilities are calibrated with."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from truerank.audits.transfer.matching.versions import Matched
from truerank.audits.transfer.scanning.options import ScanPlan
from truerank.audits.transfer.scanning.scoring import id_column
from truerank.errors import InputError
from truerank.lexical.searching import topic_queries
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.runs import read_run_frame
from truerank.text.normalising import normalise

__all__ = ["judged_rows", "other_documents"]

_FIRST_STAGE_DEPTH: Final = 100


def judged_rows(qrels: str, topics: str, links: Matched, plan: ScanPlan) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The judged documents to score, and those that are left out, with a reason."""
    judged = read_qrels_frame(qrels).filter(pl.col("relevance") >= plan.rel)
    if judged.is_empty():
        fault = f"no judgment of grade {plan.rel} or more"
        raise InputError(fault, "lower `rel`", where=qrels)
    asked = [query for query in topic_queries(topics, plan.field) if normalise(query.text)]
    queries = pl.DataFrame(
        {"topic_id": [query.topic_id for query in asked], "query": [query.text for query in asked]},
        schema={"topic_id": pl.String, "query": pl.String},
    ).unique("topic_id", keep="first", maintain_order=True)
    ids = links.frame.select("doc_id", *(pl.col(name).alias(id_column(name)) for name in links.versions))
    joined = judged.join(queries, on="topic_id", how="left", maintain_order="left").join(
        ids, on="doc_id", how="left", maintain_order="left"
    )
    there = pl.sum_horizontal(pl.col(id_column(name)).is_not_null().cast(pl.Int32) for name in links.versions)
    reason = (
        pl.when(pl.col("query").is_null())
        .then(pl.lit(f"the topic has no {plan.field}"))
        .when(there == 0)
        .then(pl.lit("in no version"))
        .when(there == 1)
        .then(pl.lit("in one version only"))
    )
    joined = joined.with_columns(reason.alias("why"))
    rows = joined.filter(pl.col("why").is_null()).drop("why").with_row_index("row")
    if rows.is_empty():
        counted = "; ".join(f"{count:,d} {why}" for why, count in joined["why"].value_counts(sort=True).iter_rows())
        raise InputError(
            f"no judged document can be compared ({counted})", "check how versions are matched", where=qrels
        )
    skipped = joined.drop_nulls("why").select("topic_id", "doc_id", pl.col("why").alias("reason"))
    return rows.with_columns(pl.lit(False).alias("sampled")), skipped


def other_documents(rows: pl.DataFrame, qrels: str, plan: ScanPlan, judged: str) -> pl.DataFrame:
    """Documents that are not judged relevant to the topic, for the curve; none where no curve is fitted."""
    empty = rows.clear()
    if plan.fits_curve == "no":
        return empty
    draw = np.random.default_rng(plan.samples.seed)
    relevant = read_qrels_frame(qrels).filter(pl.col("relevance") >= plan.rel).select("topic_id", "doc_id")
    asked = rows.unique("topic_id", maintain_order=True).select("topic_id", "query")
    if plan.samples.first_stage is not None:
        run = read_run_frame(plan.samples.first_stage).sort(
            "topic_id", "score", "doc_id", descending=[False, True, False]
        )
        run = run.group_by("topic_id", maintain_order=True).head(_FIRST_STAGE_DEPTH)
        pool = run.select("topic_id", "doc_id").join(asked, on="topic_id", how="inner", maintain_order="left")
        pool = pool.with_columns(pl.col("doc_id").alias(id_column(judged)))
    else:
        ids = rows.drop_nulls(id_column(judged)).unique("doc_id", maintain_order=True)
        if ids.is_empty():
            return empty
        topics = rows.select("topic_id", "query").sample(
            2 * plan.samples.sampled, with_replacement=True, seed=int(draw.integers(1 << 31))
        )
        other = ids.select("doc_id", id_column(judged)).sample(
            2 * plan.samples.sampled, with_replacement=True, seed=int(draw.integers(1 << 31))
        )
        pool = pl.concat([topics, other], how="horizontal").unique(["topic_id", "doc_id"], maintain_order=True)
    pool = pool.join(relevant, on=["topic_id", "doc_id"], how="anti", maintain_order="left")
    if len(pool) > plan.samples.sampled:
        pool = pool[np.sort(draw.permutation(len(pool))[: plan.samples.sampled])]
    pool = pool.with_row_index("row", offset=len(rows)).with_columns(
        pl.lit(True).alias("sampled"), pl.lit(0, pl.Int32).alias("relevance")
    )
    return pl.concat([empty, pool], how="diagonal").select(rows.columns)

"""What findings do to scores in the collection at hand, where that can be computed."""

from __future__ import annotations

import polars as pl

from truerank.audits.collection.instances import Instances

__all__ = ["effect_here"]


def effect_here(found: Instances, pairs: pl.DataFrame | None, rel: int) -> str:
    """One sentence with figures; empty where there is nothing to compute.

    Args:
        found: the instances of a kind.
        pairs: the judgments, one row for each pair.
        rel: the lowest grade that counts as relevant.
    """
    if found.kind in ("duplicate-topic", "near-duplicate-topic") and found.count < found.of:
        return f"A mean over {found.of:,d} topics rests on {found.of - found.count:,d} different ones."
    if found.kind == "no-relevant" and found.count < found.of:
        return f"No mean over all topics can be above {1 - found.count / found.of:.3f}."
    if pairs is None or found.kind not in ("missing-document", "respelt-document"):
        return ""
    named = found.rows.select("topic_id", "doc_id").unique()
    relevant = pairs.filter(pl.col("relevance") >= rel)
    lost = relevant.join(named, on=["topic_id", "doc_id"], how="semi")
    if not len(lost):
        return "None of them is of a relevant document: recall and nDCG stay as they are."
    topics, all_topics = lost["topic_id"].n_unique(), relevant["topic_id"].n_unique()
    return (
        f"{len(lost):,d} of {len(relevant):,d} relevant documents cannot be returned under these ids; they touch "
        f"{topics:,d} of {all_topics:,d} topics."
    )

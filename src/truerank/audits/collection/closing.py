"""Act on judgments: what is left of them when faults are removed and equivalent documents count as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from truerank.measures.equivalence import Combine, combined_grade

#: Every change of a judgment: `row` counts the judgments of the source from 0; `new_doc_id` and `new_relevance` are
#: empty where the row was removed.
CHANGES: Final[dict[str, Any]] = {
    "row": pl.Int64,
    "line": pl.Int64,
    "topic_id": pl.String,
    "doc_id": pl.String,
    "relevance": pl.Int32,
    "action": pl.String,
    "new_doc_id": pl.String,
    "new_relevance": pl.Int32,
    "reason": pl.String,
}


@dataclass(frozen=True)
class Closing:
    """What is done with the judgments.

    Attributes:
        missing: ids of documents that do not exist; their judgments go.
        unknown: ids of topics that do not exist, and that no document has either.
        swapped: pairs of topic and document, as they stand, that are in each other's place.
        respelt: documents whose judgments name them by another spelling.
        representatives: by document of a group, the one that stands for it.
        combine: what several judgments of a topic become that go to one document.
    """

    missing: Collection[str] = ()
    unknown: Collection[str] = ()
    swapped: Collection[tuple[str, str]] = ()
    respelt: Mapping[str, str] = field(default_factory=dict)
    representatives: Mapping[str, str] = field(default_factory=dict)
    combine: Combine = "max"


def closing_of(rows: Callable[[str], pl.DataFrame], groups: Mapping[str, str], combine: Combine = "max") -> Closing:
    """What has to be done with the judgments, by the findings."""
    waste = rows("unknown-topic").filter(pl.col("other") == "")
    return Closing(
        missing=frozenset(rows("missing-document")["doc_id"]),
        unknown=frozenset() if len(rows("shifted-judgments")) else frozenset(waste["topic_id"]),
        swapped=frozenset(rows("swapped-ids").select("topic_id", "doc_id").iter_rows()),
        respelt=dict(rows("respelt-document").select("doc_id", "other").iter_rows()),
        representatives=groups,
        combine=combine,
    )


def _in_their_columns(frame: pl.DataFrame, swapped: Collection[tuple[str, str]]) -> pl.DataFrame:
    """The judgments with topic and document where they belong; `turned` marks the rows in which they were not."""
    pairs = pl.DataFrame(sorted(swapped), schema={"topic_id": pl.String, "doc_id": pl.String}, orient="row")
    marked = frame.join(pairs.with_columns(turned=True), on=["topic_id", "doc_id"], how="left", maintain_order="left")
    return marked.with_columns(pl.col("turned").fill_null(value=False)).with_columns(
        topic_id=pl.when("turned").then("doc_id").otherwise("topic_id"),
        doc_id=pl.when("turned").then("topic_id").otherwise("doc_id"),
    )


def closed(frame: pl.DataFrame, rules: Closing) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The judgments that stay, and every change.

    Of several judgments of one topic and document, the first row stays, with the grade that `combine` gives. With
    "agree", judgments that contradict each other all go.
    """
    rows = _in_their_columns(frame, rules.swapped).with_columns(
        pl.col("doc_id").replace(dict(rules.respelt)).alias("spelt"),
        pl.when(pl.col("topic_id").is_in(list(rules.unknown)))
        .then(pl.lit("no such topic"))
        .when(pl.col("doc_id").is_in(list(rules.missing)) & ~pl.col("doc_id").is_in(list(rules.respelt)))
        .then(pl.lit("no such document"))
        .otherwise(None)
        .alias("reason"),
    )
    gone = rows.filter(pl.col("reason").is_not_null())
    rest = rows.filter(pl.col("reason").is_null()).drop("reason")
    rest = rest.with_columns(pl.col("spelt").replace(dict(rules.representatives)).alias("found"))
    keys = ["topic_id", "found"]
    rest = rest.with_columns(
        combined_grade(rules.combine).over(keys).alias("grade"),
        pl.col("relevance").n_unique().over(keys).alias("grades"),
        pl.col("row").first().over(keys).alias("first"),
        pl.len().over(keys).alias("several"),
    )
    contradicted = pl.col("grades") > 1
    removed = contradicted if rules.combine == "agree" else pl.lit(False)
    further = (pl.col("row") != pl.col("first")) & ~removed
    stays = ~removed & ~further
    kept = rest.filter(stays).select(
        "row", "topic_id", pl.col("found").alias("doc_id"), pl.col("grade").alias("relevance")
    )
    copy = pl.col("spelt") != pl.col("found")
    same = pl.when(copy).then(pl.lit("a copy of a document that is judged already")).otherwise(pl.lit("a row too many"))
    why = (
        pl.when(removed)
        .then(pl.lit("equivalent documents, or rows, with different grades"))
        .when(further)
        .then(same)
        .when(copy)
        .then(pl.lit("the document that stands for its group"))
        .when("turned")
        .then(pl.lit("topic and document were in each other's place"))
        .when(pl.col("doc_id") != pl.col("spelt"))
        .then(pl.lit("spelt as the document is"))
        .otherwise(pl.format("{} of {} judgments", pl.lit(rules.combine), "several"))
    )
    changed = (
        further
        | removed
        | pl.col("turned")
        | (pl.col("doc_id") != pl.col("found"))
        | (pl.col("relevance") != pl.col("grade"))
    )
    leaving = further | removed
    stood = [
        pl.when("turned").then(name).otherwise(other).alias(other)
        for name, other in (("doc_id", "topic_id"), ("topic_id", "doc_id"))
    ]
    touched = rest.filter(changed).select(
        "row", "line", *stood, "relevance",
        pl.when(leaving).then(pl.lit("removed")).otherwise(pl.lit("changed")).alias("action"),
        pl.when(leaving).then(None).otherwise("found").alias("new_doc_id"),
        pl.when(leaving).then(None).otherwise("grade").alias("new_relevance"),
        why.alias("reason"),
    )  # fmt: skip
    lost = gone.select(
        "row", "line", "topic_id", "doc_id", "relevance", pl.lit("removed").alias("action"),
        pl.lit(None, pl.String).alias("new_doc_id"), pl.lit(None, pl.Int32).alias("new_relevance"), "reason",
    )  # fmt: skip
    changes = pl.concat([lost.cast(CHANGES), touched.cast(CHANGES)]).sort("row", maintain_order=True)  # type: ignore[arg-type]
    return kept, changes

"""The result of reranking: the run, and what was scored how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.rankers.base import DECIMALS
from truerank.reports.results import Result
from truerank.sources.runs import RUN_SCHEMA

#: The scores of a block of candidates; its number, and how many pairs it asked for, stand in each row.
BLOCK_SCHEMA: Final[dict[str, Any]] = {
    "topic_id": pl.String,
    "doc_id": pl.String,
    "score": pl.Float64,
    "passages": pl.Int64,
    "block": pl.Int64,
    "asked": pl.Int64,
    "hits": pl.Int64,
}


@dataclass(frozen=True, repr=False)
class Reranked(Result, shown_in="truerank.rankers.report"):
    """A reranked run, and what was scored how.

    Attributes:
        run: rows as in `sources.runs.RUN_SCHEMA`, topic by topic, best first.
        about: ranker, run, topics, documents, and the options that decide the result.
        missing: ids of candidates that the collection lacks; they stand below what was reranked.
        no_text: topics of the run that have no text; they are left in the order of the first stage.
        counts: documents reranked, passages scored, distinct pairs asked for, and those that the cache knew.
        tag: the name of the run.
        agreement: of a low precision with the full one, where that was asked for.
        out: the file that it was written to.
    """

    run: pl.DataFrame
    about: Mapping[str, Any]
    missing: tuple[str, ...]
    no_text: tuple[str, ...]
    counts: Mapping[str, int]
    tag: str
    agreement: Mapping[str, float] = field(default_factory=dict)
    out: Path | None = None

    def json(self) -> dict[str, Any]:
        """All but the rows."""
        return {
            "tag": self.tag,
            **self.about,
            "rows": len(self.run),
            "counts": dict(self.counts),
            "missing": list(self.missing),
            "no_text": list(self.no_text),
            "agreement": dict(self.agreement),
            "ties": f"scores with {DECIMALS} decimals, equal ones by document id ascending",
        }


def merged(first: pl.DataFrame, found: pl.DataFrame, *, cut: bool, tag: str) -> pl.DataFrame:
    """The reranked documents, and below them the others in the order of the first stage."""
    scored = found.select("topic_id", "doc_id", pl.col("score").alias("new"))
    joined = first.join(scored, on=["topic_id", "doc_id"], how="left", maintain_order="left").with_columns(
        pl.col("topic_id").rle_id().alias("topic"), pl.col("new").is_null().alias("below")
    )
    if cut:
        joined = joined.filter(~pl.col("below") | pl.col("below").all().over("topic"))
    # The places of documents that were reranked do not count: among them equal scores go by the id.
    joined = joined.with_columns(pl.when("below").then("place").alias("place")).sort(
        "topic", "below", "new", "place", "doc_id", descending=[False, False, True, False, False], nulls_last=True
    )
    lowest = pl.col("new").min().over("topic").fill_null(0.0)
    further = pl.col("below").cum_sum().over("topic")
    return joined.select(
        "topic_id",
        "doc_id",
        pl.int_range(1, pl.len() + 1).over("topic").alias("rank"),
        pl.when("below").then(lowest - further).otherwise("new").round(DECIMALS).alias("score"),
        pl.lit(tag).alias("tag"),
    ).cast(pl.Schema(RUN_SCHEMA))

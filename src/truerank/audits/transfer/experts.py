"""How often judgments that were carried disagree with those of experts on the same documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl
from scipy.special import betaincinv

from truerank.reports.tables import Column, Table
from truerank.sources.qrels import read_qrels_frame

__all__ = ["Comparison", "Share", "compare_with_experts"]


class Share(NamedTuple):
    """A number out of a total, with the Clopper–Pearson interval of the share; NaN where the total is 0."""

    found: int
    total: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share itself."""
        return self.found / self.total if self.total else float("nan")

    def json(self) -> dict[str, Any]:
        """Number, total, share and interval; null where the total is 0."""
        values = (None, None, None) if not self.total else (self.share, self.low, self.high)
        return {"found": self.found, "total": self.total, **dict(zip(("share", "low", "high"), values, strict=True))}


@dataclass(frozen=True)
class Comparison:
    """Carried labels beside experts' labels.

    Attributes:
        relevant: carried as relevant, and judged not relevant by experts.
        non_relevant: carried as not relevant, and judged relevant by experts.
        topics: topics with a document of the first kind, out of those with one that was carried as relevant and
            judged by experts.
        unjudged: carried judgments of the experts' topics that experts say nothing about.
        other_topics: topics of the carried judgments that experts did not judge.
        grades: the grades from which a carried and an expert's judgment count as relevant.
        confidence: of the intervals.
        disagreements: topic_id, doc_id, carried, expert.
    """

    relevant: Share
    non_relevant: Share
    topics: Share
    unjudged: int
    other_topics: int
    grades: tuple[int, int]
    confidence: float
    disagreements: pl.DataFrame

    def json(self) -> dict[str, Any]:
        """The counts and shares."""
        return {
            "relevant_judged_non_relevant": self.relevant.json(),
            "non_relevant_judged_relevant": self.non_relevant.json(),
            "topics_with_such_a_relevant": self.topics.json(),
            "unjudged": self.unjudged,
            "other_topics": self.other_topics,
            "relevant_from": {"carried": self.grades[0], "expert": self.grades[1]},
            "confidence": self.confidence,
        }

    def table(self) -> Table:
        """The shares with their intervals."""
        lines = (
            ("carried as relevant, judged not relevant", self.relevant),
            ("carried as not relevant, judged relevant", self.non_relevant),
            ("topics with a document of the first kind", self.topics),
        )
        heading = (f"{self.confidence:.0%} interval",)
        return Table(
            title="What experts say of the carried judgments.",
            columns=(
                Column(""),
                Column("number", align="right", format=",d"),
                Column("of", align="right", format=",d"),
                Column("share", align="right", format=".3f"),
                Column("from", heading, align="right", format=".3f"),
                Column("to", heading, align="right", format=".3f"),
            ),
            rows=tuple((name, one.found, one.total, one.share, one.low, one.high) for name, one in lines),
            notes=(
                f"Relevant: from grade {self.grades[0]} (carried) and {self.grades[1]} (experts). The intervals are "
                "Clopper and Pearson's.",
                f"Experts said nothing about {self.unjudged:,d} carried judgments of their topics, and nothing about "
                f"{self.other_topics:,d} topics.",
            ),
        )


def compare_with_experts(
    carried: pl.DataFrame, expert: str, grades: tuple[int, int], confidence: float = 0.95
) -> Comparison:
    """Counts where carried judgments and those of experts differ, on the documents that both judged.

    Args:
        carried: topic_id, doc_id, relevance.
        expert: the judgments of the experts.
        grades: the grades from which a carried and an expert's judgment count as relevant.
        confidence: of the intervals.

    Returns:
        The shares of disagreement.

    Raises:
        InputError: the experts' judgments cannot be read.

    Source:
        Section 3 of the paper: the same count on 46 queries of TREC 2020.
    """
    said = read_qrels_frame(expert)
    joined = carried.join(said, on=["topic_id", "doc_id"], how="left", maintain_order="left", suffix="_expert")
    both = joined.drop_nulls("relevance_expert").with_columns(
        (pl.col("relevance") >= grades[0]).alias("ours"), (pl.col("relevance_expert") >= grades[1]).alias("theirs")
    )
    relevant, others = both.filter("ours"), both.filter(~pl.col("ours"))
    wrong = relevant.filter(~pl.col("theirs"))
    of_topics = carried["topic_id"].is_in(said["topic_id"].unique().implode())
    return Comparison(
        relevant=_share(len(wrong), len(relevant), confidence),
        non_relevant=_share(int(others["theirs"].sum()), len(others), confidence),
        topics=_share(wrong["topic_id"].n_unique(), relevant["topic_id"].n_unique(), confidence),
        unjudged=int(of_topics.sum()) - len(both),
        other_topics=carried.filter(~of_topics)["topic_id"].n_unique(),
        grades=grades,
        confidence=confidence,
        disagreements=both.filter(pl.col("ours") != pl.col("theirs")).select(
            "topic_id", "doc_id", pl.col("relevance").alias("carried"), pl.col("relevance_expert").alias("expert")
        ),
    )


def _share(found: int, total: int, confidence: float) -> Share:
    if not total:
        return Share(0, 0, float("nan"), float("nan"))
    half = (1 - confidence) / 2
    low = float(betaincinv(found, total - found + 1, half)) if found else 0.0
    high = float(betaincinv(found + 1, total - found, 1 - half)) if found < total else 1.0
    return Share(found, total, low, high)

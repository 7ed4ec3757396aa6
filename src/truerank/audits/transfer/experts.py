"""How often judgments that were carried disagree with those of experts on the same documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from truerank.measures import Proportion, proportion
from truerank.sources.qrels import read_qrels_frame


@dataclass(frozen=True, eq=False)
class ExpertComparison:
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

    relevant: Proportion
    non_relevant: Proportion
    topics: Proportion
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


def compare_with_experts(
    carried: pl.DataFrame, expert: str, grades: tuple[int, int], confidence: float = 0.95
) -> ExpertComparison:
    """Counts where carried judgments and those of experts differ, on the documents that both judged.

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
    share = partial(proportion, confidence=confidence, method="exact")
    of_topics = carried["topic_id"].is_in(said["topic_id"].unique().implode())
    return ExpertComparison(
        relevant=share(len(wrong), len(relevant)),
        non_relevant=share(int(others["theirs"].sum()), len(others)),
        topics=share(wrong["topic_id"].n_unique(), relevant["topic_id"].n_unique()),
        unjudged=int(of_topics.sum()) - len(both),
        other_topics=carried.filter(~of_topics)["topic_id"].n_unique(),
        grades=grades,
        confidence=confidence,
        disagreements=both.filter(pl.col("ours") != pl.col("theirs")).select(
            "topic_id", "doc_id", pl.col("relevance").alias("carried"), pl.col("relevance_expert").alias("expert")
        ),
    )

"""Floors: what a list that never reads the query scores."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.measures.cross_validation import folds
from truerank.measures.grammar import parse_measures
from truerank.measures.scoring import evaluate
from truerank.options import Scoring

_SPLITS: Final = 20
#: Results that are scored at once.
_ROWS: Final = 50_000
#: More clusters than these have an interval in closed form.
_MANY: Final = 2_000
#: Measures that see relevant documents only.
_RELEVANT_ONLY: Final = ("nDCG", "AP", "RR", "P", "R", "Success", "Rprec")
#: Documents of the list where the measure has no cutoff.
_LENGTH: Final = 100


class Floor(NamedTuple):
    """What one list for all topics scores on topics that it was not made from.

    Attributes:
        mean: over topics and splits; None with fewer than two topics, or without relevant documents.
        low: the lower end of its interval; None where half of the topics or more are one cluster.
        high: the upper end.
        documents: how many the list holds.
        topics: how many were scored.
        clusters: of topics that share relevant documents, each of which is drawn as a whole.
        by_topic: the score of each topic, a mean over splits.
    """

    mean: float | None
    low: float | None
    high: float | None
    documents: int
    topics: int
    clusters: int
    by_topic: dict[str, float]

    def json(self) -> dict[str, float | int | None]:
        """The figures without those of single topics."""
        return {name: value for name, value in self._asdict().items() if name != "by_topic"}


def fixed_list(
    qrels: pl.DataFrame,
    measure: str,
    scoring: Scoring = Scoring(),
    *,
    splits: int = _SPLITS,
    confidence: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
) -> Floor:
    """Scores the best list that never reads the query, on topics that it was not made from.

    The topics are split in two. The list of each half are the documents with the largest sum, over the topics of the
    half, of a document's gain over the ideal gain of the topic; it is scored on the other half. The score of a topic is
    the mean over all splits. Its interval draws topics that share relevant documents, directly or through others,
    together.
    """
    parsed = parse_measures(measure)[0]
    cutoff = int(parsed.params.get("cutoff") or scoring.depth or _LENGTH)
    topics = sorted(qrels["topic_id"].unique())
    if len(topics) < 2:
        return Floor(None, None, None, 0, len(topics), len(topics), {})
    gains = worth(qrels, cutoff)
    if parsed.NAME in _RELEVANT_ONLY and not parsed.params.get("judged_only"):
        # What is not relevant changes nothing: of a topic without relevant documents one row is enough.
        scored = (pl.col("relevance") > 0) | ~(pl.col("relevance") > 0).any().over("topic_id")
        qrels = qrels.filter(scored)
    # Many splits are scored at once, as topics of their own: a call costs more than the topics of a small collection.
    together = max(1, _ROWS // (len(topics) * cutoff))
    sums, counts = dict.fromkeys(topics, 0.0), dict.fromkeys(topics, 0)
    for first in range(0, splits, together):
        some = range(first, min(first + together, splits))
        names = {split: f"{split} " if together > 1 else "" for split in some}
        halves = {split: folds(topics, 2, seed + split) for split in some}
        lists = [
            _scored_list(gains, halves[split][1 - side], halves[split][side], cutoff).with_columns(_copy(names[split]))
            for split in some
            for side in (0, 1)
        ]
        run = pl.concat(lists)
        if not len(run):
            continue
        copies = pl.concat([qrels.with_columns(_copy(names[split])) for split in some])
        found = evaluate(copies, {"lists": run}, measure, scoring)
        values = dict(zip(found.topics, found.of("lists", found.measures[0]).tolist(), strict=True))
        listed = set(run["topic_id"].unique())
        for split in some:
            for topic in topics:
                if (name := f"{names[split]}{topic}") in listed:
                    sums[topic] += values[name]
                    counts[topic] += 1
    by_topic = {topic: sums[topic] / counts[topic] for topic in topics if counts[topic]}
    if not by_topic:
        return Floor(None, None, None, 0, len(topics), len(topics), {})
    cluster = clusters(qrels.filter(pl.col("relevance") >= scoring.rel), list(by_topic))
    low, high = interval(np.array(list(by_topic.values())), cluster, confidence, resamples, seed)
    mean = float(np.mean(list(by_topic.values())))
    return Floor(mean, low, high, cutoff, len(by_topic), int(cluster.max()) + 1, by_topic)


def _copy(prefix: str) -> pl.Expr:
    return pl.concat_str(pl.lit(prefix), "topic_id").alias("topic_id") if prefix else pl.col("topic_id")


def worth(qrels: pl.DataFrame, cutoff: int) -> pl.DataFrame:
    """The gain of each document over the ideal gain of its topic: topic_id, doc_id, worth."""
    gains = qrels.filter(pl.col("relevance") > 0).sort(
        "topic_id", "relevance", "doc_id", descending=[False, True, False]
    )
    place = pl.int_range(pl.len()).over("topic_id")
    ideal = pl.col("relevance") * (place < cutoff) / (place + 2).log(2)
    return gains.with_columns(ideal.sum().over("topic_id").alias("ideal")).select(
        "topic_id", "doc_id", (pl.col("relevance") / pl.col("ideal")).alias("worth")
    )


def _scored_list(gains: pl.DataFrame, learnt: tuple[str, ...], tried: tuple[str, ...], cutoff: int) -> pl.DataFrame:
    """The list of some topics as a run over others."""
    own = gains.filter(pl.col("topic_id").is_in(list(learnt))).group_by("doc_id").agg(pl.col("worth").sum())
    best = own.with_columns(pl.col("worth").round(12)).sort("worth", "doc_id", descending=[True, False]).head(cutoff)
    ranked = best.select("doc_id", (pl.int_range(pl.len()) + 1).alias("rank"))
    ranked = ranked.with_columns((-pl.col("rank")).cast(pl.Float64).alias("score"))
    return pl.DataFrame({"topic_id": tried}).join(ranked, how="cross", maintain_order="left_right")


def clusters(relevant: pl.DataFrame, topics: list[str]) -> NDArray[np.int64]:
    """The cluster of each topic: those that share relevant documents, directly or through others."""
    number = {topic: at for at, topic in enumerate(topics)}
    held = relevant.filter(pl.col("topic_id").is_in(topics))
    rows = np.array([number[topic] for topic in held["topic_id"]], np.int64)
    documents = held["doc_id"].rank("dense").to_numpy().astype(np.int64) - 1 if len(held) else rows
    # The first topic of each document, and of that one's documents, and so on: scipy.sparse.csgraph is slow to load.
    found, before = np.arange(len(topics)), np.full(len(topics), -1)
    while not np.array_equal(found, before):
        before, first = found, np.full(len(held) + 1, len(topics))
        np.minimum.at(first, documents, before[rows])
        found = before.copy()
        np.minimum.at(found, rows, first[documents])
        found = found[found]
    return np.unique(found, return_inverse=True)[1]


def interval(
    values: Floats, cluster: NDArray[np.int64], confidence: float, resamples: int, seed: int
) -> tuple[float | None, float | None]:
    """Percentiles of means over clusters that are drawn again."""
    sums, sizes = np.bincount(cluster, values), np.bincount(cluster)
    if 2 * sizes.max() >= len(values) > 1 or len(sums) < 2:
        # Drawn again, one cluster that holds half of the topics is there twice, or not at all.
        return None, None
    if len(sums) > _MANY:
        # So many means are normal, and drawing them again takes seconds, or all memory.
        mean = float(sums.sum() / sizes.sum())
        error = math.sqrt(float(np.sum((sums - mean * sizes) ** 2))) / float(sizes.sum())
        reach = float(scipy.special.ndtri((1 + confidence) / 2)) * error
        return mean - reach, mean + reach
    drawn = np.random.default_rng(seed).integers(0, len(sums), (resamples, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)

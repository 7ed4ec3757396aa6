"""Memorisation: where rankers put the documents they were trained on, with and without the leak, on plain frames.

A leaked document that the first stage did not find is inserted into its ranking by its score, each by itself, so that
the worst rank is one more than the depth of the ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Floats
from truerank.errors import InputError
from truerank.measures.resampling import bootstrap_interval
from truerank.measures.significance import difference_test

#: What a model said: of the documents that it reranked (`candidate`) and of leaked ones that it did not.
SCORE_SCHEMA: Final[dict[str, Any]] = {
    "seed": pl.Int64,
    "topic_id": pl.String,
    "doc_id": pl.String,
    "score": pl.Float64,
    "candidate": pl.Boolean,
}
#: Which documents leaked for which topic, and whether as relevant or as non-relevant ones.
LEAKED_SCHEMA: Final[dict[str, Any]] = {"topic_id": pl.String, "doc_id": pl.String, "relevant": pl.Boolean}
#: What is known of a topic: see `Memorisation.topics`.
TOPIC_VALUES: Final = (
    "rank_with",
    "rank_without",
    "score_with",
    "score_without",
    "offset_with",
    "offset_without",
    "gain",
    "loss",
    "increase",
)
_PAIR: Final = ("topic_id", "doc_id")


class Draws(NamedTuple):
    """How intervals are drawn: the bootstrap over topics, its confidence, number of draws and seed."""

    confidence: float = 0.95
    resamples: int = 10_000
    seed: int = 0


class TopicSpread(NamedTuple):
    """One value per topic, summed up.

    `mean` is over `n` topics, `sd` the standard deviation over them (n − 1), `low` and `high` the percentile bootstrap
    over topics. None where there are too few topics.
    """

    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None


class MemorisationChange(NamedTuple):
    """A value per topic with and without the leak: both, and with minus without; `p` is of the paired t-test."""

    with_leak: TopicSpread
    without: TopicSpread
    difference: TopicSpread
    p: float | None


@dataclass(frozen=True, eq=False)
class Memorisation:
    """What training on the leak did to the leaked documents of every topic.

    Attributes:
        topics: one row per topic, sorted: topic_id; `relevant` and `non_relevant`, the numbers of leaked documents;
            the mean rank and score of the relevant ones with and without (null where there are none); the offset, mean
            rank of the non-relevant minus that of the relevant ones (null without either); `gain`, the ranks that the
            relevant ones rise by, `loss`, those that the non-relevant ones fall by, and `increase`, their sum.
            Each is the mean over documents within a seed, then over seeds.
        seeds: the seeds that both conditions have.
        unscored: leaked pairs that were not scored by both under any shared seed.
    """

    topics: pl.DataFrame
    seeds: tuple[int, ...]
    unscored: int

    def values(self, name: str) -> tuple[tuple[str, ...], Floats]:
        """The topics that have a value, and the values: one of `TOPIC_VALUES`."""
        known = self.topics.filter(pl.col(name).is_not_null())
        return tuple(known["topic_id"].to_list()), known[name].to_numpy()

    def rank(self, draws: Draws | None = None) -> MemorisationChange:
        """The mean rank of the leaked relevant documents, macro-averaged over topics."""
        return self._change("rank", draws)

    def score(self, draws: Draws | None = None) -> MemorisationChange:
        """Their mean score."""
        return self._change("score", draws)

    def offset(self, draws: Draws | None = None) -> MemorisationChange:
        """How many ranks lie between the leaked relevant and non-relevant documents; the difference is the increase."""
        return self._change("offset", draws)

    def spread(self, name: str, draws: Draws | None = None) -> TopicSpread:
        """One of `TOPIC_VALUES` summed up over topics."""
        return spread(self.values(name)[1], draws)

    def _change(self, name: str, draws: Draws | None) -> MemorisationChange:
        first, second = (self.values(f"{name}_{side}")[1] for side in ("with", "without"))
        p = difference_test(first, second, "paired-t").p if len(first) > 1 else None
        return MemorisationChange(spread(first, draws), spread(second, draws), spread(first - second, draws), p)


def insertion_ranks(scores: pl.DataFrame, by: Sequence[str] = ("topic_id",)) -> pl.DataFrame:
    """The rank of every document among the reranked ones, from 1; equal scores are in the order of the document ids.

    Source: leakage paper, section 4 (memorisation of leaked instances).
    """
    _check(scores, by)
    keys = list(by)
    ordered = scores.with_columns(pl.col("score") + 0.0).sort(
        *keys, "score", "doc_id", descending=[False] * len(keys) + [True, False]
    )
    before = pl.col("candidate").cast(pl.Int64).cum_sum().over(keys) - pl.col("candidate").cast(pl.Int64)
    return ordered.with_columns((before + 1).alias("rank"))


def memorisation(with_leak: pl.DataFrame, without: pl.DataFrame, leaked: pl.DataFrame) -> Memorisation:
    """Compares the ranks and scores of leaked documents between models trained with and without them.

    Source: leakage paper, section 4, Tables 6 to 8.
    """
    leaked = _columns(leaked, LEAKED_SCHEMA, "the leaked pairs").unique(maintain_order=False)
    if leaked.select(_PAIR).is_duplicated().any():
        pair = leaked.filter(leaked.select(_PAIR).is_duplicated()).sort(*_PAIR).row(0)
        raise InputError(
            f"topic {pair[0]}: document {pair[1]} leaked both as relevant and as non-relevant", "keep one of the two"
        )
    sides = [_columns(side, SCORE_SCHEMA, "the scores") for side in (with_leak, without)]
    seeds = sorted(set(sides[0]["seed"].unique()) & set(sides[1]["seed"].unique()))
    if not seeds:
        raise InputError("the models with and without the leak share no seed", "train both with the same seeds")
    found = [_of_leaked(side, leaked, seeds) for side in sides]
    pairs = found[0].join(found[1], on=["seed", *_PAIR, "relevant"], suffix="_without", how="inner")
    pairs = pairs.rename({"rank": "rank_with", "score": "score_with"})
    scored = pairs.select(_PAIR).unique().height
    return Memorisation(_by_topic(pairs), tuple(seeds), leaked.height - scored)


def spread(values: Floats, draws: Draws | None = None) -> TopicSpread:
    """Sums up one value per topic, shape (topics,)."""
    draws, n = draws or Draws(), len(values)
    if n < 2:
        return TopicSpread(n, float(values[0]) if n else None, None, None, None)
    ends = bootstrap_interval(
        [values], confidence=draws.confidence, method="percentile", resamples=draws.resamples, seed=draws.seed
    )
    return TopicSpread(n, float(values.mean()), float(values.std(ddof=1)), *ends)


def difference_of_differences(
    first: Memorisation, second: Memorisation, name: str = "score", draws: Draws | None = None
) -> TopicSpread:
    """How much more one leak changes a value than another one: (with − without) of the first minus of the second.

    Topics that both leaks have are drawn together, so that the interval knows how far they go along. A draw that
    happens to miss all topics of a leak is not counted.

    Source: leakage paper, section 4 (discussion of Table 7).
    """
    draws = draws or Draws()
    sides = [_differences(side, name) for side in (first, second)]
    topics = sorted(set(sides[0]) | set(sides[1]))
    if not sides[0] or not sides[1]:
        return TopicSpread(len(topics), None, None, None, None)
    values = np.array([[side.get(topic, 0.0) for topic in topics] for side in sides])
    there = np.array([[topic in side for topic in topics] for side in sides], dtype=np.float64)
    mean = float(values[0].sum() / there[0].sum() - values[1].sum() / there[1].sum())
    if min(map(len, sides)) < 2:
        return TopicSpread(len(topics), mean, None, None, None)
    rng, n = np.random.default_rng(draws.seed), len(topics)
    times = rng.multinomial(n, np.full(n, 1 / n), size=draws.resamples).astype(np.float64)
    counts = times @ there.T
    drawn = (times @ values.T)[(counts > 0).all(axis=1)] / counts[(counts > 0).all(axis=1)]
    tail = (1 - draws.confidence) / 2
    low, high = np.quantile(drawn[:, 0] - drawn[:, 1], [tail, 1 - tail])
    return TopicSpread(n, mean, None, float(low), float(high))


def _differences(one: Memorisation, name: str) -> dict[str, float]:
    topics, first = one.values(f"{name}_with")
    _, second = one.values(f"{name}_without")
    return dict(zip(topics, (first - second).tolist(), strict=True))


def _of_leaked(scores: pl.DataFrame, leaked: pl.DataFrame, seeds: Sequence[int]) -> pl.DataFrame:
    """Rank and score of the leaked documents: seed, topic_id, doc_id, relevant, rank, score."""
    kept = scores.filter(pl.col("seed").is_in(list(seeds)))
    kept = kept.join(leaked.select("topic_id").unique(), on="topic_id", how="semi")
    return (
        insertion_ranks(kept, ("seed", "topic_id"))
        .join(leaked, on=_PAIR, how="inner")
        .select("seed", *_PAIR, "relevant", "rank", "score")
    )


def _by_topic(pairs: pl.DataFrame) -> pl.DataFrame:
    """The values of each topic: the mean over documents within a seed, then over seeds."""
    relevant = pl.col("relevant")
    means = [
        pl.col(name).filter(relevant if kind == "relevant" else ~relevant).cast(pl.Float64).mean().alias(alias)
        for name, kind, alias in (
            ("rank_with", "relevant", "rank_with"),
            ("rank_without", "relevant", "rank_without"),
            ("score_with", "relevant", "score_with"),
            ("score_without", "relevant", "score_without"),
            ("rank_with", "other", "other_with"),
            ("rank_without", "other", "other_without"),
        )
    ]
    counts = [
        pl.col("doc_id").filter(relevant).n_unique().alias("relevant"),
        pl.col("doc_id").filter(~relevant).n_unique().alias("non_relevant"),
    ]
    # Rows are sorted first: a sum in another order differs in its last bit.
    by_seed = pairs.sort("topic_id", "seed", "doc_id").group_by("topic_id", "seed", maintain_order=True).agg(*means)
    numbers = pairs.group_by("topic_id").agg(*counts)
    topics = by_seed.group_by("topic_id", maintain_order=True).agg(pl.exclude("seed").mean())
    both = pl.col("offset_with").is_not_null()
    return (
        topics.join(numbers, on="topic_id", how="left", maintain_order="left")
        .with_columns(
            (pl.col("other_with") - pl.col("rank_with")).alias("offset_with"),
            (pl.col("other_without") - pl.col("rank_without")).alias("offset_without"),
        )
        .with_columns(
            pl.when(both).then(pl.col("rank_without") - pl.col("rank_with")).alias("gain"),
            pl.when(both).then(pl.col("other_with") - pl.col("other_without")).alias("loss"),
            (pl.col("offset_with") - pl.col("offset_without")).alias("increase"),
        )
        .select("topic_id", "relevant", "non_relevant", *TOPIC_VALUES)
        .sort("topic_id")
    )


def _columns(frame: pl.DataFrame, schema: dict[str, Any], what: str) -> pl.DataFrame:
    if missing := [name for name in schema if name not in frame.columns]:
        raise InputError(f"columns missing: {', '.join(missing)}", f"needed are {', '.join(schema)}", where=what)
    return frame.select([pl.col(name).cast(kind) for name, kind in schema.items()])


def _check(scores: pl.DataFrame, by: Sequence[str]) -> None:
    unusable = scores.filter(~pl.col("score").is_finite() | pl.col("score").is_null())
    if unusable.height:
        row = unusable.row(0, named=True)
        raise InputError(
            f"document {row['doc_id']} has {row['score']} as its score", "train the model again, or leave it out"
        )
    twice = scores.select(*by, "doc_id").is_duplicated()
    if twice.any():
        row = scores.filter(twice).row(0, named=True)
        raise InputError(f"document {row['doc_id']} stands twice in a ranking", "keep one of its scores")

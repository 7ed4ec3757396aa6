"""Null rankers: what rankings score that never read the query. A system's score is worth what it has above them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Floats
from truerank.measures.effectiveness import gains_of
from truerank.measures.floors import Floor, clusters, fixed_list, interval, worth
from truerank.measures.grammar import lower_is_better, parse_measures
from truerank.measures.scoring import evaluate
from truerank.options import Scoring

#: Results of a run over a collection.
_LONGEST: Final = 1_000
#: Orders of the judged documents that cannot know the query, by name: the columns to sort by, and which of them from
#: the largest.
_ORDERS: Final[Mapping[str, tuple[list[str], list[bool]]]] = {
    "order of the file": (["line"], [False]),
    "reversed order of the file": (["line"], [True]),
    "document id, ascending": (["doc_id"], [False]),
    "document id, descending": (["doc_id"], [True]),
    "often relevant elsewhere": (["elsewhere", "random"], [True, False]),
}


class NullRanker(NamedTuple):
    """A ranking that never reads the query, and what it scores.

    Attributes:
        name: how it ranks.
        of: what it ranks: "collection", or "judged": the judged documents of each topic that has relevant and other
            ones, as a reranker gets them.
        floor: the score, a mean over the topics, with its interval.
        above_random: of an order of the judged documents: the mean difference from random order; None for others.
        above_random_low: the lower end of its interval.
    """

    name: str
    of: str
    floor: Floor
    above_random: float | None = None
    above_random_low: float | None = None

    def json(self) -> dict[str, Any]:
        """The figures without those of single topics."""
        return {**self._asdict(), "floor": self.floor.json()}


def null_rankers(
    qrels: pl.DataFrame,
    measure: str,
    scoring: Scoring = Scoring(),
    *,
    lists: Mapping[str, Sequence[str]] | None = None,
    documents: int | None = None,
    confidence: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
) -> tuple[NullRanker, ...]:
    """What rankings score that never read the query.

    Args:
        qrels: columns topic_id, doc_id and relevance, in the order of the file.
        measure: by its name; the larger its values the better.
        scoring: how runs are scored.
        lists: fixed lists of documents to score, by name, such as the longest documents first.
        documents: how many documents the collection has; None where nobody knows.
        confidence: of the intervals.
        resamples: how often topics are drawn again.
        seed: of all draws.

    Returns:
        The best fixed list, cross-fitted (`floors.fixed_list`); the lists that were given; random order of the
        collection, in closed form; and, where topics have judged documents that are not relevant: random order of a
        topic's judged documents, in closed form, and orders by their ids, their lines, and how often they are relevant
        for other topics. The intervals of orders against random order hold for all of them together (Bonferroni). Fixed
        lists are drawn again by clusters of topics that share relevant documents, orders by topics.
    """
    (parsed,) = parse_measures(measure)
    if lower_is_better(parsed):
        return ()
    relevant = qrels.filter(pl.col("relevance") >= scoring.rel)
    found: list[NullRanker] = []

    def floor(by_topic: Mapping[str, float], listed: int, level: float = confidence, alone: bool = False) -> Floor:
        topics, values = list(by_topic), np.array(list(by_topic.values()), np.float64)
        if not topics:
            return Floor(None, None, None, listed, 0, 0, {})
        cluster = np.arange(len(topics)) if alone else clusters(relevant, topics)
        low, high = interval(values, cluster, level, resamples, seed)
        return Floor(float(values.mean()), low, high, listed, len(topics), int(cluster.max()) + 1, dict(by_topic))

    if qrels["topic_id"].n_unique() > 1:
        fixed = fixed_list(qrels, measure, scoring, confidence=confidence, resamples=resamples, seed=seed)
        found.append(NullRanker("the best fixed list", "collection", fixed))
    of_lists = {name: _same_list(qrels, documents_of) for name, documents_of in (lists or {}).items()}
    for name, scores in _scored(qrels, of_lists, measure, scoring).items():
        found.append(NullRanker(name, "collection", floor(scores, len((lists or {})[name]))))
    if documents is not None and (random := random_order(qrels, measure, scoring, documents)) is not None:
        found.append(NullRanker("random order", "collection", floor(random, documents)))
    graded = qrels.group_by("topic_id").agg((pl.col("relevance") >= scoring.rel).mean().alias("share"))
    mixed = graded.filter((pl.col("share") > 0) & (pl.col("share") < 1)).select("topic_id")
    judged = qrels.with_row_index("line").join(mixed, on="topic_id", how="semi", maintain_order="left")
    if not len(judged):
        return tuple(found)
    random = random_order(judged.drop("line"), measure, scoring)
    if random is not None:
        found.append(NullRanker("random order", "judged", floor(random, len(judged), alone=True)))
    ordered = judged.join(_elsewhere(qrels), on=["topic_id", "doc_id"], how="left", maintain_order="left").with_columns(
        pl.Series("random", np.random.default_rng(seed).permutation(len(judged)))
    )
    orders = {
        name: _ranked(ordered.sort("topic_id", *columns, descending=[False, *descending], maintain_order=True))
        for name, (columns, descending) in _ORDERS.items()
        if "elsewhere" not in columns or ordered["elsewhere"].max()
    }
    for name, scores in _scored(judged.drop("line"), orders, measure, scoring).items():
        own = floor(scores, len(judged), alone=True)
        if random is None:
            found.append(NullRanker(name, "judged", own))
            continue
        above = floor({t: scores[t] - random[t] for t in scores}, 0, 1 - (1 - confidence) / len(_ORDERS), alone=True)
        found.append(NullRanker(name, "judged", own, above.mean, above.low))
    return tuple(found)


def _ranked(frame: pl.DataFrame) -> pl.DataFrame:
    """A run in the order of the rows."""
    rank = pl.int_range(1, pl.len() + 1).over("topic_id")
    return frame.select("topic_id", "doc_id", rank.alias("rank"), (-rank).cast(pl.Float64).alias("score"))


def _same_list(qrels: pl.DataFrame, documents: Sequence[str]) -> pl.DataFrame:
    topics = pl.DataFrame({"topic_id": qrels["topic_id"].unique(maintain_order=True)})
    return _ranked(topics.join(pl.DataFrame({"doc_id": [*documents]}), how="cross", maintain_order="left_right"))


def _scored(
    qrels: pl.DataFrame, runs: Mapping[str, pl.DataFrame], measure: str, scoring: Scoring
) -> dict[str, dict[str, float]]:
    if not runs:
        return {}
    scored = evaluate(qrels, runs, measure, scoring)
    return {name: dict(zip(scored.topics, scored.of(name, scored.measures[0]).tolist(), strict=True)) for name in runs}


def _elsewhere(qrels: pl.DataFrame) -> pl.DataFrame:
    """What each judged document gains for the other topics."""
    gains = worth(qrels, len(qrels))
    every = gains.group_by("doc_id").agg(pl.col("worth").sum().alias("all"))
    joined = qrels.select("topic_id", "doc_id").join(gains, on=["topic_id", "doc_id"], how="left").join(
        every, on="doc_id", how="left"
    )  # fmt: skip
    own = (pl.col("all").fill_null(0) - pl.col("worth").fill_null(0)).round(12)
    return joined.select("topic_id", "doc_id", own.alias("elsewhere")).unique(["topic_id", "doc_id"])


class _Pools(NamedTuple):
    """Topics with what they can be ranked from; arrays of shape (topics,).

    `candidates` can be ranked, `relevant` of them are so; `depth` ranks are seen, and `gain` is the mean gain of a
    candidate over the ideal gain of the topic.
    """

    candidates: Floats
    relevant: Floats
    depth: Floats
    gain: Floats
    cutoff: float


def random_order(
    qrels: pl.DataFrame, measure: str, scoring: Scoring = Scoring(), documents: int | None = None
) -> dict[str, float] | None:
    """The expected score of a random order, by topic, in closed form.

    Args:
        qrels: columns topic_id, doc_id and relevance.
        measure: nDCG, AP, RR, P, R, Success or Rprec, with or without cut-off.
        scoring: how runs are scored.
        documents: of the collection that is ranked, down to 1,000 results; by default a topic's judged documents are.

    Returns:
        None for a measure without a closed form here.
    """
    (parsed,) = parse_measures(measure)
    expected = _EXPECTED.get(parsed.NAME)
    rel = int(parsed.params.get("rel", scoring.rel))
    if expected is None or parsed.params.get("judged_only"):
        return None
    frame = qrels.with_columns(pl.Series("gain", gains_of(parsed, qrels["relevance"].to_numpy().astype(np.int64))))
    cutoff = float(parsed.params.get("cutoff") or np.inf)
    rank = pl.int_range(1, pl.len() + 1)
    best = pl.col("gain").sort(descending=True)
    ideal = (best * (rank <= cutoff) / (rank + 1).log(2)).sum()
    by_topic = frame.group_by("topic_id", maintain_order=True).agg(
        pl.len().alias("candidates"),
        (pl.col("relevance") >= rel).sum().alias("relevant"),
        (pl.col("gain").sum() / ideal).fill_nan(0).alias("share"),
    )
    candidates = by_topic["candidates"].to_numpy().astype(np.float64)
    if documents is not None:
        candidates = np.maximum(candidates, documents)
    longest = np.inf if documents is None else _LONGEST
    depth = np.minimum(candidates, min(cutoff, scoring.depth or longest))
    pools = _Pools(
        candidates,
        by_topic["relevant"].to_numpy().astype(np.float64),
        depth,
        by_topic["share"].to_numpy() / candidates,
        cutoff,
    )
    return dict(zip(by_topic["topic_id"].to_list(), expected(pools).tolist(), strict=True))


def _harmonic(numbers: Floats) -> Floats:
    return np.asarray(scipy.special.digamma(numbers + 1) - scipy.special.digamma(1))


def _expected_ndcg(pools: _Pools) -> Floats:
    most = int(pools.depth.max())
    discounts = np.append(0, np.cumsum(1 / np.log2(np.arange(2, most + 2))))
    return np.asarray(pools.gain * discounts[pools.depth.astype(np.int64)])


def _expected_precision(pools: _Pools) -> Floats:
    shown = pools.cutoff if np.isfinite(pools.cutoff) else pools.depth
    return np.asarray(pools.relevant * pools.depth / pools.candidates / shown)


def _expected_recall(pools: _Pools) -> Floats:
    return np.where(pools.relevant > 0, pools.depth / pools.candidates, 0.0)


def _first_hits(pools: _Pools) -> Iterator[tuple[int, Floats]]:
    """Ranks from 1, and by topic the chance that the first relevant document is there."""
    missed = np.ones(len(pools.candidates))
    for rank in range(1, int(pools.depth.max()) + 1):
        left = pools.candidates - rank + 1
        hit = np.minimum(1, np.divide(pools.relevant, left, out=np.zeros_like(left), where=left > 0))
        yield rank, np.where(rank <= pools.depth, missed * hit, 0)
        missed = missed * (1 - hit)


def _expected_reciprocal_rank(pools: _Pools) -> Floats:
    return np.asarray(sum((chance / rank for rank, chance in _first_hits(pools)), np.zeros(len(pools.candidates))))


def _expected_success(pools: _Pools) -> Floats:
    return np.asarray(sum((chance for _, chance in _first_hits(pools)), np.zeros(len(pools.candidates))))


def _expected_ap(pools: _Pools) -> Floats:
    """The chance of a hit at a rank times the precision there, given the hit, over all relevant ones."""
    harmonic = _harmonic(pools.depth)
    others = np.divide(
        pools.relevant - 1, pools.candidates - 1, out=np.zeros_like(pools.relevant), where=pools.candidates > 1
    )
    value = (harmonic + (pools.depth - harmonic) * others) / pools.candidates
    return np.where(pools.relevant > 0, value, 0.0)


def _expected_r_precision(pools: _Pools) -> Floats:
    seen = np.minimum(pools.relevant, pools.depth)
    return np.where(pools.relevant > 0, seen / pools.candidates, 0.0)


_EXPECTED: Final[Mapping[str, Callable[[_Pools], Floats]]] = {
    "nDCG": _expected_ndcg, "AP": _expected_ap, "RR": _expected_reciprocal_rank, "P": _expected_precision,
    "R": _expected_recall, "Success": _expected_success, "Rprec": _expected_r_precision,
}  # fmt: skip

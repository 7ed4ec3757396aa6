"""Null rankers: what rankings score that never read the query. A system's score is worth what it has above them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Floats
from truerank.measures.effectiveness import gains_of
from truerank.measures.floors import Drawn, Floor, RankingScorer, clusters, fixed_list, interval, worth
from truerank.measures.grammar import lower_is_better, parse_measures
from truerank.options import Scoring

#: Results of a run over a collection.
_LONGEST: Final = 1_000
#: Orders of the judged documents that cannot know the query, by name: the column to sort by, and whether from the
#: largest. Evaluation programs make the first four of a run whose scores are all the same.
_ORDERS: Final[Mapping[str, tuple[str, bool]]] = {
    "equal scores, in the order of the file": ("line", False),
    "equal scores, in the reversed order of the file": ("line", True),
    "equal scores, by document id, ascending": ("doc_id", False),
    "equal scores, by document id, descending": ("doc_id", True),
    "often relevant elsewhere": ("elsewhere", True),
    "longest first": ("length", True),
    "shortest first": ("length", False),
    "first in the collection": ("place", False),
    "last in the collection": ("place", True),
}
#: What rules for ties make of such a run that look at the judgments: bounds, and no rankings.
_BOUNDS: Final = ("equal scores, relevant ones first", "equal scores, relevant ones last")


class NullRanker(NamedTuple):
    """A ranking that never reads the query, and what it scores.

    Attributes:
        name: how it ranks.
        of: what it ranks: "collection"; "candidates": what all runs rank for a topic; or "judged": the judged documents
            of each topic that has relevant and other ones, as a reranker gets them.
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
    about: Mapping[str, Mapping[str, int]] | None = None,
    documents: int | None = None,
    candidates: pl.DataFrame | None = None,
    confidence: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
) -> tuple[NullRanker, ...]:
    """What rankings score that never read the query.

    Args:
        qrels: columns topic_id, doc_id and relevance, in the order of the file.
        measure: by its name; the larger its values the better.
        lists: fixed lists of documents to score, by name, such as the longest documents first.
        about: of judged documents, by id, the "length" and the "place" in the collection.
        documents: how many documents the collection has; None where nobody knows.
        candidates: columns topic_id and doc_id: what can be ranked for a topic.
        resamples: how often topics are drawn again.

    Returns:
        The best fixed list, cross-fitted (`floors.fixed_list`); the lists that were given; random order of the
        collection and of the candidates, in closed form; and, where topics have judged documents that are not relevant:
        random order of a topic's judged documents, in closed form, and orders by their ids, lines, lengths and places,
        and by how often they are relevant for other topics. The intervals of orders against random order hold for all
        of them together (Bonferroni). Fixed lists are drawn again by clusters of topics that share relevant documents,
        orders by topics.
    """
    (parsed,) = parse_measures(measure)
    if lower_is_better(parsed):
        return ()
    relevant = qrels.filter(pl.col("relevance") >= scoring.rel)
    found: list[NullRanker] = []

    def floor(
        topics: Sequence[str], values: Floats, listed: int, level: float = confidence, alone: bool = False
    ) -> Floor:
        if not len(topics):
            return Floor(None, None, None, listed, 0, 0, {})
        shared = np.arange(len(topics)) if alone else clusters(relevant, [*topics])
        together = 2 * int(np.bincount(shared).max()) >= len(topics) > 1
        low, high = interval(values, np.arange(len(topics)) if together else shared, level, resamples, seed)
        by_topic = dict(zip(topics, values.tolist(), strict=True))
        drawn: Drawn = "topics" if alone or together else "clusters"
        return Floor(float(values.mean()), low, high, listed, len(topics), int(shared.max()) + 1, by_topic, drawn)

    if qrels["topic_id"].n_unique() > 1:
        fixed = fixed_list(qrels, measure, scoring, confidence=confidence, seed=seed)
        found.append(NullRanker("the best fixed list", "collection", fixed))
    if lists:
        every = RankingScorer(qrels, measure, scoring)
        for name, ids in lists.items():
            found.append(NullRanker(name, "collection", floor(every.table.topics, every.same_list(ids), len(ids))))
    for of, ranked in (("collection", documents), ("candidates", candidates)):
        random = None if ranked is None else random_order(qrels, measure, scoring, ranked)
        if random:
            size = ranked if isinstance(ranked, int) else len(candidates if candidates is not None else ())
            values = np.array([*random.values()])
            found.append(NullRanker("random order", of, floor([*random], values, size, alone=of == "candidates")))
    graded = qrels.group_by("topic_id").agg((pl.col("relevance") >= scoring.rel).mean().alias("share"))
    mixed = graded.filter((pl.col("share") > 0) & (pl.col("share") < 1)).select("topic_id")
    own = qrels.join(mixed, on="topic_id", how="semi", maintain_order="left")
    if not len(own):
        return tuple(found)
    return (
        *found,
        *_of_judged(qrels, own, measure, scoring, floor=floor, confidence=confidence, about=about, seed=seed),
    )


def _of_judged(
    qrels: pl.DataFrame,
    own: pl.DataFrame,
    measure: str,
    scoring: Scoring,
    *,
    floor: Callable[..., Floor],
    confidence: float,
    about: Mapping[str, Mapping[str, int]] | None,
    seed: int,
) -> Iterator[NullRanker]:
    """Orders of the judged documents of a topic."""
    judged = RankingScorer(own, measure, scoring)
    topics, number = judged.table.topics, len(own)
    random = random_order(judged.qrels, measure, scoring)
    chance = None if random is None else np.array([random[topic] for topic in topics])
    if chance is not None:
        yield NullRanker("random order", "judged", floor(topics, chance, number, alone=True))
    keys = judged.qrels.join(_elsewhere(qrels), on=["topic_id", "doc_id"], how="left", maintain_order="left")
    columns = {"doc_id": keys["doc_id"].rank("dense"), "elsewhere": keys["elsewhere"].fill_null(0)}
    for name, numbers in (about or {}).items():
        columns[name] = keys["doc_id"].replace_strict(dict(numbers), default=0, return_dtype=pl.Int64)
    equal = np.random.default_rng(seed).permutation(number)
    rising = {
        name: np.lexsort((equal, column.to_numpy(), judged.table.topic))
        for name, column in columns.items()
        if (column != 0).any()
    } | {"line": np.arange(number)}
    orders = {name: column for name, (column, _) in _ORDERS.items() if column in rising}
    for name, column in orders.items():
        order = judged.reversed(rising[column]) if _ORDERS[name][1] else rising[column]
        values = judged.order(order)
        ranked = floor(topics, values, number, alone=True)
        if chance is None:
            yield NullRanker(name, "judged", ranked)
            continue
        above = floor(topics, values - chance, 0, 1 - (1 - confidence) / len(orders), alone=True)
        yield NullRanker(name, "judged", ranked, above.mean, above.low)
    worst = np.lexsort((judged.table.relevance, judged.table.topic))
    for name, order in zip(_BOUNDS, (judged.reversed(worst), worst), strict=True):
        yield NullRanker(name, "judged", floor(topics, judged.order(order), number, alone=True))


def _elsewhere(qrels: pl.DataFrame) -> pl.DataFrame:
    """What each judged document gains for the other topics."""
    gains = worth(qrels, len(qrels))
    every = gains.group_by("doc_id").agg(pl.col("worth").sum().alias("all"))
    # Most judged documents are relevant for no topic at all.
    joined = qrels.select("topic_id", "doc_id").join(every, on="doc_id").join(
        gains, on=["topic_id", "doc_id"], how="left"
    )  # fmt: skip
    own = (pl.col("all") - pl.col("worth").fill_null(0)).round(12).alias("elsewhere")
    return joined.select("topic_id", "doc_id", own).filter(pl.col("elsewhere") > 0).unique(["topic_id", "doc_id"])


class _Pools(NamedTuple):
    """Topics with what they can be ranked from; arrays of shape (topics,).

    `candidates` can be ranked, `relevant` of them are so, of `possible` ones; `depth` ranks are seen, and `gain` is the
    mean gain of a candidate over the ideal gain of the topic.
    """

    candidates: Floats
    relevant: Floats
    possible: Floats
    depth: Floats
    gain: Floats
    cutoff: float


def random_order(
    qrels: pl.DataFrame, measure: str, scoring: Scoring = Scoring(), ranked: int | pl.DataFrame | None = None
) -> dict[str, float] | None:
    """The expected score of a random order, by topic, in closed form.

    Args:
        qrels: columns topic_id, doc_id and relevance.
        measure: nDCG, AP, RR, P, R, Success or Rprec, with or without cut-off.
        ranked: how many documents the collection has, which is ranked down to 1,000 results; or what is ranked, as
            columns topic_id and doc_id; by default a topic's judged documents.

    Returns:
        None for a measure without a closed form here.
    """
    (parsed,) = parse_measures(measure)
    expected = _EXPECTED.get(parsed.NAME)
    rel = int(parsed.params.get("rel", scoring.rel))
    if expected is None or parsed.params.get("judged_only"):
        return None
    frame = qrels.with_columns(
        pl.Series("gain", gains_of(parsed, qrels["relevance"].to_numpy().astype(np.int64))),
        pl.lit(True).alias("there"),
    )
    counted = pl.len().alias("candidates")
    if isinstance(ranked, pl.DataFrame):
        there = ranked.select("topic_id", "doc_id", pl.lit(True).alias("there")).unique()
        frame = frame.drop("there").join(there, on=["topic_id", "doc_id"], how="left", maintain_order="left")
        sizes = there.group_by("topic_id").agg(pl.len().alias("size"))
        frame = frame.with_columns(pl.col("there").fill_null(False)).join(sizes, on="topic_id", maintain_order="left")
        counted = pl.col("size").first().alias("candidates")
    cutoff = float(parsed.params.get("cutoff") or np.inf)
    best = pl.col("gain").filter(pl.col("gain") > 0).sort(descending=True)
    rank = pl.int_range(1, best.len() + 1)
    ideal = (best * (rank <= cutoff) / (rank + 1).log(2)).sum()
    good = pl.col("relevance") >= rel
    by_topic = frame.group_by("topic_id", maintain_order=True).agg(
        counted,
        (good & pl.col("there")).sum().alias("relevant"),
        good.sum().alias("possible"),
        ((pl.col("gain") * pl.col("there")).sum() / ideal).fill_nan(0).alias("share"),
    )
    if not len(by_topic):
        return {}
    candidates = by_topic["candidates"].to_numpy().astype(np.float64)
    if isinstance(ranked, int):
        candidates = np.maximum(candidates, ranked)
    longest = _LONGEST if isinstance(ranked, int) else np.inf
    depth = np.minimum(candidates, min(cutoff, scoring.depth or longest))
    relevant, possible = (by_topic[name].to_numpy().astype(np.float64) for name in ("relevant", "possible"))
    pools = _Pools(candidates, relevant, possible, depth, by_topic["share"].to_numpy() / candidates, cutoff)
    return dict(zip(by_topic["topic_id"].to_list(), expected(pools).tolist(), strict=True))


def _expected_ndcg(pools: _Pools) -> Floats:
    most = int(pools.depth.max())
    discounts = np.append(0, np.cumsum(1 / np.log2(np.arange(2, most + 2))))
    return np.asarray(pools.gain * discounts[pools.depth.astype(np.int64)])


def _expected_precision(pools: _Pools) -> Floats:
    shown = pools.cutoff if np.isfinite(pools.cutoff) else pools.depth
    return np.asarray(pools.relevant * pools.depth / pools.candidates / shown)


def _expected_recall(pools: _Pools) -> Floats:
    return _of_possible(pools, pools.depth / pools.candidates)


def _of_possible(pools: _Pools, shown: Floats) -> Floats:
    """The share of the relevant documents that a ranking shows, of which it shows such a share."""
    found = pools.relevant * shown
    return np.divide(found, pools.possible, out=np.zeros_like(found), where=pools.possible > 0)


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
    harmonic = np.asarray(scipy.special.digamma(pools.depth + 1) - scipy.special.digamma(1))
    others = np.divide(
        pools.relevant - 1, pools.candidates - 1, out=np.zeros_like(pools.relevant), where=pools.candidates > 1
    )
    return _of_possible(pools, (harmonic + (pools.depth - harmonic) * others) / pools.candidates)


def _expected_r_precision(pools: _Pools) -> Floats:
    return _of_possible(pools, np.minimum(pools.possible, pools.depth) / pools.candidates)


_EXPECTED: Final[Mapping[str, Callable[[_Pools], Floats]]] = {
    "nDCG": _expected_ndcg, "AP": _expected_ap, "RR": _expected_reciprocal_rank, "P": _expected_precision,
    "R": _expected_recall, "Success": _expected_success, "Rprec": _expected_r_precision,
}  # fmt: skip

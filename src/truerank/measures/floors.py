"""Floors: what a list that never reads the query scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.arrays import Flags, Floats, Ints
from truerank.measures import effectiveness
from truerank.measures.effectiveness import RankedJudgments
from truerank.measures.grammar import parse_measures
from truerank.measures.rankings import GradeTable, Hits
from truerank.measures.scoring import evaluate
from truerank.options import Scoring

_SPLITS: Final = 20
#: More clusters than these have an interval in closed form, and more topics fewer splits for theirs.
_MANY: Final = 2_000
#: Documents of the list where the measure has no cutoff.
_LENGTH: Final = 100
#: For the interval of the best list: parts of which one at a time is left out, fewest of them, splits of each.
_PARTS, _FEWEST_PARTS, _PART_SPLITS = 20, 5, 5

#: What an interval draws again: clusters of topics that share relevant documents, or single topics.
Drawn = Literal["clusters", "topics"]


class Floor(NamedTuple):
    """What one list for all topics scores on topics that it was not made from.

    Attributes:
        mean: over topics and splits; None with fewer than two topics, or without relevant documents.
        low: the lower end of its interval; None with too few topics.
        documents: how many the list holds.
        topics: how many were scored.
        clusters: of topics that share relevant documents.
        by_topic: the score of each topic, a mean over splits.
        drawn: what the interval is for: other clusters of topics, or, where half of the topics or more are one
            cluster, other topics of the same kind.
    """

    mean: float | None
    low: float | None
    high: float | None
    documents: int
    topics: int
    clusters: int
    by_topic: dict[str, float]
    drawn: Drawn = "clusters"

    def json(self) -> dict[str, float | int | str | None]:
        """The figures without those of single topics."""
        return {name: value for name, value in self._asdict().items() if name != "by_topic"}


class RankingScorer:
    """Judgments by which rankings are scored that are the same for many topics, or hold judged documents only.

    Attributes:
        qrels: columns topic_id, doc_id and relevance, equal topics together.
        table: the judgments by number.
        lengths: how many judgments each topic has, shape (topics,).
    """

    def __init__(self, qrels: pl.DataFrame, measure: str, scoring: Scoring) -> None:
        self.qrels = qrels.sort("topic_id", maintain_order=True)
        self.measure, self.scoring = measure, scoring
        self.table = GradeTable(self.qrels)
        self.lengths: Ints = np.bincount(self.table.topic).astype(np.int64)

    def scores(self, rows: Ints, rank: Ints, results: Ints, run: Callable[[], pl.DataFrame]) -> Floats:
        """The score of each topic, shape (topics,).

        Args:
            rows: judgments whose documents are in the ranking of their topic, by topic and rank.
            rank: their ranks there, from 0.
            results: how many results each topic has.
            run: the whole ranking; made only where a measure needs it.
        """
        (parsed,) = parse_measures(self.measure)
        if not effectiveness.computes(parsed):
            found = evaluate(self.qrels, {"list": run()}, self.measure, self.scoring)
            return found.of("list", found.measures[0])
        if self.scoring.depth is not None:
            rows, rank = rows[rank < self.scoring.depth], rank[rank < self.scoring.depth]
            results = np.minimum(results, self.scoring.depth)
        hits = Hits(self.table.topic[rows].astype(np.int64), rank, self.table.relevance[rows], results)
        return effectiveness.score(parsed, RankedJudgments(self.table, hits, hits, self.scoring))

    def same_list(self, documents: Sequence[str]) -> Floats:
        """The scores of one list for all topics."""
        topics = self.table.topics
        listed = pl.DataFrame({"doc_id": [*documents], "place": np.arange(len(documents))})
        place = self.qrels.select("doc_id").join(listed, on="doc_id", how="left", maintain_order="left")["place"]
        rows = np.flatnonzero(place.is_not_null().to_numpy())
        rank = place.fill_null(-1).to_numpy()[rows]
        order = np.lexsort((rank, self.table.topic[rows]))
        results = np.full(len(topics), len(documents))
        return self.scores(rows[order], rank[order], results, lambda: _run([(topics, documents)]))

    def reversed(self, order: Ints) -> Ints:
        """An order of the judgments by topic, the last one of each topic first."""
        ends = np.cumsum(self.lengths)
        return order[np.repeat(2 * ends - self.lengths - 1, self.lengths) - np.arange(len(order))]

    def order(self, order: Ints) -> Floats:
        """The scores of the judged documents of each topic, in an order of the judgments by topic."""
        rank = np.arange(len(order)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        return self.scores(order, rank, self.lengths, lambda: _ranked(self.qrels[order]))


def _ranked(frame: pl.DataFrame) -> pl.DataFrame:
    """A run in the order of the rows."""
    rank = pl.int_range(1, pl.len() + 1).over("topic_id")
    return frame.select("topic_id", "doc_id", rank.alias("rank"), (-rank).cast(pl.Float64).alias("score"))


def _run(lists: Sequence[tuple[Sequence[str], Sequence[str]]]) -> pl.DataFrame:
    """A run of lists, each for some topics."""
    parts = [
        pl.DataFrame({"topic_id": [*topics]}, {"topic_id": pl.String}).join(
            pl.DataFrame({"doc_id": [*documents]}, {"doc_id": pl.String}), how="cross", maintain_order="left_right"
        )
        for topics, documents in lists
    ]
    return _ranked(pl.concat(parts))


class _Lists:
    """The best list of some topics, and what it scores on others."""

    def __init__(self, judged: RankingScorer, cutoff: int) -> None:
        self.judged, self._cutoff = judged, cutoff
        gains = worth(judged.qrels, cutoff)
        self._ids = gains["doc_id"].unique().sort()
        number = pl.DataFrame({"doc_id": self._ids, "number": np.arange(len(self._ids))})
        self._gain = gains.join(number, on="doc_id", how="left", maintain_order="left")
        self._topic = judged.table.numbers(self._gain["topic_id"]).astype(np.int64)
        self._number, self._worth = self._gain["number"].to_numpy(), self._gain["worth"].to_numpy()
        # Only documents that are worth something can be in a list.
        found = judged.qrels.select("doc_id").join(number, on="doc_id", how="left", maintain_order="left")["number"]
        self._rows = np.flatnonzero(found.is_not_null().to_numpy())
        self._document = found.fill_null(-1).to_numpy()[self._rows]
        self._of = judged.table.topic[self._rows]

    def __bool__(self) -> bool:
        return bool(len(self._ids))

    def crossed(self, half: Flags, counted: Flags) -> Floats:
        """The list of each half of the topics that count, scored on the other half; NaN for others and without list."""
        topics = self.judged.table.topics
        rank, results = np.full(len(self._rows), -1), np.zeros(len(topics), np.int64)
        used: list[tuple[Flags, Ints]] = []
        for tried in (half, ~half):
            best, place = self._best(~tried & counted), np.full(len(self._ids), -1)
            place[best] = np.arange(len(best))
            rank = np.where(tried[self._of], place[self._document], rank)
            results[tried & counted] = len(best)
            used.append((tried & counted, best))
        kept = np.flatnonzero((rank >= 0) & counted[self._of])
        kept = kept[np.lexsort((rank[kept], self._of[kept]))]

        def run() -> pl.DataFrame:
            names = np.array(topics)
            return _run([(names[tried].tolist(), self._ids.gather(best).to_list()) for tried, best in used])

        found = self.judged.scores(self._rows[kept], rank[kept], results, run)
        return np.where(results > 0, found, np.nan)

    def _best(self, learnt: Flags) -> Ints:
        """The documents with the largest worth for some topics; equal ones in the order of their ids."""
        own = learnt[self._topic]
        sums = np.bincount(self._number[own], self._worth[own], len(self._ids)).round(12)
        place = max(0, len(sums) - self._cutoff)
        chosen = np.flatnonzero((sums >= np.partition(sums, place)[place]) & (sums > 0))
        return chosen[np.lexsort((chosen, -sums[chosen]))][: self._cutoff]


def fixed_list(
    qrels: pl.DataFrame,
    measure: str,
    scoring: Scoring = Scoring(),
    *,
    splits: int = _SPLITS,
    confidence: float = 0.95,
    seed: int = 0,
) -> Floor:
    """Scores the best list that never reads the query, on topics that it was not made from.

    The topics are split in two. The list of each half are the documents with the largest sum, over the topics of the
    half, of a document's gain over the ideal gain of the topic; it is scored on the other half. The score of a topic is
    the mean over all splits.

    The interval is a jackknife: parts of the topics are left out one at a time, of the lists and of what they are
    scored on. Topics that share relevant documents, directly or through others, are left out together; where half of
    all topics or more are one cluster, single topics are.
    """
    parsed = parse_measures(measure)[0]
    cutoff = int(parsed.params.get("cutoff") or scoring.depth or _LENGTH)
    number = qrels["topic_id"].n_unique()
    if number < 2:
        return Floor(None, None, None, 0, number, number, {})
    judged = RankingScorer(qrels, measure, scoring)
    lists, topics = _Lists(judged, cutoff), judged.table.topics
    halves = [np.zeros(number, np.bool_) for _ in range(splits)]
    for split, half in enumerate(halves):
        half[np.random.default_rng([seed, split]).permutation(number)[::2]] = True
    every = np.ones(number, np.bool_)
    found = np.stack([lists.crossed(half, every) for half in halves]) if lists else np.full((1, number), np.nan)
    scored = np.isfinite(found).any(axis=0)
    if not scored.any():
        return Floor(None, None, None, 0, number, number, {})
    values = np.nanmean(found[:, scored], axis=0)
    by_topic = dict(zip(np.array(topics)[scored].tolist(), values.tolist(), strict=True))
    cluster = clusters(qrels.filter(pl.col("relevance") >= scoring.rel), [*topics])
    together = 2 * np.bincount(cluster).max() >= number
    mean, unit = float(values.mean()), np.arange(number) if together else cluster
    # So many topics are much the same in every split.
    reach = _reach(lists, halves[: 2 if number > _MANY else _PART_SPLITS], unit, confidence, seed)
    low, high = (None, None) if reach is None else (max(0.0, mean - reach), mean + reach)
    of = len(np.unique(cluster[scored]))
    return Floor(mean, low, high, cutoff, len(by_topic), of, by_topic, "topics" if together else "clusters")


def _reach(lists: _Lists, halves: Sequence[Flags], unit: Ints, confidence: float, seed: int) -> float | None:
    """Half of the interval, by a jackknife over parts of the units; None with too few of them."""
    units = int(unit.max()) + 1
    parts = min(_PARTS, units)
    if parts < _FEWEST_PARTS:
        return None
    part = (np.random.default_rng(seed).permutation(units) % parts)[unit]
    means = np.array([
        np.nanmean(np.stack([lists.crossed(half, part != one) for half in halves])[:, part != one])
        for one in range(parts)
    ])  # fmt: skip
    error = math.sqrt((parts - 1) * float(np.var(means)))
    return float(scipy.special.stdtrit(parts - 1, (1 + confidence) / 2)) * error


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

"""Estimate: what rankings score that never read the query, and whether a measure looks at all candidates at once."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from truerank.audits.collection.documents import DocumentTable
from truerank.audits.collection.instances import Instances, instances
from truerank.measures.grammar import parse_measures
from truerank.measures.null_rankers import NullRanker, null_rankers
from truerank.options import Resampling, Scoring
from truerank.sources.lines import repeated_pair
from truerank.text.printable import and_more, listed

#: A list for all topics that scores so much in the mean is a finding, and an order of the judged documents whose
#: interval is so much above random order.
_HIGH, _TELLING = 0.05, 0.1
#: Fewer topics than these show no order.
_FEWEST = 10
#: The share of the topics whose runs must agree on the candidates, and the largest share of lists of one length in a
#: run that is alone: shorter ones were not cut, they hold all that there is.
_AGREE, _CUT = 0.9, 0.5
#: Documents that a sentence names.
_NAMED = 3


def floors(
    pairs: pl.DataFrame,
    measures: str,
    scoring: Scoring,
    resampling: Resampling,
    documents: DocumentTable | None,
    *,
    candidates: pl.DataFrame | None = None,
    tied: Sequence[str] = (),
) -> tuple[list[dict[str, Any]], list[Instances]]:
    """What null rankers score by each measure, as rows for the page; and what is a finding by the first measure.

    Args:
        tied: the runs that give documents of a topic the same score.
    """
    facts, found = [], list[Instances]()
    for place, measure in enumerate(parse_measures(measures)):
        rankers = null_rankers(
            pairs, str(measure), scoring, lists=None if documents is None else documents.extremes.lists(),
            about=None if documents is None else {"length": documents.lengths, "place": documents.places},
            documents=None if documents is None else documents.count, candidates=candidates,
            confidence=resampling.confidence, resamples=resampling.resamples, seed=resampling.seed,
        )  # fmt: skip
        facts += [{"measure": str(measure), **one.json()} for one in rankers if one.floor.mean is not None]
        if place == 0:
            found = [*_high(rankers, pairs, str(measure), scoring.rel), *_telling(rankers, str(measure), tied)]
    return facts, found


def _least(ranker: NullRanker) -> float:
    """What a list scores: the cross-fitted one in the mean, one of several that were tried at least."""
    low = ranker.floor.mean if ranker.name == "the best fixed list" else ranker.floor.low
    return (ranker.floor.mean if low is None else low) or 0.0


def _high(rankers: Sequence[NullRanker], pairs: pl.DataFrame, measure: str, rel: int) -> Iterator[Instances]:
    chance = max(
        (one.floor.mean or 0.0 for one in rankers if (one.name, one.of) == ("random order", "collection")), default=0.0
    )
    lists = [one for one in rankers if one.of == "collection" and one.name != "random order"]
    high = [one for one in lists if _least(one) - chance >= _HIGH and one.floor.topics >= _FEWEST]
    best = max(high, key=_least, default=None)
    if best is None:
        return
    scores = pl.DataFrame([*best.floor.by_topic.items()], {"topic_id": pl.String, "score": pl.Float64}, orient="row")
    gaining = scores.filter(pl.col("score") > 0).sort("score", "topic_id", descending=[True, False])
    relevant = pairs.filter(pl.col("relevance") >= rel).join(gaining, on="topic_id", how="semi", maintain_order="left")
    held = relevant.group_by("doc_id").agg(pl.len().alias("topics")).sort("topics", "doc_id", descending=[True, False])
    most = relevant.join(held, on="doc_id", maintain_order="left").group_by("topic_id").agg(
        pl.all().sort_by("topics", "doc_id", descending=[True, False]).first()
    )  # fmt: skip
    detail = pl.format(
        f"{best.name}: {measure} {{}}; {{}} is relevant for {{}} of these topics",
        pl.col("score").map_elements("{:.3f}".format, pl.String), "doc_id", "topics",
    )  # fmt: skip
    rows = gaining.join(most, on="topic_id", how="left", maintain_order="left").select("topic_id", detail=detail)
    here = f"{best.name[0].upper()}{best.name[1:]} scores {best.floor.mean:.3f} by {measure} as a mean over all topics."
    shared = [f"{doc} is relevant for {count:,d}" for doc, count in held.head(_NAMED).iter_rows()]
    here += f" Of the {len(gaining):,d} topics where it scores, {listed(shared)}."
    yield replace(instances("high-floor", rows, pairs["topic_id"].n_unique()), here=here)


def _telling(rankers: Sequence[NullRanker], measure: str, tied: Sequence[str]) -> Iterator[Instances]:
    """An order of the judged documents that a run with equal scores may have."""
    orders = [one for one in rankers if (one.above_random_low or 0.0) >= _TELLING and one.floor.topics >= _FEWEST]
    best = max(orders, key=lambda one: one.above_random or 0.0, default=None)
    if best is not None and tied:
        scores = best.floor.by_topic.items()
        rows = [{"topic_id": topic, "detail": f"{best.name}: {measure} {score:.3f}"} for topic, score in scores]
        above = f"{best.above_random:.3f} above random order"
        here = (
            f"Ranked by {best.name}, they score {best.floor.mean:.3f} by {measure}, which is {above}. Equal scores are "
            f"in {and_more(tied, _NAMED)}."
        )
        yield replace(instances("telling-order", rows, best.floor.topics), here=here)


def tied_runs(runs: Mapping[str, pl.DataFrame]) -> list[str]:
    """The runs that give two documents of a topic the same score."""
    return [name for name, run in runs.items() if run.select("topic_id", "score").is_duplicated().any()]


def shared_candidates(runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """What all runs rank for a topic, or one run whose lists are not cut at one length: columns topic_id, doc_id."""
    if not runs:
        return None
    pairs = [run.select("topic_id", "doc_id") for run in runs.values()]
    topics = pl.concat([run.select(pl.col("topic_id").unique()) for run in pairs]).unique()
    if len(runs) > 1 and not any(repeated_pair(run["topic_id"], run["doc_id"]) for run in pairs):
        # Only topics with as many documents in all runs, whose hashes have one sum, can have the same ones.
        sums = [run.group_by("topic_id").agg(pl.len(), pl.col("doc_id").hash().sum().alias("sum")) for run in pairs]
        same = functools.reduce(lambda one, other: one.join(other, on=["topic_id", "len", "sum"], how="semi"), sums)
        pairs = [run.join(same, on="topic_id", how="semi", maintain_order="left") for run in pairs]
    every = pl.concat([run.unique(maintain_order=True) for run in pairs])
    if len(runs) == 1:
        alike = Counter(every.group_by("topic_id").len()["len"].to_list())
        return every if alike and max(alike.values()) <= _CUT * alike.total() else None
    counted = every.group_by("topic_id", "doc_id", maintain_order=True).len("runs")
    agree = (pl.col("runs") == len(runs)).all().over("topic_id")
    agreed = counted.filter(agree).select("topic_id", "doc_id")
    return agreed if agreed["topic_id"].n_unique() >= _AGREE * len(topics) else None


def candidate_instances(
    pairs: pl.DataFrame, measures: str, candidates: pl.DataFrame | None, documents: int | None
) -> Instances:
    """Topics with no more candidates than a measure's cut-off: all documents, or those that all runs rank."""
    topics = pairs.select(pl.col("topic_id").unique(maintain_order=True))
    known = topics.with_columns(pl.lit(documents, pl.Int64).alias("candidates"))
    if candidates is not None:
        counted = candidates.group_by("topic_id").agg(pl.len().cast(pl.Int64).alias("ranked"))
        known = known.join(counted, on="topic_id", how="left", maintain_order="left")
        known = known.with_columns(pl.min_horizontal("candidates", "ranked"))
    rows = []
    cut = [one for one in parse_measures(measures) if one.params.get("cutoff")]
    for measure in cut:
        cutoff = int(measure.params["cutoff"])
        few = known.filter(pl.col("candidates") <= cutoff)
        rows += [
            {"topic_id": topic, "detail": f"{measure}: {count:,d} {'candidate' if count == 1 else 'candidates'}"}
            for topic, count in few.select("topic_id", "candidates").iter_rows()
        ]
    return instances("few-candidates", rows, max(1, len(cut)) * len(topics))

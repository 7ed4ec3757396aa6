"""Measure: scores and order of runs before and after, beside random changes of the same size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import polars as pl

from truerank.measures import Evaluation, difference_interval, evaluate, mean_interval
from truerank.measures.equivalence import EquivalenceOptions
from truerank.measures.grammar import parse_measures
from truerank.measures.magnitudes import MeanInterval
from truerank.measures.orders import OrderChanges, evaluation_order_changes
from truerank.measures.placebo import JudgmentPlacebo, Placebo, edits_between, placebo_changes
from truerank.options import Scoring

#: Ranks that random changes look at where a measure has no cutoff.
_DEEPEST: Final = 1000
#: Systems whose changes are told in sentences.
_NAMED: Final = 3


class ScoreChange(NamedTuple):
    """One run and measure: means before and after with Student's t intervals over topics, and their difference.

    The difference is over the topics that both have.
    """

    measure: str
    run: str
    before: MeanInterval
    after: MeanInterval
    difference: MeanInterval


@dataclass(frozen=True, eq=False)
class CollectionChange:
    """Judgments before and after, and by document of a group the one that stands for it after.

    There are no representatives where runs stay as they are.
    """

    before: pl.DataFrame
    after: pl.DataFrame
    representatives: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class CollectionEffect:
    """What a change does to runs.

    Attributes:
        edits: judgments added, removed and regraded, and results dropped, by name.
        orders: by measure, what becomes of the order of systems; empty for a single run.
        placebos: by measure, the change beside random ones of the same size; none where nothing changed.
    """

    edits: Mapping[str, int]
    scores: tuple[ScoreChange, ...]
    orders: tuple[OrderChanges, ...]
    placebos: tuple[Placebo, ...]


def measured_effect(
    runs: Mapping[str, pl.DataFrame],
    change: CollectionChange,
    measures: str,
    scoring: Scoring,
    *,
    draws: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> CollectionEffect:
    """Scores runs before and after a change of the judgments."""
    closing = EquivalenceOptions(equivalent=change.representatives or None)
    before = evaluate(change.before, dict(runs), measures, scoring)
    after = evaluate(change.after, dict(runs), measures, scoring, closing)
    scores = tuple(_score(before, after, name, run, confidence) for name in before.averaged for run in before.runs)
    edits = _edits(change)
    orders = evaluation_order_changes(before, after) if len(runs) > 1 else ()
    placebos = []
    for name in before.averaged:
        placebo = _placebo(runs, change, edits, name, scoring)
        dropped = sum(placebo.dropped.values())
        if not len(edits) and not dropped:
            continue
        place = before.measures.index(name)
        first, last = (dict(zip(one.runs, one.mean[:, place].tolist(), strict=True)) for one in (before, after))
        what = f"{len(edits):,d} judgments changed, {dropped:,d} results dropped"
        placebos.append(
            placebo_changes(
                first, last, placebo.means, measure=name, what=what, draws=draws, confidence=confidence, seed=seed
            )
        )
    old, new = pl.col("old"), pl.col("new")
    counts = {
        "added": len(edits.filter(old.is_null())),
        "removed": len(edits.filter(new.is_null())),
        "regraded": len(edits.filter(old.is_not_null() & new.is_not_null())),
        "dropped": sum(_repeats(run, change.representatives) for run in runs.values()) if change.representatives else 0,
    }
    return CollectionEffect(counts, scores, orders, tuple(placebos))


def told_removal(placebo: Placebo) -> str:
    """The change of each system beside that of random removals, in sentences."""
    changes = [
        f"{one.system} changes by {one.change:+.3f}, and without as many random documents of the same judged state by "
        f"{one.low:+.3f} to {one.high:+.3f}"
        for one in placebo.systems[:_NAMED]
    ]
    more = f"; {len(placebo.systems) - _NAMED} more runs on the page" if len(placebo.systems) > _NAMED else ""
    return f"By {placebo.measure}, {'; '.join(changes)}{more}." if changes else placebo.reason


def _score(before: Evaluation, after: Evaluation, measure: str, run: str, confidence: float) -> ScoreChange:
    places = {topic: place for place, topic in enumerate(after.topics)}
    shared = [(here, places[topic]) for here, topic in enumerate(before.topics) if topic in places]
    first, second = before.of(run, measure), after.of(run, measure)
    ends = difference_interval(
        second[[there for _, there in shared]], first[[here for here, _ in shared]], confidence=confidence
    )
    return ScoreChange(measure, run, mean_interval(first, confidence), mean_interval(second, confidence), ends)


def _edits(change: CollectionChange) -> pl.DataFrame:
    """The changes of judgments without those that only give a document the name of its group."""
    renamed = change.before.with_columns(pl.col("doc_id").replace(dict(change.representatives)).alias("group"))
    alone = pl.len().over("topic_id", "group") == 1
    first = pl.int_range(pl.len()).over("topic_id", "group") == 0
    # The first judgment of a group keeps its place under the name of the group; the others are removed.
    named = renamed.with_columns(pl.when(alone | first).then("group").otherwise("doc_id").alias("doc_id"))
    return edits_between(named.drop("group").unique(["topic_id", "doc_id"], maintain_order=True), change.after)


def _placebo(
    runs: Mapping[str, pl.DataFrame], change: CollectionChange, edits: pl.DataFrame, measure: str, scoring: Scoring
) -> JudgmentPlacebo:
    depth = 2 * (parse_measures(measure)[0].params.get("cutoff") or scoring.depth or _DEEPEST)
    by = -pl.col("rank") if scoring.ties == "rank" else pl.col("score")
    first = by.rank("ordinal", descending=True).over("topic_id") <= depth
    shallow = {name: run.filter(first) for name, run in runs.items()}
    dropped = {name: _repeats(run, change.representatives) for name, run in shallow.items()}
    return JudgmentPlacebo(shallow, change.before, edits, measure, scoring, dropped)


def _repeats(run: pl.DataFrame, representatives: Mapping[str, str]) -> int:
    """How many results repeat a document of the same group."""
    return len(run) - run.select("topic_id", pl.col("doc_id").replace(dict(representatives))).n_unique()

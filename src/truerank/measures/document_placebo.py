"""Placebo for documents: what the removal of as many random documents does to scores.

A removed document leaves every run, those below it move up, and its judgments are gone. A topic that loses its last
relevant document leaves the means: there is nothing left to find. How far this moves scores depends on what the
documents were: so random documents are alike. A document counts for a topic if it is judged relevant to it, or stands
near the top of a run for it, or a little below. Alike are documents that count for the same topics, with the same
grades. As many relevant ones of each such class go, and as many of those that are relevant to no topic and stand near
the top, and of those a little below. Which systems find them is what is compared, and is not matched. A document that
no other one is like is removed in every draw, as if it leaked for sure: it moves all draws alike and shows nothing.

These classes depend on the judgments and on all runs alike, and not on which documents leak. The test is exact if all
choices of as many documents of each class are equally likely, where nothing leaked into scores: that is so wherever
the chance that certain documents leak depends on their topics and grades alone. Documents may leak independently, or
whole topics may, in any number, together or not, each with a rate of its own. It is not exact where documents of a
class leak more often that are ranked high; with `matched_by`, documents of a class are also in the same tenth by how
high runs rank them. `studies/placebo.py` measures all of this.

Source: as `measures.placebo`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.arrays import Flags, Floats, Ints
from truerank.errors import OptionError
from truerank.measures import effectiveness
from truerank.measures.effectiveness import RankedJudgments
from truerank.measures.grammar import MeasureSpec, aggregate_of, parse_measures
from truerank.measures.placebo import (
    Placebo,
    difficulty_classes,
    placebo_changes,
    removal_choices,
    removal_draws,
    untold,
)
from truerank.measures.rankings import GradeList, GradeTable, Hits, Ranking, grouped
from truerank.measures.scoring import QrelSource, RunSource, named_runs, qrel_frame, run_frame
from truerank.options import Resampling, Scoring, Ties

#: Ranks that count as near the top where a measure has no cutoff.
_NEAR: Final = 100
#: Documents below as many cutoffs in all runs are not removed at random, since hardly any would count.
_MARGIN: Final = 2
_LEAST: Final = 1e-12
#: Classes of documents that are ranked about as high.
_HEIGHTS: Final = 10
_CELLS_AT_ONCE: Final = 1 << 21
#: Measures that count judgments of grade 0.
_BELOW: Final = ("Bpref",)
#: Measures for which of the judgments only the best ranking down to their cutoff counts.
_BEST_ALONE: Final = ("nDCG", "NCG", "DCG", "P", "Success", "RR", "RBP", "Judged")


class Unseen(NamedTuple):
    """How many documents that are neither judged nor in a run went, and how many stayed."""

    gone: int = 0
    kept: int = 0


class _RunRows(NamedTuple):
    """The results of one run for judged topics, by topic and rank.

    `document` (its number), `rank` (from 0), `grade` and `judged` have the shape (results,); `first` and `length` say
    where the results of each topic stand, shape (topics,).
    """

    document: Ints
    rank: Ints
    grade: Ints
    judged: Flags
    first: Ints
    length: Ints


class _Judgments(NamedTuple):
    """The judgments by topic, the highest grade first: numbers of topics and documents, and the grades."""

    topic: Ints
    document: Ints
    grade: Ints


@dataclass(frozen=True, eq=False)
class RankedDocuments:
    """Runs and judgments, made ready for the removal of documents.

    Attributes:
        documents: the ids of all documents that are judged or in a run.
        runs: the results by run, in the order of the ties that a measure asks for.
    """

    documents: pl.Series
    topics: int
    judgments: _Judgments
    runs: Mapping[tuple[str, Ties], _RunRows]
    scoring: Scoring
    _classes: dict[tuple[int, tuple[str, ...]], Ints] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls, qrels: QrelSource, runs: RunSource, scoring: Scoring = Scoring(), ties: Collection[Ties] = ()
    ) -> RankedDocuments:
        """Reads everything."""
        judged = qrel_frame(qrels)
        table = GradeTable(judged)
        ordered = {
            (name, way): _ordered(Ranking(grouped(run_frame(run, (way,))), table), way)
            for name, run in named_runs(runs).items()
            for way in dict.fromkeys((scoring.ties, *ties))
        }
        documents = pl.concat([judged["doc_id"], *(one["doc_id"] for one in ordered.values())]).unique(
            maintain_order=True
        )
        numbered = pl.DataFrame({"doc_id": documents, "document": np.arange(len(documents))})
        topics = pl.DataFrame({"topic_id": table.topics, "topic": np.arange(len(table.topics))})
        known = judged.join(numbered, on="doc_id", how="left").join(topics, on="topic_id", how="left")
        best = known.select("topic", "document", grade=pl.col("relevance").cast(pl.Int64)).sort(
            "topic", "grade", "document", descending=[False, True, False]
        )
        return cls(
            documents,
            len(topics),
            _Judgments(*(best[name].to_numpy() for name in ("topic", "document", "grade"))),
            {
                key: _rows(one.join(numbered, on="doc_id").join(topics, on="topic_id"), best, len(topics))
                for key, one in ordered.items()
            },
            scoring,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the runs."""
        return tuple(dict.fromkeys(name for name, _ in self.runs))

    def results(self, name: str) -> _RunRows:
        """The results of a run, in the order in which it is scored."""
        return self.runs[name, self.scoring.ties]

    def without(self, removed: Flags, measure: Measure) -> Floats:
        """The means of the runs without some documents.

        Args:
            removed: which documents go, shape (draws, documents).

        Returns:
            Shape (draws, runs); 0 where no topic is left.
        """
        judgments = self._needed(measure)
        rows = max(len(_top(one, _looked_at(measure)).document) for one in self.runs.values())
        step = max(1, _CELLS_AT_ONCE // max(rows, len(judgments.topic)))
        starts = range(0, len(removed), step)
        # By document: a gather then copies whole rows.
        parts = (np.ascontiguousarray(removed[at : at + step].T) for at in starts)
        return np.concatenate([self._some(part, measure, judgments) for part in parts])

    @cached_property
    def relevant(self) -> Flags:
        """Which documents are relevant to a topic, shape (documents,)."""
        found = np.zeros(len(self.documents), np.bool_)
        found[self._relevant.document] = True
        return found

    @cached_property
    def _relevant(self) -> _Judgments:
        """The relevant documents of each topic."""
        kept = self.judgments.grade >= self.scoring.rel
        return _Judgments(*(column[kept] for column in self.judgments))

    def _scored(self, removed: Flags) -> Flags:
        """The topics that stay in the means, shape (draws, topics): all but those that lose each relevant document."""
        length = np.bincount(self._relevant.topic, minlength=self.topics)
        scored: Flags = (_by_topic(_running(~removed[self._relevant.document]), length).T > 0) | (length == 0)
        return scored

    def _needed(self, measure: Measure) -> _Judgments:
        """The judgments that a measure counts: those above grade 0, for most."""
        params = measure.params
        if measure.NAME in _BELOW or "gains" in params or hasattr(measure, "values") or params.get("rel", 1) < 1:
            return self.judgments
        kept = self.judgments.grade > 0
        return _Judgments(*(column[kept] for column in self.judgments))

    def _some(self, removed: Flags, measure: Measure, known: _Judgments) -> Floats:
        draws = removed.shape[1]
        scored = self._scored(removed)
        judgments = _left(known, removed, measure, self.topics)
        means = []
        for name in self.names:
            hits = _hits(self.results(name), removed, measure, self.scoring)
            by_rank = None
            if measure.NAME == "RR_MSMARCO":
                by_rank = _hits(self.runs[name, "rank"], removed, measure, self.scoring)
            values = effectiveness.score(measure, RankedJudgments(judgments, hits, by_rank, self.scoring)).reshape(
                draws, -1
            )
            means.append((values * scored).sum(axis=1) / np.maximum(1, scored.sum(axis=1)))
        return np.stack(means, axis=1)

    @cached_property
    def states(self) -> Ints:
        """0 for documents that are not judged, 1 for those that are, and 2 for those that are relevant to a topic."""
        found = np.zeros(len(self.documents), np.int64)
        found[self.judgments.document] = 1
        return found + self.relevant

    def classes(self, near: int, matched_by: Sequence[str] = ()) -> Ints:
        """Documents that are alike, by number; -1 for those that are not removed at random.

        Args:
            near: ranks that count as near the top.
            matched_by: runs that rank alike documents about as high.
        """
        key = near, tuple(matched_by)
        if key not in self._classes:
            self._classes[key] = self._alike(*key)
        return self._classes[key]

    def _alike(self, near: int, matched_by: Sequence[str]) -> Ints:
        count, known = len(self.documents), self.judgments
        level, relevant = known.grade >= self.scoring.rel, self.relevant
        deep, top = self._retrieved(_MARGIN * near), self._retrieved(near)
        kind = np.zeros(count, np.int64)
        kind[deep % count], kind[top % count], kind[relevant] = 1, 2, 3
        # For which topics a document counts, and with which grade: the same random number for the same ones.
        pairs = np.union1d(deep, known.topic[level] * count + known.document[level])
        topic, document = np.divmod(pairs, count)
        judged = known.topic * count + known.document
        order = np.argsort(judged)
        place = np.minimum(np.searchsorted(judged[order], pairs), len(judged) - 1) if len(judged) else 0
        grade = np.where(judged[order][place] == pairs, known.grade[order][place], known.grade.min(initial=0) - 1)
        _, role = np.unique(np.stack([topic, grade]), axis=1, return_inverse=True)
        numbers = np.random.default_rng(0).integers(1, np.iinfo(np.int64).max, int(role.max(initial=0)) + 1)
        signature = np.zeros(count, np.int64)
        np.add.at(signature, document, numbers[role])
        height = np.zeros(count, np.int64)
        if matched_by:
            high = self.height(matched_by, _MARGIN * near)
            height[high > 0] = 1 + difficulty_classes({"": high[high > 0]}, _HEIGHTS)
        _, found = np.unique(np.stack([kind, signature, height]), axis=1, return_inverse=True)
        return np.where(kind > 0, found, -1)

    def _retrieved(self, depth: int) -> Ints:
        """The pairs of topic and document, as one number, that stand above a rank in a run."""
        count = len(self.documents)
        tops = [_top(self.results(name), depth) for name in self.names]
        return np.unique(np.concatenate([_topic_of(top) * count + top.document for top in tops]))

    def height(self, names: Sequence[str], depth: int) -> Floats:
        """How high runs rank each document, summed: 1/log2(rank + 1) of its highest rank, 0 below a depth."""
        total = np.zeros(len(self.documents))
        for name in names:
            rows = _top(self.results(name), depth)
            highest = np.zeros(len(self.documents))
            np.maximum.at(highest, rows.document, 1 / np.log2(rows.rank + 2))
            total += highest
        return total


def _ordered(ranking: Ranking, ties: Ties) -> pl.DataFrame:
    """The results of judged topics, best first: columns topic_id, doc_id, rank (from 0)."""
    lists = list(ranking.documents(ties, None))
    frame = pl.DataFrame(
        {"topic_id": [topic for topic, _ in lists], "doc_id": [found for _, found in lists]},
        schema={"topic_id": pl.String, "doc_id": pl.List(pl.String)},
    )
    return frame.explode("doc_id").with_columns(rank=pl.int_range(pl.len()).over("topic_id"))


def _rows(results: pl.DataFrame, judged: pl.DataFrame, topics: int) -> _RunRows:
    found = results.join(judged, on=["topic", "document"], how="left").sort("topic", "rank")
    topic = found["topic"].to_numpy()
    return _RunRows(
        document=found["document"].to_numpy(),
        rank=found["rank"].cast(pl.Int64).to_numpy(),
        grade=found["grade"].fill_null(0).to_numpy(),
        judged=found["grade"].is_not_null().to_numpy(),
        first=np.searchsorted(topic, np.arange(topics)),
        length=np.bincount(topic, minlength=topics),
    )


def _topic_of(rows: _RunRows) -> Ints:
    """The topic of each result, shape (results,)."""
    return np.repeat(np.arange(len(rows.length)), rows.length)


def _top(rows: _RunRows, depth: float) -> _RunRows:
    """The first results of each topic."""
    if depth >= rows.length.max(initial=0):
        return rows
    kept = rows.rank < depth
    length = np.minimum(rows.length, int(depth))
    first = np.cumsum(length) - length
    return _RunRows(rows.document[kept], rows.rank[kept], rows.grade[kept], rows.judged[kept], first, length)


def _looked_at(measure: Measure) -> float:
    """The ranks that are looked at first: more than the measure's cutoff, since removed documents make room."""
    cutoff = measure.params.get("cutoff")
    if cutoff is None or measure.params.get("judged_only") or hasattr(measure, "values"):
        return np.inf
    return float(_MARGIN * cutoff)


def _hits(rows: _RunRows, removed: Flags, measure: Measure, scoring: Scoring) -> Hits:
    """The judged results of several draws, each with topics of its own."""
    topics, look = len(rows.length), _looked_at(measure)
    while True:
        top = _top(rows, look)
        gone = removed[top.document]
        before = _running(gone)
        lost = _by_topic(before, top.length)
        cut = top.length < rows.length
        if not cut.any() or (top.length[:, None] - lost >= measure.params["cutoff"])[cut].all():
            break
        look *= 2
    judged = np.flatnonzero(top.judged)
    topic = _topic_of(top)[judged]
    # As 32-bit numbers, of which more are computed at once.
    rank = top.rank[judged, None].astype(np.int32) - before[judged] + before[top.first[topic]]
    depth = np.inf if scoring.depth is None else scoring.depth
    deepest = depth if look == np.inf else min(depth, measure.params["cutoff"])
    draw, at = _by_draw(~gone[judged] & (rank < deepest))
    results = np.minimum(rows.length[:, None] - lost, depth).astype(np.int64).T.ravel()
    return Hits(topic[at] + draw * topics, rank[at, draw], top.grade[judged[at]], results)


def _left(known: _Judgments, removed: Flags, measure: Measure, topics: int) -> GradeList:
    """The judgments of several draws; where only the best ranking down to a cutoff counts, the first of each topic."""
    length = np.bincount(known.topic, minlength=topics)
    place = np.arange(len(known.topic)) - (np.cumsum(length) - length)[known.topic]
    # Other gains may put a lower grade first.
    alone = measure.NAME in _BEST_ALONE and "gains" not in measure.params
    look = _looked_at(measure) if alone else np.inf
    while True:
        shown = np.minimum(length, look).astype(np.int64)
        top = np.flatnonzero(place < look)
        stay = ~removed[known.document[top]]
        cut = shown < length
        if not cut.any() or (_by_topic(_running(stay), shown)[cut] >= measure.params["cutoff"]).all():
            break
        look *= 2
    draw, at = _by_draw(stay)
    return GradeList(known.topic[top[at]] + draw * topics, known.grade[top[at]], removed.shape[1] * topics)


def _by_draw(flags: Flags) -> tuple[Ints, Ints]:
    """The draws and places of flags of the shape (places, draws) that are set, draws first."""
    draw, place = np.nonzero(np.ascontiguousarray(flags.T))
    return draw, place


def _running(flags: Flags) -> NDArray[np.int32]:
    """How many flags are set before each place, shape (places + 1, draws)."""
    found = np.zeros((len(flags) + 1, flags.shape[1]), np.int32)
    found[1:] = flags
    return np.cumsum(found, axis=0, out=found)


def _by_topic(running: NDArray[np.int32], length: Ints) -> NDArray[np.int32]:
    """How many flags are set for each topic, shape (topics, draws), of topics with so many places each."""
    ends = np.cumsum(length)
    found: NDArray[np.int32] = running[ends] - running[ends - length]
    return found


def document_placebos(
    ranked: RankedDocuments,
    removed: Collection[str],
    measures: MeasureSpec = "nDCG@10",
    *,
    matched_by: str | None = None,
    contrast: tuple[str, str] | None = None,
    by_state: Unseen | None = None,
    resampling: Resampling = Resampling(resamples=1_000),
) -> tuple[Placebo, ...]:
    """Compares the removal of documents with the removal of as many random documents that are alike.

    Args:
        ranked: judgments and runs.
        measures: of whose means the change is compared.
        matched_by: alike documents are ranked about as high by this run, or by all (difficulty).
        contrast: two runs whose difference is looked at.
        by_state: alike are all documents of the same judged state, as in a corpus that is smaller by chance; with the
            documents that no judgment and no run names.
    """
    names = matching_runs(ranked, matched_by)
    gone = ranked.documents.is_in(list(removed)).to_numpy()
    return tuple(
        _compared(ranked, gone, measure, names, resampling, contrast=contrast, by_state=by_state)
        for measure in parse_measures(measures)
    )


def matching_runs(ranked: RankedDocuments, matched_by: str | None) -> tuple[str, ...]:
    """The runs that say how high documents are ranked."""
    if matched_by not in (None, "difficulty", *ranked.names):
        known = ", ".join(ranked.names)
        raise OptionError("matched_by", f"there is no run '{matched_by}'", f"write difficulty, or one of {known}")
    return () if matched_by is None else ranked.names if matched_by == "difficulty" else (matched_by,)


def _compared(
    ranked: RankedDocuments,
    gone: Flags,
    measure: Measure,
    matched_by: Sequence[str],
    resampling: Resampling,
    *,
    contrast: tuple[str, str] | None,
    by_state: Unseen | None,
) -> Placebo:
    relevant = int((gone & ranked.relevant).sum())
    others = by_state or Unseen()
    count, of = int(gone.sum()) + others.gone, len(gone) + sum(others)
    what = f"{count:,d} of {of:,d} documents removed, {relevant:,d} relevant"
    cannot_tell = partial(untold, measure=str(measure), what=what, confidence=resampling.confidence)
    if aggregate_of(measure) != "mean" or not effectiveness.computes(measure):
        return cannot_tell("This measure is not computed for random removals of documents.")
    near = measure.params.get("cutoff") or _NEAR
    if by_state is None:
        classes = ranked.classes(near, matched_by)
        pool = np.flatnonzero(classes >= 0)
        chosen = gone[pool]
        compared = share_compared(ranked, gone, near, matched_by)
        fixed = removal_choices(chosen, classes[pool], 1) == 1
    else:
        free = _free_states(ranked, gone, by_state)
        compared = _weighted_share(ranked, gone, near, free[ranked.states]) if gone.any() else 1.0
        chosen, fixed = gone, not free.any()
    if not compared or fixed:
        why = "no other documents are like those that are removed" if chosen.any() else "no removed document counts"
        return cannot_tell(f"{why.capitalize()}: no choice is random.")
    if compared < 1:
        what += f"; others are like {compared:.0%} of these, each counted by its ranks"
    # A run that learnt the documents is one of those by which they are matched.
    shown = compared * (1 - 1 / len(matched_by)) if len(matched_by) > 1 else compared

    named = ranked.names if contrast is None else ("difference",)

    def compared_means(removed: Flags) -> Floats:
        means = ranked.without(removed, measure)
        if contrast is None:
            return means
        first, second = (ranked.names.index(name) for name in contrast)
        return means[:, [first]] - means[:, [second]]

    def drawn(rng: np.random.Generator, draws: int) -> Floats:
        if by_state is not None:
            return np.concatenate([
                compared_means(removed) for removed in _state_draws(ranked, gone, by_state, draws, rng)
            ])  # fmt: skip
        parts = []
        for picked in removal_draws(chosen, classes[pool], draws, resampling.seed):
            # What lies too deep to be drawn is removed in every draw.
            removed = np.tile(gone, (len(picked), 1))
            removed[:, pool] = picked > 0
            parts.append(compared_means(removed))
        return np.concatenate(parts)

    before, after = compared_means(np.stack([np.zeros_like(gone), gone]))
    return placebo_changes(
        dict(zip(named, before.tolist(), strict=True)),
        dict(zip(named, after.tolist(), strict=True)),
        drawn,
        measure=str(measure),
        what=what,
        draws=resampling.resamples,
        confidence=resampling.confidence,
        compared=shown,
        seed=resampling.seed,
    )


def _free_states(ranked: RankedDocuments, removed: Flags, unseen: Unseen) -> Flags:
    """Of which judged states some documents go and some stay."""
    gone, size = np.bincount(ranked.states, removed, 3), np.bincount(ranked.states, minlength=3)
    gone[0] += unseen.gone
    size[0] += unseen.gone + unseen.kept
    return (gone > 0) & (gone < size)


def _state_draws(
    ranked: RankedDocuments, removed: Flags, unseen: Unseen, draws: int, rng: np.random.Generator
) -> Iterator[Flags]:
    """Removals of as many documents of each judged state, shape (some draws, documents)."""
    members = [np.flatnonzero(ranked.states == state) for state in range(3)]
    count = [int(removed[own].sum()) for own in members]
    step = max(1, _CELLS_AT_ONCE // len(removed))
    for start in range(0, draws, step):
        chosen = np.zeros((min(step, draws - start), len(removed)), np.bool_)
        # Of the documents that are not judged, some are in no run.
        own = rng.hypergeometric(len(members[0]), sum(unseen), count[0] + unseen.gone, len(chosen))
        for row, unjudged in zip(chosen, own.tolist(), strict=True):
            for documents, number in zip(members, (unjudged, *count[1:]), strict=True):
                row[rng.choice(documents, number, replace=False)] = True
        yield chosen


def share_compared(ranked: RankedDocuments, removed: Flags, near: int, matched_by: Sequence[str]) -> float:
    """The share of the removed documents for which others could go: of the relevant ones, if there are any.

    Each counts by how high the runs rank it: one that no run finds moves hardly a score.

    Args:
        removed: which documents are removed, shape (documents,).
    """
    classes = ranked.classes(near, matched_by) + 1
    taken = np.bincount(classes, removed)
    return _weighted_share(ranked, removed, near, (taken < np.bincount(classes))[classes] & (classes > 0))


def _weighted_share(ranked: RankedDocuments, removed: Flags, near: int, free: Flags) -> float:
    counted = removed & ranked.relevant if (removed & ranked.relevant).any() else removed
    weight = ranked.height(ranked.names, _MARGIN * near) * counted
    if not weight.any():
        weight = counted.astype(np.float64)
    return float(weight[free].sum() / max(_LEAST, weight.sum()))

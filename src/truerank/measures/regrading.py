"""Two runs that are scored again and again, with other grades of some documents; what is ranked where stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from truerank.arrays import Floats, Ints
from truerank.measures import effectiveness
from truerank.measures.effectiveness import RankedJudgments
from truerank.measures.equivalence import EquivalenceOptions
from truerank.measures.grammar import lower_is_better, parse_measures
from truerank.measures.rankings import GradeList, GradeTable, Hits, Ranking, grouped, joined
from truerank.measures.scoring import evaluate
from truerank.options import Scoring

_KEYS: Final = ["topic_id", "doc_id"]
#: Judgments that are scored at once, at most.
_CELLS: Final = 2_000_000
#: Of a document: it keeps the grade that it has, or has none.
NO_GRADE: Final = -(1 << 30)
#: A judgment as one number, by topic and the best grade first: bits below the topic's number, and grade 0 in them.
_BITS, _ZERO = 33, 1 << 31


class RegradedPair:
    """Two runs, ranked once, to be scored with other grades of some documents.

    Args:
        qrels: the judgments: topic_id, doc_id, relevance.
        runs: the two runs by name; the difference is that of the first and the second.
        regraded: the pairs of topic and document whose grades change, judged or not: topic_id, doc_id.
        measure: as it is spelled.
        scoring: how runs are scored.
        same: documents that count as one.
        topics: the topics of the differences, in their order.
    """

    def __init__(  # noqa: PLR0917 - what is scored, and how
        self, qrels: pl.DataFrame, runs: Mapping[str, pl.DataFrame], regraded: pl.DataFrame, measure: str,
        scoring: Scoring, same: EquivalenceOptions, topics: Sequence[str],
    ) -> None:  # fmt: skip
        self._runs, self._spelled, self._measure = runs, measure, parse_measures(measure)[0]
        self._scoring, self._same, self._topics = scoring, same, topics
        qrels = qrels.select(*_KEYS, "relevance")
        self._kind = qrels.schema["relevance"]
        new = regraded.join(qrels, on=_KEYS, how="anti", maintain_order="left")
        pairs = pl.concat([qrels.select(_KEYS), new]).with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("pair"))
        self._pairs = pairs
        self._open = regraded.join(pairs, on=_KEYS, how="left", maintain_order="left")["pair"].to_numpy()
        known = qrels["relevance"].to_numpy().astype(np.int64)
        self._known = np.concatenate([known, np.full(len(new), NO_GRADE)])
        self._row = np.full(len(self._known), -1)
        self._row[self._open] = np.arange(len(self._open))

    def differences(self, grades: Ints) -> Floats:
        """The differences by topic, shape (copies, topics).

        Args:
            grades: of the pairs, `NO_GRADE` where they keep their own, shape (pairs, copies).
        """
        step = max(1, _CELLS // max(1, len(self._known)))
        parts = [grades[:, at : at + step] for at in range(0, grades.shape[1], step)]
        return np.concatenate([self._some(part) for part in parts])

    def _some(self, grades: Ints) -> Floats:
        grades = np.where(grades == NO_GRADE, self._known[self._open][:, None], grades)
        measure, same = self._measure, self._same.equivalent
        alone = effectiveness.computes(measure) and measure.NAME != "RR_MSMARCO" and not same
        return self._ranked(grades) if alone else self._as_topics(self._of(np.arange(len(self._known)), grades))

    def _of(self, pairs: Ints, grades: Ints) -> Ints:
        """The grades of some pairs, where those of those that change are given, shape (pairs, copies)."""
        found: Ints = np.repeat(self._known[pairs][:, None], grades.shape[1], axis=1)
        rows = self._row[pairs]
        found[rows >= 0] = grades[rows[rows >= 0]]
        return found

    @cached_property
    def _closed(self) -> Ints:
        """The judgments that stay, each as one number, ascending."""
        closed = np.flatnonzero(self._row < 0)
        found: Ints = np.sort((self._table.topic[closed].astype(np.int64) << _BITS) + _ZERO - self._known[closed])
        return found

    def _judgments(self, grades: Ints) -> GradeList:
        """The judgments of all copies: what stays is sorted once."""
        topics, copies = len(self._table.topics), grades.shape[1]
        row, copy = np.nonzero(grades != NO_GRADE)
        own = self._table.topic[self._open[row]] + copy * topics
        new = np.sort((own << _BITS) + _ZERO - grades[row, copy])
        every = (((np.arange(copies) * topics) << _BITS)[:, None] + self._closed).ravel()
        every = np.insert(every, np.searchsorted(every, new), new)
        return GradeList(every >> _BITS, _ZERO - (every & ((1 << _BITS) - 1)), copies * topics)

    def _ranked(self, grades: Ints) -> Floats:
        """The differences by arrays alone: what is ranked where does not depend on grades."""
        copies, topics = grades.shape[1], len(self._table.topics)
        judgments, scores = self._judgments(grades), []
        for hits in self._hits:
            # By copy, topic and rank.
            own = self._of(hits.relevance, grades).T
            of, at = np.nonzero(own != NO_GRADE)
            shown = Hits(hits.topic[at] + of * topics, hits.rank[at], own[of, at], np.tile(hits.results, copies))
            view = RankedJudgments(judgments, shown, None, self._scoring)
            values = effectiveness.score(self._measure, view).reshape(copies, topics)
            if self._scoring.missing == "skip":
                values[:, hits.results == 0] = np.nan
            scores.append(values)
        return self._sign * (scores[0] - scores[1])[:, self._order(self._table.topics)]

    @property
    def _sign(self) -> float:
        return -1.0 if lower_is_better(self._spelled) else 1.0

    def _as_topics(self, grades: Ints) -> Floats:
        """The differences by the usual way, each copy with topics of its own: a call costs more than some topics."""
        pair, copy = np.nonzero(grades != NO_GRADE)
        qrels = self._pairs[pair].select(_KEYS).with_columns(
            pl.Series("relevance", grades[pair, copy]).cast(self._kind), pl.Series("copy", copy)
        )  # fmt: skip
        numbers = pl.DataFrame({"copy": range(grades.shape[1])}, schema={"copy": pl.Int64})
        runs = {
            name: _copied(numbers.join(run, how="cross", maintain_order="left_right"))
            for name, run in self._runs.items()
        }
        found = evaluate(_copied(qrels), runs, self._spelled, self._scoring, self._same)
        first, second = (found.of(name, found.measures[0]) for name in runs)
        values: Floats = self._sign * (first - second)
        place = {topic: at for at, topic in enumerate(found.topics)}
        copies = range(grades.shape[1])
        return values[[[place[f"{copy} {topic}"] for topic in self._topics] for copy in copies]]

    @cached_property
    def _table(self) -> GradeTable:
        """The pairs, each with its number in place of a grade."""
        return GradeTable(self._pairs.with_columns(pl.col("pair").alias("relevance")))

    @cached_property
    def _hits(self) -> tuple[Hits, ...]:
        """Where the pairs stand in both runs, by topic and rank."""
        found = []
        for run in self._runs.values():
            ranking = Ranking(grouped(run), self._table)
            found.append(joined([*ranking.hits((self._scoring.ties,), self._scoring.depth)], len(self._table.topics)))
        return tuple(found)

    def _order(self, topics: Sequence[str]) -> Ints:
        place = {topic: at for at, topic in enumerate(topics)}
        return np.array([place[topic] for topic in self._topics], np.int64)


def _copied(frame: pl.DataFrame) -> pl.DataFrame:
    # `pl.format` fails inside Polars 2.1 on joined frames of some hundred thousand rows.
    return frame.with_columns(topic_id=pl.col("copy").cast(pl.String) + " " + pl.col("topic_id")).drop("copy")

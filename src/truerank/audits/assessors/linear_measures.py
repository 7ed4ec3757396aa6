"""Measures that are sums over documents of weight times gain, and the ranks that the weights belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.measures.effectiveness import gains_of
from truerank.measures.judgments import GradeTable
from truerank.measures.rankings import Ranking, grouped
from truerank.options import Scoring

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class LinearMeasure(NamedTuple):
    """A measure that is a sum over documents of weight times gain: what it makes of ranks from 0 and of grades."""

    weights: Floats
    measure: Measure
    level: int

    def of_ranks(self, ranks: Ints) -> Floats:
        """The weight of each rank; 0 beyond the cutoff, and for -1, which is a document that is not in the run."""
        padded = np.append(self.weights, 0.0)
        return np.asarray(padded[np.where(ranks < 0, len(padded) - 1, np.minimum(ranks, len(padded) - 1))])

    def of_grades(self, grades: Ints) -> Floats:
        """The gain of each grade."""
        if self.measure.NAME == "DCG":
            return gains_of(self.measure, grades)
        return np.asarray(grades >= self.level, np.float64)


class Ranks(NamedTuple):
    """Where the judged pairs stand in the runs.

    `frame` (topic_id, doc_id, relevance: the model's judgments, sorted), `topics` (ids), `topic` (number of each pair,
    shape (pairs,)), `grades` (the model's, shape (pairs,)), `runs` (names) and `ranks` (from 0, -1 where a run does not
    have a document; shape (pairs, runs)).
    """

    frame: pl.DataFrame
    topics: tuple[str, ...]
    topic: Ints
    grades: Ints
    runs: tuple[str, ...]
    ranks: Ints


def linear_measure(measure: Measure, depth: int, scoring: Scoring) -> LinearMeasure | None:
    """The weights of a measure that is a mean over topics of a sum over documents, None for any other."""
    places = np.arange(int(measure.params.get("cutoff") or depth))
    level = max(1, int(measure.params.get("rel", scoring.rel)))
    if measure.params.get("judged_only"):
        return None
    if measure.NAME == "P":
        return LinearMeasure(np.full(len(places), 1 / len(places)), measure, level)
    if measure.NAME == "DCG":
        return LinearMeasure(1 / np.log2(places + 2), measure, level)
    if measure.NAME == "RBP" and "rel" in measure.params:
        persistence = float(measure["p"])
        return LinearMeasure(np.asarray((1 - persistence) * persistence**places), measure, level)
    return None


def ranks_of(model: pl.DataFrame, runs: Mapping[str, pl.DataFrame], scoring: Scoring = Scoring()) -> Ranks:
    """Where the pairs that the model judged stand in the runs."""
    frame = model.select("topic_id", "doc_id", "relevance").sort("topic_id", "doc_id")
    # The place of a pair travels in the column of its grade.
    places = frame.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("relevance"))
    judgments = GradeTable(places)
    ranks = np.full((len(frame), len(runs)), -1, np.int64)
    for column, run in enumerate(runs.values()):
        hits = Ranking(grouped(run), judgments).hits((scoring.ties,), scoring.depth)[0]
        ranks[hits.relevance, column] = hits.rank
    grades = frame["relevance"].to_numpy().astype(np.int64)
    return Ranks(frame, judgments.topics, judgments.topic.astype(np.int64), grades, tuple(runs), ranks)

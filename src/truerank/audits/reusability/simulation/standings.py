"""Runs scored by very many qrels of the same topics: each topic's judged documents once, however many qrels hold them.

A qrels is a choice of topics with one set of judged documents for each. Most sets come back in many qrels, and a
measure's mean is made of its topics' values, so that the sets are scored, and the qrels are means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.arrays import Floats, Ints
from truerank.audits.reusability.pools.depth import first_documents
from truerank.errors import OptionError
from truerank.measures import parse_measures
from truerank.measures.effectiveness import View, computes, score
from truerank.measures.grammar import aggregate_of, lower_is_better
from truerank.measures.rankings import GradeTable, Hits
from truerank.options import Scoring

#: Judgments that are scored at once.
_CHUNK: Final = 1 << 19


class JudgedSet(NamedTuple):
    """The judged documents of a topic: the topic's number, and the documents' numbers in it, shape (judgments,)."""

    topic: int
    documents: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Universe:
    """The documents that anything is known of.

    Attributes:
        topics: the ids of the topics.
        documents: of each topic, the ids of the documents that were judged, or that the assessor has a grade for.
        grades: their grades, shape (documents,) each.
        collection: how many documents the collection has.
    """

    topics: tuple[str, ...]
    documents: tuple[tuple[str, ...], ...]
    grades: tuple[Ints, ...]
    collection: int


class Qrels(NamedTuple):
    """A qrels: the sets of its topics, by their numbers in a `Scorer`, shape (topics,)."""

    sets: Ints


@dataclass(frozen=True, eq=False)
class RunRanks:
    """Where the runs have the documents.

    Attributes:
        runs: their names.
        topics: the ids of the topics.
        starts: where the documents of each topic begin in `ranks`, shape (topics + 1,).
        ranks: the rank of each document in each run, from 0, −1 where the run lacks it; shape (runs, documents).
        results: how many documents each run has for each topic, shape (runs, topics).
    """

    runs: tuple[str, ...]
    topics: tuple[str, ...]
    starts: Ints
    ranks: NDArray[np.int32]
    results: Ints

    @classmethod
    def of(cls, runs: Mapping[str, pl.DataFrame], universe: Universe) -> RunRanks:
        """Looks the documents up in the runs."""
        topics, documents = universe.topics, universe.documents
        starts = np.concatenate([[0], np.cumsum([len(some) for some in documents])]).astype(np.int64)
        wanted = pl.DataFrame(
            {
                "topic_id": pl.Series(topics, dtype=pl.String).gather(
                    np.repeat(np.arange(len(topics)), np.diff(starts))
                ),
                "doc_id": pl.Series([doc_id for some in documents for doc_id in some], dtype=pl.String),
            }
        )
        order = pl.DataFrame({"topic_id": list(topics)}, schema={"topic_id": pl.String})
        ranks = np.empty((len(runs), len(wanted)), np.int32)
        results = np.zeros((len(runs), len(topics)), np.int64)
        for number, frame in enumerate(runs.values()):
            ranked = first_documents(frame.join(order, on="topic_id", how="semi"))
            found = wanted.join(ranked, on=["topic_id", "doc_id"], how="left", maintain_order="left")
            ranks[number] = found["place"].fill_null(0).to_numpy() - 1
            sizes = ranked.group_by("topic_id").len()
            results[number] = order.join(sizes, on="topic_id", how="left", maintain_order="left")["len"].fill_null(0)
        return cls(tuple(runs), tuple(topics), starts, ranks, results)


class Scorer:
    """Sets of judged documents, each scored once for all runs.

    Args:
        ranks: where the runs have the documents.
        universe: the documents and their grades.
        measures: see `simulated_measures`.
        rel: the lowest grade that binary measures count as relevant.
    """

    def __init__(self, ranks: RunRanks, universe: Universe, measures: Sequence[Measure], rel: int = 1) -> None:
        self.ranks, self.measures = ranks, tuple(measures)
        self.names = tuple(map(str, measures))
        self.ascending = tuple(lower_is_better(name) for name in self.names)
        self._grades = universe.grades
        self._policy = Scoring(rel=rel)
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._sets: list[JudgedSet] = []
        self._values = np.zeros((0, len(self.measures), len(ranks.runs)))

    def number(self, judged: JudgedSet) -> int:
        """The number of a set; the order of its documents does not matter."""
        documents = np.sort(judged.documents)
        key = judged.topic, hashlib.blake2b(documents.tobytes(), digest_size=16).digest()
        if key not in self._numbers:
            self._numbers[key] = len(self._sets)
            self._sets.append(JudgedSet(judged.topic, documents))
        return self._numbers[key]

    @property
    def rel(self) -> int:
        """The lowest grade that counts as relevant."""
        return self._policy.rel

    def judged(self, number: int) -> JudgedSet:
        """A set by its number; the documents ascend."""
        return self._sets[number]

    def values(self) -> Floats:
        """The scores of all sets, shape (sets, measures, runs); those that came since the last call are scored now."""
        while len(self._values) < len(self._sets):
            chunk = list(self._chunk(len(self._values)))
            self._values = np.concatenate([self._values, self._scored(chunk)])
        return self._values

    def means(self, qrels: Qrels) -> Floats:
        """The mean of every measure and run over the topics of a qrels, shape (measures, runs)."""
        found: Floats = self.values()[qrels.sets].mean(axis=0)
        return found

    def _chunk(self, first: int) -> Iterator[JudgedSet]:
        size = 0
        for judged in self._sets[first:]:
            yield judged
            size += len(judged.documents)
            if size >= _CHUNK:
                return

    def _scored(self, sets: Sequence[JudgedSet]) -> Floats:
        topics = np.array([judged.topic for judged in sets])
        owner = np.repeat(np.arange(len(sets)), [len(judged.documents) for judged in sets])
        local = np.concatenate([judged.documents for judged in sets]).astype(np.int64)
        places = local + self.ranks.starts[topics[owner]]
        grades = np.concatenate([self._grades[judged.topic][judged.documents] for judged in sets])
        judgments = _judgments(owner, local, grades)
        values = np.empty((len(sets), len(self.measures), len(self.ranks.runs)))
        for run in range(len(self.ranks.runs)):
            ranks = self.ranks.ranks[run, places].astype(np.int64)
            there = np.flatnonzero(ranks >= 0)
            there = there[np.lexsort((ranks[there], owner[there]))]
            hits = Hits(owner[there], ranks[there], grades[there], self.ranks.results[run, topics])
            view = View(judgments, hits, None, self._policy)
            for number, measure in enumerate(self.measures):
                values[:, number, run] = score(measure, view)
        return values


def simulated_measures(text: str) -> tuple[Measure, ...]:
    """The measures that a simulation can rank runs by: means over topics of what this package computes itself."""
    measures = parse_measures(text)
    for measure in measures:
        if not computes(measure) or aggregate_of(measure) != "mean" or measure.NAME == "RR_MSMARCO":
            remedy = "choose among AP, nDCG@k, P@k, R@k, RR, Rprec, Bpref, NCG@k and RBP"
            raise OptionError("measures", f"'{measure}' is not simulated", remedy)
    return tuple(measures)


def _judgments(owner: Ints, documents: Ints, grades: Ints) -> GradeTable:
    """The sets as the judgments of one topic each."""
    return GradeTable(
        pl.DataFrame(
            {
                "topic_id": pl.Series(owner).cast(pl.String),
                "doc_id": pl.Series(documents).cast(pl.String),
                "relevance": grades.astype(np.int32),
            }
        )
    )

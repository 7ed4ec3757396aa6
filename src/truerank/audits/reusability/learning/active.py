"""Active judging (HiCAL / BMI): a model of relevance that says which documents to judge next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.audits.reusability.following import TopicJudgments
from truerank.audits.reusability.learning.feature_files import touched
from truerank.audits.reusability.learning.features import Features
from truerank.audits.reusability.learning.learner import LinearModel, fit
from truerank.audits.reusability.learning.ranking import ModelQuery, rank
from truerank.errors import InputError
from truerank.sources.qrels import QREL_SCHEMA

_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True)
class LearnerOptions:
    """What can be chosen for the learner.

    Attributes:
        rel: the lowest grade that counts as relevant.
        random: documents presumed non-relevant, drawn anew at each training.
        regularisation: λ of the loss.
        batch: documents of the first batch; each following one is larger by a tenth, rounded up.
        growing: False for batches of one size.
    """

    rel: int = 1
    random: int = 100
    regularisation: float = 1e-4
    batch: int = 1
    growing: bool = True

    def __post_init__(self) -> None:
        if self.random < 1 or self.batch < 1:
            raise InputError("a batch or a number of random documents below 1", "give 1 or more")
        if not self.regularisation > 0:
            raise InputError(f"the regularisation is {self.regularisation:g}", "give more than 0")

    def following(self, batch: int) -> int:
        """The size of the batch after one of this size."""
        return batch + (batch + 9) // 10 if self.growing else batch

    def left_of_batch(self, chosen: int) -> int:
        """How many documents the present batch still lacks when so many were chosen."""
        size, end = self.batch, self.batch
        while end <= chosen:
            size = self.following(size)
            end += size
        return end - chosen


@dataclass(frozen=True)
class Trace:
    """The documents of a topic in the order in which they were judged: the pool, then what the learner chose.

    Attributes:
        topic_id: the topic.
        pool_size: P; the first judgments are the pool's.
        seed: of the learner.
        doc_ids, grades, batches: one per judgment; the batch is 0 for the pool and counts from 1 for the learner.
        rel: the lowest grade that counts as relevant.
        whole: no document of the collection was left to judge.
    """

    topic_id: str
    pool_size: int
    seed: int
    doc_ids: tuple[str, ...]
    grades: tuple[int, ...]
    batches: tuple[int, ...]
    rel: int = 1
    whole: bool = False

    def __len__(self) -> int:
        return len(self.doc_ids)

    @cached_property
    def found(self) -> NDArray[np.int64]:
        """How many of the judged documents are relevant after each judgment, shape (judgments,)."""
        return np.cumsum(np.asarray(self.grades, np.int64) >= self.rel)

    def as_judgments(self) -> TopicJudgments:
        """The trace as stopping rules read it."""
        return TopicJudgments(self.topic_id, self.pool_size, self.found, self.whole)

    def qrels(self, judgments: int | None = None) -> pl.DataFrame:
        """The first judgments (all without a number) as qrels: columns topic_id, doc_id, relevance."""
        documents = self.doc_ids[:judgments]
        columns = {
            "topic_id": [self.topic_id] * len(documents),
            "doc_id": documents,
            "relevance": self.grades[:judgments],
        }
        return pl.DataFrame(columns, schema=QREL_SCHEMA)


class ActiveLearner:
    """Chooses the documents of a topic that are most likely relevant by the labels as they stand.

    Each time it is asked it trains anew: on the query as a relevant pseudo-document, the judged documents by their
    grades now, and random documents that are not judged as presumed non-relevant ones. What it chooses depends on the
    seed, the topic, and the labels; left-out teams and all teams draw by the same seeds. Equal scores are ordered by
    the seed.

    Args:
        features: of the collection.
        topic_id: the topic.
        query_text: the relevant pseudo-document.
        seed: of the presumed non-relevant documents and of ties.
        options: see `LearnerOptions`.

    Source: Abualsaud et al., A system for efficient high-recall retrieval (SIGIR 2018); Cormack and Grossman, BMI.
    """

    def __init__(
        self, features: Features, topic_id: str, query_text: str, seed: int = 0, options: LearnerOptions | None = None
    ) -> None:
        self.features, self.topic_id, self.seed = features, topic_id, seed
        self.options = options or LearnerOptions()
        self._query = features.vector(query_text)
        self._key = [seed, int.from_bytes(hashlib.sha256(topic_id.encode()).digest()[:8], "big")]
        # Of the terms that the last training saw; all others weigh nothing.
        self._terms, self._weights = _NONE, np.empty(0)
        self._intercept = 0.0
        # Orders equal scores.
        self._mask = np.random.default_rng([*self._key, 0]).integers(0, 1 << 63, dtype=np.uint64)

    def next(self, judged: Mapping[str, int], n: int, excluded: Iterable[str] = ()) -> list[str]:
        """The n documents that are most likely relevant among those not judged, the likeliest first.

        Args:
            judged: grade by document; documents that the features lack are passed over.
            n: how many; fewer come where fewer are left.
            excluded: documents that are not wanted either, such as those that others are judging.
        """
        ids = self.features.doc_ids
        known = [(row, grade) for doc_id, grade in judged.items() if (row := ids.find(doc_id)) is not None]
        places = np.array([row for row, _ in known], np.int64)
        grades = np.array([grade for _, grade in known], np.int64)
        others = np.array([row for doc_id in excluded if (row := ids.find(doc_id)) is not None], np.int64)
        return [ids[row] for row in self.best(places, grades, n, others)]

    def best(
        self, judged: NDArray[np.int64], grades: NDArray[np.int64], n: int, excluded: NDArray[np.int64] = _NONE
    ) -> list[int]:
        """The same by rows of the features: the rows of the n likeliest documents.

        Args:
            judged: rows of the judged documents, shape (judged,).
            grades: their grades, shape (judged,).
            n: how many.
            excluded: rows that are not wanted either.
        """
        return rank(self.features, [self.query(judged, grades, n, excluded)])[0]

    def query(
        self, judged: NDArray[np.int64], grades: NDArray[np.int64], n: int, excluded: NDArray[np.int64] = _NONE
    ) -> ModelQuery:
        """Trains, and returns what finds the n likeliest documents; arguments as in `best`."""
        taken = np.sort(judged)
        self._train(judged, grades >= self.options.rel, taken)
        taken = np.union1d(taken, excluded)
        left = len(self.features) - len(taken)
        return ModelQuery(self._terms, self._weights, taken, min(n, left), self._mask)

    def _train(self, judged: NDArray[np.int64], relevant: NDArray[np.bool_], taken: NDArray[np.int64]) -> None:
        presumed = self._drawn(taken, len(judged))
        # In the order of rows, so that the order of judgments changes no sum.
        order = np.argsort(judged)
        rows = self.features.gather(np.concatenate([judged[order], presumed]))
        labels = np.concatenate([[True], relevant[order], np.zeros(len(presumed), np.bool_)])
        if labels.all():
            return
        data = np.concatenate([self._query.data, rows.weights.astype(np.float64)])
        terms, columns = touched(np.concatenate([self._query.indices, rows.columns]), len(self.features.terms))
        starts = np.cumsum(np.concatenate([[0, self._query.nnz], rows.sizes]))
        matrix = scipy.sparse.csr_matrix((data, columns, starts), shape=(len(labels), len(terms)))
        found = fit(matrix, labels, self.options.regularisation, LinearModel(self._known(terms), self._intercept))
        self._terms, self._weights, self._intercept = terms, found.weights, found.intercept

    def _known(self, terms: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weights of terms as the last training left them."""
        found = np.zeros(len(terms))
        _, here, there = np.intersect1d(terms, self._terms, assume_unique=True, return_indices=True)
        found[here] = self._weights[there]
        return found

    def _drawn(self, taken: NDArray[np.int64], judgments: int) -> NDArray[np.int64]:
        """Random documents that are not judged; which depends on the number of judgments alone, besides the seed."""
        documents = len(self.features)
        if documents - len(taken) <= self.options.random:
            return np.setdiff1d(np.arange(documents), taken)
        draw = np.random.default_rng([*self._key, 1 + judgments])
        found: dict[int, None] = {}
        while len(found) < self.options.random:
            drawn = draw.integers(0, documents, 2 * self.options.random)
            found.update(dict.fromkeys(drawn[~np.isin(drawn, taken)].tolist()))
        return np.array(sorted(list(found)[: self.options.random]), np.int64)


class _Tracing:
    """A trace as it grows."""

    def __init__(self, learner: ActiveLearner, pool: Sequence[str], judge: Callable[[str], int]) -> None:
        self._learner, self._judge = learner, judge
        self._ids = learner.features.doc_ids
        self._labels = {doc_id: judge(doc_id) for doc_id in pool}
        self._pool_size = len(self._labels)
        known = [(row, grade) for doc_id, grade in self._labels.items() if (row := self._ids.find(doc_id)) is not None]
        self._rows, self._grades = [row for row, _ in known], [grade for _, grade in known]
        self._batches = [0] * self._pool_size
        self._size, self._number, self._whole = learner.options.batch, 0, False

    def query(self, length: int) -> ModelQuery | None:
        """What finds the next batch; None where the trace has ended."""
        if self._whole or len(self._labels) >= length:
            return None
        wanted = min(self._size, length - len(self._labels))
        return self._learner.query(np.array(self._rows, np.int64), np.array(self._grades, np.int64), wanted)

    def judge(self, found: Sequence[int]) -> None:
        """Judges the next batch."""
        self._number += 1
        if not found:
            self._whole = True
            return
        new = {self._ids[row]: row for row in found}
        grades = [self._judge(doc_id) for doc_id in new]
        self._labels |= zip(new, grades, strict=True)
        self._rows += found
        self._grades += grades
        self._batches += [self._number] * len(found)
        self._size = self._learner.options.following(self._size)

    def trace(self) -> Trace:
        """The trace as it stands."""
        whole = self._whole or len(self._rows) == len(self._learner.features)
        return Trace(
            self._learner.topic_id, self._pool_size, self._learner.seed, tuple(self._labels),
            tuple(self._labels.values()), tuple(self._batches), self._learner.options.rel, whole,
        )  # fmt: skip


def traces(
    features: Features,
    topic_id: str,
    query: str,
    pools: Sequence[Sequence[str]],
    judge: Callable[[str], int],
    *,
    length: int = 2500,
    seed: int = 0,
    options: LearnerOptions | None = None,
) -> tuple[Trace, ...]:
    """Simulates the judging of a topic from several pools, one as if the others were not there.

    The traces take their steps together, so that the features are read once for all of them.
    """
    every = [_Tracing(ActiveLearner(features, topic_id, query, seed, options), pool, judge) for pool in pools]
    while True:
        asked = [(one, wanted) for one in every if (wanted := one.query(length)) is not None]
        if not asked:
            return tuple(one.trace() for one in every)
        for (one, _), found in zip(asked, rank(features, [wanted for _, wanted in asked]), strict=True):
            one.judge(found)


def trace(
    features: Features,
    topic_id: str,
    query: str,
    pool: Sequence[str],
    judge: Callable[[str], int],
    *,
    length: int = 2500,
    seed: int = 0,
    options: LearnerOptions | None = None,
) -> Trace:
    """Simulates the judging of a topic: the pool first, in the order given, then batch by batch what is chosen.

    Args:
        features: of the collection.
        topic_id: the topic.
        query: its text.
        pool: document ids; all are judged, also where they are more than `length`.
        judge: the grade of a document; 0 for what was never judged.
        length: judgments at most, the pool's included.
        seed: see `ActiveLearner`.
        options: see `LearnerOptions`.

    Returns:
        The trace; it depends on the seed, and not on any stopping rule.
    """
    return traces(features, topic_id, query, [pool], judge, length=length, seed=seed, options=options)[0]

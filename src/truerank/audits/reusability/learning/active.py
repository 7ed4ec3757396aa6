"""Active judging (HiCAL / BMI): a model of relevance that says which documents to judge next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.audits.reusability.following import TopicJudgments
from truerank.audits.reusability.learning.features import Features
from truerank.audits.reusability.learning.learner import LinearModel, fit
from truerank.errors import InputError
from truerank.sources.qrels import QREL_SCHEMA

__all__ = ["ActiveLearner", "LearnerOptions", "Trace", "trace"]

#: Documents beyond those asked for that are scored in 64 bits.
_SPARE: Final = 64
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
        self._weights = np.zeros(features.matrix.shape[1])
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
        rows = self.features.rows
        known = [(rows[doc_id], grade) for doc_id, grade in judged.items() if doc_id in rows]
        places = np.array([row for row, _ in known], np.int64)
        grades = np.array([grade for _, grade in known], np.int64)
        others = np.array([rows[doc_id] for doc_id in excluded if doc_id in rows], np.int64)
        return [self.features.doc_ids[row] for row in self.best(places, grades, n, others)]

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
        taken = np.zeros(len(self.features), np.bool_)
        taken[judged] = True
        self._train(judged, grades >= self.options.rel, taken)
        taken[excluded] = True
        return self._ranked(taken, min(n, int(len(taken) - taken.sum())))

    def _train(self, judged: NDArray[np.int64], relevant: NDArray[np.bool_], taken: NDArray[np.bool_]) -> None:
        presumed = self._drawn(taken, len(judged))
        # In the order of rows, so that the order of judgments changes no sum.
        order = np.argsort(judged)
        rows = self.features.matrix[np.concatenate([judged[order], presumed])]
        labels = np.concatenate([[True], relevant[order], np.zeros(len(presumed), np.bool_)])
        if labels.all():
            return
        data = np.concatenate([self._query.data, rows.data.astype(np.float64)])
        terms = np.concatenate([self._query.indices, rows.indices])
        touched, columns = self._touched(terms)
        starts = np.concatenate([[0], rows.indptr + self._query.nnz])
        matrix = scipy.sparse.csr_matrix((data, columns, starts), shape=(len(labels), len(touched)))
        found = fit(matrix, labels, self.options.regularisation, LinearModel(self._weights[touched], self._intercept))
        self._weights[:] = 0
        self._weights[touched], self._intercept = found.weights, found.intercept

    def _touched(self, terms: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The terms that occur, ascending, and the number of each among them."""
        marks = np.zeros(len(self._weights), np.bool_)
        marks[terms] = True
        return np.flatnonzero(marks), (np.cumsum(marks, dtype=np.int32) - 1)[terms]

    def _drawn(self, taken: NDArray[np.bool_], judgments: int) -> NDArray[np.int64]:
        """Random documents that are not judged; which depends on the number of judgments alone, besides the seed."""
        left = len(taken) - int(taken.sum())
        if left <= self.options.random:
            return np.flatnonzero(~taken)
        draw = np.random.default_rng([*self._key, 1 + judgments])
        found: dict[int, None] = {}
        while len(found) < self.options.random:
            drawn = draw.integers(0, len(taken), 2 * self.options.random)
            found.update(dict.fromkeys(drawn[~taken[drawn]].tolist()))
        return np.array(sorted(list(found)[: self.options.random]), np.int64)

    def _ranked(self, taken: NDArray[np.bool_], n: int) -> list[int]:
        if not n:
            return []
        matrix = self.features.matrix
        scores = matrix @ self._weights.astype(np.float32)
        scores[taken] = -np.inf
        # 32 bits find the candidates, 64 bits order them.
        wide = min(n + _SPARE, len(scores) - int(taken.sum()))
        candidates = np.argpartition(-scores, wide - 1)[:wide] if wide < len(scores) else np.arange(len(scores))
        border = scores[candidates].min()
        candidates = candidates if border == -np.inf else np.flatnonzero(scores >= border)
        exact = matrix[candidates].astype(np.float64) @ self._weights
        order = np.lexsort((_mixed(candidates.astype(np.uint64) ^ self._mask), -exact))
        return [int(row) for row in candidates[order[:n]]]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers in which neighbours have nothing in common: the finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return numbers ^ (numbers >> np.uint64(31))


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
    chosen = options or LearnerOptions()
    learner = ActiveLearner(features, topic_id, query, seed, chosen)
    documents = list(dict.fromkeys(pool))
    labels = {doc_id: judge(doc_id) for doc_id in documents}
    known = [doc_id for doc_id in documents if doc_id in features.rows]
    rows, grades = [features.rows[doc_id] for doc_id in known], [labels[doc_id] for doc_id in known]
    batches = [0] * len(documents)
    size, number, whole = chosen.batch, 0, False
    while len(labels) < length:
        number += 1
        wanted = min(size, length - len(labels))
        found = learner.best(np.array(rows, np.int64), np.array(grades, np.int64), wanted)
        if not found:
            whole = True
            break
        said = {features.doc_ids[row]: judge(features.doc_ids[row]) for row in found}
        labels |= said
        rows += found
        grades += said.values()
        batches += [number] * len(found)
        size = chosen.following(size)
    whole = whole or len(rows) == len(features)
    return Trace(
        topic_id, len(documents), seed, tuple(labels), tuple(labels.values()), tuple(batches),
        chosen.rel, whole,
    )  # fmt: skip

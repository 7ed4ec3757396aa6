"""Active judging (HiCAL / BMI): a model of relevance that says which documents to judge next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.arrays import Floats, mixed
from truerank.audits.pool.features import ColumnBlock, Features, touched
from truerank.errors import InputError
from truerank.sources.qrels import QREL_SCHEMA

# The loss of the learner and its solver: class-weighted logistic regression to its optimum, warm-started.
#
# The loss of weights w and an intercept b over the relevant rows and the non-relevant ones is
#
#     λ/2 ‖w‖² + ½ mean over relevant of ln(1 + e^−(w·x + b)) + ½ mean over non-relevant of ln(1 + e^(w·x + b)).
#
# Both classes weigh the same however many rows they have, as in the sampled pairs of the original. The loss is
# strictly convex in w and has one optimum, found by Newton's method with conjugate gradients; only the terms that the
# rows hold take part.

_NEWTON_STEPS: Final = 50
_INNER_STEPS: Final = 250
#: The norm of the gradient, relative to λ, at which the optimum counts as found: it bounds the error of the weights.
_TOLERANCE: Final = 1e-5
_HALVINGS: Final = 30


class LinearModel(NamedTuple):
    """Weights of the terms, shape (terms,), and the intercept; `steps` of Newton's method were taken."""

    weights: Floats
    intercept: float
    steps: int = 0


def fit(rows: Any, relevant: NDArray[np.bool_], regularisation: float, start: LinearModel) -> LinearModel:
    """The optimum of the loss."""
    signs = np.where(relevant, 1.0, -1.0)
    shares = np.where(relevant, 0.5 / relevant.sum(), 0.5 / (~relevant).sum())
    squares = rows.copy()
    squares.data *= squares.data
    problem = _Problem(rows, rows.T, squares.T, signs, shares, regularisation)
    point = np.append(start.weights, start.intercept)
    margins = problem.margins(point)
    loss = problem.loss(point, margins)
    for step in range(_NEWTON_STEPS):
        gradient = problem.gradient(point, margins)
        size = float(np.sqrt(_dot(gradient, gradient)))
        if size <= _TOLERANCE * regularisation:
            return LinearModel(point[:-1], float(point[-1]), step)
        direction = problem.newton(gradient, margins, size)
        moved = problem.margins(direction)
        slope = _dot(gradient, direction)
        length = 1.0
        for _ in range(_HALVINGS):
            trial = problem.loss(point + length * direction, margins + length * moved)
            if trial <= loss + 1e-4 * length * slope:
                break
            length /= 2
        else:
            break
        point, margins, loss = point + length * direction, margins + length * moved, trial
    return LinearModel(point[:-1], float(point[-1]), _NEWTON_STEPS)


class _Problem(NamedTuple):
    """The loss at points: weights with the intercept behind them, shape (terms + 1,)."""

    rows: Any
    columns: Any
    squares: Any
    signs: Floats
    shares: Floats
    regularisation: float

    def margins(self, point: Floats) -> Floats:
        """w·x + b of every row."""
        found: Floats = self.rows @ point[:-1] + point[-1]
        return found

    def loss(self, point: Floats, margins: Floats) -> float:
        weights = point[:-1]
        logs = np.logaddexp(0.0, -self.signs * margins)
        return _dot(self.shares, logs) + 0.5 * self.regularisation * _dot(weights, weights)

    def gradient(self, point: Floats, margins: Floats) -> Floats:
        pulls = -self.shares * self.signs * _sigmoid(-self.signs * margins)
        return np.append(self.columns @ pulls + self.regularisation * point[:-1], pulls.sum())

    def newton(self, gradient: Floats, margins: Floats, size: float) -> Floats:
        chances = _sigmoid(margins)
        curvature = self.shares * chances * (1 - chances)
        scale = 1 / np.append(self.squares @ curvature + self.regularisation, curvature.sum() + 1e-12)
        found = np.zeros_like(gradient)
        bent = np.empty_like(gradient)
        residual = -gradient
        direction = scale * residual
        energy = _dot(residual, direction)
        enough = (min(0.1, np.sqrt(size)) * size) ** 2
        for _ in range(_INNER_STEPS):
            pulls = curvature * self.margins(direction)
            np.multiply(direction, self.regularisation, out=bent)
            bent[:-1] += self.columns @ pulls
            bent[-1] = pulls.sum()
            length = energy / _dot(direction, bent)
            found += length * direction
            residual -= length * bent
            if _dot(residual, residual) <= enough:
                break
            ahead = scale * residual
            before, energy = energy, _dot(residual, ahead)
            direction *= energy / before
            direction += ahead
        return found


def _dot(first: Floats, second: Floats) -> float:
    # Not by BLAS: its threads share out a sum, so that the last bits would depend on how many there are; and on a busy
    # machine they wait for each other longer than the sum takes.
    return float(np.einsum("i,i->", first, second))


def _sigmoid(values: Floats) -> Floats:
    found: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return found


# The likeliest documents by linear models: all documents are scored, block by block, for several models at once.
#
# 32-bit scores find the candidates: each score is known with a bound of its error, and a document is a candidate
# unless n others are above it whatever the errors are. 64-bit scores order them. The result is that of 64-bit scores
# of all documents, for a third of the time and without a vector of scores.
#
# Bounds that pass documents over were tried and not kept. Once the relevant documents are found, what is left to
# choose from are the scores of ordinary documents, which lie closer together than any bound by the norms of the
# weights: the bound lets through every document, or all but a few.

#: Models that are scored at once.
_MODELS: Final = 32
#: Fewer are scored one by one, by document; so many or more together, by term.
_TOGETHER: Final = 3
#: Documents that are scored in 64 bits at once.
_AT_ONCE: Final = 1 << 15
#: The relative error of a 32-bit operation, and a little for what is neglected: norms of rows a little above 1.
_UNIT: Final = 1.01 * 2.0**-24
#: Operations beyond one for each term: rounding of the weight, the product, the bound itself.
_MORE: Final = 4
#: Candidates that are kept without looking at them again.
_FEW: Final = 1 << 12


class ModelQuery(NamedTuple):
    """What is asked of a model: its n likeliest documents."""

    terms: NDArray[np.int64]
    weights: NDArray[np.float64]
    taken: NDArray[np.int64]
    n: int
    mask: np.uint64


def rank(features: Features, queries: Sequence[ModelQuery]) -> list[list[int]]:
    """The rows of the n likeliest documents by each model, the likeliest first; equal scores in the order of the mask.

    Beside the candidates, memory holds one block of scores, and one number for each term.
    """
    found: list[list[int]] = []
    for first in range(0, len(queries), _MODELS):
        found += _ranked(features, queries[first : first + _MODELS])
    return found


def _ranked(features: Features, queries: Sequence[ModelQuery]) -> list[list[int]]:
    # The place of each term among those that some model knows; the last one stands for all others.
    places = np.zeros(len(features.terms), np.int32)
    for query in queries:
        places[query.terms] = 1
    terms = np.flatnonzero(places)
    known = len(terms)
    places.fill(known)
    places[terms] = np.arange(known, dtype=np.int32)
    weights = np.zeros((len(queries), known + 1), np.float32)
    for own, query in zip(weights, queries, strict=True):
        own[places[query.terms]] = query.weights
    every = [_Candidates(query) for query in queries]
    for block, scores in _scored(features, weights, places):
        errors = ((block.sizes + _MORE) * _UNIT).astype(np.float32)
        for candidates, found in zip(every, scores, strict=True):
            candidates.add(block.first, found, errors)
    return [_best(features, candidates, places, known) for candidates in every]


def _scored(
    features: Features, weights: NDArray[np.float32], places: NDArray[np.int32]
) -> Iterator[tuple[ColumnBlock, NDArray[np.float32]]]:
    """The blocks with the scores of their documents, shape (models, documents)."""
    if len(weights) < _TOGETHER:
        whole = [own[places] for own in weights]
        for block in features.blocks:
            yield block, np.stack([features.scores(block, own) for own in whole])
        return
    by_term = np.ascontiguousarray(weights.T)
    for block in features.blocks:
        yield block, np.ascontiguousarray((block.matrix @ by_term[places[block.terms]]).T)


class _Candidates:
    """The documents that may be among the n likeliest of a model."""

    def __init__(self, query: ModelQuery) -> None:
        self.query = query
        self._norm = np.float32(np.sqrt((query.weights**2).sum()))
        # The n-th highest score is no lower, whatever the errors are.
        self._least = np.finfo(np.float32).min
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]] = []
        self._held, self._room = 0, _FEW

    def add(self, first: int, scores: NDArray[np.float32], errors: NDArray[np.float32]) -> None:
        """Takes in the scores of consecutive documents; `errors` bound theirs with weights of norm 1."""
        begin, end = np.searchsorted(self.query.taken, [first, first + len(scores)])
        scores[self.query.taken[begin:end] - first] = -np.inf
        bounds = errors * self._norm
        highest = scores + bounds
        places = np.flatnonzero(highest >= self._least)
        self._parts.append((places + first, scores[places] - bounds[places], highest[places]))
        self._held += len(places)
        if self._held > self._room:
            self.rows()

    def rows(self) -> NDArray[np.int64]:
        rows, lowest, highest = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        n = self.query.n
        if 0 < n < len(rows):
            self._least = max(self._least, np.partition(lowest, len(rows) - n)[len(rows) - n])
            kept = highest >= self._least
            rows, lowest, highest = rows[kept], lowest[kept], highest[kept]
        self._parts, self._held = [(rows, lowest, highest)], len(rows)
        self._room = max(_FEW, 2 * len(rows))
        return rows


def _best(features: Features, candidates: _Candidates, places: NDArray[np.int32], known: int) -> list[int]:
    query, every = candidates.query, candidates.rows()
    if not query.n:
        return []
    weights = np.zeros(known + 1)
    weights[places[query.terms]] = query.weights
    rows, scores = np.empty(0, np.int64), np.empty(0)
    for first in range(0, len(every), _AT_ONCE):
        some = every[first : first + _AT_ONCE]
        found = features.gather(some)
        starts = np.concatenate([[0], np.cumsum(found.sizes)])
        shape = (len(some), len(weights))
        matrix = scipy.sparse.csr_matrix((found.weights.astype(np.float64), places[found.columns], starts), shape=shape)
        rows, scores = np.concatenate([rows, some]), np.concatenate([scores, matrix @ weights])
        order = np.lexsort((mixed(rows.astype(np.uint64) ^ query.mask), -scores))[: query.n]
        rows, scores = rows[order], scores[order]
    return [int(row) for row in rows]


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

"""The likeliest documents by linear models: all documents are scored, block by block, for several models at once.

32-bit scores find the candidates: each score is known with a bound of its error, and a document is a candidate unless n
others are above it whatever the errors are. 64-bit scores order them. The result is that of 64-bit scores of all
documents, for a third of the time and without a vector of scores.

Bounds that pass documents over were tried and not kept. Once the relevant documents are found, what is left to choose
from are the scores of ordinary documents, which lie closer together than any bound by the norms of the weights: the
bound lets through every document, or all but a few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from truerank.audits.reusability.learning.feature_files import ColumnBlock
from truerank.audits.reusability.learning.features import Features

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
    """What is asked of a model: its n likeliest documents.

    Attributes:
        terms: columns that weigh something, ascending, shape (terms,).
        weights: of these, shape (terms,).
        taken: rows that are not wanted, ascending.
        n: documents wanted; no more than there are.
        mask: orders equal scores.
    """

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
        """The candidates so far."""
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
        order = np.lexsort((_mixed(rows.astype(np.uint64) ^ query.mask), -scores))[: query.n]
        rows, scores = rows[order], scores[order]
    return [int(row) for row in rows]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers in which neighbours have nothing in common: the finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return numbers ^ (numbers >> np.uint64(31))

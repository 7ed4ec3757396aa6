"""Scoring: the documents of an index by a weighted query, exactly, the best k in one named order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.errors import InputError, OptionError
from truerank.lexical.index import Index
from truerank.lexical.models import Model, Statistics

#: The weight of each term, by its number.
WeightedQuery = Mapping[int, float]

#: Decimals of the scores in a run; documents are ordered by the scores as they are written.
DECIMALS: Final = 6
#: Weighted postings that are kept for the next query.
_KEPT: Final = 1 << 24


class QueryTerms(NamedTuple):
    """The numbers of a query's terms, in order and as often as they are there, and its length with those terms that
    the collection lacks."""

    terms: list[int]
    length: int


class BestDocuments(NamedTuple):
    """The best documents of a query: their numbers, and their scores, descending; equal scores by document id."""

    documents: NDArray[np.int32]
    scores: Floats


class Vectors(NamedTuple):
    """The terms of some documents, document after document: the place of the document among those asked for, the term
    and its weighted count, each of shape (postings,)."""

    places: NDArray[np.int64]
    terms: NDArray[np.int32]
    counts: Floats


class _Postings(NamedTuple):
    """The documents of a term, and its weight in each."""

    documents: NDArray[np.int32]
    weights: Floats


class Searcher:
    """An index with weights for its fields, ready to score queries.

    The count of a term in a document, and the length of a document, are the sums over the fields of weight × count.

    Args:
        index: the index.
        weights: of the fields; those not named weigh 0, all weigh 1 where none is given.

    Raises:
        InputError: an unknown field, a negative weight, or none above 0.

    Source: Robertson, Zaragoza, Taylor (2004), section 3, for the weighting of fields.
    """

    def __init__(self, index: Index, weights: Mapping[str, float] | None = None) -> None:
        self.index = index
        self.weights = _checked_weights(index, weights)
        by_field = np.array([self.weights.get(name, 0.0) for name in index.fields])
        self._by_field = by_field
        self._all_fields = bool((by_field > 0).all())
        self.lengths: Floats = index.lengths @ by_field
        filled = int(np.count_nonzero(self.lengths))
        self._tokens = float(self.lengths.sum())
        self._documents = filled
        self._kept: dict[Model, dict[int, _Postings]] = {}
        self._kept_size = 0
        self._length_parts: dict[Model, Floats | None] = {}
        self._scores: Floats = np.zeros(len(index))
        self._touched = np.zeros(len(index), bool)

    @property
    def documents(self) -> int:
        """Documents with a term in one of the fields searched."""
        return self._documents

    def frequency(self, term: int) -> int:
        """In how many documents a term stands, in the fields searched."""
        return len(self.counts(term)[0])

    def frequencies(self, terms: NDArray[Any]) -> NDArray[np.int64]:
        """The same of many terms."""
        if self._all_fields:
            starts = self.index.starts
            found: NDArray[np.int64] = np.asarray(starts[terms + 1] - starts[terms])
            return found
        return np.array([self.frequency(int(term)) for term in terms], np.int64)

    def counts(self, term: int) -> tuple[NDArray[np.int32], Floats]:
        """The documents that hold a term, ascending, and its weighted count in each."""
        documents, counts = self.index.postings(term)
        weighted: Floats = counts @ self._by_field
        if self._all_fields:
            return documents, weighted
        held = weighted > 0
        return documents[held], weighted[held]

    def vectors(self, documents: NDArray[Any]) -> Vectors:
        """The terms of documents with their weighted counts."""
        places, terms, counts = self.index.vectors(documents)
        weighted: Floats = counts @ self._by_field
        if self._all_fields:
            return Vectors(places, terms, weighted)
        held = weighted > 0
        return Vectors(places[held], terms[held], weighted[held])

    def rank(self, query: WeightedQuery, model: Model, k: int) -> BestDocuments:
        """The best documents among those that hold a term of the query.

        Args:
            query: the weights of its terms.
            model: gives the scores.
            k: how many documents at most.
        """
        documents, scores = self._scored(query, model)
        return self._best(documents, scores, k)

    def _scored(self, query: WeightedQuery, model: Model) -> tuple[NDArray[np.int32], Floats]:
        weighted = [(self._weighted(term, model), weight) for term, weight in sorted(query.items()) if weight]
        if not weighted:
            return np.zeros(0, np.int32), np.zeros(0)
        # Sums go over the terms in their order, so that neither cut of the work changes a bit of a score.
        for (documents, weights), factor in weighted:
            self._scores[documents] += weights if factor == 1 else factor * weights
        if sum(len(postings.documents) for postings, _ in weighted) * 16 < len(self._scores):
            found = np.unique(np.concatenate([postings.documents for postings, _ in weighted]))
        else:
            for (documents, _), _ in weighted:
                self._touched[documents] = True
            found = np.flatnonzero(self._touched).astype(np.int32)
            self._touched[:] = False
        scores = self._scores[found]
        self._scores[found] = 0
        if model not in self._length_parts:
            self._length_parts = {model: model.length_part(self.lengths)}
        if (part := self._length_parts[model]) is not None:
            scores += sum(query.values()) * part[found]
        return found, scores

    def _weighted(self, term: int, model: Model) -> _Postings:
        kept = self._kept.setdefault(model, {}).get(term)
        if kept is None:
            documents, counts = self.counts(term)
            statistics = Statistics(
                self._documents, self._tokens / self._documents, self._tokens, len(documents), float(counts.sum())
            )
            kept = _Postings(documents, model.weights(counts, self.lengths[documents], statistics))
            if self._kept_size + len(documents) > _KEPT:
                self._kept, self._kept_size = {model: {}}, 0
            self._kept[model][term] = kept
            self._kept_size += len(documents)
        return kept

    def _best(self, documents: NDArray[np.int32], scores: Floats, k: int) -> BestDocuments:
        written = np.rint(scores * 10**DECIMALS)
        if len(written) > k:
            # Equal scores at the edge all stay until the ids have decided.
            held = written >= np.partition(written, len(written) - k)[len(written) - k]
            documents, written = documents[held], written[held]
        order = np.lexsort((self.index.ranks[documents], -written))[:k]
        return BestDocuments(documents[order], written[order] / 10**DECIMALS)


def parse_query(searcher: Searcher, text: str) -> QueryTerms:
    """A query as the terms of an index; those that the fields searched lack are left out."""
    terms = searcher.index.analyser(text)
    numbers = (searcher.index.term_number(term) for term in terms)
    return QueryTerms([number for number in numbers if number is not None and searcher.frequency(number)], len(terms))


def weighted_query(terms: Iterable[int], model: Model) -> WeightedQuery:
    """The weights of the terms of a query by their counts."""
    counts: dict[int, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    return {term: model.query_weight(count) for term, count in sorted(counts.items())}


def _checked_weights(index: Index, weights: Mapping[str, float] | None) -> dict[str, float]:
    if not weights:
        return dict.fromkeys(index.fields, 1.0)
    for name, weight in weights.items():
        if name not in index.fields:
            raise InputError(
                f"the index has no field '{name}'", f"one of {', '.join(index.fields)}", where=index.folder
            )
        if not math.isfinite(weight) or weight < 0:
            raise OptionError("weights", f"the weight of '{name}' is {weight:g}", "give 0 or more")
    if not any(weights.values()):
        raise OptionError("weights", "all fields weigh 0", "give one a weight above 0")
    return dict(weights)

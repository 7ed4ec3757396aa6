"""Expanded queries, as Anserini does them: RM3, axiomatic semantic matching, BM25 with pseudo-relevance feedback."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.errors import InputError
from truerank.lexical.index import LETTERS, NUMBER, WORD
from truerank.lexical.models import BM25, Model, QueryLikelihood
from truerank.lexical.scoring import BestDocuments, QueryTerms, Searcher, WeightedQuery, weighted_query

#: A term in more than this share of the documents says nothing in feedback.
_COMMON: Final = 0.1
_AXIOMATIC_BEST: Final = 1000


class Expanded(NamedTuple):
    """A query as it is searched the second time: the weights of its terms, and the model that scores it."""

    weights: WeightedQuery
    model: Model


class Expansion(Protocol):
    """Makes a query longer by what the first retrieval found."""

    @property
    def base(self) -> Model:
        """The model of the first retrieval."""

    @property
    def depth(self) -> int:
        """How many documents of the first retrieval it looks at."""

    def expand(self, searcher: Searcher, query: QueryTerms, first: BestDocuments) -> Expanded:
        """The expanded query.

        Args:
            searcher: the index.
            query: its terms.
            first: the first retrieval, at least `depth` deep.
        """

    def json(self) -> dict[str, Any]:
        """The model's name and parameters."""


@dataclass(frozen=True)
class RM3:
    """The relevance model RM3.

    The relevance model is the mean of the feedback documents' distributions of terms, weighted by their scores and cut
    to the best terms, each document's distribution being cut to as many before; terms that are not words of 2 to 20
    ASCII letters and digits, or are in more than a tenth of the documents, take no part. It is mixed with the query.

    Attributes:
        terms: how many terms the relevance model keeps.
        documents: how many documents of the first retrieval are taken for relevant.
        original_weight: the share of the query, 0 to 1.
        base: the model of both retrievals. Of query likelihood in its standard form, whose scores are logarithms, the
            documents' probabilities weight them.

    Raises:
        InputError: a parameter out of its range.

    Source: Abdul-Jaleel et al. (2004), section 2.3; Yang et al. (2019) for the cuts.
    """

    terms: int = 10
    documents: int = 10
    original_weight: float = 0.5
    base: Model = field(default_factory=BM25)

    def __post_init__(self) -> None:
        _at_least_one(terms=self.terms, documents=self.documents)
        _share("original_weight", self.original_weight)

    @property
    def depth(self) -> int:
        """The number of feedback documents."""
        return self.documents

    def expand(self, searcher: Searcher, query: QueryTerms, first: BestDocuments) -> Expanded:
        """The query mixed with the relevance model of the first documents."""
        relevance: dict[int, float] = {}
        shares = _document_weights(first.scores[: self.documents], self.base)
        vectors = searcher.vectors(first.documents[: self.documents])
        kept = (searcher.index.flags[vectors.terms] & WORD) > 0
        kept &= searcher.frequencies(vectors.terms) <= _COMMON * searcher.documents
        places, terms, counts = (column[kept] for column in vectors)
        for place, share in enumerate(shares.tolist()):
            own = places == place
            vector = _cut(dict(zip(terms[own].tolist(), counts[own].tolist(), strict=True)), self.terms)
            total = sum(vector.values())
            for term, count in vector.items():
                relevance[term] = relevance.get(term, 0.0) + share * count / total
        model = _cut(relevance, self.terms)
        total = sum(model.values())
        mixed = {term: self.original_weight * count / query.length for term, count in Counter(query.terms).items()}
        for term, weight in model.items():
            mixed[term] = mixed.get(term, 0.0) + (1 - self.original_weight) * weight / total
        return Expanded(mixed, self.base)

    def json(self) -> dict[str, Any]:
        """The model's name and parameters."""
        own = {"terms": self.terms, "documents": self.documents, "original_weight": self.original_weight}
        return {"model": "rm3", **own, "base": self.base.json()}


@dataclass(frozen=True)
class Axiomatic:
    """Axiomatic semantic matching: the query becomes the terms most related to its own.

    A pool of the best documents and of documents drawn at random is taken; a term's relation to a term of the query is
    their mutual information over the documents of the pool, in units of the query term's own, times beta. Only terms of
    two or more ASCII letters take part, in the query too.

    Attributes:
        documents: how many of the best documents the pool holds (R).
        factor: how many times as many documents the pool has in all (N); a collection with fewer is the pool.
        beta: the weight of related terms; the query's own weigh 1.
        terms: how many terms the new query has.
        seed: of the draw.
        idf: what a term of the query counts in its relations: "once": 1, since BM25 weighs every term of the new query
            by its idf anyway; "exact": its own ln((1 + N)/n) besides; "whole": as "exact", but of the quotient's whole
            part, which is what Anserini computes.
        base: the model of both retrievals.

    The draw is that of Java's generator over the documents in the order of their ids, so that the pool is the same as
    Anserini's in its deterministic mode.

    Raises:
        InputError: a parameter out of its range.

    Source: Fang and Zhai (2006), sections 3 and 4; Yang and Lin (2019), section 2.
    """

    documents: int = 20
    factor: int = 30
    beta: float = 0.4
    terms: int = 20
    seed: int = 42
    idf: Literal["once", "exact", "whole"] = "once"
    base: Model = field(default_factory=BM25)

    def __post_init__(self) -> None:
        _at_least_one(terms=self.terms, documents=self.documents, factor=self.factor)
        if not math.isfinite(self.beta) or self.beta < 0:
            raise InputError(f"beta is {self.beta:g}", "give 0 or more")
        if self.idf not in ("once", "exact", "whole"):
            raise InputError(f"unknown idf '{self.idf}'", "one of once, exact, whole")

    @property
    def depth(self) -> int:
        """The number of the best documents in the pool."""
        return self.documents

    def expand(self, searcher: Searcher, query: QueryTerms, first: BestDocuments) -> Expanded:
        """The terms of the pool most related to the query's."""
        rows = _incidence(searcher, self._pool(searcher, first))
        names = rows.names
        scores = np.zeros(len(names))
        for term, count in sorted(Counter(query.terms).items()):
            at = int(np.searchsorted(names, term))
            if at == len(names) or names[at] != term:
                continue
            related = self._related(rows, at)
            found = count * self._idf(searcher, term) * related
            if len(found) > max(_AXIOMATIC_BEST, self.terms):
                found[np.lexsort((names, -found))[max(_AXIOMATIC_BEST, self.terms) :]] = 0
            scores += np.where(found > 1e-8, found, 0)
        kept = {int(names[at]): float(scores[at]) / query.length for at in np.flatnonzero(scores)}
        return Expanded(_cut(kept, self.terms) or weighted_query(query.terms, self.base), self.base)

    def json(self) -> dict[str, Any]:
        """The model's name and parameters."""
        own = {key: value for key, value in asdict(self).items() if key != "base"}
        return {"model": "axiomatic", **own, "base": self.base.json()}

    def _idf(self, searcher: Searcher, term: int) -> float:
        quotient = (1 + searcher.documents) / searcher.frequency(term)
        return 1.0 if self.idf == "once" else math.log(math.floor(quotient) if self.idf == "whole" else quotient)

    def _pool(self, searcher: Searcher, first: BestDocuments) -> NDArray[np.int32]:
        documents, size = len(searcher.index), self.documents * self.factor
        if size >= documents:
            return np.arange(documents, dtype=np.int32)
        chosen = dict.fromkeys(first.documents[: self.documents].tolist())
        by_rank = searcher.index.by_rank
        for draw in _java_draws(self.seed, documents):
            if len(chosen) >= size:
                break
            chosen[int(by_rank[draw])] = None
        return np.array(sorted(chosen), np.int32)

    def _related(self, rows: _Rows, at: int) -> Floats:
        """How much each term of the pool is related to the one at this place, whose own is 1."""
        holding = np.zeros(rows.size, bool)
        holding[rows.documents[rows.terms == at]] = True
        both = np.bincount(rows.terms[holding[rows.documents]], minlength=len(rows.names)).astype(float)
        information = _mutual_information(int(holding.sum()), rows.held, both, rows.size)
        own = information[at]
        related = self.beta * information / own if own > 0 else np.zeros(len(rows.names))
        related[at] = 1.0
        return related


@dataclass(frozen=True)
class BM25PRF:
    """BM25 with pseudo-relevance feedback: terms are weighted by how the first documents hold them.

    A term's relevance weight is ln((r + ½)(N − n − R + r + ½) / ((n − r + ½)(R − r + ½))), at least 1e-6; n of N
    documents hold it, r of the R first ones. New terms are those of the first documents with the highest relevance
    weight × ln r; they need r ≥ 2 and must be words of 2 to 20 ASCII letters and digits, not all digits.

    Attributes:
        terms: how many new terms the query gets.
        documents: how many documents of the first retrieval are taken for relevant.
        new_weight: what the relevance weights of new terms are multiplied with.
        k1: of the second retrieval.
        b: of the second retrieval.
        base: the model of the first retrieval.

    Raises:
        InputError: a parameter out of its range.

    Source: Robertson and Sparck Jones (1994), section 4; Zeng and Sakai (2019), section 2.
    """

    terms: int = 20
    documents: int = 10
    new_weight: float = 0.2
    k1: float = 0.9
    b: float = 0.4
    base: Model = field(default_factory=BM25)

    def __post_init__(self) -> None:
        _at_least_one(terms=self.terms, documents=self.documents)
        if not math.isfinite(self.new_weight) or self.new_weight < 0:
            raise InputError(f"new_weight is {self.new_weight:g}", "give 0 or more")

    @property
    def depth(self) -> int:
        """The number of feedback documents."""
        return self.documents

    def expand(self, searcher: Searcher, query: QueryTerms, first: BestDocuments) -> Expanded:
        """The query's terms and the new ones with their relevance weights; each of the query's counts once."""
        chosen = first.documents[: self.documents]
        found, relevant = np.unique(searcher.vectors(chosen).terms, return_counts=True)
        own = np.unique(np.array(query.terms, np.int64))
        flags = searcher.index.flags[found]
        new = (relevant >= 2) & ((flags & WORD) > 0) & ((flags & NUMBER) == 0) & ~np.isin(found, own)
        weights = self._relevance(searcher, found[new], relevant[new], len(chosen), self.new_weight)
        offers = weights * np.log(relevant[new])
        best = np.lexsort((found[new], -offers))[: self.terms]
        chosen_terms = dict(zip(found[new][best].tolist(), weights[best].tolist(), strict=True))
        counts = dict(zip(found.tolist(), relevant.tolist(), strict=True))
        hits = np.array([counts.get(term, 0) for term in own.tolist()], np.int64)
        own_weights = self._relevance(searcher, own, hits, len(chosen), 1.0)
        chosen_terms.update(zip(own.tolist(), own_weights.tolist(), strict=True))
        lengths = self.base.lengths if isinstance(self.base, BM25) else "exact"
        return Expanded(chosen_terms, BM25(self.k1, self.b, idf="none", lengths=lengths))

    def json(self) -> dict[str, Any]:
        """The model's name and parameters."""
        own = {key: value for key, value in asdict(self).items() if key != "base"}
        return {"model": "prf", **own, "base": self.base.json()}

    def _relevance(
        self, searcher: Searcher, terms: NDArray[Any], relevant: NDArray[Any], judged: int, factor: float
    ) -> Floats:
        frequency, documents = searcher.frequencies(terms), searcher.documents
        odds = (relevant + 0.5) * (documents - frequency - judged + relevant + 0.5)
        against = (frequency - relevant + 0.5) * (judged - relevant + 0.5)
        weights: Floats = np.maximum(np.log(odds / against) * factor, 1e-6)
        return weights


class _Rows(NamedTuple):
    """Which term stands in which document of a pool.

    `names` are the numbers of the terms, ascending, `held` in how many documents each stands, shape (terms,); `terms`
    and `documents` are pairs of places, shape (pairs,); `size` is the number of documents with a term.
    """

    names: NDArray[np.int32]
    held: Floats
    terms: NDArray[np.int64]
    documents: NDArray[np.int64]
    size: int


def _incidence(searcher: Searcher, pool: NDArray[np.int32]) -> _Rows:
    """The terms of letters in a pool of documents, and which document holds which."""
    places, found, _ = searcher.vectors(pool)
    kept = (searcher.index.flags[found] & LETTERS) > 0
    names, terms = np.unique(found[kept], return_inverse=True)
    filled, documents = np.unique(places[kept], return_inverse=True)
    return _Rows(names, np.bincount(terms, minlength=len(names)).astype(float), terms, documents, len(filled))


def _mutual_information(first: int, second: Floats, both: Floats, size: int) -> Floats:
    """Of two events over `size` documents, in nats: 0 where one of them always or never happens.

    Args:
        second: in how many the second does, shape (terms,).
        both: in how many both do, shape (terms,).
    """
    cells = (
        (both, first, second),
        (first - both, first, size - second),
        (second - both, size - first, second),
        (size - first - second + both, size - first, size - second),
    )
    information = np.zeros(len(second))
    for joint, one, other in cells:
        with np.errstate(divide="ignore", invalid="ignore"):
            part = joint / size * np.log(joint * size / (one * other))
        information += np.where(joint > 0, part, 0.0)
    certain = (first in (0, size)) | (second == 0) | (second == size)
    return np.where(certain, 0.0, information)


def _java_draws(seed: int, bound: int) -> Iterator[int]:
    """Whole numbers from 0 below `bound` as java.util.Random draws them: a linear congruential generator of 48 bits."""
    mask = (1 << 48) - 1
    state = (seed ^ 0x5DEECE66D) & mask
    while True:
        state = (state * 0x5DEECE66D + 0xB) & mask
        bits = state >> 17
        if bound & (bound - 1) == 0:
            yield (bound * bits) >> 31
            continue
        value = bits % bound
        if bits - value + bound - 1 < 1 << 31:
            yield value


def _document_weights(scores: Floats, model: Model) -> Floats:
    if isinstance(model, QueryLikelihood) and model.variant == "standard":
        shares: Floats = np.exp(scores - scores.max(initial=-np.inf))
        return shares
    return scores


def _cut(weights: dict[int, float], size: int) -> dict[int, float]:
    """The terms with the highest weights; equal ones in the order of the terms."""
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:size])


def _at_least_one(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise InputError(f"{name} is {value}", "give 1 or more")


def _share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InputError(f"{name} is {value:g}", "give 0 to 1")

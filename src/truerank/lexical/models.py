"""Retrieval models as values: BM25 and query likelihood, each with its variants under names."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from truerank.arrays import Floats
from truerank.errors import InputError


class Statistics(NamedTuple):
    """What a model knows of the collection and of one term in it.

    Attributes:
        documents: documents with a term in one of the fields searched.
        mean_length: mean of their lengths.
        tokens: sum of their lengths.
        frequency: documents that hold the term.
        total: how often the term is in the collection.
    """

    documents: int
    mean_length: float
    tokens: float
    frequency: int
    total: float


class Model(Protocol):
    """Scores documents by sums over the terms of a query."""

    def query_weight(self, count: float) -> float:
        """The weight of a term that stands so often in the query."""

    def weights(self, counts: Floats, lengths: Floats, statistics: Statistics) -> Floats:
        """What one occurrence of a term in the query adds to the scores of the documents that hold the term.

        Args:
            counts: how often the term is in each of these documents, shape (documents,).
            lengths: the lengths of these documents, shape (documents,).
            statistics: of the collection and the term.
        """

    def length_part(self, lengths: Floats) -> Floats | None:
        """What one word of the query adds to the score of a document whether or not it holds it; None for nothing."""

    def json(self) -> dict[str, Any]:
        """The model's name and parameters."""


@dataclass(frozen=True)
class BM25:
    """BM25.

    Attributes:
        k1: how slowly the count of a term saturates.
        b: how much the length of a document counts, 0 to 1.
        idf: "lucene" ln(1 + (N − n + 0.5)/(n + 0.5)), "robertson" ln((N − n + 0.5)/(n + 0.5)), which is negative for
            terms in more than half of the documents, or "none" (1 for every term).
        k3: saturation of a term's count in the query; None: it counts in full.
        lengths: "exact", or "lucene": as Lucene keeps them in one byte, four leading bits from length 40 on.

    A constant factor k1 + 1, which some write, is left out: it does not change the order.

    Raises:
        InputError: a parameter out of its range, or an unknown name.

    Source: Robertson and Zaragoza (2009), section 3.4; Kamphuis, de Vries, Boytsov, Lin (2020), table 1, for variants.
    """

    k1: float = 0.9
    b: float = 0.4
    idf: Literal["lucene", "robertson", "none"] = "lucene"
    k3: float | None = None
    lengths: Literal["exact", "lucene"] = "exact"

    def __post_init__(self) -> None:
        _range("k1", self.k1, 0, None)
        _range("b", self.b, 0, 1)
        _range("k3", self.k3 or 0, 0, None)
        _known("idf", self.idf, ("lucene", "robertson", "none"))
        _known("lengths", self.lengths, ("exact", "lucene"))

    def query_weight(self, count: float) -> float:
        """The count of a term in the query, saturated by k3."""
        return count if self.k3 is None else (self.k3 + 1) * count / (self.k3 + count)

    def weights(self, counts: Floats, lengths: Floats, statistics: Statistics) -> Floats:
        """idf × count / (count + k1 (1 − b + b length/mean length))."""
        kept = quantised(lengths) if self.lengths == "lucene" else lengths
        norm = self.k1 * (1 - self.b + self.b * kept / statistics.mean_length)
        scores: Floats = self._idf(statistics) * counts / (counts + norm)
        return scores

    def length_part(self, lengths: Floats) -> Floats | None:
        """Nothing."""
        return None

    def json(self) -> dict[str, Any]:
        """The model's name and parameters."""
        return {"model": "bm25", **asdict(self)}

    def _idf(self, statistics: Statistics) -> float:
        if self.idf == "none":
            return 1.0
        odds = (statistics.documents - statistics.frequency + 0.5) / (statistics.frequency + 0.5)
        return float(np.log1p(odds) if self.idf == "lucene" else np.log(odds))


@dataclass(frozen=True)
class QueryLikelihood:
    """Query likelihood with Dirichlet smoothing.

    Attributes:
        mu: how many words of the collection each document is smoothed with.
        variant: "standard": the logarithm of the probability of those words of the query that the collection holds,
            less what is the same for all documents; "lucene": only words that the document holds count, what they add
            is cut off at 0, and a term's share of the collection is (its count + 1)/(tokens + 1).

    Raises:
        InputError: mu is not above 0, or an unknown variant.

    Source: Zhai and Lafferty (2001), section 3; for "lucene" the documentation of Lucene's LMDirichletSimilarity.
    """

    mu: float = 1000.0
    variant: Literal["standard", "lucene"] = "standard"

    def __post_init__(self) -> None:
        if not self.mu > 0:
            raise InputError(f"mu is {self.mu:g}", "give a value above 0")
        _known("variant", self.variant, ("standard", "lucene"))

    def query_weight(self, count: float) -> float:
        """The count itself."""
        return count

    def weights(self, counts: Floats, lengths: Floats, statistics: Statistics) -> Floats:
        """What a term adds beyond the part of the length: for "standard" ln(1 + count/(mu p))."""
        if self.variant == "standard":
            share = statistics.total / statistics.tokens
            return np.asarray(np.log1p(counts / (self.mu * share)))
        share = (statistics.total + 1) / (statistics.tokens + 1)
        scores = np.log1p(counts / (self.mu * share)) + np.log(self.mu / (quantised(lengths) + self.mu))
        return np.asarray(np.maximum(scores, 0.0))

    def length_part(self, lengths: Floats) -> Floats | None:
        """For "standard" ln(mu/(length + mu))."""
        return np.asarray(np.log(self.mu / (lengths + self.mu))) if self.variant == "standard" else None

    def json(self) -> dict[str, Any]:
        """The model's name and parameters."""
        return {"model": "ql", **asdict(self)}


def quantised(lengths: Floats) -> Floats:
    """Lengths as Lucene keeps them in one byte: exact below 40, then with four leading bits.

    Args:
        lengths: whole numbers, shape (documents,).

    Source: the documentation of Lucene's SmallFloat (intToByte4).
    """
    over = np.maximum(np.round(lengths).astype(np.int64) - 24, 0)
    shift = np.maximum(np.frexp(over)[1] - 4, 0)
    return np.where(lengths < 24, lengths, 24 + ((over >> shift) << shift)).astype(np.float64)


def _range(name: str, value: float, low: float, high: float | None) -> None:
    if not np.isfinite(value) or value < low or (high is not None and value > high):
        limits = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
        raise InputError(f"{name} is {value:g}", f"give {limits}")


def _known(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"unknown {name} '{value}'", f"one of {', '.join(known)}")

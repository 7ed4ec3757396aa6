"""The models of first-stage retrieval once more, from their formulas, one document and one term at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

Collection = Mapping[str, Sequence[str]]
Scores = dict[str, float]


class Reference:
    """A collection of documents as lists of terms, with what the formulas need to know of it."""

    def __init__(self, collection: Collection) -> None:
        self.documents = {name: list(terms) for name, terms in collection.items()}
        self.counts = {name: Counter(terms) for name, terms in self.documents.items()}
        self.size = sum(bool(terms) for terms in self.documents.values())
        self.tokens = sum(map(len, self.documents.values()))
        self.mean = self.tokens / self.size

    def frequency(self, term: str) -> int:
        return sum(term in counts for counts in self.counts.values())

    def total(self, term: str) -> int:
        return sum(counts[term] for counts in self.counts.values())

    def matching(self, query: Mapping[str, float]) -> list[str]:
        return [name for name, counts in self.counts.items() if any(w and counts[t] for t, w in query.items())]

    def bm25(self, query: Mapping[str, float], k1: float, b: float, idf: str = "lucene") -> Scores:
        scores = {}
        for name in self.matching(query):
            length, score = len(self.documents[name]), 0.0
            for term, weight in query.items():
                count, n = self.counts[name][term], self.frequency(term)
                if not count:
                    continue
                odds = (self.size - n + 0.5) / (n + 0.5)
                factor = {"lucene": math.log(1 + odds), "robertson": math.log(odds), "none": 1.0}[idf]
                score += weight * factor * count / (count + k1 * (1 - b + b * length / self.mean))
            scores[name] = score
        return scores

    def likelihood(self, query: Mapping[str, float], mu: float) -> Scores:
        """Without the part that is the same for all documents: the sum of weight × ln (mu p)."""
        scores = {}
        for name in self.matching(query):
            length, score = len(self.documents[name]), 0.0
            for term, weight in query.items():
                share = self.total(term) / self.tokens
                if share:
                    score += weight * math.log((self.counts[name][term] + mu * share) / (length + mu))
                    score -= weight * math.log(share)
            scores[name] = score
        return scores

    def likelihood_lucene(self, query: Mapping[str, float], mu: float) -> Scores:
        scores = {}
        for name in self.matching(query):
            length, score = len(self.documents[name]), 0.0
            for term, weight in query.items():
                share = (self.total(term) + 1) / (self.tokens + 1)
                if count := self.counts[name][term]:
                    score += weight * max(0.0, math.log(1 + count / (mu * share)) + math.log(mu / (length + mu)))
            scores[name] = score
        return scores

    def rm3(self, query: Sequence[str], ranking: Sequence[tuple[str, float]], terms: int, share: float) -> Scores:
        """The weights of the expanded query."""
        model: Scores = {}
        for name, score in ranking:
            vector = {
                term: count
                for term, count in self.counts[name].items()
                if plain(term) and 2 <= len(term) <= 20 and self.frequency(term) / self.size <= 0.1
            }
            vector = best(vector, terms)
            for term, count in vector.items():
                model[term] = model.get(term, 0.0) + score * count / sum(vector.values())
        model = best(model, terms)
        norm = sum(model.values())
        weights = {term: share * count / len(query) for term, count in Counter(query).items()}
        for term, weight in model.items():
            weights[term] = weights.get(term, 0.0) + (1 - share) * weight / norm
        return weights

    def axiomatic(self, query: Sequence[str], pool: Sequence[str], beta: float, terms: int, kind: str) -> Scores:
        sets: dict[str, set[str]] = {}
        for name in pool:
            for term in self.counts[name]:
                if len(term) >= 2 and all("a" <= sign <= "z" for sign in term):
                    sets.setdefault(term, set()).add(name)
        size = len(set().union(*sets.values()))
        weights: Scores = {}
        for term, count in Counter(query).items():
            if term not in sets:
                continue
            exact = (1 + self.size) / self.frequency(term)
            idf = {"once": 1.0, "exact": math.log(exact), "whole": math.log(math.floor(exact))}[kind]
            own = information(sets[term], sets[term], size)
            for other, held in sets.items():
                if other == term:
                    score = count * idf
                elif own > 0:
                    score = count * idf * beta * information(sets[term], held, size) / own
                else:
                    score = 0.0
                if score > 1e-8:
                    weights[other] = weights.get(other, 0.0) + score / len(query)
        return best(weights, terms)

    def prf(self, query: Sequence[str], first: Sequence[str], terms: int, factor: float) -> Scores:
        def relevance(term: str, weight: float) -> float:
            n, r, big_r, big_n = self.frequency(term), relevant[term], len(first), self.size
            odds = (r + 0.5) * (big_n - n - big_r + r + 0.5) / ((n - r + 0.5) * (big_r - r + 0.5))
            return max(math.log(odds) * weight, 1e-6)

        relevant = Counter(term for name in first for term in self.counts[name])
        new = {
            term: relevance(term, factor) * math.log(count)
            for term, count in relevant.items()
            if term not in query and count >= 2 and plain(term) and 2 <= len(term) <= 20 and not term.isdigit()
        }
        weights = {term: relevance(term, factor) for term in best(new, terms)}
        return weights | {term: relevance(term, 1.0) for term in query}


def information(first: set[str], second: set[str], size: int) -> float:
    """Mutual information of two events over `size` documents, in nats."""
    if len(first) in (0, size) or len(second) in (0, size):
        return 0.0
    total = 0.0
    for one in (True, False):
        for other in (True, False):
            n1 = len(first) if one else size - len(first)
            n2 = len(second) if other else size - len(second)
            both = len(first & second)
            joint = {
                (True, True): both,
                (True, False): len(first) - both,
                (False, True): len(second) - both,
                (False, False): size - len(first) - len(second) + both,
            }[one, other]
            if joint:
                total += joint / size * math.log(joint * size / (n1 * n2))
    return total


def plain(term: str) -> bool:
    return term.isascii() and term.isalnum() and term == term.lower()


def best(weights: Mapping[str, float], size: int) -> Scores:
    """The highest weights; equal ones in the order of the terms."""
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:size])


def ranked(scores: Mapping[str, float], k: int, key: Callable[[str], str] = str) -> list[tuple[str, float]]:
    """The best k: scores with six decimals descending, then ids ascending."""
    rounded = [(name, round(score, 6)) for name, score in scores.items()]
    return sorted(rounded, key=lambda item: (-item[1], key(item[0])))[:k]

"""BM25 as a ranker: any text is scored with the statistics of an index."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from truerank.errors import InputError, OptionError
from truerank.lexical import BM25, Index, Searcher, model_of, open_index
from truerank.lexical.models import Statistics
from truerank.lexical.presets import changed
from truerank.lexical.scoring import parse_query, weighted_query
from truerank.rankers.base import Pair, Runtime, Scores, rounded, write_description
from truerank.work.artifacts import digest


class Bm25:
    """BM25 of a text for a query; analyser, document frequencies and mean length are those of an index.

    For a document of the index, as a whole, the score is that of searching.
    """

    kind: ClassVar[str] = "bm25"

    def __init__(self, index: Index, model: BM25) -> None:
        self._searcher = Searcher(index)
        self._model = model
        self._tokens = float(self._searcher.lengths.sum())
        self._statistics: dict[int, Statistics] = {}

    @classmethod
    def open(cls, place: str, runtime: Runtime = Runtime(), *, preset: str = "anserini", **settings: Any) -> Self:
        saved = Path(place) / "index"
        return cls(open_index(saved if saved.is_dir() else place), _model(preset, settings))

    @property
    def name(self) -> str:
        return f"BM25 (k1 {self._model.k1:g}, b {self._model.b:g})"

    @property
    def fingerprint(self) -> str:
        return digest([self.kind, self._searcher.index.fingerprint, self._model.json()])

    def score(self, pairs: Sequence[Pair]) -> Scores:
        analyse = self._searcher.index.analyser
        queries = {
            text: weighted_query(parse_query(self._searcher, text).terms, self._model)
            for text in dict.fromkeys(pair.query for pair in pairs)
        }
        wanted: dict[str, list[int]] = {}
        for number, pair in enumerate(pairs):
            wanted.setdefault(pair.document, []).append(number)
        scores = np.zeros(len(pairs))
        for text, numbers in wanted.items():
            terms = analyse(text)
            counts = Counter(terms)
            of_terms: dict[int, float] = {}
            for number in numbers:
                for term, weight in queries[pairs[number].query].items():
                    if term not in of_terms:
                        count = counts[self._searcher.index.term(term)]
                        of_terms[term] = self._weight(term, count, len(terms))
                    scores[number] += weight * of_terms[term]
        return rounded(scores)

    def save(self, folder: Path) -> None:
        shutil.copytree(self._searcher.index.folder, folder / "index", dirs_exist_ok=True)
        settings = {name: value for name, value in self._model.json().items() if name != "model"}
        write_description(folder, self.kind, settings)

    def _weight(self, term: int, count: int, length: int) -> float:
        if not count:
            return 0.0
        if term not in self._statistics:
            searcher = self._searcher
            _, held = searcher.counts(term)
            mean = self._tokens / searcher.documents
            self._statistics[term] = Statistics(searcher.documents, mean, self._tokens, len(held), float(held.sum()))
        weights = self._model.weights(np.array([float(count)]), np.array([float(length)]), self._statistics[term])
        return float(weights[0])


def _model(preset: str, settings: dict[str, Any]) -> BM25:
    usual = model_of(preset, "bm25", {})
    if not isinstance(usual, BM25):
        raise InputError(f"the preset '{preset}' has no BM25", "choose another", where="preset")
    unknown = [name for name in settings if name not in {field.name for field in fields(BM25)}]
    if unknown:
        raise OptionError("set_", f"bm25 has no such setting: {', '.join(unknown)}", "k1, b, idf, k3 or lengths")
    made: BM25 = changed(usual, settings)
    return made

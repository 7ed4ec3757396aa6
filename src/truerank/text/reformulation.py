"""How a training query reformulates a topic's text: one of the five types of the leakage paper (section 3, Table 2).

The types are those of Jansen, Booth and Spink (2009) as the paper uses them. Where both texts hold the same words, the
type is identical by definition, unless two words have changed their direction ("from Paris to London"); where each has
a number that the other lacks, it is a different topic. Every other pair is read by a multinomial logistic regression
over at most five features, whose coefficients stand below and come from the paper's labels; a test fits them again.
How alike two words are is the caller's to say: this floor knows no encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from truerank.text.contrasts import contrast
from truerank.text.normalising import normalise
from truerank.text.words import asks_for_definition, content_words, joined_words, stem

__all__ = [
    "FEATURES",
    "TYPES",
    "Type",
    "WordSimilarity",
    "pair_features",
    "propose_types",
    "same_words",
]

Type = Literal["identical", "generalization", "specialization", "reformulation", "different topic"]

#: The types in the order of the paper's Table 2.
TYPES: Final[tuple[Type, ...]] = (
    "identical",
    "generalization",
    "specialization",
    "reformulation",
    "different topic",
)

#: Cosines of every word on the left with every word on the right, shape (left, right). Words come in lower case, as
#: `truerank.text.words.words` forms them; the same word is asked for often, so a cache per word pays.
WordSimilarity: TypeAlias = Callable[[Sequence[str], Sequence[str]], NDArray[np.float32]]

#: Columns of `pair_features`.
FEATURES: Final = (
    "worst_topic_gap",
    "worst_query_gap",
    "mean_topic_gap",
    "mean_query_gap",
    "sentence_gap",
    "definition",
)

_Row: TypeAlias = tuple[float, float, float, float, float, float, float]
# Fitted to the paper's labels. Columns: intercept, then FEATURES.
_WITH_SENTENCE: Final[Mapping[Type, _Row]] = {
    "identical": (1.90, -0.92, -0.11, 0.0, 0.0, -22.94, -0.96),
    "generalization": (-0.64, 3.04, -2.73, 0.0, 0.0, 4.98, -0.40),
    "specialization": (-1.32, -3.02, 3.41, 0.0, 0.0, 8.87, 0.81),
    "reformulation": (0.50, -0.18, 0.43, 0.0, 0.0, 3.31, -0.36),
    "different topic": (-0.44, 1.08, -1.00, 0.0, 0.0, 5.78, 0.91),
}
_WITHOUT_SENTENCE: Final[Mapping[Type, _Row]] = {
    "identical": (1.24, -0.34, -0.68, -8.51, -4.76, 0.0, -2.03),
    "generalization": (-0.55, 2.88, -1.90, 2.12, -0.79, 0.0, -0.15),
    "specialization": (-1.06, -2.64, 2.76, 1.99, 4.77, 0.0, 1.30),
    "reformulation": (0.59, 0.25, -0.02, -0.56, 1.87, 0.0, -0.22),
    "different topic": (-0.22, -0.16, -0.16, 4.95, -1.10, 0.0, 1.10),
}

_QUERIES_AT_ONCE: Final = 4096
#: Pairs of words that are compared at once, and content words of a text that are.
_PAIRS_AT_ONCE: Final = 1 << 24
_COMPARED: Final = 1000
# Above this similarity two spellings are one word to the encoder ("café", "cafe").
_SAME_GAP: Final = 1e-3


class _Words(NamedTuple):
    """The first content words of a text, their stems, and whether it asks for a definition."""

    words: tuple[str, ...]
    stems: tuple[str, ...]
    definition: bool


def propose_types(
    pairs: Sequence[tuple[str, str]],
    word_similarity: WordSimilarity,
    sentence_similarities: Sequence[float] | NDArray[np.floating] | None = None,
    differs: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> list[Type]:
    """Proposes the types of many pairs; `word_similarity` is asked once per distinct topic text and 4,096 queries.

    Args:
        pairs: (topic text, query text); pairs with the same topic text need not be neighbours.
        word_similarity: cosines between words.
        sentence_similarities: the cosines of the pairs' texts, shape (len(pairs),), or nothing.
        differs: what `contrasts.contrast` says of pairs, where that is known.

    Returns:
        One type per pair, in their order.

    Raises:
        ValueError: the number of sentence similarities is not that of the pairs, or a similarity is unfit.
    """
    features = pair_features(pairs, word_similarity, sentence_similarities)
    table = _WITHOUT_SENTENCE if sentence_similarities is None else _WITH_SENTENCE
    coefficients = np.array([table[name] for name in TYPES])
    scores = coefficients[:, 0] + np.nan_to_num(features) @ coefficients[:, 1:].T
    best = scores.argmax(axis=1)
    best[same_words(features)] = TYPES.index("identical")
    contrasts = [differs[pair] if pair in differs else contrast(*pair) for pair in pairs]
    turned = [at for at, what in enumerate(contrasts) if what == "direction" and best[at] == TYPES.index("identical")]
    scores[turned, TYPES.index("identical")] = -np.inf
    best[turned] = scores[turned].argmax(axis=1)
    best[[what in ("number", "numbers", "code") for what in contrasts]] = TYPES.index("different topic")
    wordless = np.isnan(features[:, 0])
    types = [TYPES[number] for number in best]
    for at in np.flatnonzero(wordless).tolist():
        topic_text, query_text = pairs[at]
        types[at] = "identical" if normalise(topic_text) == normalise(query_text) else "different topic"
    return types


def pair_features(
    pairs: Sequence[tuple[str, str]],
    word_similarity: WordSimilarity,
    sentence_similarities: Sequence[float] | NDArray[np.floating] | None = None,
) -> NDArray[np.float64]:
    """What the types are decided by.

    A word's gap is 1 minus its similarity to the nearest content word of the other text; it is 0 where the other text
    holds the same stem, the same two words in one ("rain forest", "rainforest") or the word's initials ("us").

    Args:
        pairs: (topic text, query text).
        word_similarity: cosines between words.
        sentence_similarities: the cosines of the pairs' texts, shape (len(pairs),), or nothing.

    Returns:
        Shape (len(pairs), 6), columns as in `FEATURES`: the largest gap of a topic word, of a query word, their means,
        1 minus the sentence similarity (0 where nothing is known), and 1 if the query asks for a definition and the
        topic's text does not. A pair with a text that has no word is a row of NaN.

    Raises:
        ValueError: as for `propose_types`.
    """
    features = np.full((len(pairs), len(FEATURES)), np.nan)
    known = {text: _read(text) for pair in pairs for text in pair}
    for topic, numbers in _by_topic(pairs, known):
        queries = [known[pairs[number][1]] for number in numbers]
        features[numbers, :4] = _gaps(topic, queries, word_similarity)
        features[numbers, 5] = [query.definition and not topic.definition for query in queries]
    worded = ~np.isnan(features[:, 0])
    features[worded, 4] = 0.0
    if sentence_similarities is not None:
        given = np.asarray(sentence_similarities, dtype=np.float64)
        if given.shape != (len(pairs),):
            raise ValueError(f"{len(pairs)} pairs, but sentence similarities of shape {given.shape}")
        if not np.isfinite(given).all():
            raise ValueError("a sentence similarity is not a number")
        features[worded, 4] = 1 - np.clip(given[worded], 0, 1)
    return features


def same_words(features: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows of `pair_features` are identical: inflection, order and function words differ at most."""
    same: NDArray[np.bool_] = (features[:, 0] <= _SAME_GAP) & (features[:, 1] <= _SAME_GAP) & (features[:, 5] == 0)
    return same


def _read(text: str) -> _Words:
    found = content_words(text)[:_COMPARED]
    return _Words(found, tuple(stem(word) for word in found), asks_for_definition(text))


def _by_topic(
    pairs: Sequence[tuple[str, str]], known: Mapping[str, _Words]
) -> Iterator[tuple[_Words, NDArray[np.int64]]]:
    numbers: dict[str, list[int]] = {}
    for number, (topic_text, query_text) in enumerate(pairs):
        if known[topic_text].words and known[query_text].words:
            numbers.setdefault(topic_text, []).append(number)
    for topic_text, own in numbers.items():
        longest = max(len(known[pairs[number][1]].words) for number in own)
        step = min(_QUERIES_AT_ONCE, max(1, _PAIRS_AT_ONCE // (longest * len(known[topic_text].words))))
        for start in range(0, len(own), step):
            yield known[topic_text], np.array(own[start : start + step])


def _gaps(topic: _Words, queries: Sequence[_Words], word_similarity: WordSimilarity) -> NDArray[np.float64]:
    """The first four features of the queries of one topic text, shape (queries, 4)."""
    places: dict[str, int] = {}
    columns = [places.setdefault(word, len(places)) for query in queries for word in query.words]
    starts = np.cumsum([0, *(len(query.words) for query in queries)])
    nearness = _word_matrix(topic.words, list(places), word_similarity)[:, columns]
    stem_numbers: dict[str, int] = {}
    topic_stems = np.array([stem_numbers.setdefault(form, len(stem_numbers)) for form in topic.stems])
    query_stems = np.array([stem_numbers.get(form, -1) for query in queries for form in query.stems])
    nearness[topic_stems[:, None] == query_stems] = 1
    for query, start in zip(queries, starts, strict=False):
        for row, column in joined_words(topic.words, query.words):
            nearness[row, start + column] = 1
    lengths = np.diff(starts)
    query_gaps = 1 - nearness.max(axis=0)
    topic_gaps = 1 - np.maximum.reduceat(nearness, starts[:-1], axis=1)
    return np.column_stack(
        [
            topic_gaps.max(axis=0),
            np.maximum.reduceat(query_gaps, starts[:-1]),
            topic_gaps.mean(axis=0),
            np.add.reduceat(query_gaps, starts[:-1]) / lengths,
        ]
    )


def _word_matrix(left: Sequence[str], right: Sequence[str], word_similarity: WordSimilarity) -> NDArray[np.float64]:
    matrix = np.asarray(word_similarity(left, right), dtype=np.float64)
    if matrix.shape != (len(left), len(right)):
        raise ValueError(f"word similarities of shape {matrix.shape} for {len(left)} and {len(right)} words")
    if not np.isfinite(matrix).all():
        raise ValueError("a word similarity is not a number")
    return np.clip(matrix, 0, 1)

"""The reformulation type of every candidate, against the text it was found by and against the topic's title."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from truerank.sources import TopicSet
from truerank.text.reformulation import propose_types
from truerank.text.words import content_words
from truerank.vectors.encoders import Encoder
from truerank.vectors.words import WordVectors

__all__ = ["with_types"]


def with_types(pairs: pl.DataFrame, tests: Sequence[TopicSet], encoder: Encoder) -> pl.DataFrame:
    """Adds the columns `type` and `title_type` to the candidates.

    Args:
        pairs: columns as in `NEIGHBOUR_SCHEMA`.
        tests: the test sets with the titles.
        encoder: tells how alike words and sentences are.
    """
    titles = {(test.name, topic.topic_id): topic.title for test in tests for topic in test.topics}
    of_title = [titles[key] for key in pairs.select("test", "topic_id").iter_rows()]
    against_field = list(zip(pairs["topic_text"], pairs["query_text"], strict=True))
    against_title = list(zip(of_title, pairs["query_text"], strict=True))
    every = sorted({text for pair in (*against_field, *against_title) for text in pair})
    words = WordVectors(encoder, (word for text in every for word in content_words(text)))
    similarity = dict(zip(against_field, pairs["similarity"], strict=True))
    similarity.update(_sentence_similarities([pair for pair in set(against_title) if pair not in similarity], encoder))
    return pairs.with_columns(
        pl.Series(name, propose_types(wanted, words, [similarity[pair] for pair in wanted]), dtype=pl.String)
        for name, wanted in (("type", against_field), ("title_type", against_title))
    )


def _sentence_similarities(pairs: Sequence[tuple[str, str]], encoder: Encoder) -> dict[tuple[str, str], float]:
    texts = sorted({text for pair in pairs for text in pair})
    row = {text: place for place, text in enumerate(texts)}
    vectors = encoder.encode(texts)
    left, right = ([row[pair[side]] for pair in pairs] for side in (0, 1))
    cosines = np.einsum("ij,ij->i", vectors[left], vectors[right])
    return dict(zip(pairs, np.round(cosines.astype(np.float64), 6).tolist(), strict=True))

"""How alike texts are by the character trigrams that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from truerank.vectors.encoders.base import Vectors

_BUCKETS: Final = 1 << 17
#: Texts, and cells of text times topic, that are scored at a time: few, so that what lies between stays small.
_TEXTS_AT_ONCE: Final = 1 << 13
_CELLS_AT_ONCE: Final = 1 << 22


class TrigramScorer:
    """Scores texts by the trigrams they share with topic texts.

    Args:
        topic_texts: the topic texts, normalised.
        fields: the field of each topic text.
        sample: texts of the log that the document frequencies are counted on.
    """

    def __init__(self, topic_texts: Sequence[str], fields: Sequence[str], sample: Sequence[str]) -> None:
        document, code, _ = _trigrams([*sample, *topic_texts])
        frequency = np.bincount(code, minlength=_BUCKETS)
        count = len(sample) + len(topic_texts)
        self._idf = (np.log((1 + count) / (1 + frequency)) + 1).astype(np.float32)
        self.fields = tuple(dict.fromkeys(fields))
        order = np.argsort([self.fields.index(field) for field in fields], kind="stable")
        ordered = [topic_texts[place] for place in order]
        self._ends = np.cumsum([sum(field == name for field in fields) for name in self.fields])
        document, code, weight = self._weights(ordered)
        vocabulary = np.unique(code)
        self._column = np.full(_BUCKETS, -1, np.int32)
        self._column[vocabulary] = np.arange(len(vocabulary), dtype=np.int32)
        self._topics = np.zeros((len(vocabulary), len(ordered)), np.float32)
        self._topics[self._column[code], document] = weight

    def scores(self, texts: Sequence[str]) -> Vectors:
        """The best score of each text for each field, shape (texts, fields)."""
        best = np.empty((len(texts), len(self.fields)), np.float32)
        step = max(1, min(_TEXTS_AT_ONCE, _CELLS_AT_ONCE // max(1, self._topics.shape[1])))
        for start in range(0, len(texts), step):
            self._score(texts[start : start + step], best[start : start + step])
        return best

    def _score(self, texts: Sequence[str], best: Vectors) -> None:
        document, code, weight = self._weights(texts)
        column = self._column[code]
        known = column >= 0
        starts = np.searchsorted(document[known], np.arange(len(texts) + 1)).astype(np.int32)
        own = scipy.sparse.csr_array((weight[known], column[known], starts), (len(texts), len(self._topics)))
        similarity = own @ self._topics
        begin = 0
        for place, end in enumerate(self._ends):
            best[:, place] = similarity[:, begin:end].max(axis=1)
            begin = end

    def _weights(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], Vectors]:
        document, code, count = _trigrams(texts)
        weight = (1 + np.log(count)).astype(np.float32) * self._idf[code]
        norm = np.sqrt(np.bincount(document, weight**2, minlength=len(texts)))
        return document, code, (weight / norm[document]).astype(np.float32)


def _letters_only() -> NDArray[np.uint32]:
    table = np.arange(128, dtype=np.uint32)
    table[[not chr(code).isalnum() for code in range(128)]] = ord(" ")
    return table


_LETTERS: Final = _letters_only()


def _trigrams(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct trigrams within words as (text, bucket, count), ordered by text and bucket."""
    lowered = [text.lower() for text in texts]
    lengths = np.fromiter((len(text) + 1 for text in lowered), np.int64, len(lowered))
    joined = " " + " ".join(lowered) + " "
    letters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32).copy()
    plain = letters < 128
    letters[plain] = _LETTERS[letters[plain]]
    owner = np.repeat(np.arange(len(texts), dtype=np.int64), lengths)
    # A window belongs to the text of its middle letter; one with a blank in the middle spans two words.
    inside = np.flatnonzero(letters[1:-1] != ord(" "))
    left, middle, right = letters[inside], letters[inside + 1], letters[inside + 2]
    mixed = left * np.uint32(0x9E3779B1) ^ middle * np.uint32(0x85EBCA6B) ^ right * np.uint32(0xC2B2AE35)
    code = ((mixed ^ (mixed >> np.uint32(15))) * np.uint32(0x2C1B3C6D) >> np.uint32(15)).astype(np.int64)
    keys, counts = np.unique(owner[inside] * _BUCKETS + code, return_counts=True)
    return keys // _BUCKETS, keys % _BUCKETS, counts

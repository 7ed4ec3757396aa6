"""What rankers share that encode queries and documents apart: each distinct text is encoded once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.rankers.base import Pair, Scores, rounded
from truerank.rankers.pretrained.torch_ranker import TokenRow, TorchRanker
from truerank.rankers.training.fitting import Fitting


class DualRow(NamedTuple):
    """The tokens of the two texts of a pair."""

    query: TokenRow
    document: TokenRow


class DualRanker(Fitting, TorchRanker):
    """A ranker that compares vectors of queries with vectors of documents.

    Attributes:
        known: gives the vectors of those of some documents that were encoded before; None for none.
    """

    known: Callable[[Sequence[str]], Mapping[str, NDArray[np.float32]]] | None = None

    @abstractmethod
    def text_rows(self, texts: Sequence[str], *, queries: bool) -> list[TokenRow]:
        """The tokens of each text."""

    @abstractmethod
    def encode(self, rows: Sequence[TokenRow], *, queries: bool) -> Any:
        """What `vectors` and `matches` are made from, with gradients where they are enabled."""

    @abstractmethod
    def vectors(self, rows: Sequence[TokenRow], *, queries: bool) -> list[NDArray[np.float32]]:
        """The vector or vectors of each row of tokens."""

    @abstractmethod
    def compare(self, query: NDArray[np.float32], documents: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """The scores of documents for one query, shape (documents,)."""

    @abstractmethod
    def matches(self, queries: Any, documents: Any) -> Any:
        """The score of each query and the document beside it, with gradients, from what `encode` gave, shape (n,)."""

    def rows(self, pairs: Sequence[Pair]) -> list[DualRow]:
        """The tokens of each pair."""
        found = []
        for queries, texts in ((True, [pair.query for pair in pairs]), (False, [pair.document for pair in pairs])):
            distinct = list(dict.fromkeys(texts))
            known = dict(zip(distinct, self.text_rows(distinct, queries=queries), strict=True))
            found.append([known[text] for text in texts])
        return [DualRow(query, document) for query, document in zip(*found, strict=True)]

    def logits(self, rows: Sequence[DualRow]) -> Any:
        """The scores with gradients, shape (rows,)."""
        queries = self.encode([row.query for row in rows], queries=True)
        return self.matches(queries, self.encode([row.document for row in rows], queries=False))

    def all_vectors(self, rows: Sequence[TokenRow], *, queries: bool) -> list[NDArray[np.float32]]:
        """The vector or vectors of each row, in the order of the rows; rows of one length run together."""
        import torch

        self.module.eval()
        found: dict[int, NDArray[np.float32]] = {}
        with torch.inference_mode():
            for batch in self.batches(rows):
                found.update(zip(batch, self.vectors([rows[n] for n in batch], queries=queries), strict=True))
        return [found[number] for number in range(len(rows))]

    def score(self, pairs: Sequence[Pair]) -> Scores:
        """The score of each pair, shape (pairs,); higher is better; equal pairs have equal scores."""
        queries = self._encoded(sorted({pair.query for pair in pairs}), queries=True)
        documents = self.encode_documents(sorted({pair.document for pair in pairs}))
        wanted: dict[str, list[str]] = {}
        for query, document in sorted(set(pairs)):
            wanted.setdefault(query, []).append(document)
        found: dict[Pair, float] = {}
        for query, texts in wanted.items():
            scores = rounded(self.compare(queries[query], [documents[text] for text in texts]))
            found.update(zip((Pair(query, text) for text in texts), scores.tolist(), strict=True))
        return np.fromiter((found[pair] for pair in pairs), np.float32, len(pairs))

    def encode_documents(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vector or vectors of each document; what is known already is not encoded again."""
        known = {} if self.known is None else dict(self.known(texts))
        return known | self._encoded([text for text in texts if text not in known], queries=False)

    def _encoded(self, texts: Sequence[str], *, queries: bool) -> dict[str, NDArray[np.float32]]:
        return dict(zip(texts, self.all_vectors(self.text_rows(texts, queries=queries), queries=queries), strict=True))

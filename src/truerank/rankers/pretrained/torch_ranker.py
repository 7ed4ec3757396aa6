"""What the rankers on transformers share, dual encoders too: texts to ids, batches by length, scores in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import OptionError
from truerank.rankers.base import Pair, Runtime, Scores, rounded, write_description
from truerank.rankers.batches import length_batches, padded, restore
from truerank.rankers.pretrained import checkpoints
from truerank.work.artifacts import digest

#: Tokens in a batch on the CPU: few, because its activations should stay in the cache.
CPU_TOKENS: Final = 2048
GPU_TOKENS: Final = 1 << 16
#: On a GPU a batch may be padded by this part, because small batches leave it idle.
GPU_WASTE: Final = 0.1


class TokenRow(NamedTuple):
    """The token ids of one text or pair, and where its second part begins (its length where there is none)."""

    ids: list[int]
    second: int


class TorchRanker(ABC):
    """A ranker with a network of transformers, in full precision where it is to be trained, and a fast tokenizer.

    `settings` are what `open` takes, for saving and the fingerprint.
    """

    kind: ClassVar[str]

    def __init__(self, module: Any, tokenizer: Any, name: str, runtime: Runtime, settings: Mapping[str, Any]) -> None:
        self.device = checkpoints.device_of(runtime)
        self.runtime = runtime
        self.module = checkpoints.in_precision(module, runtime, self.device)
        self.tokenizer = tokenizer
        self._name = name
        self._settings = dict(settings)

    @property
    def name(self) -> str:
        return self._name

    @property
    def settings(self) -> Mapping[str, Any]:
        """What `open` takes beside the place."""
        return dict(self._settings)

    @property
    def fingerprint(self) -> str:
        """Hash over weights, tokenizer, settings and the arithmetic; of the weights as they are now."""
        arithmetic = (self.runtime.precision, self.device.partition(":")[0])
        return digest([self.kind, checkpoints.content_hash(self.module, self.tokenizer), self._settings, arithmetic])

    def save(self, folder: Path) -> None:
        """Writes weights, tokenizer and settings to a folder that `open_ranker` opens."""
        folder.mkdir(parents=True, exist_ok=True)
        with checkpoints.quiet():
            self.save_weights(folder)
        self.tokenizer.save_pretrained(str(folder))
        write_description(folder, self.kind, self._settings)

    def save_weights(self, folder: Path) -> None:
        self.module.save_pretrained(str(folder))

    @abstractmethod
    def score(self, pairs: Sequence[Pair]) -> Scores:
        """The score of each pair, shape (pairs,); higher is better; equal pairs have equal scores."""

    def batches(self, rows: Sequence[TokenRow]) -> list[NDArray[np.int64]]:
        """Numbers of rows that are run together."""
        lengths = np.fromiter((len(row.ids) for row in rows), np.int64, len(rows))
        if self.device == "cpu":
            return length_batches(lengths, tokens=CPU_TOKENS)
        return length_batches(lengths, tokens=GPU_TOKENS, waste=GPU_WASTE)

    def matrix(self, rows: Sequence[TokenRow]) -> tuple[Any, Any | None]:
        """Rows as tensors on the device: ids, and mask (None where nothing is padded)."""
        ids, mask = padded([row.ids for row in rows], int(self.tokenizer.pad_token_id or 0))
        tensor = checkpoints.on_device(ids, self.device)
        return tensor, None if mask.all() else checkpoints.on_device(mask, self.device)


class CrossRanker(TorchRanker):
    """A ranker that reads query and document together: each pair is one row of tokens."""

    @abstractmethod
    def rows(self, pairs: Sequence[Pair]) -> list[TokenRow]:
        """The tokens of each pair, within the model's length."""

    @abstractmethod
    def logits(self, rows: Sequence[TokenRow]) -> Any:
        """What the network says of rows of tokens, as a tensor with gradients where they are enabled.

        Rows of one length are run without a mask. Shape (rows, classes).
        """

    @abstractmethod
    def scores_of(self, logits: Any) -> Any:
        """Scores from what the network says, shape (rows,)."""

    def score(self, pairs: Sequence[Pair]) -> Scores:
        """The score of each pair, shape (pairs,); higher is better; equal pairs have equal scores."""
        # Batches follow from the set of pairs, not from their order; and no pair is scored twice.
        distinct = sorted(set(pairs))
        place = {pair: number for number, pair in enumerate(distinct)}
        found = self._score_rows(self.rows(distinct))
        return found[np.fromiter((place[pair] for pair in pairs), np.int64, len(pairs))]

    def _score_rows(self, rows: Sequence[TokenRow]) -> Scores:
        import torch

        batches = self.batches(rows)
        self.module.eval()
        values = []
        with torch.inference_mode():
            for batch in batches:
                values.append(self.scores_of(self.logits([rows[number] for number in batch])))
            return rounded(restore(batches, checkpoints.collected(values)))


def token_ids(tokenizer: Any, texts: Iterable[str]) -> dict[str, list[int]]:
    """The ids of each distinct text, without special tokens."""
    distinct = list(dict.fromkeys(texts))
    encoded = tokenizer.backend_tokenizer.encode_batch_fast(
        [checkpoints.clean(text) for text in distinct], add_special_tokens=False
    )
    return {text: one.ids for text, one in zip(distinct, encoded, strict=True)}


class DualRow(NamedTuple):
    """The tokens of the two texts of a pair."""

    query: TokenRow
    document: TokenRow


class DualRanker(TorchRanker):
    """A ranker that compares vectors of queries with vectors of documents."""

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
        documents = self._encoded(sorted({pair.document for pair in pairs}), queries=False)
        wanted: dict[str, list[str]] = {}
        for query, document in sorted(set(pairs)):
            wanted.setdefault(query, []).append(document)
        found: dict[Pair, float] = {}
        for query, texts in wanted.items():
            scores = rounded(self.compare(queries[query], [documents[text] for text in texts]))
            found.update(zip((Pair(query, text) for text in texts), scores.tolist(), strict=True))
        return np.fromiter((found[pair] for pair in pairs), np.float32, len(pairs))

    def _encoded(self, texts: Sequence[str], *, queries: bool) -> dict[str, NDArray[np.float32]]:
        return dict(zip(texts, self.all_vectors(self.text_rows(texts, queries=queries), queries=queries), strict=True))


class PairFrame(NamedTuple):
    """The special tokens around the parts of a pair; the first of those between still have the first type."""

    before: list[int]
    between: list[int]
    after: list[int]
    first_between: int

    @property
    def tokens(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)

    def row(self, query: list[int], document: list[int]) -> TokenRow:
        """The tokens of both between the special ones."""
        ids = [*self.before, *query, *self.between, *document, *self.after]
        return TokenRow(ids, len(self.before) + len(query) + self.first_between)


def pair_frame(tokenizer: Any, name: str) -> PairFrame:
    """What a tokenizer puts around a pair, seen from a pair."""
    probe = tokenizer.backend_tokenizer.encode("a", "a")
    parts = probe.sequence_ids
    if 0 not in parts or 1 not in parts:
        raise OptionError("model", f"the tokenizer of '{name}' makes no pairs", "give a cross-encoder")
    first, second = parts.index(0), parts.index(1)
    end_first = len(parts) - 1 - parts[::-1].index(0) + 1
    end_second = len(parts) - 1 - parts[::-1].index(1) + 1
    kinds = probe.type_ids[end_first:second]
    return PairFrame(probe.ids[:first], probe.ids[end_first:second], probe.ids[end_second:], kinds.count(0))


def pair_types(rows: Sequence[TokenRow], width: int) -> NDArray[np.int64]:
    """The token types of rows that are padded to a width: 1 for the second part, shape (rows, width)."""
    places = np.arange(width)[None, :]
    second = np.fromiter((row.second for row in rows), np.int64, len(rows))
    lengths = np.fromiter((len(row.ids) for row in rows), np.int64, len(rows))
    return ((places >= second[:, None]) & (places < lengths[:, None])).astype(np.int64)


def longest_input(config: Any) -> int:
    """Tokens that a model reads at most, by its configuration."""
    longest = int(getattr(config, "max_position_embeddings", 0) or 0)
    if config.model_type in ("roberta", "xlm-roberta", "camembert"):
        longest -= int(config.pad_token_id or 0) + 1
    return longest if longest > 0 else 1 << 20

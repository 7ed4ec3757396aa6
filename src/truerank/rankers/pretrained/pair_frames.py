"""Query and document as one row of tokens: the special tokens around them, their types, and how much a model reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import OptionError
from truerank.rankers.pretrained.torch_ranker import TokenRow
from truerank.vectors.encoders.tokenizing import PackedBatch, Packing, TokenIds, best_widths

#: A row has room for one pair in so many of its tokens: the last layer computes no other token than these.
_TOKENS_OF_A_PAIR: Final = 16


class PairFrame(NamedTuple):
    """The special tokens around the parts of a pair; the first of those between still have the first type."""

    before: list[int]
    between: list[int]
    after: list[int]
    first_between: int

    @property
    def tokens(self) -> int:
        """How many there are."""
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


def packed_pairs(rows: Sequence[TokenRow], padding: int | None, *, types: bool, tokens: int) -> list[PackedBatch]:
    """Pairs packed into rows of fixed widths; a pair's output is that of its first token."""
    lengths = np.fromiter((len(row.ids) for row in rows), np.int64, len(rows))
    flat = np.fromiter((token for row in rows for token in row.ids), np.int32, int(lengths.sum()))
    starts = np.cumsum(lengths) - lengths
    second = np.fromiter((row.second for row in rows), np.int64, len(rows))
    kinds = (np.arange(len(flat)) - np.repeat(starts, lengths) >= np.repeat(second, lengths)).astype(np.int64)
    packing = Packing(mean=False, skip=0, padding=padding, tokens_of_a_text=_TOKENS_OF_A_PAIR)
    widths = best_widths(lengths.tolist(), tokens_of_a_text=_TOKENS_OF_A_PAIR)
    ids = TokenIds(flat, starts, lengths)
    return packing.batches(ids, tokens=tokens, types=kinds if types else None, widths=widths)


def longest_input(config: Any) -> int:
    """Tokens that a model reads at most, by its configuration."""
    longest = int(getattr(config, "max_position_embeddings", 0) or 0)
    if config.model_type in ("roberta", "xlm-roberta", "camembert"):
        longest -= int(config.pad_token_id or 0) + 1
    return longest if longest > 0 else 1 << 20

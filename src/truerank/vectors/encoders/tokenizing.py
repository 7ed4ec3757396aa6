"""Token ids of texts, the same as sentence-transformers makes, without padding, and rows packed of several texts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError
from truerank.vectors.encoders.model_folder import ModelFolder

# Encodings carry far more than ids; they are dropped every so many texts.
_CHUNK: Final = 8192
#: What tokenizers call what they have no piece for, where the model does not say.
_UNKNOWN: Final = ("[UNK]", "<unk>")


class TokenIds(NamedTuple):
    """Token ids of a list of texts, one after the other.

    `flat` holds all ids (int32), text i's from `starts[i]` on, `lengths[i]` of them, special tokens included.
    """

    flat: NDArray[np.int32]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def batch(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ids of texts that have the same number of tokens, shape (len(rows), tokens)."""
        places = self.starts[rows][:, None] + np.arange(self.lengths[rows[0]])
        return self.flat[places].astype(np.int64)


class TextTokenizer:
    """Makes token ids with a tokenizer of the library `tokenizers`, after a prompt.

    Padding is switched off and the tokenizer's own truncation is replaced by the model's: the packaged tokenizer.json
    pads and cuts to 128, which sentence-transformers overrides too.

    Args:
        tokenizer: changed here.
        max_tokens: texts are cut to this many tokens; None for any number.
        side: the end at which they are cut.
    """

    def __init__(self, tokenizer: Any, max_tokens: int | None, side: str = "right", prompt: str = "") -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if max_tokens is not None:
            tokenizer.enable_truncation(max_length=max_tokens, direction=side)
        self._tokenizer = tokenizer
        self._prompt = prompt

    @classmethod
    def of(cls, model: ModelFolder) -> TextTokenizer:
        """The tokenizer of a model folder."""
        return cls(_open(model), model.max_tokens, model.truncation_side, model.prompt)

    @property
    def definition(self) -> str:
        """Everything that decides about the ids, as one string, for fingerprints."""
        return f"{self._tokenizer.to_str()}\n{self._prompt}"

    @property
    def prompt_tokens(self) -> int:
        """How many tokens the prompt takes at the beginning of a text, an opening special token included."""
        if not self._prompt:
            return 0
        encoding = self._tokenizer.encode(self._prompt)
        closing = bool(encoding.special_tokens_mask and encoding.special_tokens_mask[-1])
        return len(encoding.ids) - int(closing)

    def ids(self, texts: Sequence[str]) -> TokenIds:
        """Token ids of texts, an empty text included (its special tokens)."""
        parts: list[NDArray[np.int32]] = []
        lengths: list[int] = []
        for start in range(0, len(texts), _CHUNK):
            chunk = [self._prompt + text for text in texts[start : start + _CHUNK]]
            encoded = [encoding.ids for encoding in self._encode(chunk)]
            sizes = [len(ids) for ids in encoded]
            lengths.extend(sizes)
            parts.append(np.fromiter(chain.from_iterable(encoded), dtype=np.int32, count=sum(sizes)))
        counts = np.array(lengths, dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]) if lengths else counts
        return TokenIds(np.concatenate(parts) if parts else np.empty(0, np.int32), starts.astype(np.int64), counts)

    def pieces(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """How many tokens each text has, up to the length that the model reads and without special ones, and how many
        of them are unknown."""
        ids = self.ids(["", *texts])
        return list(zip((ids.lengths[1:] - ids.lengths[0]).tolist(), self.unknown(ids)[1:].tolist(), strict=True))

    def unknown(self, ids: TokenIds) -> NDArray[np.int64]:
        """How many tokens of each text stand for something that the vocabulary lacks, shape (texts,)."""
        names = (getattr(self._tokenizer.model, "unk_token", None), *_UNKNOWN)
        number = next((at for name in names if name and (at := self._tokenizer.token_to_id(name)) is not None), -1)
        counted = np.concatenate(([0], np.cumsum(ids.flat == number)))
        found: NDArray[np.int64] = counted[ids.starts + ids.lengths] - counted[ids.starts]
        return found

    def _encode(self, texts: list[str]) -> list[Any]:
        try:
            return list(self._tokenizer.encode_batch_fast(texts))
        except (TypeError, UnicodeEncodeError):
            # Half a surrogate pair is not a character: Python can hold one, UTF-8 cannot.
            whole = [text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for text in texts]
            return list(self._tokenizer.encode_batch_fast(whole))


def _open(model: ModelFolder) -> Any:
    from tokenizers import Tokenizer, normalizers

    file = model.tokenizer_file
    if not file.is_file():
        raise InputError(
            "no tokenizer.json here", "use --backend torch, which can read the older files", where=file.parent
        )
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"not a tokenizer ({error})", "fetch the model again", where=file) from error
    if model.lower_case and not _lowers(tokenizer.normalizer, normalizers):
        present = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *present])
    return tokenizer


def _lowers(normalizer: Any, kinds: Any) -> bool:
    if isinstance(normalizer, kinds.Sequence):
        return any(isinstance(part, kinds.Lowercase) for part in normalizer)
    return isinstance(normalizer, kinds.Lowercase)


#: Tokens of a row. Wider ones cost more in attention, whose work grows with the width.
WIDTHS: Final = (64, 128, 256, 512)
#: A row has room for one text in so many of its tokens.
_TOKENS_OF_A_TEXT: Final = 4


class PackedBatch(NamedTuple):
    """Rows of one width.

    `tokens` [rows, 3, width], int64: token ids, positions, and the number of the text in its row (each place that holds
    no token has a number of its own). `pooling` [rows, texts, width],
    float32: the weight of each token in its text's vector. `texts` [rows, texts]: which text it is, -1 for none.
    """

    tokens: NDArray[np.int64]
    pooling: NDArray[np.float32]
    texts: NDArray[np.int64]


@dataclass(frozen=True)
class Packing:
    """How a model reads rows of several texts.

    Attributes:
        mean: a text's vector is the mean of its tokens'; else its first token's.
        skip: that many tokens at the beginning of a text (a prompt's) take no part in the mean.
        padding: the id of the padding token where positions are counted after it (RoBERTa, MPNet); None where they are
            counted from 0.
    """

    mean: bool
    skip: int
    padding: int | None

    def batches(self, ids: TokenIds, *, tokens: int) -> list[PackedBatch]:
        """Rows of texts, the widest first; they depend on the texts and their order alone."""
        positions = self._positions(ids)
        rows = fill_rows(ids.lengths.tolist())
        found: list[PackedBatch] = []
        start = 0
        while start < len(rows):
            width = rows[start][0]
            same = next((place for place in range(start, len(rows)) if rows[place][0] != width), len(rows)) - start
            # What is left over goes in batches of halved sizes, so that all batches have a few shapes.
            size = max(1, tokens // width)
            while size > same:
                size //= 2
            found.append(self._batch([texts for _, texts in rows[start : start + size]], width, ids, positions))
            start += size
        return found

    def _positions(self, ids: TokenIds) -> NDArray[np.int64]:
        """The row of the table of positions that each token takes."""
        begin = np.repeat(ids.starts, ids.lengths)
        if self.padding is None:
            return np.arange(len(ids.flat)) - begin
        real = ids.flat != self.padding
        before = np.concatenate([[0], np.cumsum(real)])
        counted: NDArray[np.int64] = np.where(real, before[1:] - before[begin], 0) + self.padding
        return counted

    def _batch(
        self, rows: Sequence[Sequence[int]], width: int, ids: TokenIds, positions: NDArray[np.int64]
    ) -> PackedBatch:
        tokens = np.zeros((len(rows), 3, width), np.int64)
        tokens[:, 2] = -1 - np.arange(width)
        texts = np.full((len(rows), width // _TOKENS_OF_A_TEXT), -1, np.int64)
        pooling = np.zeros((*texts.shape, width), np.float32)
        for row, members in enumerate(rows):
            place = 0
            for slot, text in enumerate(members):
                start, length = int(ids.starts[text]), int(ids.lengths[text])
                here = slice(place, place + length)
                tokens[row, 0, here] = ids.flat[start : start + length]
                tokens[row, 1, here] = positions[start : start + length]
                tokens[row, 2, here] = slot
                kept = length - self.skip if self.mean else 1
                pooling[row, slot, place + (self.skip if self.mean else 0) :][:kept] = 1 / max(1, kept)
                texts[row, slot] = text
                place += length
        return PackedBatch(tokens, pooling, texts)


def fill_rows(lengths: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Fills rows with texts: the longest text that is left, then always the longest that still has room.

    A row takes the smallest of `WIDTHS` that holds its longest text.
    """
    waiting: dict[int, list[int]] = {}
    for number in range(len(lengths) - 1, -1, -1):
        waiting.setdefault(lengths[number], []).append(number)
    left = sorted(waiting)
    rows = []
    while left:
        width = next(width for width in WIDTHS if width >= left[-1])
        room, members = width, list[int]()
        while len(members) < width // _TOKENS_OF_A_TEXT and (place := bisect_right(left, room)):
            length = left[place - 1]
            members.append(waiting[length].pop())
            room -= length
            if not waiting[length]:
                del left[place - 1]
        rows.append((width, members))
    return rows

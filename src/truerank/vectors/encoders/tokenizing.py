"""Token ids of texts, the same as sentence-transformers makes, without padding."""

from __future__ import annotations

from collections.abc import Sequence
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
    """The tokenizer of a model folder.

    Padding is switched off and the file's own truncation is replaced by the model's: the packaged tokenizer.json pads
    and cuts to 128, which sentence-transformers overrides too.

    Args:
        model: the folder.
    """

    def __init__(self, model: ModelFolder) -> None:
        self._tokenizer = _open(model)
        self._prompt = model.prompt

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
            # Half a surrogate pair is no character: Python can hold one, UTF-8 cannot.
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
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=model.max_tokens, direction=model.truncation_side)
    if model.lower_case and not _lowers(tokenizer.normalizer, normalizers):
        present = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *present])
    return tokenizer


def _lowers(normalizer: Any, kinds: Any) -> bool:
    if isinstance(normalizer, kinds.Sequence):
        return any(isinstance(part, kinds.Lowercase) for part in normalizer)
    return isinstance(normalizer, kinds.Lowercase)

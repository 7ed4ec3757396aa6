"""ColBERT: a vector for each token, and for each token of the query its best match in the document."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.rankers.base import Runtime
from truerank.rankers.batches import padded
from truerank.rankers.pretrained.checkpoints import Checkpoint, neural, on_device, seeded, without_pooler
from truerank.rankers.pretrained.torch_ranker import DualRanker, TokenRow, token_ids
from truerank.work.artifacts import write_text

_LINEAR: Final = "linear.weight"
#: How ColBERT's checkpoints mark queries and documents, where they do not say so themselves.
_MARKERS: Final = ("[unused0]", "[unused1]")


class ColBert(DualRanker):
    """Late interaction: the sum, over the query's tokens, of the largest cosine with a token of the document.

    Queries are filled with [MASK] up to their length; these tokens are not attended to, but they are matched. The
    punctuation of documents is read, but not matched.

    Source: Khattab and Zaharia (2020), sections 3.2 and 3.3.
    """

    kind: ClassVar[str] = "colbert"
    #: The checkpoint of the survivorship paper (section 2).
    default_model: ClassVar[str] = "colbert-ir/colbertv2.0"

    def __init__(self, module: Any, tokenizer: Any, name: str, runtime: Runtime, settings: dict[str, Any]) -> None:
        super().__init__(module, tokenizer, name, runtime, settings)
        self._markers = [_special(tokenizer, settings[f"{part}_marker"], name) for part in ("query", "document")]
        self._first = _special(tokenizer, tokenizer.cls_token, name)
        self._last = _special(tokenizer, tokenizer.sep_token, name)
        self._mask = _special(tokenizer, tokenizer.mask_token, name)
        signs = token_ids(tokenizer, string.punctuation)
        self._signs = np.array(sorted({number for ids in signs.values() for number in ids}), np.int64)

    @classmethod
    def open(
        cls,
        place: str,
        runtime: Runtime = Runtime(),
        *,
        query_tokens: int = 32,
        document_tokens: int = 180,
        query_marker: str | None = None,
        document_marker: str | None = None,
        dimension: int = 0,
        seed: int = 0,
    ) -> Self:
        """Opens a checkpoint: an encoder and `linear.weight`."""
        if int(query_tokens) < 4 or int(document_tokens) < 4:
            fault = f"{query_tokens} and {document_tokens} tokens"
            raise InputError(fault, "give 4 or more", where="query_tokens, document_tokens")
        checkpoint = Checkpoint(place)
        weight = checkpoint.tensors((_LINEAR,)).get(_LINEAR)
        if weight is None and not int(dimension):
            remedy = "give a ColBERT checkpoint, or dimension=128 to train a new one"
            raise OptionError("model", f"'{checkpoint.name}' has no {_LINEAR}", remedy)
        encoder = without_pooler(checkpoint.module("AutoModel"))
        if weight is None:
            weight = _drawn(int(encoder.config.hidden_size), int(dimension), int(seed))
        longest = int(encoder.config.max_position_embeddings)
        if max(int(query_tokens), int(document_tokens)) > longest:
            raise InputError(f"the model reads {longest} tokens", "give no more", where="document_tokens")
        written: Mapping[str, Any] = checkpoint.json("artifact.metadata") or {}
        settings = {
            "query_tokens": int(query_tokens),
            "document_tokens": int(document_tokens),
            "query_marker": query_marker or str(written.get("query_token_id") or _MARKERS[0]),
            "document_marker": document_marker or str(written.get("doc_token_id") or _MARKERS[1]),
        }
        return cls(_network(encoder, weight), checkpoint.tokenizer(), checkpoint.name, runtime, settings)

    def save_weights(self, folder: Path) -> None:
        """Writes encoder and linear layer into one file, as ColBERT's checkpoints have them."""
        from safetensors.torch import save_file

        state = {name: tensor.contiguous() for name, tensor in self.module.encoder.state_dict().items()}
        prefixed = {f"{self.module.encoder.base_model_prefix}.{name}": tensor for name, tensor in state.items()}
        save_file({**prefixed, _LINEAR: self.module.linear.weight.contiguous()}, folder / "model.safetensors")
        config = self.module.encoder.config
        config.architectures = ["HF_ColBERT"]
        config.save_pretrained(str(folder))
        markers = {"query_token_id": self.settings["query_marker"], "doc_token_id": self.settings["document_marker"]}
        write_text(folder / "artifact.metadata", json.dumps(markers) + "\n")

    def text_rows(self, texts: Sequence[str], *, queries: bool) -> list[TokenRow]:
        """The tokens of each text; a query's row has its full length, and `second` says where the filling begins."""
        limit = int(self.settings["query_tokens" if queries else "document_tokens"])
        marker = self._markers[0 if queries else 1]
        ids = token_ids(self.tokenizer, texts)
        rows = []
        for text in texts:
            own = [self._first, marker, *ids[text][: limit - 3], self._last]
            filling = [self._mask] * (limit - len(own)) if queries else []
            rows.append(TokenRow([*own, *filling], len(own)))
        return rows

    def encode(self, rows: Sequence[TokenRow], *, queries: bool) -> Any:
        """Unit vectors, shape (rows, tokens, dimension), and which of them are matched, shape (rows, tokens)."""
        ids, mask = padded([row.ids for row in rows], int(self.tokenizer.pad_token_id or 0))
        seen = np.arange(ids.shape[1])[None, :] < np.array([row.second for row in rows])[:, None]
        made = self.module(on_device(ids, self.device), on_device(seen.astype(np.int64), self.device))
        matched = mask.astype(bool) if queries else seen & ~np.isin(ids, self._signs)
        return made.float(), matched

    def vectors(self, rows: Sequence[TokenRow], *, queries: bool) -> list[NDArray[np.float32]]:
        """The unit vectors of each text, shape (tokens matched, dimension)."""
        made, matched = self.encode(rows, queries=queries)
        return [value[chosen] for value, chosen in zip(made.cpu().numpy(), matched, strict=True)]

    def matches(self, queries: Any, documents: Any) -> Any:
        """Sums of the largest cosines, shape (n,); all tokens of a query are matched."""
        import torch

        (asked, _), (held, matched) = queries, documents
        cosines = asked @ held.transpose(1, 2)
        others = on_device(~matched, self.device)[:, None, :]
        return cosines.masked_fill(others, -torch.inf).amax(dim=2).sum(dim=1)

    def compare(self, query: NDArray[np.float32], documents: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Sums of the largest cosines, shape (documents,)."""
        starts = np.cumsum([0, *(len(document) for document in documents[:-1])])
        cosines = np.concatenate(documents) @ query.T
        # [CLS] and [SEP] are matched always, so that no document is without a token.
        best: NDArray[np.float32] = np.maximum.reduceat(cosines, starts, axis=0)
        sums: NDArray[np.float32] = best.sum(axis=1, dtype=np.float64).astype(np.float32)
        return sums


def _network(encoder: Any, weight: Any) -> Any:
    neural()
    import torch

    class Network(torch.nn.Module):  # type: ignore[misc]
        """An encoder, a linear layer without bias, unit length."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder
            self.linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
            self.linear.load_state_dict({"weight": weight})

        def forward(self, ids: Any, mask: Any) -> Any:
            hidden = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
            return torch.nn.functional.normalize(self.linear(hidden), dim=2)

    return Network()


def _drawn(inputs: int, outputs: int, seed: int) -> Any:
    neural()
    import torch

    with seeded(seed):
        return torch.nn.Linear(inputs, outputs, bias=False).weight.detach()


def _special(tokenizer: Any, token: str | None, name: str) -> int:
    number = None if token is None else tokenizer.convert_tokens_to_ids(token)
    if number is None or (number == tokenizer.unk_token_id and token != tokenizer.unk_token):
        raise OptionError("model", f"the vocabulary of '{name}' lacks '{token}'", "give a ColBERT checkpoint")
    return int(number)

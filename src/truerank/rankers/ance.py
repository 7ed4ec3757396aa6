"""ANCE and other bi-encoders: one vector for a query, one for a document, their dot product."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError, needed_for
from truerank.rankers.base import Runtime, write_description
from truerank.rankers.batches import padded
from truerank.rankers.pretrained.checkpoints import Checkpoint, clean, on_device, quiet, seeded, without_pooler
from truerank.rankers.pretrained.torch_ranker import DualRanker, TokenRow

#: The head of checkpoints that are not laid out for sentence-transformers.
_HEAD: Final = ("embeddingHead.weight", "embeddingHead.bias", "norm.weight", "norm.bias")


class Ance(DualRanker):
    """A bi-encoder as sentence-transformers lays it out; ANCE's is first token → linear → layer norm.

    Source: Xiong et al. (2021), section 4; model as in Luan et al. (2021).
    """

    kind: ClassVar[str] = "ance"
    #: The checkpoint of the survivorship paper (section 2).
    default_model: ClassVar[str] = "sentence-transformers/msmarco-roberta-base-ance-firstp"

    @classmethod
    def open(
        cls,
        place: str,
        runtime: Runtime = Runtime(),
        *,
        query_tokens: int = 64,
        document_tokens: int = 512,
        similarity: str = "dot",
        dimension: int = 0,
        seed: int = 0,
    ) -> Self:
        if similarity not in ("dot", "cosine"):
            raise InputError(f"no similarity '{similarity}'", "choose dot or cosine", where="similarity")
        checkpoint = Checkpoint(place)
        module = checkpoint.load(lambda _: _model(checkpoint, int(dimension), int(seed)))
        tokenizer = checkpoint.tokenizer()
        longest = int(getattr(module[0].auto_model.config, "max_position_embeddings", 1 << 20))
        for what, given in (("query_tokens", query_tokens), ("document_tokens", document_tokens)):
            if not 4 <= int(given) <= longest:
                raise InputError(f"{given} tokens, and the model reads {longest}", f"give 4 to {longest}", where=what)
        settings = {
            "query_tokens": int(query_tokens),
            "document_tokens": int(document_tokens),
            "similarity": similarity,
        }
        without_pooler(module[0].auto_model)
        return cls(module, tokenizer, checkpoint.name, runtime, settings)

    def save(self, folder: Path) -> None:
        """Writes a folder that sentence-transformers reads too."""
        folder.mkdir(parents=True, exist_ok=True)
        with quiet():
            self.module.save(str(folder), create_model_card=False)
        write_description(folder, self.kind, self.settings)

    def text_rows(self, texts: Sequence[str], *, queries: bool) -> list[TokenRow]:
        """The tokens of each text within its length, special tokens included."""
        limit = int(self.settings["query_tokens" if queries else "document_tokens"])
        backend = self.tokenizer.backend_tokenizer
        backend.enable_truncation(limit)
        try:
            encoded = backend.encode_batch_fast([clean(text) for text in texts])
        finally:
            backend.no_truncation()
        return [TokenRow(one.ids, len(one.ids)) for one in encoded]

    def encode(self, rows: Sequence[TokenRow], *, queries: bool) -> Any:
        """The vectors as a tensor, shape (rows, dimension)."""
        import torch

        ids, mask = padded([row.ids for row in rows], int(self.tokenizer.pad_token_id or 0))
        given = {"input_ids": on_device(ids, self.device), "attention_mask": on_device(mask, self.device)}
        made = self.module(given)["sentence_embedding"]
        if self.settings["similarity"] == "cosine":
            made = torch.nn.functional.normalize(made.float(), dim=1)
        return made.float()

    def vectors(self, rows: Sequence[TokenRow], *, queries: bool) -> list[NDArray[np.float32]]:
        """The vector of each text, shape (dimension,)."""
        return list(self.encode(rows, queries=queries).cpu().numpy())

    def matches(self, queries: Any, documents: Any) -> Any:
        return (queries * documents).sum(dim=1)

    def compare(self, query: NDArray[np.float32], documents: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        # Each sum by itself: a product of matrices would depend on how many documents there are.
        products: NDArray[np.float64] = np.stack(documents).astype(np.float64) * query
        sums: NDArray[np.float32] = products.sum(axis=1).astype(np.float32)
        return sums


def _model(checkpoint: Checkpoint, dimension: int, seed: int) -> Any:
    with needed_for("a bi-encoder", "neural"):
        from sentence_transformers import SentenceTransformer
    if checkpoint.json("modules.json") is not None:
        return SentenceTransformer(checkpoint.place, device="cpu").float()
    from sentence_transformers.sentence_transformer import modules
    from torch.nn import Identity

    head = checkpoint.tensors(_HEAD)
    whole = len(head) == len(_HEAD)
    if not whole and not dimension:
        fault = f"'{checkpoint.name}' has neither modules.json nor ANCE's head"
        remedy = "give a sentence-transformers model, or dimension=768 to train a new head"
        raise OptionError("model", fault, remedy)
    encoder = modules.Transformer(checkpoint.place)
    inputs = int(encoder.auto_model.config.hidden_size)
    outputs = len(head["norm.weight"]) if whole else dimension
    with seeded(seed):
        linear = modules.Dense(inputs, outputs, activation_function=Identity())
    norm = modules.LayerNorm(outputs)
    if whole:
        linear.linear.load_state_dict({"weight": head["embeddingHead.weight"], "bias": head["embeddingHead.bias"]})
        norm.norm.load_state_dict({"weight": head["norm.weight"], "bias": head["norm.bias"]})
    parts = [encoder, modules.Pooling(inputs, "cls"), linear, norm]
    return SentenceTransformer(modules=parts, device="cpu").float()

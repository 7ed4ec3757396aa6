"""monoBERT and other cross-encoders: query and document as one text, a class or a number as the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

from truerank.errors import InputError, OptionError
from truerank.rankers.base import Pair, Runtime
from truerank.rankers.pretrained.checkpoints import Checkpoint, on_device, seeded
from truerank.rankers.pretrained.torch_ranker import (
    CrossRanker,
    TokenRow,
    longest_input,
    pair_frame,
    pair_types,
    token_ids,
)

_CLASSIFIER: Final = "AutoModelForSequenceClassification"
#: Families whose layers are built alike, and whose heads read the first token.
_FAMILIES: Final = ("bert", "electra", "roberta", "xlm-roberta", "camembert")


class MonoBert(CrossRanker):
    """A cross-encoder over `[CLS] query [SEP] document [SEP]`, with the checkpoint's own special tokens.

    Only the document is cut; a query that alone is too long is cut to the model's length. A checkpoint with two classes
    scores by the log-probability of the second, one with a single output by that output.

    Source: Nogueira, Yang, Cho, Lin (2019), section 3.
    """

    kind: ClassVar[str] = "monobert"
    #: The checkpoint of the survivorship paper (section 2).
    default_model: ClassVar[str] = "castorini/monobert-large-msmarco"

    def __init__(self, module: Any, tokenizer: Any, name: str, runtime: Runtime, settings: dict[str, Any]) -> None:
        super().__init__(module, tokenizer, name, runtime, settings)
        _shorten_last_layer(module)
        self._frame = pair_frame(tokenizer, name)
        self._types = int(getattr(module.config, "type_vocab_size", 0) or 0)

    @classmethod
    def open(
        cls, place: str, runtime: Runtime = Runtime(), *, max_tokens: int = 512, labels: int = 2, seed: int = 0
    ) -> Self:
        """Opens a checkpoint; an encoder without a head gets one, drawn from the seed, to be trained."""
        checkpoint = Checkpoint(place)
        config = checkpoint.config()
        headed = any("ForSequenceClassification" in name for name in config.architectures or ())
        outputs = int(config.num_labels) if headed else int(labels)
        if outputs not in (1, 2):
            fault = f"'{checkpoint.name}' has {outputs} outputs"
            raise OptionError("model", fault, "give a cross-encoder with one or two")
        longest = longest_input(config)
        if not 8 <= int(max_tokens) <= longest:
            fault = f"{max_tokens} tokens, and '{checkpoint.name}' reads {longest}"
            raise InputError(fault, f"give 8 to {longest}", where="max_tokens")
        with seeded(int(seed)):
            module = checkpoint.module(_CLASSIFIER, num_labels=outputs)
        settings = {"max_tokens": int(max_tokens)} | ({} if headed else {"labels": outputs, "seed": int(seed)})
        return cls(module, checkpoint.tokenizer(), checkpoint.name, runtime, settings)

    def rows(self, pairs: Sequence[Pair]) -> list[TokenRow]:
        """The tokens of each pair; the document is cut."""
        room = int(self.settings["max_tokens"]) - self._frame.tokens
        queries = token_ids(self.tokenizer, (pair.query for pair in pairs))
        documents = token_ids(self.tokenizer, (pair.document for pair in pairs))
        rows = []
        for pair in pairs:
            query = queries[pair.query][:room]
            rows.append(self._frame.row(query, documents[pair.document][: room - len(query)]))
        return rows

    def logits(self, rows: Sequence[TokenRow]) -> Any:
        """The outputs of the head, shape (rows, 1 or 2)."""
        ids, mask = self.matrix(rows)
        types = on_device(pair_types(rows, ids.shape[1]), self.device) if self._types > 1 else None
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        return self.module(**{name: value for name, value in given.items() if value is not None}).logits

    def scores_of(self, logits: Any) -> Any:
        """The log-probability of the second class, or the only output."""
        import torch

        values = logits.float()
        return values[:, 0] if values.shape[1] == 1 else torch.log_softmax(values, dim=1)[:, 1]


def _shorten_last_layer(module: Any) -> None:
    """Makes the last layer compute the first token only, while the model is not in training."""
    if module.config.model_type not in _FAMILIES or getattr(module.config, "is_decoder", False):
        return
    last = module.base_model.encoder.layer[-1]
    plain = last.forward

    def forward(hidden: Any, attention_mask: Any | None = None, *arguments: Any, **options: Any) -> Any:
        if last.training:
            return plain(hidden, attention_mask, *arguments, **options)
        return _run_layer(last, hidden[:, :1], hidden, None if attention_mask is None else attention_mask[:, :, :1])

    last.forward = forward


def _run_layer(layer: Any, wanted: Any, hidden: Any, mask: Any | None) -> Any:
    """What a layer makes of the wanted tokens, which attend to all of them; shape as `wanted`."""
    from torch.nn.functional import scaled_dot_product_attention

    attention = layer.attention.self
    rows, size = hidden.shape[0], attention.attention_head_size

    def by_head(values: Any) -> Any:
        return values.view(rows, -1, attention.num_attention_heads, size).transpose(1, 2)

    mixed = scaled_dot_product_attention(
        by_head(attention.query(wanted)),
        by_head(attention.key(hidden)),
        by_head(attention.value(hidden)),
        attn_mask=mask,
        scale=size**-0.5,
    )
    together = mixed.transpose(1, 2).flatten(2)
    return layer.feed_forward_chunk(layer.attention.output(together, wanted))

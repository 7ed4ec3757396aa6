"""Encoders of which only the first token's vector is used: the last layer computes no other.

Of a layer's twelve parts of work only the keys and values are needed of all tokens; of a model with six layers that
saves an eighth, and not a digit changes but by rounding.
"""

from __future__ import annotations

from typing import Any, Final

#: Families whose layers are built alike, and whose heads read the first token.
FAMILIES: Final = ("bert", "electra", "roberta", "xlm-roberta", "camembert")
#: Added to the score of a token of another text: its share becomes 0.
_APART: Final = -1e9


def run_encoder(module: Any, ids: Any, mask: Any | None, types: Any | None) -> Any:
    """The outputs of a classifier.

    Args:
        ids: token ids, shape (rows, tokens).
        mask: 1 for tokens, 0 for padding, the same shape; None where nothing is padded.
        types: token types, the same shape; None where the model has none.
    """
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return module(**{name: value for name, value in given.items() if value is not None}).logits


def shorten_last_layer(module: Any) -> bool:
    """Makes the last layer compute the first token only, while the model is not in training."""
    if module.config.model_type not in FAMILIES or getattr(module.config, "is_decoder", False):
        return False
    last = module.base_model.encoder.layer[-1]
    plain = last.forward

    def forward(hidden: Any, attention_mask: Any | None = None, *arguments: Any, **options: Any) -> Any:
        if last.training:
            return plain(hidden, attention_mask, *arguments, **options)
        return _first_token(last, hidden, attention_mask)

    last.forward = forward
    return True


def run_packed(module: Any, tokens: Any, pooling: Any) -> Any:
    """The outputs of a classifier for rows of several texts each, as `vectors.encoders.packing` makes them.

    Args:
        tokens: ids, positions, numbers of texts, and token types where the model reads them, shape (rows, 3 or 4,
            width).
        pooling: 1 for the first token of each text, shape (rows, texts, width).

    Returns:
        Shape (rows, texts, outputs).
    """
    base = module.base_model
    given = {"input_ids": tokens[:, 0], "position_ids": tokens[:, 1], "token_type_ids": tokens[:, 3:].sum(dim=1)}
    hidden = base.embeddings(**given)
    if hasattr(base, "embeddings_project"):
        hidden = base.embeddings_project(hidden)
    apart = (tokens[:, 2, :, None] != tokens[:, 2, None, :]).to(hidden.dtype) * _APART
    *layers, last = base.encoder.layer
    for layer in layers:
        hidden = _run_layer(layer, hidden, hidden, apart[:, None])
    firsts = _run_layer(last, pooling @ hidden, hidden, (pooling @ apart)[:, None])
    rows, texts, size = firsts.shape
    each = firsts.reshape(rows * texts, 1, size)
    pooler = getattr(base, "pooler", None)
    outputs = module.classifier(each if pooler is None else pooler(each))
    return outputs.reshape(rows, texts, -1)


def _first_token(layer: Any, hidden: Any, mask: Any | None) -> Any:
    return _run_layer(layer, hidden[:, :1], hidden, None if mask is None else mask[:, :, :1])


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

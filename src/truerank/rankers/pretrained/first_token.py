"""Encoders of which only the first token's vector is used: the last layer computes no other.

Of a layer's twelve parts of work only the keys and values are needed of all tokens; of a model with six layers that
saves an eighth, and not a digit changes but by rounding.
"""

from __future__ import annotations

from typing import Any, Final

#: Families whose layers are built alike, and whose heads read the first token.
FAMILIES: Final = ("bert", "electra", "roberta", "xlm-roberta", "camembert")


def run_encoder(module: Any, ids: Any, mask: Any | None, types: Any | None) -> Any:
    """The outputs of a classifier.

    Args:
        module: of transformers.
        ids: token ids, shape (rows, tokens).
        mask: 1 for tokens, 0 for padding, the same shape; None where nothing is padded.
        types: token types, the same shape; None where the model has none.
    """
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return module(**{name: value for name, value in given.items() if value is not None}).logits


def shorten_last_layer(module: Any) -> bool:
    """Makes the last layer compute the first token only, while the model is not in training.

    Args:
        module: a classifier of transformers; its weights and what is saved of it stay as they are.

    Returns:
        Whether the model is of a family for which this is known to be right.
    """
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


def _first_token(layer: Any, hidden: Any, mask: Any | None) -> Any:
    from torch.nn.functional import scaled_dot_product_attention

    attention = layer.attention.self
    rows, size = hidden.shape[0], attention.attention_head_size
    first = hidden[:, :1]

    def by_head(values: Any) -> Any:
        return values.view(rows, -1, attention.num_attention_heads, size).transpose(1, 2)

    mixed = scaled_dot_product_attention(
        by_head(attention.query(first)),
        by_head(attention.key(hidden)),
        by_head(attention.value(hidden)),
        attn_mask=None if mask is None else mask[:, :, :1],
        scale=size**-0.5,
    )
    together = mixed.transpose(1, 2).reshape(rows, 1, -1)
    return layer.feed_forward_chunk(layer.attention.output(together, first))

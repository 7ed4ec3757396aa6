"""Encoders: texts in, unit vectors out."""

from truerank.vectors.encoders.base import Backend, Encoder, EncoderSpec, Precision, Vectors
from truerank.vectors.encoders.cache import CachedEncoder
from truerank.vectors.encoders.opening import DEFAULT_MODEL, open_encoder, open_spec

__all__ = [
    "DEFAULT_MODEL", "Backend", "CachedEncoder", "Encoder", "EncoderSpec", "Precision", "Vectors", "open_encoder",
    "open_spec",
]  # fmt: skip

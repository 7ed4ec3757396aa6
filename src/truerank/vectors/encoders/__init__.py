"""Encoders: texts in, unit vectors out."""

from truerank.vectors.encoders.base import Backend, Encoder, EncoderSpec, Precision, Vectors, WordsOnly
from truerank.vectors.encoders.cache import CachedEncoder
from truerank.vectors.encoders.model_folder import PACKAGED
from truerank.vectors.encoders.opening import DEFAULT_MODEL, WORDS, chosen, open_encoder, open_spec, packaged_or_words

__all__ = [
    "DEFAULT_MODEL", "PACKAGED", "WORDS", "Backend", "CachedEncoder", "Encoder", "EncoderSpec", "Precision", "Vectors",
    "WordsOnly", "chosen", "open_encoder", "open_spec", "packaged_or_words",
]  # fmt: skip

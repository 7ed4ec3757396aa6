"""What all encoders that truerank opens have in common: who they are, and how another process opens them again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from truerank.vectors.encoders.base import EncoderSpec, Vectors


class OpenedEncoder(ABC):
    """An encoder with its name, its fingerprint and the spec that opens it anew; `opening` lets only the spec travel.

    Args:
        spec: how this encoder was asked for.
        name: the model as a user would name it.
        dimension: length of a vector.
        fingerprint: hash over all that decides about the vectors.
    """

    def __init__(self, spec: EncoderSpec, *, name: str, dimension: int, fingerprint: str) -> None:
        self._spec = spec
        self._name = name
        self._dimension = dimension
        self._fingerprint = fingerprint

    @property
    def name(self) -> str:
        """The model as a user would name it."""
        return self._name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    @property
    def precision(self) -> str:
        """Arithmetic of the forward pass."""
        return self._spec.precision

    @property
    def fingerprint(self) -> str:
        """Hash over weights, tokenizer, pooling, runtime and precision."""
        return self._fingerprint

    @property
    def spec(self) -> EncoderSpec:
        """How to open this encoder again, in another process."""
        return self._spec

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts, shape (len(texts), dimension), float32."""
        if not len(texts):
            return np.empty((0, self._dimension), dtype=np.float32)
        return self._encode(texts)

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> Vectors:
        """As `encode`, for at least one text."""

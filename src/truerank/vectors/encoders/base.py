"""What an encoder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into unit vectors, so that a dot product is a cosine.

    The same list of texts gives the same bytes: batches depend on the list alone. Anything with these members is an
    encoder; `open_encoder` opens those that truerank brings.
    """

    @property
    def name(self) -> str:
        """The model as a user would name it; a threshold is calibrated for this name."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    @property
    def precision(self) -> str:
        """Arithmetic of the forward pass: "fp32", "fp16", "bf16", "bf16x3", "int8"."""

    @property
    def fingerprint(self) -> str:
        """Hash over weights, tokenizer, pooling, backend and precision: equal fingerprints, equal vectors."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts, shape (len(texts), dimension), float32."""

"""An encoder: the counts of letters, as a unit vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.vectors.encoders import EncoderSpec, Vectors


class Letters:
    dimension = 26
    precision = "fp32"

    def __init__(self, name: str) -> None:
        self.name = self.fingerprint = name

    @classmethod
    def open(cls, place: str, spec: EncoderSpec) -> Letters:
        return cls(f"letters {place}")

    def encode(self, texts: Sequence[str]) -> Vectors:
        counts = np.array([[text.lower().count(chr(97 + letter)) for letter in range(26)] for text in texts], float)
        counts = counts.reshape(-1, 26)
        return (counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)).astype(np.float32)

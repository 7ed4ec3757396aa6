"""A small real encoder for tests: hashed character trigrams under a fixed random projection, with or without noise."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.vectors.encoders.base import Vectors


@functools.cache
def _direction(text: str, dimension: int) -> Vectors:
    seed = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
    return np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)


@functools.cache
def _counted(text: str, dimension: int, noise: float) -> Vectors:
    """Tests encode the same texts again and again."""
    vector, padded = np.zeros(dimension, np.float32), f"  {text.lower()} "
    for start in range(len(padded) - 2):
        vector += _direction(padded[start : start + 3], dimension)
    if noise:
        error = _direction(text, dimension)
        vector += noise * np.linalg.norm(vector) * error / np.linalg.norm(error)
    return vector


@dataclass(frozen=True)
class TrigramEncoder:
    """Unit vectors of trigram counts; `noise` is the largest error of a cosine that it is meant to show."""

    dimension: int = 256
    noise: float = 0.0
    name: str = "trigrams"
    precision: str = "fp32"

    @property
    def fingerprint(self) -> str:
        return f"{self.name}-{self.dimension}-{self.noise}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = _counted(text, self.dimension, self.noise)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(norms == 0, 1, norms)


@dataclass(frozen=True)
class Opener:
    """Opens the encoder in any process."""

    noise: float = 0.0

    def __call__(self) -> TrigramEncoder:
        return TrigramEncoder(noise=self.noise)

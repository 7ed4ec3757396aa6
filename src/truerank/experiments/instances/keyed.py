"""Choosing by keyed hashes: the same choice for the same seed, whatever else is in the stream."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Keyed"]


class Keyed:
    """Turns texts into pseudo-random numbers that depend on the seed and on what they are drawn for.

    A choice by the smallest numbers is a random sample, does not depend on the order of the stream, and the sample of
    a smaller size is a part of that of a larger one.

    Args:
        seed: of the set.
        purpose: numbers for different purposes have nothing to do with each other.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self._salt = hashlib.blake2b(f"{purpose}\0{seed}".encode(), digest_size=16).digest()

    def __call__(self, text: str) -> int:
        """The number of one text."""
        return int.from_bytes(self._hash(text), "big")

    def many(self, texts: Sequence[str]) -> NDArray[np.uint64]:
        """The numbers of several texts, shape (n,)."""
        joined = b"".join(map(self._hash, texts))
        return np.frombuffer(joined, ">u8").astype(np.uint64)

    def _hash(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, salt=self._salt).digest()

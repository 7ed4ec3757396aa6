"""Choosing by keyed hashes: the same choice for the same seed, whatever else is in the stream."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Keyed"]

_STEP: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_MIX: Final = (
    (np.uint64(30), np.uint64(0xBF58_476D_1CE4_E5B9)),
    (np.uint64(27), np.uint64(0x94D0_49BB_1331_11EB)),
)


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

    def of_places(self, text: str, places: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Numbers of places in a list that belongs to the text, shape (n,); the finaliser of SplitMix64 makes them."""
        with np.errstate(over="ignore"):
            mixed = np.uint64(self(text)) + places.astype(np.uint64) * _STEP
            for shift, factor in _MIX:
                mixed = (mixed ^ (mixed >> shift)) * factor
            return np.asarray(mixed ^ (mixed >> np.uint64(31)), np.uint64)

    def _hash(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, salt=self._salt).digest()

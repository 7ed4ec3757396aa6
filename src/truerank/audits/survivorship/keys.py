"""Texts by 128-bit keys: equal for texts that are the same after repairing their encoding, different otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from truerank.text.mojibake import repair

__all__ = ["Keys", "canonical", "from_hex", "hex_keys", "key_of", "keys_of", "lookup", "sorted_keys"]

#: Keys of n texts as numbers, shape (n, 2).
Keys = NDArray[np.uint64]

_SIZE: Final = 16


def canonical(text: str) -> str:
    """The form in which texts are compared: encoding repaired, blanks of any kind and number as one, none at the ends.

    A table of tab-separated lines cannot hold tabs and line ends, so that a text loses them on its way into a
    collection.
    """
    return " ".join(repair(text).split())


def key_of(text: str) -> bytes:
    """The key of a text, 16 bytes.

    Two of ten million different texts share one with a probability below 1e-24.
    """
    return blake2b(canonical(text).encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()


def keys_of(texts: Iterable[str]) -> Keys:
    """The keys of several texts."""
    return np.frombuffer(b"".join(map(key_of, texts)), ">u8").reshape(-1, 2).astype(np.uint64)


def hex_keys(keys: Keys) -> list[str]:
    """Keys as 32 hexadecimal digits each."""
    data = keys.astype(">u8").tobytes().hex()
    return [data[start : start + 2 * _SIZE] for start in range(0, len(data), 2 * _SIZE)]


def from_hex(digits: Sequence[str]) -> Keys:
    """What `hex_keys` wrote, as numbers."""
    return np.frombuffer(bytes.fromhex("".join(digits)), ">u8").reshape(-1, 2).astype(np.uint64)


def sorted_keys(keys: Keys) -> NDArray[np.int64]:
    """The order in which keys ascend; equal ones stay in their order."""
    return np.lexsort((keys[:, 1], keys[:, 0])).astype(np.int64)


def lookup(ordered: Keys, wanted: Keys) -> NDArray[np.int64]:
    """For each wanted key the first row of ascending keys that has it, -1 where none does."""
    if not len(ordered):
        return np.full(len(wanted), -1, np.int64)
    high, low = ordered[:, 0], ordered[:, 1]
    place = np.searchsorted(high, wanted[:, 0]).astype(np.int64)
    end = np.searchsorted(high, wanted[:, 0], side="right")
    # Several keys with the same first half stand there by their second one; hardly ever more than one.
    crowded = np.flatnonzero(end - place > 1)
    for row in crowded.tolist():
        place[row] += np.searchsorted(low[place[row] : end[row]], wanted[row, 1])
    inside = np.minimum(place, len(ordered) - 1)
    found = (place < end) & (low[inside] == wanted[:, 1])
    return np.where(found, inside, -1)

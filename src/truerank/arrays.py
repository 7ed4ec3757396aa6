"""The arrays that most computations exchange, as types, and the columns of frames; hashes of hashes, and looked up."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Hashes = NDArray[np.uint64]


def frame_schema(text: str) -> dict[str, Any]:
    """The columns of a frame, in their order, from a text such as `"topic_id doc_id: String, rank: Int64"`.

    Raises:
        ValueError: a column without a type.
    """
    found: dict[str, Any] = {}
    for part in text.split(", "):
        names, colon, kind = part.partition(": ")
        if not colon:
            raise ValueError(f"the columns '{names}' have no type")
        found |= dict.fromkeys(names.split(), getattr(pl, kind))
    return found


#: An odd number whose multiples have nothing in common.
SPREAD: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


def mixed(values: Hashes) -> Hashes:
    """Each value with all bits depending on all bits (the finaliser of SplitMix64; Steele et al., 2014)."""
    values = values ^ (values >> np.uint64(30))
    values *= np.uint64(0xBF58_476D_1CE4_E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D0_49BB_1331_11EB)
    values ^= values >> np.uint64(31)
    return values


def among(values: NDArray[Any], ascending: NDArray[Any]) -> Flags:
    """Which values are among some ascending ones."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    there: Flags = ascending[np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)] == values
    return there

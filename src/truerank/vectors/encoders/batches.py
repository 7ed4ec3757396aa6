"""Groups texts of the same number of tokens, so that no batch is padded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["same_length_batches"]


def same_length_batches(lengths: NDArray[np.int64], *, tokens: int) -> list[NDArray[np.int64]]:
    """Batches of equally long texts, the longest first, so that threads end together.

    They depend on the lengths and their order alone, so the same list of texts makes the same products.

    Args:
        lengths: tokens of each text, shape (texts,).
        tokens: a batch holds at most this many tokens, but at least one text.

    Returns:
        Row numbers of each batch; every row is in one batch.
    """
    if len(lengths) == 0:
        return []
    order = np.argsort(-lengths, kind="stable")
    ordered = lengths[order]
    borders = np.flatnonzero(np.diff(ordered)) + 1
    batches: list[NDArray[np.int64]] = []
    for group in np.split(order, borders):
        size = max(1, tokens // max(1, int(lengths[group[0]])))
        batches.extend(group[start : start + size] for start in range(0, len(group), size))
    return batches

"""Batches of pairs of equal or nearly equal length, so that little or nothing is padded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def length_batches(lengths: NDArray[np.int64], *, tokens: int, waste: float = 0.0) -> list[Rows]:
    """Batches of texts by their numbers of tokens, the longest first, so that memory is asked for once.

    They depend on the lengths and their order alone.
    """
    order = np.argsort(-lengths, kind="stable")
    batches: list[Rows] = []
    start = 0
    ordered = np.maximum(lengths[order], 1)
    while start < len(order):
        longest = int(ordered[start])
        room = max(1, min(tokens // longest, len(order)))
        shortest = longest * (1 - waste)
        # Lengths fall, so what is too short for this batch is all that follows.
        end = start + int(np.searchsorted(-ordered[start : start + room], -shortest, side="right"))
        batches.append(order[start:end])
        start = end
    return batches


def padded(ids: Sequence[Sequence[int]], padding: int, length: int | None = None) -> tuple[Rows, Rows]:
    """Token ids as a matrix and their mask, padded on the right.

    Returns:
        Ids and mask (1 for a token, 0 for padding), shape (texts, length).
    """
    sizes = np.fromiter((len(row) for row in ids), np.int64, len(ids))
    width = int(sizes.max(initial=0)) if length is None else length
    mask = (np.arange(width)[None, :] < sizes[:, None]).astype(np.int64)
    matrix = np.full((len(ids), width), padding, np.int64)
    matrix[mask.astype(bool)] = np.fromiter((token for row in ids for token in row), np.int64, int(sizes.sum()))
    return matrix, mask


def restore(batches: Sequence[Rows], values: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The values of batches in the order of the texts, shape (texts, …)."""
    if not batches:
        return np.zeros(0, np.float32)
    found = np.concatenate(values)
    result = np.empty_like(found)
    result[np.concatenate(batches)] = found
    return result

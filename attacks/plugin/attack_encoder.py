"""An encoder that needs no model: counts of hashed letter triples. It sleeps, so that a kill meets it at work."""

from __future__ import annotations

import os
import time
import types
import zlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_SECONDS: Final = float(os.environ.get("ATTACK_SECONDS", "0.02"))


class Letters:
    """Vectors of 64 counts."""

    name = "letters"
    dimension = 64
    precision = "fp32"
    fingerprint = "letters-1"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (len(texts), 64)."""
        time.sleep(_SECONDS)
        found = np.full((len(texts), self.dimension), 1e-3, np.float32)
        for row, text in enumerate(texts):
            padded = f"  {text.lower()}  "
            for at in range(len(padded) - 2):
                found[row, zlib.crc32(padded[at : at + 3].encode("utf-8", "replace")) % self.dimension] += 1
        unit: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit


def _open(place: str, spec: Any) -> Letters:
    return Letters()


opening = types.SimpleNamespace(open=_open)

"""Two encoders of another package that need no model: counts of hashed letter triples, and one that lies about them."""

from __future__ import annotations

import sys
import types
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np


class Letters:
    """Unit vectors of 64 counts."""

    name = "letters"
    dimension = 64
    precision = "fp32"
    fingerprint = "letters-1"

    def encode(self, texts: Sequence[str]) -> Any:
        """Vectors, shape (len(texts), 64)."""
        found = np.full((len(texts), self.dimension), 1e-3, np.float32)
        for row, text in enumerate(texts):
            padded = f"  {text.lower()}  "
            for at in range(len(padded) - 2):
                found[row, zlib.crc32(padded[at : at + 3].encode("utf-8", "replace")) % self.dimension] += 1
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def _raise(error: Exception) -> Any:
    raise error


#: What becomes of honest vectors.
LIES: Final[dict[str, Callable[[Any], Any]]] = {
    "raises": lambda _: _raise(OSError("gone\n\x1b[2J")),
    "raises nothing": lambda _: _raise(ValueError()),
    "ends the process": lambda _: sys.exit(0),
    "divides by zero": lambda _: 1 // 0,
    "calls itself": lambda found: [LIES["calls itself"](found)],
    "None": lambda _: None,
    "list": lambda found: found.tolist(),
    "generator": lambda found: (row for row in found),
    "one row less": lambda found: found[1:],
    "one column less": lambda found: found[:, 1:],
    "flat": lambda found: found.ravel(),
    "integers": lambda found: (found * 100).astype(np.int64),
    "objects": lambda found: found.astype(object),
    "NaN": lambda found: np.where(np.arange(64) == 5, np.nan, found),
    "long": lambda found: found * 3,
    "huge": lambda found: found.astype(np.float64) * 1e300,
}
#: Which lie is told, and from which call on; at 0 opening tells it.
chosen: dict[str, Any] = {"lie": "raises", "call": 1, "calls": 0}


class _Liar(Letters):
    name = fingerprint = "liar"

    def encode(self, texts: Sequence[str]) -> Any:
        chosen["calls"] += 1
        found = super().encode(texts)
        return LIES[chosen["lie"]](found) if chosen["calls"] >= chosen["call"] and len(found) else found


def _open_liar(place: str, spec: Any) -> Any:
    return _Liar() if chosen["call"] else LIES[chosen["lie"]](np.eye(64, dtype=np.float32))


letters = types.SimpleNamespace(open=lambda place, spec: Letters())
liar = types.SimpleNamespace(open=_open_liar)

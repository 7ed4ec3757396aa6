"""An encoder that does something else than it should, from one of its calls on."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from attack_encoder import Letters

#: What becomes of honest vectors.
LIES: Final[dict[str, Callable[[Any], Any]]] = {
    "raises": lambda _: _raise(OSError("gone\n\x1b[2J")),
    "raises nothing": lambda _: _raise(ValueError()),
    "ends the process": lambda _: sys.exit(0),
    "ends it with a text": lambda _: sys.exit("enough"),
    "divides by zero": lambda found: 1 // 0,
    "calls itself": lambda found: LIES["calls itself"](found),
    "None": lambda _: None,
    "list": lambda found: found.tolist(),
    "text": lambda _: "vectors",
    "generator": lambda found: (row for row in found),
    "one row less": lambda found: found[1:],
    "one row more": lambda found: np.vstack([found, found[:1]]),
    "one column less": lambda found: found[:, 1:],
    "flat": lambda found: found.ravel(),
    "integers": lambda found: (found * 100).astype(np.int64),
    "complex": lambda found: found.astype(np.complex128),
    "objects": lambda found: found.astype(object),
    "NaN": lambda found: _with(found, np.nan),
    "infinite": lambda found: _with(found, np.inf),
    "long": lambda found: found * 3,
    "huge": lambda found: found.astype(np.float64) * 1e300,
}
#: Which lie is told, and from which call on; at 0 opening tells it.
chosen: dict[str, Any] = {
    "lie": os.environ.get("ATTACK_LIE", "raises"),
    "call": int(os.environ.get("ATTACK_CALL", "1")),
    "calls": 0,
}


def _raise(error: Exception) -> Any:
    raise error


def _with(found: Any, value: float) -> Any:
    changed = found.copy()
    changed[-1, -1] = value
    return changed


class _Liar(Letters):
    name = fingerprint = "liar"

    def encode(self, texts: Sequence[str]) -> Any:
        chosen["calls"] += 1
        found = super().encode(texts)
        return LIES[chosen["lie"]](found) if chosen["calls"] >= chosen["call"] and len(found) else found


def _open(place: str, spec: Any) -> Any:
    return _Liar() if chosen["call"] else LIES[chosen["lie"]](np.eye(64, dtype=np.float32))


opening = types.SimpleNamespace(open=_open)
os.environ.setdefault("ATTACK_SECONDS", "0")

"""Memory that is free but still held by this process."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable


def give_back() -> None:
    """Hands freed memory back to the operating system, where the C library can; between the phases of long work."""
    _trim()(0)


@functools.cache
def _trim() -> Callable[[int], int]:
    # glibc keeps the holes that small objects leave; other C libraries have no such call, and less need of it.
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda _: 0
    return trim

"""What several readings of the same files share: within `reading_once`, a file that did not change is read once.

A check runs audits that read the same runs, judgments and documents. What a reader hands on is not changed by anybody,
so that it can be handed on again; a file is known by its place, size, time and inode, so that one that was written anew
is read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, TypeVar

import polars as pl

T = TypeVar("T")
#: What is kept at most, in bytes of frames and characters of texts; what is larger is streamed each time.
_LIMIT: Final = 1 << 27


class _Kept:
    """What was read, by what was read in which way.

    Args:
        limit: what is kept at most, as measured by the readers.
    """

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._values: dict[Hashable, tuple[Any, ...]] = {}
        self._too_large: set[Hashable] = set()

    def stream(self, key: Hashable, read: Callable[[], Iterator[T]], size: Callable[[T], int]) -> Iterator[T]:
        """What was kept, or what is read now; it is kept once it was read to its end."""
        if key in self._values:
            yield from self._values[key]
            return
        held: list[T] | None = None if key in self._too_large else []
        total = 0
        for item in read():
            if held is not None:
                held.append(item)
                total += size(item)
                if total > self._room:
                    held = None
                    self._too_large.add(key)
            yield item
        if held is not None and key not in self._values:
            self._values[key] = tuple(held)
            self._room -= total


_kept: ContextVar[_Kept | None] = ContextVar("kept readings", default=None)


@contextmanager
def reading_once(limit: int = _LIMIT) -> Iterator[None]:
    """Within it, what was read of a file is kept for the next reader; nothing is kept afterwards.

    Args:
        limit: bytes of frames and characters of texts that are kept at most.
    """
    if _kept.get() is not None:
        yield
        return
    token = _kept.set(_Kept(limit))
    try:
        yield
    finally:
        _kept.reset(token)


def is_shared() -> bool:
    """Whether what is read now is kept for the next reader."""
    return _kept.get() is not None


def shared_stream(path: Path, how: Hashable, read: Callable[[], Iterator[T]], size: Callable[[T], int]) -> Iterator[T]:
    """What a reader of a file or folder hands on.

    Args:
        size: what one item takes, in bytes or characters.
    """
    kept = _kept.get()
    state = None if kept is None else _state(path)
    if kept is None or state is None:
        return read()
    return kept.stream((str(path), state, how), read, size)


def shared_frames(path: Path, how: Hashable, read: Callable[[], Iterator[pl.DataFrame]]) -> Iterator[pl.DataFrame]:
    """The same for frames."""
    return shared_stream(path, how, read, lambda frame: int(frame.estimated_size()))


def shared_value(path: Path, how: Hashable, read: Callable[[], T], size: int = 0) -> T:
    """The same for one value."""
    (value,) = shared_stream(path, how, lambda: iter((read(),)), lambda _: size)
    return value


def _state(path: Path) -> Hashable:
    """What tells a file, or the files of a folder, from changed ones; None where that cannot be asked for."""
    try:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        stats = [(str(one), one.stat()) for one in files]
    except OSError:
        return None
    return tuple((name, found.st_ino, found.st_size, found.st_mtime_ns) for name, found in stats)

"""Kept files: work that a later process takes up again. Beside each lies a record of its length and checksum.

A killed process, a full disk or a bad sector can leave a file that is cut, empty or other than it was. What does not
fit its record, or has none, counts as not there, and is made again.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.work.artifacts import atomic_path

#: What the name of a record ends with, after that of its file.
RECORD: Final = ".sum"
_AT_ONCE: Final = 1 << 20


def keep_bytes(path: Path, content: Any) -> None:
    """Keeps bytes, or the values of an array, whole or not at all."""
    with kept_path(path) as temporary, temporary.open("wb") as stream:
        stream.write(content)


def keep_text(path: Path, text: str) -> None:
    """Keeps a text, whole or not at all."""
    keep_bytes(path, text.encode("utf-8"))


def keep_json(path: Path, value: Any) -> None:
    """Keeps a JSON value, whole or not at all."""
    keep_text(path, json.dumps(value, ensure_ascii=False) + "\n")


def keep_frame(path: Path, frame: pl.DataFrame) -> None:
    """Keeps a table as Arrow, whole or not at all."""
    keep_bytes(path, arrow(frame))


def arrow(frame: pl.DataFrame) -> memoryview:
    """The bytes of a table. Polars does not say where a disk was full when it closed a file; Python's files do."""
    content = io.BytesIO()
    frame.write_ipc(content, compression="lz4")
    return content.getbuffer()


@contextlib.contextmanager
def kept_path(path: Path) -> Iterator[Path]:
    """A temporary path that becomes a kept file when the block ends without an error."""
    with atomic_path(path) as temporary:
        yield temporary
        _write_record(path, temporary)


def record(path: Path) -> None:
    """Makes a file that is there a kept one."""
    _write_record(path, path)


def is_whole(path: Path) -> bool:
    """Whether a kept file is there and is what was written."""
    try:
        return _record(path).read_bytes() == _measured(path).encode()
    except OSError:
        return False


def kept_text(path: Path) -> str | None:
    """A kept text; None where it is not whole."""
    return path.read_text(encoding="utf-8") if is_whole(path) else None


def kept_json(path: Path) -> Any | None:
    """A kept JSON value; None where it is not whole."""
    text = kept_text(path)
    return None if text is None else json.loads(text)


def kept_frame(path: Path) -> pl.DataFrame | None:
    """A kept table; None where it is not whole."""
    return pl.read_ipc(io.BytesIO(path.read_bytes())) if is_whole(path) else None


def forget(path: Path) -> None:
    """Removes a kept file, if it is there."""
    path.unlink(missing_ok=True)
    _record(path).unlink(missing_ok=True)


def forget_all(places: Iterable[Path]) -> None:
    """Removes kept files, and those in folders and below them; what has no record beside it is not ours, and stays."""
    for place in places:
        for path in place.rglob(f"*{RECORD}") if place.is_dir() else [place]:
            if path.name.endswith(RECORD):
                forget(path.with_suffix(""))


def all_whole(places: Iterable[Path]) -> bool:
    """Whether these files, and all in these folders and below them, are kept files that are whole."""
    every = {path for place in places for path in (place.rglob("*") if place.is_dir() else [place])}
    files = {path for path in every if path.is_file() and not path.name.startswith(".")}
    records = {path for path in files if path.name.endswith(RECORD)}
    return {_record(path) for path in files - records} == records and all(map(is_whole, files - records))


def user_cache_folder() -> Path:
    """For graphs, quantised models and what was checked: `TRUERANK_CACHE`, else the platform's cache folder."""
    if chosen := os.environ.get("TRUERANK_CACHE"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "truerank"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "truerank" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truerank"


def _write_record(path: Path, written: Path) -> None:
    with atomic_path(_record(path)) as temporary:
        temporary.write_text(_measured(written), encoding="ascii")


def _record(path: Path) -> Path:
    return path.with_name(path.name + RECORD)


def _measured(path: Path) -> str:
    size = checksum = 0
    with path.open("rb") as stream:
        while block := stream.read(_AT_ONCE):
            size, checksum = size + len(block), zlib.crc32(block, checksum)
    return f"{size} {checksum:08x}\n"

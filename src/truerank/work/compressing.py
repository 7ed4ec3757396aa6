"""Files that are written compressed, as their names say; the same content gives the same bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import IO, Any

from truerank.zstd import ZstdFile

__all__ = ["opened_for_writing"]


@contextmanager
def opened_for_writing(path: Path, name: str | None = None) -> Iterator[IO[bytes]]:
    """A file for writing.

    Args:
        path: of the file.
        name: whose ending says the compression; by default the file's own.
    """
    ending = PurePath(name or path.name).suffix.lower()
    with path.open("wb") as raw, ExitStack() as stack:
        packed: Any = raw
        if ending == ".gz":
            packed = stack.enter_context(gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0))
        elif ending == ".bz2":
            packed = stack.enter_context(bz2.BZ2File(raw, "wb"))
        elif ending == ".xz":
            packed = stack.enter_context(lzma.LZMAFile(raw, "wb"))
        elif ending == ".zst":
            packed = stack.enter_context(ZstdFile(raw, "wb"))
        yield packed

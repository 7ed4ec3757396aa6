"""Files as streams of bytes, decompressed where need be; every fault of the file is an InputError."""

from __future__ import annotations

import bz2
import difflib
import hashlib
import lzma
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from truerank.errors import InputError
from truerank.loading import check_regular
from truerank.sources.sharing import shared_value
from truerank.zstd import ZstdDecompressor, ZstdError

#: How many bytes the format of a file is told from.
HEAD_SIZE: Final = 1 << 18
_CHUNK: Final = 1 << 20
# Small, so that a few bytes that unfold to very many do not fill the memory at once.
_COMPRESSED_CHUNK: Final = 1 << 14
#: Whether a folder is there that may be looked at; False for a path that cannot even be asked for.
is_folder: Final = os.path.isdir
_FAULTS: Final = (zlib.error, lzma.LZMAError, ZstdError, OSError, EOFError)
_MAGIC: Final[tuple[tuple[re.Pattern[bytes], str, Callable[[], Any]], ...]] = (
    (re.compile(rb"\x1f\x8b\x08"), "gzip", lambda: zlib.decompressobj(wbits=31)),
    (re.compile(rb"(?s)BZh[1-9](?:1AY&SY|\x17rE8P\x90|.{0,5}\Z)"), "bzip2", bz2.BZ2Decompressor),
    (re.compile(rb"(?s)\xfd7zXZ\x00"), "xz", lzma.LZMADecompressor),
    (re.compile(rb"(?s)\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), "Zstandard", ZstdDecompressor),
)


class BrokenFileError(InputError):
    """A compressed file that is cut off or damaged; what stood before the fault has been handed on."""


def checked_file(path: Path) -> Path:
    """The path, if a regular file that may be read is there."""
    try:
        if path.is_file():
            with path.open("rb"):
                return path
        if path.is_dir():
            remedy = "give a file in it, or a BEIR folder with queries.jsonl"
            raise InputError("a folder, not a file", remedy, where=path)
        if path.exists():
            check_regular(path)
    except PermissionError as error:
        raise InputError("no permission to read it", "change the permissions, or copy it", where=path) from error
    except (OSError, ValueError) as error:
        fault = (isinstance(error, OSError) and error.strerror) or str(error)
        raise InputError(f"cannot be opened ({fault})", "check the path", where=path) from error
    if str(path).startswith(("irds:", "hf:")):
        raise InputError("a data set, not a file", "give it by an option: --test, --qrels, --docs, --train", where=path)
    if path.is_symlink():
        raise InputError(f"a link to {path.readlink()} that leads nowhere", "correct the link", where=path)
    raise InputError("no such file", _nearest(path), where=path)


def chunks(path: Path, size: int = 0) -> Iterator[bytes]:
    """The content of a file, decompressed if its first bytes say gzip, bzip2, xz or Zstandard (whatever its ending).

    Args:
        size: how many bytes a piece has at least where the file is not compressed; then it goes on to the end of a line
            if that is near. 0 for about 1 MiB, wherever that ends.
    """
    with _reading(path) as stream:
        if method := _method(stream):
            yield from _unfold(iter(lambda: stream.read(_COMPRESSED_CHUNK), b""), *method, path)
            return
        while piece := stream.read(_to_line_end(stream, size) if size else _CHUNK):
            yield piece


def _method(stream: BinaryIO) -> tuple[str, Callable[[], Any]] | None:
    """How a file is compressed, by its first bytes, and what unfolds it; None where it is not."""
    start = stream.read(16)
    stream.seek(0)
    return next(((method, make) for pattern, method, make in _MAGIC if pattern.match(start)), None)


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    try:
        with checked_file(path).open("rb") as stream:
            yield stream
    except OSError as error:
        fault = f"cannot be read ({error.strerror or error})"
        raise InputError(fault, "check the disk or copy it again", where=path) from error


def _to_line_end(stream: BinaryIO, size: int) -> int:
    """How many bytes of a file there are to the end of the line in which so many bytes end; `size` behind its end."""
    start = stream.tell()
    stream.seek(start + size)
    stream.readline(_CHUNK)
    end = stream.tell()
    stream.seek(start)
    return end - start


def head(path: Path, size: int = HEAD_SIZE) -> bytes:
    """The first bytes of a file, decompressed; a file that is cut off further on gives what it has."""
    return shared_value(path, ("head", size), lambda: _head(path, size), size)


def _head(path: Path, size: int) -> bytes:
    found = b""
    stream = chunks(path)
    try:
        for piece in stream:
            found += piece
            if len(found) >= size:
                break
    except BrokenFileError as error:
        if not found:
            raise BrokenFileError(error.fault, error.remedy, where=path, line=1) from error
    finally:
        stream.close()  # type: ignore[attr-defined]
    return found[:size]


@contextmanager
def plain_file(path: Path) -> Iterator[Path]:
    """The file itself, or an unfolded temporary copy where it is compressed; for formats that jump in a file."""
    with _reading(path) as stream:
        method = _method(stream)
    if method is None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="truerank-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "unfolded"
        try:
            with copy.open("wb") as target:
                target.writelines(chunks(path))
        except OSError as error:
            fault = f"cannot be unfolded ({error.strerror or error})"
            raise InputError(fault, "set TMPDIR to a folder with room, or unfold it", where=path) from error
        yield copy


def fingerprint(path: Path) -> str:
    """Size and SHA-256 of the bytes of a file as they lie on the disk, as `sha256:HEX;bytes=SIZE`."""
    return shared_value(path, "fingerprint", lambda: _fingerprint(path))


def _fingerprint(path: Path) -> str:
    with _reading(path) as stream:
        digest = hashlib.file_digest(stream, "sha256")  # type: ignore[arg-type]
        return f"sha256:{digest.hexdigest()};bytes={stream.tell()}"


def _unfold(raw: Iterator[bytes], method: str, make: Callable[[], Any], path: Path) -> Iterator[bytes]:
    """Decompresses member after member (files may be concatenated); zeros that only fill up the end are ignored.

    Small pieces are put together, so that the reader works on large ones.
    """
    state, begun, held = make(), False, bytearray()
    try:
        for piece in raw:
            while piece:
                if not begun and not piece.strip(b"\0"):
                    break
                begun = True
                held += state.decompress(piece)
                if not state.eof:
                    break
                piece, state, begun = state.unused_data, make(), False
            if len(held) >= _CHUNK:
                yield bytes(held)
                held.clear()
        fault = f"the {method} file is cut off" if begun else None
    except _FAULTS as error:
        fault = f"broken {method} data ({error})"
    if held:
        yield bytes(held)
    if fault is not None:
        raise BrokenFileError(fault, "download or copy it again", where=path)


def _nearest(path: Path) -> str:
    folder = path.parent
    try:
        if not folder.is_dir():
            return f"there is no folder {folder} either"
        names = sorted(entry.name for entry in folder.iterdir() if entry.exists())
    except (OSError, ValueError):
        return "check the path"
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    return f"did you mean {', '.join(str(folder / name) for name in near)}?" if near else "check the path"

"""Blocks: numbered pieces of a long job, saved as they finish, so that a killed job continues."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import polars as pl

from truerank.errors import InputError, needed_for
from truerank.work.engines import Engine, Numbered, Task
from truerank.work.kept import arrow, forget, is_whole, keep_bytes, keep_text, kept_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

B = TypeVar("B", bound=Numbered)


class BlockStore:
    """A folder with one Arrow file for each finished block.

    A block that does not fit the record of its length and checksum counts as not finished.

    Args:
        folder: where the blocks lie; made if it does not exist.
        key: what makes the files readable, where no text may stand on the disk; empty for plain files.
    """

    def __init__(self, folder: Path, key: bytes = b"") -> None:
        self.folder = folder
        self._key = key
        self._whole: set[int] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, number: int) -> bool:
        """Whether this block is finished."""
        path = self._path(number)
        if number in self._whole:
            return path.is_file()
        if is_whole(path):
            self._whole.add(number)
        return number in self._whole

    def save(self, number: int, frame: pl.DataFrame) -> None:
        """Saves a finished block."""
        content = arrow(frame)
        keep_bytes(self._path(number), sealed(bytes(content), self._key) if self._key else content)
        self._whole.add(number)

    def load(self, number: int, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """A finished block, or some of its columns."""
        # As a stream, because Polars would take brackets in a path for a pattern.
        with self._path(number).open("rb") as stream:
            wanted = None if columns is None else list(columns)
            if not self._key:
                return pl.read_ipc(stream, columns=wanted)
            return pl.read_ipc(io.BytesIO(unsealed(stream.read(), self._key, self._path(number))), columns=wanted)

    def remove(self) -> None:
        """Deletes the folder with all blocks."""
        shutil.rmtree(self.folder, ignore_errors=True)
        forget(self._total)
        self._whole.clear()

    @property
    def total(self) -> int | None:
        """How many blocks there are in all; None where their stream has not been read to its end yet."""
        text = kept_text(self._total)
        return None if text is None else int(text)

    @total.setter
    def total(self, blocks: int) -> None:
        keep_text(self._total, str(blocks))

    @property
    def _total(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.blocks")

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.arrow"


class _Pending(Generic[B]):
    """Lets through the blocks that still need work and remembers the numbers of all."""

    def __init__(self, blocks: Iterable[B], store: BlockStore) -> None:
        self._blocks = blocks
        self._store = store
        self.total = 0
        self.finished_before: list[int] = []

    def __iter__(self) -> Iterator[B]:
        for block in self._blocks:
            self.total += 1
            if self._store.has(block.number):
                self.finished_before.append(block.number)
            else:
                yield block
        self._store.total = self.total


def _as_it_is(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def run_blocks(
    task: Task[B, pl.DataFrame],
    blocks: Iterable[B],
    store: BlockStore,
    engine: Engine,
    settle: Callable[[pl.DataFrame], pl.DataFrame] = _as_it_is,
    *,
    known: bool = False,
) -> int:
    """Runs a task over all blocks that are not finished and saves each result."""
    if known and (total := store.total) is not None and all(map(store.has, range(total))):
        for number in range(total) if settle is not _as_it_is else ():
            settle(store.load(number))
        return total
    pending = _Pending(blocks, store)
    reported = 0
    for number, frame in engine.run(task, pending):
        reported = _settle_earlier(pending, store, reported, settle)
        store.save(number, settle(frame))
    _settle_earlier(pending, store, reported, settle)
    return pending.total


def _settle_earlier(
    pending: _Pending[B], store: BlockStore, reported: int, settle: Callable[[pl.DataFrame], pl.DataFrame]
) -> int:
    earlier = pending.finished_before[reported:]
    for number in earlier:
        settle(store.load(number))
    return reported + len(earlier)


_NONCE: Final = 12


def sealed(content: bytes, key: bytes) -> bytes:
    """The content under ChaCha20-Poly1305 with a fresh nonce (RFC 8439).

    Args:
        content: any bytes, less than 2 GiB.
        key: a secret of at least 16 bytes; the cipher's key is derived from it (HKDF, RFC 5869).
    """
    nonce = os.urandom(_NONCE)
    return nonce + _cipher(key).encrypt(nonce, content, None)


def unsealed(content: bytes, key: bytes, place: Path) -> bytes:
    """What `sealed` was given."""
    cipher = _cipher(key)
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(content[:_NONCE], content[_NONCE:], None)
    except (InvalidTag, ValueError) as error:
        fault = "unfinished work of a redacted run, under another key or damaged"
        raise InputError(fault, "use the key of that run, or remove the file", where=place) from error


def _cipher(key: bytes) -> ChaCha20Poly1305:
    # Imported late: only redacted runs need it.
    with needed_for("--redact", "redact"):
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return ChaCha20Poly1305(HKDF(SHA256(), 32, salt=None, info=b"truerank unfinished work").derive(key))

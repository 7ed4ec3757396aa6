"""Vectors in a cache folder, so that texts which were encoded once are read the next time."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from truerank.errors import InputError
from truerank.vectors.encoders.base import AroundEncoder, Encoder, Vectors

_DIGEST: Final = 16


class CachedEncoder(AroundEncoder):
    """An encoder that looks into a folder first.

    A file holds the vectors of one list of texts, under a hash of the list and the encoder's fingerprint. Lists that
    do not change between runs, such as the blocks of one training source, are thus encoded once; another source costs
    only its own. A file that is torn or was changed does not pass its checksum and is made again.

    Args:
        encoder: makes the vectors that are not there yet.
        folder: where the files lie; made when the first is written.
    """

    def __init__(self, encoder: Encoder, folder: str | Path) -> None:
        super().__init__(encoder)
        self._folder = Path(folder)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the encoder inside: the vectors are the same."""
        return self._encoder.fingerprint

    @property
    def pieces(self) -> Any:
        """What counts the pieces of texts in the encoder inside; None where nothing does."""
        return getattr(self._encoder, "pieces", None)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts, shape (len(texts), dimension), float32.

        Raises:
            InputError: the folder cannot be written.
        """
        if not len(texts):
            return self._encoder.encode(texts)
        file = self._file(texts)
        vectors = self._read(file, len(texts))
        if vectors is None:
            vectors = self._encoder.encode(texts)
            self._write(file, vectors)
        return vectors

    def _file(self, texts: Sequence[str]) -> Path:
        digest = hashlib.sha256(self._encoder.fingerprint.encode())
        for text in texts:
            content = text.encode("utf-8", "surrogatepass")
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
        key = digest.hexdigest()
        return self._folder / key[:2] / f"{key[2:40]}.npy"

    def _read(self, file: Path, count: int) -> Vectors | None:
        try:
            content = file.read_bytes()
        except OSError:
            return None
        body, digest = content[:-_DIGEST], content[-_DIGEST:]
        if hashlib.blake2b(body, digest_size=_DIGEST).digest() != digest:
            return None
        try:
            vectors = np.load(io.BytesIO(body), allow_pickle=False)
        except (ValueError, EOFError):
            return None
        fits = vectors.dtype == np.float32 and vectors.shape == (count, self.dimension)
        return vectors if fits else None

    def _write(self, file: Path, vectors: Vectors) -> None:
        body = io.BytesIO()
        np.save(body, vectors, allow_pickle=False)
        content = body.getvalue()
        temporary: Path | None = None
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{file.stem}.", dir=file.parent)
            temporary = Path(name)
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.write(hashlib.blake2b(content, digest_size=_DIGEST).digest())
            temporary.replace(file)
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    temporary.unlink()
            reason = error.strerror or str(error)
            remedy = "free some room there, choose another cache folder, or leave the cache out"
            raise InputError(f"vectors cannot be kept ({reason})", remedy, where=self._folder) from error


def publish_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Writes a folder under a temporary name and moves it into place, so that nobody sees half of it."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise _not_writable(target.parent, error) from error
    try:
        write(temporary)
        try:
            temporary.replace(target)
        except OSError:
            # A folder cannot replace a filled one: another process was first, with the same content.
            if not target.is_dir():
                raise
    except OSError as error:
        raise _not_writable(target, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _not_writable(folder: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    return InputError(f"cannot be written ({reason})", "set TRUERANK_CACHE to a folder with room", where=folder)

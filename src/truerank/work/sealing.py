"""Bytes that only a key makes readable, for unfinished work whose texts must not stand on the disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truerank.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

__all__ = ["sealed", "unsealed"]

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
    """What `sealed` was given.

    Args:
        content: what it returned.
        key: the same key.
        place: where it stands, for the message.

    Raises:
        InputError: another key, or damaged bytes.
    """
    from cryptography.exceptions import InvalidTag

    try:
        return _cipher(key).decrypt(content[:_NONCE], content[_NONCE:], None)
    except (InvalidTag, ValueError) as error:
        fault = "unfinished work of a redacted run, under another key or damaged"
        raise InputError(fault, "use the key of that run, or remove the file", where=place) from error


def _cipher(key: bytes) -> ChaCha20Poly1305:
    # Imported late: only redacted runs need it.
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return ChaCha20Poly1305(HKDF(SHA256(), 32, salt=None, info=b"truerank unfinished work").derive(key))

"""Bytes that only a key makes readable, for unfinished work whose texts must not stand on the disk."""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path
from typing import Final

import numpy as np

from truerank.errors import InputError

__all__ = ["sealed", "unsealed"]

_NONCE: Final = 16
_MARK: Final = 32


def sealed(content: bytes, key: bytes) -> bytes:
    """The content under a key stream (SHAKE-256 of the key and a fresh nonce), with its HMAC-SHA-256.

    Args:
        content: any bytes.
        key: a secret of at least 16 bytes.
    """
    nonce = os.urandom(_NONCE)
    hidden = _mixed(content, key, nonce)
    return nonce + hidden + _mark(nonce + hidden, key)


def unsealed(content: bytes, key: bytes, place: Path) -> bytes:
    """What `sealed` was given.

    Args:
        content: what it returned.
        key: the same key.
        place: where it stands, for the message.

    Raises:
        InputError: another key, or damaged bytes.
    """
    body, mark = content[:-_MARK], content[-_MARK:]
    if not hmac.compare_digest(mark, _mark(body, key)):
        fault = "unfinished work of a redacted run, under another key or damaged"
        raise InputError(fault, "use the key of that run, or remove the file", where=place)
    return _mixed(body[_NONCE:], key, body[:_NONCE])


def _mixed(content: bytes, key: bytes, nonce: bytes) -> bytes:
    stream = hashlib.shake_256(b"truerank stream" + len(key).to_bytes(8, "big") + key + nonce).digest(len(content))
    return (np.frombuffer(content, np.uint8) ^ np.frombuffer(stream, np.uint8)).tobytes()


def _mark(content: bytes, key: bytes) -> bytes:
    return hmac.new(b"truerank mark" + key, content, hashlib.sha256).digest()

"""Blocks under a key: what is sealed comes back with the same key, and with no other."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from truerank.errors import InputError
from truerank.work.blocks import BlockStore, sealed, unsealed

PLANTED = "zyxplanted"


def test_sealed_bytes_come_back_and_nothing_else_does(tmp_path: Path) -> None:
    key, content = b"k" * 16, f"{PLANTED} ".encode() * 1000
    hidden = sealed(content, key)
    assert unsealed(hidden, key, tmp_path) == content
    assert PLANTED.encode() not in hidden and sealed(content, key) != hidden
    # Equal plain bytes give other hidden ones at each place: the stream does not repeat.
    assert len({hidden[16:][at : at + 11] for at in range(0, 11_000, 11)}) == 1000
    for damaged in (hidden[:-1], hidden[:40] + bytes([hidden[40] ^ 1]) + hidden[41:], b"", hidden[1:]):
        with pytest.raises(InputError, match="under another key or damaged"):
            unsealed(damaged, key, tmp_path)
    with pytest.raises(InputError, match="under another key or damaged"):
        unsealed(hidden, b"j" * 16, tmp_path)
    assert unsealed(sealed(b"", key), key, tmp_path) == b""


def test_blocks_under_a_key(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": [PLANTED] * 50})
    store = BlockStore(tmp_path, b"k" * 16)
    store.save(0, frame)
    assert store.has(0) and store.load(0).equals(frame)
    assert PLANTED.encode() not in next(tmp_path.iterdir()).read_bytes()
    with pytest.raises(InputError):
        BlockStore(tmp_path, b"other key 123456").load(0)

"""Batches, the cache of vectors, and the cache folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.vectors.encoders import CachedEncoder, Encoder
from truerank.vectors.encoders.cache import publish_folder
from truerank.vectors.encoders.graph_encoder import fingerprint, same_length_batches, to_unit_length
from truerank.work.kept import user_cache_folder


def test_longest_first_and_cut_at_the_limit() -> None:
    lengths = np.array([3, 5, 3, 3, 5, 20])
    assert [rows.tolist() for rows in same_length_batches(lengths, tokens=6)] == [[5], [1], [4], [0, 2], [3]]
    assert same_length_batches(np.array([], dtype=np.int64), tokens=6) == []


@given(st.lists(st.integers(1, 40), max_size=200), st.integers(1, 300))
def test_every_row_is_in_one_batch_of_its_length(lengths: list[int], tokens: int) -> None:
    batches = same_length_batches(np.array(lengths, dtype=np.int64), tokens=tokens)
    assert sorted(row for rows in batches for row in rows.tolist()) == list(range(len(lengths)))
    for rows in batches:
        assert len({lengths[row] for row in rows}) == 1
        assert len(rows) == 1 or len(rows) * lengths[rows[0]] <= tokens


def test_unit_length_leaves_zeros() -> None:
    vectors = to_unit_length(np.array([[3, 4], [0, 0]], dtype=np.float32))
    assert np.allclose(vectors, [[0.6, 0.8], [0, 0]])


def test_fingerprints_keep_their_parts_apart() -> None:
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    assert fingerprint("a", 1) == fingerprint("a", "1")


class Counting:
    """Vectors by the texts' lengths; counts how often it is asked."""

    name, dimension, precision = "counting", 2, "fp32"

    def __init__(self, mark: str = "a") -> None:
        self.fingerprint = mark
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(list(texts))
        return to_unit_length(np.array([[1, len(text)] for text in texts], dtype=np.float32).reshape(-1, 2))


def test_what_was_encoded_once_is_read(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedEncoder(inner, tmp_path / "vectors")
    assert isinstance(cached, Encoder)
    first = cached.encode(["x", "yy"])
    assert CachedEncoder(inner, tmp_path / "vectors").encode(["x", "yy"]).tobytes() == first.tobytes()
    assert inner.calls == [["x", "yy"]]
    cached.encode(["xy", "y"])  # the same letters, other texts
    cached.encode(["yy", "x"])
    assert len(inner.calls) == 3
    assert cached.encode([]).shape == (0, 2)
    assert (cached.name, cached.dimension, cached.precision, cached.fingerprint) == ("counting", 2, "fp32", "a")


def test_another_encoder_does_not_read_them(tmp_path: Path) -> None:
    CachedEncoder(Counting("a"), tmp_path).encode(["x"])
    other = Counting("b")
    CachedEncoder(other, tmp_path).encode(["x"])
    assert other.calls == [["x"]]


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-30], lambda b: b"", lambda b: b[:200] + b"\x00" + b[201:] + b"", lambda b: b + b"x"]
)
def test_damaged_vectors_are_made_again(damage, tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedEncoder(inner, tmp_path)
    wanted = cached.encode(["x", "yy"] * 20)
    (file,) = tmp_path.rglob("*.npy")
    whole = file.read_bytes()
    torn = damage(whole)
    assert torn != whole
    file.write_bytes(torn)
    assert cached.encode(["x", "yy"] * 20).tobytes() == wanted.tobytes()
    assert len(inner.calls) == 2
    assert file.read_bytes() == whole
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]


def test_cached_vectors_open_in_numpy(tmp_path: Path) -> None:
    vectors = CachedEncoder(Counting(), tmp_path).encode(["x", "yy"])
    (file,) = tmp_path.rglob("*.npy")
    assert np.load(file).tolist() == vectors.tolist()


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="vectors cannot be kept"):
        CachedEncoder(Counting(), tmp_path / "file").encode(["x"])


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path / "here"))
    assert user_cache_folder() == tmp_path / "here"
    monkeypatch.delenv("TRUERANK_CACHE")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert user_cache_folder() == tmp_path / "truerank"
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert user_cache_folder() == Path.home() / ".cache" / "truerank"


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"

    def fails(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        publish_folder(target, fails)
    assert list(target.parent.iterdir()) == []
    publish_folder(target, lambda folder: (folder / "whole").write_text("1") and None)
    publish_folder(target, lambda folder: (folder / "whole").write_text("2") and None)  # too late: the first stands
    assert (target / "whole").read_text() == "1"
    assert list(target.parent.iterdir()) == [target]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="set TRUERANK_CACHE to a folder with room"):
        publish_folder(tmp_path / "file" / "x", lambda folder: None)

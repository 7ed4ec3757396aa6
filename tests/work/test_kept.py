"""What is kept for a later process: damaged files are made again, and a full disk leaves no short ones."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from truerank.near_duplicates import Shingles, within
from truerank.near_duplicates.joins import save_array
from truerank.work.blocks import BlockStore
from truerank.work.jobs import Job
from truerank.work.kept import RECORD, all_whole, is_whole, keep_json, kept_json

TEXTS = [
    (f"d{number}", " ".join(f"w{(number % 12) * 7 + place}" for place in range(12 + number % 3)))
    for number in range(60)
]


def _emptied(content: bytes) -> bytes:
    return b""


def _cut(content: bytes) -> bytes:
    return content[:-1]


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 8]) + content[middle + 1 :]


@pytest.fixture
def small_files() -> Iterator[Callable[[int], None]]:
    """Limits how long a file may become, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("damage", [_emptied, _cut, _flipped])
def test_a_damaged_block_is_not_finished(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    frame = pl.DataFrame({"x": range(100)})
    for key in (b"", b"k" * 32):
        store = BlockStore(tmp_path / f"blocks{len(key)}", key)
        store.save(0, frame)
        store.total = 1
        path = store.folder / "00000000.arrow"
        path.write_bytes(damage(path.read_bytes()))
        other = BlockStore(store.folder, key)
        assert not other.has(0)
        other.save(0, frame)
        assert BlockStore(store.folder, key).has(0) and other.load(0).equals(frame)
        total = store.folder.with_name(f"{store.folder.name}.blocks")
        total.write_bytes(damage(total.read_bytes()))
        assert other.total is None


def test_a_file_without_its_record_is_not_whole(tmp_path: Path) -> None:
    keep_json(tmp_path / "state.json", {"read": 3})
    assert kept_json(tmp_path / "state.json") == {"read": 3}
    assert all_whole([tmp_path])
    (tmp_path / "state.json.sum").unlink()
    assert kept_json(tmp_path / "state.json") is None
    assert not all_whole([tmp_path])


def test_a_full_disk_leaves_no_short_file(tmp_path: Path, small_files: Callable[[int], None]) -> None:
    small_files(4096)
    for name, save in (
        ("array", lambda path: save_array(path, np.arange(513))),
        ("block", lambda path: BlockStore(path.with_name("blocks")).save(0, pl.DataFrame({"x": range(9000)}))),
    ):
        with pytest.raises(OSError):
            save(tmp_path / name)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("damage", [_emptied, _cut, _flipped])
def test_a_comparison_finds_the_same_after_any_of_its_files_was_damaged(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    whole = tmp_path / "whole"
    expected = within(TEXTS, Shingles(), Job(whole))
    assert len(expected.groups)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file() and path.stat().st_size)
    assert {"equals", "candidates", "verified", "sketches"} <= {path.parts[0] for path in files}
    # A record that is not that of its file is not read further: one kind of damage says it all.
    for file in files if damage is _flipped else [path for path in files if path.suffix != RECORD]:
        shutil.copytree(whole, tmp_path / "again")
        path = tmp_path / "again" / file
        path.write_bytes(damage(path.read_bytes()))
        found = within(TEXTS, Shingles(), Job(tmp_path / "again"))
        assert found.groups.equals(expected.groups), file
        assert found.pairs.equals(expected.pairs), file
        shutil.rmtree(tmp_path / "again")


def test_records_do_not_outlive_what_they_belong_to(tmp_path: Path) -> None:
    store = BlockStore(tmp_path / "blocks")
    store.save(0, pl.DataFrame({"x": [1]}))
    store.total = 1
    assert is_whole(store.folder / "00000000.arrow")
    store.remove()
    assert not any(tmp_path.iterdir())

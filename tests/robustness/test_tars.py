"""Tar archives with hostile members: each is read, or refused with a line that names it."""

from __future__ import annotations

import gzip
import io
import resource
import signal
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from truerank.errors import InputError
from truerank.sources import open_documents

_ROWS = b'{"_id": "1", "text": "a text"}\n{"_id": "2", "text": "another"}\n'


def _tar(path: Path, *members: tuple[str, bytes], **pax: str) -> Path:
    with tarfile.open(path, "w", errors="surrogateescape") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size, member.pax_headers = len(content), pax
            archive.addfile(member, io.BytesIO(content))
    return path


def _ids(path: Path) -> list[str]:
    return [document.doc_id for document in open_documents(str(path))]


def test_a_name_that_is_no_utf8_hides_no_table(tmp_path: Path) -> None:
    table = io.BytesIO()
    pl.DataFrame({"doc_id": ["1", "2"], "text": ["a", "b"]}).write_parquet(table)
    assert _ids(_tar(tmp_path / "x.tar", ("\udcff.parquet", table.getvalue()))) == ["1", "2"]


@pytest.mark.parametrize("name", ["../up.jsonl", "/etc/up.jsonl", "a/../../up.jsonl", "..", "a\nb.jsonl"])
def test_names_lead_nowhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = tmp_path / "held"
    held.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(held))
    file = _tar(tmp_path / "x.tar", (name, _ROWS), ("whole.jsonl", _ROWS.replace(b'"1"', b'"3"')))
    assert {"3", "2"} <= set(_ids(file))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["held", "x.tar"]


@pytest.mark.parametrize(("key", "value"), [("size", "nan"), ("size", "9" * 30), ("GNU.sparse.realsize", "x")])
def test_a_broken_head_is_a_broken_archive(key: str, value: str, tmp_path: Path) -> None:
    file = _tar(tmp_path / "x.tar", ("a.jsonl", _ROWS), **{key: value})
    try:
        assert _ids(file) in ([], ["1", "2"])
    except InputError as refused:
        assert str(refused).startswith(str(file))


@pytest.mark.parametrize("name", ["a.jsonl", ".hidden", "a.parquet"])
def test_a_member_that_claims_to_be_huge_is_refused_at_once(name: str, tmp_path: Path) -> None:
    head = tarfile.TarInfo(name)
    head.size = 1 << 60
    (file := tmp_path / "x.tar").write_bytes(head.tobuf(tarfile.GNU_FORMAT) + _ROWS.ljust(512))
    with pytest.raises(InputError, match=r"x\.tar: a broken tar archive"):
        _ids(file)


def test_archives_in_archives_without_an_end_are_refused(tmp_path: Path) -> None:
    content, name = _ROWS, "a.jsonl"
    for _ in range(3):
        content = gzip.compress(_tar(tmp_path / "x.tar", (name, content)).read_bytes(), 1)
        name = "a.tar.gz"
    (file := tmp_path / "x.tar.gz").write_bytes(content)
    assert _ids(file) == ["1", "2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("truerank.sources.documents._in_folder", lambda *_: _without_end())
        with pytest.raises(InputError, match="broken tar archive"):
            _ids(file)


def _without_end() -> Iterator[int]:
    yield from _without_end()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of file sizes")
def test_a_member_that_finds_no_room_names_the_archive(tmp_path: Path) -> None:
    file = _tar(tmp_path / "x.tar", ("a.jsonl", _ROWS * 40_000))
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(
            InputError, match=r"x\.tar/a\.jsonl: cannot be copied out of its archive \(File too large\)"
        ):
            _ids(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)

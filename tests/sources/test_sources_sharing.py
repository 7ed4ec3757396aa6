"""Files that several readers read are read once within `reading_once`, and what is read is the same."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from truerank.errors import InputError
from truerank.sources import compressed, open_documents, open_queries, read_qrels_frame, read_topics, sharing
from truerank.sources.runs import run_frames
from truerank.sources.sharing import reading_once, shared_stream, shared_value

COLUMNS = ("topic_id", "doc_id", "score")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files whose whole content was asked for, once for each time."""
    names: list[str] = []
    chunks = compressed.chunks

    def counted(path: Path, size: int = 0) -> Iterator[bytes]:
        names.append(path.name)
        return chunks(path, size)

    monkeypatch.setattr(compressed, "chunks", counted)
    return names


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    docs = "".join(f'{{"_id": "d{n}", "text": "a text about number {n}"}}\n' for n in range(50))
    texts = {
        "a.run": "".join(f"t{t} Q0 d{n} {n + 1} {9 - n} tag\n" for t in range(3) for n in range(9)),
        "test.qrels": "".join(f"t{t} 0 d{n} {n % 2}\n" for t in range(3) for n in range(9)),
        "topics.tsv": "".join(f"t{t}\twhat is number {t}\n" for t in range(3)),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "docs.jsonl.gz").write_bytes(gzip.compress(docs.encode()))
    return {name: tmp_path / name for name in (*texts, "docs.jsonl.gz")}


def everything(files: dict[str, Path]) -> tuple[object, ...]:
    """What all readers hand on."""
    documents = open_documents(str(files["docs.jsonl.gz"]))
    return (
        pl.concat(run_frames(files["a.run"])).rows(),
        pl.concat(run_frames(files["a.run"], COLUMNS)).rows(),
        read_qrels_frame(str(files["test.qrels"])).rows(),
        read_topics(str(files["topics.tsv"])),
        list(open_queries(str(files["topics.tsv"])).batches()),
        list(documents), documents.counts, documents.fingerprint, compressed.fingerprint(files["a.run"]),
    )  # fmt: skip


def test_what_is_read_is_the_same_and_each_file_is_read_once(files: dict[str, Path], opened: list[str]) -> None:
    alone = everything(files)
    opened.clear()
    with reading_once():
        assert everything(files) == alone
        once = sorted(opened)
        assert everything(files) == alone
        # What is kept is not read again; columns that only one reader wants are kept with the others.
        assert sorted(opened) == once
        assert tuple(next(run_frames(files["a.run"], COLUMNS)).columns) == COLUMNS
    opened.clear()
    assert everything(files) == alone
    assert len(opened) > len(once)


def test_a_file_that_was_written_anew_is_read_anew(files: dict[str, Path]) -> None:
    with reading_once():
        assert len(read_qrels_frame(str(files["test.qrels"]))) == 27
        files["test.qrels"].write_text("t0 0 d1 1\n")
        assert read_qrels_frame(str(files["test.qrels"])).rows() == [("t0", "d1", 1)]
        docs = files["docs.jsonl.gz"].parent / "folder"
        docs.mkdir()
        (docs / "one.txt").write_text("the first text")
        assert len(list(open_documents(str(docs)))) == 1
        (docs / "two.txt").write_text("the second text")
        assert len(list(open_documents(str(docs)))) == 2


def test_only_what_was_read_to_its_end_and_has_room_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_text("")
    read = 0

    def numbers() -> Iterator[int]:
        nonlocal read
        read += 1
        yield from range(4)

    with reading_once(limit=8):
        assert next(shared_stream(path, "some", numbers, lambda _: 1)) == 0
        for _ in range(2):
            assert list(shared_stream(path, "some", numbers, lambda _: 1)) == [0, 1, 2, 3]
        assert read == 2
        # Six more are too many beside the four; without room each reader reads for itself.
        for _ in range(2):
            assert list(shared_stream(path, "large", numbers, lambda _: 2)) == [0, 1, 2, 3]
        assert read == 4
        assert (
            shared_value(path, "value", lambda: "x", size=4) == shared_value(path, "value", lambda: "y", size=4) == "x"
        )
    assert shared_value(path, "value", lambda: "y") == "y"
    assert not sharing.is_shared()


def test_a_fault_is_told_to_every_reader(files: dict[str, Path]) -> None:
    files["a.run"].write_text("t0 Q0 d1 1 9 tag\nt0 Q0 d2\n")
    with reading_once():
        for _ in range(2):
            with pytest.raises(InputError, match="3 columns instead of 6"):
                list(run_frames(files["a.run"]))
        with pytest.raises(InputError, match="no such file"):
            compressed.fingerprint(files["a.run"].with_name("gone"))

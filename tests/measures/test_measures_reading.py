"""Runs and judgments as columns: the same values and the same faults, with the same lines, as the streams of rows."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.sources import read_qrels, read_qrels_frame, read_run, read_run_frame, run_frames
from truerank.sources.lines import repeated_pair
from truerank.sources.qrels import QREL_SCHEMA
from truerank.sources.runs import RUN_SCHEMA

words = st.sampled_from(
    ["1", "02", "d", "Q0", "é", '"d', 'd"', "#", "-3", "1.5", "1e2", "1_0", "nan", "inf", "0x1", "ü\u00a0x"]
)
blanks = st.sampled_from([" ", " ", " ", "\t", "  ", " \t", "\u3000"])
lines = st.lists(st.tuples(words, blanks), min_size=0, max_size=8).map(
    lambda cells: "".join(word + blank for word, blank in cells)
)
# The documents are numbered by line, "{}", so that no pair occurs twice.
run_line = st.tuples(st.sampled_from(["1", "2"]), blanks, blanks, st.integers(-5, 9), st.floats(-5, 5)).map(
    lambda v: f"{v[0]}{v[1]}Q0 {{}}{v[2]}{v[3]} {v[4]!r} tag"
)
qrel_line = st.tuples(
    st.sampled_from(["1", "2"]), st.sampled_from(["0 ", "", "Q0\t"]), st.integers(0, 40), st.integers(-2, 3)
).map(lambda v: f"{v[0]} {v[1]}d{v[2]} {v[3]}")
ends = st.sampled_from(["\n", "\r\n"])


def outcome(read: object) -> object:
    try:
        return read()  # type: ignore[operator]
    except InputError as error:
        return str(error)


@settings(max_examples=120)
@given(st.lists(run_line | run_line | run_line | lines, min_size=1, max_size=12), ends, st.booleans())
def test_a_run_reads_as_its_stream(
    tmp_path_factory: pytest.TempPathFactory, content: list[str], end: str, marked: bool
) -> None:
    path = tmp_path_factory.mktemp("run") / "any.run"
    numbered = [line.replace("{}", f"d{number}") for number, line in enumerate(content)]
    path.write_bytes((b"\xef\xbb\xbf" if marked else b"") + end.join(numbered).encode())
    stream = outcome(lambda: [tuple(row) for row in read_run(path)])
    assert outcome(lambda: read_run_frame(path).rows()) == stream


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", "2"]), st.sampled_from(["0 ", "", "Q0\t"]), st.integers(0, 40), st.integers(-2, 3)
        ).map(lambda v: f"{v[0]} {v[1]}d{v[2]} {v[3]}")
        | lines,
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
def test_judgments_read_as_their_stream(
    tmp_path_factory: pytest.TempPathFactory, content: list[str], header: bool
) -> None:
    path = tmp_path_factory.mktemp("qrels") / "any.qrels"
    path.write_text("\n".join(["query-id\tcorpus-id\tscore"] * header + content), encoding="utf-8")
    stream = outcome(lambda: [tuple(qrel[:3]) for qrel in read_qrels(str(path))])
    assert outcome(lambda: read_qrels_frame(str(path)).rows()) == stream


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        ("", bytes),
        (".gz", gzip.compress),
        (".zst", zstandard.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
    ],
)
def test_compressed(tmp_path: Path, ending: str, pack: object) -> None:
    path = tmp_path / f"a.run{ending}"
    path.write_bytes(pack(b"1 Q0 a 1 2.5 t\r\n1\tQ0\tb\t2\t1.25\tt\r\n"))  # type: ignore[operator]
    frame = read_run_frame(path)
    assert frame.schema == pl.Schema(RUN_SCHEMA)
    assert frame.rows() == [("1", "a", 1, 2.5, "t"), ("1", "b", 2, 1.25, "t")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 Q0 a 1 2 t\n1 Q0 b 2 1\n", r"a\.run:2: 5 columns instead of 6"),
        (b"1 Q0 a 1 2 t\n1 Q0 b 2 1 t x\n", r"a\.run:2: 7 columns instead of 6"),
        (b"1 Q0 a 1 2 t\n\n1 Q0 b 2 nan t\n", r"a\.run:3: the score 'nan' is not finite"),
        (b"1 Q0 a 1 2 t\n1 Q0 b 2 1e999 t\n", r"a\.run:2: the score '1e999' is not finite"),
        (b"1 Q0 a 1 2 t\n1 Q0 b two 1 t\n", r"a\.run:2: rank 'two' or score '1' is not a number"),
        (b"1 Q0 a 1.0 2 t\n", r"a\.run:1: rank '1\.0'"),
        (b"1 Q0 a 9223372036854775808 2 t\n", r"a\.run:1: the rank '9223372036854775808' is too large"),
        (b"1 Q0 a 1 2 t\n2 Q0 a 1 2 t\n\n1 Q0 a 2 1 t\n", r"a\.run:4: topic 1 and document a are already in line 1"),
        (b"", r"the file is empty"),
        (b"\n \n", r"the file is empty"),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07\x08" * 9, r"binary data"),
        ("1 Q0 a 1 2 t\n".encode("utf-16"), r"UTF-16"),
        (gzip.compress(b"1 Q0 a 1 2 t\n" * 3, mtime=0)[:-9], r"a\.run:\d+: the gzip file is cut off"),
    ],
    ids=["short", "long", "nan", "overflow", "word", "fraction", "huge-rank", "repeat", "empty", "blank", "binary",
         "utf-16", "cut"],
)  # fmt: skip
def test_faulty_runs(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.run"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_run_frame(path)


def test_faulty_judgments(tmp_path: Path) -> None:
    path = tmp_path / "a.qrels"
    for content, message in [
        ("1 0 a 1\n1 0 b x\n", r"a\.qrels:2: expected an integer as relevance, got 'x'"),
        ("1 0 a 1\n1 0\n", r"a\.qrels:2: 2 columns instead of 4"),
        ("1 0 a 1\n1 0 b 2147483648\n", r"a\.qrels:2: the relevance '2147483648' is too large"),
        (
            "query-id corpus-id score\n1 a 1\n2 a 1\n1 a 0\n",
            r"a\.qrels:4: topic 1 and document a are already in line 2",
        ),
        ("query-id corpus-id score\n", "no judgments in it"),
    ]:
        path.write_text(content)
        with pytest.raises(InputError, match=message):
            read_qrels_frame(str(path))
    path.write_text("1 0 a 1\n1 b -1\n")
    assert read_qrels_frame(str(path)).schema == pl.Schema(QREL_SCHEMA)
    assert read_qrels_frame(str(path)).rows() == [("1", "a", 1), ("1", "b", -1)]


def test_a_repeat_far_behind_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream forgets a pair after a million lines and more; the columns do not."""
    monkeypatch.setattr("truerank.sources.lines._BLOCK", 1 << 12)
    monkeypatch.setattr("truerank.sources.compressed._CHUNK", 1 << 11)
    path = tmp_path / "a.run"
    rows = [f"{number // 100} Q0 d{number % 100} {number % 100} {-number} t" for number in range(5_000)]
    path.write_text("\n".join([*rows, rows[7]]) + "\n")
    with pytest.raises(InputError, match=r"a\.run:5001: topic 0 and document d7 are already in line 8"):
        read_run_frame(path)
    path.write_text("\n".join(rows) + "\n")
    assert len(read_run_frame(path)) == 5_000
    assert sum(1 for _ in run_frames(path)) > 10


def test_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("1 Q0 a 1 2 t\n")
    assert [frame.columns for frame in run_frames(path, ("topic_id", "score"))] == [["topic_id", "score"]]
    path.write_text("1 Q0 a x 2 t\n")
    with pytest.raises(InputError, match="rank 'x'"):
        next(run_frames(path, ("topic_id", "score")))


def test_scores_are_the_nearest_numbers(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    scores = generator.standard_normal(3_000) * 10.0 ** generator.integers(-40, 40, 3_000)
    path = tmp_path / "a.run"
    path.write_text("".join(f"1 Q0 d{number} 1 {score!r} t\n" for number, score in enumerate(scores.tolist())))
    assert np.array_equal(read_run_frame(path)["score"].to_numpy(), scores)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("abcd")), max_size=12))
def test_repeated_pairs(pairs: list[tuple[str, str]]) -> None:
    found = repeated_pair(*(pl.Series([pair[side] for pair in pairs], dtype=pl.String) for side in (0, 1)))
    second = next((place for place, pair in enumerate(pairs) if pair in pairs[:place]), None)
    assert found == (None if second is None else (pairs.index(pairs[second]), second))

"""Properties: what is written is read again in every format and compression; no bytes cause more than InputError."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.sources import open_queries, parse
from truerank.sources.distinct import IdWindow
from truerank.text.normalising import normalise

FEW = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30).filter(
    lambda text: normalise(text) != ""
)
LINE = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30).filter(
    lambda text: normalise(text) != ""
)
RECORDS = st.lists(LINE, min_size=1, max_size=12).map(
    lambda texts: [(f"q{number}", text) for number, text in enumerate(texts)]
)
FREE = st.lists(TEXT, min_size=1, max_size=12).map(
    lambda texts: [(f"q{number}", text) for number, text in enumerate(texts)]
)


def as_parquet(records: list[tuple[str, str]]) -> bytes:
    stream = io.BytesIO()
    pl.DataFrame(records, schema=["query_id", "query"], orient="row").write_parquet(stream)
    return stream.getvalue()


def as_json(records: list[tuple[str, str]], *, ascii_only: bool) -> list[str]:
    return [json.dumps({"query_id": name, "query": text}, ensure_ascii=ascii_only) for name, text in records]


WRITERS: dict[str, Callable[[list[tuple[str, str]]], bytes]] = {
    "jsonl": lambda records: "\n".join(as_json(records, ascii_only=False)).encode(),
    "json": lambda records: ("[" + ",\n".join(as_json(records, ascii_only=True)) + "]").encode(),
    "parquet": as_parquet,
}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("ending", PACK)
@given(records=FREE)
@settings(FEW, max_examples=12)
def test_tables_come_back(form: str, ending: str, records: list[tuple[str, str]], tmp_path: Path) -> None:
    path = tmp_path / f"a.{form}{ending}"
    path.write_bytes(PACK[ending](WRITERS[form](records)))
    source = open_queries(str(path), strict=True)
    assert [tuple(query) for query in source] == records
    assert source.counts.read == len(records)


@pytest.mark.parametrize("ending", PACK)
@given(records=RECORDS, line_end=st.sampled_from(["\n", "\r\n"]), last=st.booleans())
@settings(FEW, max_examples=25)
def test_lines_come_back(
    ending: str, records: list[tuple[str, str]], line_end: str, last: bool, tmp_path: Path
) -> None:
    path = tmp_path / f"a.tsv{ending}"
    content = line_end.join(f"{name}\t{text}" for name, text in records) + (line_end if last else "")
    path.write_bytes(PACK[ending](content.encode()))
    source = open_queries(str(path), strict=True)
    assert [tuple(query) for query in source] == records
    assert [tuple(query) for block in source.batches(2) for query in zip(*block, strict=True)] == records


@given(lines=st.lists(st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"").replace(b"\r", b"")), max_size=30))
@FEW
def test_every_line_is_counted_once(lines: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\n".join([b"first\ta b", *(b"x%d\t%s" % pair for pair in enumerate(lines))]))
    try:
        source = open_queries(str(path))
        kept = list(source)
    except InputError as error:
        assert "binary" in error.fault or "ids and numbers only" in error.fault
        return
    counts = source.counts
    assert counts.read == len(lines) + 1 == len(kept) + counts.empty + counts.skipped
    broken = 0
    for line in lines:
        try:
            line.decode()
        except UnicodeDecodeError:
            broken += 1
    # What is skipped is not repaired.
    assert counts.repaired <= broken
    assert counts.repaired == broken or counts.skipped


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
@given(cut=st.integers(min_value=6, max_value=10**6), flip=st.none() | st.integers(min_value=0, max_value=10**6))
@FEW
def test_damage_to_compressed_files(ending: str, cut: int, flip: int | None, tmp_path: Path) -> None:
    lines = "".join(f"{number}\tquery {number * 7919 % 1009}\n" for number in range(300))
    data = bytearray(PACK[ending](lines.encode()))
    if flip is None:
        data = data[: 6 + cut % (len(data) - 6)]
    else:
        data[flip % len(data)] ^= 0x40
    path = tmp_path / f"a.tsv{ending}"
    path.write_bytes(bytes(data))
    try:
        found = list(open_queries(str(path)))
    except InputError as error:
        assert str(path) in str(error)
    else:
        assert flip is not None, "a file that is cut off was read without a word"
        assert isinstance(found, list)


@given(st.text(max_size=60))
@FEW
def test_parsing_a_name_never_fails_otherwise(text: str) -> None:
    with contextlib.suppress(InputError):
        assert parse(text).name


@given(
    records=st.lists(st.tuples(st.integers(0, 15), st.integers(0, 2)), max_size=80),
    size=st.integers(1, 20),
)
@FEW
def test_the_id_window_agrees_with_a_dictionary(records: list[tuple[int, int]], size: int) -> None:
    window = IdWindow()
    first: dict[int, tuple[int, int]] = {}
    for start in range(0, len(records), size):
        part = records[start : start + size]
        repeated, expected = 0, None
        for offset, (name, text) in enumerate(part):
            earlier = first.setdefault(name, (text, start + offset + 1))
            if earlier[1] == start + offset + 1:
                continue
            if earlier[0] == text:
                repeated += 1
            elif expected is None:
                expected = (offset, earlier[1])
        lines = range(start + 1, start + len(part) + 1)
        repeats, conflict = window.add([str(name) for name, _ in part], [str(text) for _, text in part], lines)
        assert (None if conflict is None else tuple(conflict)) == expected
        if conflict is not None:
            return
        assert len(repeats) == repeated

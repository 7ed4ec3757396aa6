"""Training queries: every shape of file, what is counted, and the fault of every broken one."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import zstandard

from truerank.errors import InputError
from truerank.sources import SourceCounts, open_queries

PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000")
ZSTD = zstandard.ZstdCompressor().compress


def written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def pairs(spec: object) -> list[tuple[str, str]]:
    return [tuple(query) for query in open_queries(str(spec))]


TWO = [("q1", "lyme disease"), ("q2", "black bear attacks")]
SHAPES = {
    "two columns": ("a.tsv", "q1\tlyme disease\nq2\tblack bear attacks\n"),
    "Windows line ends and a byte order mark": ("a.tsv", "\ufeffq1\tlyme disease\r\nq2\tblack bear attacks\r\n"),
    "by content": ("a.txt", "q1\tlyme disease\nq2\tblack bear attacks\n"),
    "ORCAS": ("a.tsv", "q1\tlyme disease\tD1\thttp://x\nq2\tblack bear attacks\tD2\thttp://y\n"),
    "top1000": ("a.tsv", "q1\t7\tlyme disease\tA text.\nq2\t8\tblack bear attacks\tTwo.\n"),
    "TSV with header": ("a.tsv", "text\tquery_id\nlyme disease\tq1\nblack bear attacks\tq2\n"),
    "CSV": ("a.csv", 'query_id,query\nq1,lyme disease\nq2,"black bear attacks"\n'),
    "CSV by content, with semicolons": ("a.txt", "qid;question\nq1;lyme disease\nq2;black bear attacks\n"),
    "BEIR": ("a.jsonl", '{"_id":"q1","text":"lyme disease"}\n\n{"_id":"q2","text":"black bear attacks"}\n'),
    "JSONL by content": ("a.txt", '{"qid":"q1","query":"lyme disease"}\n{"qid":"q2","query":"black bear attacks"}\n'),
    "sentence-transformers": (
        "a.jsonl",
        '{"id":"q1","anchor":"lyme disease","positive":"x"}\n{"id":"q2","anchor":"black bear attacks"}\n',
    ),
    "array": ("a.json", '[{"id":"q1","question":"lyme disease"},\n {"id":"q2","question":"black bear attacks"}]'),
    "by id": ("a.json", '{"q1": "lyme disease", "q2": "black bear attacks"}'),
    "doccano": (
        "a.jsonl",
        '{"id":5,"data":"lyme disease","label":["x"],"ms-marco-qid":"q1","title":"t"}\n'
        '{"id":6,"data":"black bear attacks","label":[],"ms-marco-qid":"q2","title":"t"}\n',
    ),
    "Label Studio": (
        "a.json",
        '[{"id":1,"data":{"query_id":"q1","query":"lyme disease"},"annotations":[]},'
        '{"id":2,"data":{"query_id":"q2","query":"black bear attacks"},"annotations":[]}]',
    ),
    "TREC": (
        "a.txt",
        "<top>\n<num> Number: q1\n<title> lyme disease\n</top>\n"
        "<top>\n<num> Number: q2\n<title>\nblack bear\nattacks\n</top>\n",
    ),
    "MS MARCO QnA": (
        "a.json",
        '{"answers":{"0":["a {\\"b\\": ["],"1":[]},"query":{"0":"lyme disease","1":"black bear attacks"},'
        '"query_id":{"0":"q1","1":"q2"},"query_type":{"0":"X","1":"Y"}}',
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str, tmp_path: Path) -> None:
    name, content = SHAPES[shape]
    source = open_queries(str(written(tmp_path / name, content)))
    assert [tuple(query) for query in source] == TWO
    assert [tuple(query) for query in source] == TWO
    assert source.counts == SourceCounts(read=2)
    assert source.name == "a"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "lyme disease\nblack bear\n", [("1", "lyme disease"), ("2", "black bear")]),
        ("a.tsv", "a query\ta passage\tanother\nmore words\tx y\tz\n", [("1", "a query"), ("2", "more words")]),
        ("a.tsv", "q1\ta b\tc\nq2\td e\nq3\tf g\n", [("q1", "a b\tc"), ("q2", "d e"), ("q3", "f g")]),
        ("a.tsv", "\ta b\nq2\tc d\n", [("line-1", "a b"), ("q2", "c d")]),
        ("a.txt", "wt09-1:obama tree\nwt09-2:french lick\n", [("wt09-1", "obama tree"), ("wt09-2", "french lick")]),
        ("a.txt", "what: is\n10: no\n", [("1", "what: is"), ("2", "10: no")]),
        ("a.jsonl", '["a query", "a passage"]\n["other", "x"]\n', [("1", "a query"), ("2", "other")]),
        ("a.jsonl", '{"id": 2, "query": "a"}\n{"query": "b"}\n', [("2", "a"), ("line-2", "b")]),
        ("a.jsonl", '{"query": 1984}\n{"query": "b"}\n', [("1", "1984"), ("2", "b")]),
        ("a.csv", 'query,x\n"two\nlines, quoted",1\nb,2\n', [("2", "two\nlines, quoted"), ("4", "b")]),
    ],
)  # fmt: skip
def test_ids_and_columns(name: str, content: str, expected: list[tuple[str, str]], tmp_path: Path) -> None:
    assert pairs(written(tmp_path / name, content)) == expected


@pytest.mark.parametrize(
    ("name", "content", "column", "expected"),
    [
        ("a.tsv", "1\tx y\tlyme disease\n", "3", [("1", "lyme disease")]),
        ("a.tsv", "lyme disease\t1\n", "1", [("1", "lyme disease")]),
        ("a.tsv", "id\tfoo\tbar\n7\ta b\tc d\n", "bar", [("7", "c d")]),
        ("a.csv", "id,foo,bar\n7,a b,c d\n", "bar", [("7", "c d")]),
        ("a.csv", "id,foo,bar\n7,a b,c d\n", "2", [("7", "a b")]),
        ("a.jsonl", '{"query":"x","rewrite":"y"}\n', "rewrite", [("1", "y")]),
    ],
)
def test_chosen_columns(name: str, content: str, column: str, expected: list[tuple[str, str]], tmp_path: Path) -> None:
    assert pairs(f"{written(tmp_path / name, content)}#{column}") == expected


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical])
def test_parquet(dtype: type[pl.DataType], tmp_path: Path) -> None:
    frame = pl.DataFrame({"document": ["x"] * 3, "query": ["a b", None, "c"], "query_id": [7, 8, 9]})
    frame.with_columns(pl.col("query").cast(dtype)).write_parquet(tmp_path / "a.parquet", row_group_size=2)
    source = open_queries(str(tmp_path / "a.parquet"))
    assert [tuple(query) for query in source] == [("7", "a b"), ("9", "c")]
    assert source.counts == SourceCounts(read=3, skipped=1)
    assert pairs(f"{tmp_path / 'a.parquet'}#document") == [("7", "x"), ("8", "x"), ("9", "x")]
    frame.select("document").write_parquet(tmp_path / "c.parquet", row_group_size=2)
    assert pairs(f"{tmp_path / 'c.parquet'}#document") == [("1", "x"), ("2", "x"), ("3", "x")]
    packed = written(tmp_path / "b.parquet.gz", gzip.compress((tmp_path / "a.parquet").read_bytes()))
    assert pairs(packed) == [("7", "a b"), ("9", "c")]


def test_beir_folder_is_read_whole(tmp_path: Path) -> None:
    written(tmp_path / "nf" / "queries.jsonl.gz", gzip.compress(b'{"_id":"1","text":"a"}\n{"_id":"2","text":"b"}\n'))
    written(tmp_path / "nf" / "qrels" / "train.tsv", "query-id\tcorpus-id\tscore\n1\td\t1\n")
    source = open_queries(str(tmp_path / "nf"))
    assert [query.query_id for query in source] == ["1", "2"]
    assert source.name == "nf"


@pytest.mark.parametrize(
    ("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", ZSTD)]
)
def test_compressed(ending: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    lines = [f"q{number}\tquery number {number * 7919 % 10007}" for number in range(1, 5001)]
    data = ("\n".join(lines) + "\n").encode()
    whole = pack(data)
    members = pack(data[:30000]) + pack(data[30000:])
    for content in (whole, members):
        source = open_queries(str(written(tmp_path / f"log.tsv{ending}", content)))
        assert [f"{query.query_id}\t{query.text}" for query in source] == lines
        assert source.name == "log"
    # The ending may lie, the content does not.
    assert len(pairs(written(tmp_path / "log.tsv", whole))) == 5000
    cut = written(tmp_path / f"cut.tsv{ending}", whole[: len(whole) * 2 // 3])
    with pytest.raises(InputError, match="cut off") as caught:
        pairs(cut)
    assert caught.value.where == str(cut)
    assert caught.value.line is not None and 0 < caught.value.line < 5000
    assert "download or copy it again" in caught.value.remedy


def test_a_truncated_file_names_the_line_that_is_not_there(tmp_path: Path) -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    flushed = compressor.compress(b"1\ta\n2\tb\n3\tc") + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    source = open_queries(str(written(tmp_path / "a.tsv.zst", flushed)))
    blocks = source.batches(1)
    assert [next(blocks).ids, next(blocks).ids] == [["1"], ["2"]]
    with pytest.raises(InputError) as caught:
        next(blocks)
    assert caught.value.line == 3


def test_zeros_behind_gzip_are_ignored_and_garbage_is_not(tmp_path: Path) -> None:
    data = gzip.compress(b"1\ta\n")
    assert pairs(written(tmp_path / "a.gz", data + b"\0" * 512)) == [("1", "a")]
    with pytest.raises(InputError, match="broken gzip data"):
        pairs(written(tmp_path / "b.gz", data + b"garbage"))


def test_counts(tmp_path: Path) -> None:
    content = b"1\tcaf\xe9 noir\n2\t \xe2\x80\x8b\n3\n\n5\t a \x00b\n6\t\xc3\xa9t\xc3\xa9\n1\tcaf\xe9 noir\n"
    source = open_queries(str(written(tmp_path / "a.tsv", content)))
    assert [tuple(query) for query in source] == [
        ("1", "café noir"),
        ("5", " a \x00b"),
        ("6", "été"),
        ("1", "café noir"),
    ]
    assert source.counts == SourceCounts(read=7, empty=2, repaired=2, skipped=1, repeated=1)


def test_strict_names_the_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", b"1\ta\n2\tb\n3\tcaf\xe9\n")
    with pytest.raises(InputError, match="0xe9 is not UTF-8") as caught:
        list(open_queries(str(path), strict=True))
    assert (caught.value.where, caught.value.line) == (str(path), 3)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_repaired_records_in_other_formats(name: str, tmp_path: Path) -> None:
    content = {
        "a.jsonl": b'{"query":"caf\xe9"}\n{"query":"b"}\n',
        "a.json": b'[{"query":"caf\xe9"},{"query":"b"}]',
        "a.csv": b"id,query\n1,caf\xe9\n2,b\n",
    }[name]
    path = written(tmp_path / name, content)
    source = open_queries(str(path))
    assert [query.text for query in source] == ["café", "b"]
    assert source.counts == SourceCounts(read=2, repaired=1)
    with pytest.raises(InputError, match="not UTF-8"):
        list(open_queries(str(path), strict=True))


def test_halves_of_surrogate_pairs_are_replaced(tmp_path: Path) -> None:
    source = open_queries(str(written(tmp_path / "a.jsonl", '{"query":"a\\ud800b"}\n{"query":"\\ud83d\\ude00"}\n')))
    assert [query.text for query in source] == ["a\ufffdb", "😀"]
    assert source.counts.repaired == 1


@pytest.mark.parametrize("gap", [1, 300_000])
def test_one_id_with_two_texts(gap: int, tmp_path: Path) -> None:
    lines = [f"{number}\ttext {number}" for number in range(gap)]
    path = written(tmp_path / "a.tsv", "\n".join(["x\tone", *lines, "x\ttwo"]))
    with pytest.raises(InputError, match="the id 'x' has another text in line 1") as caught:
        list(open_queries(str(path)).batches())
    assert caught.value.line == gap + 2


def test_batches_are_even_whatever_was_left_out(tmp_path: Path) -> None:
    content = "".join(f"{number}\t{'' if number % 3 == 0 else 'word'} \n" for number in range(100_000))
    source = open_queries(str(written(tmp_path / "a.tsv", content)))
    blocks = list(source.batches(1000))
    assert [len(block.ids) for block in blocks] == [1000] * 66 + [666]
    assert blocks[-1].ids[-1] == "99998"
    assert source.counts == SourceCounts(read=100_000, empty=33_334)
    partial = source.batches(10)
    next(partial)
    assert 0 < source.counts.read < 100_000


def test_line_numbers_are_right_across_chunks(tmp_path: Path) -> None:
    long = "word " * 40
    content = "".join(f"{number}\t{long}{number}\r\n" for number in range(1, 20_001)).encode() + b"x\t\xff\n"
    path = written(tmp_path / "a.tsv.gz", gzip.compress(content))
    with pytest.raises(InputError) as caught:
        list(open_queries(str(path), strict=True).batches())
    assert caught.value.line == 20_001


def test_fingerprint_is_of_the_bytes_on_disk(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "1\ta\n")
    first = open_queries(str(path)).fingerprint
    assert first == "sha256:" + hashlib.sha256(b"1\ta\n").hexdigest() + ";bytes=4"
    assert open_queries(f"{path}#2").fingerprint == f"{first};column=2"
    written(path, "1\tb\n")
    assert open_queries(str(path)).fingerprint != first


def qna_file(path: Path, records: int) -> Path:
    passage = json.dumps([{"passage_text": 'He said: "{[" ' + "word " * 300, "is_selected": 0}] * 3)
    with path.open("w") as stream:
        stream.write('{"passages":{')
        stream.write(",".join(f'"{number}":{passage}' for number in range(records)))
        stream.write('},"query":{' + ",".join(f'"{number}":"what is {number}"' for number in range(records)))
        stream.write('},"query_id":{' + ",".join(f'"{number}":{number + 100}' for number in range(records)) + "}}")
    return path


def test_qna_streams(tmp_path: Path) -> None:
    path = qna_file(tmp_path / "train_v2.1.json", 6_000)
    assert path.stat().st_size > 25_000_000
    source = open_queries(str(path))
    tracemalloc.start()
    try:
        total = sum(len(block.ids) for block in source.batches(1000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 6_000
    assert peak < 14_000_000
    assert next(iter(source)) == ("100", "what is 0")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"query":{"0":"a","1":"b"},"query_id":{"1":5,"0":6}}', "columns in different orders"),
        ('{"query":{"0":"a","1":"b"},"query_id":{"0":5', "cut off"),
        ('{"query":{"0":"a","1":"b', "cut off"),
        ('{"answers":{"0":[]},"query_id":{"0":5}}', "no column 'query'"),
        ('{"answers":{"0":[]} "query":{}}', "no valid JSON"),
    ],
)
def test_broken_qna(content: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        pairs(written(tmp_path / "a.json", content))
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "fault", "remedy", "line"),
    [
        ("a.tsv", "", "the file is empty", "give a file", None),
        ("a.tsv.gz", gzip.compress(b"", mtime=0), "the file is empty", "give a file", None),
        ("a.tsv", PNG, "a PNG picture", "text or Parquet", 1),
        ("a.txt", bytes(range(32)) * 9, "binary data", "text or Parquet", 1),
        ("a.tsv", "1\ta\n".encode("utf-16"), "UTF-16", "iconv", 1),
        ("a.zip", b"PK\x03\x04xxxxxxxx", "a ZIP archive", "unpack it", 1),
        ("a.tsv", "1\t0\tD5\t1\n1\t0\tD6\t0\n", "ids and numbers only", "file of the queries", 1),
        ("a.qrels", "1 0 D5 1\n", "no query texts", "file of the queries", None),
        ("a.csv", "number,x\n1,2\n", "no column or key that holds a query", "'number', 'x'", 2),
        ("a.csv", 'query\n"open\n', "no valid CSV", "quote", 2),
        ("a.jsonl", '{"query":"a"}\n{"query":\n', "no valid JSON", "correct the line", 2),
        ("a.jsonl", '{"query":"a"}\n3\n', "neither an object", "one record a line", 2),
        ("a.jsonl", "[" * 100_000 + "\n", "no valid JSON", "correct the line", 1),
        ("a.json", '[{"query":"a"},\n{"query":"b"}', "the file ends where", "cut off", 2),
        ("a.parquet", b"PAR1 no parquet", "no valid Parquet", "again", None),
        ("topics.trec", "no topics here\n", "no topics: there is no <top> or <topic>", "?format=", None),
        ("t.txt", "<top>\n<title> a\n</top>", "without number", "<num>", 1),
        ("t.xml", "<topics>\n<topic number='1'>\n</topics>", "without </topic>", "copy it again", 2),
    ],
)
def test_faults(name: str, content: str | bytes, fault: str, remedy: str, line: int | None, tmp_path: Path) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(InputError) as caught:
        pairs(path)
    assert fault in caught.value.fault
    assert remedy in caught.value.remedy
    assert (caught.value.where, caught.value.line) == (str(path), line)


@pytest.mark.parametrize("spec", ["a.tsv#9", "a.tsv#name", "a.csv#name", "a.jsonl#name", "a.parquet#name"])
def test_a_missing_column_is_named(spec: str, tmp_path: Path) -> None:
    written(tmp_path / "a.tsv", "1\ta b\n")
    written(tmp_path / "a.csv", "id,query\n1,a\n")
    written(tmp_path / "a.jsonl", '{"query":"a"}\n')
    pl.DataFrame({"query": ["a"]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=f"no column.*'{spec.partition('#')[2]}'"):
        pairs(tmp_path / spec)


def test_a_parquet_column_that_holds_no_text(tmp_path: Path) -> None:
    pl.DataFrame({"query": [b"a"], "id": [["b"]], "text": ["c"]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="holds Binary, not texts"):
        pairs(tmp_path / "a.parquet")
    assert pairs(f"{tmp_path / 'a.parquet'}#text") == [("1", "c")]


def test_missing_files_and_folders(tmp_path: Path) -> None:
    written(tmp_path / "queries.tsv", "1\ta\n")
    with pytest.raises(InputError, match=r"no such file. did you mean .*queries\.tsv\?"):
        open_queries(str(tmp_path / "querys.tsv"))
    with pytest.raises(InputError, match="there is no folder"):
        open_queries(str(tmp_path / "nowhere" / "queries.tsv"))
    with pytest.raises(InputError, match="no BEIR folder"):
        open_queries(str(tmp_path))
    with pytest.raises(InputError, match="cannot be read as csv"):
        open_queries(f"{tmp_path}?format=csv")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        open_queries(str(tmp_path / "pipe"))


@pytest.mark.parametrize("locked", ["file", "folder"])
def test_no_permission(locked: str, tmp_path: Path) -> None:
    path = written(tmp_path / "folder" / "a.tsv", "1\ta\n")
    (path if locked == "file" else path.parent).chmod(0)
    user = os.geteuid()
    if user == 0:  # root may read everything
        os.seteuid(65534)
    try:
        with pytest.raises(InputError, match="no permission"):
            open_queries(str(path))
    finally:
        os.seteuid(user)
        path.parent.chmod(0o700)


def test_a_forced_format_wins(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "q1\tlyme disease\n")
    assert pairs(f"{path}?format=lines") == [("1", "q1\tlyme disease")]
    assert pairs(f"{written(tmp_path / 'b.dat', chr(10).join(['id,query', '1,a']))}?format=csv") == [("1", "a")]

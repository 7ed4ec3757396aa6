"""Every reader against the cases that once broke one, against mutated files, and against what is not a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from every_reader import READERS, attempt, mutated
from truerank.errors import TruerankError

_QNA = b'{"answers": {"0": []}, "passages": {"0": []}, "query": {"0": "a"}, "query_id": {"0": %s}}'
#: Reader, file name, content, and whether it must be refused. Each was a traceback, a hang or a difference once.
CASES = {
    "a version of 5,000 digits in a scheme": ("schemes", "x.toml", b"version = " + b"1" * 5000, True),
    "20,000 brackets in a scheme": ("schemes", "x.toml", b"choices = " + b"[" * 20_000, True),
    "20,000 dots in a scheme": ("schemes", "x.toml", b".".join([b"a"] * 20_000) + b" = 1", True),
    "a huge number in QnA": ("annotation logs", "x.json", _QNA % (b"9" * 5000), True),
    "a number beyond floats in QnA": ("annotation logs", "x.json", _QNA % (b"1" + b"0" * 400), True),
    "60,000 brackets in QnA": ("queries", "x?format=qna", _QNA % (b"[" * 60_000), True),
    "a bare carriage return in counts": ("counts", "x.csv", b"set,00,01,10,11,21,12,documents,error\ra,1\r", True),
    "a carriage return in a cell of counts": (
        "counts", "x.csv", b"set,00,01,10,11,21,12,documents,error\na\rb,1,1,1,1,1,1,9,\n", True,
    ),
    "more cells than counts have": ("counts", "x.csv", b"set,00\n1,2,3\n", True),
    "a record without values in a mapping": ("mapping tables", "x.jsonl", b"{}\n", True),
    "half a surrogate pair in a mapping": ("mapping tables", "x.jsonl", b'{"V1": "\\ud800", "V2": "b"}\n', False),
    "deep records in a mapping": ("mapping tables", "x.jsonl", b'{"V1": ' + b"[" * 20_000 + b"\n", True),
    "a header with a wide blank": ("qrels", "x.tsv", b"query-id\tcorpus-id\xc2\xa0\tscore\n1\td1\t1\n", False),
    "a relevance beyond 32 bits": ("qrels", "x.txt", b"1 0 d 2147483648\n", True),
    "the lowest relevance of 32 bits": ("qrels", "x.txt", b"1 0 d -2147483648\n", False),
    "a rank below 64 bits": ("runs", "x.run", b"1 Q0 d -9223372036854775809 1 t\n", True),
    "the lowest rank of 64 bits": ("runs", "x.run", b"1 Q0 d -9223372036854775808 1 t\n", False),
    "a relevance of 5,000 digits": ("qrels", "x.txt", b"1 0 d " + b"9" * 5000 + b"\n", True),
    "a rank beyond 64 bits": ("runs", "x.run", b"1 Q0 d 9223372036854775808 1 t\n", True),
    "a score that is not a number": ("runs", "x.run", b"1 Q0 d 1 nan t\n", True),
    "a score beyond floats": ("runs", "x.run", b"1 Q0 d 1 1e400 t\n", True),
    "deep records": ("queries", "x.jsonl", b'{"text": ' + b'{"a":' * 30_000 + b"\n", True),
    "a rank beyond 64 bits in first answers": (
        "first answers", "x.csv", b"system,query_id,doc_id,rank\na,1,d,9223372036854775808\n", True,
    ),
    "a sign that is not a number in first answers": (
        "first answers", "x.csv", "system,query_id,doc_id,rank\na,1,d,\u00b21\n".encode(), True,
    ),
    "an instance without values": ("instances", "x.jsonl", b"{}\n", True),
    "a line of a next-line sign": ("queries", "x.tsv", b"\x85\n, \"~~\tr\t\x92:&ifile:", False),
    "half a surrogate pair": ("queries", "x.jsonl", b'{"_id": "1", "text": "a\\ud800b"}\n', False),
    "deep weights": ("weights", "x.safetensors", (5000).to_bytes(8, "little") + b"[" * 5000, True),
    "deep settings of an archive": ("archive settings", "x.toml", b"retries = " + b"[" * 20_000, True),
    "a deep answer of a model": ("answers of models", "x.txt", b'{"labels": ' + b"[" * 60_000, False),
    "a long number in an answer of a model": ("answers of models", "x.txt", b'{"labels": ' + b"1" * 5000 + b"}", False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_saved_cases(case: str, tmp_path: Path) -> None:
    name, file, content, refused = CASES[case]
    reader = READERS[name]
    said = attempt(reader, bytes([reader.files.index(file)]) + content, tmp_path)
    assert bool(said) == refused, said
    assert "\n" not in said and len(said) < 2000


@pytest.mark.parametrize("name", READERS)
def test_small_valid_files_are_read(name: str, tmp_path: Path) -> None:
    known = {"instances", "allowed documents"}
    said = [attempt(READERS[name], data, tmp_path) for data in READERS[name].inputs()]
    assert name in known or not any(said), said
    assert not all(said)


@pytest.mark.parametrize("name", READERS)
def test_mutated_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    for data in mutated(READERS[name].inputs(), 100, seed=17):
        attempt(READERS[name], data, tmp_path)


@pytest.mark.parametrize("name", sorted(READERS.keys() - {"answers of models"}))
def test_a_named_pipe_is_refused(name: str, tmp_path: Path) -> None:
    for file in READERS[name].files:
        path = tmp_path / file.partition("?")[0].partition("#")[0]
        if not path.exists():
            os.mkfifo(path)
        with pytest.raises(TruerankError):
            READERS[name].read(str(tmp_path / file))

"""What each reader reads: names of files, and small valid contents to begin from."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.lab import ready

__all__ = ["FILES", "Files"]


class Files(NamedTuple):
    """The files of one reader.

    Attributes:
        names: of the file, chosen by the first byte of an input; what follows "?" belongs to the source's name.
        seeds: valid contents, each with the position of its name.
    """

    names: tuple[str, ...]
    seeds: tuple[tuple[int, bytes], ...]


def _jsonl(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _parquet(**columns: Any) -> bytes:
    target = io.BytesIO()
    pl.DataFrame(columns).write_parquet(target)
    return target.getvalue()


def _tar(**members: bytes) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archived:
        for name, content in members.items():
            info = tarfile.TarInfo(name.replace("_", "."))
            info.size = len(content)
            archived.addfile(info, io.BytesIO(content))
    return target.getvalue()


def _safetensors() -> bytes:
    header = json.dumps({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(16)


_TOPICS: Final = (
    b"<top>\n<num> Number: 301\n<title> organized crime\n<desc> Description:\nWhat?\n<narr> Narrative:\nAll.\n</top>\n"
)
_XML: Final = b'<topics><topic number="1"><query>a b</query><description>c</description></topic></topics>'
_DOC: Final = b"<DOC>\n<DOCNO> a1 </DOCNO>\n<TITLE>t</TITLE>\n<TEXT>\nbody &amp; text\n</TEXT>\n</DOC>\n"
_QNA: Final = json.dumps(
    {
        "answers": {"0": ["yes"], "1": ["No Answer Present."]},
        "passages": {"0": [{"is_selected": 1, "passage_text": "p", "url": "u"}], "1": []},
        "query": {"0": "what", "1": "who"},
        "query_id": {"0": 5, "1": 6},
        "query_type": {"0": "entity", "1": "person"},
        "wellFormedAnswers": {"0": "[]", "1": []},
    }
).encode()
_READY: Final = Path(ready.__file__ or "").parent
_DESIGNS: Final = tuple((_READY / f"{name}.yaml").read_bytes() for name in ("leakage", "survivorship", "transfer"))
_SCHEME: Final = b"""name = "mine"
title = "t"
question = "q?"
view = "pair"
version = "1"
[[groups]]
name = "g"
title = "g"
[[choices]]
name = "yes"
key = "y"
text = "yes"
group = "g"
grade = 1
"""
_LABELS: Final = _jsonl(
    {"topic_id": "1", "query_id": "2", "query": "q", "label": "same", "annotator": "ann", "similarity": 0.9},
    {"text": "x", "labels": ["same"], "probability": 0.5, "at": "2024-01-01T00:00:00Z"},
)
_LOG: Final = _jsonl({"query_id": "1", "query": "q", "shown": ["a", {"doc_id": "b", "text": "t"}], "selected": ["b"]})
_RUN: Final = b"301 Q0 d1 1 10.5 bm25\n301 Q0 d2 2 9.5 bm25\n302\tQ0\td1\t1\t7\tbm25\n"
_QRELS: Final = b"301 0 d1 1\n301 0 d2 0\n302 0 d1 -1\n"
_TABLE_FILES: Final = ("x.tsv", "x.csv", "x.jsonl", "x.json", "x", "x.parquet", "x.txt")

#: By the name of the reader, as in `readers.READERS`.
FILES: Final[dict[str, Files]] = {
    "queries": Files(
        (*_TABLE_FILES, "x.trec", "x.xml", "x?format=qna", "x.gz", "x.zst", "x.bz2", "x.xz", "x.csv#text"),
        (
            (0, b"1\tfirst query\n2\tsecond query\n"),
            (1, b'id,text,more\n1,"a, b",c\n2,d,e\n'),
            (2, _jsonl({"_id": "1", "text": "a"}, {"_id": "2", "text": "b", "x": [1, {"y": 2}]})),
            (3, b'[{"id": 1, "query": "a"}, ["b", "c"], "d"]'),
            (3, b'{"301": "a", "302": {"title": "b"}}'),
            (4, b"one query a line\nanother one\n"),
            (5, _parquet(id=["1", "2"], query=["a", "b"])),
            (7, _TOPICS),
            (8, _XML),
            (9, _QNA),
            (10, gzip.compress(b"1\tfirst query\n", mtime=0)),
            (14, b"id;text\n1;a\n"),
        ),
    ),
    "topics": Files(
        (*_TABLE_FILES, "x.trec", "x.xml", "x.html"),
        (
            (0, b"301\torganized crime\n"),
            (1, b"topic_id,title,description,narrative\n1,a,b,c\n"),
            (2, _jsonl({"topic_id": "1", "title": "a", "variants": ["b"]})),
            (3, b'{"301": {"title": "a", "desc": "b"}}'),
            (7, _TOPICS),
            (8, _XML),
            (9, b"<html><top><num>1<title>a &eacute;</top></html>"),
        ),
    ),
    "documents": Files(
        (*_TABLE_FILES, "x.trec", "x.xml", "x.html", "x.tar", "x.gz", "x.tar.gz", "x.jsonl#body"),
        (
            (0, b"d1\tu\tt\tb\nd2\tu\tt\tb\n"),
            (1, b"doc_id,title,text\nd1,a,b\n"),
            (2, _jsonl({"_id": "d1", "title": "a", "text": "b", "url": "http://a"})),
            (3, b'[{"docno": "d1", "contents": "a"}]'),
            (5, _parquet(docid=["d1"], title=["t"], body=["b"])),
            (7, _DOC),
            (9, b"<html><head><title>a</title></head><body><p>b<script>x</script></body></html>"),
            (10, _tar(a_html=b"<p>x</p>", b_jsonl=_jsonl({"_id": "d", "text": "t"}))),
            (11, gzip.compress(_DOC, mtime=0)),
        ),
    ),
    "qrels": Files(
        ("x.txt", "x.qrels", "x.tsv"), ((0, _QRELS), (1, b"301 d1 2\n"), (2, b"query-id\tcorpus-id\tscore\n1\td1\t1\n"))
    ),
    "runs": Files(("x.run", "x.txt"), ((0, _RUN), (1, b"1 Q0 d 1 1e-3 t\n1 Q0 e 2 -1 t\n"))),
    "labels": Files(
        _TABLE_FILES,
        (
            (2, _LABELS),
            (1, b"topic_id,query_id,label\n1,2,same\n"),
            (3, b'[{"data": {"text": "a"}, "annotations": [{"result": [{"value": {"choices": ["same"]}}]}]}]'),
        ),
    ),
    "annotation logs": Files(
        ("x.json", "x.jsonl", "x.csv", "x.tsv", "x.parquet"),
        ((0, _QNA), (1, _LOG), (2, b"query_id,query,shown,selected\n1,q,a b,b\n")),
    ),
    "variants": Files(
        _TABLE_FILES,
        (
            (0, b"301\ta b\n301\tb a\n"),
            (2, _jsonl({"topic_id": "1", "variants": ["a"]})),
            (1, b"topic_id,variant\n1,a\n"),
        ),
    ),
    "instances": Files(
        _TABLE_FILES,
        (
            (0, b"query\tgood text\tbad text\n"),
            (2, _jsonl({"query": "a", "positive": "b", "negative": ["c"]})),
            (1, b"query_id,query,relevant_id,relevant,nonrelevant_id,nonrelevant\n1,a,2,b,3,c\n"),
        ),
    ),
    "items to judge": Files(
        _TABLE_FILES,
        (
            (
                2,
                _jsonl({"topic_id": "1", "query": "a", "title": "b", "query_text": "c", "doc_id": "d", "text": "e"}),
            ),
            (2, _jsonl({"topic_id": "1", "query": "a", "passages": [{"text": "x", "id": 1}], "extra": '{"a": 1}'})),
            (1, b"topic_id,query,doc_id,text,passage_1\n1,a,d,t,p\n"),
        ),
    ),
    "folds": Files(
        ("x.json", "x.txt"),
        (
            (0, b'[["1"], ["2"]]'),
            (0, b'{"a": {"predict": {"test": ["1"]}}, "b": {"predict": {"test": ["2"]}}}'),
            (0, b'{"1": 1, "2": 2}'),
            (1, b"1 a\n2 b\n"),
        ),
    ),
    "schemes": Files(
        ("x.toml", "x.json"),
        (
            (0, _SCHEME),
            (
                1,
                json.dumps(
                    {
                        "name": "m",
                        "title": "t",
                        "question": "q",
                        "view": "pair",
                        "choices": [{"name": "a", "key": "a", "text": "b"}],
                    }
                ).encode(),
            ),
        ),
    ),
    "designs": Files(("x.yaml",), tuple((0, design) for design in _DESIGNS)),
    "mapping tables": Files(
        ("x.tsv", "x.jsonl", "x.csv", "x.json", "x.parquet", "x.gz"),
        ((0, b"V1\tV2\na\tb\n"), (1, _jsonl({"V1": "a", "V2": "b"})), (2, b"V1,V2\na,b\n"), (3, b'[["a","b"]]')),
    ),
    "counts": Files(
        ("x.csv",), ((0, b'set,00,01,10,11,21,12,documents,error\na,1,2,3,4,5,6,70,10\nb,1,2,3,4,5,6,"1,000",\n'),)
    ),
    "tables of runs": Files(
        ("x.csv", "x.tsv", "x.jsonl", "x.json", "x.parquet"),
        (
            (0, b"run,group,subtask,nDCG@10,set\na,g,fullrank,0.5,a\nb,h,rerank,0.25,b\n"),
            (0, b"run,measure,value\na,P@10,0.5\n"),
            (0, b"statement,value\nx,29.4\n"),
        ),
    ),
    "allowed documents": Files(
        ("x.run", "x.tsv", "x.jsonl", "x.json", "x.parquet"),
        ((0, _RUN), (1, b"1\td1\n"), (2, _jsonl({"topic_id": "1", "doc_id": "d"}))),
    ),
    "first answers": Files(
        ("x.csv", "x.tsv", "x.jsonl", "x.parquet"), ((0, b"system,query_id,doc_id,rank\na,1,d,1\nb,1,_,NA\n"),)
    ),
    "judged topics": Files(
        ("x.csv", "x.tsv", "x.txt", "x.jsonl"), ((2, _QRELS), (0, b"topic_id,relevant,judged\n1,2,30\n"))
    ),
    "removed queries": Files(
        ("x.removed.tsv",),
        (
            (
                0,
                b"query_id\tsource\ttest\ttopic_id\tfield\tsimilarity\ttype\twhy\n1\ts\tt\t301\ttitle\t0.95\tsame\tabove\n",
            ),
        ),
    ),
    "word vectors": Files(
        ("x.txt", "x.bin", "x.gz"),
        (
            (0, b"the 0.1 0.2\nof 0.3 0.4\n"),
            (0, b"2 2\nthe 0.1 0.2\nof 0.3 0.4\n"),
            (1, b"2 2\nthe " + struct.pack("<2f", 1, 2) + b"\nof " + struct.pack("<2f", 3, 4)),
        ),
    ),
    "weights": Files(("x.safetensors",), ((0, _safetensors()),)),
    "settings": Files(
        ("x.json", "x.yaml", "x.toml"), ((0, b'{"a": [1, 2.5, null, "\\ud800"]}'), (1, _DESIGNS[0]), (2, _SCHEME))
    ),
    "archive settings": Files(("x.toml",), ((0, b"retries = 2\ntimeout = 3.5\n"),)),
    "answers of models": Files(
        ("x.txt",), ((0, b'{"labels": ["same"], "comment": "c"}'), (0, b'```json\n{"skip": "r"}\n```'))
    ),
    "grammars": Files(
        ("x.txt",),
        (
            (0, b"nDCG@10 P(rel=2)@5 AP"),
            (0, b"strata:0.8-1/10:100 then random:5"),
            (0, b"name=irds:msmarco#text?format=tsv"),
            (0, b"http://a.b/c?d=e#f"),
            (0, b"sliding:150/75"),
            (0, b"cap=1000,bound=0.6"),
        ),
    ),
}

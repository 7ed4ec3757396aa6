"""Every reader of truerank as one function of bytes, small valid contents to begin from, and seeded mutations of them.

An input is one byte, which chooses the file's name, and the content of that file. A reader may raise what truerank
raises for the user (`TruerankError`); anything else is a fault of truerank.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import os
import random
import struct
import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank import sources
from truerank.audits.pool import judged_topics
from truerank.audits.survivorship import annotation_logs, answers, instances
from truerank.audits.track import analysis, means, validation
from truerank.audits.transfer import archive
from truerank.audits.transfer import estimates as estimating
from truerank.audits.transfer.matching import versions
from truerank.errors import TruerankError
from truerank.judging import load_scheme, models
from truerank.judging.item_sources import read_items
from truerank.judging.items import Item, Text
from truerank.sources import run_tables as inputs
from truerank.sources.recognition import read_as_given
from truerank.vectors.encoders.weights import open_weights


class DifferenceError(AssertionError):
    """Two readers of one file do not say the same of it."""


@dataclass(frozen=True)
class Reader:
    """One reader.

    Attributes:
        files: names of the file, chosen by the first byte of an input; what follows "?" belongs to the source's name.
        seeds: valid contents, each with the position of its name.
        read: reads the file of that name to its end.
    """

    files: tuple[str, ...]
    seeds: tuple[tuple[int, bytes], ...]
    read: Callable[[str], object]

    def inputs(self) -> list[bytes]:
        """The seeds as inputs."""
        return [bytes([number]) + content for number, content in self.seeds]


def attempt(reader: Reader, data: bytes, folder: Path) -> str:
    """Reads one input; returns what truerank says against it, empty where it was read."""
    number = data[0] % len(reader.files) if data else 0
    name = reader.files[number]
    (folder / name.partition("?")[0]).write_bytes(data[1:])
    try:
        reader.read(str(folder / name))
    except TruerankError as error:
        return str(error) or "an error without a text"
    return ""


def _all(values: Iterable[Any]) -> None:
    deque(values, maxlen=0)


def _same(one: Callable[[], list[Any]], other: Callable[[], list[Any]]) -> None:
    """Both read the same, or both refuse the file."""
    found: list[Any] = []
    for read in (one, other):
        try:
            found.append(read())
        except TruerankError as error:
            found.append(error)
    if all(isinstance(each, TruerankError) for each in found):
        raise found[0]
    if found[0] != found[1]:
        raise DifferenceError(f"{str(found[0])[:200]} but {str(found[1])[:200]}")


def _any(*readers: Callable[[], object]) -> None:
    """All readers read it; a refusal counts where nobody does."""
    refusals = []
    for read in readers:
        try:
            read()
        except TruerankError as error:
            refusals.append(error)
    if len(refusals) == len(readers):
        raise refusals[0]


def _queries(spec: str) -> None:
    source = sources.open_queries(spec)
    _all(source.batches())
    _ = source.fingerprint, source.counts


def _documents(spec: str) -> None:
    source = sources.open_documents(spec, keep_empty=True)
    _all(source.batches())
    _ = source.fingerprint


def _records_and_frame(names: tuple[str, ...], records: Any, frame: Any) -> Callable[[str], None]:
    """Judgments or runs: records and frames must say the same."""

    def read(spec: str) -> None:
        _same(
            lambda: [tuple(getattr(one, name) for name in names) for one in records(spec)],
            lambda: frame(spec).select(names).rows(),
        )

    return read


def _annotations(spec: str) -> None:
    log = annotation_logs.open_annotations(spec)
    _all(log)
    _ = log.log_counts


@functools.cache
def _schemes() -> tuple[Any, ...]:
    return tuple(load_scheme(name) for name in ("leakage", "answerability", "relevance-documents"))


def _items(spec: str) -> None:
    _any(*(functools.partial(read_items, [spec], scheme) for scheme in _schemes()))


def _answer(spec: str) -> None:
    text = Path(spec).read_bytes().decode("utf-8", "surrogateescape")
    for scheme in _schemes():
        models.read_answer(text, scheme, Item("i1", "1", "a question", (Text("document", "a text"),)))


def _tables_of_runs(spec: str) -> None:
    _any(
        lambda: inputs.read_metadata([spec], inputs.RowFilter()),
        lambda: means.read_means(spec, inputs.RowFilter({"set": "a"})),
        lambda: means.read_means(spec, inputs.RowFilter()),
        lambda: analysis.read_stated(spec),
    )


def _weights(spec: str) -> None:
    weights = open_weights([Path(spec)])
    for name in sorted(weights.names):
        weights.tensor(name)


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
    b"<top>\n<num> Number: 301\n<title> crime\n<desc> Description:\nWhat?\n<narr> Narrative:\nAll.\n</top>\n"
)
_DOC: Final = b"<DOC>\n<DOCNO> a1 </DOCNO>\n<TITLE>t</TITLE>\n<TEXT>\nbody &amp; text\n</TEXT>\n</DOC>\n"
_QNA: Final = (
    b'{"answers": {"0": ["yes"], "1": ["No Answer Present."]}, "passages": {"0": [{"is_selected": 1, "passage_text":'
    b' "p", "url": "u"}], "1": []}, "query": {"0": "what", "1": "who"}, "query_id": {"0": 5, "1": 6}, "query_type":'
    b' {"0": "entity", "1": "person"}, "wellFormedAnswers": {"0": "[]", "1": []}}'
)
_SCHEME: Final = b"""name = "mine"
title = "t"
question = "q?"
view = "pair"
version = "1"
[[choices]]
name = "yes"
key = "y"
text = "yes"
grade = 1
"""
_LOG: Final = _jsonl({"query_id": "1", "query": "q", "shown": ["a", {"doc_id": "b", "text": "t"}], "selected": ["b"]})
_RUN: Final = b"301 Q0 d1 1 10.5 bm25\n301 Q0 d2 2 9.5 bm25\n302\tQ0\td1\t1\t7\tbm25\n"
_QRELS: Final = b"301 0 d1 1\n301 0 d2 0\n302 0 d1 -1\n"
_GOLDEN: Final = (
    b"question,expected,new,old\nhow to a?,d1,d1;d2;d3,d3;d1\nhow to b?,d2,d2;d3;d4,d4\n"
    b'how to c?,"[""d3"", ""d5""]",d3;d1;d2,\n'
)
_TABLE_FILES: Final = ("x.tsv", "x.csv", "x.jsonl", "x.json", "x", "x.parquet", "x.txt")

READERS: Final = {
    "queries": Reader(
        (*_TABLE_FILES, "x.trec", "x.xml", "x?format=qna", "x.gz", "x.zst", "x.bz2", "x.xz", "x.csv#text"),
        (
            (0, b"1\tfirst query\n2\tsecond query\n"),
            (1, b'id,text,more\n1,"a, b",c\n2,d,e\n'),
            (2, _jsonl({"_id": "1", "text": "a"}, {"_id": "2", "text": "b", "x": [1, {"y": 2}]})),
            (3, b'[{"id": 1, "query": "a"}, ["b", "c"], "d"]'),
            (3, b'{"301": "a", "302": {"title": "b"}}'),
            (5, _parquet(id=["1", "2"], query=["a", "b"])),
            (7, _TOPICS),
            (8, b'<topics><topic number="1"><query>a b</query><description>c</description></topic></topics>'),
            (9, _QNA),
            (10, gzip.compress(b"1\tfirst query\n", mtime=0)),
        ),
        _queries,
    ),
    "topics": Reader(
        (*_TABLE_FILES, "x.trec", "x.xml", "x.html"),
        (
            (1, b"topic_id,title,description,narrative\n1,a,b,c\n"),
            (2, _jsonl({"topic_id": "1", "title": "a", "variants": ["b"]})),
            (7, _TOPICS),
            (9, b"<html><top><num>1<title>a &eacute;</top></html>"),
        ),
        sources.read_topics,
    ),
    "documents": Reader(
        (*_TABLE_FILES, "x.trec", "x.xml", "x.html", "x.tar", "x.gz", "x.tar.gz", "x.jsonl#body"),
        (
            (1, b"doc_id,title,text\nd1,a,b\n"),
            (2, _jsonl({"_id": "d1", "title": "a", "text": "b", "url": "http://a"})),
            (5, _parquet(docid=["d1"], title=["t"], body=["b"])),
            (7, _DOC),
            (9, b"<html><head><title>a</title></head><body><p>b<script>x</script></body></html>"),
            (10, _tar(a_html=b"<p>x</p>", b_jsonl=_jsonl({"_id": "d", "text": "t"}))),
            (11, gzip.compress(_DOC, mtime=0)),
        ),
        _documents,
    ),
    "qrels": Reader(
        ("x.txt", "x.qrels", "x.tsv"),
        ((0, _QRELS), (1, b"301 d1 2\n"), (2, b"query-id\tcorpus-id\tscore\n1\td1\t1\n")),
        _records_and_frame(("topic_id", "doc_id", "relevance"), sources.read_qrels, sources.read_qrels_frame),
    ),
    "runs": Reader(
        ("x.run", "x.txt"),
        ((0, _RUN), (1, b"1 Q0 d 1 1e-3 t\n1 Q0 e 2 -1 t\n")),
        _records_and_frame(("topic_id", "doc_id", "rank", "score"), sources.read_run, sources.read_run_frame),
    ),
    "labels": Reader(
        _TABLE_FILES,
        (
            (2, _jsonl({"topic_id": "1", "query_id": "2", "label": "same", "annotator": "ann", "similarity": 0.9})),
            (1, b"topic_id,query_id,label\n1,2,same\n"),
            (3, b'[{"data": {"text": "a"}, "annotations": [{"result": [{"value": {"choices": ["same"]}}]}]}]'),
        ),
        lambda spec: _all(sources.read_labels(spec)),
    ),
    "annotation logs": Reader(
        ("x.json", "x.jsonl", "x.csv", "x.tsv", "x.parquet"),
        ((0, _QNA), (1, _LOG), (2, b"query_id,query,shown,selected\n1,q,a b,b\n")),
        _annotations,
    ),
    "instances": Reader(
        _TABLE_FILES,
        ((0, b"query\tgood text\tbad text\n"), (2, _jsonl({"query": "a", "positive": "b", "negative": ["c"]}))),
        lambda spec: _all(instances.open_instances(spec)),
    ),
    "items to judge": Reader(
        _TABLE_FILES,
        (
            (2, _jsonl({"topic_id": "1", "query": "a", "title": "b", "query_text": "c", "doc_id": "d", "text": "e"})),
            (2, _jsonl({"topic_id": "1", "query": "a", "passages": [{"text": "x", "id": 1}], "extra": '{"a": 1}'})),
        ),
        _items,
    ),
    "schemes": Reader(("x.toml", "x.json"), ((0, _SCHEME),), load_scheme),
    "mapping tables": Reader(
        ("x.tsv", "x.jsonl", "x.csv", "x.json", "x.parquet", "x.gz"),
        ((0, b"V1\tV2\na\tb\n"), (1, _jsonl({"V1": "a", "V2": "b"})), (3, b'[["a","b"]]')),
        lambda spec: versions.read_mapping(spec, ["V1", "V2"]),
    ),
    "counts": Reader(
        ("x.csv",), ((0, b"set,00,01,10,11,21,12,documents,error\na,1,2,3,4,5,6,70,10\n"),), estimating.read_counts
    ),
    "tables of runs": Reader(
        ("x.csv", "x.tsv", "x.jsonl", "x.json", "x.parquet"),
        (
            (0, b"run,group,subtask,nDCG@10,set\na,g,fullrank,0.5,a\nb,h,rerank,0.25,b\n"),
            (0, b"statement,value\nx,2\n"),
        ),
        _tables_of_runs,
    ),
    "allowed documents": Reader(
        ("x.run", "x.tsv", "x.jsonl", "x.json", "x.parquet"),
        ((0, _RUN), (1, b"1\td1\n")),
        lambda spec: validation.read_allowed(None, None, spec, spec),
    ),
    "first answers": Reader(
        ("x.csv", "x.tsv", "x.jsonl", "x.parquet"),
        ((0, b"system,query_id,doc_id,rank\na,1,d,1\nb,1,_,NA\n"),),
        answers.read_firsts,
    ),
    "judged topics": Reader(
        ("x.csv", "x.tsv", "x.txt", "x.jsonl"),
        ((2, _QRELS), (0, b"topic_id,relevant,judged\n1,2,30\n")),
        judged_topics.topics,
    ),
    "what is checked": Reader(
        ("x.csv", "x.jsonl", "x.json", "x.parquet", "x.yaml", "x.tsv", "x.txt", "x.run", "x"),
        (
            (0, _GOLDEN),
            (0, b"question,new,old\na b?,0.5,0.25\nc d?,1,0\ne?,0,0\n"),
            (0, b"system,id,score\nnew,1,0.5\nold,1,0.25\nnew,2,1\nold,2,0\n"),
            (0, b"question,expected,hit1,hit2,hit3\na?,d1,d1,d2,d4\nb?,d2,d3,d2,d5\n"),
            (1, _jsonl(*({"question": f"q{n}?", "expected": [f"d{n}"], "new": [f"d{n}", "d9"]} for n in range(4)))),
            (1, _jsonl({"query_id": "1", "query": "q", "results": [{"corpus_id": "d1", "score": 0.5}]})),
            (2, b'{"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 2, "d4": 1}}'),
            (2, b'[{"question": "a?", "expected": "d1", "new": ["d1", "d2"]}, {"question": "b?", "expected": "d2"}]'),
            (
                2,
                b'{"mteb_model_meta": {"model_name": "a/b"}, "x": {"test": {"q1": {"d1": 0.5}, "q2": {"d2": 1}}}}',
            ),
            (
                2,
                b'{"task_name": "T", "mteb_version": "1.2", "scores": {"test": [{"main_score": 0.5}]}}',
            ),
            (3, _parquet(question=["a?", "b?"], expected=["d1", "d2"], new=[["d1"], ["d3", "d2"]])),
            (3, _parquet(q_id=["1", "2"], doc_id=["d1", "d2"], score=[0.5, 1.0])),
            (4, b"- question: a?\n  expected: d1\n  new: [d1, d2]\n- question: b?\n  expected: d2\n  new: [d3]\n"),
            (6, b"1\td1\t1\n1\td2\t2\n1\td3\t3\n1\td4\t4\n2\td1\t1\n"),
            (6, b"runid\tall\tnew\nndcg_cut_10\t1\t0.5\nndcg_cut_10\t2\t0.25\nndcg_cut_10\tall\t0.375\n"),
            (7, _RUN),
            (6, _QRELS),
        ),
        lambda spec: read_as_given([spec]),
    ),
    "weights": Reader(("x.safetensors",), ((0, _safetensors()),), _weights),
    "archive settings": Reader(
        ("x.toml",), ((0, b"retries = 2\ntimeout = 3.5\n"),), lambda spec: archive.ArchiveOptions().with_file(spec)
    ),
    "answers of models": Reader(
        ("x.txt",), ((0, b'{"labels": ["same"], "comment": "c"}'), (0, b'```json\n{"skip": "r"}\n```')), _answer
    ),
}

#: Where inputs lie while they are read: in memory where there is such a place.
SCRATCH: Final = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None

#: What readers of texts, numbers and structures have failed on, here or elsewhere.
TOKENS: Final[tuple[bytes, ...]] = (
    b"\r", b"\n", b"\r\n", b"\t", b"\x00", b"\x0c", b"\x0b", b"\x1b[2J", b"\x7f", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf",
    b"\xc2\x85", b"\xe2\x80\xa8", b"\xc2\xa0", b"\xed\xa0\x80", b"\xf4\x8f\xbf\xbf", b"\\ud800", b"\\u0000", b"\\",
    b'"', b"'", b'""', b",", b";", b":", b"[", b"]", b"{", b"}", b"<", b">", b"</", b"<!--", b"<![CDATA[", b"&#0;",
    b"&#x110000;", b"&amp", b"<top>", b"</top>", b"<DOC>", b"</DOC>", b"<num>", b"null", b"true", b"NaN", b"-inf",
    b"1e400", b"-1e400", b"1e-400", b"-0", b"0x10", b"1_0", b"+1", b"2147483648", b"9223372036854775808",
    b"-9223372036854775809", b"9" * 40, b"1" * 400, b"1" * 5000, b"\xd9\xa3", b"\xc2\xb2", b"." * 20, b"[" * 200,
    b'{"a":' * 150, b"- " * 120, b"a." * 120, b"((((", b"%s", b"%00", b"../", b"file:", b"*", b"?", b"#", b"=",
    b"2024-13-45", b"12:61:61", b"PAR1", b"\x1f\x8b\x08", b"BZh9", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00", b"=1+1",
)  # fmt: skip


def mutated(seeds: Sequence[bytes], count: int, seed: int, longest: int = 1 << 14) -> Iterator[bytes]:
    """Inputs made of seeds by a few random changes each; the first byte of each is kept most of the time."""
    draw = random.Random(seed)
    for _ in range(count):
        data = bytearray(draw.choice(seeds))
        for _ in range(1 + min(int(draw.expovariate(0.5)), 12)):
            _change(data, seeds, draw)
        yield bytes(data[:longest])


def _change(data: bytearray, seeds: Sequence[bytes], draw: random.Random) -> None:
    start = 0 if draw.random() < 0.05 or len(data) < 2 else 1
    at = draw.randint(start, len(data))
    end = min(len(data), at + 1 + int(draw.expovariate(0.1)))
    match draw.randrange(7):
        case 0 if at < len(data):
            data[at] = draw.randrange(256)
        case 1:
            del data[at:end]
        case 2:
            data[at:at] = data[at:end] * draw.choice((1, 1, 2, 5, 40))
        case 3:
            other = draw.choice(seeds)
            begin = draw.randrange(len(other)) if other else 0
            data[at:end] = other[begin : begin + 1 + int(draw.expovariate(0.02))]
        case 4:
            del data[at:]
        case 5:
            data[at:end] = draw.choice(TOKENS)
        case _:
            data[at:at] = draw.choice(TOKENS)

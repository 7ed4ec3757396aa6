"""Every reader of truerank as one function of bytes, with small valid files to begin from.

An input is one byte, which chooses the file's name, and the content of that file. A reader may raise what truerank
raises for the user (`TruerankError`); anything else is a fault of truerank.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import os
import struct
import tarfile
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank import loading, sources
from truerank.audits.leakage import cleaning
from truerank.audits.reusability import judged_topics, stopping_specs
from truerank.audits.survivorship import answers
from truerank.audits.track import allowed, inputs, statements
from truerank.audits.transfer import estimating
from truerank.audits.transfer.matching import mapping_files
from truerank.errors import TruerankError
from truerank.experiments import ready
from truerank.experiments.grid import reading
from truerank.judging import load_scheme, prompts, sampling_plans
from truerank.judging.item_sources import read_items
from truerank.judging.items import Item, Text
from truerank.measures import grammar
from truerank.measures.folds import read_folds
from truerank.rankers.training import instances
from truerank.rankers.words import word_vectors
from truerank.sources import annotation_logs, archive
from truerank.sources.grammar import parse
from truerank.text import passages, urls
from truerank.vectors.encoders.weights import open_weights

__all__ = ["READERS", "DifferenceError", "Reader", "attempt"]


class DifferenceError(AssertionError):
    """Two readers of one file do not say the same of it."""


@dataclass(frozen=True)
class Reader:
    """One reader.

    Attributes:
        name: of the reader.
        files: names of the file, chosen by the first byte of an input; what follows "?" belongs to the source's name.
        read: reads the file of that name to its end.
        seeds: valid contents, each with the position of its name.
    """

    name: str
    files: tuple[str, ...]
    read: Callable[[str], object]
    seeds: tuple[tuple[int, bytes], ...]

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
    found = []
    for read in (one, other):
        try:
            found.append(read())
        except TruerankError as error:
            found.append(error)
    refused = [isinstance(each, TruerankError) for each in found]
    if refused == [False, False]:
        if found[0] != found[1]:
            raise DifferenceError(f"{str(found[0])[:200]} but {str(found[1])[:200]}")
    elif not all(refused):
        raise DifferenceError(f"{str(found[0])[:200]} but {str(found[1])[:200]}")
    else:
        raise found[0]


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
    for each in sources.by_column(parse(spec)):
        _all(sources.open_queries(each).batches())


def _documents(spec: str) -> None:
    source = sources.open_documents(spec, keep_empty=True)
    _all(source.batches())
    _ = source.fingerprint


def _qrels(spec: str) -> None:
    names = ("topic_id", "doc_id", "relevance")

    def records() -> list[Any]:
        return [tuple(getattr(one, name) for name in names) for one in sources.read_qrels(spec)]

    _same(records, lambda: sources.read_qrels_frame(spec).select(names).rows())


def _runs(spec: str) -> None:
    names = ("topic_id", "doc_id", "rank", "score")

    def records() -> list[Any]:
        return [tuple(getattr(one, name) for name in names) for one in sources.read_run(spec)]

    _same(records, lambda: sources.read_run_frame(spec).select(names).rows())


def _annotations(spec: str) -> None:
    log = annotation_logs.open_annotations(spec)
    _all(log)
    _ = log.counts


@functools.cache
def _schemes() -> tuple[Any, ...]:
    return tuple(load_scheme(name) for name in ("leakage", "answerability", "relevance-documents"))


def _items(spec: str) -> None:
    _any(*(functools.partial(read_items, [spec], scheme) for scheme in _schemes()))


@functools.cache
def _item() -> Item:
    return Item("i1", "1", "a question", (Text("document", "a text"),))


def _answer(spec: str) -> None:
    text = Path(spec).read_bytes().decode("utf-8", "surrogateescape")
    for scheme in _schemes():
        prompts.read_answer(text, scheme, _item())


def _words(spec: str) -> str:
    return Path(spec).read_bytes()[:4096].decode("utf-8", "replace")


def _grammars(spec: str) -> None:
    """Names, measures, plans and rules that are given as texts on the command line."""
    text = _words(spec)
    readers: tuple[Callable[[str], object], ...] = (
        lambda t: sources.unique_names([parse(t), parse(t)]),
        grammar.parse_measures,
        sampling_plans.parse_plan,
        passages.policy_named,
        lambda t: stopping_specs.load_rule(t) if not t.endswith("py") and ":" not in t.partition("=")[0] else None,
        lambda t: stopping_specs.load_rule("heuristic:" + t),
        lambda t: stopping_specs.load_rule("budget:" + t),
        urls.normalise_url,
    )
    _any(*(functools.partial(read, text) for read in readers))


def _settings(spec: str) -> None:
    """JSON, YAML and TOML as the loaders give them: none deeper than 100."""
    data = Path(spec).read_bytes()
    loaders: dict[str, Callable[[], object]] = {
        "json": lambda: loading.load_json(data, spec),
        "yaml": lambda: loading.load_yaml(data, spec, lambda loader, node: loader.construct_document(node)),
        "toml": lambda: loading.load_toml(data, spec),
    }
    repr(loaders[spec.rpartition(".")[2]]())


def _tables_of_runs(spec: str) -> None:
    inputs._table.cache_clear() if hasattr(inputs._table, "cache_clear") else None
    _any(
        lambda: inputs.read_metadata([spec], inputs.RowFilter()),
        lambda: inputs.read_means(spec, inputs.RowFilter({"set": "a"})),
        lambda: inputs.read_means(spec, inputs.RowFilter()),
        lambda: statements.read_stated(spec),
    )


def _allowed(spec: str) -> None:
    allowed.read_allowed(None, None, spec, spec)


def _weights(spec: str) -> None:
    weights = open_weights([Path(spec)])
    for name in sorted(weights.names):
        weights.tensor(name)


def _mapping(spec: str) -> None:
    mapping_files.read_mapping(spec, ["V1", "V2"])


def _removed(spec: str) -> None:
    cleaning._removed_before(spec)


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

READERS: Final = {
    reader.name: reader
    for reader in (
        Reader(
            "queries",
            (*_TABLE_FILES, "x.trec", "x.xml", "x?format=qna", "x.gz", "x.zst", "x.bz2", "x.xz", "x.csv#text"),
            _queries,
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
                (10, gzip.compress(b"1\tfirst query\n")),
                (14, b"id;text\n1;a\n"),
            ),
        ),
        Reader(
            "topics",
            (*_TABLE_FILES, "x.trec", "x.xml", "x.html"),
            lambda spec: sources.read_topics(spec),
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
        Reader(
            "documents",
            (*_TABLE_FILES, "x.trec", "x.xml", "x.html", "x.tar", "x.gz", "x.tar.gz", "x.jsonl#body"),
            _documents,
            (
                (0, b"d1\tu\tt\tb\nd2\tu\tt\tb\n"),
                (1, b"doc_id,title,text\nd1,a,b\n"),
                (2, _jsonl({"_id": "d1", "title": "a", "text": "b", "url": "http://a"})),
                (3, b'[{"docno": "d1", "contents": "a"}]'),
                (5, _parquet(docid=["d1"], title=["t"], body=["b"])),
                (7, _DOC),
                (9, b"<html><head><title>a</title></head><body><p>b<script>x</script></body></html>"),
                (10, _tar(a_html=b"<p>x</p>", b_jsonl=_jsonl({"_id": "d", "text": "t"}))),
                (11, gzip.compress(_DOC)),
            ),
        ),
        Reader(
            "qrels",
            ("x.txt", "x.qrels", "x.tsv"),
            _qrels,
            ((0, _QRELS), (1, b"301 d1 2\n"), (2, b"query-id\tcorpus-id\tscore\n1\td1\t1\n")),
        ),
        Reader("runs", ("x.run", "x.txt"), _runs, ((0, _RUN), (1, b"1 Q0 d 1 1e-3 t\n1 Q0 e 2 -1 t\n"))),
        Reader(
            "labels",
            _TABLE_FILES,
            lambda spec: _all(sources.read_labels(spec)),
            (
                (2, _LABELS),
                (1, b"topic_id,query_id,label\n1,2,same\n"),
                (3, b'[{"data": {"text": "a"}, "annotations": [{"result": [{"value": {"choices": ["same"]}}]}]}]'),
            ),
        ),
        Reader(
            "annotation logs",
            ("x.json", "x.jsonl", "x.csv", "x.tsv", "x.parquet"),
            _annotations,
            ((0, _QNA), (1, _LOG), (2, b"query_id,query,shown,selected\n1,q,a b,b\n")),
        ),
        Reader(
            "variants",
            _TABLE_FILES,
            lambda spec: sources.read_variants(spec),
            (
                (0, b"301\ta b\n301\tb a\n"),
                (2, _jsonl({"topic_id": "1", "variants": ["a"]})),
                (1, b"topic_id,variant\n1,a\n"),
            ),
        ),
        Reader(
            "instances",
            _TABLE_FILES,
            lambda spec: _all(instances.open_instances(spec)),
            (
                (0, b"query\tgood text\tbad text\n"),
                (2, _jsonl({"query": "a", "positive": "b", "negative": ["c"]})),
                (1, b"query_id,query,relevant_id,relevant,nonrelevant_id,nonrelevant\n1,a,2,b,3,c\n"),
            ),
        ),
        Reader(
            "items to judge",
            _TABLE_FILES,
            _items,
            (
                (
                    2,
                    _jsonl(
                        {"topic_id": "1", "query": "a", "title": "b", "query_text": "c", "doc_id": "d", "text": "e"}
                    ),
                ),
                (2, _jsonl({"topic_id": "1", "query": "a", "passages": [{"text": "x", "id": 1}], "extra": '{"a": 1}'})),
                (1, b"topic_id,query,doc_id,text,passage_1\n1,a,d,t,p\n"),
            ),
        ),
        Reader(
            "folds",
            ("x.json", "x.txt"),
            lambda spec: read_folds(spec),
            (
                (0, b'[["1"], ["2"]]'),
                (0, b'{"a": {"predict": {"test": ["1"]}}, "b": {"predict": {"test": ["2"]}}}'),
                (0, b'{"1": 1, "2": 2}'),
                (1, b"1 a\n2 b\n"),
            ),
        ),
        Reader(
            "schemes",
            ("x.toml", "x.json"),
            lambda spec: load_scheme(spec),
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
        Reader(
            "designs",
            ("x.yaml",),
            lambda spec: reading.read_design(spec, variables=False),
            tuple((0, design) for design in _DESIGNS),
        ),
        Reader(
            "mapping tables",
            ("x.tsv", "x.jsonl", "x.csv", "x.json", "x.parquet", "x.gz"),
            _mapping,
            ((0, b"V1\tV2\na\tb\n"), (1, _jsonl({"V1": "a", "V2": "b"})), (2, b"V1,V2\na,b\n"), (3, b'[["a","b"]]')),
        ),
        Reader(
            "counts",
            ("x.csv",),
            lambda spec: estimating.read_counts(spec),
            ((0, b'set,00,01,10,11,21,12,documents,error\na,1,2,3,4,5,6,70,10\nb,1,2,3,4,5,6,"1,000",\n'),),
        ),
        Reader(
            "tables of runs",
            ("x.csv", "x.tsv", "x.jsonl", "x.json", "x.parquet"),
            _tables_of_runs,
            (
                (0, b"run,group,subtask,nDCG@10,set\na,g,fullrank,0.5,a\nb,h,rerank,0.25,b\n"),
                (0, b"run,measure,value\na,P@10,0.5\n"),
                (0, b"statement,value\nx,29.4\n"),
            ),
        ),
        Reader(
            "allowed documents",
            ("x.run", "x.tsv", "x.jsonl", "x.json", "x.parquet"),
            _allowed,
            ((0, _RUN), (1, b"1\td1\n"), (2, _jsonl({"topic_id": "1", "doc_id": "d"}))),
        ),
        Reader(
            "first answers",
            ("x.csv", "x.tsv", "x.jsonl", "x.parquet"),
            lambda spec: answers.read_firsts(spec),
            ((0, b"system,query_id,doc_id,rank\na,1,d,1\nb,1,_,NA\n"),),
        ),
        Reader(
            "judged topics",
            ("x.csv", "x.tsv", "x.txt", "x.jsonl"),
            lambda spec: judged_topics.topics(spec),
            ((2, _QRELS), (0, b"topic_id,relevant,judged\n1,2,30\n")),
        ),
        Reader(
            "removed queries",
            ("x.removed.tsv",),
            _removed,
            (
                (
                    0,
                    b"query_id\tsource\ttest\ttopic_id\tfield\tsimilarity\ttype\twhy\n1\ts\tt\t301\ttitle\t0.95\tsame\tabove\n",
                ),
            ),
        ),
        Reader(
            "word vectors",
            ("x.txt", "x.bin", "x.gz"),
            lambda spec: word_vectors.read_word_vectors(spec),
            (
                (0, b"the 0.1 0.2\nof 0.3 0.4\n"),
                (0, b"2 2\nthe 0.1 0.2\nof 0.3 0.4\n"),
                (1, b"2 2\nthe " + struct.pack("<2f", 1, 2) + b"\nof " + struct.pack("<2f", 3, 4)),
            ),
        ),
        Reader("weights", ("x.safetensors",), _weights, ((0, _safetensors()),)),
        Reader(
            "settings",
            ("x.json", "x.yaml", "x.toml"),
            _settings,
            ((0, b'{"a": [1, 2.5, null, "\\ud800"]}'), (1, _DESIGNS[0]), (2, _SCHEME)),
        ),
        Reader(
            "archive settings",
            ("x.toml",),
            lambda spec: archive.ArchiveOptions().with_file(spec),
            ((0, b"retries = 2\ntimeout = 3.5\n"),),
        ),
        Reader(
            "answers of models",
            ("x.txt",),
            _answer,
            ((0, b'{"labels": ["same"], "comment": "c"}'), (0, b'```json\n{"skip": "r"}\n```')),
        ),
        Reader(
            "grammars",
            ("x.txt",),
            _grammars,
            (
                (0, b"nDCG@10 P(rel=2)@5 AP"),
                (0, b"strata:0.8-1/10:100 then random:5"),
                (0, b"name=irds:msmarco#text?format=tsv"),
                (0, b"http://a.b/c?d=e#f"),
                (0, b"sliding:150/75"),
                (0, b"cap=1000,bound=0.6"),
            ),
        ),
    )
}

#: Where inputs lie while they are read: in memory where there is such a place.
SCRATCH: Final = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None

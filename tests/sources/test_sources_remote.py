"""ir_datasets and Hugging Face: real libraries, files in a home of their own, a server on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import polars as pl
import pytest

from places import ROOT
from truerank.errors import InputError
from truerank.sources import open_queries, parse, read_qrels
from truerank.sources.hub import _chosen

SOURCE = ROOT / "src"
#: Both libraries read their environment when they are imported, so each test asks a process of its own.
SCRIPT = """
import json, sys
from truerank.errors import InputError
from truerank.sources import open_queries, read_qrels, read_topics
def ask(kind, spec):
    try:
        if kind == "queries":
            source = open_queries(spec)
            return {"queries": list(source), "again": list(source) == list(source), "read": source.counts.read,
                    "name": source.name, "fingerprint": source.fingerprint}
        if kind == "topics":
            found = read_topics(spec)
            return {"topics": found.topics, "fields": found.fields}
        return {"qrels": list(read_qrels(spec))}
    except InputError as error:
        return {"error": str(error)}
print(json.dumps([ask(*pair) for pair in json.loads(sys.argv[1])]))
"""


def answers(asked: list[tuple[str, str]], **environment: str) -> tuple[list[dict[str, Any]], str]:
    """What a fresh process reads, and what it wrote to the terminal meanwhile."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(asked)],
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


ROBUST = """<top>
<num> Number: 301
<title> International
Organized Crime
<desc> Description:
Identify organizations.
<narr> Narrative:
A relevant document.
</top>
"""


def test_irds(tmp_path: Path) -> None:
    """Real ids, whose files lie where ir_datasets looks for them."""
    for name, content in {
        "vaswani/queries.txt": "1\nDIELECTRIC\nCONSTANT\n/\n2\nsecond query\n/\n",
        "beir/scifact/queries.json": '{"_id":"1","text":"a b","metadata":{}}\n{"_id":"3","text":"c","metadata":{}}\n',
        "beir/scifact/test.qrels": "query-id\tcorpus-id\tscore\n1\t31715818\t1\n",
        "msmarco-document/trec-dl-2019/queries.tsv": "1\twhat is wifi\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    found, written = answers(
        [
            ("queries", "irds:vaswani"),
            ("topics", "irds:vaswani"),
            ("topics", "irds:beir/scifact/test"),
            ("qrels", "irds:beir/scifact/test"),
            ("queries", "irds:cranfield"),
        ],
        IR_DATASETS_HOME=str(tmp_path),
        IR_DATASETS_TMP=str(tmp_path / "tmp"),
        IR_DATASETS_DL_TRIES="1",
        http_proxy="http://127.0.0.1:9",
        https_proxy="http://127.0.0.1:9",
        HTTP_PROXY="http://127.0.0.1:9",
        HTTPS_PROXY="http://127.0.0.1:9",
        NO_PROXY="",
        no_proxy="",
    )
    vaswani, topics, scifact, qrels, cranfield = found
    assert vaswani["queries"] == [["1", "DIELECTRIC\nCONSTANT\n"], ["2", "second query\n"]]
    assert vaswani["again"] and vaswani["read"] == 2
    assert vaswani["fingerprint"].startswith("irds:vaswani;ir_datasets=")
    assert topics["topics"][0][:2] == ["1", "DIELECTRIC CONSTANT"]
    assert scifact == {"topics": [["1", "a b", "", "", []]], "fields": ["title"]}
    assert qrels == {"qrels": [["1", "31715818", 1, "0"]]}
    assert cranfield["error"].startswith("irds:cranfield: ir_datasets cannot get the queries (no connection")
    assert "IR_DATASETS_HOME" in cranfield["error"]
    assert written == ""


def test_irds_topics_with_all_fields(tmp_path: Path) -> None:
    """A data set of ir_datasets' own classes, registered under an id of its own."""
    import ir_datasets
    from ir_datasets.formats import TrecQrels, TrecQueries

    (tmp_path / "topics").write_text(ROBUST)
    (tmp_path / "qrels").write_text("301 0 d1 1\n")
    name = f"truerank-test/{tmp_path.name}"
    local = ir_datasets.util.LocalDownload
    ir_datasets.registry.register(
        name,
        ir_datasets.Dataset(TrecQueries(local(tmp_path / "topics")), TrecQrels(local(tmp_path / "qrels"), {1: "yes"})),
    )
    from truerank.sources import read_topics

    found = read_topics(f"irds:{name}")
    assert found.topics == (
        ("301", "International Organized Crime", "Identify organizations.", "A relevant document.", ()),
    )
    assert list(read_qrels(f"irds:{name}")) == [("301", "d1", 1, "0")]
    assert [query.query_id for query in open_queries(f"irds:{name}")] == ["301"]


COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Hub(BaseHTTPRequestHandler):
    """As much of the hub's interface as downloading a data set takes."""

    protocol_version = "HTTP/1.1"
    files: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        asked = self.rfile.read(length).decode()
        names = [name for name in self.files if name in unquote(asked)]
        self._json([self._entry(name) for name in names])

    def _answer(self, *, body: bool) -> None:
        path = unquote(self.path.partition("?")[0]).replace("/main", f"/{COMMIT}")
        tree, resolve = f"/api/datasets/org/name/tree/{COMMIT}", f"/datasets/org/name/resolve/{COMMIT}/"
        if path in ("/api/datasets/org/name", f"/api/datasets/org/name/revision/{COMMIT}"):
            siblings = [{"rfilename": name} for name in self.files]
            self._json({"id": "org/name", "sha": COMMIT, "siblings": siblings, "tags": [], "private": False})
        elif path.startswith(tree):
            folder = path.removeprefix(tree).strip("/")
            names = [name for name in self.files if not folder or name.startswith(f"{folder}/")]
            if "recursive=false" in self.path.lower():
                depth = len(folder.split("/")) if folder else 0
                names = list(dict.fromkeys("/".join(name.split("/")[: depth + 1]) for name in names))
            if names:
                self._json([self._entry(name) for name in names])
            else:
                self._json({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})
        elif path.startswith(resolve):
            content = self.files.get(path.removeprefix(resolve))
            if content is None:
                self._json({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})
            else:
                self._send(content, "application/octet-stream", body)
        else:
            self._json({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})

    def _entry(self, name: str) -> dict[str, object]:
        if name not in self.files:
            return {"type": "directory", "path": name, "size": 0, "oid": COMMIT}
        return {"type": "file", "path": name, "size": len(self.files[name]), "oid": self._etag(self.files[name])}

    @staticmethod
    def _etag(content: bytes) -> str:
        return hashlib.sha1(content, usedforsecurity=False).hexdigest()

    def _json(self, value: object, status: int = 200, more: dict[str, str] | None = None) -> None:
        self._send(json.dumps(value).encode(), "application/json", self.command != "HEAD", status, more)

    def _send(
        self, content: bytes, kind: str, body: bool, status: int = 200, more: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(content)), "X-Repo-Commit": COMMIT, **(more or {})}
        if status == 200:
            headers["ETag"] = f'"{self._etag(content)}"'
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    """The address of a hub that holds org/name: two Parquet shards of "train", one of "test", and a configuration."""
    files: dict[str, bytes] = {"README.md": b"# name\n", "queries.jsonl": b'{"_id":"7","text":"from jsonl"}\n'}
    for name, texts in {
        "data/train-00000-of-00002.parquet": ["lyme disease", "black bears"],
        "data/train-00001-of-00002.parquet": ["third"],
        "data/test-00000-of-00001.parquet": ["of test"],
    }.items():
        pl.DataFrame({"anchor": texts, "positive": ["x"] * len(texts)}).write_parquet(tmp_path / "shard")
        files[name] = (tmp_path / "shard").read_bytes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Hub", (_Hub,), {"files": files}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_hugging_face(hub: str, tmp_path: Path) -> None:
    cache = str(tmp_path / "home")
    asked = [
        ("queries", "hf:org/name:train"),
        ("queries", "hf:org/name:test#positive"),
        ("topics", "hf:org/name/queries"),
        ("topics", "hf:org/name:train"),
        ("queries", "hf:org/name:dev"),
        ("queries", "hf:org/name:train#absent"),
        ("queries", "hf:org/none"),
        ("queries", f"hf:org/name@{COMMIT}:train"),
        ("queries", "hf:org/name@main:train"),
        ("queries", "hf:org/name@gone:train"),
    ]
    found, written = answers(asked, HF_HOME=cache, HF_ENDPOINT=hub, NO_PROXY="127.0.0.1", HF_HUB_DISABLE_XET="1")
    train, test, topics, numbered, dev, absent, none, *pinned, gone = found
    assert train.get("queries", train) == [["1", "lyme disease"], ["2", "black bears"], ["3", "third"]]
    assert train["again"] and train["name"] == "org/name:train"
    assert train["fingerprint"] == f"hf:org/name:train;revision={COMMIT}"
    assert test["queries"] == [["1", "x"]]
    assert topics["topics"] == [["7", "from jsonl", "", "", []]]
    assert [topic[:2] for topic in numbered["topics"]] == train["queries"]
    assert "hf:org/name:dev: no split 'dev'. there are" in dev["error"]
    assert "no column or key 'absent'" in absent["error"]
    assert pinned == [train, train]
    assert "Hugging Face has no data set 'org/name' with the revision 'gone'" in gone["error"]
    assert "Hugging Face has no data set 'org/none', or it needs permission (HTTP 404)" in none["error"]
    assert written == ""


def test_hugging_face_without_network(hub: str, tmp_path: Path) -> None:
    cache = str(tmp_path / "home")
    fill = f"import huggingface_hub as h; h.snapshot_download('org/name', repo_type='dataset', revision='{COMMIT}')"
    environment = {**os.environ, "HF_HOME": cache, "HF_ENDPOINT": hub, "HF_HUB_DISABLE_XET": "1"}
    subprocess.run([sys.executable, "-c", fill], env=environment, check=True, capture_output=True, timeout=120)
    asked = [("queries", "hf:org/name:train"), ("queries", "hf:org/other"), ("queries", f"hf:org/name@{COMMIT}:train")]
    asked.append(("queries", "hf:org/name@0000000:train"))
    (train, other, pinned, gone), written = answers(asked, HF_HOME=cache, HF_HUB_OFFLINE="1")
    assert train.get("queries", train) == [["1", "lyme disease"], ["2", "black bears"], ["3", "third"]]
    assert train["fingerprint"] == f"hf:org/name:train;revision={COMMIT}"
    assert pinned == train
    assert "hf download --repo-type dataset org/name --revision 0000000" in gone["error"]
    assert "not in the cache" in other["error"]
    assert "hf download --repo-type dataset org/other" in other["error"]
    assert written == ""
    next((tmp_path / "home").rglob("snapshots/*/data/train-00001-*")).unlink()
    (halved,), _ = answers(asked[:1], HF_HOME=cache, HF_HUB_OFFLINE="1")
    assert "the copy in the cache has 1 of 2 files" in halved["error"]


NAMES = [
    "README.md", "data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet", "data/test-0.parquet",
    "v2.1/train-0.parquet", "v2.1/validation-0.parquet", "triplet/pairs.jsonl.gz", "dataset_infos.json",
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("hf:o/n", NAMES[1:3]),
        ("hf:o/n:test", NAMES[3:4]),
        ("hf:o/n/v2.1", NAMES[4:5]),
        ("hf:o/n/v2.1:validation", NAMES[5:6]),
        ("hf:o/n/triplet", NAMES[6:7]),
    ],
)
def test_files_of_a_configuration_and_split(spec: str, expected: list[str]) -> None:
    assert _chosen(NAMES, parse(spec)) == expected


@pytest.mark.parametrize(
    ("spec", "names", "message"),
    [
        ("hf:o/n:dev", NAMES, "no split 'dev'. there are train, test"),
        ("hf:o/n/v3", NAMES, "no configuration 'v3'"),
        ("hf:o/n", NAMES[4:7], "several configurations: triplet, v2.1. name one"),
        ("hf:o/n", ["dev.jsonl", "test.jsonl"], "several splits: dev, test. name one"),
        ("hf:o/n", ["README.md"], "no Parquet, JSONL, CSV or TSV files"),
    ],
)
def test_files_that_cannot_be_chosen(spec: str, names: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        _chosen(names, parse(spec))
    assert message in str(caught.value)

"""Cleaned data as data sets of ir_datasets, with the real package: what they hold, and what they say of themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ir_datasets
import pytest

import truerank
from leakage_example import audit as leakage_audit
from truerank import collection, leakage, transfer
from truerank.errors import InputError, OptionError
from truerank.integrations import ir_datasets as ours

DOCS = {"a": "red apples grow in winter", "b": "the song of the blue whale", "c": "the song of the blue whale"}


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    monkeypatch.setenv("TRUERANK_DATA", str(tmp_path / "data"))
    yield
    # ir_datasets cannot forget a data set; the next test begins without those of this one.
    for name in [name for name in ir_datasets.registry if name.startswith("truerank/")]:
        del ir_datasets.registry._registered[name]
    ours._registered.clear()


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, Path]:
    docs, queries, qrels = tmp_path / "docs.jsonl", tmp_path / "queries.tsv", tmp_path / "test.qrels"
    docs.write_text("".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in DOCS.items()))
    queries.write_text("1\tapples in winter\n2\tblue whale song\n")
    qrels.write_text("1 0 a 1\n2 7 b 2\n2 0 c 0\n2 0 nope 1\n")
    found = collection.audit(qrels=qrels, docs=str(docs), topics=str(queries), out=tmp_path / "audit")
    collection.clean(qrels, found, out=tmp_path / "clean")
    return {"docs": docs, "queries": queries, "qrels": qrels, "clean": tmp_path / "clean"}


def test_cleaned_judgments_are_a_data_set(parts: dict[str, Path]) -> None:
    made = truerank.register(parts["clean"], "toy/clean", docs=parts["docs"], queries=parts["queries"])
    dataset = ir_datasets.load("truerank/toy/clean")
    assert dataset is made
    assert dataset.dataset_id() == "truerank/toy/clean"
    assert [(q.query_id, q.text) for q in dataset.queries_iter()] == [
        ("1", "apples in winter"),
        ("2", "blue whale song"),
    ]
    assert {doc.doc_id: doc.default_text() for doc in dataset.docs_iter()} == DOCS
    assert dataset.qrels.asdict() == {"1": {"a": 1}, "2": {"b": 2}}
    assert [one.iteration for one in dataset.qrels_iter()] == ["0", "7"]
    assert set(dataset.qrels_defs()) == {1, 2}
    assert (dataset.docs_count(), dataset.queries.lookup("2").text) == (3, "blue whale song")
    assert dataset.docs_store().get("b").default_text() == DOCS["b"]
    assert [doc.doc_id for doc in dataset.docs_iter()[1:]] == ["b", "c"]


def test_documentation_is_the_provenance(parts: dict[str, Path]) -> None:
    said = truerank.register(parts["clean"], "toy", docs=parts["docs"]).documentation()
    manifest = json.loads((parts["clean"] / "manifest.json").read_text())
    assert {key: said["provenance"][key] for key in manifest} == manifest
    assert "collection clean" in said["desc"]
    assert str(parts["qrels"]) in said["desc"]


def test_truerank_reads_what_was_registered(parts: dict[str, Path]) -> None:
    truerank.register(parts["clean"], "toy", docs=parts["docs"], queries=parts["queries"])
    found = truerank.evaluate("irds:truerank/toy", {"1": {"a": 1.0}, "2": {"b": 1.0, "c": 2.0}}, measures="nDCG@10 RR")
    assert found.values[0][1].tolist() == [1.0, 0.5]


def test_a_store_of_documents_follows_its_source(parts: dict[str, Path]) -> None:
    first = truerank.register(parts["clean"], "one", docs=parts["docs"])
    assert first.docs_store().get("a").body == DOCS["a"]
    parts["docs"].write_text(json.dumps({"_id": "a", "text": "something else entirely"}) + "\n")
    second = truerank.register(parts["clean"], "two", docs=parts["docs"])
    assert second.docs_store().get("a").body == "something else entirely"


def test_what_was_cleaned_in_ir_datasets_brings_the_rest(parts: dict[str, Path], tmp_path: Path) -> None:
    truerank.register(parts["clean"], "base", docs=parts["docs"], queries=parts["queries"])
    out = tmp_path / "again.qrels"
    found = collection.audit(qrels="irds:truerank/base", out=tmp_path / "audit2")
    collection.clean("irds:truerank/base", found, out=out)
    again = truerank.register(out, "again")
    assert [doc.doc_id for doc in again.docs_iter()] == ["a", "b", "c"]
    assert [query.query_id for query in again.queries_iter()] == ["1", "2"]
    assert again.qrels.asdict() == {"1": {"a": 1}, "2": {"b": 2}}


def test_judgments_that_hold_for_a_version(parts: dict[str, Path], tmp_path: Path) -> None:
    labels, out = tmp_path / "labels.jsonl", tmp_path / "v2.qrels"
    row = {"topic_id": "2", "query": "blue whale song", "doc_id": "b", "V1_id": "b", "V2_id": "bv2"}
    labels.write_text(json.dumps({**row, "dataset": "V1≫V2 (MaxP)", "label": ["only V1"], "annotator": "ann"}) + "\n")
    transfer.clean(str(parts["qrels"]), labels=str(labels), trust="labels-only", out=out)
    dataset = truerank.register(out, "v2", queries=parts["queries"])
    assert dataset.qrels.asdict() == {"1": {"a": 1}, "2": {"c": 0, "nope": 1}}
    assert "transfer clean" in dataset.documentation()["desc"]


def test_training_queries_without_leaks(tmp_path: Path) -> None:
    log, qrels = tmp_path / "log.tsv", tmp_path / "train.qrels"
    log.write_text("q1\tkeep this one\nq2\torganized  crime\nq3\tand this\n")
    qrels.write_text("q1 0 x 1\nq2 0 y 1\nq3 0 z 1\n")
    audited = leakage_audit([("robust", "301", "title", "log", "q2", "organized  crime", 0.97)])
    out = tmp_path / "clean.tsv.gz"
    leakage.clean(audited, log, out=out)
    dataset = truerank.register(out, "log", qrels=qrels)
    assert [tuple(query) for query in dataset.queries_iter()] == [("q1", "keep this one"), ("q3", "and this")]
    # Judgments of a query that leaked would bring it back.
    assert set(dataset.qrels.asdict()) == {"q1", "q3"}
    assert dataset.documentation()["provenance"]["command"] == "leakage clean"


def test_a_reduced_test_set_keeps_its_fields(tmp_path: Path) -> None:
    topics = tmp_path / "robust.jsonl"
    rows = [{"_id": str(n), "title": f"topic {n}", "description": f"what is {n}"} for n in (301, 302)]
    topics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    audited = leakage_audit([("robust", "301", "title", "log", "q2", "organized  crime", 0.97)])
    out = tmp_path / "robust.clean.jsonl"
    leakage.clean(audited, test=topics, out=out, remove="test")
    (query,) = truerank.register(out, "robust").queries_iter()
    assert (query.query_id, query.title, query.description) == ("302", "topic 302", "what is 302")


def test_names_that_are_taken_or_wrong(parts: dict[str, Path]) -> None:
    first = truerank.register(parts["clean"], "toy")
    assert truerank.register(parts["clean"], "toy") is first
    with pytest.raises(OptionError, match="another data set already"):
        truerank.register(parts["clean"], "toy", docs=parts["docs"])
    with pytest.raises(OptionError, match="not a name of a data set"):
        truerank.register(parts["clean"], "../Toy")
    with pytest.raises(OptionError, match="has judgments itself"):
        truerank.register(parts["clean"], "toy2", qrels=parts["qrels"])


def test_what_was_changed_after_cleaning_is_refused(parts: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no manifest"):
        truerank.register(tmp_path, "toy")
    with pytest.raises(InputError, match="written by 'collection audit'"):
        truerank.register(tmp_path / "audit", "toy")
    with (parts["clean"] / "test.qrels").open("a") as stream:
        stream.write("1 0 b 1\n")
    with pytest.raises(InputError, match="changed or moved"):
        truerank.register(parts["clean"], "toy")
    (parts["clean"] / "test.qrels").unlink()
    with pytest.raises(InputError, match="changed or moved"):
        truerank.register(parts["clean"], "toy")


def test_another_process_finds_it_only_if_asked(parts: dict[str, Path]) -> None:
    truerank.register(parts["clean"], "toy", docs=parts["docs"])
    assert not ours.registry_file().exists()
    truerank.register(parts["clean"], "toy", docs=parts["docs"], keep=True)
    code = (
        "import ir_datasets; from truerank.integrations.ir_datasets import restore\n"
        "assert 'truerank/toy' not in ir_datasets.registry; assert restore() == ('truerank/toy',) == restore()\n"
        "print(len(list(ir_datasets.load('truerank/toy').docs_iter())))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "3"
    ours.registry_file().write_text("[]")
    with pytest.raises(InputError, match="not a list of registered data"):
        ours.restore()

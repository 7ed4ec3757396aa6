"""Inside PyTerrier, with the real package and without Java: data sets, transformers, experiments."""

from __future__ import annotations

import importlib
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truerank
from truerank import collection

pt = pytest.importorskip("pyterrier", reason="PyTerrier is not installed: pip install 'truerank[pyterrier]'")
pd = pytest.importorskip("pandas")
ours = importlib.import_module("truerank.integrations.pyterrier")

DOCS = {"a": "red apples grow in winter", "b": "the song of the blue whale", "c": "a blue sky over red apples"}
QUERIES = {"1": "apples in winter", "2": "blue whale song", "3": "zebra"}


class Length:
    """A ranker that likes short texts."""

    name = fingerprint = "length"

    def score(self, pairs: Any) -> Any:
        return np.array([-float(len(pair[1])) for pair in pairs])


@pytest.fixture
def queries() -> Any:
    return pd.DataFrame({"qid": list(QUERIES), "query": list(QUERIES.values())})


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in DOCS.items()))
    return path


def test_registered_data_are_its_data_sets(tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    monkeypatch.setenv("TRUERANK_DATA", str(tmp_path / "data"))
    # The entry point, as an installed truerank declares it.
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["entry-points"]
    info = tmp_path / "site" / "truerank_entry_points-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: truerank-entry-points\nVersion: 1\n")
    lines = [f"{name} = {place}" for name, place in declared["pyterrier.dataset_provider"].items()]
    (info / "entry_points.txt").write_text("[pyterrier.dataset_provider]\n" + "\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    qrels, topics = tmp_path / "test.qrels", tmp_path / "q.tsv"
    qrels.write_text("1 0 a 1\n2 0 b 2\n2 0 nope 1\n")
    topics.write_text("1\tapples in winter\n2\tblue whale song\n")
    found = collection.audit(qrels=str(qrels), docs=str(docs), topics=str(topics), out=tmp_path / "audit")
    collection.clean(str(qrels), found, out=tmp_path / "clean")
    truerank.register(tmp_path / "clean", "pt-toy", docs=docs, queries=topics)
    dataset = pt.get_dataset("truerank:pt-toy")
    assert dataset.get_topics("text")[["qid", "query"]].to_numpy().tolist() == [
        ["1", "apples in winter"],
        ["2", "blue whale song"],
    ]
    assert sorted(dataset.get_qrels()[["qid", "docno", "label"]].to_numpy().tolist()) == [["1", "a", 1], ["2", "b", 2]]
    assert [doc["docno"] for doc in dataset.get_corpus_iter(verbose=False)] == ["a", "b", "c"]
    loaded = pt.text.get_text(dataset, "body")(pd.DataFrame({"qid": ["1"], "query": ["x"], "docno": ["b"]}))
    assert loaded["body"].tolist() == [DOCS["b"]]
    assert "pt-toy" in ours.TruerankDatasets().list_dataset_names()
    with pytest.raises(KeyError, match="truerank:other"):
        pt.get_dataset("truerank:other")


def test_search_returns_what_truerank_search_returns(tmp_path: Path, docs: Path, queries: Any) -> None:
    index = truerank.build_index(str(docs), tmp_path / "index")
    topics = tmp_path / "q.tsv"
    topics.write_text("".join(f"{key}\t{text}\n" for key, text in QUERIES.items()))
    expected = truerank.search(index, str(topics), k=2).run
    found = ours.Search(tmp_path / "index", k=2)(queries.assign(kept="x"))
    rows = [tuple(row) for row in found[["qid", "docno", "score", "rank"]].to_numpy().tolist()]
    assert rows == [
        (t, d, s, r - 1) for t, d, s, r in expected.select("topic_id", "doc_id", "score", "rank").iter_rows()
    ]
    assert set(found["kept"]) == {"x"}
    nothing = ours.Search(index)(queries[queries["qid"] == "3"])
    assert (len(nothing), list(nothing.columns)) == (0, ["qid", "query", "docno", "score", "rank"])


def test_rerank_orders_by_the_ranker(queries: Any) -> None:
    rows = pd.DataFrame({"qid": ["2", "2", "1", "1", "1"], "docno": ["b", "a", "c", "d", "a"]})
    rows = rows.merge(queries, on="qid").assign(text=["longer text", "text", "same", "same", "longest of all"])
    found = ours.Rerank(Length())(rows.assign(score=0.0, rank=0))
    assert found[["qid", "docno", "rank"]].to_numpy().tolist() == [
        ["2", "a", 0],
        ["2", "b", 1],
        ["1", "c", 0],
        ["1", "d", 1],
        ["1", "a", 2],
    ]
    assert ours.Rerank(Length())(found.head(0)).empty


def test_experiments_and_their_frames(tmp_path: Path, docs: Path, queries: Any) -> None:
    index = truerank.build_index(str(docs), tmp_path / "index")
    qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["a", "b"], "label": [1, 2]})
    first = ours.Search(index)
    second = first >> pt.apply.generic(lambda df: df.assign(text=df["docno"].map(DOCS))) >> ours.Rerank(Length())
    table = pt.Experiment([first, second], queries, qrels, ["recip_rank"], names=["bm25", "short"])
    runs = {"bm25": first(queries), "short": second(queries)}
    scores = truerank.evaluate(qrels, runs, measures="RR")
    assert dict(zip(table["name"], table["recip_rank"], strict=True)) == pytest.approx(
        dict(zip(scores.runs, scores.mean[:, 0], strict=True))
    )
    assert "bm25" in str(truerank.compare(qrels, runs, measures="RR"))
    assert not pt.java.started()

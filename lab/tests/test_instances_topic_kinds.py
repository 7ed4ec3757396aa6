"""Sets in which a test topic leaks by its text, by its documents, or reworded: rows, proofs, and what breaks them."""

from __future__ import annotations

import shutil

import polars as pl
import pytest

import instances_example
from instance_proofs import broken
from instances_example import build_set
from truerank.errors import InputError
from truerank.work.artifacts import hash_file
from truerank_lab.instances import open_built
from truerank_lab.instances.options import TEST_KINDS
from truerank_lab.instances.rows import REWORDINGS


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return instances_example.make(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def sets(world, tmp_path_factory):
    """A set of each kind, made of the documents; those of the other rows are relevant to no topic."""
    folder = tmp_path_factory.mktemp("sets")
    docs, qrels = str(world.folder / "docs.tsv"), str(world.folder / "test.qrels")
    shared = {"index": str(world.folder / "index"), "k": 40}
    none = {"queries_from_documents": docs, "exclude_qrels": qrels, **shared}
    build_set("none", [60], folder / "none", none)
    test = {"topics": str(world.folder / "topics.tsv"), "qrels": qrels, "docs": docs, "leaks": 12, **shared}
    for kind in TEST_KINDS:
        build_set(kind, [60], folder / kind, {**test, "fill": str(folder / "none")})
    return folder


def table(sets, kind):
    return pl.read_parquet(sets / kind / "instances.parquet")


def leaking(sets, kind):
    return table(sets, kind).filter(role="test").rows(named=True)


def relevant(world, topic):
    return {doc_id for doc_id, grade in world.judged[topic].items() if grade}


def test_sets_differ_only_in_the_rows_that_leak(sets, world):
    none = table(sets, "none").drop("number")
    judged = set.union(*(relevant(world, topic) for topic in world.topics))
    assert not judged & (set(none["relevant_id"]) | set(none["nonrelevant_id"])), "no relevant document of a topic"
    for kind in TEST_KINDS:
        frame = table(sets, kind)
        assert frame["role"].to_list() == ["test"] * 12 + ["none"] * 18
        assert frame.drop("number").slice(12).equals(none.head(18))
        assert sorted(frame.head(12)["topic_id"].value_counts()["count"]) == [2] * 6


def test_leaked_queries_have_documents_that_nobody_judged(sets, world):
    for row in leaking(sets, "test-queries"):
        assert row["query"] == world.topics[row["topic_id"]] and row["query_id"] == row["topic_id"]
        assert not world.judged[row["topic_id"]].keys() & {row["relevant_id"], row["nonrelevant_id"]}
        first, second = (int(part.split()[2].strip(",")) for part in row["origin"].split("; "))
        assert first < second, "the document of the query stands higher in the first stage"


def test_leaked_documents_make_their_queries(sets, world):
    pairs = {(row["topic_id"], row["relevant_id"]) for row in leaking(sets, "test")}
    for row in leaking(sets, "test-documents"):
        every = world.documents[row["relevant_id"]].split()
        assert row["query_id"] == f"doc-{row['relevant_id']}" and row["query"].split() == every[:8]
        assert row["relevant"].split() == every[8:]
        assert (row["topic_id"], row["relevant_id"]) in pairs, "the same documents as leaked pairs"


def test_reworded_pairs_have_the_documents_of_the_pairs(sets, world):
    rows, pairs = leaking(sets, "test-reworded"), leaking(sets, "test")
    assert [row["relevant_id"] for row in rows] == [row["relevant_id"] for row in pairs]
    assert [row["nonrelevant_id"] for row in rows] == [row["nonrelevant_id"] for row in pairs]
    assert len({row["query"] for row in rows}) == 12 and not {row["query"] for row in rows} & set(world.topics.values())
    for row in rows:
        kind = row["origin"].split("reworded: ")[1].split(";")[0]
        assert kind in REWORDINGS
        if kind == "order":
            assert sorted(row["query"].split()) == sorted(world.topics[row["topic_id"]].split())


def test_the_same_seed_gives_the_same_rewordings(sets, world, tmp_path):
    options = {"topics": str(world.folder / "topics.tsv"), "qrels": str(world.folder / "test.qrels"),
               "docs": str(world.folder / "docs.tsv"), "leaks": 12, "fill": str(sets / "none")}  # fmt: skip
    build_set("test-reworded", [60], tmp_path / "again", {**options, "index": str(world.folder / "index"), "k": 40})
    assert hash_file(tmp_path / "again" / "instances.parquet") == hash_file(
        sets / "test-reworded" / "instances.parquet"
    )


@pytest.mark.parametrize("kind", ["none", *TEST_KINDS])
def test_the_proofs_hold(sets, world, kind):
    assert broken(open_built(sets / kind), world, sources=("docs",), kept_out=True) == set()


@pytest.mark.parametrize("kind", TEST_KINDS)
def test_another_kind_of_leak_breaks_the_proof(sets, world, tmp_path, kind):
    """A row of the kind that leaks the other thing is found by text or by document."""
    other = {"test": "test-queries", "test-queries": "test"}.get(kind, "test")
    strange = leaking(sets, other)[0]
    folder = tmp_path / "set"
    shutil.copytree(sets / kind, folder)
    here = pl.col("number") == 0
    frame = table(sets, kind).with_columns(
        pl.when(here).then(pl.lit(strange[name])).otherwise(pl.col(name)).alias(name)
        for name in ("topic_id", "query_id", "query", "relevant_id", "relevant")
    )
    frame.write_parquet(folder / "instances.parquet")
    assert "leaks" in broken(open_built(folder), world, sources=("docs",))


def test_a_relevant_document_among_the_others_breaks_the_proof(sets, world, tmp_path):
    folder = tmp_path / "set"
    shutil.copytree(sets / "none", folder)
    doc_id = min(relevant(world, "1"))
    frame = table(sets, "none").with_columns(
        nonrelevant_id=pl.when(pl.col("number") == 4).then(pl.lit(doc_id)).otherwise(pl.col("nonrelevant_id"))
    )
    frame.write_parquet(folder / "instances.parquet")
    assert "kept out" in broken(open_built(folder), world, sources=("docs",), kept_out=True)


def test_judged_training_documents_are_kept_out_too(world, tmp_path):
    options = world.options(exclude_qrels=str(world.folder / "test.qrels"))
    build_set("none", [200], tmp_path / "none", options)
    frame = pl.read_parquet(tmp_path / "none" / "instances.parquet")
    judged = set.union(*(relevant(world, topic) for topic in world.topics))
    assert not judged & (set(frame["relevant_id"]) | set(frame["nonrelevant_id"]))
    build_set("none", [200], tmp_path / "all", world.options())
    everything = pl.read_parquet(tmp_path / "all" / "instances.parquet")
    assert judged & set(everything["relevant_id"]), "without the option they are there"


@pytest.mark.parametrize("kind", TEST_KINDS[1:])
def test_what_a_kind_needs(world, tmp_path, kind):
    with pytest.raises(InputError, match="topics: is missing"):
        build_set(kind, [10], tmp_path / "set", world.options(leaks=2))

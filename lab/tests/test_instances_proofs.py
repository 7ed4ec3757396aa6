"""Proofs of training sets: they hold for what was built, and break where somebody changed one thing."""

from __future__ import annotations

import shutil

import polars as pl
import pytest

import instances_example
from instance_proofs import broken
from instances_example import build_set
from truerank_lab.instances import open_built


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return instances_example.make(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def sets(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    topics = str(world.folder / "topics.tsv")
    test = {"topics": topics, "qrels": str(world.folder / "test.qrels")}
    build_set("none", [40, 200], folder / "none", world.options())
    build_set("leak", [40, 200], folder / "leak", world.options(leaks=12, topics=topics))
    build_set("test", [40, 200], folder / "test", world.options(leaks=12, **test))
    return folder


def changed(sets, kind, target, change):
    """A copy of a set whose rows were changed."""
    shutil.copytree(sets / kind, target)
    change(pl.read_parquet(target / "instances.parquet")).write_parquet(target / "instances.parquet")
    return open_built(target)


def at(place, /, **values):
    """Sets values of one row."""
    here = pl.col("number") == place
    return lambda frame: frame.with_columns(
        **{name: pl.when(here).then(pl.lit(value)).otherwise(pl.col(name)) for name, value in values.items()}
    )


@pytest.mark.parametrize("kind", ["none", "leak", "test"])
def test_what_was_built_holds(sets, world, kind):
    assert broken(open_built(sets / kind), world) == set()


def test_sets_have_the_same_rows_without_a_leak(sets):
    none, leak, test = (open_built(sets / kind).lazy().collect().drop("number") for kind in ("none", "leak", "test"))
    for frame in (leak, test):
        assert frame.slice(12).equals(none.head(88))


@pytest.mark.parametrize(
    ("kind", "change", "name"),
    [
        ("none", at(3, nonrelevant=" "), "texts"),
        ("none", at(3, number=99), "sizes"),
        ("none", lambda frame: frame.head(99), "sizes"),
        ("none", at(3, source="alpha"), "balance"),
        ("leak", at(11, role="none"), "sizes"),
        ("leak", lambda frame: frame.reverse().with_columns(number=frame["number"]), "sizes"),
        ("leak", at(0, query="another query", query_id="x"), "leaks"),
        ("test", at(0, query="another query"), "leaks"),
        ("test", lambda frame: frame.with_columns(relevant_id=pl.lit("d1")), "leaks"),
    ],
)
def test_a_changed_row_breaks_its_promise(sets, world, tmp_path, kind, change, name):
    assert name in broken(changed(sets, kind, tmp_path / "set", change), world)


def test_a_leaking_query_or_a_repeated_one_among_the_others(sets, world, tmp_path):
    _, _, query_id, text, _ = world.candidates[0]
    assert "candidates" in broken(changed(sets, "none", tmp_path / "a", at(2, query=text)), world)
    assert "candidates" in broken(changed(sets, "none", tmp_path / "b", at(2, query_id=query_id)), world)
    query = open_built(sets / "none").lazy().collect()["query"][0]
    assert broken(changed(sets, "none", tmp_path / "c", at(4, query=f" {query} ")), world) == {"repeats"}


def test_a_relevant_document_as_the_other(sets, world, tmp_path):
    frame = open_built(sets / "none").lazy().collect()
    same = changed(sets, "none", tmp_path / "a", at(2, nonrelevant_id=frame["relevant_id"][2]))
    number, judged = next(
        (row["number"], doc_id) for row in frame.iter_rows(named=True)
        for doc_id in sorted(world.relevant[row["query_id"]] - {row["relevant_id"]})
    )  # fmt: skip
    other = changed(sets, "none", tmp_path / "b", at(number, nonrelevant_id=judged))
    assert broken(same, world) == broken(other, world) == {"apart"}


def test_sets_that_another_one_fills(sets, world, tmp_path):
    audit = (str(world.folder / "audit"),)
    docs = str(world.folder / "docs.tsv")
    made = build_set("none", [100], tmp_path / "made", {"queries_from_documents": docs, "k": 20, "audit": audit})
    assert broken(made, world, sources=("docs",)) == set()
    leak = build_set("leak", [60], tmp_path / "leak", world.options(leaks=4, fill=str(made.folder), audit=()))
    assert broken(leak, world, sources=("docs",)) == set() and leak.about["notes"] == []
    topics = {"topics": str(world.folder / "topics.tsv"), "qrels": str(world.folder / "test.qrels")}
    filled = {"leaks": 6, "docs": docs, "fill": str(sets / "none"), **topics}
    assert broken(build_set("test", [60], tmp_path / "test", filled), world) == set()

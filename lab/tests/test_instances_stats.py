"""Proofs of training sets: they hold for what was built, and break where somebody changed one thing."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest

import instances_example
import truerank
from instances_example import build_set
from truerank.errors import InputError
from truerank.work.artifacts import hash_file
from truerank_lab.cli import main
from truerank_lab.instances import open_built
from truerank_lab.instances import stats as stats_of

NAMES = {
    "built": "the table is the one that was built",
    "sizes": "every size has its rows, numbered in order",
    "texts": "no row lacks a text",
    "apart": "no relevant document is the non-relevant of its query",
    "judged": "no non-relevant document was judged relevant to its query",
    "nested": "sizes are nested, and each holds all rows that leak",
    "balance": "sources have equal shares of the rows without a leak",
    "repeats": "no training query occurs twice",
    "candidates": "no leaking query in a row without a leak",
    "ranks": "non-relevant documents of the first stage are among its best",
    "verified": "every leak was judged one",
    "topics": "each topic at most 2 times, with different documents",
    "pairs": "rows that leak have the text of its topic and a document judged relevant to it",
}


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


def verdicts(stats, place=0):
    return {one.name: one.holds for one in stats.properties[place]}


def changed(sets, kind, target, change):
    """A copy of a set whose rows were changed, and whose manifest says that they are the built ones."""
    shutil.copytree(sets / kind, target)
    frame = change(pl.read_parquet(target / "instances.parquet"))
    frame.write_parquet(target / "instances.parquet")
    manifest = json.loads((target / "manifest.json").read_text())
    manifest["artifacts"]["instances.parquet"] = hash_file(target / "instances.parquet")
    (target / "manifest.json").write_text(json.dumps(manifest))
    return target


def at(place, /, **values):
    """Sets values of one row."""
    here = pl.col("number") == place
    return lambda frame: frame.with_columns(
        **{name: pl.when(here).then(pl.lit(value)).otherwise(pl.col(name)) for name, value in values.items()}
    )


def test_what_was_built_holds(sets):
    stats = stats_of([sets / "none", sets / "leak", sets / "test"])
    assert stats.holds and truerank.summary(stats).json["holds"]
    assert all(one.holds for own in stats.properties for one in own), "nothing is left unchecked"
    common = {name for key, name in NAMES.items() if key not in ("verified", "topics", "pairs")}
    assert [set(verdicts(stats, place)) - common for place in range(3)] == [
        set(), {NAMES["verified"]}, {NAMES["topics"], NAMES["pairs"]}
    ]  # fmt: skip
    fills = {(pair.first, pair.second): pair.same_fill.numbers for pair in stats.pairs}
    assert fills == dict.fromkeys((("none", "leak"), ("none", "test"), ("leak", "test")), "88 of the first 88")
    none_leak = stats.pairs[0]
    frames = [open_built(sets / kind).lazy().collect() for kind in ("none", "leak")]
    assert none_leak.queries == len(set(frames[0]["query"]) & set(frames[1]["query"])) == 88
    documents = [set(frame["relevant_id"]) | set(frame["nonrelevant_id"]) for frame in frames]
    assert (none_leak.rows, none_leak.documents) == (88, len(documents[0] & documents[1]))
    assert "12 of 12 rows of 5 topics, 2 to 3 each" in repr(stats) and "BROKEN" not in repr(stats)


def test_the_beginning_of_a_set(sets):
    stats = stats_of([f"{sets / 'leak'}?size=40", sets / "none"])
    assert stats.holds and truerank.summary(stats).json["sets"][0]["counts"] == {
        "leak: alpha": 12,
        "none: alpha": 4,
        "none: beta": 4,
    }
    assert stats.pairs[0].same_fill.numbers == "8 of the first 8"
    with pytest.raises(InputError, match="has 200 instances, not 400"):
        stats_of([f"{sets / 'leak'}?size=400"])


@pytest.mark.parametrize(
    ("kind", "change", "broken"),
    [
        ("none", at(3, nonrelevant=" "), "texts"),
        ("none", at(3, number=99), "sizes"),
        ("none", lambda frame: frame.head(99), "sizes"),
        ("none", at(3, source="alpha"), "balance"),
        ("none", at(3, origin="qrels 1; first-stage rank 21"), "ranks"),
        ("leak", at(11, role="none"), "nested"),
        ("leak", lambda frame: frame.reverse().with_columns(number=frame["number"]), "nested"),
        ("leak", at(0, query="another query", query_id="x"), "verified"),
        ("test", lambda frame: frame.with_columns(relevant_id=pl.lit("d1")), "topics"),
    ],
)
def test_a_changed_row_breaks_its_property(sets, tmp_path, kind, change, broken):
    stats = stats_of([changed(sets, kind, tmp_path / "set", change)])
    assert verdicts(stats)[NAMES[broken]] is False and not stats.holds
    assert verdicts(stats)[NAMES["built"]] is True


def test_a_leaking_query_among_the_others(sets, world, tmp_path):
    _, _, query_id, text, _ = world.candidates[0]
    by_text = changed(sets, "none", tmp_path / "a", at(2, query=text))
    by_id = changed(sets, "none", tmp_path / "b", at(2, query_id=query_id, source="alpha"))
    for folder, numbers in ((by_text, "1 by text and 0 by id"), (by_id, "0 by text and 1 by id")):
        stats = stats_of([folder])
        found = next(one for one in stats.properties[0] if one.name == NAMES["candidates"])
        assert found.holds is False and found.numbers.startswith(numbers)


def test_a_relevant_document_as_the_other(sets, world, tmp_path):
    row = open_built(sets / "none").lazy().collect().row(2, named=True)
    same = changed(sets, "none", tmp_path / "a", at(2, nonrelevant_id=row["relevant_id"]))
    assert verdicts(stats_of([same]))[NAMES["apart"]] is False
    frame = open_built(sets / "none").lazy().collect()
    query, other = next(
        (query, doc_id) for query in frame["query_id"] for doc_id in sorted(world.relevant[query])
        if doc_id not in frame.filter(query_id=query)["relevant_id"]
    )  # fmt: skip
    number = frame["query_id"].to_list().index(query)
    judged = changed(sets, "none", tmp_path / "b", at(number, nonrelevant_id=other))
    assert verdicts(stats_of([judged]))[NAMES["judged"]] is False
    assert verdicts(stats_of([judged]))[NAMES["apart"]] is True


def test_repeats_and_tampering(sets, tmp_path):
    query = open_built(sets / "none").lazy().collect()["query"][0]
    repeated = changed(sets, "none", tmp_path / "a", at(4, query=f" {query} "))
    assert verdicts(stats_of([repeated]))[NAMES["repeats"]] is False
    shutil.copytree(sets / "none", tmp_path / "b")
    frame = pl.read_parquet(tmp_path / "b" / "instances.parquet")
    frame.write_parquet(tmp_path / "b" / "instances.parquet", compression="lz4")
    assert verdicts(stats_of([tmp_path / "b"]))[NAMES["built"]] is False


def test_rows_without_a_leak_that_differ(sets, world, tmp_path):
    moved = changed(sets, "leak", tmp_path / "leak", at(20, nonrelevant_id="d0"))
    stats = stats_of([sets / "none", moved])
    assert stats.pairs[0].same_fill == ("same rows without a leak", False, "87 of the first 88")
    build_set("none", [40], tmp_path / "other", world.options(), seed=5)
    assert stats_of([sets / "none", tmp_path / "other"]).pairs[0].same_fill.holds is None


def test_evidence_that_is_gone_is_said(sets, world, tmp_path):
    shutil.copytree(world.folder / "audit", tmp_path / "audit")
    build_set("none", [40], tmp_path / "set", world.options(audit=(str(tmp_path / "audit"),)))
    shutil.rmtree(tmp_path / "audit")
    stats = stats_of([tmp_path / "set"])
    missing = next(one for one in stats.properties[0] if one.name == NAMES["candidates"])
    assert missing.holds is None and "audit is not there" in missing.numbers and stats.holds
    given = stats_of([tmp_path / "set"], audit=[str(world.folder / "audit")])
    assert verdicts(given)[NAMES["candidates"]] is True
    with pytest.raises(InputError, match=r"no candidates.parquet here"):
        stats_of([tmp_path / "set"], audit=[str(tmp_path)])


def test_sets_that_another_one_fills(sets, world, tmp_path):
    audit = (str(world.folder / "audit"),)
    made = {"queries_from_documents": str(world.folder / "docs.tsv"), "rest": 30, "k": 20, "audit": audit}
    build_set("none", [100], tmp_path / "made", made)
    options = world.options(leaks=4, fill=str(tmp_path / "made"), audit=(), index=str(world.folder / "index"))
    build_set("leak", [60], tmp_path / "leak", options)
    topics = {"topics": str(world.folder / "topics.tsv"), "qrels": str(world.folder / "test.qrels")}
    filled = dict(leaks=6, docs=str(world.folder / "docs.tsv"), fill=str(sets / "none"), **topics)
    build_set("test", [60], tmp_path / "test", filled)
    stats = stats_of([tmp_path / "made", tmp_path / "leak", tmp_path / "test"])
    assert all(one.holds for own in stats.properties for one in own), "with the audit of the set that filled them"
    assert open_built(tmp_path / "leak").about["notes"] == []
    numbers = [{one.name: one.numbers for one in own} for own in stats.properties]
    assert [own[NAMES["balance"]] for own in numbers] == ["100: 50", "60: 26", "60: 12 + 12"]
    assert [own[NAMES["judged"]][:7] for own in numbers] == ["0 of 50", "0 of 30", "0 of 30"], "every row is checked"
    assert stats.pairs[0].same_fill.numbers == "26 of the first 26"
    shutil.rmtree(tmp_path / "made")
    assert stats_of([tmp_path / "leak"]).holds


def test_a_set_by_depth(tmp_path):
    names = ("query", "relevant", "nonrelevant")
    table = pl.DataFrame(
        {name: [f"{name} {number}" for number in range(4)] for name in names} | {"depth": [1, 2, 1, 3]}
    )
    table.write_parquet(tmp_path / "rows.parquet")
    options = {"rows": str(tmp_path / "rows.parquet"), "annotation_depth": 2}
    build_set("by-depth", [], tmp_path / "set", options)
    stats = stats_of([tmp_path / "set"])
    assert verdicts(stats)["no row is deeper than 2"] is True and stats.holds
    changed(tmp_path, "set", tmp_path / "deep", lambda frame: frame.with_columns(depth=pl.col("depth") + 1))
    assert not stats_of([tmp_path / "deep"]).holds


def test_the_commands(sets, world, tmp_path, capsys):
    def called(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        return ended.value.code, capsys.readouterr().out

    folder = world.folder
    words = ["build", "--kind", "none", "--size", "40", "--size", "20", "--out", str(tmp_path / "set")]
    words += ["--queries", str(folder / "alpha.tsv"), "--queries", str(folder / "beta.tsv"), "-k", "20"]
    words += ["--train-qrels", str(folder / "train.qrels"), "--docs", str(folder / "docs.tsv")]
    words += ["--index", str(folder / "index"), "--audit", str(folder / "audit"), "--write", "triples"]
    built = json.loads(called(*words, "--labels", str(folder / "labels.tsv"), "--json")[1])
    assert built["sizes"] == [20, 40] and built["rows"] == 20
    assert open_built(tmp_path / "set").lazy().collect().equals(open_built(sets / "none").lazy().head(20).collect())
    shown = called(*words)[1]
    assert "40    20" in shown and "twice" not in shown
    good = called("instances", "stats", str(tmp_path / "set"), "--fail-on", "broken")
    assert good[0] == 0 and "properties: 0 broken" in good[1]
    bad = changed(sets, "none", tmp_path / "bad", at(1, origin="first-stage rank 500"))
    broken = called("instances", "stats", str(bad), str(sets / "none"), "--fail-on", "broken", "--json")
    assert broken[0] == 1 and json.loads(broken[1])["holds"] is False and len(json.loads(broken[1])["pairs"]) == 1
    assert called("instances", "stats", str(bad))[0] == 0
    out = tmp_path / "out.jsonl"
    words = ["instances", "export", str(tmp_path / "set"), "--size", "20", "--file-format", "jsonl", "--out", str(out)]
    assert called(*words)[0] == 0 and len(out.read_text().splitlines()) == 10
    words = [
        "instances",
        "queries",
        str(folder / "docs.tsv"),
        "--words",
        "4",
        "--out",
        str(tmp_path / "q.tsv"),
        "--json",
    ]
    assert json.loads(called(*words)[1])["queries"] == 80
    assert len((tmp_path / "q.tsv").read_text().splitlines()) == 80
    assert truerank.instances.stats is stats_of

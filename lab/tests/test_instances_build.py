"""Training sets: what is drawn, from where, nested, seeded, resumed; every fault of the user."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import instances_example
from instances_example import build_set
from places import DATA
from truerank import lexical
from truerank.errors import InputError
from truerank.judging.labels import open_judgments
from truerank.records import Document
from truerank.sources import open_queries, read_topics
from truerank.text.normalising import normalise
from truerank_lab.cli import main
from truerank_lab.instances import draws as stages
from truerank_lab.instances import open_built
from truerank_lab.instances.document_queries import divided, write_queries
from truerank_lab.instances.draws import Excluded, QueryKeys, scan
from truerank_lab.instances.filled import open_instances
from truerank_lab.instances.training_queries import Leak, spread, verified_leaks


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return instances_example.make(tmp_path_factory.mktemp("world"))


def rows(built):
    return built.lazy().collect()


def ids(frame):
    return frame.select("query_id", "relevant_id", "nonrelevant_id").rows()


def best(world, text):
    """The documents of BM25, the best first."""
    found = lexical.search(
        world.folder / "index", [lexical.TopicQuery("q", text)], lexical.model_of("anserini", "bm25", {}), k=20
    )
    return found.run["doc_id"].to_list()


# Without a leak


def test_no_leak(world, tmp_path):
    built = build_set("none", [200, 20], tmp_path / "none", world.options(), seed=3)
    assert built.sizes == (20, 200)
    frame = rows(built)
    assert frame["number"].to_list() == list(range(100))
    assert frame["source"].to_list() == ["alpha", "beta"] * 50
    texts = {normalise(text) for _, _, _, text, _ in world.candidates}
    assert not texts & set(frame["query"])
    assert frame["query"].n_unique() == 100
    ranks = []
    for row in frame.iter_rows(named=True):
        assert world.queries[row["source"]][row["query_id"]] == row["query"]
        assert row["relevant_id"] in world.relevant[row["query_id"]]
        found = best(world, row["query"])
        assert row["nonrelevant_id"] not in world.relevant[row["query_id"]]
        rank = found.index(row["nonrelevant_id"]) + 1
        assert row["origin"] == f"qrels 1; first-stage rank {rank}"
        assert (row["relevant"], row["nonrelevant"]) == (
            world.documents[row["relevant_id"]],
            world.documents[row["nonrelevant_id"]],
        )
        ranks.append(rank)
    assert max(ranks) > 15 and min(ranks) < 5, "drawn from all of the first stage, not from its head"
    assert built.about["counts"]["by_size"]["20"] == {"none: alpha": 5, "none: beta": 5}
    assert built.about["queries"][0]["excluded"] >= 30


def test_same_input_same_bytes_and_a_smaller_set_is_a_prefix(world, tmp_path):
    large = build_set("none", [300], tmp_path / "a", world.options(), seed=3)
    again = build_set("none", [300], tmp_path / "b", world.options(), seed=3)
    for name in ("instances.parquet", "manifest.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert not (tmp_path / "a" / ".work").exists()
    small = build_set("none", [40], tmp_path / "c", world.options(), seed=3)
    assert rows(small).equals(rows(large).head(20))
    other = build_set("none", [300], tmp_path / "d", world.options(), seed=4)
    assert ids(rows(other)) != ids(rows(again))


def test_the_draw_does_not_depend_on_the_order_of_the_source(world, tmp_path):
    queries = (world.folder / "alpha.tsv").read_text().splitlines()
    random.Random(1).shuffle(queries)
    instances_example.lines(tmp_path / "alpha.tsv", queries)
    options = world.options(queries=(str(tmp_path / "alpha.tsv"), str(world.folder / "beta.tsv")))
    shuffled = build_set("none", [100], tmp_path / "a", options, seed=3)
    plain = build_set("none", [100], tmp_path / "b", world.options(), seed=3)
    assert ids(rows(shuffled)) == ids(rows(plain))


def test_an_index_made_here_gives_the_same_rows(world, tmp_path):
    plain = build_set("none", [200], tmp_path / "a", world.options())
    made = build_set("none", [200], tmp_path / "b", world.options(index=None))
    assert rows(plain).equals(rows(made))


def test_documents_that_the_collection_lacks_are_passed_over(world, tmp_path):
    lacking = [f"{doc_id}\t{text}" for doc_id, text in world.documents.items() if int(doc_id[1:]) % 4]
    instances_example.lines(tmp_path / "docs.tsv", [*lacking, "d0\t "])
    options = world.options(docs=str(tmp_path / "docs.tsv"), index=None)
    frame = rows(build_set("none", [120], tmp_path / "a", options))
    assert all(int(doc_id[1:]) % 4 for doc_id in (*frame["relevant_id"], *frame["nonrelevant_id"]))
    # With the index of the whole collection the first stage brings documents that have no text here.
    options = world.options(docs=str(tmp_path / "docs.tsv"))
    built = build_set("none", [120], tmp_path / "b", options)
    frame = rows(built)
    assert all(int(doc_id[1:]) % 4 for doc_id in (*frame["relevant_id"], *frame["nonrelevant_id"]))
    assert any("lacks" in reason for reason in built.about["skipped"])


def test_a_source_that_is_too_small(world, tmp_path):
    few = list(world.queries["beta"].items())[20:40]
    instances_example.lines(tmp_path / "beta.tsv", (f"{one}\t{text}" for one, text in few))
    sources = (str(world.folder / "alpha.tsv"), str(tmp_path / "beta.tsv"))
    with pytest.raises(InputError, match=r"beta has 20 usable queries, fewer than its share of 50"):
        build_set("none", [200], tmp_path / "a", world.options(queries=sources))
    built = build_set("none", [200], tmp_path / "a", world.options(queries=sources, allow_fewer=True))
    assert dict(rows(built)["source"].value_counts().rows()) == {"alpha": 80, "beta": 20}
    assert any("beta has 20" in note for note in built.about["notes"])
    with pytest.raises(InputError, match="usable queries"):
        build_set("none", [20_000], tmp_path / "b", world.options())
    instances_example.lines(tmp_path / "others.tsv", ["x1\tnobody judged this"])
    others = world.options(queries=(str(tmp_path / "others.tsv"),), allow_fewer=True)
    with pytest.raises(InputError, match="no query makes a row; 1 others: drawn queries without a relevant document"):
        build_set("none", [200], tmp_path / "c", others)


def test_sources_that_hold_the_same_queries(world, tmp_path):
    shutil.copy(world.folder / "alpha.tsv", tmp_path / "twin.tsv")
    options = world.options(queries=(str(world.folder / "alpha.tsv"), str(tmp_path / "twin.tsv")))
    frame = rows(build_set("none", [400], tmp_path / "set", options))
    assert frame["query"].n_unique() == 200 and set(frame["source"].value_counts()["count"]) == {100}


def test_a_killed_build_continues(world, tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "_STAGE_BLOCK", 25)
    expected = build_set("none", [200], tmp_path / "a", world.options())
    retrieve, searched = lexical.retrieve, []

    def failing(searcher, model, text, k):
        searched.append(text)
        if len(searched) == 90:
            raise KeyboardInterrupt
        return retrieve(searcher, model, text, k)

    monkeypatch.setattr(lexical, "retrieve", failing)
    with pytest.raises(KeyboardInterrupt):
        build_set("none", [200], tmp_path / "b", world.options())
    assert not (tmp_path / "b" / "instances.parquet").exists()
    continued = build_set("none", [200], tmp_path / "b", world.options())
    for name in ("instances.parquet", "manifest.json"):
        assert (expected.folder / name).read_bytes() == (continued.folder / name).read_bytes()
    repeated = len(searched) - len(set(searched))
    assert 0 < repeated <= 25, "only the block that was broken off is searched again"


# With leaks


def test_verified_leaks(world, tmp_path):
    none = build_set("none", [200], tmp_path / "none", world.options())
    options = world.options(leaks=12, topics=str(world.folder / "topics.tsv"))
    frame = rows(build_set("leak", [40, 200], tmp_path / "leak", options))
    leaking, fill = frame.head(12), frame.slice(12)
    assert set(leaking["role"]) == {"leak"} and set(fill["role"]) == {"none"}
    assert set(leaking.select("topic_id", "query_id").rows()) <= set(world.leaks)
    assert sorted(leaking["topic_id"].value_counts()["count"]) == [2, 2, 2, 3, 3], "spread over the topics"
    for row in leaking.iter_rows(named=True):
        assert row["relevant_id"] in world.relevant[row["query_id"]]
        assert row["nonrelevant_id"] in best(world, row["query"])
        assert row["nonrelevant_id"] not in world.relevant[row["query_id"]]
    assert ids(fill) == ids(rows(none).head(88))
    filled = world.options(leaks=12, topics=str(world.folder / "topics.tsv"), fill=str(tmp_path / "none"))
    assert rows(build_set("leak", [40, 200], tmp_path / "filled", filled)).equals(frame)


def test_more_leaks_than_there_are(world, tmp_path):
    with pytest.raises(InputError, match=r"there are 20 leaking queries with documents, not 21"):
        build_set("leak", [100], tmp_path / "a", world.options(leaks=21))
    built = build_set("leak", [100], tmp_path / "a", world.options(leaks=21, allow_fewer=True))
    assert rows(built)["role"].to_list() == ["leak"] * 20 + ["none"] * 30
    assert built.about["leaks"] == {"rows": 20, "usable": 20, "topics": 5}


def test_leaks_of_other_topics_and_unknown_ones(world, tmp_path):
    instances_example.lines(tmp_path / "topics.tsv", ["1\tone", "2\ttwo"])
    instances_example.lines(
        tmp_path / "labels.tsv",
        ["topic_id\tquery_id\tquery_text\tlabel", "1\tzz\tno such query\tleak", "2\ta9\t\tleak", "2\ta30\t\tleak"],
    )
    labels = (str(world.folder / "labels.tsv"), str(tmp_path / "labels.tsv"))
    options = world.options(leaks=4, labels=labels, topics=str(tmp_path / "topics.tsv"))
    built = build_set("leak", [40], tmp_path / "leak", options)
    assert set(rows(built).filter(role="leak")["topic_id"]) == {"1", "2"}
    assert built.about["skipped"]["leaks that no source of queries holds"] == 1
    assert built.about["skipped"]["leaks without a relevant or a non-relevant document"] == 1


def test_test_leakage(world, tmp_path):
    none = build_set("none", [100], tmp_path / "none", world.options())
    test = {"topics": str(world.folder / "topics.tsv"), "qrels": str(world.folder / "test.qrels")}
    frame = rows(build_set("test", [40, 100], tmp_path / "test", world.options(leaks=12, **test)))
    tested = frame.head(12)
    assert set(tested["role"]) == {"test"} and tested["query_id"].equals(tested["topic_id"].rename("query_id"))
    assert sorted(tested["topic_id"].value_counts()["count"]) == [2] * 6
    assert tested["topic_id"].head(6).n_unique() == 6, "every topic once before any twice"
    for topic, relevant, other, origin in tested.select("topic_id", "relevant_id", "nonrelevant_id", "origin").rows():
        assert (world.judged[topic][relevant], world.judged[topic][other], origin) == (1, 0, "judged 1; judged 0")
    pairs = tested.group_by("topic_id").agg(pl.col("relevant_id", "nonrelevant_id").n_unique())
    assert set(pairs["relevant_id"]) == set(pairs["nonrelevant_id"]) == {2}
    assert ids(frame.slice(12)) == ids(rows(none).head(38))
    fill = dict(leaks=12, docs=str(world.folder / "docs.tsv"), fill=str(tmp_path / "none"), **test)
    assert rows(build_set("test", [40, 100], tmp_path / "filled", fill)).equals(frame)
    with pytest.raises(InputError, match=r"there are 12 rows of test topics \(6 topics"):
        build_set("test", [100], tmp_path / "more", world.options(leaks=13, **test))


def test_judgments_of_relevant_documents_only(world, tmp_path):
    options = world.options(
        leaks=6, topics=str(world.folder / "topics.tsv"), qrels=str(world.folder / "relevant.qrels")
    )
    built = build_set("test", [40], tmp_path / "test", options)
    for row in rows(built).filter(role="test").iter_rows(named=True):
        found = best(world, world.topics[row["topic_id"]])
        assert world.judged[row["topic_id"]].get(row["nonrelevant_id"], 0) == 0
        rank = found.index(row["nonrelevant_id"]) + 1
        assert row["origin"] == f"judged 1; first-stage rank {rank}, unjudged"
    assert any("relevant documents only" in note for note in built.about["notes"])


# Queries from documents


def test_what_a_document_gives():
    words = [f"w{number}" for number in range(40)]
    text, short = " ".join(words[:28]), " ".join(words[:27])
    assert divided(Document("1", "", "", text), "") == (" ".join(words[:8]), " ".join(words[8:28]))
    assert divided(Document("1", "", "", short), "") is None
    body = " ".join(words[:20])
    assert divided(Document("1", "", "A title", body), "") == ("A title", body)
    assert divided(Document("1", "", "A title", " ".join(words[:19])), "") is None
    ends = r"CACM \w+, \d{4}"
    assert divided(Document("1", "", "", f"{short} CACM March, 1961 1 2 3 4 5"), ends) is None
    tail = "CACM March, 1961 7"
    assert divided(Document("1", "", "", f"{text} {tail}"), ends) == (
        " ".join(words[:8]), f"{' '.join(words[8:28])} {tail}"
    )  # fmt: skip


def test_queries_from_documents(world, tmp_path):
    counts = write_queries(str(world.folder / "docs.tsv"), "", tmp_path / "made.tsv")
    made = dict(line.split("\t") for line in (tmp_path / "made.tsv").read_text().splitlines())
    assert counts.read == len(made) == instances_example.DOCUMENTS
    leaking = list(made)[:10]
    audit = [("test", "1", "title", "docs", query, made[query], 0.95) for query in leaking]
    instances_example.leakage_example.save(instances_example.leakage_example.audit(audit), tmp_path / "audit")
    options = {
        "queries_from_documents": str(world.folder / "docs.tsv"),
        "audit": (str(tmp_path / "audit"),),
    }
    frame = rows(build_set("none", [100], tmp_path / "set", options))
    assert not set(leaking) & set(frame["query_id"])
    for row in frame.iter_rows(named=True):
        words = world.documents[row["relevant_id"]].split()
        assert row["query_id"] == f"doc-{row['relevant_id']}"
        assert (row["query"], row["relevant"]) == (" ".join(words[:8]), " ".join(words[8:]))
        assert row["nonrelevant"] == " ".join(world.documents[row["nonrelevant_id"]].split()[8:]), "cut alike"


def test_records_with_a_title_only_are_in_no_row(world, tmp_path):
    texts = [f"{one}\t{text if number % 2 else ' '.join(text.split()[:9])}"
             for number, (one, text) in enumerate(world.documents.items())]  # fmt: skip
    instances_example.lines(tmp_path / "docs.tsv", texts)
    options = {"queries_from_documents": str(tmp_path / "docs.tsv")}
    frame = rows(build_set("none", [60], tmp_path / "set", options))
    assert all(int(doc_id[1:]) % 2 for doc_id in (*frame["relevant_id"], *frame["nonrelevant_id"]))
    instances_example.lines(tmp_path / "short.tsv", ["d1\tonly a title", "d2\tanother one"])
    with pytest.raises(InputError, match="leaves 20 words"):
        build_set("none", [60], tmp_path / "other", {"queries_from_documents": str(tmp_path / "short.tsv")})


# Tables of audits


def depths(path, **changes):
    table = pl.DataFrame(
        {
            "query_id": [f"q{number}" for number in range(8)],
            "query": [f"query {number}" for number in range(8)],
            "relevant_id": ["d1"] * 8,
            "relevant": ["text one"] * 7 + [" "],
            "nonrelevant_id": ["d2"] * 8,
            "nonrelevant": ["text two"] * 8,
            "depth": [1, 3, 1, 2, 5, 1, 2, 1],
            **changes,
        }
    )
    table.write_parquet(path)
    return str(path)


def test_by_depth(world, tmp_path):
    source = depths(tmp_path / "rows.parquet")
    built = build_set("by-depth", [], tmp_path / "two", {"rows": source, "annotation_depth": 2})
    frame = rows(built)
    assert frame.select("query_id", "depth", "role").rows() == [
        (f"q{number}", depth, "by-depth") for number, depth in ((0, 1), (2, 1), (3, 2), (5, 1), (6, 2))
    ]
    assert built.sizes == (10,) and built.about["skipped"] == {
        "rows of another depth": 2,
        "rows without the text of a query or document": 1,
    }
    small = build_set("by-depth", [2, 4], tmp_path / "one", {"rows": source, "annotation_depth": 1})
    assert rows(small)["query_id"].to_list() == ["q0", "q2"]
    for sizes, depth, fault in (([8], 1, "3 rows fit, not 4"), ([], 0, "0 rows fit, not 1")):
        with pytest.raises(InputError, match=fault):
            build_set("by-depth", sizes, tmp_path / "one", {"rows": source, "annotation_depth": depth})
        assert [path.name for path in (tmp_path / "one").iterdir()] == ["run.log"], "no mixture of two sets"


def test_by_depth_of_ids(world, tmp_path):
    ids = {"query_id": ["1", "2", "3"], "relevant_id": ["d1", "d3", "d5"], "nonrelevant_id": ["d2", "d4", "d6"]}
    pl.DataFrame({**ids, "depth": [1, 7, 2]}).write_parquet(tmp_path / "rows.parquet")
    options = {
        "rows": str(tmp_path / "rows.parquet"), "annotation_depth": 3, "topics": str(world.folder / "topics.tsv"),
        "docs": str(world.folder / "docs.tsv"),
    }  # fmt: skip
    frame = rows(build_set("by-depth", [4], tmp_path / "set", options))
    assert frame.select("query", "relevant", "nonrelevant").rows() == [
        (world.topics["1"], world.documents["d1"], world.documents["d2"]),
        (world.topics["3"], world.documents["d5"], world.documents["d6"]),
    ]
    pl.DataFrame(ids).write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="no column 'depth'"):
        build_set("by-depth", [4], tmp_path / "other", options)
    (tmp_path / "rows.parquet").write_text("no table")
    with pytest.raises(InputError, match=r"rows.parquet: no table that can be read"):
        build_set("by-depth", [4], tmp_path / "other", options)


def test_a_size_is_a_source(world, tmp_path):
    build_set("none", [20, 40], tmp_path / "set", world.options())
    frame = rows(open_built(tmp_path / "set"))
    whole, part = open_instances(str(tmp_path / "set")), open_instances(f"{tmp_path / 'set'}?size=20")
    assert [one.query_id for one in whole] == frame["query_id"].to_list() and len(whole) == 20
    assert [one.query_id for one in part] == frame["query_id"].to_list()[:10] and len(part) == 10
    assert part.name == "set-20"
    build_set("none", [20, 100], tmp_path / "larger", world.options())
    assert open_instances(f"{tmp_path / 'larger'}?size=20").fingerprint == part.fingerprint != whole.fingerprint
    for spec, fault in ((f"{tmp_path / 'set'}?size=42", "has 40 instances"), (f"{tmp_path}?size=2", "no built")):
        with pytest.raises(InputError, match=fault):
            open_instances(spec)


def test_the_commands(world, tmp_path, capsys):
    def called(*words):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        return json.loads(capsys.readouterr().out)

    words = ["build", "--kind", "none", "--size", "40", "--size", "20", "--out", str(tmp_path / "set"), "-k", "20"]
    words += [word for name in ("alpha", "beta") for word in ("--queries", str(world.folder / f"{name}.tsv"))]
    names = {
        "train-qrels": "train.qrels",
        "docs": "docs.tsv",
        "index": "index",
        "audit": "audit",
        "labels": "labels.tsv",
    }
    words += [word for name, file in names.items() for word in (f"--{name}", str(world.folder / file))]
    built = called(*words, "--json")
    assert built["sizes"] == [20, 40] and built["rows"] == 20
    again = build_set("none", [20, 40], tmp_path / "again", world.options())
    assert rows(open_built(tmp_path / "set")).equals(rows(again))


# Faults of the user


@pytest.mark.parametrize(
    ("kind", "sizes", "changes", "fault"),
    [
        ("none", [7], {}, "7 is not a size"),
        ("none", [], {}, "size: is missing"),
        ("some", [10], {}, "kind: 'some' is not one of the choices"),
        ("none", [10], {"leaks": 3}, "no row of this set leaks"),
        ("none", [10], {"queries": ()}, "queries: is missing"),
        ("none", [10], {"docs": None}, "docs: is missing"),
        ("none", [10], {"train_qrels": ()}, "train_qrels: is missing"),
        ("none", [10], {"train_qrels": ("a", "b", "c")}, "3 sources for 2 sources of queries"),
        ("none", [10], {"rows": "x"}, "use `kind` by-depth"),
        ("none", [10], {"queries_from_documents": "x"}, "go with no other queries"),
        ("none", [10], {"audit": ("nowhere",)}, "no candidates.parquet here"),
        ("leak", [10], {}, "leaks: is missing"),
        ("leak", [10], {"leaks": 8}, "5 rows, fewer than the 8 that leak"),
        ("leak", [10], {"leaks": 2, "labels": ()}, "labels: is missing"),
        ("leak", [10], {"leaks": 2, "fill": "nowhere"}, "no training set there"),
        ("test", [10], {"leaks": 2}, "topics: is missing"),
        ("by-depth", [10], {}, "rows: is missing"),
        ("by-depth", [10], {"rows": "x"}, "depth: is missing"),
    ],
)  # fmt: skip
def test_faults_are_one_line(world, tmp_path, kind, sizes, changes, fault):
    with pytest.raises(InputError, match=fault) as raised:
        build_set(kind, sizes, tmp_path / "set", world.options(**changes))
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "set" / "instances.parquet").exists()


@pytest.mark.parametrize("changes", [{"k": 0}, {"leaks": 0}, {"ends": "("}])
def test_options_that_cannot_be(changes, tmp_path):
    with pytest.raises(InputError):
        build_set("none", [10], tmp_path / "set", changes)


def test_a_redacted_audit_is_refused(world, tmp_path):
    shutil.copytree(world.folder / "audit", tmp_path / "audit")
    path = tmp_path / "audit" / "candidates.parquet"
    pl.read_parquet(path).with_columns(query_text=pl.lit("hmac:01234567:0123456789abcdef")).write_parquet(path)
    with pytest.raises(InputError, match="redacted"):
        build_set("none", [10], tmp_path / "set", world.options(audit=(str(tmp_path / "audit"),)))


# Draws


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["", "x", "y  z", *"abcdefghij"]), min_size=1, max_size=60), st.integers(0, 12))
def test_a_draw_is_the_smallest_of_all(tmp_path_factory, texts, room):
    path = tmp_path_factory.mktemp("draw") / "log.tsv"
    instances_example.lines(path, [f"{number}\t{text}" for number, text in enumerate([*texts, "last"])])
    barred = Excluded(frozenset("a"), {"log": {"1"}})
    whole = scan(open_queries(str(path)), 1, 1000, barred, QueryKeys())
    some = scan(open_queries(str(path)), 1, room, barred, QueryKeys(frozenset(["y z"]), frozenset(["2"])))
    assert some.drawn == whole.drawn[:room] and whole.complete
    assert {query.text for query in whole.drawn} == {
        normalise(text) for number, text in enumerate([*texts, "last"]) if number != 1 and text not in ("", "a")
    }
    assert ("y z" in some.by_text) == ("y  z" in texts)
    assert some.excluded == sum(
        text == "a" or (number == 1 and text != "") for number, text in enumerate([*texts, "last"])
    )


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("123"), st.sampled_from("abcdefgh")), max_size=20), st.integers(0, 3))
def test_leaks_take_turns(pairs, seed):
    leaks = [Leak(topic, f"id-{text}", text) for topic, text in pairs]
    ordered = spread(leaks, seed)
    assert sorted({leak.text for leak in leaks}) == sorted(leak.text for leak in ordered)
    assert ordered == spread(reversed(leaks), seed)
    topics = [leak.topic_id for leak in ordered]
    for end in range(len(topics)):
        early = {topic: topics[:end].count(topic) for topic in set(topics)}
        later = set(topics[end:])
        assert max((early[topic] for topic in early), default=0) - min((early[one] for one in later), default=0) <= 1


def test_numbers_of_places_are_uniform():
    from truerank_lab.instances.draws import Keyed

    keys = Keyed(0, "test")
    first = [int(np.argmin(keys.of_places(f"query {number}", np.arange(1, 101)))) for number in range(3000)]
    assert abs(np.mean(first) - 49.5) < 3 and np.bincount(first, minlength=100).max() < 60


# Real data


@pytest.mark.shared
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no shared data at {DATA}")
def test_the_verified_leaks_of_the_paper():
    labels = sorted(map(str, (DATA / "spire22" / "annotations").glob("query-*.jsonl")))
    # Table 2 counts 648 for Robust04: one query occurs twice with another id.
    for track, queries, topics in (("robust04", 647, 172), ("core17", 138, 37), ("core18", 157, 38)):
        own = {topic.topic_id for topic in read_topics(str(DATA / "topics" / f"{track}.trec.txt")).topics}
        leaks = verified_leaks(open_judgments(labels), own)
        assert (len(leaks), len({leak.topic_id for leak in leaks})) == (queries, topics)
    taken = spread(leaks, 0)[:100]
    assert len({leak.topic_id for leak in taken}) == 38


@pytest.mark.shared
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no shared data at {DATA}")
def test_vaswani_and_cacm(tmp_path):
    vaswani = DATA / "collections" / "vaswani"
    options = {
        "queries_from_documents": str(vaswani / "docs.trec.gz"), "topics": str(vaswani / "topics.trec.txt"),
        "qrels": str(vaswani / "qrels.txt"), "leaks": 93,
    }  # fmt: skip
    built = build_set("test", [500], tmp_path / "vaswani", options)
    frame = rows(built)
    assert dict(frame["role"].value_counts().rows()) == {"test": 93, "none": 157}
    assert frame.filter(role="test")["topic_id"].n_unique() == 93
    months = "January|February|March|April|May|June|July|August|September|October|November|December"
    cacm = str(DATA / "collections" / "cacm" / "cacm.tar.gz")
    queries = write_queries(cacm, rf"CACM ({months}),?", tmp_path / "cacm.tsv")
    assert queries.read == 3204 and 1400 < queries.read - queries.skipped < 1700, "about half have a title only"

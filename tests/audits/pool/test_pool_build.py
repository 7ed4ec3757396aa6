"""`pool build`: depth pools, teams, sparse judgments, methods that follow what is found, batches for `judge new`."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from truerank import judging
from truerank.audits.pool import adaptive_pool, build, depth_pool, teams_of
from truerank.cli import main
from truerank.errors import InputError
from truerank.judging import Store

RUNS = {
    "a_one": {"1": "d1 d2 d3 d4", "2": "e1 e2 e3 e4"},
    "a_two": {"1": "d2 d1 d5 d6", "2": "e2 e5 e1 e6"},
    "b_one": {"1": "d7 d1 d8 d9", "2": "e1 e7 e8 e9"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, topics in RUNS.items():
        lines = [
            f"{topic} Q0 {doc} {rank} {10 - rank} {name}\n"
            for topic, docs in topics.items()
            for rank, doc in enumerate(docs.split(), start=1)
        ]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    (tmp_path / "topics.tsv").write_text("2\tsecond query\n1\tfirst query\n3\tthird\n")
    ids = [f"{letter}{n}" for letter in "de" for n in range(1, 10)]
    (tmp_path / "docs.jsonl").write_text(
        "".join(json.dumps({"doc_id": i, "title": f"T {i}", "text": f"body of {i}"}) + "\n" for i in ids)
    )
    (tmp_path / "sparse.qrels").write_text("1 0 d9 1\n2 0 e1 1\n77 0 x 1\n")
    (tmp_path / "full.qrels").write_text("1 0 d1 1\n1 0 d7 2\n1 0 d3 1\n2 0 e2 1\n2 0 e5 1\n2 0 e4 0\n")
    (tmp_path / "teams.tsv").write_text("run\tteam\na_one\tAlpha\na_two\tAlpha\nb_one\tBeta\n")
    return tmp_path


def runs_in(folder: Path) -> list[str]:
    return [str(folder / f"{name}.run") for name in RUNS]


def command(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0


def test_a_depth_pool_by_hand(folder: Path) -> None:
    given = {"sparse_qrels": str(folder / "sparse.qrels"), "metadata": (str(folder / "teams.tsv"),)}
    pool = build(runs_in(folder), depth=2, **given)
    by_topic = {topic: set(part["doc_id"]) for (topic,), part in pool.documents.group_by("topic_id")}
    assert by_topic == {"1": {"d1", "d2", "d7", "d9"}, "2": {"e1", "e2", "e5", "e7"}}
    assert [tuple(row)[:4] for row in pool.topics] == [("1", 4, 1, 2), ("2", 4, 0, 3)]
    assert [tuple(row)[:4] for row in pool.teams] == [("Alpha", 2, 5, 3), ("Beta", 1, 4, 2)]
    row = pool.documents.filter(pl.col("doc_id") == "d9").row(0, named=True)
    assert (row["runs"], row["place"], row["sparse"], row["grade"]) == (0, None, True, None)
    judged = build(runs_in(folder), qrels=str(folder / "full.qrels"), team_prefix="_", depth=3, rel=1)
    assert [(team.team, team.relevant, team.unique_relevant) for team in judged.teams] == [("a", 4, 3), ("b", 2, 1)]
    assert judged.topics[0].judged == judged.topics[0].documents and judged.topics[0].relevant == 3


def test_scores_order_a_run_as_trec_eval_reads_it() -> None:
    frame = pl.DataFrame({"topic_id": ["1"] * 3, "doc_id": ["a", "c", "b"], "score": [1.0, 1.0 + 1e-9, 2.0]})
    assert depth_pool({"r": frame}, 2)["doc_id"].to_list() == ["b", "c"]
    named = pl.DataFrame({"topic_id": ["1", "9"], "doc_id": ["z", "z"]})
    assert depth_pool({"r": frame}, 1, sparse=named).rows() == [("1", "b"), ("1", "z")]


def test_methods_that_follow_what_is_found() -> None:
    good, bad = [f"g{n}" for n in range(10)], [f"b{n}" for n in range(10)]
    grades = dict.fromkeys(good, 1)
    for seed in range(3):
        mean = adaptive_pool({"good": good, "bad": bad}, lambda d: grades.get(d, 0), 8, seed=seed)
        assert sum(grade == 1 for grade in mean.grades) >= 7 and mean.runs.count("bad") <= 1
        front = adaptive_pool(
            {"good": good, "bad": bad}, lambda d: grades.get(d, 0), 8, method="move-to-front", seed=seed
        )
        assert front.runs.count("bad") <= 1
    # Losing runs take turns under move-to-front: each loses its place with its first document.
    turns = adaptive_pool({"x": good, "y": bad, "z": ["c0", "c1"]}, lambda d: 0, 6, method="move-to-front")
    assert sorted(turns.runs[:3]) == sorted(turns.runs[3:]) == ["x", "y", "z"]
    # MaxMean in its stationary form stays with a run of a good past; the other form looks at the last document.
    past = {"g0": 1, "g1": 1, "g2": 1}
    still = adaptive_pool({"good": good, "bad": bad}, lambda d: past.get(d, 0), 6, fading=1.0, seed=1)
    moved = adaptive_pool({"good": good, "bad": bad}, lambda d: past.get(d, 0), 6, fading=0.0, seed=1)
    assert still.runs.count("good") > moved.runs.count("good")
    # A document that two runs have is judged once; nothing is left at last.
    shared = adaptive_pool({"x": ["a", "b"], "y": ["b", "a"]}, lambda d: 0, 10)
    assert sorted(shared.doc_ids) == ["a", "b"]
    # Without a judgment a document is pending and the run is left as it was.
    waiting = adaptive_pool({"x": good}, {"g0": 1}.get, 10, batch=3)
    assert waiting.pending == ("g1", "g2", "g3") and len(waiting.doc_ids) == 4
    for wrong in ({"method": "depth"}, {"fading": 2.0}, {"budget": 0}):
        with pytest.raises(InputError):
            adaptive_pool({"x": good}, lambda d: 0, **{"budget": 1, **wrong})


def test_batches_are_judged_and_followed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "pool"
    arguments = [
        "pool", "build", *(part for run in runs_in(folder) for part in ("--run", run)), "--metadata",
        str(folder / "teams.tsv"), "--topics", str(folder / "topics.tsv"), "--docs", str(folder / "docs.jsonl"),
    ]  # fmt: skip
    command([*arguments, "--annotators", "ann,bob", "--depth", "2", "--out", str(out), "--json"])
    value = json.loads(capsys.readouterr().out)
    assert value["without"] == ["3"] and [one["annotator"] for one in value["batches"]] == ["ann", "bob"]
    assert {path.name for path in out.iterdir()} == {
        "pool.csv", "topics.csv", "teams.csv", "batches.csv", "batches", "manifest.json",
    }  # fmt: skip
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["command"], manifest["skipped"]) == ("pool build", {"topics_without_runs": ["3"]})
    assert set(manifest["artifacts"]) >= {"batches/ann.jsonl", "batches/bob.jsonl", "pool.csv"}
    store = folder / "judged"
    judging.new(
        store, "relevance-documents", [str(out / "batches/ann.jsonl"), str(out / "batches/bob.jsonl")],
        people=judging.People(("ann",), order="given"),
    )  # fmt: skip
    with Store.open(store) as opened:
        items = list(opened.items())
        assert len(items) == 7 and items[0].text("query") == "second query"
        assert items[0].text("document") == "T e1\n\nbody of e1" and items[0].data["stage"] == "pool"
        names = {choice.grade: choice.name for choice in opened.scheme.choices}
        for item in items[:2]:
            opened.record(item.item_id, "ann", "label", [names[1]])
    # The next documents by what the store says; with the old batch of bob gone.
    next_ones = ["--method", "maxmean", "--qrels", str(store), "--batch", "2", "--out", str(out)]
    command([*arguments, *next_ones])
    assert {path.name for path in (out / "batches").iterdir()} == {"annotator.jsonl"}
    lines = [json.loads(line) for line in (out / "batches/annotator.jsonl").read_text().splitlines()]
    judged = {items[0].texts[1].id, items[1].texts[1].id}
    assert lines and not judged & {line["texts"][1]["id"] for line in lines}
    assert len([line for line in lines if line["topic_id"] == "1"]) == 2
    # Same input, same bytes.
    before = (out / "manifest.json").read_bytes()
    command([*arguments, *next_ones])
    assert (out / "manifest.json").read_bytes() == before


def test_without_texts_a_batch_is_a_run(folder: Path) -> None:
    build(runs_in(folder), depth=1, annotators=("a", "b"), out=folder / "pool")
    assert (folder / "pool/batches/a.run").read_text() == "1 Q0 d1 1 3 pool\n1 Q0 d2 2 2 pool\n1 Q0 d7 3 1 pool\n"
    judging.new(
        folder / "s", "relevance-documents", str(folder / "pool/batches/b.run"),
        topics=[str(folder / "topics.tsv")], docs=[str(folder / "docs.jsonl")],
    )  # fmt: skip


def test_what_pools_refuse(folder: Path) -> None:
    runs = runs_in(folder)
    (folder / "part.tsv").write_text("1\tonly the first\n")
    (folder / "none.tsv").write_text("8\tanother\n")
    (folder / "some.tsv").write_text("run\tteam\na_one\tAlpha\na_two\t\nb_one\tBeta\n")
    (folder / "zero.qrels").write_text("1 0 d1 0\n")
    (folder / "few.jsonl").write_text('{"doc_id": "d1", "text": "x"}\n')
    (folder / "empty.run").write_text("")
    names = {name: str(folder / name) for name in ("part.tsv", "none.tsv", "some.tsv", "zero.qrels", "few.jsonl")}
    both = {"topics": str(folder / "topics.tsv"), "docs": names["few.jsonl"]}
    options = (
        ({"topics": names["part.tsv"]}, "a_one: the run has topics that are not known (1): 2"),
        ({"topics": names["none.tsv"], "subset": True}, "has none of the topics"),
        ({"metadata": (names["some.tsv"],)}, "no team for the run a_two"),
        ({"team_prefix": "-"}, "no team for the run a_one, a_two, b_one and no '-' in its name"),
        ({"qrels": names["zero.qrels"]}, "no document has the grade 1"),
        ({"docs": "x"}, "need the topics' texts"),
        ({"subset": True}, "no topics are named"),
        (both, "documents of the pool are not in it"),
        ({"method": "maxmean"}, "maxmean follows judgments"),
        ({"method": "best"}, "method: 'best' is not one of the choices"),
        ({"depth": 0}, "depth: must be at least 1, got 0"),
        ({"fading": 2.0}, "fading: must be at least 0 and at most 1"),
        ({"annotators": ("a", "a")}, "twice"),
        ({"annotators": ("../x",)}, "'../x' cannot be the name of a file"),
        ({"annotators": ()}, "nobody judges"),
    )
    for given, message in options:
        with pytest.raises(InputError) as raised:
            build(runs, out=folder / "out", **given)
        assert message in str(raised.value)
    for given, message in (([], "no runs"), ([str(folder / "empty.run")], "the file is empty")):
        with pytest.raises(InputError, match=message):
            build(given)
    part = build(runs, topics=str(folder / "part.tsv"), subset=True)
    assert [row.topic_id for row in part.topics] == ["1"]
    assert teams_of(["x", "y"]) == {"x": "x", "y": "y"}

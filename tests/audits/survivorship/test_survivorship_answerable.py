"""Answerable queries: the paper's tables exactly, and pools, people and counts against what is known to be true."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from answerable_example import CORPORA, QUERIES, SYSTEMS, Example, example, judged, pooled
from places import DATA
from truerank.audits.survivorship import answerable
from truerank.cli import main
from truerank.errors import InputError
from truerank.judging import load_scheme, read_items

TABLE = DATA / "survivorship" / "discarded_rankings_by_model.tsv"


@pytest.mark.shared
def test_table_2_of_the_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["survivorship", "answerable", "--firsts", str(TABLE), "--out", str(tmp_path / "out"), "--json"])
    assert ended.value.code == 0
    (found,) = json.loads(capsys.readouterr().out)["corpora"].values()
    counts = {
        name: (one["none"]["found"], one["within"]["10"]["found"], one["within"]["3"]["found"])
        for name, one in found["systems"].items()
        if name != "any of them"
    }
    assert counts == {"BM25": (22, 28, 17), "ANCE": (22, 28, 17), "ColBERT": (18, 32, 28), "monoT5": (16, 34, 30)}
    assert (found["queries"], found["unanswerable"]["found"]) == (50, 15)
    assert (round(found["unanswerable"]["low"], 4), round(found["unanswerable"]["high"], 4)) == (0.191, 0.4375)
    assert sum(found["answered_by"]) == 50
    # Both ways of counting what two systems share agree with the authors' table, read by other means.
    ranks = {tuple(line.split("\t")[:2]): line.rstrip().split("\t")[3] for line in TABLE.open() if "scorer" not in line}
    queries = sorted({query for _, query in ranks})
    for pair in found["overlaps"]:
        both = sum(ranks[pair["first"], q] != "NA" and ranks[pair["second"], q] != "NA" for q in queries)
        assert pair["both"] == both
        assert pair["both"] + pair["only_first"] + pair["only_second"] + pair["neither"] == 50
    page = (tmp_path / "out" / "report.html").read_text()
    assert "35 of 50 discarded queries have an answer" in page
    assert {"answerable.tex", "intervals.csv", "overlap.csv"} <= {
        path.name for path in (tmp_path / "out" / "tables").iterdir()
    }


def brute_force(made: Example, corpus: str, system: str, query: str, k: int) -> int:
    """The rank of the first answer, 0 where there is none among the first k."""
    for place, document in enumerate(made.rankings[corpus, system][query][:k], start=1):
        if (corpus, query, document) in made.truth:
            return place
    return 0


def test_from_the_log_to_the_counts(tmp_path: Path) -> None:
    made = example(tmp_path)
    pool = pooled(made)
    assert list(pool.queries) == [f"q{number}" for number in range(QUERIES)]
    assert (len(pool.items), len(pool.reasons)) == (2 * QUERIES, QUERIES)
    for item in pool.items:
        union = {doc for system in SYSTEMS for doc in made.rankings[item.dataset, system][item.topic_id][:5]}
        assert {text.id for text in item.texts[1:]} == union
        assert all(text.text == f"T about {text.id.removeprefix(item.dataset)}" for text in item.texts[1:])
    # The order shows no ranks: the best of a ranking stands first no more often than chance would have it.
    firsts = sum(item.texts[1].id == made.rankings[item.dataset, "sparse"][item.topic_id][0] for item in pool.items)
    assert firsts < len(pool.items) / 3
    reasons = read_items(str(tmp_path / "pool" / "reasons.jsonl"), load_scheme("survivorship"))
    assert [text.text for text in reasons[0].texts[1:]] == ["shown 0 0", "shown 0 1", "shown 0 2"]
    store = judged(made, wrong=True)
    result = answerable(pool=tmp_path / "pool", labels=store, cutoffs=(5, 2), out=tmp_path / "out")
    skipped = 2 * QUERIES - sum(len(corpus.queries) for corpus in result.corpora)
    assert skipped == 1
    assert any(note.startswith("3 records") and "skipped" in note for note in result.notes)
    for corpus in result.corpora:
        for row, system in enumerate(corpus.systems):
            ranks = [brute_force(made, corpus.name, system, query, 5) for query in corpus.queries]
            assert corpus.ranks[row].tolist() == ranks
            share = corpus.shares[row]
            assert share.within[2].k == sum(0 < rank <= 2 for rank in ranks)
            assert share.none.k == ranks.count(0)
        lost = [
            all(not brute_force(made, corpus.name, system, query, 5) for system in SYSTEMS) for query in corpus.queries
        ]
        assert corpus.unanswerable.k == sum(lost)
    assert result.anywhere is not None
    shared = set(result.corpora[0].queries) & set(result.corpora[1].queries)
    answered = {q for q in shared if any(brute_force(made, c, s, q, 5) for c in CORPORA for s in SYSTEMS)}
    assert (result.anywhere.k, result.anywhere.n) == (len(answered), len(shared))
    # The same figures from judgments in place of people.
    corpus = result.corpora[0]
    lines = [f"{q} 0 {corpus.name}{n} {int((corpus.name, q, f'{corpus.name}{n}') in made.truth)}\n"
             for q in corpus.queries for n in range(60)]  # fmt: skip
    (tmp_path / "web.qrels").write_text("".join(lines))
    runs = tuple(f"{system}={tmp_path / f'{corpus.name}-{system}.run'}" for system in corpus.systems)
    again = answerable(runs, qrels=str(tmp_path / "web.qrels"), cutoffs=(5, 2))
    assert again.corpora[0].shares == corpus.shares
    (tmp_path / "some.txt").write_text("q1\nq2\nq99\nq30\n")
    only = answerable(runs, qrels=str(tmp_path / "web.qrels"), discarded=str(tmp_path / "some.txt"))
    assert only.corpora[0].queries == ("q1", "q2")
    assert only.notes[0] == "2 discarded queries without a judgment are left out."
    # And from the table of first answers that was written.
    back = answerable(firsts=str(tmp_path / "out" / "first_answers.tsv"), cutoffs=(5, 2))
    assert [one.shares for one in back.corpora] == [one.shares for one in result.corpora]


def test_sample_and_repeatable_bytes(tmp_path: Path) -> None:
    made = example(tmp_path)
    pool = pooled(made, sample=6)
    files = {path.name: path.read_bytes() for path in (tmp_path / "pool").iterdir()}
    pooled(made, sample=6)
    assert {path.name: path.read_bytes() for path in (tmp_path / "pool").iterdir()} == files
    assert (len(pool.queries), pool.discarded, pool.items[0].probability) == (6, QUERIES, 6 / QUERIES)
    (tmp_path / "ids.txt").write_text("q7\nq2\n")
    (tmp_path / "topics.tsv").write_text("q2\twords of two\nq7\twords of seven\n")
    chosen = answerable(
        str(tmp_path / "web-sparse.run"),
        docs=[str(tmp_path / "web.jsonl")],
        discarded=str(tmp_path / "ids.txt"),
        topics=str(tmp_path / "topics.tsv"),
    )
    assert list(chosen.queries) == ["q7", "q2"]
    assert chosen.reasons == ()
    assert chosen.items[0].text("query") == "words of seven"


def test_table_1_of_the_paper(tmp_path: Path) -> None:
    counts = {
        "dev": {"no_ans": 70, "partial_ans": 15, "wrong_lab": 14, "ill_form": 1},
        "train": {"no_ans": 36, "partial_ans": 5, "wrong_lab": 6, "ill_form": 3},
    }
    rows = [
        {"item_id": f"{split}-{label}-{n}", "query_id": f"{split}-{label}-{n}", "dataset": split, "label": [label]}
        for split, labels in counts.items()
        for label, number in labels.items()
        for n in range(number)
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = answerable(reasons=str(tmp_path / "labels.jsonl"), out=tmp_path / "out")
    assert result.reasons is not None
    table = result.reasons.parts["counts"]
    assert table.rows()[:2] == [("dev", 70, 15, 14, 1, 100), ("train", 36, 5, 6, 3, 50)]
    page = (tmp_path / "out" / "report.html").read_text()
    assert [f"DROP0{number}" in page for number in range(1, 5)] == [True] * 4
    assert "reasons-counts.tex" in {path.name for path in (tmp_path / "out" / "tables").iterdir()}


def test_tied_annotators_and_models(tmp_path: Path) -> None:
    made = example(tmp_path)
    pool = pooled(made)
    item = pool.items[0]
    (tmp_path / "a.jsonl").write_text(json.dumps({"item_id": item.item_id, "label": ["passage 1"]}) + "\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"item_id": item.item_id, "label": ["none"]}) + "\n")
    labels = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    result = answerable(pool=tmp_path / "pool", labels=labels)
    assert result.corpora[0].unanswerable.k == 1
    assert any("1 passages on which annotators are tied" in note for note in result.notes)
    row = {"item_id": item.item_id, "label": ["passage 1"], "annotator": "m", "role": "model"}
    (tmp_path / "m.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(InputError, match="nothing is labelled by people"):
        answerable(pool=tmp_path / "pool", labels=str(tmp_path / "m.jsonl"))
    counted = answerable(pool=tmp_path / "pool", labels=str(tmp_path / "m.jsonl"), include_models=True)
    assert counted.corpora[0].unanswerable.k == 0
    (tmp_path / "x.jsonl").write_text(json.dumps({"item_id": "elsewhere", "label": ["none"]}) + "\n")
    with pytest.raises(InputError, match="of other items"):
        answerable(pool=tmp_path / "pool", labels=str(tmp_path / "x.jsonl"))


def test_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = example(tmp_path)
    pooled(made)
    heads = "scorer\tquery_id\tdoc_id\trank\n"
    tables = {
        "twice": "a\tq\td\t1\na\tq\td\t2\n", "lacks": "a\tq\td\t1\nb\tr\td\t2\na\tr\t_\tNA\n",
        "rank": "a\tq\td\tfirst\n", "zero": "a\tq\td\t0\n", "nobody": "\tq\td\t1\n",
    }  # fmt: skip
    for name, text in tables.items():
        (tmp_path / f"{name}.tsv").write_text(heads + text)
    (tmp_path / "columns.tsv").write_text("scorer\tquery_id\n1\t2\n")
    (tmp_path / "few.jsonl").write_text(json.dumps({"doc_id": "web1", "text": "x"}) + "\n")
    run, log = str(tmp_path / "web-sparse.run"), str(tmp_path / "log.jsonl")
    web, wiki = str(tmp_path / "web.jsonl"), str(tmp_path / "wiki.jsonl")
    cases: list[tuple[list[str], str]] = [
        (["--firsts", str(tmp_path / "twice.tsv")], "'a' has the query q twice"),
        (["--firsts", str(tmp_path / "lacks.tsv")], "'b' lacks 1 of the 2 queries"),
        (["--firsts", str(tmp_path / "rank.tsv")], "'first' is not a rank"),
        (["--firsts", str(tmp_path / "zero.tsv")], "'0' is not a rank"),
        (["--firsts", str(tmp_path / "nobody.tsv")], "without system or query"),
        (["--firsts", str(tmp_path / "columns.tsv")], "columns for system"),
        ([], "one source of answers"),
        (["--pool", str(tmp_path / "pool")], "a pool goes with labels"),
        (["--pool", str(tmp_path), "--labels", log], "no pool.parquet here"),
        (["--qrels", str(tmp_path / "zero.tsv")], "no run"),
        (["--cutoffs", "3,3"], "--cutoffs: a number appears twice"),
        (["--docs", web, "--run", run], "discarded queries are not named"),
        (["--docs", web, "--log", log], "no run"),
        (["--docs", web, "--log", log, "--run", run, "--labels", log], "judged first"),
        (["--docs", web, "--discarded", log, "--run", run], "no texts"),
        (["--docs", web, "--docs", wiki, "--run", run, "--log", log], "which corpus"),
        (["--docs", str(tmp_path / "few.jsonl"), "--run", run, "--log", log], "documents of the runs are not in it"),
        (["--docs", web, "--run", run, "--run", run, "--log", log], "two runs of one name"),
        (["--docs", web, "--run", run, "--log", log, "-k", "0"], "-k: must be at least 1, got 0"),
        (["--docs", web, "--run", run, "--log", log, "--sample", "0"], "--sample: must be at least 1, got 0"),
        # What the other way of using the command has is refused, by its name.
        (["--docs", web, "--log", log, "--run", run, "--cutoffs", "3"], "--cutoffs: does not go with --docs"),
        (["--firsts", str(tmp_path / "zero.tsv"), "--sample", "3"], "--sample: goes with --docs"),
        (["--firsts", str(tmp_path / "zero.tsv"), "--run", run], "--run: goes with --docs or --qrels"),
        (["--firsts", str(tmp_path / "zero.tsv"), "--rel", "2"], "--rel: goes with --qrels"),
        (["--firsts", str(tmp_path / "zero.tsv"), "--votes", "any"], "--votes: goes with --labels or --reasons"),
        (["--reasons", log, "--cutoffs", "3"], "--cutoffs: goes with a source of answers"),
        (["--qrels", "x", "--run", run, "--topics", "y"], "--topics: goes with --docs"),
        (["--log", log, "--run", run], "--run: goes with --docs or --qrels"),
    ]
    for words, fault in cases:
        with pytest.raises(SystemExit) as ended:
            main(["survivorship", "answerable", "--out", str(tmp_path / "out"), *words])
        assert ended.value.code == 2, words
        assert fault in capsys.readouterr().err, words
    assert pl.read_parquet(tmp_path / "pool" / "pool.parquet").height > 0

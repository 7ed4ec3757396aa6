"""Rescued queries: judgments and instances against what is known to be true, readable by what trains and evaluates."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from answerable_example import CORPORA, SYSTEMS, example, judged, pooled
from places import DATA
from truerank.audits.survivorship import RescueOptions, rescue
from truerank.cli import main
from truerank.errors import InputError, OptionError
from truerank.sources import read_qrels
from truerank.sources.instances import open_instances


def test_judgments_and_instances(tmp_path: Path) -> None:
    made = example(tmp_path)
    pool = pooled(made)
    store = judged(made)
    found = rescue(pool=tmp_path / "pool", labels=store, negatives=2, out=tmp_path / "out")
    rescued: set[tuple[str, str]] = set()
    for corpus in CORPORA:
        path = tmp_path / "out" / "qrels" / f"{corpus}.qrels"
        assert {line.split()[1] for line in path.read_text().splitlines()} == {"rescued"}
        by_query: dict[str, dict[str, int]] = {}
        for one in read_qrels(str(path)):
            by_query.setdefault(one.topic_id, {})[one.doc_id] = one.relevance
        for query, grades in by_query.items():
            union = {document for system in SYSTEMS for document in made.rankings[corpus, system][query][:5]}
            assert grades == {document: int((corpus, query, document) in made.truth) for document in union}
            rescued.add((corpus, query))
    # Every judged query with an answer in its pool, and no other; the last item of the store was skipped.
    answered = {
        (item.dataset, item.topic_id)
        for item in pool.items
        if any((item.dataset, item.topic_id, text.id) in made.truth for text in item.texts[1:])
    }
    assert rescued <= answered
    assert len(answered - rescued) <= 1
    frame = pl.read_parquet(tmp_path / "out" / "instances.parquet")
    assert frame["rescued"].all()
    instances = list(open_instances(str(tmp_path / "out" / "instances.parquet")))
    assert len(instances) == len(frame) == sum(row["instances"] for row in found.counts())
    for corpus, one in zip(frame["corpus"], instances, strict=True):
        assert (corpus, one.query_id, one.relevant_id) in made.truth
        assert (corpus, one.query_id, one.nonrelevant_id) not in made.truth
        assert one.relevant == f"T about {one.relevant_id.removeprefix(corpus)}"
        assert one.query == f"what is {one.query_id.removeprefix('q')}"
    pairs = frame.group_by("corpus", "query_id", "relevant_id").agg(pl.col("nonrelevant_id"))
    for corpus, query, _, others in pairs.iter_rows():
        best = {
            document: min(
                (made.rankings[corpus, system][query].index(document) for system in SYSTEMS
                 if document in made.rankings[corpus, system][query][:5]), default=99)
            for system in SYSTEMS for document in made.rankings[corpus, system][query][:5]
            if (corpus, query, document) not in made.truth
        }  # fmt: skip
        assert len(set(others)) == min(2, len(best))
        if len(frame.filter((pl.col("corpus") == corpus) & (pl.col("query_id") == query))) <= 2:
            # A single answer meets the non-answers that stood highest.
            assert sorted(best[other] for other in others) == sorted(best.values())[: len(others)]
    drawn = rescue(pool=tmp_path / "pool", labels=store, choose="random", seed=4)
    again = rescue(pool=tmp_path / "pool", labels=store, choose="random", seed=4)
    assert drawn.instances.equals(again.instances)
    assert not drawn.instances.equals(rescue(pool=tmp_path / "pool", labels=store, choose="random", seed=5).instances)


@pytest.mark.shared
def test_the_authors_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = DATA / "survivorship" / "discarded_rankings_by_model.tsv"
    full = DATA / "survivorship" / "qrels" / "dev-all.qrels.gz"
    words = ["survivorship", "rescue", "--firsts", str(table), "--qrels", str(full), "--out", str(tmp_path), "--json"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    (corpus,) = json.loads(capsys.readouterr().out)["corpora"]
    assert (corpus["judged"], corpus["rescued"]) == (50, 35)
    merged = list(read_qrels(str(tmp_path / "merged.qrels")))
    assert len(merged) == 59_273 + corpus["answers"]
    assert len({one.topic_id for one in merged}) == 55_578 + 35


def test_faults(tmp_path: Path) -> None:
    made = example(tmp_path)
    pooled(made)
    store = judged(made)
    (tmp_path / "firsts.tsv").write_text("system\tquery_id\tdoc_id\trank\na\tq1\t_\tNA\n")
    (tmp_path / "one.tsv").write_text("system\tquery_id\tdoc_id\trank\na\tq1\td1\t2\n")
    (tmp_path / "there.qrels").write_text("q1 0 d9 1\n")
    with pytest.raises(InputError, match="no query has an answer"):
        rescue(firsts=str(tmp_path / "firsts.tsv"))
    with pytest.raises(InputError, match="'q1' has judgments there"):
        rescue(firsts=str(tmp_path / "one.tsv"), qrels=str(tmp_path / "there.qrels"))
    with pytest.raises(InputError, match="several corpora"):
        rescue(pool=tmp_path / "pool", labels=store, qrels=str(tmp_path / "there.qrels"))
    with pytest.raises(InputError, match="one source"):
        rescue()
    with pytest.raises(OptionError, match="negatives: must be at least 0, got -1"):
        RescueOptions(negatives=-1)

"""Rankings that never read the query: closed forms against simulation, and orders that tell the grades."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import truerank
from truerank.measures.null_rankers import null_rankers, random_order
from truerank.options import Scoring

SCHEMA = {"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}


def judged(seed: int, topics: int = 6) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    rows = [
        (f"t{topic}", f"d{doc:02d}", int(grade))
        for topic in range(topics)
        for doc, grade in zip(
            draw.permutation(60)[: 4 + 5 * (topic % 9)], draw.choice([0, 0, 0, 1, 2], 4 + 5 * (topic % 9)), strict=True
        )
    ]
    return pl.DataFrame([("t0", "d99", 1), *rows], schema=SCHEMA, orient="row")


def shuffled(qrels: pl.DataFrame, candidates: dict[str, list[str]], draw: np.random.Generator) -> pl.DataFrame:
    rows = [
        (topic, doc, -float(place))
        for topic, docs in candidates.items()
        for place, doc in enumerate(draw.permutation(docs).tolist())
    ]
    return pl.DataFrame(rows, schema={"topic_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")


MEASURES = [
    "nDCG@10", "nDCG", "nDCG(dcg='exp-log2')@5", "AP", "AP@5", "RR", "RR@3", "P@5", "P@40", "R@10", "Success@2",
    "Rprec", "AP(rel=2)",
]  # fmt: skip


@pytest.mark.parametrize("documents", [None, 80])
def test_the_closed_forms_are_what_shuffling_gives(documents: int | None) -> None:
    qrels, draw = judged(3), np.random.default_rng(1)
    every = [f"d{doc:02d}" for doc in [*range(documents - 1), 99]] if documents else []
    own = {
        topic: every or docs
        for topic, docs in qrels.group_by("topic_id", maintain_order=True).agg("doc_id").iter_rows()
    }
    runs = {f"run{place}": shuffled(qrels, own, draw) for place in range(300)}
    found = truerank.evaluate(qrels, runs, MEASURES)
    for measure, name in zip(MEASURES, found.measures, strict=True):
        expected = random_order(qrels, measure, ranked=documents)
        assert expected is not None
        for place, topic in enumerate(found.topics):
            values = [found.of(run, name)[place] for run in runs]
            error = float(np.std(values)) / len(values) ** 0.5
            assert expected[topic] == pytest.approx(float(np.mean(values)), abs=4.5 * error + 1e-9), (measure, topic)


def test_runs_are_cut_before_they_are_scored() -> None:
    qrels = judged(4)
    assert random_order(qrels, "R@20", Scoring(depth=7)) == pytest.approx(random_order(qrels, "R@7"))
    assert random_order(qrels, "RBP") is None


def test_judgments_with_the_relevant_ones_first_tell_the_grades() -> None:
    qrels = judged(5, topics=30)
    first = qrels.sort("topic_id", "relevance", descending=[False, True], maintain_order=True)
    by_name = {(one.name, one.of): one for one in null_rankers(first, "RR")}
    told = by_name["equal scores, in the order of the file", "judged"]
    assert told.floor.mean == pytest.approx(1.0)
    assert (told.above_random_low or 0) > 0.1
    plain = [one for one in null_rankers(qrels.sort("topic_id", "doc_id"), "RR") if one.above_random is not None]
    assert plain and all((one.above_random_low or 0) <= 0 for one in plain)


def test_topics_without_other_judgments_are_no_candidates_for_reranking() -> None:
    relevant = judged(6).filter(pl.col("relevance") > 0)
    found = null_rankers(relevant, "nDCG@10", documents=1000, lists={"longest first": ["d01", "d02"]})
    assert [one.name for one in found] == ["the best fixed list", "longest first", "random order"]
    assert all(one.of == "collection" and one.floor.topics == 6 for one in found)
    scored = truerank.evaluate(
        relevant,
        {"list": pl.DataFrame(
            [(topic, doc, 2.0 - place) for topic in relevant["topic_id"].unique() for place, doc in enumerate(
                ("d01", "d02"))],
            schema={"topic_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row",
        )},
        ["nDCG@10"],
    )  # fmt: skip
    assert found[1].floor.mean == pytest.approx(float(np.mean(scored.of("list", "nDCG@10"))))


def test_candidates_that_lack_relevant_documents_bound_random_order() -> None:
    qrels, draw = judged(7), np.random.default_rng(2)
    own = {
        topic: [*docs[: max(2, len(docs) // 2)], *(f"other{n}" for n in range(7))]
        for topic, docs in qrels.group_by("topic_id", maintain_order=True).agg("doc_id").iter_rows()
    }
    ranked = pl.DataFrame([(t, d) for t, docs in own.items() for d in docs], ["topic_id", "doc_id"], orient="row")
    runs = {f"run{place}": shuffled(qrels, own, draw) for place in range(300)}
    found = truerank.evaluate(qrels, runs, MEASURES)
    for measure, name in zip(MEASURES, found.measures, strict=True):
        expected = random_order(qrels, measure, ranked=ranked)
        assert expected is not None
        for place, topic in enumerate(found.topics):
            values = [found.of(run, name)[place] for run in runs]
            error = float(np.std(values)) / len(values) ** 0.5
            assert expected[topic] == pytest.approx(float(np.mean(values)), abs=4.5 * error + 1e-9), (measure, topic)


def test_equal_scores_reach_from_the_worst_order_to_the_best() -> None:
    by_name = {one.name: one.floor.mean for one in null_rankers(judged(8, 20), "RR") if one.of == "judged"}
    assert by_name["equal scores, relevant ones first"] == pytest.approx(1.0)
    assert all(by_name["equal scores, relevant ones last"] <= mean <= 1.0 for mean in by_name.values())


def test_lengths_that_tell_the_grades() -> None:
    qrels = judged(9, 30)
    lengths = {doc: 100 + int(doc[1:]) for doc in qrels["doc_id"]}
    long = qrels.with_columns(relevance=(pl.col("doc_id") > "d40").cast(pl.Int32))
    by_name = {one.name: one for one in null_rankers(long, "nDCG@10", about={"length": lengths}) if one.of == "judged"}
    assert (by_name["longest first"].above_random_low or 0) > 0.1 > (by_name["shortest first"].above_random or 0)

"""The list that never reads the query: a list worked out by hand, clusters, and published judgments."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from places import real
from truerank.measures.floors import fixed_list
from truerank.sources import read_qrels_frame


def judged(rows: list[tuple[str, str, int]]) -> pl.DataFrame:
    schema = {"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_the_list_holds_what_the_other_half_gains_most_by() -> None:
    # "common" is relevant for all topics; each has another relevant document that no list of the other half can hold.
    topics = [f"t{n}" for n in range(6)]
    found = fixed_list(judged([(t, key, 1) for t in topics for key in ("common", f"own-{t}")]), "nDCG@2", splits=3)
    ideal = 1 + 1 / math.log2(3)
    # The gain of "common" is summed over topics, so that it stands first.
    assert found.by_topic == pytest.approx(dict.fromkeys(topics, 1 / ideal))
    assert found.mean == pytest.approx(1 / ideal)
    # All topics are one cluster: the interval is for single ones, which here score alike.
    assert (found.topics, found.clusters, found.drawn) == (6, 1, "topics")
    assert found.low == found.high == pytest.approx(found.mean)


def test_a_topic_is_scored_by_lists_that_it_did_not_make() -> None:
    rows = [("a", "x", 1), ("b", "x", 1), ("c", "y", 1), ("d", "y", 1)]
    found = fixed_list(judged(rows), "P@1", splits=1, seed=3)
    # In halves of two topics each list has one document of another pair, or its own twin's.
    twin = {"a": "b", "b": "a", "c": "d", "d": "c"}
    halves = [{"a", "b"}, {"a", "c"}, {"a", "d"}]
    possible = []
    for half in halves:
        score = {}
        for topic in twin:
            other = set(twin) - half if topic in half else half
            counts = {key: sum(held == key and t in other for t, held, _ in rows) for key in ("x", "y")}
            # Of equal documents the first by its id is in the list.
            best = max(counts, key=lambda key: (counts[key], key == "x"))
            score[topic] = float(best == dict(row[:2] for row in rows)[topic])
        possible.append(score)
    assert found.by_topic in possible


def test_topics_that_share_relevant_documents_are_one_cluster() -> None:
    rows = [("a", "x", 1), ("b", "x", 1), ("b", "y", 1), ("c", "y", 1), ("d", "z", 1), ("e", "x", 0), ("e", "w", 1)]
    found = fixed_list(judged(rows), "nDCG@10")
    # Half of the topics are one cluster: left out, it leaves another collection.
    assert (found.clusters, found.drawn) == (3, "topics")
    found = fixed_list(judged([*rows, ("f", "v", 1), ("g", "u", 1)]), "nDCG@10")
    assert (found.clusters, found.drawn) == (5, "clusters")
    assert found.low is not None and found.high is not None and found.mean is not None
    assert found.low <= found.mean <= found.high
    # Four clusters are too few.
    assert fixed_list(judged([(t, d, 1) for t, d in ("ax", "bx", "cz", "dv", "eu")]), "nDCG@10").low is None


def test_intervals_hold_what_samples_of_as_many_topics_score() -> None:
    draw, counted = np.random.default_rng(5), 0
    scores = []
    for _ in range(40):
        # Each of three documents is relevant for some of the topics: all are one cluster, and the list is not sure.
        rows = [
            (f"t{n}", f"d{doc}", 1)
            for n in range(40)
            for doc in {*draw.choice(9, 2, p=[0.3, 0.2, 0.1, *[0.4 / 6] * 6])}
        ]
        scores.append(fixed_list(judged(rows), "nDCG@2", splits=5))
    truth = float(np.mean([one.mean for one in scores]))
    counted = sum((one.low or 0) <= truth <= (one.high or 0) for one in scores)
    assert all(one.drawn == "topics" for one in scores)
    assert counted >= 33


@pytest.mark.shared
@pytest.mark.parametrize(
    ("path", "score"),
    [
        ("qrels/bright/pony.qrels.gz", 0.931),
        ("qrels/beir/climate-fever.qrels.gz", 0.250),
        ("qrels/beir/trec-covid.qrels.gz", 0.093),
        ("collections/cacm/qrels.txt", 0.032),
    ],
)
def test_floors_of_public_collections(path: str, score: float) -> None:
    found = fixed_list(read_qrels_frame(str(real(*path.split("/")))), "nDCG@10")
    # Other splits, and another order of documents of equal worth, move the last figures.
    assert found.mean == pytest.approx(score, abs=0.006)

"""The list that never reads the query: a list worked out by hand, clusters, and published judgments."""

from __future__ import annotations

import math

import polars as pl
import pytest

from places import real
from truerank.measures.cross_validation import folds
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
    assert (found.topics, found.clusters, found.low) == (6, 1, None)


def test_a_topic_is_scored_by_lists_that_it_did_not_make() -> None:
    rows = [("a", "x", 1), ("b", "x", 1), ("c", "y", 1), ("d", "y", 1)]
    found = fixed_list(judged(rows), "P@1", splits=1, seed=3)
    halves = folds(["a", "b", "c", "d"], 2, 3)
    for topic, score in found.by_topic.items():
        other = next(half for half in halves if topic not in half)
        counts = {key: sum(held == key and t in other for t, held, _ in rows) for key in ("x", "y")}
        # Of equal documents the first by its id is in the list.
        assert score == float(
            max(counts, key=lambda key: (counts[key], key == "x")) == dict(r[:2] for r in rows)[topic]
        )


def test_topics_that_share_relevant_documents_are_one_cluster() -> None:
    rows = [("a", "x", 1), ("b", "x", 1), ("b", "y", 1), ("c", "y", 1), ("d", "z", 1), ("e", "x", 0), ("e", "w", 1)]
    found = fixed_list(judged(rows), "nDCG@10")
    # Half of the topics are one cluster: drawn again, it is there twice or not at all.
    assert (found.clusters, found.low, found.high) == (3, None, None)
    found = fixed_list(judged([*rows, ("f", "v", 1), ("g", "u", 1)]), "nDCG@10")
    assert found.clusters == 5
    assert found.low is not None and found.high is not None and found.mean is not None
    assert found.low <= found.mean <= found.high


@pytest.mark.shared
@pytest.mark.parametrize(
    ("path", "score"),
    [
        ("qrels/bright/pony.qrels.gz", 0.931),
        ("qrels/beir/climate-fever.qrels.gz", 0.250),
        ("qrels/beir/trec-covid.qrels.gz", 0.093),
        ("collections/cacm/qrels.txt", 0.028),
    ],
)
def test_floors_of_public_collections(path: str, score: float) -> None:
    found = fixed_list(read_qrels_frame(str(real(*path.split("/")))), "nDCG@10")
    # Other splits, and another order of documents of equal worth, move the last figures.
    assert found.mean == pytest.approx(score, abs=0.006)

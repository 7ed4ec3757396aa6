"""Questions that people asked in public threads, with the data of the threads: the cause that was given comes first."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl
import pytest

from truerank.measures.conventions import ConventionScorer
from truerank.measures.explanation import explanation, reported_score


class Thread(NamedTuple):
    """Judgments, a run in the order of its rows, what was reported, and the cause by its code."""

    qrels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]
    reported: tuple[str, ...]
    cause: str


THREADS = {
    # Ties by id (trec_eval) against their mean (scikit-learn).
    "cvangysel/pytrec_eval 51": Thread(
        {"q1": {"1677128#0": 1, "doc4": 1}},
        {"q1": {"1677128#0": 2.921875, "5712855#212": 2.921875, "4200727#1": 2.890625, "3750848#3": 2.875,
                "doc4": 2.875, "512030#0": 2.8125, "512030#1": 2.8125, "5708398#5": 2.8125, "6615597#2": 2.796875,
                "512030#6": 2.765625}},
        ("nDCG@10=0.750633",),
        "ties.averaged",
    ),
    # The order of the rows was meant.
    "cvangysel/pytrec_eval 56": Thread(
        {"q1": {"d3": 1}, "q2": {"d2": 1, "d3": 1}},
        {"q1": {"d1": 1, "d2": 1, "d3": 1}, "q2": {"d3": 1, "d2": 1}},
        ("AP=0.666667", "nDCG=0.750000"),
        "ties.ascending",
    ),
    # Judged documents that were not retrieved have the score 0, and so a rank.
    "IBM/unitxt 1935": Thread(
        {"Q6": {"dA": 3, "dB": 2}, "Q7": {"dX": 1, "dY": 2}},
        {"Q6": {"dB": 0.7, "dC": 0.5, "dD": 0.4}, "Q7": {"dY": 0.9, "dZ": 0.2}},
        ("nDCG=0.861337",),
        "run.appended",
    ),
    # The document with the id of the query is left out.
    "beir-cellar/beir 187": Thread(
        {"0": {str(number): 1 for number in range(10)}},
        {"0": {str(number): 1.0 for number in range(10)}},
        ("nDCG@10=0.93638", "R@10=0.90000", "P@10=0.90000", "AP@10=0.90000"),
        "run.own-document",
    ),
    # The ideal of a list made of its own labels; natural logarithms give the same ratio.
    "apache/spark 12461": Thread(
        {"q": {"a": 1, "b": 1, "d": 1, "e": 1, "f": 1}},
        {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}},
        ("nDCG@4=0.967",),
        "ideal.retrieved",
    ),
    # Retrieved and judged documents only; equal scores averaged, as PR 2031 of torchmetrics does after its issue 2022.
    "elixir-nx/scholar 360": Thread(
        {"q": {"a": 10, "b": 0, "c": 0, "d": 1, "e": 5}},
        {"q": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.5, "e": 0.5}},
        ("nDCG=0.699812",),
        "ties.averaged",
    ),
    "usnistgov/trec_eval 22": Thread(
        {"1": {"a": 0, "b": 1, "c": 0}}, {"1": {"b": 1.0, "c": 1.0}}, ("nDCG=1.0000",), "ties.input"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", THREADS)
def test_the_cause_of_the_thread_comes_first(name: str) -> None:
    thread = THREADS[name]
    judged = [(t, d, g) for t, own in thread.qrels.items() for d, g in own.items()]
    rows = [(t, d, float(s)) for t, own in thread.run.items() for d, s in own.items()]
    scorer = ConventionScorer(
        pl.DataFrame(judged, schema=["topic_id", "doc_id", "relevance"], orient="row"),
        pl.DataFrame(rows, schema=["topic_id", "doc_id", "score"], orient="row"),
    )
    found = explanation(scorer, [reported_score(text, "nDCG@10", 1) for text in thread.reported])
    code, same = found.frames["causes"].select("code", "same_codes").row(0)
    assert thread.cause in (code, *same), found
    # Two topics or fewer, and a cause of many: a word is given only where the digits allow it.
    assert found.verdicts[0].word in ("EXPLAINED", "AMBIGUOUS")

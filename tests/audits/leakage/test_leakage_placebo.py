"""Leaked topics beside random ones: what `leakage effect` says of the scores."""

from __future__ import annotations

import json

import numpy as np
import pytest

from places import DATA
from truerank import leakage
from truerank.core.plain import plain
from truerank.errors import InputError
from truerank.measures import evaluate
from truerank.measures.placebo import difficulty_classes, placebo_removal
from truerank.records import Qrel, RunRow
from truerank.sources import read_qrels_frame

TOPICS = [f"t{i:02d}" for i in range(40)]
LEAKED = TOPICS[:8]


def run(ranks: dict[str, int]) -> list[RunRow]:
    """A run in which document d stands at a rank of each topic."""
    return [
        RunRow(topic, "d" if place == rank else f"x{place}", place, 10.0 - place)
        for topic, rank in ranks.items()
        for place in range(1, rank + 1)
    ]


def ranks(seed: int) -> dict[str, int]:
    return dict(zip(TOPICS, np.random.default_rng(seed).integers(2, 6, len(TOPICS)).tolist(), strict=True))


QRELS = [Qrel(topic, "d", 1) for topic in TOPICS]
RUNS = {"plain": run(ranks(1)), "other": run(ranks(2)), "memory": run(ranks(3) | dict.fromkeys(LEAKED, 1))}


def test_a_run_that_knows_the_leaked_topics_moves_more_than_chance() -> None:
    result = leakage.effect(QRELS, RUNS, LEAKED, measures="RR P@1")
    rr, p1 = result.placebos
    assert (rr.measure, rr.word, p1.word) == ("RR", "moved more than chance", "moved more than chance")
    assert rr.reason.startswith("memory moved by -0.") and rr.what == "8 of 40 topics removed"
    rows = {one.system: one for one in rr.systems}
    assert rows["memory"].change < rows["memory"].low and rows["plain"].p_corrected > 0.05
    clean = {row.run: row.clean.mean - row.all.mean for row in result.runs if row.measure == "RR"}
    assert {name: one.change for name, one in rows.items()} == pytest.approx(clean)
    assert rr.order.tau == pytest.approx(result.orders[0].tau.tau)
    assert (result.settings["resamples"], result.settings["matched_by"]) == (1000, None)
    assert json.loads(json.dumps(plain(result), allow_nan=False))["placebos"][0]["verdict"] == rr.word
    assert "moved more than chance" in repr(result) and "1,000 removals of as many topics." in repr(result)


def test_no_leaked_topic_and_none_but_leaked_ones_cannot_tell() -> None:
    for leaked, why in (([], "No topic is removed"), (TOPICS, "No topic is kept")):
        result = leakage.effect(QRELS, RUNS, leaked, measures="RR")
        assert [(one.word, one.systems) for one in result.placebos] == [("cannot tell", ())]
        assert why in repr(result)


def test_random_topics_are_matched_by_the_runs_that_are_named() -> None:
    scores = evaluate(QRELS, RUNS, "RR")
    values = {name: scores.of(name, "RR") for name in scores.runs}
    gone = np.isin(scores.topics, LEAKED)
    for matched_by, names in (("difficulty", list(RUNS)), ("plain", ["plain"])):
        result = leakage.effect(QRELS, RUNS, LEAKED, "RR", matched_by=matched_by, resamples=199, seed=3)
        strata = difficulty_classes({name: values[name] for name in names})
        expected = placebo_removal(values, gone, strata=strata, measure="RR", draws=199, seed=3)
        assert result.placebos == (expected,)
        assert "each fifth of the topics" in repr(result)
    with pytest.raises(InputError, match=r"there is no run 'nobody'\. write difficulty, or one of plain, other, mem"):
        leakage.effect(QRELS, RUNS, LEAKED, "RR", matched_by="nobody")
    with pytest.raises(InputError, match="from plain alone"):
        leakage.effect(QRELS, {"plain": RUNS["plain"]}, LEAKED, "RR", matched_by="difficulty")


@pytest.mark.shared
def test_common_core_cannot_tell_with_fifty_topics() -> None:
    """37 of 50 topics leak at random: the shift that would be found is larger than any that matters."""
    qrels = DATA / "qrels/core17.qrels.gz"
    names = ("nyt-common-core-2017-bm25-anserini", "nyt-ac-common-core-2017")
    runs = [DATA / f"spire22/runs/{name}.run.gz" for name in names]
    topics = read_qrels_frame(str(qrels))["topic_id"].unique().sort().to_list()
    (placebo,) = leakage.effect(qrels, runs, topics[:37], "nDCG@10").placebos
    assert placebo.word == "cannot tell" and placebo.what == "37 of 50 topics removed"
    assert all(one.low < one.change < one.high and one.detectable > 0.1 for one in placebo.systems)

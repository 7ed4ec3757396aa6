"""Claims where one run was judged less: rates of unjudged results, traces of pools, corrections."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import truerank
from truerank.claims.claim import Claim, chosen_claim
from truerank.claims.pools import _DEPTHS, _TIMES, _traces, pool_trace, pools_answer
from truerank.claims.unjudged import (
    DEEPEST,
    DrawnGrades,
    JudgedResults,
    judged_results,
    unjudged_answer,
)
from truerank.measures import evaluate
from truerank.measures.regrading import NO_GRADE
from truerank.options import Scoring

TOPICS, DOCUMENTS, RELEVANT = 40, 150, 12
KEYS = ["topic_id", "doc_id"]
QRELS = {"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}
RUN = {"topic_id": pl.String, "doc_id": pl.String, "rank": pl.Int64, "score": pl.Float64}


def collection(sight: dict[str, float], seed: int = 5) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Judgments of every document, and runs that see relevance as clearly as `sight` says."""
    draw = random.Random(seed)
    rows = [(f"t{t}", f"t{t}-{n:03}", int(n < RELEVANT)) for t in range(TOPICS) for n in range(DOCUMENTS)]
    runs = {}
    for name, clear in sight.items():
        scored = [(topic, key, 0, clear * grade + draw.gauss(0, 1)) for topic, key, grade in rows]
        frame = pl.DataFrame(scored, schema=RUN, orient="row")
        ranks = pl.col("score").rank("ordinal", descending=True).over("topic_id").cast(pl.Int64)
        runs[name] = frame.with_columns(ranks.alias("rank")).sort("topic_id", "rank")
    return pl.DataFrame(rows, schema=QRELS, orient="row"), runs


def claim(qrels: pl.DataFrame, runs: dict[str, pl.DataFrame]) -> Claim:
    return chosen_claim(runs, qrels, "nDCG@10", Scoring(), ("one", "other"), comparisons=1, confidence=0.95)


def pooled(qrels: pl.DataFrame, runs: dict[str, pl.DataFrame], names: list[str], depth: int) -> pl.DataFrame:
    pool = pl.concat([runs[name].filter(pl.col("rank") <= depth).select(KEYS) for name in names]).unique()
    return qrels.join(pool, on=KEYS, how="semi")


def relevant(qrels: pl.DataFrame) -> pl.DataFrame:
    return qrels.filter(pl.col("relevance") > 0)


def unjudged_share(results: JudgedResults, run: str, qrels: pl.DataFrame) -> float:
    """The share of the unjudged first results of a run that are relevant in truth."""
    mine = results.rows.filter(pl.Series(results.open & results.within(run)))
    return len(mine.join(relevant(qrels), on=KEYS, how="semi")) / len(mine)


def test_ranks_are_those_of_each_run() -> None:
    qrels, runs = collection({"one": 1.5, "other": 0.5, "third": 1.0})
    results = judged_results(claim(qrels, runs))
    assert list(results.ranks) == list(runs) and len(results.rows) > 100 * TOPICS
    for name, run in runs.items():
        rank = {(topic, doc): place for topic, doc, place, _ in run.iter_rows() if place <= DEEPEST}
        assert results.ranks[name].tolist() == [
            rank.get(pair, 2 * DEEPEST) for pair in results.rows.select(KEYS).rows()
        ]


def test_the_rates_of_unjudged_results_are_those_of_their_ranks() -> None:
    qrels, runs = collection({"one": 1.5, "other": 1.5})
    results = judged_results(claim(pooled(qrels, runs, ["one"], 20), runs))
    drawn = DrawnGrades(results, results.rates(), results.open)
    judged = results.relevant[results.judged & results.within("other")].mean()
    truth = unjudged_share(results, "other", qrels)
    # Judged results of the run are those that the other one has far up, too: their rate says nothing of the rest.
    assert drawn.fitted("other") == pytest.approx(truth, abs=0.15)
    assert judged > truth + 0.3
    low, high = drawn.fitted_interval("other")
    assert low < drawn.fitted("other") < high


def test_drawn_grades_are_the_same_in_both_runs() -> None:
    qrels, runs = collection({"one": 1.5, "other": 0.5})
    some = qrels.filter(pl.col("doc_id").str.slice(-1) < "5")
    asked = claim(some, runs)
    results = judged_results(asked)
    drawn = DrawnGrades(results, np.full(len(results.rows), 0.5), results.open)
    assert drawn.at(0.0, 0.0) == pytest.approx(asked.differences(asked.evaluation))
    opened = results.rows.filter(pl.Series(results.open)).select(*KEYS, pl.lit(1, pl.Int32).alias("relevance"))
    every = evaluate(pl.concat([some, opened]), runs, "nDCG@10")
    order = [every.topics.index(topic) for topic in asked.evaluation.topics]
    assert drawn.at(1.0, 1.0) == pytest.approx((every.of("one", "nDCG@10") - every.of("other", "nDCG@10"))[order])
    same = claim(some, {"one": runs["one"], "other": runs["one"]})
    alike = judged_results(same)
    assert DrawnGrades(alike, np.full(len(alike.rows), 0.5), alike.open).at(0.3, 0.3) == pytest.approx(0)


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "P(judged_only=True)@5", "Bpref"])
@pytest.mark.parametrize("equivalent", [{}, {"t0-001": "t0-002"}])
def test_other_grades_of_open_documents_score_as_judgments_with_them(measure: str, equivalent: dict[str, str]) -> None:
    qrels, runs = collection({"one": 1.5, "other": 0.5})
    runs = {name: run.with_columns(pl.col("score").round(0)) for name, run in runs.items()}
    pool = qrels.filter(pl.col("doc_id").str.slice(-1) < "5")
    pool = pool.with_columns(
        pl.when(pl.col("doc_id").str.ends_with("4")).then(-1).otherwise("relevance").alias("relevance")
    )
    pool = pool.cast({"relevance": pl.Int32})
    asked = chosen_claim(runs, pool, measure, Scoring(), ("one", "other"), comparisons=1, confidence=0.95)
    results = judged_results(replace(asked, equivalent=equivalent))
    draw = np.random.default_rng(3)
    grades = draw.choice([NO_GRADE, 0, 1, 3], (int(results.open.sum()), 3))
    found = results.regraded(results.open).differences(grades)
    keys = results.rows.filter(pl.Series(results.open)).select(KEYS)
    for copy in range(3):
        given = keys.with_columns(pl.Series("relevance", grades[:, copy], pl.Int64)).filter(
            pl.col("relevance") != NO_GRADE
        )
        given = given.cast({"relevance": pl.Int32})
        every = pl.concat([pool.join(given, on=KEYS, how="anti"), given])
        scored = results.claim.scored(every, runs=results.cut)
        order = [scored.topics.index(topic) for topic in asked.evaluation.topics]
        assert np.array_equal(found[copy], results.claim.differences(scored)[order])


def test_equal_runs_of_which_one_was_judged_are_an_exception_and_a_better_one_stands() -> None:
    for sight, plausible in ((1.5, True), (0.2, False)):
        qrels, runs = collection({"one": 1.5, "other": sight})
        asked = claim(pooled(qrels, runs, ["one"], 20), runs)
        answer = unjudged_answer(asked)
        assert (asked.base.effect, answer.word) == ("stands", "JUDGED UNEVENLY")
        assert (answer.effect, answer.plausible, bool(answer.possible)) == ("stands", plausible, plausible)


def test_a_loss_that_unjudged_documents_turn_is_no_reason_to_prefer_either() -> None:
    qrels, runs = collection({"one": 1.5, "other": 1.5})
    better = {"one": collection({"one": 2.2})[1]["one"], "other": runs["other"]}
    turned = truerank.check(qrels=pooled(qrels, better, ["other"], 10), run=better, system="one", baseline="other")
    assert turned.base is not None and turned.base.effect == "falls"
    told = turned.conclusion
    assert (told.word, told.decided_by) == ("CANNOT TELL", "unjudged")
    assert told.decision == "This test is no reason to prefer either system."
    assert told.figure.startswith("As judged, one is behind. If ") and "one leads by more than chance: " in told.figure
    assert [row.estimate.effect for row in told.rows][:2] == ["falls", "stands"]
    # A run of judged documents alone that is behind stays behind where both are filtered.
    part = qrels.sample(fraction=0.6, seed=1)
    worse = collection({"other": 0.4})[1]["other"].join(part, on=KEYS, how="semi")
    held = {"one": runs["one"], "other": worse}
    lost = truerank.check(qrels=part, run=held, system="other", baseline="one")
    assert lost.answer("pools").word == "FILTERED" and lost.conclusion.word == "DOES NOT HOLD"
    # Where every document is judged, a loss is one.
    whole = truerank.check(qrels=qrels, run=better, system="other", baseline="one")
    assert whole.conclusion.word == "DOES NOT HOLD"


def test_pools_show_in_relevant_documents_alone_and_only_where_there_are_any() -> None:
    qrels, runs = collection({"one": 1.5, "other": 1.5, "third": 1.2})
    whole = claim(relevant(qrels), runs)
    assert pool_trace(judged_results(whole)) is None
    assert pools_answer(whole).word == "NOT POOLED"
    pool = claim(relevant(pooled(qrels, runs, ["one"], 20)), runs)
    trace = pool_trace(judged_results(pool))
    assert trace is not None and (trace.lacking, trace.pooled, trace.depth) == ("other", ("one",), 20)
    answer = pools_answer(pool)
    assert (pool.base.effect, answer.word, answer.plausible) == ("stands", "ONE RUN POOLED", True)
    # A better run stands at these rates, too; that nothing else was judged can still not be excluded.
    qrels_of_one, clear = collection({"one": 2.5, "other": 1.0, "third": 1.2})
    far = pools_answer(claim(relevant(pooled(qrels_of_one, clear, ["one"], 20)), clear))
    assert (far.word, far.plausible) == ("ONE RUN POOLED", False)
    assert far.possible.startswith("If only one's first 20 results were judged")
    # Judgments of what one run alone has among its first ten are gone; all others are there.
    gone = runs["other"].filter(pl.col("rank") <= 10).join(
        runs["one"].filter(pl.col("rank") <= 10), on=KEYS, how="anti"
    )  # fmt: skip
    lost = claim(relevant(qrels).join(gone, on=KEYS, how="anti"), runs)
    trace = pool_trace(judged_results(lost))
    assert trace is not None and (trace.lacking, trace.first) == ("other", 10)
    assert pools_answer(lost).plausible


@pytest.mark.parametrize("seed", range(4))
def test_the_pools_of_a_trace_are_those_of_the_runs_that_bring_most_each_time(seed: int) -> None:
    qrels, runs = collection({"one": 1.5, "other": 1.0, "third": 1.0, "fourth": 0.5, "fifth": 1.0}, seed)
    results = judged_results(claim(pooled(qrels, runs, ["other", "third", "fifth"], 12), runs))
    expected, rows = [], range(len(results.rows))
    further = ["third", "fourth", "fifth"]
    for first in dict.fromkeys(min(DEEPEST, times * results.depth) for times in _TIMES):
        for depth in _DEPTHS:
            lost = {at for at in rows if results.relevant[at] and results.ranks["one"][at] <= first}
            taken = ["other"]
            while lost := {at for at in lost if results.ranks[taken[-1]][at] > depth}:
                brought = {run: sum(results.ranks[run][at] <= depth for at in lost) for run in further}
                best = max(brought, key=lambda run: brought[run])
                if not brought[best]:
                    break
                taken.append(best)
            if not lost:
                near = [min(results.ranks[run][at] for run in taken) > depth for at in rows]
                expected.append((first, tuple(taken), depth, near))
    found = [*_traces(results, "one")]
    assert any(len(one.pooled) > 2 for one in found)
    scopes = [results.ranks["one"] <= one.first for one in found]
    assert [(one.first, one.pooled, one.depth) for one in found] == [one[:3] for one in expected]
    for one, scope, (*_, beyond) in zip(found, scopes, expected, strict=True):
        assert np.array_equal(one.rows, scope & np.array(beyond))


def test_a_run_that_was_not_pooled_beside_three_that_were_is_an_exception() -> None:
    qrels, runs = collection({"one": 1.5, "other": 1.5, "third": 1.5, "fourth": 1.5})
    asked = claim(pooled(qrels, runs, ["one", "third", "fourth"], 10), runs)
    truth = claim(qrels, runs).base.value
    answer = unjudged_answer(asked)
    assert (asked.base.effect, answer.word, answer.plausible) == ("stands", "JUDGED UNEVENLY", True)
    assert answer.estimates[0].value == pytest.approx(truth, abs=0.05) and answer.estimates[0].effect != "stands"


def test_a_run_of_which_judged_documents_alone_were_kept_is_compared_with_another_such_one() -> None:
    qrels, runs = collection({"one": 1.0, "other": 1.0})
    some = qrels.filter(pl.col("doc_id").hash(seed=1) % 3 == 0)
    kept = runs["one"].join(some, on=KEYS, how="semi")
    answer = pools_answer(claim(some, {"one": kept, "other": runs["other"]}))
    assert answer.word == "FILTERED" and answer.effect in ("not shown", "falls")
    assert pools_answer(claim(some, runs)).word != "FILTERED"


def test_a_run_without_any_judged_document_gets_an_answer() -> None:
    qrels, runs = collection({"one": 1.5, "other": 1.0})
    wrong = runs["other"].with_columns(pl.lit("x-").add(pl.col("doc_id")).alias("doc_id"))
    asked = claim(qrels, {"one": runs["one"], "other": wrong})
    answers = unjudged_answer(asked), pools_answer(asked)
    assert all(one.word != "UNKNOWN" for one in answers)

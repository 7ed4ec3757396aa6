"""Removal of documents: scores against `evaluate` on what is left, draws that are alike, exact p, level and power."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.measures import evaluate, parse_measures
from truerank.measures.document_placebo import RankedDocuments, document_placebos, share_compared
from truerank.measures.placebo import removal_draws
from truerank.options import Resampling, Scoring

MEASURES = (
    "nDCG@3 nDCG P@2 AP RR RR@2 Rprec Bpref R@4 NumRet SetF Judged@3 RBP(p=0.8,rel=1) IPrec@0.5 MFR "
    "nDCG(judged_only=True)@3 nDCG(gains={1:5,2:1})@2 RR_MSMARCO@2 Success@1 NCG@2"
)  # fmt: skip


def data(
    seed: int, topics: int = 6, documents: int = 30, runs: int = 2
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Graded judgments, and runs with ties, of which one lacks a topic."""
    rng = np.random.default_rng(seed)
    judged, found = [], {}
    for topic in range(topics):
        chosen = rng.choice(documents, 9, replace=False)
        grades = [2, 1, 1, 1, 0, -1, *rng.integers(0, 3, 3).tolist()]
        judged += [(f"t{topic}", f"d{one}", grade) for one, grade in zip(chosen.tolist(), grades, strict=True)]
    for run in range(runs):
        rows = []
        for topic in range(run, topics):
            order = rng.permutation(documents)[: rng.integers(3, documents)].tolist()
            ranked = enumerate(order, start=1)
            rows += [(f"t{topic}", f"d{one}", rank, float(round(20 - rank / 2))) for rank, one in ranked]
        found[f"run{run}"] = pl.DataFrame(rows, schema=["topic_id", "doc_id", "rank", "score"], orient="row")
    return pl.DataFrame(judged, schema=["topic_id", "doc_id", "relevance"], orient="row"), found


def left(qrels: pl.DataFrame, runs: dict[str, pl.DataFrame], gone: list[str]) -> tuple[pl.DataFrame, dict]:
    """Judgments and runs without some documents, and without topics that lose each relevant one."""
    kept = qrels.filter(~pl.col("doc_id").is_in(gone))
    had = set(qrels.filter(pl.col("relevance") > 0)["topic_id"])
    lost = had - set(kept.filter(pl.col("relevance") > 0)["topic_id"])
    order = pl.col("rank").rank("ordinal").over("topic_id").cast(pl.Int64)
    shorter = {name: run.filter(~pl.col("doc_id").is_in(gone)) for name, run in runs.items()}
    shorter = {name: run.with_columns(rank=order) if "rank" in run.columns else run for name, run in shorter.items()}
    return kept.filter(~pl.col("topic_id").is_in(list(lost))), shorter


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.4, 0.8]), st.sampled_from(["trec_eval", "ascending", "rank"]))
def test_scores_are_those_of_what_is_left(seed: int, share: float, ties: str) -> None:
    qrels, runs = data(seed)
    scoring = Scoring(ties=ties)
    ranked = RankedDocuments.of(qrels, runs, scoring, ["rank"])
    removed = np.random.default_rng(seed).random((2, len(ranked.documents))) < share
    removed[0] = False
    before, after = (
        evaluate(qrels, runs, MEASURES, scoring),
        left(qrels, runs, ranked.documents.filter(removed[1]).to_list()),
    )
    # A run that answers none of what is left is refused.
    if not all(set(after[0]["topic_id"]) & set(run["topic_id"]) for run in after[1].values()):
        return
    expected = evaluate(*after, MEASURES, scoring)
    for name, measure in zip(expected.measures, parse_measures(MEASURES), strict=True):
        found = ranked.without(removed, measure)
        assert found[0] == pytest.approx([before.of(run, name).mean() for run in runs]), name
        assert found[1] == pytest.approx([expected.of(run, name).mean() for run in runs]), name


def test_results_that_move_up_from_far_below_the_cutoff_count() -> None:
    """Nine of ten documents above the relevant one go; the others are looked at again as deep as needed."""
    qrels = pl.DataFrame({"topic_id": ["t"], "doc_id": ["x"], "relevance": [1]})
    names = [f"d{n:02d}" for n in range(60)] + ["x"]
    run = pl.DataFrame({"topic_id": ["t"] * 61, "doc_id": names, "score": np.arange(61, 0, -1.0)})
    ranked = RankedDocuments.of(qrels, {"run": run})
    gone = ranked.documents.is_in(names[:59]).to_numpy()
    assert ranked.without(gone[None], parse_measures("RR@2")[0]).tolist() == [[0.5]]


def test_draws_take_as_many_documents_of_each_topic_and_grade() -> None:
    qrels, runs = data(3, topics=4, documents=200)
    grades = np.tile([3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], 4)
    qrels = pl.DataFrame(
        {
            "topic_id": [f"t{n // 20}" for n in range(80)],
            "doc_id": [f"d{n}" for n in range(80)],
            "relevance": grades,
        }
    )
    ranked = RankedDocuments.of(qrels, runs)
    classes = ranked.classes(10)
    assert (classes >= 0).any() and (classes < 0).any()
    pool = np.flatnonzero(classes >= 0)
    gone = np.random.default_rng(1).random(len(pool)) < 0.4
    names = ranked.documents.gather(pool).to_list()
    place = {f"d{n}": (n // 20, int(grades[n])) for n in range(80) if grades[n]}
    (drawn,) = removal_draws(gone, classes[pool], 50, 0)

    def counted(row: np.ndarray) -> Counter[tuple[int, int]]:
        return Counter(place.get(name, (-1, 0)) for name in itertools.compress(names, row))

    assert all(counted(row) == counted(gone) for row in drawn > 0)
    finer = ranked.classes(10, ("run0",))
    assert len(np.unique(finer)) > len(np.unique(classes))
    assert all(len(np.unique(classes[finer == one])) == 1 for one in np.unique(finer))


def planted(seed: int, topics: int = 25) -> tuple[pl.DataFrame, dict[str, pl.DataFrame], list[str]]:
    """Each topic has ten relevant documents, of which three leak; "memory" has those on top, "plain" does not."""
    rng = np.random.default_rng(seed)
    judged, runs, leaked = [], {"plain": [], "memory": []}, []
    for topic in range(topics):
        names = [f"t{topic}-{n}" for n in range(30)]
        judged += [(f"t{topic}", name, 1) for name in names[:10]]
        leaked += names[:3]
        scores = rng.random((2, 30)) + (np.arange(30) < 10) * 0.3
        scores[1, :3] += 1
        for name, own in zip(runs, scores, strict=True):
            runs[name] += [(f"t{topic}", document, score) for document, score in zip(names, own.tolist(), strict=True)]
    frames = {
        name: pl.DataFrame(rows, schema=["topic_id", "doc_id", "score"], orient="row") for name, rows in runs.items()
    }
    return pl.DataFrame(judged, schema=["topic_id", "doc_id", "relevance"], orient="row"), frames, leaked


def test_a_run_that_knows_the_leaked_documents_moves_more_than_chance() -> None:
    qrels, runs, leaked = planted(1)
    ranked = RankedDocuments.of(qrels, runs)
    found = document_placebos(ranked, [*leaked, "unknown"], "nDCG@10 AP", resampling=Resampling(199))
    assert [one.word for one in found] == ["moved more than chance"] * 2
    first = found[0]
    assert first.what == "75 of 750 documents removed, 75 relevant"
    rows = {one.system: one for one in first.systems}
    assert rows["memory"].change < rows["memory"].low and rows["plain"].p_corrected > 0.05
    expected = evaluate(*left(qrels, runs, leaked), "nDCG@10")
    assert rows["memory"].after == pytest.approx(expected.of("memory", "nDCG@10").mean())
    assert first.order.tau == 1.0 and json.loads(json.dumps(first.json(), allow_nan=False))["draws"] == 199
    again = document_placebos(ranked, leaked, "nDCG@10", matched_by="plain", resampling=Resampling(199))
    assert again[0].word == "moved more than chance"
    same = document_placebos(ranked, leaked, "nDCG@10", matched_by="memory", resampling=Resampling(199))
    assert same[0].systems[1].p > again[0].systems[1].p


def test_what_cannot_be_told() -> None:
    qrels, runs, _ = planted(2, topics=3)
    ranked = RankedDocuments.of(qrels, runs)
    (nothing,) = document_placebos(ranked, ["unknown"], "nDCG@10")
    assert (nothing.word, nothing.systems) == ("cannot tell", ()) and "No removed document counts" in nothing.reason
    (whole,) = document_placebos(ranked, qrels["doc_id"].to_list(), "nDCG@10")
    assert whole.word == "cannot tell" and "No other documents are like those" in whole.reason
    # All ten of one topic, and one of another: others are like that one alone.
    (part,) = document_placebos(ranked, [f"t0-{n}" for n in range(10)] + ["t1-3"], "nDCG@10")
    assert "11 relevant; others are like " in part.what and part.draws == 9
    (other,) = document_placebos(ranked, qrels["doc_id"].to_list()[:4], "ERR@10")
    assert other.word == "cannot tell" and "not computed" in other.reason
    with pytest.raises(InputError, match=r"there is no run 'nobody'\. write difficulty, or one of plain, memory"):
        document_placebos(ranked, ["t0-1"], "nDCG@10", matched_by="nobody")


def test_what_others_are_like_counts_by_its_ranks() -> None:
    """Of two removed documents the one on top has no other that is like it; the other one stands at rank three."""
    names = [f"d{n}" for n in range(6)]
    qrels = pl.DataFrame({"topic_id": ["t"] * 4, "doc_id": names[:4], "relevance": [2, 1, 1, 1]})
    run = pl.DataFrame({"topic_id": ["t"] * 6, "doc_id": names, "score": [9.0, 7.0, 6.0, 5.0, 8.0, 4.0]})
    ranked = RankedDocuments.of(qrels, {"run": run})
    gone = ranked.documents.is_in(["d0", "d1"]).to_numpy()
    assert share_compared(ranked, gone, 10, ()) == pytest.approx(0.5 / (1 + 0.5))
    (found,) = document_placebos(ranked, ["d0", "d1"], "nDCG@10")
    assert found.what.endswith("2 relevant; others are like 33% of these, each counted by its ranks")
    unranked = RankedDocuments.of(qrels, {"run": run.filter(pl.col("doc_id") == "d5")})
    assert share_compared(unranked, unranked.documents.is_in(["d0", "d1"]).to_numpy(), 10, ()) == 0.5


def test_few_choices_are_all_taken_and_p_is_exact() -> None:
    """One topic with six relevant documents, two of which go: fifteen choices, by a loop over `evaluate`."""
    names = [f"d{n}" for n in range(6)]
    qrels = pl.DataFrame({"topic_id": ["t"] * 6, "doc_id": names, "relevance": [1] * 6})
    run = pl.DataFrame(
        {"topic_id": ["t"] * 6, "doc_id": ["d3", "x", "d0", "y", "d1", "d5"], "score": np.arange(6, 0, -1.0)}
    )
    changes = {}
    for pair in itertools.combinations(names, 2):
        kept = evaluate(*left(qrels, {"run": run}, list(pair)), "AP")
        changes[pair] = float(kept.of("run", "AP").mean())
    away = {pair: abs(one - np.mean(list(changes.values()))) for pair, one in changes.items()}
    expected = np.mean([one >= away["d0", "d3"] - 1e-9 for one in away.values()])
    (found,) = document_placebos(RankedDocuments.of(qrels, {"run": run}), ["d0", "d3"], "AP")
    assert found.draws == 14 and found.systems[0].p == pytest.approx(expected)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(1, 8))
def test_documents_are_alike_that_count_for_the_same_topics(seed: int, near: int) -> None:
    """By a loop: topics, their grades, and whether a document is relevant, near the top or a little below."""
    qrels, runs = data(seed, topics=4, documents=60)
    scoring = Scoring(ties="rank")
    ranked = RankedDocuments.of(qrels, runs, scoring)
    grades = {(topic, doc): grade for topic, doc, grade in qrels.iter_rows()}
    tops: dict[str, list[tuple[str, int]]] = {}
    for run in runs.values():
        for topic, doc, rank in run.select("topic_id", "doc_id", "rank").iter_rows():
            tops.setdefault(doc, []).append((topic, rank))
    signatures: dict[str, object] = {}
    for doc in ranked.documents:
        relevant = {topic for (topic, one), grade in grades.items() if one == doc and grade > 0}
        deep = {topic for topic, rank in tops.get(doc, []) if rank <= 2 * near}
        kind = 3 if relevant else 2 if any(rank <= near for _, rank in tops.get(doc, [])) else 1 if deep else 0
        signatures[doc] = (kind, frozenset((topic, grades.get((topic, doc))) for topic in relevant | deep))
    classes = dict(zip(ranked.documents, ranked.classes(near).tolist(), strict=True))
    assert all((classes[doc] == -1) == (told[0] == 0) for doc, told in signatures.items())
    known = [doc for doc in classes if classes[doc] >= 0]
    for first, second in itertools.combinations(known, 2):
        assert (classes[first] == classes[second]) == (signatures[first] == signatures[second])


def test_where_topics_share_documents_and_leak_as_a_whole_the_level_holds() -> None:
    """Each document is relevant to one topic. A third also stand on top for the next one, and high for their own: where
    topics leak as a whole, these leak more often than others of their topic."""
    rng = np.random.default_rng(4)
    topics = [f"t{n:02d}" for n in range(12)]
    names = [f"d{n:03d}" for n in range(240)]
    own = {name: [topics[n % 12], *([topics[(n + 1) % 12]] if n < 80 else [])] for n, name in enumerate(names)}
    judged = [(own[name][0], name, 1) for name in names]
    qrels = pl.DataFrame(judged, schema=["topic_id", "doc_id", "relevance"], orient="row")
    rows = [(topic, name, float(rng.random() + len(own[name]))) for name in names for topic in own[name]]
    run = pl.DataFrame(rows, schema=["topic_id", "doc_id", "score"], orient="row")
    ranked = RankedDocuments.of(qrels, {"run": run})
    found = []
    for number in range(150):
        leaking = rng.choice(topics, 4, replace=False)
        gone = [name for name in names if any(t in leaking for t in own[name]) and rng.random() < 0.6]
        (one,) = document_placebos(ranked, gone, "nDCG@10", resampling=Resampling(39, 0.9, seed=number))
        found.append(one.word == "moved more than chance")
    # Binomial with 150 and 0.1: outside of 5 to 28 about once in 1,000.
    assert 5 <= sum(found) <= 28


def test_without_an_effect_chance_is_exceeded_as_often_as_the_level_says() -> None:
    qrels, runs, _ = planted(5, topics=8)
    ranked = RankedDocuments.of(qrels, {"plain": runs["plain"]})
    rng, found = np.random.default_rng(6), []
    for number in range(150):
        gone = ranked.documents.filter(pl.Series(rng.random(len(ranked.documents)) < 0.3)).to_list()
        (one,) = document_placebos(ranked, gone, "nDCG@10", resampling=Resampling(39, 0.9, seed=number))
        found.append(one.word == "moved more than chance")
    # Binomial with 150 and 0.1: outside of 5 to 28 about once in 1,000.
    assert 5 <= sum(found) <= 28

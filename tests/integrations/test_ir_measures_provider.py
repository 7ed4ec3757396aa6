"""truerank's measures inside ir_measures, and its types in and out, against loops and against providers of its own."""

from __future__ import annotations

import subprocess
import sys

import ir_measures
import numpy as np
import pytest
from ir_measures import Qrel, ScoredDoc

import truerank
from truerank.errors import InputError
from truerank.integrations import ir_measures as ours

NAMES = ("NCG@3", "MFR", "HMFR", "RR_MSMARCO", "DCG@3")


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    ours.install()
    ours.install()


@pytest.fixture(scope="module")
def data() -> tuple[list[Qrel], list[ScoredDoc]]:
    draw = np.random.default_rng(7)
    qrels = [Qrel(f"q{t}", f"d{d}", int(draw.integers(0, 4))) for t in range(12) for d in range(20)]
    run = [
        ScoredDoc(f"q{t}", f"d{d}", float(draw.integers(0, 8)))
        for t in range(11)  # the last topic is missing
        for d in draw.permutation(40)[:25]
    ]
    return qrels, run


def ranked(run: list[ScoredDoc], topic: str, *, given: bool = False) -> list[str]:
    mine = [one for one in run if one.query_id == topic]
    # trec_eval: by falling score, equal ones by id descending; MS MARCO: in the order given.
    if not given:
        mine = sorted(mine, key=lambda one: one.doc_id, reverse=True)
    return [one.doc_id for one in sorted(mine, key=lambda one: -one.score)]


def test_values_are_those_of_a_loop_over_the_definitions(data: tuple[list[Qrel], list[ScoredDoc]]) -> None:
    qrels, run = data
    measures = [ir_measures.parse_measure(name) for name in NAMES]
    found = {(str(one.measure), one.query_id): one.value for one in ir_measures.iter_calc(measures, qrels, run)}
    assert len(found) == len(NAMES) * 12
    for topic in (f"q{t}" for t in range(12)):
        grades = {one.doc_id: one.relevance for one in qrels if one.query_id == topic}
        gains = [grades.get(doc, 0) for doc in ranked(run, topic)]
        best = sum(sorted(grades.values(), reverse=True)[:3])
        assert found["NCG@3", topic] == pytest.approx(sum(gains[:3]) / best)
        assert found["DCG@3", topic] == pytest.approx(sum(g / np.log2(r + 2) for r, g in enumerate(gains[:3])))
        first = next((rank for rank, gain in enumerate(gains, start=1) if gain > 0), None)
        assert found["MFR", topic] == (first or 1001)
        assert found["HMFR", topic] == (first or float("inf"))
        given = [grades.get(doc, 0) for doc in ranked(run, topic, given=True)][:10]
        assert found["RR_MSMARCO", topic] == next((1 / r for r, g in enumerate(given, start=1) if g > 0), 0)


def test_aggregates_are_those_of_evaluate(data: tuple[list[Qrel], list[ScoredDoc]]) -> None:
    qrels, run = data
    names = ["NCG@3", "MFR", "HMFR", "DCG@3"]
    found = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in names], qrels, run)
    expected = truerank.evaluate(qrels, run, measures=" ".join(names))
    for name in names:
        assert found[ir_measures.parse_measure(name)] == pytest.approx(expected.mean[0][names.index(name)], abs=1e-12)


def test_beside_measures_of_ir_measures(data: tuple[list[Qrel], list[ScoredDoc]]) -> None:
    qrels, run = data
    both = ir_measures.calc_aggregate(
        [ir_measures.nDCG @ 10, ir_measures.parse_measure("HMFR"), ir_measures.RR], qrels, run
    )
    # HMFR is one over the mean of RR: two implementations of other hands.
    assert 1 / both[ir_measures.parse_measure("HMFR")] == pytest.approx(both[ir_measures.RR], abs=1e-12)
    assert set(map(str, both)) == {"nDCG@10", "HMFR", "RR"}


def test_an_empty_run_scores_what_an_empty_ranking_scores() -> None:
    measures = [ir_measures.parse_measure(name) for name in ("MFR", "NCG@3", "RR_MSMARCO")]
    found = ir_measures.calc_aggregate(measures, [Qrel("1", "a", 1)], [])
    assert [found[measure] for measure in measures] == [1001, 0, 0]
    other = ir_measures.calc_aggregate(measures, [Qrel("1", "a", 1)], [ScoredDoc("2", "a", 1.0)])
    assert other == found


def test_ms_marco_rank_follows_the_order_given_where_scores_are_equal() -> None:
    qrels, run = [Qrel("1", "a", 1)], [ScoredDoc("1", doc, 1.0) for doc in ("a", "c", "b")]
    found = ir_measures.calc_aggregate(
        [ir_measures.parse_measure("RR_MSMARCO"), ir_measures.parse_measure("MFR")], qrels, run
    )
    assert found[ir_measures.parse_measure("RR_MSMARCO")] == 1.0
    assert found[ir_measures.parse_measure("MFR")] == 3.0


def test_all_types_of_ir_measures_are_the_same_judgments_and_run(data: tuple[list[Qrel], list[ScoredDoc]]) -> None:
    qrels, run = data
    nested_qrels: dict[str, dict[str, int]] = {}
    nested_run: dict[str, dict[str, float]] = {}
    for one in qrels:
        nested_qrels.setdefault(one.query_id, {})[one.doc_id] = one.relevance
    for one in run:
        nested_run.setdefault(one.query_id, {})[one.doc_id] = one.score
    expected = truerank.evaluate(nested_qrels, nested_run, measures="nDCG@10 AP").values
    official = ir_measures.calc_aggregate([ir_measures.nDCG @ 10, ir_measures.AP], qrels, run)
    assert expected[0].mean(axis=1) == pytest.approx([official[ir_measures.nDCG @ 10], official[ir_measures.AP]])
    for judged in (qrels, tuple(qrels), iter(qrels)):
        assert np.array_equal(truerank.evaluate(judged, run, measures="nDCG@10 AP").values, expected)
    for ranking in (iter(run), {"bm25": run}, {"bm25": iter(run)}):
        assert np.array_equal(truerank.evaluate(qrels, ranking, measures="nDCG@10 AP").values, expected)


def test_other_commands_take_the_types(data: tuple[list[Qrel], list[ScoredDoc]]) -> None:
    qrels, run = data
    worse = [one._replace(score=-one.score) for one in run]
    found = truerank.compare(qrels, {"a": run, "b": worse}, measures="nDCG@10")
    assert "nDCG@10" in str(found)


def test_there_and_back(data: tuple[list[Qrel], list[ScoredDoc]], tmp_path) -> None:
    qrels, run = data
    assert ours.qrels(qrels) == qrels
    assert ours.run(run) == run
    file = tmp_path / "test.qrels"
    file.write_text("".join(f"{one.query_id} 3 {one.doc_id} {one.relevance}\n" for one in qrels))
    assert ours.qrels(file) == list(ir_measures.read_trec_qrels(str(file)))
    ranking = tmp_path / "bm25.run"
    ranking.write_text("".join(f"{one.query_id} Q0 {one.doc_id} 1 {one.score} t\n" for one in run))
    assert ours.run(ranking) == list(ir_measures.read_trec_run(str(ranking)))


def test_records_of_several_kinds_are_one_sentence() -> None:
    with pytest.raises(InputError, match="several kinds"):
        truerank.evaluate([Qrel("1", "a", 1), ScoredDoc("1", "b", 1.0)], [ScoredDoc("1", "a", 1.0)])
    with pytest.raises(InputError, match="columns missing: relevance"):
        truerank.evaluate([ScoredDoc("1", "b", 1.0)], [ScoredDoc("1", "a", 1.0)])
    assert len(list(ours.run([ScoredDoc("1", "a", 1.0), ScoredDoc("1", "a", 2.0)]))) == 1  # the first place counts


def test_nothing_is_registered_unless_asked() -> None:
    code = (
        "import truerank, ir_measures; truerank.evaluate({'1': {'a': 1}}, {'1': {'a': 1.}}, measures='NCG@3')\n"
        "import truerank.integrations.ir_measures\n"
        "assert 'NCG' not in ir_measures.measures.registry and 'truerank' not in ir_measures.providers.registry\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

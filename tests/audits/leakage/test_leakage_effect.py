"""Scores with and without leaked topics: by hand, against ir_measures and SciPy, and on real runs."""

import json

import ir_measures
import numpy as np
import pytest
from scipy import stats

from leakage_example import audit, save
from places import DATA
from truerank.audits.leakage.effect import effect
from truerank.core.plain import plain
from truerank.errors import InputError
from truerank.measures.report import swap_table
from truerank.records import Qrel, RunRow


def judged(*topics):
    """Each topic has one relevant document, d."""
    return [Qrel(topic, "d", 1) for topic in topics]


def run(**ranks):
    """A run in which d stands at the given rank of each topic; 0 where the topic is missing."""
    return [
        RunRow(topic, "d" if place == rank else f"x{place}", place, 10.0 - place)
        for topic, rank in ranks.items()
        for place in range(1, rank + 1)
    ]


def test_by_hand():
    result = effect(judged("t1", "t2", "t3", "t4"), {"a": run(t1=1, t2=2, t3=1)}, ["t1", "t2"], measures="RR P@1")
    rr, p1 = result.runs
    assert (rr.run, rr.measure, p1.measure) == ("a", "RR", "P@1")
    # Reciprocal ranks 1, 1/2 | 1, 0 (missing).
    assert (rr.all.n, rr.all.mean) == (4, 0.625)
    assert (rr.leaked.n, rr.leaked.mean, rr.clean.n, rr.clean.mean) == (2, 0.75, 2, 0.5)
    assert rr.difference.mean == 0.25
    # t(0.975; 3) = 3.182446, s = 0.478714
    assert rr.all.low == pytest.approx(0.625 - 3.182446 * 0.478714 / 2, abs=1e-6)
    assert rr.all.high == pytest.approx(0.625 + 3.182446 * 0.478714 / 2, abs=1e-6)
    assert rr.p == 1.0
    assert result.missing == {"a": 1}
    assert result.orders == ()


def test_exact_permutation_p():
    ranks = {"t1": 1, "t2": 1, "t3": 1, "t4": 2, "t5": 2, "t6": 2}
    (row,) = effect(judged(*ranks), {"a": run(**ranks)}, ["t1", "t2", "t3"], measures="P@1").runs
    # 2 of the 20 ways to choose three of six topics are as extreme.
    assert row.p == pytest.approx(0.1)
    assert row.difference == (6, 1.0, 1.0, 1.0)
    two = effect(judged(*ranks), {"a": run(**ranks), "b": run(**ranks)}, ["t1", "t2", "t3"], measures="P@1").runs
    assert [r.p_corrected for r in two] == [pytest.approx(0.2)] * 2


def test_sampled_permutation_p_and_seed():
    rng = np.random.default_rng(0)
    ranks = {f"t{i}": int(rng.integers(1, 4 if i < 20 else 8)) for i in range(60)}
    leaked = [f"t{i}" for i in range(20)]
    first, again, other = (
        effect(judged(*ranks), {"a": run(**ranks)}, leaked, measures="RR", seed=seed).runs[0] for seed in (1, 1, 2)
    )
    assert first == again
    assert first.p != other.p
    assert first.p == pytest.approx(other.p, abs=0.01)
    scores = np.array([1 / rank for rank in ranks.values()])
    reference = stats.permutation_test(
        (scores[:20], scores[20:]), lambda x, y, axis: x.mean(axis) - y.mean(axis), n_resamples=9999, rng=3
    )
    assert first.p == pytest.approx(reference.pvalue, abs=0.01)


def test_welch_interval_is_scipys():
    ranks = {"t1": 1, "t2": 2, "t3": 4, "t4": 1, "t5": 8}
    (row,) = effect(judged(*ranks), {"a": run(**ranks)}, ["t1", "t2", "t3"], measures="RR").runs
    expected = stats.ttest_ind([1, 1 / 2, 1 / 4], [1, 1 / 8], equal_var=False).confidence_interval(0.95)
    assert row.difference[2:] == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_order_of_systems_without_the_leaked_topics():
    qrels = judged("t1", "t2", "t3", "t4")
    runs = {
        "memory": run(t1=1, t2=1, t3=4, t4=4),  # all 0.625, clean 0.25
        "solid": run(t1=2, t2=2, t3=2, t4=2),  # all 0.5, clean 0.5
        "weak": run(t1=5, t2=5, t3=4, t4=4),  # all 0.225, clean 0.25
    }
    result = effect(qrels, runs, ["t1", "t2"], measures="RR")
    (order,) = result.orders
    assert order.swaps == (("memory", "solid", 0.125, -0.25),)
    assert (order.drop.ranks, order.drop.system) == (1, "memory")
    # Orders (3, 2, 1) and (1.5, 3, 1.5): concordant 1, discordant 1, tied 1.
    assert order.tau.tau == pytest.approx(stats.kendalltau([3, 2, 1], [1.5, 3, 1.5]).statistic)
    assert order.tau.tau == 0.0
    assert "memory" in swap_table(order).text() and "+0.1250" in swap_table(order).text()
    assert "RR: order of the systems, all and clean." in repr(result)


def test_systems_that_tie_are_not_swapped():
    runs = {"a": run(t1=1, t2=2, t3=3), "b": run(t1=3, t2=1, t3=2), "c": run(t1=2, t2=3, t3=1)}
    (order,) = effect(judged("t1", "t2", "t3"), runs, ["t1"], measures="RR").orders
    assert order.swaps == () and order.tau.tau is None


def test_audits_and_test_sets(tmp_path):
    rows = [("robust", "t1", "title", "log", "q", "x", 0.99), ("core", "t2", "title", "log", "q", "x", 0.99)]
    folder = save(audit(rows, tests=("robust", "core")), tmp_path / "audit")
    qrels, runs = judged("t1", "t2", "t3"), {"a": run(t1=1, t2=2, t3=1)}
    with pytest.raises(InputError, match=r"the audit has the test sets robust, core\. choose one"):
        effect(qrels, runs, folder)
    with pytest.raises(InputError, match="the audit has no test set 'web'"):
        effect(qrels, runs, folder, test_set="web")
    result = effect(qrels, runs, folder, test_set="core", measures=["RR"])
    assert result.runs[0].leaked.mean == 0.5
    assert result.settings["test"] == "core"
    one = effect(qrels, runs, audit(rows[:1]), measures="RR")
    assert (one.settings["test"], one.runs[0].leaked.n) == ("robust", 1)
    with pytest.raises(InputError, match="none of the 1 leaked topics has relevance judgments"):
        effect(judged("t8", "t9"), {"a": run(t8=1)}, audit(rows[:1]))


def test_sides_with_few_topics():
    qrels, runs = judged("t1", "t2", "t3"), {"a": run(t1=1, t2=2, t3=1), "b": run(t1=2, t2=1, t3=1)}
    none = effect(qrels, runs, [], measures="RR").runs[0]
    assert (none.leaked, none.p, none.difference) == ((0, None, None, None), None, (3, None, None, None))
    every = effect(qrels, runs, ["t1", "t2", "t3"], measures="RR")
    assert every.runs[0].clean.n == 0 and every.orders == ()
    one = effect(qrels, runs, ["t1", "elsewhere"], measures="RR")
    assert one.runs[0].leaked == (1, 1.0, None, None)
    assert one.runs[0].difference[1:] == (0.25, None, None)
    assert one.unjudged == ("elsewhere",)
    for result in (every, one):
        assert json.loads(json.dumps(plain(result), allow_nan=False))["missing"] == {"a": 0, "b": 0}
        assert "–" in repr(result)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"measures": "nDCG@10 nope"}, "unknown measure: 'nope'"),
        ({"measures": "AP(foo=1)"}, r"a parameter is missing or wrong: 'AP\(foo=1\)'"),
        ({"measures": "P"}, "a parameter is missing or wrong: 'P'"),
        ({"measures": "NumRet"}, "NumRet is not a mean over topics"),
        ({"measures": ""}, "no measure"),
        ({"measures": "alpha_nDCG@10"}, "alpha_nDCG@10"),
        ({"ties": "any"}, "ties: 'any' is not one of the choices"),
        ({"confidence": 95}, "confidence: must be above 0 and below 1, got 95"),
    ],
)
def test_faults_of_options(options, fault):
    with pytest.raises(InputError, match=fault):
        effect(judged("t1"), {"a": run(t1=1)}, [], **options)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("track", "name", "other"),
    [
        ("core17", "nyt-common-core-2017-bm25-anserini", "nyt-ac-common-core-2017"),
        ("core18", "wapo-v2-common-core-2018-bm25-anserini", "wapo-v2-common-core-2018"),
    ],
)
def test_real_runs(track, name, other):
    qrels = DATA / f"qrels/{track}.qrels.gz"
    path, static = (DATA / f"spire22/runs/{run}.run.gz" for run in (name, other))
    topics = sorted({q.query_id for q in ir_measures.read_trec_qrels(str(qrels))})
    result = effect(qrels, [path, static], topics[:37], measures="nDCG@10 P@1 AP")
    measures = [ir_measures.parse_measure(name) for name in ("nDCG@10", "P@1", "AP")]
    expected = ir_measures.calc_aggregate(
        measures, list(ir_measures.read_trec_qrels(str(qrels))), list(ir_measures.read_trec_run(str(path)))
    )
    rows = {row.measure: row for row in result.runs if row.run == name}
    for measure in measures:
        row = rows[str(measure)]
        assert row.all.mean == pytest.approx(expected[measure], abs=1e-12)
        assert (row.all.n, row.leaked.n, row.clean.n) == (50, 37, 13)
        assert row.all.mean * 50 == pytest.approx(row.leaked.mean * 37 + row.clean.mean * 13)
        assert row.clean.low < row.clean.mean < row.clean.high
    assert len(result.orders) == 3

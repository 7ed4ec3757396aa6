"""Orders of systems: τ against SciPy and by counting pairs, τ_AP by hand, drops, swaps and the papers' red cells."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from truerank.core.result import summary
from truerank.errors import InputError
from truerank.measures.orders import (
    Drop,
    Overtaking,
    Swap,
    evaluation_order_changes,
    kendall,
    largest_drop,
    order_changes,
    ranks,
    tau_ap,
)
from truerank.measures.report import order_table
from truerank.measures.results import Evaluation, Policy

SCORES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=12)


@settings(max_examples=80)
@given(SCORES)
def test_kendall_counts_pairs(pairs):
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    agree = disagree = tied_first = tied_second = tied_both = 0
    for (a, b), (c, d) in itertools.combinations(pairs, 2):
        agree += (a - c) * (b - d) > 0
        disagree += (a - c) * (b - d) < 0
        tied_first += a == c
        tied_second += b == d
        tied_both += a == c and b == d
    total = math.comb(len(pairs), 2)
    found_a, found_b = kendall(first, second, "a"), kendall(first, second)
    for found in (found_a, found_b):
        assert (found.tied_first, found.tied_second, found.tied_both) == (tied_first, tied_second, tied_both)
    assert found_a.tau == pytest.approx((agree - disagree) / total)
    if total in (tied_first, tied_second):
        assert (found_b.tau, found_b.case) == (None, "all-tied")
    else:
        denominator = math.sqrt((total - tied_first) * (total - tied_second))
        assert found_b.tau == pytest.approx((agree - disagree) / denominator)
        assert found_b.tau == pytest.approx(stats.kendalltau(first, second).statistic)
        assert found_a.p == found_b.p


def test_p_is_exact_without_ties():
    first = [5, 4, 3, 2, 1]
    found = kendall(first, [5, 4, 2, 3, 1])
    # Of the 120 orders of five, 1 has no discordant pair and 4 have one; as many at the other end.
    assert found.tau == pytest.approx(0.8)
    assert (found.p, found.how) == (pytest.approx(2 * 5 / 120), "exact")
    tied = kendall([3, 3, 2, 1], [4, 3, 2, 1])
    assert tied.how == "normal approximation"
    assert tied.p == pytest.approx(stats.kendalltau([3, 3, 2, 1], [4, 3, 2, 1], method="asymptotic").pvalue)
    assert kendall(np.arange(200), np.arange(200)).how == "normal approximation"


def test_kendall_cases():
    assert kendall([1.0], [2.0]).case == "few-systems"
    assert "fewer than two systems" in kendall([], []).sentence()
    assert "all systems are tied" in kendall([1, 1], [1, 2]).sentence()
    assert kendall([1, 1], [1, 2], "a").tau == 0.0
    # Rounding of sums is not an order.
    assert kendall([0.1 + 0.2, 0.3], [1, 2]).case == "all-tied"
    with pytest.raises(InputError, match="unknown variant of Kendall's τ 'c'"):
        kendall([1, 2], [1, 2], "c")
    with pytest.raises(InputError, match="the orders have 2 and 3 systems"):
        kendall([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="not finite"):
        kendall([1, math.nan], [1, 2])


def test_tau_ap_by_hand():
    # Judged order b a c d of the true order a b c d: of those above a, c, d belong there 0/1, 2/2, 3/3.
    assert tau_ap([4, 3, 2, 1], [3, 4, 2, 1]).tau == pytest.approx(2 / 3 * (0 + 1 + 1) - 1)
    # The same mistake at the bottom costs less: 1/1, 2/2, 2/3.
    assert tau_ap([4, 3, 2, 1], [4, 3, 1, 2]).tau == pytest.approx(2 / 3 * (1 + 1 + 2 / 3) - 1)
    assert tau_ap([1, 2, 3], [1, 2, 3]).tau == 1 and tau_ap([1, 2, 3], [3, 2, 1]).tau == -1
    assert tau_ap([1, 1, 3], [3, 2, 1]).case == "tied" and tau_ap([1], [1]).case == "few-systems"


def test_ranks_and_drops():
    assert ranks([0.3, 0.5, 0.1 + 0.2, 0.1]).tolist() == [2, 1, 2, 4]
    assert ranks([2.0, 1.0], ascending=True).tolist() == [2, 1]
    before = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}
    assert largest_drop(before, {"a": 0.5, "b": 0.9, "c": 0.6, "d": 0.1}) == Drop("a", 2)
    assert largest_drop(before, before) == Drop("", 0)
    # a and b both lose two ranks: the first one is named.
    assert largest_drop(before, {"a": 0.2, "b": 0.1, "c": 0.9, "d": 0.8}) == Drop("a", 2)
    assert largest_drop({"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 2.0}, ascending=True) == Drop("a", 1)
    assert largest_drop({}, {}) == Drop("", 0)
    with pytest.raises(InputError, match="different systems"):
        largest_drop({"a": 1.0}, {"b": 1.0})


#: Robust04, nDCG@10 and MFR: no leakage, leakage from MS MARCO and ORCAS (leakage paper, Table 3).
NDCG = {"Duet": 0.201, "KNRM": 0.194, "monoBERT": 0.394, "monoT5": 0.461, "PACRR": 0.382}
NDCG_MSM = {"Duet": 0.198, "KNRM": 0.214, "monoBERT": 0.373, "monoT5": 0.457, "PACRR": 0.364}
#: Common Core 2018, MFR (Table 5).
MFR = {"Duet": 1.993, "KNRM": 3.099, "monoBERT": 1.810, "monoT5": 1.577, "PACRR": 1.649}
MFR_MSM = {"Duet": 1.812, "KNRM": 2.768, "monoBERT": 1.683, "monoT5": 1.503, "PACRR": 1.383}


def test_red_cells_of_the_leakage_paper():
    found = order_changes(NDCG, NDCG_MSM, measure="nDCG@10", conditions=("none", "MSM"))
    assert found.swaps == (Swap("Duet", "KNRM", pytest.approx(0.007), pytest.approx(-0.016)),)
    assert found.overtakings == (Overtaking("KNRM", "Duet", pytest.approx(-0.007), pytest.approx(0.013)),)
    assert found.tau.tau == pytest.approx(0.8)
    assert found.drop == Drop("Duet", 1)
    # "PACRR with MSM leakage would overtake monoT5 without": here both change places too. Lower is better.
    mfr = order_changes(MFR, MFR_MSM, ascending=True)
    assert ("PACRR", "monoT5") in {found[:2] for found in mfr.overtakings}
    assert mfr.overtakings[0] == ("PACRR", "monoT5", pytest.approx(0.072), pytest.approx(-0.194))
    assert mfr.swaps == (Swap("monoT5", "PACRR", pytest.approx(-0.072), pytest.approx(0.120)),)
    # MonoBERT on Common Core 2018 passes PACRR only as long as that one stays without leakage.
    ndcg = order_changes({"monoBERT": 0.364, "PACRR": 0.376}, {"monoBERT": 0.380, "PACRR": 0.406})
    assert ndcg.swaps == () and [found.system for found in ndcg.overtakings] == ["monoBERT"]


def test_tables_and_json_of_an_order():
    found = order_changes({**NDCG, "old": 0.1}, {**NDCG_MSM, "new": 0.2}, measure="nDCG@10", conditions=("none", "MSM"))
    text = summary(found).show()
    assert "1 of 10 pairs of systems change places." in text
    assert "Kendall's τ-b = 0.800 (n = 5, p = 0.0833, exact; no ties)." in text
    assert "Largest drop: Duet loses 1 ranks." not in text and "Largest drop: Duet loses 1 rank." in text
    assert "Only in none, left out: old." in text and "Only in MSM, left out: new." in text
    rows = {row[0]: row for row in order_table(found).rows}
    assert rows["KNRM"] == ("KNRM", 0.194, 5, 0.214, 4, -1, "↔‡")
    assert rows["monoT5"][-1] == ""
    value = json.loads(json.dumps(found.json(), allow_nan=False))
    assert value["swaps"][0]["better"] == "Duet" and value["kendall"]["variant"] == "b"
    assert value["only_before"] == ["old"]
    with pytest.raises(InputError, match="no system in common"):
        order_changes({"a": 1.0}, {"b": 1.0})


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=8))
def test_swaps_are_the_discordant_pairs(pairs):
    before = {f"s{i}": a / 10 for i, (a, _) in enumerate(pairs)}
    after = {f"s{i}": b / 10 for i, (_, b) in enumerate(pairs)}
    found = order_changes(before, after, variant="a")
    total = math.comb(len(pairs), 2)
    agreeing = sum((a - c) * (b - d) > 0 for (a, b), (c, d) in itertools.combinations(pairs, 2))
    assert found.tau.tau * total == pytest.approx(agreeing - len(found.swaps))
    mirrored = order_changes({k: -v for k, v in before.items()}, {k: -v for k, v in after.items()}, ascending=True)
    assert {swap[:2] for swap in mirrored.swaps} == {swap[:2] for swap in found.swaps}
    assert mirrored.drop == found.drop


def evaluation(values, measures=("nDCG@10", "MFR"), runs=("a", "b")):
    array = np.array(values, dtype=float)
    topics = tuple(f"t{i}" for i in range(array.shape[2]))
    return Evaluation(tuple(runs), tuple(measures), topics, array, dict.fromkeys(runs, 0), Policy())


def test_orders_of_two_evaluations():
    before = evaluation([[[0.5, 0.7], [1, 1]], [[0.4, 0.4], [2, 2]]])
    after = evaluation([[[0.5, 0.1], [3, 3]], [[0.4, 0.6], [2, 2]]])
    ndcg, mfr = evaluation_order_changes(before, after)
    assert (ndcg.measure, ndcg.ascending, mfr.measure, mfr.ascending) == ("nDCG@10", False, "MFR", True)
    assert [swap[:2] for swap in ndcg.swaps] == [("a", "b")] and [swap[:2] for swap in mfr.swaps] == [("a", "b")]
    (only,) = evaluation_order_changes(before, after, measures="MFR")
    assert only == mfr
    with pytest.raises(InputError, match="not all runs were scored by P@1"):
        evaluation_order_changes(before, after, measures=["P@1"])
    with pytest.raises(InputError, match="no measure in common"):
        evaluation_order_changes(before, evaluation([[[1.0]]], measures=["P@1"], runs=["a"]))

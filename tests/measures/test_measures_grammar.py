"""Measures are written as in ir_measures, and a wrong one is answered with the right spelling."""

from __future__ import annotations

import ir_measures
import pytest
from ir_measures import AP, RR, IPrec, P, nDCG

from truerank.errors import InputError
from truerank.measures import HMFR, MFR, NCG, RR_MSMARCO, lower_is_better, parse_measures
from truerank.measures.grammar import aggregate_of


def test_they_mix_freely() -> None:
    assert parse_measures("nDCG@10 P@1 MFR NCG@100 AP(rel=2)") == (nDCG @ 10, P @ 1, MFR, NCG @ 100, AP(rel=2))
    assert parse_measures("nDCG(dcg='exp-log2', judged_only=True)@5,RR , MRR@10") == (
        nDCG(dcg="exp-log2", judged_only=True) @ 5, RR, RR @ 10,
    )  # fmt: skip
    assert parse_measures(["HMFR(none=1000)", RR_MSMARCO @ 5, "IPrec@0"]) == (
        HMFR(none=1000), RR_MSMARCO @ 5, IPrec @ 0.0,
    )  # fmt: skip
    assert parse_measures(MFR) == (MFR,)
    assert parse_measures("nDCG(dcg=exp-log2)@5 nDCG(gains={0: 0, 1: 5})@5")[1].params["gains"] == {0: 0, 1: 5}


def test_each_is_taken_once_and_spelled_one_way() -> None:
    assert [str(measure) for measure in parse_measures("MAP AP nDCG(cutoff=10) NDCG@10 P(rel=2)@5")] == [
        "AP", "nDCG@10", "P(rel=2)@5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        ("hit@5 hit_rate@5 HIT_RATE@5 hitrate@5 accuracy@5 ACCURACY@5 success_5 hit_rate_at_5 HR@5", "Success@5"),
        ("mrr MRR recip_rank Mrr mean_reciprocal_rank", "RR"),
        ("mrr@10 MRR@10 mrr_at_10 mrr_10", "RR@10"),
        ("recall@5 RECALL@5 Recall@5 recall_5 r@5", "R@5"),
        ("precision@5 p@5 P_5 Precision@5", "P@5"),
        ("map MAP ap Mean_Average_Precision", "AP"),
        ("map@100 map_cut_100", "AP@100"),
        ("ndcg@10 NDCG@10 ndcg_cut_10 ndcg_at_10 ndcg_10", "nDCG@10"),
        ("num_rel_ret", "NumRelRet"),
        ("set_recall SET_R", "SetR"),
        ("rprec R_prec R_Precision", "Rprec"),
    ],
)
def test_usual_names_are_taken_whatever_their_case(texts: str, name: str) -> None:
    assert [str(measure) for measure in parse_measures(texts)] == [name]


def test_every_name_of_ir_measures_is_known() -> None:
    for name, measure in ir_measures.measures.registry.items():
        if not any(info.required and key not in measure.params for key, info in measure.SUPPORTED_PARAMS.items()):
            # NumRelRet is ours, since it follows the policy's grade.
            assert parse_measures(name) == (measure,) or name == "NumRelRet"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no measure"),
        ("Accuracy@5", r"two readings: 'Accuracy@5'. write Success@5 .*, Accuracy\(cutoff=5\)"),
        ("hit_rate", r"write Success@k"),
        ("recall@k", "a parameter is missing or wrong"),
        ("nDGC@10", "did you mean nDCG"),
        ("something", "such as nDCG@10"),
        ("P", r"write P@k"),
        ("P@0", "the cutoff is 0"),
        ("AP(relevance=2)", "its parameters are: cutoff, rel, judged_only"),
        ("AP(2)", "a parameter without a value"),
        ("AP(rel=2", "not a measure"),
    ],
)
def test_faults(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_measures(text)


def test_how_topics_are_put_together() -> None:
    assert [aggregate_of(m) for m in parse_measures("AP NumRet NumRelRet HMFR MFR NumQ")] == [
        "mean", "sum", "sum", "harmonic", "mean", "sum",
    ]  # fmt: skip
    assert [lower_is_better(name) for name in ("MFR(none=5)@3", "HMFR", "RR", MFR @ 10)] == [True, True, False, True]

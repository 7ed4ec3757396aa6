"""Conventions against the evaluators that have them, run by their own code on the collections of the study."""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from typing import Any

import pytest

from places import ROOT
from truerank.measures.conventions import ConventionScorer, scored_measure

sys.path.append(str(ROOT / "studies"))
peer_scores = pytest.importorskip("peer_scores", reason="the studies are not here")
study = pytest.importorskip("peer_conventions", reason="the studies are not here")

#: Kinds of collection that can make trec_eval's code wait for ever, and those that some code stops at.
WAITS = ("negative grades",)
UNJUDGED = ("unjudged topics",)
OWN = "topics.in-run"
TIES = ("ties", "ties of 12 results", "32-bit ties")
#: Evaluator, its measures, the conventions by topic, the rule for topics, and the kinds that are left out.
PEERS: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str, tuple[str, ...]], ...] = (
    ("pytrec_eval", ("nDCG@10", "AP", "AP@10", "RR", "P@10", "R@10", "Success@10", "Rprec"), (), OWN, WAITS),
    ("ir_measures gdeval", ("nDCG@10",), ("gain.exponential", "ties.double"), "", ()),
    ("ir_measures msmarco", ("RR", "RR@10"), ("ties.ascending",), "", ()),
    ("ir_measures cwl_eval", ("AP",), ("divisor.retrieved", "ties.input"), "", ()),
    ("ir_measures cwl_eval", ("RR", "P@10"), ("ties.input",), "", ()),
    ("ranx", ("nDCG@10", "AP", "AP@10", "RR", "RR@10", "P@10", "R@10", "Rprec"), ("ties.input",), "", ("ties",)),
    ("ranx", ("nDCG@10, burges",), ("gain.exponential", "ties.input"), "", ("ties",)),
    ("BEIR", ("nDCG@10", "AP@10", "R@10", "P@10"), ("run.own-document",), OWN, WAITS),
    ("BEIR", ("RR@10", "Success@10"), ("ties.input",), "", UNJUDGED),
    ("BEIR", ("R@10, capped",), ("divisor.capped", "ties.input"), "", (*UNJUDGED, "topics without relevant")),
    ("bm25s", ("nDCG@10", "AP@10", "R@10", "P@10"), ("run.own-document",), OWN, WAITS),
    ("MTEB", ("nDCG@10", "AP@10", "P@10", "R@10", "Success@10"), (), OWN, (*WAITS, *UNJUDGED)),
    ("MTEB", ("RR@10",), ("ties.double",), OWN, (*WAITS, *UNJUDGED)),
    ("MTEB", ("R@10, capped",), ("divisor.capped", "ties.double"), "topics.in-run-with-relevant", UNJUDGED),
    ("sentence-transformers", ("nDCG@10",), ("grades.binary", "ties.ascending"), "topics.with-relevant", ()),
    ("sentence-transformers", ("AP@10",), ("divisor.capped", "ties.ascending"), "topics.with-relevant", ()),
    ("sentence-transformers", ("RR@10", "P@10", "R@10", "Success@10"), ("ties.ascending",), "topics.with-relevant", ()),
    ("torchmetrics", ("nDCG@10",), ("ideal.retrieved", "ties.averaged", "run.duplicates"), "topics.of-run",
     ("32-bit ties", "negative grades")),
    ("torchmetrics", ("AP", "AP@10", "R@10"), ("divisor.retrieved", "scores.positive", "run.duplicates"),
     "topics.of-run", TIES),
    ("torchmetrics", ("RR", "RR@10", "P@10"), ("scores.positive", "run.duplicates"), "topics.of-run", TIES),
    ("torchmetrics", ("Success@10",), ("run.duplicates",), "topics.of-run", TIES),
    ("torchmetrics", ("Rprec",), ("divisor.retrieved", "run.duplicates"), "topics.of-run", TIES),
    ("torchmetrics skip", ("AP",), ("divisor.retrieved", "scores.positive", "run.duplicates"), "topics.with-retrieved",
     TIES),
    ("scikit-learn", ("nDCG@10",), ("ideal.retrieved", "ties.averaged", "run.duplicates"), OWN, WAITS),
    ("scikit-learn", ("nDCG@10, all judged",), ("ties.averaged", "run.appended"), OWN, (*WAITS, "documents twice")),
    ("scikit-learn", ("AP",), ("divisor.retrieved", "ties.last", "run.duplicates"), OWN, ()),
)  # fmt: skip


@functools.cache
def peer(name: str) -> Any:
    """An evaluator, or a skip where it is absent."""
    try:
        found = peer_scores.PEERS[name]()
        importlib.metadata.version(found.package)
    except (ImportError, RuntimeError, KeyError) as error:
        pytest.skip(f"{name} is not installed here ({error}); studies/peer_conventions.py runs it elsewhere")
    return found


@functools.cache
def collections(kind: str) -> tuple[tuple[dict[str, Any], ConventionScorer], ...]:
    both = (study.collection(kind, seed) for seed in (1, 2))
    return tuple((one, study.scorer(one)) for one in both)


@pytest.mark.parametrize(
    ("name", "measure", "codes", "rule", "without"),
    [
        # Loading sentence-transformers takes more than five seconds.
        pytest.param(
            *(name, measure, codes, rule, without),
            id=f"{name}-{measure}",
            marks=[pytest.mark.slow] if name == "sentence-transformers" else [],
        )
        for name, measures, codes, rule, without in PEERS
        for measure in measures
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_conventions_give_the_scores_of_an_evaluator(
    name: str, measure: str, codes: tuple[str, ...], rule: str, without: tuple[str, ...]
) -> None:
    evaluator, scored = peer(name), scored_measure(measure.partition(", ")[0])
    bound = study.TOLERANCE + (0.5 * 10**-evaluator.digits if evaluator.digits else 0)
    largest = dict.fromkeys(codes, 0.0)
    for kind in study.KINDS:
        if kind in without or (kind == "documents twice" and not evaluator.lists):
            continue
        for one, own in collections(kind):
            rows = {topic: [tuple(row) for row in own] for topic, own in one["run"].items()}
            qrels = {topic: dict(own) for topic, own in one["qrels"].items()}
            mean, topics = evaluator.measures[measure](qrels, rows)
            case = study.Case(kind, own, mean, topics)
            assert topics
            assert study.difference(case, scored, codes) <= bound, kind
            every = study.chosen(own, (*codes, rule))
            assert own.scores(scored, every).score == pytest.approx(mean, abs=bound), kind
            for code in codes:
                fewer = tuple(other for other in codes if other != code)
                largest[code] = max(largest[code], study.difference(case, scored, fewer))
    if scored.family not in ("Success", "RR"):
        # Each of the conventions is needed: without one of them the scores differ.
        assert all(value > bound for value in largest.values()), largest

"""Measures as values, runs scored by them, and what the differences between systems are worth."""

from truerank.measures.grammar import HMFR, MFR, NCG, RR_MSMARCO, lower_is_better, parse_measures
from truerank.measures.policy import Policy
from truerank.measures.results import Coverage, Evaluation, load_evaluation
from truerank.measures.scoring import evaluate

__all__ = [
    "HMFR",
    "MFR",
    "NCG",
    "RR_MSMARCO",
    "Coverage",
    "Evaluation",
    "Policy",
    "evaluate",
    "load_evaluation",
    "lower_is_better",
    "parse_measures",
]

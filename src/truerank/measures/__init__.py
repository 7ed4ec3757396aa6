"""Measures as values, runs scored by them, and what the differences between systems are worth."""

from truerank.measures.comparing import compare_evaluations
from truerank.measures.comparison import Comparison, Difference
from truerank.measures.correlation import Correlation, Drop, kendall, largest_drop, tau_ap
from truerank.measures.cross_validation import CrossValidation, FoldChoice, cross_validate
from truerank.measures.folds import folds, read_folds
from truerank.measures.grammar import DCG, HMFR, MFR, NCG, RR_MSMARCO, parse_measures
from truerank.measures.intervals import Proportion, proportion
from truerank.measures.magnitude import (
    MeanInterval,
    detectable_difference,
    difference_interval,
    effect_size,
    mean_interval,
)
from truerank.measures.method import Significance
from truerank.measures.names import lower_is_better
from truerank.measures.ordering import OrderChanges, Overtaking, Swap, evaluation_order_changes, order_changes
from truerank.measures.policy import Policy
from truerank.measures.resampling import bootstrap_interval
from truerank.measures.results import Coverage, Evaluation, load_evaluation
from truerank.measures.run_comparison import RunComparison, compare
from truerank.measures.scoring import evaluate
from truerank.measures.significance import Outcome, correct, difference_test
from truerank.measures.topic_differences import TopicDifferences, topic_differences

__all__ = [
    "DCG",
    "HMFR",
    "MFR",
    "NCG",
    "RR_MSMARCO",
    "Comparison",
    "Correlation",
    "Coverage",
    "CrossValidation",
    "Difference",
    "Drop",
    "Evaluation",
    "FoldChoice",
    "MeanInterval",
    "OrderChanges",
    "Outcome",
    "Overtaking",
    "Policy",
    "Proportion",
    "RunComparison",
    "Significance",
    "Swap",
    "TopicDifferences",
    "bootstrap_interval",
    "compare",
    "compare_evaluations",
    "correct",
    "cross_validate",
    "detectable_difference",
    "difference_interval",
    "difference_test",
    "effect_size",
    "evaluate",
    "evaluation_order_changes",
    "folds",
    "kendall",
    "largest_drop",
    "load_evaluation",
    "lower_is_better",
    "mean_interval",
    "order_changes",
    "parse_measures",
    "proportion",
    "read_folds",
    "tau_ap",
    "topic_differences",
]

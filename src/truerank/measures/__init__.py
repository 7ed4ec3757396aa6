"""Measures as values, runs scored by them, and what the differences between systems are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.measures.comparison import Comparison as Comparison
    from truerank.measures.comparison import Difference as Difference
    from truerank.measures.comparison import Significance as Significance
    from truerank.measures.comparison import compare_evaluations as compare_evaluations
    from truerank.measures.explanation import ExplainOptions as ExplainOptions
    from truerank.measures.explanation import Explanation as Explanation
    from truerank.measures.explanation import explain as explain
    from truerank.measures.grammar import DCG as DCG
    from truerank.measures.grammar import HMFR as HMFR
    from truerank.measures.grammar import MFR as MFR
    from truerank.measures.grammar import NCG as NCG
    from truerank.measures.grammar import RR_MSMARCO as RR_MSMARCO
    from truerank.measures.grammar import parse_measures as parse_measures
    from truerank.measures.magnitudes import MeanInterval as MeanInterval
    from truerank.measures.magnitudes import Proportion as Proportion
    from truerank.measures.magnitudes import detectable_difference as detectable_difference
    from truerank.measures.magnitudes import difference_interval as difference_interval
    from truerank.measures.magnitudes import effect_size as effect_size
    from truerank.measures.magnitudes import mean_interval as mean_interval
    from truerank.measures.magnitudes import proportion as proportion
    from truerank.measures.orders import Correlation as Correlation
    from truerank.measures.orders import Drop as Drop
    from truerank.measures.orders import OrderChanges as OrderChanges
    from truerank.measures.orders import Overtaking as Overtaking
    from truerank.measures.orders import Swap as Swap
    from truerank.measures.orders import evaluation_order_changes as evaluation_order_changes
    from truerank.measures.orders import kendall as kendall
    from truerank.measures.orders import largest_drop as largest_drop
    from truerank.measures.orders import order_changes as order_changes
    from truerank.measures.orders import tau_ap as tau_ap
    from truerank.measures.resampling import bootstrap_interval as bootstrap_interval
    from truerank.measures.results import Coverage as Coverage
    from truerank.measures.results import Evaluation as Evaluation
    from truerank.measures.results import Policy as Policy
    from truerank.measures.results import load_evaluation as load_evaluation
    from truerank.measures.results import lower_is_better as lower_is_better
    from truerank.measures.run_comparison import ComparisonOptions as ComparisonOptions
    from truerank.measures.run_comparison import RunComparison as RunComparison
    from truerank.measures.run_comparison import TopicDifferences as TopicDifferences
    from truerank.measures.run_comparison import compare as compare
    from truerank.measures.run_comparison import topic_differences as topic_differences
    from truerank.measures.run_divergence import RunDivergence as RunDivergence
    from truerank.measures.run_divergence import ScoreDifference as ScoreDifference
    from truerank.measures.scoring import evaluate as evaluate
    from truerank.measures.significance import Outcome as Outcome
    from truerank.measures.significance import correct as correct
    from truerank.measures.significance import difference_test as difference_test
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]

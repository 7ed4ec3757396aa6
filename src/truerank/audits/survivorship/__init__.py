"""The survivorship audit: which queries did the annotation throw away, and what does that do?

    propose   discarded queries, the kinds of query that are missing, the passages behind them
    judge     why a query was unanswered, and whether it can be answered
    estimate  discarded shares by kind and depth, judgments at every simulated depth
    act       rescue queries, restore depth, filter training triples
    measure   scores and trained rankers by depth

Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022).
"""

from truerank.audits.survivorship.depths import Depths, depth, open_depths
from truerank.audits.survivorship.evaluating import evaluate
from truerank.audits.survivorship.evaluating_options import EvaluateOptions
from truerank.audits.survivorship.evaluating_results import DepthEvaluation
from truerank.audits.survivorship.kinds import Kinds, independence
from truerank.audits.survivorship.mapping import PassageMap, map_passages
from truerank.audits.survivorship.options import (
    DepthOptions,
    MapOptions,
    ProfileOptions,
    SimulateOptions,
    TriplesOptions,
)
from truerank.audits.survivorship.profiling import Profile, profile
from truerank.audits.survivorship.simulating import Judged, Simulated, simulate
from truerank.audits.survivorship.triples import Triples, triples

__all__ = [
    "DepthEvaluation",
    "DepthOptions",
    "Depths",
    "EvaluateOptions",
    "Judged",
    "Kinds",
    "MapOptions",
    "PassageMap",
    "Profile",
    "ProfileOptions",
    "SimulateOptions",
    "Simulated",
    "Triples",
    "TriplesOptions",
    "depth",
    "evaluate",
    "independence",
    "map_passages",
    "open_depths",
    "profile",
    "simulate",
    "triples",
]

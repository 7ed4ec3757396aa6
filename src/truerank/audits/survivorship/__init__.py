"""The survivorship audit: which queries did the annotation throw away, and what does that do?

    propose   discarded queries, the kinds of query that are missing, the passages behind them
    judge     why a query was unanswered, and whether it can be answered
    estimate  discarded shares by kind and depth, judgments at every simulated depth
    act       rescue queries, restore depth, filter training triples
    measure   scores and trained rankers by depth

Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022).
"""

from truerank.audits.survivorship.answers.counting import AnswersFrom, answerable
from truerank.audits.survivorship.answers.options import AnswerableOptions, Discarded, PoolOptions, RescueOptions
from truerank.audits.survivorship.answers.pool import AnswerPool, pool_discarded
from truerank.audits.survivorship.answers.results import Answerable
from truerank.audits.survivorship.depths import Depths, depth, open_depths
from truerank.audits.survivorship.evaluating.evaluate import evaluate
from truerank.audits.survivorship.evaluating.options import EvaluateOptions
from truerank.audits.survivorship.evaluating.results import DepthEvaluation
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
from truerank.audits.survivorship.rescuing import Rescued, RescuedFrom, rescue
from truerank.audits.survivorship.simulating import Judged, Simulated, simulate
from truerank.audits.survivorship.training_effect import TrainingEffect, training_effect
from truerank.audits.survivorship.triples import Triples, triples

__all__ = [
    "AnswerPool",
    "Answerable",
    "AnswerableOptions",
    "AnswersFrom",
    "DepthEvaluation",
    "DepthOptions",
    "Depths",
    "Discarded",
    "EvaluateOptions",
    "Judged",
    "Kinds",
    "MapOptions",
    "PassageMap",
    "PoolOptions",
    "Profile",
    "ProfileOptions",
    "RescueOptions",
    "Rescued",
    "RescuedFrom",
    "SimulateOptions",
    "Simulated",
    "TrainingEffect",
    "Triples",
    "TriplesOptions",
    "answerable",
    "depth",
    "evaluate",
    "independence",
    "map_passages",
    "open_depths",
    "pool_discarded",
    "profile",
    "rescue",
    "simulate",
    "training_effect",
    "triples",
]

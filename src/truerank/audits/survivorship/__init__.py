"""The survivorship audit: which queries did the annotation discard, and what does that do to scores and models?

    propose   discarded queries, the kinds of query that are missing, the passages behind them
    judge     why a query was unanswered, and whether it can be answered
    estimate  discarded shares by kind and depth, judgments at every simulated depth
    act       rescue queries, restore depth, filter training triples
    measure   scores and trained rankers by depth

Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022).
"""

from truerank.audits.survivorship.answering import Answerable, AnswerCountOptions, CorpusAnswers, answerable
from truerank.audits.survivorship.answers import AnswerLabels
from truerank.audits.survivorship.depths import DepthOptions, Depths, depth, open_depths
from truerank.audits.survivorship.evaluating import evaluate
from truerank.audits.survivorship.evaluation import DepthEvaluation, EvaluateOptions
from truerank.audits.survivorship.filtering import Triples, TriplesOptions, triples
from truerank.audits.survivorship.kinds import Kinds, independence
from truerank.audits.survivorship.mapping import MapOptions, PassageMap
from truerank.audits.survivorship.mapping import map_passages as map  # noqa: A004
from truerank.audits.survivorship.pooling import AnswerPool, AnswerPoolOptions, DiscardedQueries
from truerank.audits.survivorship.profiling import Profile, ProfileOptions, profile
from truerank.audits.survivorship.rescuing import Rescued, RescueOptions, rescue
from truerank.audits.survivorship.simulating import Simulated, SimulateOptions, simulate
from truerank.audits.survivorship.training_effect import TrainingEffect, training_effect

__all__ = [
    "AnswerCountOptions",
    "AnswerLabels",
    "AnswerPool",
    "AnswerPoolOptions",
    "Answerable",
    "CorpusAnswers",
    "DepthEvaluation",
    "DepthOptions",
    "Depths",
    "DiscardedQueries",
    "EvaluateOptions",
    "Kinds",
    "MapOptions",
    "PassageMap",
    "Profile",
    "ProfileOptions",
    "RescueOptions",
    "Rescued",
    "SimulateOptions",
    "Simulated",
    "TrainingEffect",
    "Triples",
    "TriplesOptions",
    "answerable",
    "depth",
    "evaluate",
    "independence",
    "map",
    "open_depths",
    "profile",
    "rescue",
    "simulate",
    "training_effect",
    "triples",
]

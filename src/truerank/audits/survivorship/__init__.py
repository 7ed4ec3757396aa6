"""The survivorship audit: which queries did the annotation discard, and what does that do to scores and models?

    propose   discarded queries, the kinds of query that are missing, the passages behind them
    judge     why a query was unanswered, and whether it can be answered
    estimate  discarded shares by kind and depth, judgments at every simulated depth
    act       rescue queries, restore depth, filter training triples
    measure   scores and trained rankers by depth

Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from truerank.audits.survivorship.answering import Answerable as Answerable
    from truerank.audits.survivorship.answering import AnswerCountOptions as AnswerCountOptions
    from truerank.audits.survivorship.answering import CorpusAnswers as CorpusAnswers
    from truerank.audits.survivorship.answering import answerable as answerable
    from truerank.audits.survivorship.depth_training import TrainingEffect as TrainingEffect
    from truerank.audits.survivorship.depth_training import training_effect as training_effect
    from truerank.audits.survivorship.depths import DepthOptions as DepthOptions
    from truerank.audits.survivorship.depths import Depths as Depths
    from truerank.audits.survivorship.depths import depth as depth
    from truerank.audits.survivorship.depths import open_depths as open_depths
    from truerank.audits.survivorship.evaluating import evaluate as evaluate
    from truerank.audits.survivorship.evaluation import DepthEvaluation as DepthEvaluation
    from truerank.audits.survivorship.evaluation import EvaluateOptions as EvaluateOptions
    from truerank.audits.survivorship.filtering import Triples as Triples
    from truerank.audits.survivorship.filtering import TriplesOptions as TriplesOptions
    from truerank.audits.survivorship.filtering import triples as triples
    from truerank.audits.survivorship.kinds import Kinds as Kinds
    from truerank.audits.survivorship.kinds import independence as independence
    from truerank.audits.survivorship.mapping import MapOptions as MapOptions
    from truerank.audits.survivorship.mapping import PassageMap as PassageMap
    from truerank.audits.survivorship.mapping import map_passages as map  # noqa: A004, F401
    from truerank.audits.survivorship.pooling import AnswerPool as AnswerPool
    from truerank.audits.survivorship.pooling import AnswerPoolOptions as AnswerPoolOptions
    from truerank.audits.survivorship.pooling import DiscardedQueries as DiscardedQueries
    from truerank.audits.survivorship.profiling import Profile as Profile
    from truerank.audits.survivorship.profiling import ProfileOptions as ProfileOptions
    from truerank.audits.survivorship.profiling import profile as profile
    from truerank.audits.survivorship.rescuing import Rescued as Rescued
    from truerank.audits.survivorship.rescuing import RescueOptions as RescueOptions
    from truerank.audits.survivorship.rescuing import rescue as rescue
    from truerank.audits.survivorship.simulating import Simulated as Simulated
    from truerank.audits.survivorship.simulating import SimulateOptions as SimulateOptions
    from truerank.audits.survivorship.simulating import simulate as simulate

#: The public names by the modules that have them, imported on first use: no command waits for the others.
_PUBLIC: Final = {
    "answering": (
        "AnswerCountOptions",
        "Answerable",
        "CorpusAnswers",
        "answerable",
    ),
    "depth_training": (
        "TrainingEffect",
        "training_effect",
    ),
    "depths": (
        "DepthOptions",
        "Depths",
        "depth",
        "open_depths",
    ),
    "evaluating": ("evaluate",),
    "evaluation": (
        "DepthEvaluation",
        "EvaluateOptions",
    ),
    "filtering": (
        "Triples",
        "TriplesOptions",
        "triples",
    ),
    "kinds": (
        "Kinds",
        "independence",
    ),
    "mapping": (
        "MapOptions",
        "PassageMap",
        "map",
    ),
    "pooling": (
        "AnswerPool",
        "AnswerPoolOptions",
        "DiscardedQueries",
    ),
    "profiling": (
        "Profile",
        "ProfileOptions",
        "profile",
    ),
    "rescuing": (
        "RescueOptions",
        "Rescued",
        "rescue",
    ),
    "simulating": (
        "SimulateOptions",
        "Simulated",
        "simulate",
    ),
}
_HOMES: Final = {name: module for module, names in _PUBLIC.items() for name in names}
#: Names that differ from those in their modules.
_CALLED: Final = {"map": "map_passages"}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), _CALLED.get(name, name))


def __dir__() -> list[str]:
    return sorted(__all__)

"""Do my judgments rank systems fairly, also new ones?

Pools, active judging, stopping rules, and a simulation of how systems that were not pooled would be ranked.

Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track (TREC 2019), section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.audits.reusability.active import ActiveLearner as ActiveLearner
    from truerank.audits.reusability.active import LearnerOptions as LearnerOptions
    from truerank.audits.reusability.active import Trace as Trace
    from truerank.audits.reusability.active import trace as trace
    from truerank.audits.reusability.assistant import Assistant as Assistant
    from truerank.audits.reusability.assistant import Collection as Collection
    from truerank.audits.reusability.assistant import open_collection as open_collection
    from truerank.audits.reusability.assistant import pool_assistant as pool_assistant
    from truerank.audits.reusability.features import Features as Features
    from truerank.audits.reusability.inputs import DEFAULT_RULES as DEFAULT_RULES
    from truerank.audits.reusability.inputs import SimulationOptions as SimulationOptions
    from truerank.audits.reusability.judged_topics import TopicStatistics as TopicStatistics
    from truerank.audits.reusability.judged_topics import topics as topics
    from truerank.audits.reusability.pooling import Ordered as Ordered
    from truerank.audits.reusability.pooling import Pooling as Pooling
    from truerank.audits.reusability.pooling import PoolMethod as PoolMethod
    from truerank.audits.reusability.pooling import adaptive_pool as adaptive_pool
    from truerank.audits.reusability.pooling import depth_pool as depth_pool
    from truerank.audits.reusability.pooling import teams_of as teams_of
    from truerank.audits.reusability.pools import Pool as Pool
    from truerank.audits.reusability.pools import build as build
    from truerank.audits.reusability.simulation import Simulation as Simulation
    from truerank.audits.reusability.simulation import simulate as simulate
    from truerank.audits.reusability.simulation import trial_engine as trial_engine
    from truerank.audits.reusability.stopping import ConstantBudget as ConstantBudget
    from truerank.audits.reusability.stopping import Decision as Decision
    from truerank.audits.reusability.stopping import FunctionRule as FunctionRule
    from truerank.audits.reusability.stopping import Keeping as Keeping
    from truerank.audits.reusability.stopping import OriginalSize as OriginalSize
    from truerank.audits.reusability.stopping import StoppingRule as StoppingRule
    from truerank.audits.reusability.stopping import TopicJudgments as TopicJudgments
    from truerank.audits.reusability.stopping import TopicOutcome as TopicOutcome
    from truerank.audits.reusability.stopping import TopicProgress as TopicProgress
    from truerank.audits.reusability.stopping import TrackProcedure as TrackProcedure
    from truerank.audits.reusability.stopping import apply_rule as apply_rule
    from truerank.audits.reusability.stopping import follow as follow
    from truerank.audits.reusability.stopping import heuristic as heuristic
    from truerank.audits.reusability.stopping import load_rule as load_rule
    from truerank.audits.reusability.verdict import Conclusion as Conclusion
    from truerank.audits.reusability.verdict import verdict_of as verdict_of
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]

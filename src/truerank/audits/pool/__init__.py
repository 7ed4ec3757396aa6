"""Do my judgments rank systems fairly, also new ones?

Pools, active judging, stopping rules, and a simulation of how systems that were not pooled would be ranked.

Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track (TREC 2019), section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.audits.pool.active import ActiveLearner as ActiveLearner
    from truerank.audits.pool.active import LearnerOptions as LearnerOptions
    from truerank.audits.pool.active import Trace as Trace
    from truerank.audits.pool.active import trace as trace
    from truerank.audits.pool.assistant import Assistant as Assistant
    from truerank.audits.pool.assistant import Collection as Collection
    from truerank.audits.pool.assistant import open_collection as open_collection
    from truerank.audits.pool.assistant import pool_assistant as pool_assistant
    from truerank.audits.pool.features import Features as Features
    from truerank.audits.pool.inputs import DEFAULT_RULES as DEFAULT_RULES
    from truerank.audits.pool.inputs import SimulationOptions as SimulationOptions
    from truerank.audits.pool.judged_topics import TopicStatistics as TopicStatistics
    from truerank.audits.pool.judged_topics import topics as topics
    from truerank.audits.pool.pools import Ordered as Ordered
    from truerank.audits.pool.pools import Pool as Pool
    from truerank.audits.pool.pools import Pooling as Pooling
    from truerank.audits.pool.pools import PoolMethod as PoolMethod
    from truerank.audits.pool.pools import adaptive_pool as adaptive_pool
    from truerank.audits.pool.pools import build as build
    from truerank.audits.pool.pools import depth_pool as depth_pool
    from truerank.audits.pool.pools import teams_of as teams_of
    from truerank.audits.pool.simulation import Simulation as Simulation
    from truerank.audits.pool.simulation import simulate as simulate
    from truerank.audits.pool.simulation import trial_engine as trial_engine
    from truerank.audits.pool.stopping import ConstantBudget as ConstantBudget
    from truerank.audits.pool.stopping import Decision as Decision
    from truerank.audits.pool.stopping import Keeping as Keeping
    from truerank.audits.pool.stopping import OriginalSize as OriginalSize
    from truerank.audits.pool.stopping import StoppingRule as StoppingRule
    from truerank.audits.pool.stopping import TopicJudgments as TopicJudgments
    from truerank.audits.pool.stopping import TopicOutcome as TopicOutcome
    from truerank.audits.pool.stopping import TopicProgress as TopicProgress
    from truerank.audits.pool.stopping import TrackProcedure as TrackProcedure
    from truerank.audits.pool.stopping import apply_rule as apply_rule
    from truerank.audits.pool.stopping import follow as follow
    from truerank.audits.pool.stopping import heuristic as heuristic
    from truerank.audits.pool.stopping import load_rule as load_rule
    from truerank.audits.pool.verdict import Conclusion as Conclusion
    from truerank.audits.pool.verdict import verdict_of as verdict_of
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]

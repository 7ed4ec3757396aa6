"""Do my judgments rank systems fairly, also new ones?

Pools, active judging, stopping rules, and a simulation of how systems that were not pooled would be ranked.

Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track (TREC 2019), section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.audits.reusability.following import TopicJudgments as TopicJudgments
    from truerank.audits.reusability.following import TopicOutcome as TopicOutcome
    from truerank.audits.reusability.following import apply_rule as apply_rule
    from truerank.audits.reusability.following import follow as follow
    from truerank.audits.reusability.judged_topics import TopicStatistics as TopicStatistics
    from truerank.audits.reusability.judged_topics import topics as topics
    from truerank.audits.reusability.learning.active import ActiveLearner as ActiveLearner
    from truerank.audits.reusability.learning.active import LearnerOptions as LearnerOptions
    from truerank.audits.reusability.learning.active import Trace as Trace
    from truerank.audits.reusability.learning.active import trace as trace
    from truerank.audits.reusability.learning.features import Features as Features
    from truerank.audits.reusability.learning.proposer import Assistant as Assistant
    from truerank.audits.reusability.learning.proposer import Collection as Collection
    from truerank.audits.reusability.learning.proposer import open_collection as open_collection
    from truerank.audits.reusability.learning.proposer import pool_assistant as pool_assistant
    from truerank.audits.reusability.pools.bandit import Ordered as Ordered
    from truerank.audits.reusability.pools.bandit import adaptive_pool as adaptive_pool
    from truerank.audits.reusability.pools.building import build as build
    from truerank.audits.reusability.pools.depth import depth_pool as depth_pool
    from truerank.audits.reusability.pools.inputs import teams_of as teams_of
    from truerank.audits.reusability.pools.options import Pooling as Pooling
    from truerank.audits.reusability.pools.options import PoolMethod as PoolMethod
    from truerank.audits.reusability.pools.results import Pool as Pool
    from truerank.audits.reusability.simulation.options import DEFAULT_RULES as DEFAULT_RULES
    from truerank.audits.reusability.simulation.options import SimulationOptions as SimulationOptions
    from truerank.audits.reusability.simulation.results import Simulation as Simulation
    from truerank.audits.reusability.simulation.simulating import simulate as simulate
    from truerank.audits.reusability.simulation.simulating import trial_engine as trial_engine
    from truerank.audits.reusability.simulation.verdict import Conclusion as Conclusion
    from truerank.audits.reusability.simulation.verdict import verdict_of as verdict_of
    from truerank.audits.reusability.stopping import ConstantBudget as ConstantBudget
    from truerank.audits.reusability.stopping import Decision as Decision
    from truerank.audits.reusability.stopping import Keeping as Keeping
    from truerank.audits.reusability.stopping import OriginalSize as OriginalSize
    from truerank.audits.reusability.stopping import StoppingRule as StoppingRule
    from truerank.audits.reusability.stopping import TopicProgress as TopicProgress
    from truerank.audits.reusability.stopping import TrackProcedure as TrackProcedure
    from truerank.audits.reusability.stopping import heuristic as heuristic
    from truerank.audits.reusability.stopping_specs import FunctionRule as FunctionRule
    from truerank.audits.reusability.stopping_specs import load_rule as load_rule
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]

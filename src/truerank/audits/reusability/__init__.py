"""Do my judgments rank systems fairly, also new ones?

Pools, active judging, stopping rules, and a simulation of how systems that were not pooled would be ranked.

Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track (TREC 2019), section 5.
"""

from truerank.audits.reusability.following import TopicJudgments, TopicOutcome, apply_rule, follow
from truerank.audits.reusability.judged_topics import TopicStatistics, topics
from truerank.audits.reusability.learning.active import ActiveLearner, LearnerOptions, Trace, trace
from truerank.audits.reusability.learning.features import Features
from truerank.audits.reusability.learning.proposer import Assistant, Collection, open_collection, pool_assistant
from truerank.audits.reusability.pools.bandit import Ordered, adaptive_pool
from truerank.audits.reusability.pools.building import build
from truerank.audits.reusability.pools.depth import depth_pool
from truerank.audits.reusability.pools.inputs import teams_of
from truerank.audits.reusability.pools.options import Pooling, PoolMethod
from truerank.audits.reusability.pools.results import Pool
from truerank.audits.reusability.simulation.options import DEFAULT_RULES, SimulationOptions
from truerank.audits.reusability.simulation.results import Simulation
from truerank.audits.reusability.simulation.simulating import simulate, trial_engine
from truerank.audits.reusability.simulation.verdict import Conclusion, verdict_of
from truerank.audits.reusability.stopping import (
    ConstantBudget,
    Decision,
    Keeping,
    OriginalSize,
    StoppingRule,
    TopicProgress,
    TrackProcedure,
    heuristic,
)
from truerank.audits.reusability.stopping_specs import FunctionRule, load_rule

__all__ = [
    "DEFAULT_RULES",
    "ActiveLearner",
    "Assistant",
    "Collection",
    "Conclusion",
    "ConstantBudget",
    "Decision",
    "Features",
    "FunctionRule",
    "Keeping",
    "LearnerOptions",
    "Ordered",
    "OriginalSize",
    "Pool",
    "PoolMethod",
    "Pooling",
    "Simulation",
    "SimulationOptions",
    "StoppingRule",
    "TopicJudgments",
    "TopicOutcome",
    "TopicProgress",
    "TopicStatistics",
    "Trace",
    "TrackProcedure",
    "adaptive_pool",
    "apply_rule",
    "build",
    "depth_pool",
    "follow",
    "heuristic",
    "load_rule",
    "open_collection",
    "pool_assistant",
    "simulate",
    "teams_of",
    "topics",
    "trace",
    "trial_engine",
    "verdict_of",
]

"""The reusability audit: pools, active judging, stopping rules, and whether the collection is fair to new systems.

Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track (TREC 2019), section 5.
"""

from truerank.audits.reusability.learning.active import ActiveLearner, LearnerOptions, Trace, trace
from truerank.audits.reusability.learning.features import Features
from truerank.audits.reusability.learning.proposer import Assistant, Collection, open_collection, pool_assistant
from truerank.audits.reusability.pools.bandit import Ordered, adaptive_pool
from truerank.audits.reusability.pools.building import build
from truerank.audits.reusability.pools.depth import depth_pool
from truerank.audits.reusability.pools.inputs import teams_of
from truerank.audits.reusability.pools.options import PoolOptions, PoolSources
from truerank.audits.reusability.pools.results import Pool
from truerank.audits.reusability.simulation.following import Found, Outcome, apply_rule, follow
from truerank.audits.reusability.simulation.options import DEFAULT_RULES, SimulationOptions, SimulationSources
from truerank.audits.reusability.simulation.report import Simulation
from truerank.audits.reusability.simulation.simulating import simulate, trial_engine
from truerank.audits.reusability.simulation.verdict import Verdict
from truerank.audits.reusability.stopping import (
    ConstantBudget,
    Decision,
    Keeping,
    OriginalSize,
    Progress,
    StoppingRule,
    TrackProcedure,
    heuristic,
)
from truerank.audits.reusability.stopping_specs import FunctionRule, load_rule
from truerank.audits.reusability.topics import TopicStatistics, topics

__all__ = [
    "DEFAULT_RULES",
    "ActiveLearner",
    "Assistant",
    "Collection",
    "ConstantBudget",
    "Decision",
    "Features",
    "Found",
    "FunctionRule",
    "Keeping",
    "LearnerOptions",
    "Ordered",
    "OriginalSize",
    "Outcome",
    "Pool",
    "PoolOptions",
    "PoolSources",
    "Progress",
    "Simulation",
    "SimulationOptions",
    "SimulationSources",
    "StoppingRule",
    "TopicStatistics",
    "Trace",
    "TrackProcedure",
    "Verdict",
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
]

"""The reusability audit: pools, active judging, stopping rules, and whether the collection is fair to new systems.

Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track (TREC 2019), section 5.
"""

from truerank.audits.reusability.active import ActiveLearner, LearnerOptions, Trace, trace
from truerank.audits.reusability.bandit import Ordered, adaptive_pool
from truerank.audits.reusability.features import Features
from truerank.audits.reusability.following import Found, Outcome, apply_rule, follow
from truerank.audits.reusability.pools import depth_pool
from truerank.audits.reusability.pools_building import build
from truerank.audits.reusability.pools_inputs import teams_of
from truerank.audits.reusability.pools_options import PoolOptions, PoolSources
from truerank.audits.reusability.pools_results import Pool
from truerank.audits.reusability.proposer import Assistant, Collection, open_collection
from truerank.audits.reusability.proposer_desk import serve
from truerank.audits.reusability.report import Simulation
from truerank.audits.reusability.simulating import simulate, trial_engine
from truerank.audits.reusability.simulation_options import DEFAULT_RULES, SimulationOptions, SimulationSources
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
from truerank.audits.reusability.verdict import Verdict

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
    "serve",
    "simulate",
    "teams_of",
    "topics",
    "trace",
    "trial_engine",
]

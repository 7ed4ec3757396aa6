"""Training sets with known faults: built, proven, written for other programs."""

from truerank_lab.instances.built import Built, Export, export, open_built
from truerank_lab.instances.document_queries import CutRule, DocumentQueries, QueryFile, queries
from truerank_lab.instances.options import (
    FORMATS,
    KINDS,
    FirstStageOptions,
    LeakOptions,
    TableOptions,
    TopicOptions,
    TrainingOptions,
)
from truerank_lab.instances.proofs import InstanceStats, stats
from truerank_lab.instances.training_sets import build

__all__ = [
    "FORMATS", "KINDS", "Built", "CutRule", "DocumentQueries", "Export", "FirstStageOptions", "InstanceStats",
    "LeakOptions", "QueryFile", "TableOptions", "TopicOptions", "TrainingOptions", "build", "export", "open_built",
    "queries", "stats",
]  # fmt: skip

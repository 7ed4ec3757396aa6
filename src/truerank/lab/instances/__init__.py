"""Training sets with known faults: built, proven, written for other programs."""

from truerank.lab.instances.built import Built, Export, export, open_built
from truerank.lab.instances.document_queries import CutRule, DocumentQueries, QueryFile, queries
from truerank.lab.instances.options import (
    FORMATS,
    KINDS,
    FirstStageOptions,
    LeakOptions,
    TableOptions,
    TopicOptions,
    TrainingOptions,
)
from truerank.lab.instances.proofs import InstanceStats, stats
from truerank.lab.instances.training_sets import build

__all__ = [
    "FORMATS", "KINDS", "Built", "CutRule", "DocumentQueries", "Export", "FirstStageOptions", "InstanceStats",
    "LeakOptions", "QueryFile", "TableOptions", "TopicOptions", "TrainingOptions", "build", "export", "open_built",
    "queries", "stats",
]  # fmt: skip

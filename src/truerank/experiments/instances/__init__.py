"""Training sets with known faults: built, proven, written for other programs."""

from truerank.experiments.instances.built import Built, Export, export, open_built
from truerank.experiments.instances.document_queries import CutRule, DocumentQueries, QueryFile, queries
from truerank.experiments.instances.options import (
    FORMATS,
    KINDS,
    FirstStageOptions,
    LeakOptions,
    TableOptions,
    TopicOptions,
    TrainingOptions,
)
from truerank.experiments.instances.proofs import InstanceStats, stats
from truerank.experiments.instances.training_sets import build

__all__ = [
    "FORMATS",
    "KINDS",
    "Built",
    "CutRule",
    "DocumentQueries",
    "Export",
    "FirstStageOptions",
    "InstanceStats",
    "LeakOptions",
    "QueryFile",
    "TableOptions",
    "TopicOptions",
    "TrainingOptions",
    "build",
    "export",
    "open_built",
    "queries",
    "stats",
]

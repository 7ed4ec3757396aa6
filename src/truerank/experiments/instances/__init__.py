"""Training sets with known faults: built, proven, read."""

from truerank.experiments.instances.building import build_instances
from truerank.experiments.instances.built import Built, export_instances, open_built
from truerank.experiments.instances.document_queries import CutRule, DocumentQueries, write_document_queries
from truerank.experiments.instances.options import FORMATS, KINDS, BuildOptions
from truerank.experiments.instances.stats import InstanceStats, instance_stats

__all__ = [
    "FORMATS",
    "KINDS",
    "BuildOptions",
    "Built",
    "CutRule",
    "DocumentQueries",
    "InstanceStats",
    "build_instances",
    "export_instances",
    "instance_stats",
    "open_built",
    "write_document_queries",
]

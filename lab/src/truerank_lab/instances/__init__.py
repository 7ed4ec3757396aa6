"""Training sets with known faults."""

from truerank_lab.instances.built import Built, open_built
from truerank_lab.instances.options import KINDS, BuildOptions
from truerank_lab.instances.training_sets import build

__all__ = ["KINDS", "BuildOptions", "Built", "build", "open_built"]

"""Grids of trainings: a design file is read, costed, expanded into cells, and run so that no cell is run twice."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truerank.experiments.grid.cells import Cell as Cell
    from truerank.experiments.grid.cells import expand as expand
    from truerank.experiments.grid.costs import CostEstimate as CostEstimate
    from truerank.experiments.grid.design import Design as Design
    from truerank.experiments.grid.design import ReportDesign as ReportDesign
    from truerank.experiments.grid.reading import read_design as read_design
    from truerank.experiments.grid.results import GridResults as GridResults
    from truerank.experiments.grid.results import open_results as open_results
    from truerank.experiments.grid.running import GridRun as GridRun
    from truerank.experiments.grid.running import RunOptions as RunOptions

#: Where each name lies; loaded on use, so that a worker process loads no more than it needs.
_HOMES = {
    "Cell": "cells",
    "CostEstimate": "costs",
    "Design": "design",
    "GridResults": "results",
    "GridRun": "running",
    "ReportDesign": "design",
    "RunOptions": "running",
    "expand": "cells",
    "open_results": "results",
    "read_design": "reading",
}
__all__ = [
    "Cell",
    "CostEstimate",
    "Design",
    "GridResults",
    "GridRun",
    "ReportDesign",
    "RunOptions",
    "expand",
    "open_results",
    "read_design",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'truerank.experiments.grid' has no attribute {name!r}")
    return getattr(importlib.import_module(f"truerank.experiments.grid.{_HOMES[name]}"), name)

"""Grids of trainings: a design file is read, costed, expanded into cells, and run so that no cell is run twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank_lab.grid.costs import CostEstimate as CostEstimate
    from truerank_lab.grid.design import Design as Design
    from truerank_lab.grid.design import ReportDesign as ReportDesign
    from truerank_lab.grid.design import read_design as read_design
    from truerank_lab.grid.execution import GridRun as GridRun
    from truerank_lab.grid.execution import RunOptions as RunOptions
    from truerank_lab.grid.results import Cell as Cell
    from truerank_lab.grid.results import GridResults as GridResults
    from truerank_lab.grid.results import expand as expand
    from truerank_lab.grid.results import open_results as open_results

else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]

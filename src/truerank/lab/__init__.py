"""Grids of trainings on sets that differ only in a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.lab.grid.design import Design as Design
    from truerank.lab.grid.design import read_design as read_design
    from truerank.lab.grid.execution import run as run
    from truerank.lab.grid.execution import status as status
    from truerank.lab.grid.results import open_results as open_results
    from truerank.lab.ready import designs as designs
    from truerank.lab.reporting.experiment_report import report as report

else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]

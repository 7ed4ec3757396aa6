"""Training sets with known faults, networks trained on them, and the experiments of the papers behind truerank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank_lab.cross_validation import cross_validate as cross_validate
    from truerank_lab.grid.design import Design as Design
    from truerank_lab.grid.design import read_design as read_design
    from truerank_lab.grid.execution import run as run
    from truerank_lab.grid.results import GridResults as GridResults
    from truerank_lab.instances.training_sets import build as build
    from truerank_lab.reporting.report import report as report
    from truerank_lab.simulation import simulate as simulate
    from truerank_lab.training import train as train
    from truerank_lab.tuning import tune as tune
else:
    __getattr__, _every = lazily(__name__, __file__)
    __all__ = [*_every()]

    def __dir__() -> list[str]:
        return __all__

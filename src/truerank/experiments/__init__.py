"""Grids of trainings on sets that differ only in a fault."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from truerank.experiments.grid.design import Design as Design
    from truerank.experiments.grid.reading import read_design as read_design
    from truerank.experiments.grid.results import open_results as open_results
    from truerank.experiments.grid.running import run as run
    from truerank.experiments.grid.running import status as status
    from truerank.experiments.ready import designs as designs
    from truerank.experiments.reporting.making import report as report

#: Where each name lies; loaded on use, so that a worker process loads no more than it needs.
_HOMES: Final = {
    "Design": "grid.design",
    "designs": "ready",
    "open_results": "grid.results",
    "read_design": "grid.reading",
    "report": "reporting.making",
    "run": "grid.running",
    "status": "grid.running",
}
__all__ = ["Design", "designs", "open_results", "read_design", "report", "run", "status"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'truerank.experiments' has no attribute {name!r}")
    return getattr(importlib.import_module(f"truerank.experiments.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

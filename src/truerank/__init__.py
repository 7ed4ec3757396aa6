"""truerank finds out whether a retrieval result can be believed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from truerank.version import __version__

if TYPE_CHECKING:
    from truerank import judge as judge
    from truerank import judging as judging
    from truerank import lexical as lexical
    from truerank.audits import leakage as leakage
    from truerank.audits import reusability as pool  # noqa: F401
    from truerank.audits import survivorship as survivorship
    from truerank.audits import track as track
    from truerank.audits import transfer as transfer
    from truerank.audits.leakage.demo import demo as demo
    from truerank.experiments.designs import copy_design as copy_design
    from truerank.experiments.designs import ready_designs as ready_designs
    from truerank.experiments.grid import RunOptions as RunOptions
    from truerank.experiments.grid import estimate_grid as estimate_grid
    from truerank.experiments.grid import open_results as open_results
    from truerank.experiments.grid import read_design as read_design
    from truerank.experiments.grid import run_grid as run_grid
    from truerank.experiments.grid import run_status as run_status
    from truerank.experiments.instances import BuildOptions as BuildOptions
    from truerank.experiments.instances import build_instances as build_instances
    from truerank.experiments.instances import export_instances as export_instances
    from truerank.experiments.instances import instance_stats as instance_stats
    from truerank.experiments.instances import write_document_queries as write_document_queries
    from truerank.experiments.report import report as experiment_report  # noqa: F401
    from truerank.lexical.building import build_index as build_index
    from truerank.lexical.building import index as index
    from truerank.lexical.searching import search as search
    from truerank.lexical.tuning import tune as tune
    from truerank.measures import compare as compare
    from truerank.measures import compare_evaluations as compare_evaluations
    from truerank.measures import cross_validate as cross_validate
    from truerank.measures import evaluate as evaluate
    from truerank.measures import load_evaluation as load_evaluation
    from truerank.measures import order_changes as order_changes
    from truerank.options import Runtime as Runtime
    from truerank.options import Scoring as Scoring
    from truerank.rankers.reranking.rerank import rerank as rerank
    from truerank.rankers.training.train import train as train
    from truerank.reports.results import report as report
    from truerank.reports.results import summary as summary
    from truerank.work.merging import merge as merge

#: The public names by the modules that have them, imported on first use.
_PUBLIC: Final = {
    "truerank.audits.leakage": ("leakage", "demo"),
    "truerank.audits.reusability": ("pool",),
    "truerank.audits.survivorship": ("survivorship",),
    "truerank.audits.track": ("track",),
    "truerank.audits.transfer": ("transfer",),
    "truerank.experiments.designs": ("copy_design", "ready_designs"),
    "truerank.experiments.grid": (
        "RunOptions",
        "estimate_grid",
        "open_results",
        "read_design",
        "run_grid",
        "run_status",
    ),
    "truerank.experiments.instances": (
        "BuildOptions",
        "build_instances",
        "export_instances",
        "instance_stats",
        "write_document_queries",
    ),
    "truerank.experiments.report": ("experiment_report",),
    "truerank.judge": ("judge",),
    "truerank.judging": ("judging",),
    "truerank.lexical": ("lexical",),
    "truerank.lexical.building": ("build_index", "index"),
    "truerank.lexical.searching": ("search",),
    "truerank.lexical.tuning": ("tune",),
    "truerank.measures": (
        "compare",
        "compare_evaluations",
        "cross_validate",
        "evaluate",
        "load_evaluation",
        "order_changes",
    ),
    "truerank.options": ("Runtime", "Scoring"),
    "truerank.rankers.reranking.rerank": ("rerank",),
    "truerank.rankers.training.train": ("train",),
    "truerank.reports.results": ("report", "summary"),
    "truerank.work.merging": ("merge",),
}
_HOMES: Final = {name: module for module, names in _PUBLIC.items() for name in names}
#: Names that differ from those in their modules.
_CALLED: Final = {"experiment_report": "report"}

#: Names that are packages.
_ROOMS: Final = frozenset({"judge", "judging", "leakage", "lexical", "pool", "survivorship", "track", "transfer"})

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'truerank' has no attribute {name!r}")
    module = importlib.import_module(_HOMES[name])
    return module if name in _ROOMS else getattr(module, _CALLED.get(name, name))


def __dir__() -> list[str]:
    return sorted(__all__)

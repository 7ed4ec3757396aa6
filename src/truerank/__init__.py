"""truerank finds out whether a retrieval result can be believed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from truerank.version import __version__

if TYPE_CHECKING:
    from truerank import experiments as experiment  # noqa: F401
    from truerank import judge as judge
    from truerank import judging as judging
    from truerank import lexical as lexical
    from truerank.audits import collection as collection
    from truerank.audits import leakage as leakage
    from truerank.audits import reusability as pool  # noqa: F401
    from truerank.audits import survivorship as survivorship
    from truerank.audits import track as track
    from truerank.audits import transfer as transfer
    from truerank.audits.leakage.demo import demo as demo
    from truerank.claims.checking import check as check
    from truerank.experiments import instances as instances
    from truerank.integrations.ir_datasets import register as register
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
    from truerank.rankers.machine import machine as machine
    from truerank.rankers.reranking.rerank import rerank as rerank
    from truerank.rankers.training.train import train as train
    from truerank.reports.results import report as report
    from truerank.reports.results import summary as summary
    from truerank.work.merging import merge as merge

#: The public names by the modules that have them, imported on first use.
_PUBLIC: Final = {
    "truerank.audits.collection": ("collection",),
    "truerank.audits.leakage": ("leakage", "demo"),
    "truerank.audits.reusability": ("pool",),
    "truerank.audits.survivorship": ("survivorship",),
    "truerank.audits.track": ("track",),
    "truerank.audits.transfer": ("transfer",),
    "truerank.claims.checking": ("check",),
    "truerank.experiments": ("experiment",),
    "truerank.experiments.instances": ("instances",),
    "truerank.integrations.ir_datasets": ("register",),
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
    "truerank.rankers.machine": ("machine",),
    "truerank.rankers.reranking.rerank": ("rerank",),
    "truerank.rankers.training.train": ("train",),
    "truerank.reports.results": ("report", "summary"),
    "truerank.work.merging": ("merge",),
}
_HOMES: Final = {name: module for module, names in _PUBLIC.items() for name in names}
#: Names that are packages.
_ROOMS: Final = frozenset((
    "collection", "experiment", "instances", "judge", "judging", "leakage", "lexical", "pool", "survivorship",
    "track", "transfer",
))  # fmt: skip

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'truerank' has no attribute {name!r}")
    module = importlib.import_module(_HOMES[name])
    return module if name in _ROOMS else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)

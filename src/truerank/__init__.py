"""truerank finds out whether a retrieval result can be believed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truerank import judging as judging
    from truerank import lexical as lexical
    from truerank.audits import leakage as leakage
    from truerank.audits import reusability as reusability
    from truerank.audits import survivorship as survivorship
    from truerank.audits import track as track
    from truerank.audits import transfer as transfer
    from truerank.audits.leakage.demo import demo as demo
    from truerank.audits.transfer import carry_judgments as carry_judgments
    from truerank.audits.transfer import clean_judgments as clean_judgments
    from truerank.audits.transfer import describe_sets as describe_sets
    from truerank.audits.transfer import estimate_errors as estimate_errors
    from truerank.audits.transfer import fetch_snapshots as fetch_snapshots
    from truerank.audits.transfer import match_versions as match_versions
    from truerank.audits.transfer import scan_versions as scan_versions
    from truerank.audits.transfer import select_instances as select_instances
    from truerank.audits.transfer import transfer_card as transfer_card
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
    from truerank.experiments.report import report as experiment_report
    from truerank.lexical import build_index as build_index
    from truerank.lexical import search as search
    from truerank.lexical import tune as tune
    from truerank.measures import compare as compare
    from truerank.measures import comparison_report as comparison_report
    from truerank.measures import cross_validate as cross_validate
    from truerank.measures import evaluate as evaluate
    from truerank.measures import load_evaluation as load_evaluation
    from truerank.measures import order_changes as order_changes
    from truerank.rankers.reranking.rerank import rerank as rerank
    from truerank.rankers.training.train import train as train

__version__ = "0.1.0"
__all__ = [
    "BuildOptions",
    "RunOptions",
    "__version__",
    "build_index",
    "build_instances",
    "carry_judgments",
    "clean_judgments",
    "compare",
    "comparison_report",
    "copy_design",
    "cross_validate",
    "demo",
    "describe_sets",
    "estimate_errors",
    "estimate_grid",
    "evaluate",
    "experiment_report",
    "export_instances",
    "fetch_snapshots",
    "instance_stats",
    "judging",
    "leakage",
    "lexical",
    "load_evaluation",
    "match_versions",
    "open_results",
    "order_changes",
    "read_design",
    "ready_designs",
    "rerank",
    "reusability",
    "run_grid",
    "run_status",
    "scan_versions",
    "search",
    "select_instances",
    "survivorship",
    "track",
    "train",
    "transfer",
    "transfer_card",
    "tune",
    "write_document_queries",
]

# Loaded on first use, so that `import truerank` stays instant.
_HOMES = {
    "BuildOptions": ("truerank.experiments.instances", "BuildOptions"),
    "build_instances": ("truerank.experiments.instances", "build_instances"),
    "copy_design": ("truerank.experiments.designs", "copy_design"),
    "estimate_grid": ("truerank.experiments.grid", "estimate_grid"),
    "experiment_report": ("truerank.experiments.report", "report"),
    "open_results": ("truerank.experiments.grid", "open_results"),
    "read_design": ("truerank.experiments.grid", "read_design"),
    "ready_designs": ("truerank.experiments.designs", "ready_designs"),
    "run_grid": ("truerank.experiments.grid", "run_grid"),
    "run_status": ("truerank.experiments.grid", "run_status"),
    "RunOptions": ("truerank.experiments.grid", "RunOptions"),
    "export_instances": ("truerank.experiments.instances", "export_instances"),
    "instance_stats": ("truerank.experiments.instances", "instance_stats"),
    "write_document_queries": ("truerank.experiments.instances", "write_document_queries"),
    "build_index": ("truerank.lexical", "build_index"),
    "rerank": ("truerank.rankers.reranking.rerank", "rerank"),
    "search": ("truerank.lexical", "search"),
    "tune": ("truerank.lexical", "tune"),
    "lexical": ("truerank.lexical", None),
    "compare": ("truerank.measures", "compare"),
    "comparison_report": ("truerank.measures", "comparison_report"),
    "cross_validate": ("truerank.measures", "cross_validate"),
    "order_changes": ("truerank.measures", "order_changes"),
    "evaluate": ("truerank.measures", "evaluate"),
    "load_evaluation": ("truerank.measures", "load_evaluation"),
    "leakage": ("truerank.audits.leakage", None),
    "demo": ("truerank.audits.leakage", "demo"),
    "judging": ("truerank.judging", None),
    "reusability": ("truerank.audits.reusability", None),
    "survivorship": ("truerank.audits.survivorship", None),
    "track": ("truerank.audits.track", None),
    "train": ("truerank.rankers.training.train", "train"),
    "transfer": ("truerank.audits.transfer", None),
    "carry_judgments": ("truerank.audits.transfer", "carry_judgments"),
    "clean_judgments": ("truerank.audits.transfer", "clean_judgments"),
    "fetch_snapshots": ("truerank.audits.transfer", "fetch_snapshots"),
    "match_versions": ("truerank.audits.transfer", "match_versions"),
    "transfer_card": ("truerank.audits.transfer", "transfer_card"),
    "select_instances": ("truerank.audits.transfer", "select_instances"),
    "scan_versions": ("truerank.audits.transfer", "scan_versions"),
    "estimate_errors": ("truerank.audits.transfer", "estimate_errors"),
    "describe_sets": ("truerank.audits.transfer", "describe_sets"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'truerank' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    home = importlib.import_module(module)
    return home if attribute is None else getattr(home, attribute)

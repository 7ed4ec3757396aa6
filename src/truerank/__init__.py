"""truerank finds out whether a retrieval result can be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank import judge as judge
    from truerank import judging as judging
    from truerank import lexical as lexical
    from truerank.audits import collection as collection
    from truerank.audits import leakage as leakage
    from truerank.audits import pool as pool
    from truerank.audits import survivorship as survivorship
    from truerank.audits import track as track
    from truerank.audits import transfer as transfer
    from truerank.audits.leaderboard import leaderboard as leaderboard
    from truerank.claims.checking import check as check
    from truerank.cli.rules import rule as rule
    from truerank.cli.rules import rules as rules
    from truerank.core.result import report as report
    from truerank.core.result import summary as summary
    from truerank.integrations.ir_datasets import register as register
    from truerank.lexical.building import build_index as build_index
    from truerank.lexical.building import index as index
    from truerank.lexical.searching import search as search
    from truerank.measures import compare as compare
    from truerank.measures import compare_evaluations as compare_evaluations
    from truerank.measures import evaluate as evaluate
    from truerank.measures import explain as explain
    from truerank.measures import load_evaluation as load_evaluation
    from truerank.measures import order_changes as order_changes
    from truerank.options import Runtime as Runtime
    from truerank.options import Scoring as Scoring
    from truerank.rankers.reranking.rerank import rerank as rerank
    from truerank.version import __version__ as __version__

else:
    __getattr__, _every = lazily(__name__, __file__)
    __all__ = [*_every()]
    #: Names that completion leaves out: a notebook shows what most people want.
    _RARE = frozenset(
        "Runtime build_index compare_evaluations judging lexical load_evaluation order_changes register".split()
    )

    def __dir__() -> list[str]:
        return [name for name in __all__ if name not in _RARE]

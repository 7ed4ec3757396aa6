"""First-stage retrieval: an index on disk, BM25, query likelihood, expanded queries, tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truerank.lexical.analysis import Analyser
from truerank.lexical.building import build_index
from truerank.lexical.expansions import BM25PRF, RM3, Axiomatic, Expansion
from truerank.lexical.index import Index, open_index
from truerank.lexical.models import BM25, Model, QueryLikelihood
from truerank.lexical.presets import MODELS, PRESETS, Preset, analyser_of, model_of, preset_named, require_analyser
from truerank.lexical.scoring import BestDocuments, Searcher
from truerank.lexical.searching import Retrieval, SearchResult, TopicQuery, retrieve, search, topic_queries, write_run

if TYPE_CHECKING:
    from truerank.lexical.tuning import Tuning as Tuning
    from truerank.lexical.tuning import tune as tune

__all__ = [
    "BM25",
    "BM25PRF",
    "MODELS",
    "PRESETS",
    "RM3",
    "Analyser",
    "Axiomatic",
    "BestDocuments",
    "Expansion",
    "Index",
    "Model",
    "Preset",
    "QueryLikelihood",
    "Retrieval",
    "SearchResult",
    "Searcher",
    "TopicQuery",
    "Tuning",
    "analyser_of",
    "build_index",
    "model_of",
    "open_index",
    "preset_named",
    "require_analyser",
    "retrieve",
    "search",
    "topic_queries",
    "tune",
    "write_run",
]


def __getattr__(name: str) -> Any:
    # Tuning brings the statistics of `measures`, which worker processes that index or search do not need.
    if name not in ("Tuning", "tune"):
        raise AttributeError(f"module 'truerank.lexical' has no attribute {name!r}")
    from truerank.lexical import tuning

    return getattr(tuning, name)

"""First-stage retrieval: an index on disk, BM25, query likelihood, expanded queries, tuning."""

from truerank.lexical.analysis import Analyser
from truerank.lexical.building import build_index
from truerank.lexical.expansions import BM25PRF, RM3, Axiomatic, Expansion
from truerank.lexical.index import Index, open_index
from truerank.lexical.models import BM25, Model, QueryLikelihood
from truerank.lexical.presets import MODELS, PRESETS, Preset, analyser_of, model_of, preset_named, require_analyser
from truerank.lexical.scoring import Ranking, Searcher
from truerank.lexical.searching import SearchResult, TopicQuery, retrieve, search, topic_queries, write_run
from truerank.lexical.tuning import Tuning, tune

__all__ = [
    "BM25",
    "BM25PRF",
    "MODELS",
    "PRESETS",
    "RM3",
    "Analyser",
    "Axiomatic",
    "Expansion",
    "Index",
    "Model",
    "Preset",
    "QueryLikelihood",
    "Ranking",
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

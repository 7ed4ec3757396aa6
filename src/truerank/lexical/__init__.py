"""First-stage retrieval: an index on disk, BM25, query likelihood, expanded queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.lexical.analysis import Analyser as Analyser
    from truerank.lexical.building import build_index as build_index
    from truerank.lexical.building import kept_index as kept_index
    from truerank.lexical.expansions import BM25PRF as BM25PRF
    from truerank.lexical.expansions import RM3 as RM3
    from truerank.lexical.expansions import Axiomatic as Axiomatic
    from truerank.lexical.expansions import Expansion as Expansion
    from truerank.lexical.index import Index as Index
    from truerank.lexical.index import open_index as open_index
    from truerank.lexical.models import BM25 as BM25
    from truerank.lexical.models import Model as Model
    from truerank.lexical.models import QueryLikelihood as QueryLikelihood
    from truerank.lexical.presets import MODELS as MODELS
    from truerank.lexical.presets import PRESETS as PRESETS
    from truerank.lexical.presets import Preset as Preset
    from truerank.lexical.presets import analyser_of as analyser_of
    from truerank.lexical.presets import model_of as model_of
    from truerank.lexical.presets import preset_named as preset_named
    from truerank.lexical.presets import require_analyser as require_analyser
    from truerank.lexical.scoring import BestDocuments as BestDocuments
    from truerank.lexical.scoring import Searcher as Searcher
    from truerank.lexical.searching import Retrieval as Retrieval
    from truerank.lexical.searching import SearchResult as SearchResult
    from truerank.lexical.searching import TopicQuery as TopicQuery
    from truerank.lexical.searching import retrieve as retrieve
    from truerank.lexical.searching import search as search
    from truerank.lexical.searching import topic_queries as topic_queries
    from truerank.lexical.searching import write_run as write_run
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]

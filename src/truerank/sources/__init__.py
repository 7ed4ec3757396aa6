"""Everything that is read: the source grammar, queries, topics, documents, examples, judgments, runs, labels."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.sources.blocks import QueryBlock, SourceCounts
    from truerank.sources.documents import DocumentSource, open_documents
    from truerank.sources.examples import ExampleSource, open_examples
    from truerank.sources.grammar import SourceSpec, parse, unique_names
    from truerank.sources.labels import read_labels
    from truerank.sources.notebook import source_of
    from truerank.sources.qrels import read_qrels, read_qrels_frame
    from truerank.sources.queries import QuerySource, TextColumns, open_queries
    from truerank.sources.runs import read_run, read_run_frame, run_frames
    from truerank.sources.topics import TopicSet, read_topics, read_variants, with_variants

# Of a cell in characters, for all who read tables: by default no text of 22,000 words is read.
csv.field_size_limit(max(csv.field_size_limit(), 1 << 26))
__getattr__, __dir__ = lazily(__name__, __file__)

__all__ = [
    "DocumentSource", "ExampleSource", "QueryBlock", "QuerySource", "SourceCounts", "SourceSpec", "TextColumns",
    "TopicSet", "open_documents", "open_examples", "open_queries", "parse",
    "read_labels", "read_qrels", "read_qrels_frame", "read_run", "read_run_frame", "read_topics", "read_variants",
    "run_frames", "source_of", "unique_names", "with_variants",
]  # fmt: skip

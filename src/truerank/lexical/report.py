"""How indexes and searches are shown."""

from __future__ import annotations

import numpy as np

from truerank.core.result import Summary, place_note, shows, summarises
from truerank.core.tables import Table
from truerank.core.views import heads
from truerank.lexical.index import Index
from truerank.lexical.scoring import DECIMALS
from truerank.lexical.searching import SearchResult, model_text
from truerank.text.printable import first_few


@shows(Index)
def index_table(index: Index) -> Table:
    """What the index holds, one row for each field."""
    tokens = index.lengths.sum(axis=0, dtype=np.int64).tolist()
    filled = np.count_nonzero(index.lengths, axis=0).tolist()
    rows = tuple(
        (name, "+".join(index.manifest["fields"][name]), count, total, total / max(1, count))
        for name, total, count in zip(index.fields, tokens, filled, strict=True)
    )
    source = index.manifest["source"]
    left_out = ", ".join(f"{source[kind]:,} {kind}" for kind in ("empty", "skipped", "repeated") if source[kind])
    return Table(
        f"Index of {source['name']}: {len(index):,} documents, {index.terms:,} terms, "
        f"{int(index.starts[-1]):,} postings",
        heads("field, of, documents:,d, tokens:,d, mean_length:.1f"),
        rows,
        notes=(
            f"Analyser: {index.analyser.name}.",
            f"Read: {source['read']:,} documents" + (f", of them left out: {left_out}." if left_out else "."),
        ),
    )


def search_table(result: SearchResult) -> Table:
    """How many topics got how many documents."""
    sizes = result.run.group_by("topic_id").len()["len"].to_list()
    unfound = [
        f"{len(topics)} topics {why}: {first_few(topics, 5)}."
        for topics, why in ((result.no_text, "have no such text"), (result.no_terms, "have no term of the collection"))
        if topics
    ]
    return Table(
        f"{result.tag}: {model_text(result.model)}",
        heads("topics, searched:,d, rows:,d, fewest:,d, most:,d"),
        ((str(result.topics["name"]), len(sizes), len(result.run), min(sizes, default=0), max(sizes, default=0)),),
        notes=(
            f"Ties: scores with {DECIMALS} decimals, equal ones by document id ascending.",
            f"Analyser: {result.index['analyser']['name']}.",
            *unfound,
        ),
    )


@summarises(SearchResult)
def _search(result: SearchResult) -> Summary:
    written = {} if result.out is None else {"run": str(result.out)}
    return Summary((search_table(result),), {**result.json(), **written}, notes=place_note("run", result.out))

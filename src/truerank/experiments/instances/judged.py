"""The judged documents of the queries that were drawn."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import polars as pl

from truerank.sources.qrels import QREL_SCHEMA, qrel_frames

__all__ = ["Judged", "judged_documents"]


class Judged(NamedTuple):
    """The judged documents of a query with their grades, in the order of the judgments."""

    relevant: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, int], ...] = ()


def judged_documents(
    specs: Sequence[str], wanted: Sequence[Collection[str]], relevant_from: int
) -> list[dict[str, Judged]]:
    """Looks up the judgments of some queries; each source of judgments is read once, as a stream.

    Args:
        specs: for each source of queries the source of its judgments; several may share one.
        wanted: for each source of queries the ids.
        relevant_from: lowest grade of a relevant document.

    Returns:
        For each source of queries the documents by query id; queries without any judgment are absent.
    """
    tables: dict[str, pl.DataFrame] = {}
    for spec in dict.fromkeys(specs):
        ids = {one for own, some in zip(specs, wanted, strict=True) if own == spec for one in some}
        asked = pl.Series(sorted(ids), dtype=pl.String).implode()
        parts = [frame.filter(pl.col("topic_id").is_in(asked)) for frame in qrel_frames(spec)]
        tables[spec] = pl.concat([pl.DataFrame(schema=QREL_SCHEMA), *parts])
    return [_by_query(tables[spec], some, relevant_from) for spec, some in zip(specs, wanted, strict=True)]


def _by_query(table: pl.DataFrame, wanted: Collection[str], relevant_from: int) -> dict[str, Judged]:
    own = table.filter(pl.col("topic_id").is_in(pl.Series(list(wanted), dtype=pl.String).implode()))
    lists = (
        own.unique(("topic_id", "doc_id"), keep="first", maintain_order=True)
        .group_by("topic_id", maintain_order=True)
        .agg("doc_id", "relevance")
    )
    found: dict[str, Judged] = {}
    for query_id, doc_ids, grades in lists.iter_rows():
        pairs = tuple(zip(doc_ids, grades, strict=True))
        found[query_id] = Judged(
            tuple(pair for pair in pairs if pair[1] >= relevant_from),
            tuple(pair for pair in pairs if pair[1] < relevant_from),
        )
    return found

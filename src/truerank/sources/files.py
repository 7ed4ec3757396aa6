"""The queries of one file, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from truerank.sources import beir, tables, trec
from truerank.sources.blocks import RawBlock
from truerank.sources.rows import rows

_TREC_BLOCK: Final = 1000


def file_queries(
    path: Path, form: str, column: str | None = None, *, single: bool = False, strict: bool = False
) -> Iterator[RawBlock]:
    """The queries of a file.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    if form in ("tsv", "lines"):
        return tables.line_queries(path, column, single=single, strict=strict)
    if form == "parquet":
        return tables.parquet_queries(path, column)
    if form == "qna":
        return tables.qna_queries(path, column, strict=strict)
    if form == "trec":
        return _titles(trec.trec_topics(path, strict=strict))
    if form == "xml":
        return _titles(trec.xml_topics(path, strict=strict))
    if form == "beir":
        path, form = beir.queries_file(path), "jsonl"
    return tables.row_queries(rows(path, form, strict=strict), column, path)


def _titles(found: Iterator[trec.FoundTopic]) -> Iterator[RawBlock]:
    while taken := list(islice(found, _TREC_BLOCK)):
        topics = [item.topic for item in taken]
        yield RawBlock(
            [topic.topic_id for topic in topics],
            [topic.title for topic in topics],
            [item.line for item in taken],
            repaired=sum(item.repaired for item in taken),
        )

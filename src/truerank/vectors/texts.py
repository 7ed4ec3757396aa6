"""Blocks of texts: what a scan reads, and what it lets through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import polars as pl

#: Opens a stream of distinct texts: (position, query id, text, normalised text).
Rows: TypeAlias = Callable[[], Iterable[tuple[int, str, str, str]]]


class TextBlock(NamedTuple):
    """Distinct texts of one source, in order.

    Attributes:
        number: place among the source's blocks, from 0.
        positions: place of each text among the source's distinct texts, ascending.
        query_ids: id of the first query with this text.
        texts: the texts as they were read.
        normalised: the texts as they are compared.
    """

    number: int
    positions: tuple[int, ...]
    query_ids: tuple[str, ...]
    texts: tuple[str, ...]
    normalised: tuple[str, ...]


#: Texts that a pass let through, one row each, with the topic texts (by number) that they were kept for; `probed`
#: is above 0 for pairs that are kept whatever their similarity and says what proposes them; `exact` marks those whose
#: similarity is of full precision. A row with a negative position has no pairs: so many texts of the block the encoder
#: could not read.
KEPT_SCHEMA: Final[dict[str, Any]] = {
    "position": pl.Int64,
    "query_id": pl.String,
    "text": pl.String,
    "topic_nos": pl.List(pl.UInt32),
    "similarities": pl.List(pl.Float32),
    "probed": pl.List(pl.UInt8),
    "exact": pl.List(pl.Boolean),
}

#: Pairs of a topic text (by number) and a training text, with their similarity.
PAIR_SCHEMA: Final[dict[str, Any]] = {
    "topic_no": pl.UInt32,
    "position": pl.Int64,
    "query_id": pl.String,
    "text": pl.String,
    "similarity": pl.Float32,
    "probed": pl.UInt8,
    "exact": pl.Boolean,
    "rank": pl.Int32,
}


def empty_pairs() -> pl.DataFrame:
    """No pairs."""
    return pl.DataFrame(schema=PAIR_SCHEMA)


def blocks_of(rows: Iterable[tuple[int, str, str, str]], size: int) -> Iterator[TextBlock]:
    """Cuts a stream of (position, query id, text, normalised text) into blocks of `size`; the last may be shorter."""
    stream, number = iter(rows), 0
    while batch := list(islice(stream, size)):
        yield _block(number, batch)
        number += 1


def _block(number: int, rows: Sequence[tuple[int, str, str, str]]) -> TextBlock:
    # Column by column: zip(*rows) would make an iterator for each row, which takes longer.
    return TextBlock(
        number,
        tuple([row[0] for row in rows]),
        tuple([row[1] for row in rows]),
        tuple([row[2] for row in rows]),
        tuple([row[3] for row in rows]),
    )

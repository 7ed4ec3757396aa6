"""Carry judgments of chunks to the chunks of another cutting, by offsets or by the words that both have in one piece.

A new chunk is relevant where it holds nearly all of a relevant one. It is not relevant where nearly all of it was
judged so. Everything between is doubtful: the words that answer the topic may be in either part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.transfer.matching.versions import FOUND_SCHEMA
from truerank.errors import InputError
from truerank.records import Document
from truerank.sources.documents import document_rows, open_documents
from truerank.sources.rows import Row
from truerank.work.progress import Progress

_WORD: Final = re.compile(r"\w+")
#: Words that two texts have in a row where they have a piece; a change breaks so many runs, and so many words between
#: two of them, moved by as much at most, belong to the piece.
_RUN, _GAP, _SHIFT = 5, 10, 3
#: A smaller share of a judged chunk is no trace of it, but where the new one holds little else; a smaller part of a
#: new one is not unjudged.
_TRACE, _MOST, _REST = 0.1, 0.5, 0.1
#: New chunks so far apart in their file are at two places.
_APART: Final = 3
#: A run of words at more places than that says nothing.
_PLACES: Final = 200
_LISTED: Final = 20
_STARTS: Final = ("start", "start_char", "char_start", "start_index", "start_offset", "begin", "offset")
_ENDS: Final = ("end", "end_char", "char_end", "end_index", "end_offset", "stop")
_PARENTS: Final = (
    "parent_id", "parent", "source_id", "source", "doc_id", "document_id", "docid", "doc", "document", "file", "url",
)  # fmt: skip

#: What a judged chunk and a new one share: the share of the judged chunk, where the piece lies in the new one (as
#: shares of it), and the place of the new chunk in its file.
_PIECES: Final[dict[str, Any]] = {
    "doc_id": pl.String, "found": pl.String, "share": pl.Float64, "begin": pl.Float64, "end": pl.Float64,
    "at": pl.Int64,
}  # fmt: skip


class _Span(NamedTuple):
    parent: str
    start: int
    end: int


def pieces(judged: str, chunks: str, wanted: Collection[str], progress: Progress) -> tuple[pl.DataFrame, str]:
    """What judged chunks and new ones share, and by what that is known: offsets or text.

    Args:
        judged: the chunks that were judged.
        chunks: the new ones.
        wanted: ids of judged chunks.
        progress: receives progress updates.
    """
    progress.start(f"reading {judged}")
    spans = dict(_spans(judged, wanted))
    if spans:
        there = {parent for parent, *_ in spans.values()}
        new = [(one, span) for one, span in _spans(chunks, None) if span.parent in there]
        if new:
            return pl.DataFrame(list(_by_offsets(spans, new)), _PIECES, orient="row"), "offsets"
    texts = {one.doc_id: one.text for one in open_documents(judged, keep_empty=True) if one.doc_id in wanted}
    progress.start(f"reading {chunks}")
    rows = list(_by_text(texts, open_documents(chunks, keep_empty=True), progress))
    return pl.DataFrame(rows, _PIECES, orient="row"), "text"


def _spans(source: str, wanted: Collection[str] | None) -> Iterator[tuple[str, _Span]]:
    """The chunks of a table that says where each of them lies."""
    for doc_id, own, row, text in document_rows(source):
        if wanted is not None and doc_id not in wanted:
            continue
        values = _flat(row)
        start = next((values[name] for name in _STARTS if values.get(name) is not None), None)
        parent = next((values[name] for name in _PARENTS if values.get(name) is not None and name not in own), None)
        if start is None or parent is None:
            return
        end = next((values[name] for name in _ENDS if values.get(name) is not None), None)
        try:
            first = int(start)
            last = first + len(text) if end is None else int(end)
        except (TypeError, ValueError) as error:
            fault = f"the chunk {doc_id} begins at '{start}'" + ("" if end is None else f" and ends at '{end}'")
            raise InputError(fault, "write whole numbers of characters", where=source, line=row.line) from error
        if last <= first:
            fault = f"the chunk {doc_id} ends at {last}, and begins at {first}"
            raise InputError(fault, "write the place behind its last character", where=source, line=row.line)
        yield doc_id, _Span(str(parent), first, last)


def _flat(row: Row) -> Mapping[str, Any]:
    """The values of a row, and those of its metadata."""
    extra = row.values.get("metadata")
    return {**extra, **row.values} if isinstance(extra, Mapping) else row.values


def _by_offsets(judged: Mapping[str, _Span], new: Sequence[tuple[str, _Span]]) -> Iterator[tuple[Any, ...]]:
    by_parent: dict[str, list[tuple[int, str, _Span]]] = {}
    for at, (doc_id, span) in enumerate(new):
        by_parent.setdefault(span.parent, []).append((at, doc_id, span))
    for doc_id, own in judged.items():
        for at, found, span in by_parent.get(own.parent, ()):
            first, last = max(own.start, span.start), min(own.end, span.end)
            if last > first:
                size = span.end - span.start
                share = (last - first) / (own.end - own.start)
                yield doc_id, found, share, (first - span.start) / size, (last - span.start) / size, at


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _by_text(
    judged: Mapping[str, str], chunks: Iterator[Document] | Any, progress: Progress
) -> Iterator[tuple[Any, ...]]:
    """Pieces of words in one row, over small changes."""
    words = {one: _words(text) for one, text in judged.items()}
    runs: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    short: dict[tuple[str, ...], list[str]] = {}
    for one, own in words.items():
        if len(own) < _RUN:
            short.setdefault(tuple(own), []).append(one)
        for at in range(len(own) - _RUN + 1):
            runs.setdefault(tuple(own[at : at + _RUN]), []).append((one, at))
    runs = {run: places for run, places in runs.items() if len(places) <= _PLACES}
    for place, chunk in enumerate(chunks):
        own = _words(chunk.text)
        met: dict[str, list[tuple[int, int]]] = {}
        for at in range(len(own) - _RUN + 1):
            for one, there in runs.get(tuple(own[at : at + _RUN]), ()):
                met.setdefault(one, []).append((there, at))
        for one in short.get(tuple(own), ()) if own else ():
            yield one, chunk.doc_id, 1.0, 0.0, 1.0, place
        for one, matches in met.items():
            covered, begin, end = _piece(matches)
            yield one, chunk.doc_id, covered / len(words[one]), begin / len(own), end / len(own), place
        progress.advance(1)


def _piece(matches: Sequence[tuple[int, int]]) -> tuple[int, int, int]:
    """Words of the judged chunk that are covered, and where they lie in the new one; small changes belong to it."""
    usual = Counter(there - at for there, at in matches).most_common(1)[0][0]
    near = sorted((there, at) for there, at in matches if abs(there - at - usual) <= _SHIFT)
    covered = _RUN
    for (before, _), (there, _) in pairwise(near):
        step = there - before
        covered += step if step <= _RUN + _GAP else _RUN
    return covered, min(at for _, at in near), max(at for _, at in near) + _RUN


def spanned(frame: pl.DataFrame, found: pl.DataFrame, rel: int, least: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What becomes of each judgment of a chunk, several rows where it goes to several; and pairs to judge.

    Args:
        frame: columns row, topic_id, doc_id, relevance.
        found: from `pieces`.
        rel: the lowest relevant grade.
        least: the share of a relevant chunk that a new one holds, which then is relevant.

    Returns:
        `frame` with the columns of `FOUND_SCHEMA`; and topic_id, doc_id (of a new chunk) and score: the share of a
        relevant chunk that it holds, where that is doubtful.
    """
    found = _one_place(found)
    joined = frame.join(
        found.filter((pl.col("share") >= _TRACE) | (pl.col("end") - pl.col("begin") >= _MOST)),
        on="doc_id",
        how="left",
        maintain_order="left",
    )
    relevant, others = joined.filter(pl.col("relevance") >= rel), joined.filter(pl.col("relevance") < rel)
    held = (pl.col("share") >= least) & (pl.col("places") == 1)
    several = pl.col("places").max().over("row") > 1
    any_held = held.fill_null(False).any().over("row")
    status = pl.when("found_is").then(pl.lit("matched")).when(pl.col("found").is_null()).then(pl.lit("lost"))
    listed = pl.format("{}:{}", "found", pl.col("share").round(2)).head(_LISTED).str.join(" ").over("row")
    relevant = relevant.with_columns(held.fill_null(False).alias("found_is"), any_held.alias("any"))
    kept = relevant.filter(pl.col("found_is") | (~pl.col("any") & pl.int_range(pl.len()).over("row").eq(0)))
    doubtful = relevant.filter(~pl.col("found_is") & pl.col("found").is_not_null()).join(
        relevant.filter("found_is"), on=["topic_id", "found"], how="anti", maintain_order="left"
    )
    rows = relevant.with_columns(listed.fill_null("").alias("listed"), several.fill_null(False).alias("several"),
                                 pl.len().over("row").alias("candidates")).join(
        kept.select("row", "found"), on=["row", "found"], how="semi", nulls_equal=True, maintain_order="left"
    ).with_columns(
        status.otherwise(pl.lit("ambiguous")).alias("status"),
        pl.when("found_is").then(pl.lit("")).when(pl.col("found").is_null()).then(pl.lit("no new chunk has its words"))
        .when("several").then(pl.lit("its words are in several places"))
        .otherwise(pl.lit("no new chunk holds enough of it")).alias("reason"),
    )  # fmt: skip
    return pl.concat([_shaped(rows), _shaped(_not_relevant(others, relevant))]).sort("row", maintain_order=True), (
        doubtful.group_by("topic_id", "found", maintain_order=True)
        .agg(pl.col("share").max().alias("score"))
        .rename({"found": "doc_id"})
    )


def _one_place(found: pl.DataFrame) -> pl.DataFrame:
    """With the number of places in the file of new chunks at which the words of a judged chunk stand."""
    far = (pl.col("at").diff().over("doc_id") > _APART).fill_null(False).cast(pl.Int64)
    full = found.sort("doc_id", "at").with_columns((1 + far.cum_sum().over("doc_id")).alias("place"))
    # Small pieces elsewhere are phrases; a second place has nearly as much as the first.
    most = full.group_by("doc_id", "place").agg(pl.col("share").max())
    most = most.filter(pl.col("share") >= pl.col("share").max().over("doc_id") / 2)
    counted = most.group_by("doc_id").agg(pl.len().alias("places"))
    return full.join(most.select("doc_id", "place"), on=["doc_id", "place"], how="semi", maintain_order="left").join(
        counted, on="doc_id", how="left", maintain_order="left"
    )


def _not_relevant(others: pl.DataFrame, relevant: pl.DataFrame) -> pl.DataFrame:
    """Judgments of grade 0: they hold for new chunks of which nearly all was judged so."""
    touched = {(topic, found) for topic, found in relevant.select("topic_id", "found").iter_rows() if found}
    whole: set[tuple[str, str]] = set()
    for (topic, found), own in others.drop_nulls("found").group_by("topic_id", "found"):
        spans = sorted(own.select("begin", "end").iter_rows())
        reached, covered = 0.0, 0.0
        for begin, end in spans:
            covered += max(0.0, end - max(begin, reached))
            reached = max(reached, end)
        if covered >= 1 - _REST and (topic, found) not in touched:
            whole.add((str(topic), str(found)))
    carried = [pair in whole for pair in others.select("topic_id", "found").iter_rows()]
    marked = others.with_columns(pl.Series("found_is", carried, dtype=pl.Boolean))
    marked = marked.with_columns(pl.col("found_is").any().over("row").alias("any"))
    kept = marked.filter(pl.col("found_is") | (~pl.col("any") & pl.int_range(pl.len()).over("row").eq(0)))
    return kept.with_columns(
        pl.when("found_is").then(pl.lit("matched")).otherwise(pl.lit("lost")).alias("status"),
        pl.when("found_is").then(pl.lit("")).when(pl.col("found").is_null()).then(pl.lit("no new chunk has its words"))
        .otherwise(pl.lit("no new chunk was judged not relevant as a whole")).alias("reason"),
        pl.lit("").alias("listed"), pl.lit(1).alias("candidates"),
    )  # fmt: skip


def _shaped(rows: pl.DataFrame) -> pl.DataFrame:
    """The columns of a judgment and of what it became."""
    found = pl.when(pl.col("status") == "matched").then("found").otherwise(None).alias("found")
    shaped = rows.with_columns(found, pl.col("doc_id").alias("key"), pl.lit("").alias("version"))
    own = [name for name in FOUND_SCHEMA if name != "doc_id"]
    return shaped.select(
        "row", "topic_id", "doc_id", "relevance", *(pl.col(name).cast(FOUND_SCHEMA[name]) for name in own)
    )

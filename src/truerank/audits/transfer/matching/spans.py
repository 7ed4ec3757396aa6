"""Carry judgments of chunks to the chunks of another cutting, by offsets or by the words that both have in one piece.

A new chunk is relevant where it holds nearly all of a relevant one. It is not relevant where nearly all of it was
judged so. Everything between is doubtful: the words that answer the topic may be in either part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.transfer.matching.versions import FOUND_SCHEMA
from truerank.errors import InputError
from truerank.records import Document
from truerank.sources.documents import STARTS, document_rows, open_documents
from truerank.work.progress import Progress

_WORD: Final = re.compile(r"\w+")
#: Words that two texts have in a row where they have a piece; a change breaks so many runs, and so many words between
#: two of them, moved by as much at most, belong to the piece.
_RUN, _GAP, _SHIFT = 5, 10, 3
#: A smaller share of a judged chunk is no trace of it, but where the new one holds little else; a smaller part of a
#: new one is not unjudged.
_TRACE, _MOST, _REST = 0.1, 0.5, 0.1
#: Words before and behind a judged chunk by which its places are told apart, where fewer than half are the same.
_AROUND: Final = 20
#: A run of words at more places than that says nothing.
_PLACES: Final = 200
_LISTED: Final = 20
_ENDS: Final = ("end", "end_char", "char_end", "end_index", "end_offset", "stop")
_PARENTS: Final = (
    "parent_id", "parent", "source_id", "source", "doc_id", "document_id", "docid", "doc", "document", "article_id",
    "article", "page_id", "page", "file_id", "file_path", "file_name", "filename", "file", "path", "url",
)  # fmt: skip

#: What a judged chunk and a new one share: the share of the judged chunk, where the piece lies in the new one (as
#: shares of it), and at how many places among the new chunks the judged one stands.
_PIECES: Final[dict[str, Any]] = frame_schema("doc_id found: String, share begin end: Float64, places: Int64")


class _Span(NamedTuple):
    parent: str
    start: int
    end: int


def pieces(judged: str, chunks: str, wanted: Collection[str], progress: Progress) -> tuple[pl.DataFrame, str]:
    """What judged chunks and new ones share, and by what that is known: offsets or text.

    Args:
        judged: the chunks that were judged.
        chunks: the new ones.
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
        extra = row.values.get("metadata")
        values = {**extra, **row.values} if isinstance(extra, Mapping) else row.values
        start = next((values[name] for name in STARTS if values.get(name) is not None), None)
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


def _by_offsets(judged: Mapping[str, _Span], new: Sequence[tuple[str, _Span]]) -> Iterator[tuple[Any, ...]]:
    by_parent: dict[str, list[tuple[str, _Span]]] = {}
    for doc_id, span in new:
        by_parent.setdefault(span.parent, []).append((doc_id, span))
    for doc_id, own in judged.items():
        for found, span in by_parent.get(own.parent, ()):
            first, last = max(own.start, span.start), min(own.end, span.end)
            if last > first:
                size = span.end - span.start
                share = (last - first) / (own.end - own.start)
                yield doc_id, found, share, (first - span.start) / size, (last - span.start) / size, 1


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
    alike: dict[str, list[_Piece]] = {}
    for chunk in chunks:
        own = _words(chunk.text)
        met: dict[str, list[tuple[int, int]]] = {}
        for at in range(len(own) - _RUN + 1):
            for one, there in runs.get(tuple(own[at : at + _RUN]), ()):
                met.setdefault(one, []).append((there, at))
        for one in short.get(tuple(own), ()) if own else ():
            alike.setdefault(one, []).append(_Piece(chunk.doc_id, 1.0, 0.0, 1.0, True, (), (), (0, len(own))))
        for one, matches in met.items():
            alike.setdefault(one, []).append(_piece(chunk.doc_id, matches, len(words[one]), own))
        progress.advance(1)
    for one, found in alike.items():
        most = max(piece.share for piece in found) / 2
        # So few words in the middle of other texts are a phrase.
        kept = [piece for piece in found if piece.joins or piece.share >= most]
        full = [piece for piece in kept if piece.joins and piece.share >= most]
        places = max(_different(piece.before[::-1] for piece in full), _different(piece.behind for piece in full), 1)
        # Chunks that lie alike are copies, too.
        extents = Counter(piece.extent for piece in kept)
        for piece in kept:
            yield one, piece.found, piece.share, piece.begin, piece.end, max(places, extents[piece.extent])


class _Piece(NamedTuple):
    """What a new chunk has of a judged one.

    Attributes:
        share: of the judged chunk.
        begin, end: as shares of the new one.
        joins: whether the piece goes on to an end of either chunk on both sides, as where both are of one text.
        before, behind: words of the new chunk beside the judged one.
        extent: the place of its first word in the judged one, and its length.
    """

    found: str
    share: float
    begin: float
    end: float
    joins: bool
    before: Sequence[str]
    behind: Sequence[str]
    extent: tuple[int, int]


def _piece(found: str, matches: Sequence[tuple[int, int]], size: int, own: Sequence[str]) -> _Piece:
    """The piece of a judged chunk of so many words; small changes belong to it."""
    usual = Counter(there - at for there, at in matches).most_common(1)[0][0]
    near = sorted((there, at) for there, at in matches if abs(there - at - usual) <= _SHIFT)
    covered = _RUN
    for (before, _), (there, _) in pairwise(near):
        step = there - before
        covered += step if step <= _RUN + _GAP else _RUN
    first, begin, end = near[0][0], min(at for _, at in near), max(at for _, at in near) + _RUN
    rest = size - near[-1][0] - _RUN
    # Changed words at the ends of the judged chunk belong to it.
    start, stop = max(0, begin - first), min(len(own), end + rest)
    return _Piece(
        found, covered / size, begin / len(own), end / len(own),
        min(first, begin) <= _RUN and min(rest, len(own) - end) <= _RUN,
        own[max(0, start - _AROUND) : start] if first <= _RUN else (),
        own[stop : stop + _AROUND] if rest <= _RUN else (),
        (first - begin, len(own)),
    )  # fmt: skip


def _different(around: Iterable[Sequence[str]]) -> int:
    """How many texts there are, as far as both of two go; those of a few words say nothing."""
    kinds: list[Sequence[str]] = []
    for one in sorted((one for one in around if len(one) >= _RUN), key=len, reverse=True):
        same = (Counter(one) & Counter(other[: len(one)]) for other in kinds)
        if not any(2 * both.total() >= len(one) for both in same):
            kinds.append(one)
    return len(kinds)


def spanned(frame: pl.DataFrame, found: pl.DataFrame, rel: int, least: float) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """What becomes of each judgment of a chunk, several rows where it goes to several; and pairs to judge.

    Args:
        frame: columns row, topic_id, doc_id, relevance.
        found: from `pieces`.
        least: the share of a relevant chunk that a new one holds, which then is relevant.

    Returns:
        `frame` with the columns of `FOUND_SCHEMA`; topic_id, doc_id (of a new chunk) and score: the share of a
        relevant chunk that it holds, where that is doubtful; and of how many of these `least` or more was judged
        relevant.
    """
    joined = frame.join(
        found.filter((pl.col("share") >= _TRACE) | (pl.col("end") - pl.col("begin") >= _MOST)),
        on="doc_id",
        how="left",
        maintain_order="left",
    )
    relevant, others = joined.filter(pl.col("relevance") >= rel), joined.filter(pl.col("relevance") < rel)
    whole = _covered(relevant.filter(pl.col("places") == 1), least)
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
    judged = pl.concat([_shaped(rows), _shaped(_not_relevant(others, relevant))]).sort("row", maintain_order=True)
    listed_pairs = doubtful.group_by("topic_id", "found", maintain_order=True).agg(pl.col("share").max().alias("score"))
    inside = listed_pairs.join(whole, on=["topic_id", "found"], how="semi")
    return judged, listed_pairs.rename({"found": "doc_id"}), len(inside)


def _covered(rows: pl.DataFrame, least: float) -> pl.DataFrame:
    """The topics and new chunks of which such a share is from the judged chunks of some rows."""
    whole: list[tuple[Any, ...]] = []
    for pair, own in rows.group_by("topic_id", "found", maintain_order=True):
        reached, covered = 0.0, 0.0
        for begin, end in sorted(own.select("begin", "end").iter_rows()):
            covered += max(0.0, end - max(begin, reached))
            reached = max(reached, end)
        if covered >= least:
            whole.append(pair)
    return pl.DataFrame(whole, {"topic_id": pl.String, "found": pl.String}, orient="row")


def _not_relevant(others: pl.DataFrame, relevant: pl.DataFrame) -> pl.DataFrame:
    """Judgments of grade 0: they hold for new chunks of which nearly all was judged so."""
    touched = {(topic, found) for topic, found in relevant.select("topic_id", "found").iter_rows() if found}
    known = _covered(others.drop_nulls("found"), 1 - _REST)
    whole = {(topic, found) for topic, found in known.iter_rows() if (topic, found) not in touched}
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

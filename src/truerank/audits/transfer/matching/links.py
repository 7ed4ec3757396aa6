"""Where a judgment goes: from a judged id to one of the wanted collection, by versions, by a mapping or by the id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import polars as pl

from truerank.audits.transfer.matching.versions import FOUND_SCHEMA, Matched, load_matched, read_mapping
from truerank.errors import OptionError
from truerank.options import Flag, Options, Range
from truerank.sources.documents import open_documents
from truerank.work.progress import Progress

#: Ids of passages that hold the id of their document, by the habits of collections.
PATTERNS: Final = {
    # The n-th address of a QnA passage: what is left is the id of the MS MARCO passage.
    "qna": r"(\d+)-\d+",
    # MS MARCO documents cut by the tools of TREC CAsT: MARCO_D59865-1, WAPO_a1b2-3.
    "cast": r"(.+)-\d+",
    # Anserini's and MS MARCO v2.1's segments: D59865#3, msmarco_v2.1_doc_00_0#0_0.
    "segment": r"([^#]+)#.+",
    # Pyserini's and PyTerrier's sliding windows: D59865%p3.
    "window": r"(.+)%p\d+",
}
_LISTED: Final = 20


@dataclass(frozen=True)
class Route(Options):
    """Where judgments go; one of four ways.

    Attributes:
        matched: the folder that `transfer match` wrote. In Python also what it returned.
        to: with `matched`: the version to carry to; by default the second of two.
        mapping: a table of ids with two columns: judged id, id to carry to.
        pattern: the id holds that of its document: qna, cast, segment, window, or an expression with one group.
        spans: the chunks that were judged, where `docs` has the chunks of another cutting: a judgment goes to the
            chunks that hold the same stretch of text, by the columns of document, start and end, or by words.
        min_overlap: with `spans`: a new chunk that holds at least so much of a relevant one is relevant.
        docs: with `mapping` or `pattern`: the collection; what it lacks is lost. With `spans`: the new chunks.
    """

    matched: Annotated[Matched | str | Path | None, Flag(metavar="DIR", reads=Path)] = None
    to: Annotated[str | None, Flag(metavar="NAME")] = None
    mapping: Annotated[str | None, Flag(metavar="FILE")] = None
    pattern: Annotated[str | None, Flag(metavar="NAME|REGEX")] = None
    spans: Annotated[str | None, Flag(metavar="SRC")] = None
    min_overlap: Annotated[float, Range(above=0, at_most=1)] = 0.8
    docs: Annotated[str | None, Flag(metavar="SRC")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self._ways()) > 1:
            raise _one_way()

    def checked(self) -> Route:
        """The same, where it names a way.

        Raises:
            OptionError: it names none.
        """
        if not self._ways():
            raise _one_way()
        if self.spans is not None and self.docs is None:
            raise OptionError("docs", "judged chunks without new ones", "give the chunks of the new cutting")
        return self

    def _ways(self) -> list[object]:
        return [way for way in (self.matched, self.mapping, self.pattern, self.spans) if way is not None]


def _one_way() -> OptionError:
    return OptionError(
        "matched", "judgments are carried in one way", "give one of `matched`, `mapping`, `pattern` and `spans`"
    )


def links_of(route: Route, judged: pl.Series, progress: Progress) -> pl.DataFrame:
    """What becomes of each judged id."""
    if route.matched is not None:
        matched = route.matched if isinstance(route.matched, Matched) else load_matched(route.matched)
        return _of_versions(matched, route.to, judged)
    if route.pattern is not None:
        keys = _by_pattern(route.pattern, judged)
        return _of_candidates(keys, judged, "the id does not follow the pattern", route, progress)
    pairs = read_mapping(route.mapping or "", ("judged", "wanted")).rename({"judged": "doc_id", "wanted": "key"})
    return _of_candidates(pairs.drop_nulls().unique(maintain_order=True), judged, "not in the mapping", route, progress)


def ids_in(docs: str, wanted: pl.Series, progress: Progress) -> pl.Series:
    """Those of the ids that a collection has; it is read as a stream."""
    progress.start(f"reading {docs}")
    sought, found = frozenset(wanted.to_list()), set[str]()
    for block in open_documents(docs, keep_empty=True).batches():
        found.update(document.doc_id for document in block if document.doc_id in sought)
        progress.advance(len(block))
    return pl.Series("doc_id", sorted(found), dtype=pl.String)


def _of_versions(matched: Matched, to: str | None, judged: pl.Series) -> pl.DataFrame:
    others = matched.versions[1:]
    if to is None and len(others) > 1:
        raise OptionError("to", f"there are the versions {', '.join(others)}", "choose one")
    version = to or others[0]
    if version not in others:
        raise OptionError("to", f"no version '{version}'", f"there is {', '.join(others)}")
    rows = matched.pairs.filter(pl.col("version") == version)
    joined = pl.DataFrame({"doc_id": judged}).join(rows, on="doc_id", how="left", maintain_order="left")
    return joined.with_columns(
        pl.col("status").fill_null("lost"),
        pl.col("reason").fill_null("not among the documents that were matched"),
        pl.col("candidates").fill_null(0),
        pl.col("key", "listed").fill_null(""),
        pl.lit(version).alias("version"),
    ).select(list(FOUND_SCHEMA))


def _by_pattern(pattern: str, judged: pl.Series) -> pl.DataFrame:
    text = PATTERNS.get(pattern, pattern)
    try:
        compiled = re.compile(text)
    except re.error as error:
        remedy = f"one of {', '.join(PATTERNS)}, or a regular expression"
        raise OptionError("pattern", f"no valid pattern ({error})", remedy) from error
    if compiled.groups != 1:
        fault = f"'{pattern}' has {compiled.groups} groups"
        raise OptionError("pattern", fault, "put the id of the document in one: (.+)-[0-9]+")
    found = [compiled.fullmatch(doc_id) for doc_id in judged]
    keys = [match[1] if match else None for match in found]
    return pl.DataFrame({"doc_id": judged, "key": pl.Series("key", keys, dtype=pl.String)}).drop_nulls()


def _of_candidates(
    pairs: pl.DataFrame, judged: pl.Series, absent: str, route: Route, progress: Progress
) -> pl.DataFrame:
    pairs = pairs.filter(pl.col("doc_id").is_in(judged.implode()))
    named = pairs["doc_id"].unique()
    if route.docs is not None:
        there = ids_in(route.docs, pairs["key"], progress)
        pairs = pairs.filter(pl.col("key").is_in(there.implode()))
    grouped = pairs.group_by("doc_id", maintain_order=True).agg(
        pl.len().cast(pl.UInt32).alias("candidates"),
        pl.col("key").first().alias("found"),
        pl.col("key").head(_LISTED).str.join(" ").alias("listed"),
    )
    rows = pl.DataFrame({"doc_id": judged}).join(grouped, on="doc_id", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("candidates").fill_null(0), pl.col("listed").fill_null(""))
    number = pl.col("candidates")
    return rows.with_columns(
        pl.col("doc_id").alias("key"),
        pl.lit("").alias("version"),
        pl.when(number == 1).then("found").otherwise(None).alias("found"),
        pl.when(number == 1).then(pl.lit("matched")).when(number == 0).then(pl.lit("lost")).otherwise(
            pl.lit("ambiguous")
        ).alias("status"),
        pl.when(number == 1).then(pl.lit("")).when(number > 1).then(pl.format("{} documents", number)).when(
            pl.col("doc_id").is_in(named.implode())
        ).then(pl.lit("the collection has no such document")).otherwise(pl.lit(absent)).alias("reason"),
    ).select(list(FOUND_SCHEMA))  # fmt: skip

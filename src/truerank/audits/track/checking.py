"""The checks of one run: line by line, and topic by topic."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.track.allowed import Allowed, among, document_keys, pair_keys
from truerank.audits.track.faults import Ledger
from truerank.audits.track.scanning import REMEDY, scan, shown
from truerank.errors import InputError, OptionError
from truerank.options import Flag, Options, Range
from truerank.work.progress import Progress

_NOT_FINITE: Final = r"(?i)^[+-]?(?:nan|inf|infinity)$"
#: Different tags that are looked at one by one.
_MOST_TAGS: Final = 10_000
_Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Limits(Options):
    """What a run has to keep to.

    Attributes:
        max_results: results allowed for each topic.
        tag_pattern: regular expression that the whole tag has to match.
        max_tag: characters allowed in a tag.
    """

    max_results: Annotated[int, Range(at_least=1)] = 1000
    tag_pattern: Annotated[str | None, Flag(metavar="REGEX")] = None
    max_tag: Annotated[int, Range(at_least=1)] = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            re.compile(self.tag_pattern or "")
        except re.error as error:
            fault = f"'{self.tag_pattern}' is no regular expression ({error})"
            raise OptionError("tag_pattern", fault, "correct it") from error


class RunChecker:
    """One pass over a run. Call `frames` and hand what it yields, brought together by topic, to `check_topics`.

    Args:
        path: the run.
        limits: what it has to keep to.
        allowed: what it may hold.
        ledger: takes the faults.
        progress: told of the lines.
    """

    def __init__(self, path: Path, limits: Limits, allowed: Allowed, ledger: Ledger, progress: Progress) -> None:
        self.rows = self.topics = self.tied = 0
        self.tag: str | None = None
        self.broken: InputError | None = None
        self._path, self._limits, self._allowed, self._ledger, self._progress = path, limits, allowed, ledger, progress
        self._tags: set[str] = set()
        expected = (*(allowed.topics or ()), *(allowed.judged or ()))
        self._expected = pl.Series(list(dict.fromkeys(expected)), dtype=pl.String)
        self._found: set[str] = set()

    def frames(self) -> Iterator[pl.DataFrame]:
        """The results with what the topics need (`line`, `topic_id`, `doc_id`, `rank`, `score`); checks each line.

        A rank or score that is none becomes null. Where the file cannot be read further, that is entered as a fault
        and kept in `broken`, and the stream ends.
        """
        try:
            for block in scan(self._path):
                for fault in block.malformed:
                    self._ledger.add(fault.kind, fault.line, fault.fault, fault.remedy)
                self.rows += len(block.frame)
                self._progress.advance(len(block.frame))
                if len(block.frame):
                    self._check_tags(block.frame)
                    self._check_documents(block.frame)
                    yield self._numbers(block.frame)
        except InputError as error:
            self.broken = error
            self._ledger.add("unreadable", error.line, error.fault, error.remedy)

    def check_topics(self, frame: pl.DataFrame) -> None:
        """Checks whole topics."""
        runs = frame["topic_id"].rle().struct.unnest()
        lengths = runs["len"].to_numpy().astype(np.intp)
        starts = np.cumsum(lengths) - lengths
        self.topics += len(runs)
        self._check_lengths(frame, runs["value"], lengths, starts)
        self._check_names(frame, runs["value"], starts)
        codes = np.repeat(np.arange(len(runs)), lengths)
        self._check_repeats(frame, codes)
        self._check_ranks(frame, codes)

    def finish(self) -> None:
        """Enters what is known only at the end: a run without results, topics without results."""
        if self.broken is not None:
            return
        if not self.rows:
            self._ledger.add("empty", None, "no results in this run", f"{REMEDY}, one a line")
        judged = set(self._allowed.judged or ())
        for topic in self._expected.to_list() if self.rows else ():
            if topic not in self._found:
                which = f"{shown(topic)}, which is judged" if topic in judged else shown(topic)
                self._ledger.add(
                    "missing-topic", None, f"no results for topic {which}", "add them, or expect it to score 0"
                )

    def _numbers(self, frame: pl.DataFrame) -> pl.DataFrame:
        self._ledger.add_rows(
            "q0",
            frame.filter(pl.col("q0") != "Q0").select("line", "q0"),
            lambda text: f"the second column is '{shown(text)}', not Q0",
            REMEDY,
        )
        rank = pl.col("rank").cast(pl.Int64, strict=False)
        score = pl.col("score").cast(pl.Float64, strict=False)
        numbers = frame.select(
            "line",
            "topic_id",
            "doc_id",
            pl.when(rank >= 0).then(rank).alias("rank"),
            pl.when(score.is_finite()).then(score).alias("score"),
        )
        if numbers["rank"].null_count():
            self._ledger.add_rows(
                "rank",
                frame.filter(numbers["rank"].is_null()).select("line", "rank"),
                lambda text: f"the rank '{shown(text)}' is no whole number from 0",
                "number the results of a topic from 1",
            )
        if numbers["score"].null_count():
            self._add_scores(frame.filter(numbers["score"].is_null()).select("line", "score"))
        return numbers

    def _add_scores(self, wrong: pl.DataFrame) -> None:
        infinite = (
            pl.col("score").str.contains(_NOT_FINITE) | pl.col("score").cast(pl.Float64, strict=False).is_not_null()
        )
        self._ledger.add_rows(
            "not-finite",
            wrong.filter(infinite),
            lambda text: f"the score '{shown(text)}' is not finite",
            "write a finite number",
        )
        self._ledger.add_rows(
            "score",
            wrong.filter(~infinite),
            lambda text: f"the score '{shown(text)}' is no number",
            "write it with a decimal point, such as 12.5",
        )

    def _check_tags(self, frame: pl.DataFrame) -> None:
        if self.tag is None:
            self.tag = frame["tag"][0]
        others = frame.filter(pl.col("tag") != self.tag).select("line", "tag")
        if len(others):
            self._ledger.add_rows(
                "mixed-tags",
                others,
                lambda text: f"the tag '{shown(text)}' differs from '{shown(self.tag or '')}' above",
                "give all lines of a run one tag",
            )
        first = frame.head(1).select("line", "tag")
        distinct = pl.concat([first, others]).unique("tag", keep="first", maintain_order=True)
        for line, tag in distinct.iter_rows():
            if tag not in self._tags and len(self._tags) < _MOST_TAGS:
                self._tags.add(tag)
                self._check_tag(line, tag)

    def _check_tag(self, line: int, tag: str) -> None:
        if len(tag) > self._limits.max_tag:
            self._ledger.add(
                "tag-length",
                line,
                f"the tag '{shown(tag)}' has {len(tag):,d} characters",
                f"shorten it to {self._limits.max_tag:,d}",
            )
        pattern = self._limits.tag_pattern
        if pattern is not None and re.fullmatch(pattern, tag) is None:
            self._ledger.add(
                "tag-pattern",
                line,
                f"the tag '{shown(tag)}' does not match {pattern}",
                "name the run as the track asks",
            )

    def _check_documents(self, frame: pl.DataFrame) -> None:
        if self._allowed.documents is not None:
            known = among(document_keys(frame["doc_id"]), self._allowed.documents)
            self._ledger.add_rows(
                "unknown-document",
                frame.filter(~known).select("line", "doc_id"),
                lambda document: f"the collection has no document {shown(document)}",
                "check the collection's version and how ids are written",
            )
        if self._allowed.pairs is not None:
            known = among(pair_keys(frame["topic_id"], frame["doc_id"]), self._allowed.pairs)
            self._ledger.add_rows(
                "not-candidate",
                frame.filter(~known).select("line", "topic_id", "doc_id"),
                lambda topic, document: f"document {shown(document)} is no candidate of topic {shown(topic)}",
                "rerank the candidates only, or submit it as a full ranking",
            )

    def _check_lengths(self, frame: pl.DataFrame, topics: pl.Series, lengths: _Rows, starts: _Rows) -> None:
        limit = self._limits.max_results
        long = np.flatnonzero(lengths > limit)
        lines = frame["line"].gather(starts[long] + limit)
        self._ledger.add_rows(
            "too-many",
            pl.DataFrame({"line": lines, "topic": topics.gather(long), "count": lengths[long]}),
            lambda topic, count: f"topic {shown(topic)} has {count:,d} results, {limit:,d} are allowed",
            "cut it off there",
        )

    def _check_names(self, frame: pl.DataFrame, topics: pl.Series, starts: _Rows) -> None:
        if not len(self._expected):
            return
        known = topics.is_in(self._expected.implode()).to_numpy()
        self._found.update(topics.filter(pl.Series(known)).to_list())
        lost = np.flatnonzero(~known)
        rows = pl.DataFrame({"line": frame["line"].gather(starts[lost]), "topic": topics.gather(lost)})
        if self._allowed.topics is None:
            self._ledger.add_rows(
                "unjudged-topic", rows, lambda topic: f"topic {shown(topic)} is not judged", "it will not be scored"
            )
        else:
            self._ledger.add_rows(
                "unknown-topic",
                rows,
                lambda topic: f"there is no topic {shown(topic)}",
                "remove its results, or check how topics are numbered",
            )

    def _check_repeats(self, frame: pl.DataFrame, codes: _Rows) -> None:
        with np.errstate(over="ignore"):
            keys = document_keys(frame["doc_id"]) ^ (codes.astype(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15))
        ordered = np.sort(keys)
        same = ordered[1:][ordered[1:] == ordered[:-1]]
        if not len(same):
            return
        # Hashes may collide, so that what has the same one is compared in full.
        suspects = frame.filter(pl.Series(among(keys, same))).select("line", "topic_id", "doc_id")
        suspects = suspects.with_columns(pl.col("line").min().over("topic_id", "doc_id").alias("first"))
        self._ledger.add_rows(
            "duplicate",
            suspects.filter(pl.col("line") != pl.col("first")),
            lambda topic, document, first: (
                f"topic {shown(topic)} and document {shown(document)} stand in line {first} already"
            ),
            "remove one of the two lines",
        )

    def _check_ranks(self, frame: pl.DataFrame, codes: _Rows) -> None:
        """Ranks that stand twice, leave gaps, or disagree with the scores; each topic in the order of its ranks."""
        kept = np.flatnonzero(frame["rank"].is_not_null().to_numpy())
        ranks = frame["rank"].fill_null(-1).to_numpy()[kept]
        scores = frame["score"].fill_null(math.nan).to_numpy()[kept]
        lines, codes = frame["line"].to_numpy()[kept], codes[kept]
        falling = (codes[1:] == codes[:-1]) & (ranks[1:] < ranks[:-1])
        if falling.any():
            order = np.lexsort((lines, ranks, codes))
            kept, ranks, scores, lines, codes = (values[order] for values in (kept, ranks, scores, lines, codes))
        same = codes[1:] == codes[:-1]
        with np.errstate(over="ignore"):
            step, narrow = ranks[1:] - ranks[:-1], scores.astype(np.float32)
        self.tied += int(np.count_nonzero(same & (narrow[1:] == narrow[:-1])))
        rising = same & (step > 0) & (scores[1:] > scores[:-1])
        begins = np.concatenate(([True], ~same))[: len(ranks)] & (ranks > 1)
        if (same & (step != 1)).any() or rising.any() or begins.any():
            found: dict[str, Any] = {"line": lines, "rank": ranks, "topic": frame["topic_id"].gather(kept)}
            table = pl.DataFrame({**found, "score": scores}).with_columns(
                pl.col("line", "rank", "score").shift(1).name.suffix(" before")
            )
            self._add_ranks(table, begins, same & (step == 0), same & (step > 1), rising)

    def _add_ranks(
        self,
        table: pl.DataFrame,
        begins: NDArray[np.bool_],
        repeated: NDArray[np.bool_],
        gaps: NDArray[np.bool_],
        rising: NDArray[np.bool_],
    ) -> None:
        """Enters the faults of ranks; the last three masks begin with the second row."""

        def where(mask: NDArray[np.bool_], *columns: str) -> pl.DataFrame:
            mask = mask if len(mask) == len(table) else np.concatenate(([False], mask))
            return table.filter(pl.Series(mask)).select(columns)

        self._ledger.add_rows(
            "rank-repeated",
            where(repeated, "line", "rank", "topic", "line before"),
            lambda rank, topic, line: f"rank {rank:,d} of topic {shown(topic)} stands in line {line} already",
            "number the results of a topic from 1",
        )
        self._ledger.add_rows(
            "rank-gap",
            where(gaps, "line", "rank", "rank before", "topic"),
            lambda rank, before, topic: f"rank {rank:,d} of topic {shown(topic)} follows rank {before:,d}",
            "number the results of a topic without gaps",
        )
        self._ledger.add_rows(
            "rank-gap",
            where(begins, "line", "rank", "topic"),
            lambda rank, topic: f"the ranks of topic {shown(topic)} begin with {rank:,d}",
            "number the results of a topic from 1",
        )
        self._ledger.add_rows(
            "order",
            where(rising, "line", "score", "rank", "topic", "score before", "rank before"),
            lambda score, rank, topic, higher, before: (
                f"rank {rank:,d} of topic {shown(topic)} has the score {score:.15g}, above {higher:.15g} at rank "
                f"{before:,d}"
            ),
            "rank by descending score",
        )

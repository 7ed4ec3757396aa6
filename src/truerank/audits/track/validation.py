"""Are these runs fit to be submitted? Every fault with its line, without stopping at the first."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import SPREAD
from truerank.audits.track.run_lines import (
    REMEDY,
    ScatteredError,
    grouped_topics,
    run_path,
    scan,
    scattered_topics,
    shown,
    strict_frames,
)
from truerank.core.result import Result
from truerank.core.rules import Rule, rules_of
from truerank.errors import InputError, OptionError
from truerank.options import Flag, Options, Range, command
from truerank.sources import compressed, formats, parse, read_topics, unique_names
from truerank.sources.lines import LineBlock, line_blocks, pair_keys
from truerank.sources.qrels import read_qrels_frame
from truerank.work.progress import Progress, Quiet

#: Hashes of ids, 64 bits each. Two ids share one so rarely (below one in a million for ten million ids and as many
#: results) that a fault is not missed for it.
Keys: TypeAlias = NDArray[np.uint64]

_TOPIC_NAMES: Final = frozenset(("topic_id", "topic", "qid", "query_id", "query-id"))
_PAIRS: Final = pl.Schema({"topic_id": pl.String, "doc_id": pl.String})


class Allowed(NamedTuple):
    """What a run may hold; None where nothing is said.

    Attributes:
        topics: topics of the track, in order; results for others are a fault, and so is one without results.
        judged: topics that the qrels judge, in order.
        pairs: hashes of the pairs of topic and document that a rerank run may hold, sorted.
        documents: hashes of the ids of the collection, sorted.
    """

    topics: tuple[str, ...] | None = None
    judged: tuple[str, ...] | None = None
    pairs: Keys | None = None
    documents: Keys | None = None


def read_allowed(
    topics: str | None, qrels: str | None, candidates: str | Path | None, ids: str | Path | None
) -> Allowed:
    """Reads what runs may hold.

    Memory is 8 bytes for each candidate and each id of the collection.
    """
    return Allowed(
        None if topics is None else tuple(topic.topic_id for topic in read_topics(topics).topics),
        None if qrels is None else tuple(read_qrels_frame(qrels)["topic_id"].unique(maintain_order=True)),
        None if candidates is None else _sorted(_candidate_keys(candidates), run_path(candidates), "candidates"),
        None if ids is None else _sorted(_id_keys(run_path(ids)), run_path(ids), "ids"),
    )


def document_keys(documents: pl.Series) -> Keys:
    """A hash for each document id."""
    keys: Keys = documents.hash().to_numpy()
    return keys


def among(keys: Keys, known: Keys) -> NDArray[np.bool_]:
    """Whether each key is one of the known ones, which are sorted."""
    # Looked up in order, which spares the processor's cache.
    order = np.argsort(keys)
    ordered = keys[order]
    places = np.minimum(np.searchsorted(known, ordered), len(known) - 1)
    found = np.empty(len(keys), dtype=bool)
    found[order] = known[places] == ordered
    return found


def _sorted(parts: Iterable[Keys], path: Path, what: str) -> Keys:
    found = list(parts)
    # Repeats are left in: sorting is many times faster than np.unique, and nothing counts them.
    keys: Keys = np.sort(np.concatenate(found)) if found else np.empty(0, np.uint64)
    if not len(keys):
        raise InputError(f"no {what} in it", "give a file that holds some", where=path)
    return keys


def _candidate_keys(source: str | Path) -> Iterator[Keys]:
    path = run_path(source)
    for frame in _candidate_frames(path):
        yield pair_keys(frame["topic_id"], frame["doc_id"])


def _candidate_frames(path: Path) -> Iterator[pl.DataFrame]:
    form = formats.detect(path)
    blocks = line_blocks(path)
    first = next(blocks)
    line = next((line for line in first.lines if line.strip()), "")
    if form in ("jsonl", "json"):
        yield from (_from_objects(block, path) for block in (first, *blocks))
    elif len(line.split("\t") if "\t" in line else line.split()) == 6:
        blocks.close()  # type: ignore[attr-defined]
        yield from (frame.select(list(_PAIRS)) for frame in strict_frames(path))
    else:
        if line.split("\t")[0].strip().lower() in _TOPIC_NAMES and line == first.lines[0]:
            first = first.without_first()
        yield from (_from_lines(block, path) for block in (first, *blocks))


def _from_lines(block: LineBlock, path: Path) -> pl.DataFrame:
    """The first two columns of each line, which tabs separate, or blanks where there is no tab."""
    lines = pl.DataFrame({"text": pl.Series(block.lines, dtype=pl.String)}).with_row_index("line", block.first)
    lines = lines.filter(pl.col("text").str.strip_chars() != "")
    pattern = r"^\s*([^\t]*[^\t\s])\s*\t\s*([^\t]*[^\t\s])|^\s*(\S+)\s+(\S+)\s*$"
    cells = lines.with_columns(
        pl.coalesce(pl.col("text").str.extract(pattern, 1), pl.col("text").str.extract(pattern, 3)).alias("topic_id"),
        pl.coalesce(pl.col("text").str.extract(pattern, 2), pl.col("text").str.extract(pattern, 4)).alias("doc_id"),
    )
    broken = cells.filter(pl.col("doc_id").is_null())
    if len(broken):
        raise InputError(
            f"no topic and document in '{shown(broken['text'][0])}'",
            "write topic TAB document, or give a run",
            where=path,
            line=broken["line"][0],
        )
    return cells.select(list(_PAIRS))


def _from_objects(block: LineBlock, path: Path) -> pl.DataFrame:
    text = "\n".join(line for line in block.lines if line.strip())
    try:
        frame = pl.read_ndjson(text.encode(), schema=dict(_PAIRS)) if text else pl.DataFrame(schema=_PAIRS)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"no JSON objects ({str(error).partition(chr(10))[0]})",
            'write {"topic_id": "…", "doc_id": "…"}',
            where=path,
            line=block.first,
        ) from error
    if any(frame.null_count().row(0)):
        raise InputError(
            "a candidate without topic_id or doc_id",
            'write {"topic_id": "…", "doc_id": "…"}',
            where=path,
            line=block.first,
        )
    return frame


def _id_keys(path: Path) -> Iterator[Keys]:
    if formats.detect(path) in ("jsonl", "json", "parquet"):
        raise InputError("no list of ids", "write the ids one a line", where=path)
    for block in line_blocks(path):
        ids = pl.Series(block.lines, dtype=pl.String).str.extract(r"(\S+)").drop_nulls()
        yield document_keys(ids)


Level = Literal["error", "warning", "off"]

RULES: Final = rules_of("truerank.audits.track", Rule)
#: Every kind of fault and its level unless the user says otherwise, in the order of reports.
KINDS: Final[dict[str, Level]] = {
    name: "error" if rule.severity == "fault" else "warning" for name, rule in RULES.items()
}


class Fault(NamedTuple):
    """One fault of a run, with its line where it has one."""

    file: str
    line: int | None
    kind: str
    level: Level
    fault: str
    remedy: str

    def text(self) -> str:
        """The fault as one line: `file:line: fault. remedy. [level kind]`."""
        return f"{InputError(self.fault, self.remedy, where=self.file, line=self.line)} [{self.level} {self.kind}]"


class Ledger:
    """Counts every fault of one run and keeps the first ones of each kind, by line.

    Args:
        file: the run's file.
        levels: the level of each kind.
        cap: how many faults of a kind are kept; None for all.
        ordered: whether the faults of a kind come in the order of their lines; then what is full stays as it is.
    """

    def __init__(self, file: str, levels: Mapping[str, Level], cap: int | None, *, ordered: bool = True) -> None:
        self.file = file
        self._ordered = ordered
        self._levels = levels
        self._cap = cap
        self._counts: Counter[str] = Counter()
        self._kept: dict[str, list[Fault]] = {}

    def add(self, kind: str, line: int | None, fault: str, remedy: str) -> None:
        """Enters one fault."""
        self._enter(kind, 1, lambda: [(line, fault)], remedy)

    def add_rows(self, kind: str, rows: pl.DataFrame, say: Callable[..., str], remedy: str) -> None:
        """Enters one fault for each row."""
        head = rows if self._cap is None else rows.sort("line").head(self._cap)
        self._enter(kind, len(rows), lambda: [(line, say(*rest)) for line, *rest in head.iter_rows()], remedy)

    def counts(self) -> dict[str, int]:
        """How many faults of each kind there are, kept or not, in the order of `KINDS`."""
        return {kind: self._counts[kind] for kind in KINDS if self._counts[kind]}

    def faults(self) -> tuple[Fault, ...]:
        """The faults that were kept, kind after kind, by line."""
        return tuple(fault for kind in KINDS for fault in self._first(self._kept.get(kind, [])))

    def _enter(self, kind: str, count: int, found: Callable[[], Iterable[tuple[int | None, str]]], remedy: str) -> None:
        level = self._levels[kind]
        if level == "off" or not count:
            return
        self._counts[kind] += count
        kept = self._kept.setdefault(kind, [])
        if self._cap is None or len(kept) < self._cap or not self._ordered:
            kept += [Fault(self.file, line, kind, level, fault, remedy) for line, fault in found()]
        if self._cap is not None and len(kept) > 4 * self._cap:
            self._kept[kind] = self._first(kept)

    def _first(self, faults: list[Fault]) -> list[Fault]:
        ordered = sorted(faults, key=lambda fault: fault.line or 0)
        return ordered if self._cap is None else ordered[: self._cap]


def levels_of(changes: Mapping[str, Any]) -> dict[str, Level]:
    """The level of every kind of fault."""
    levels = dict(KINDS)
    for kind, level in changes.items():
        if kind not in KINDS:
            raise OptionError("level", f"no kind of fault called '{kind}'", f"one of {', '.join(KINDS)}")
        if level not in get_args(Level):
            raise OptionError("level", f"no level called '{level}'", f"one of {', '.join(get_args(Level))}")
        levels[kind] = level
    return levels


_NOT_FINITE: Final = r"(?i)^[+-]?(?:nan|inf|infinity)$"
#: Different tags that are looked at one by one.
_MOST_TAGS: Final = 10_000
#: Results with the score of the rank before, where all have it: fewer may honestly be equal.
_MANY: Final = 10
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
            fault = f"'{self.tag_pattern}' is not a regular expression ({error})"
            raise OptionError("tag_pattern", fault, "correct it") from error


class RunChecker:
    """One pass over a run. Call `frames` and hand what it yields, brought together by topic, to `check_topics`.

    Args:
        limits: what it has to keep to.
        ledger: takes the faults.
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
        elif self.tied >= _MANY and self.tied == self.rows - self.topics:
            fault = f"all results of a topic have the same score, for all {self.topics:,d} topics"
            self._ledger.add("equal-scores", None, fault, "write the scores of the system")
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
                lambda text: f"expected an integer of at least 0 as rank, got '{shown(text)}'",
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
            lambda text: f"the score '{shown(text)}' is not a number",
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
                lambda topic, document: f"document {shown(document)} is not a candidate of topic {shown(topic)}",
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
        keys = document_keys(frame["doc_id"]) ^ (codes.astype(np.uint64) * SPREAD)
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
                f"topic {shown(topic)} and document {shown(document)} are already in line {first}"
            ),
            "remove one of the two lines",
        )

    def _check_ranks(self, frame: pl.DataFrame, codes: _Rows) -> None:
        """Ranks that occur twice, leave gaps, or disagree with the scores; each topic in the order of its ranks."""
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
            lambda rank, topic, line: f"rank {rank:,d} of topic {shown(topic)} is already in line {line}",
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


@dataclass(frozen=True)
class RunCheck:
    """What was found in one run.

    Attributes:
        name: of the run.
        file: as it was given.
        results: lines with six columns.
        topics: topics among them.
        tag: of the first line; None without one.
        tied: results whose score, as a 32-bit number, equals that of the rank before; where not all are, no fault, but
            their order is the evaluation's choice.
        counts: how many faults of each kind there are.
        faults: the first ones of each kind.
        broken: why the file could not be read (further); None where it could.
    """

    name: str
    file: str
    results: int
    topics: int
    tag: str | None
    tied: int
    counts: Mapping[str, int]
    faults: tuple[Fault, ...]
    broken: InputError | None = None


class Totals(NamedTuple):
    """How many faults there are."""

    errors: int
    warnings: int


@dataclass(frozen=True, eq=False, repr=False)
class Validation(Result, shown_in="truerank.audits.track.page"):
    """What `validate` found.

    Attributes:
        runs: in the order given.
        levels: the level of each kind of fault.
        limits: what the runs had to keep to.
        checked: the lists that the runs were checked against, by option ("topics", "candidates", …).
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("error", "warning")
    fails_on: ClassVar[str] = "error"

    runs: tuple[RunCheck, ...]
    levels: Mapping[str, Level]
    limits: Limits
    checked: Mapping[str, str]

    @property
    def errors(self) -> int:
        """Errors in all runs, also those that are counted only."""
        return sum(self.totals(run).errors for run in self.runs)

    @property
    def warnings(self) -> int:
        """Warnings in all runs, also those that are counted only."""
        return sum(self.totals(run).warnings for run in self.runs)

    @property
    def valid(self) -> bool:
        """Whether no run has an error."""
        return not self.errors

    def totals(self, run: RunCheck) -> Totals:
        """Errors and warnings of one run."""
        errors = sum(count for kind, count in run.counts.items() if self.levels[kind] == "error")
        return Totals(errors, sum(run.counts.values()) - errors)


@command
def validate(
    run: Annotated[Sequence[str | Path], Flag(metavar="FILE", reads=list[str])],
    *,
    topics: Annotated[str | None, Flag(metavar="SRC")] = None,
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    candidates: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None,
    docs_ids: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None,
    cap: Annotated[int, Range(at_least=0)] = 20,
    level: Annotated[Mapping[str, str], Flag(metavar="KIND=LEVEL")] = MappingProxyType({}),
    limits: Limits = Limits(),
    progress: Progress | None = None,
) -> Validation:
    """Checks runs as a track would before it accepts them, and names every fault with its line.

    Each fault is one line, `file:line: fault. remedy. [level kind]`. Exit code: 0 if there is no error, 1 if there is
    (see --fail-on), 2 where a file cannot be read to its end. A run is read once where the rows of each topic stand
    together, otherwise twice, the second time over temporary files.

    Args:
        run: TREC runs, compressed or not; repeat the option for several.
        topics: the track's topics: others are a fault, and so are topics without results.
        qrels: judgments; without topics their topics are the ones expected.
        candidates: what a rerank run may hold: a run, lines of topic TAB document, or JSON lines.
        docs_ids: the ids of the collection, one a line.
        cap: faults shown of each kind and run; all are counted; 0 shows all.
        level: count a kind of fault as error, warning or off.
        limits: what a run has to keep to.
        progress: is told of the lines read.

    Returns:
        Every fault, by run.

    Raises:
        InputError: an option or list is at fault, or none of the runs can be read at all.

    Examples:

        truerank track validate --run mine.run --topics topics.tsv

        truerank track validate --run rerank.run.gz --candidates top100.run.gz --max-results 100 --json

        truerank track validate --run a.run --run b.run --docs-ids ids.txt.gz --level missing-topic=warning
    """
    if not run:
        raise OptionError("run", "no runs", "give one or more")
    all_levels = levels_of(level)
    allowed = read_allowed(topics, qrels, candidates, docs_ids)
    names = unique_names([parse(str(one)) for one in run])
    work = _Work(limits, allowed, all_levels, cap or None, progress or Quiet())
    checks = tuple(_checked(str(one), name, work) for one, name in zip(run, names, strict=True))
    lists = {"topics": topics, "qrels": qrels, "candidates": candidates, "docs_ids": docs_ids}
    checked = {what: str(source) for what, source in lists.items() if source is not None}
    result = Validation(checks, all_levels, limits, checked)
    if all(check.broken is not None and not check.results for check in checks):
        raise next(check.broken for check in checks if check.broken is not None)
    return result


class _Work(NamedTuple):
    """What the check of each run needs."""

    limits: Limits
    allowed: Allowed
    levels: Mapping[str, Level]
    cap: int | None
    progress: Progress


def _checked(run: str, name: str, work: _Work) -> RunCheck:
    work.progress.start(f"checking {name}")
    try:
        path = run_path(run)
        if not compressed.head(path).removeprefix(b"\xef\xbb\xbf").strip():
            ledger = Ledger(run, work.levels, work.cap)
            ledger.add("empty", None, "the file is empty", "write topic, Q0, document, rank, score, tag, one a line")
            return RunCheck(name, run, 0, 0, None, 0, ledger.counts(), ledger.faults())
    except InputError as error:
        ledger = Ledger(run, work.levels, work.cap)
        ledger.add("unreadable", error.line, error.fault, error.remedy)
        return RunCheck(name, run, 0, 0, None, 0, ledger.counts(), ledger.faults(), error)
    try:
        return _passed(path, run, name, work, grouped=True)
    except ScatteredError:
        return _passed(path, run, name, work, grouped=False)


def _passed(path: Path, run: str, name: str, work: _Work, *, grouped: bool) -> RunCheck:
    ledger = Ledger(run, work.levels, work.cap, ordered=grouped)
    checker = RunChecker(path, work.limits, work.allowed, ledger, work.progress)
    for frame in (grouped_topics if grouped else scattered_topics)(checker.frames()):
        checker.check_topics(frame)
    checker.finish()
    return RunCheck(
        name=name,
        file=run,
        results=checker.rows,
        topics=checker.topics,
        tag=checker.tag,
        tied=checker.tied,
        counts=ledger.counts(),
        faults=ledger.faults(),
        broken=checker.broken,
    )

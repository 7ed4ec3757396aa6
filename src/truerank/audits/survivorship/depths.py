"""Simulated annotation depths: the judgments there would be, had fewer documents been shown for each query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.audits.survivorship.keys import hex_keys, keys_of
from truerank.audits.survivorship.options import DepthOptions
from truerank.audits.survivorship.page import write_page
from truerank.audits.survivorship.passage_ids import PassageIds, open_passage_ids
from truerank.audits.survivorship.report import depth_draft
from truerank.audits.survivorship.results import fault_notes, file_input, log_input, named_source, provenance
from truerank.errors import InputError
from truerank.reports.tables import Column, Table
from truerank.sources import read_qrels_frame
from truerank.sources.annotation_logs import Annotation, AnnotationLog, LogCounts, open_annotations
from truerank.sources.qrels import QREL_SCHEMA
from truerank.work.artifacts import Artifacts
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import write_tables

__all__ = ["ALL", "DEPTH_SCHEMA", "DepthCount", "Depths", "depth", "open_depths"]

#: The name of the whole log among the depths.
ALL: Final = "all"
#: `depths.parquet`: every judgment with where its document stood, counted from 0 (null: it was not shown); the keys of
#: the texts, where the log has texts.
DEPTH_SCHEMA: Final[dict[str, Any]] = {
    **QREL_SCHEMA,
    "position": pl.Int32,
    "topic_key": pl.String,
    "doc_key": pl.String,
}
_DEFAULTS: Final = DepthOptions()
_BLOCK: Final = 1 << 10


class DepthCount(NamedTuple):
    """What is left at one depth; `label` is the depth, or "all"."""

    label: str
    qrels: int
    queries: int
    new_queries: int
    first_qrels: int


@dataclass(frozen=True, eq=False)
class Depths:
    """The result of `survivorship.depth`.

    Attributes:
        name: of the files.
        options: the choices.
        judgments: columns as in `DEPTH_SCHEMA`, in the order of the log, or of the judgments that were given.
        queries: queries of the log, discarded ones included.
        repeated: documents that stand a second time for a query; the first position counts.
        unplaced: judgments given whose document the log did not show; they belong to "all" only.
        unmapped: selected documents without a passage id, and what became of them is an option.
        counts: what was read of the log.
        inputs: for the manifest.
    """

    name: str
    options: DepthOptions
    judgments: pl.DataFrame
    queries: int
    repeated: int = 0
    unplaced: int = 0
    unmapped: int = 0
    counts: LogCounts = field(default_factory=LogCounts)
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """The depths, ascending, and "all"."""
        return (*map(str, sorted(self.options.depths)), ALL)

    def qrels(self, label: str | int, *, first: bool = False) -> pl.DataFrame:
        """The judgments of one depth: those whose 0-based position is below it.

        Args:
            label: the depth, or "all".
            first: only the judgment whose document was shown first, for each query, the paper's control.

        Returns:
            Columns as in `sources.qrels.QREL_SCHEMA`, in the order of `judgments`.

        Raises:
            InputError: a depth below 1.

        Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 4.1.
        """
        frame = self._firsts if first else self.judgments
        if str(label) != ALL:
            if not str(label).isdigit() or int(label) < 1:
                raise InputError(f"no depth '{label}'", "give a whole number from 1, or 'all'", where="depth")
            frame = frame.filter(pl.col("position") < int(label))
        return frame.select(list(QREL_SCHEMA))

    @cached_property
    def _firsts(self) -> pl.DataFrame:
        rows = self.judgments.with_row_index("row").sort("position", "row", nulls_last=True)
        return rows.unique("topic_id", keep="first").sort("row").drop("row")

    @cached_property
    def levels(self) -> tuple[DepthCount, ...]:
        """The counts of every depth."""
        found: list[DepthCount] = []
        for label in self.labels:
            frame = self.qrels(label)
            queries = frame["topic_id"].n_unique()
            before = found[-1].queries if found else 0
            found.append(DepthCount(label, len(frame), queries, queries - before, len(self.qrels(label, first=True))))
        return tuple(found)

    def table(self) -> Table:
        """Judgments and queries by depth."""
        number = {"align": "right", "format": ",d"}
        columns = (
            Column("depth", align="right"),
            Column("qrels", **number),  # type: ignore[arg-type]
            Column("queries", **number),  # type: ignore[arg-type]
            Column("new queries", **number),  # type: ignore[arg-type]
            Column("first only", **number),  # type: ignore[arg-type]
            Column("discarded", align="right", format=".1%"),
        )
        rows = tuple(
            (one.label, one.qrels, one.queries, one.new_queries, one.first_qrels, self._discarded(one))
            for one in self.levels
        )
        return Table(f"{self.name}: judgments by simulated annotation depth", columns, rows, tuple(self.notes()))

    def notes(self) -> Iterator[str]:
        """What a reader of the table has to know."""
        yield (
            "A judgment survives depth k if its document stood among the first k shown. First only: one judgment a "
            "query, that of the document shown first. Simulated: with fewer documents to see, a person might have "
            "selected others."
        )
        yield f"Discarded is the share of the log's {self.queries:,} queries without a judgment."
        if self.repeated:
            yield f"{self.repeated:,} documents stand again for the same query; their first position counts."
        if self.unplaced:
            yield f"{self.unplaced:,} judgments are for documents that the log did not show; they belong to 'all' only."
        if self.unmapped:
            kept = "named by the key of their text" if self.options.unmapped == "keep" else "left out"
            yield f"{self.unmapped:,} selected documents have no passage id; they are {kept}."
        yield from fault_notes(self.counts)

    def text(self) -> str:
        """The table for a terminal."""
        return self.table().text(120)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            "name": self.name,
            "queries": self.queries,
            "depths": [one._asdict() | {"discarded": self._discarded(one)} for one in self.levels],
            "repeated": self.repeated,
            "unplaced": self.unplaced,
            "unmapped": self.unmapped,
            "log": self.counts.json(),
        }

    def save(self, folder: str | Path) -> Path:
        """Writes `qrels/NAME-K.qrels`, `first/NAME-K.qrels`, `depths.parquet`, report, summary and manifest.

        Args:
            folder: made if it does not exist.

        Returns:
            The folder.

        Raises:
            InputError: it cannot be written to.
        """
        artifacts = Artifacts(folder)
        for label in self.labels:
            for kind, first in (("qrels", False), ("first", True)):
                artifacts.text(f"{kind}/{self.name}-{label}.qrels", _lines(self.qrels(label, first=first)))
        artifacts.parquet("depths.parquet", self.judgments)
        write_tables(artifacts, {"depths": self.table()})
        write_page(artifacts, depth_draft(self))
        artifacts.json("summary.json", self.json())
        artifacts.manifest(self.provenance())
        return artifacts.folder

    def provenance(self) -> dict[str, Any]:
        """Inputs with hashes, options and versions."""
        return provenance("depth", self.inputs, self.options.json())

    def _discarded(self, one: DepthCount) -> float | None:
        return 1 - one.queries / self.queries if self.queries else None


def depth(
    log: str,
    out: str | Path | None = None,
    *,
    qrels: str | None = None,
    mapping: str | Path | None = None,
    name: str | None = None,
    options: DepthOptions = _DEFAULTS,
    progress: Progress | None = None,
) -> Depths:
    """Simulates judgments for every annotation depth from an annotation log.

    Args:
        log: the source, see `open_annotations`.
        out: the folder to write; None to write nothing.
        qrels: official judgments: these are filtered by where the log showed their documents, and their order and
            grades stay. Without them the log's selected documents are the judgments.
        mapping: the folder that `survivorship map` wrote, for logs that know passages by their texts only.
        name: of the files; the log's name where it is None.
        options: all other choices.
        progress: told about the work.

    Returns:
        The judgments, by depth.

    Raises:
        InputError: a fault in a file; a log without ids and no mapping for it.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 4.1.
    """
    given, spec = named_source(log)
    source = open_annotations(spec)
    ids = None if mapping is None else open_passage_ids(mapping)
    shown = progress or Quiet()
    shown.start("queries of the log")
    found = _Selected(options, ids, source) if qrels is None else _Placed(options, ids, source, qrels)
    queries = 0
    for block in source.blocks(_BLOCK):
        queries += len(block)
        found.add(block)
        shown.advance(len(block))
    inputs: dict[str, Any] = {"log": log_input(source)}
    if qrels is not None:
        inputs["qrels"] = file_input(qrels)
    if mapping is not None:
        table = Path(mapping)
        inputs["mapping"] = file_input(str(table / "mapping.parquet" if table.is_dir() else table))
    result = Depths(
        name=name or given.replace("/", "-"),
        options=options,
        judgments=found.frame(),
        queries=queries,
        repeated=found.repeated,
        unplaced=found.unplaced,
        unmapped=found.unmapped,
        counts=source.counts,
        inputs=inputs,
    )
    if out is not None:
        result.save(out)
    return result


def open_depths(folder: str | Path) -> pl.DataFrame:
    """The judgments that `survivorship depth` wrote, columns as in `DEPTH_SCHEMA`.

    Raises:
        InputError: the folder holds none.
    """
    path = Path(folder) / "depths.parquet" if Path(folder).is_dir() else Path(folder)
    if not path.is_file():
        raise InputError("no depths.parquet here", "give the folder that 'survivorship depth --out' wrote", where=path)
    try:
        frame = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError("no valid Parquet", "run 'survivorship depth' again", where=path) from error
    missing = [column for column in DEPTH_SCHEMA if column not in frame.columns]
    if missing:
        raise InputError(f"columns missing: {', '.join(missing)}", "run 'survivorship depth' again", where=path)
    return frame


def _lines(frame: pl.DataFrame) -> str:
    lines = frame.select(pl.format("{} 0 {} {}\n", "topic_id", "doc_id", "relevance").alias("line"))["line"]
    return "".join(lines)


class _Candidate(NamedTuple):
    """A shown document whose judgment may be wanted."""

    topic_id: str
    doc_id: str
    position: int
    query: str
    text: str


class _Collected:
    """What a log says about documents, block by block; documents known by their text get ids."""

    def __init__(self, options: DepthOptions, ids: PassageIds | None, log: AnnotationLog) -> None:
        self.options = options
        self.repeated = self.unplaced = self.unmapped = 0
        self._ids = ids
        self._where = log.spec.location

    def named(self, block: Sequence[_Candidate]) -> list[tuple[_Candidate, str]]:
        """The candidates with their documents' ids and the hexadecimal keys of their texts, empty where none is."""
        texted = [i for i, one in enumerate(block) if one.text]
        keys = np.zeros((len(block), 2), np.uint64)
        keys[texted] = keys_of(block[i].text for i in texted)
        digits = [""] * len(block)
        for i, key in zip(texted, hex_keys(keys[texted]), strict=True):
            digits[i] = key
        unnamed = [i for i, one in enumerate(block) if not one.doc_id]
        if not unnamed:
            return list(zip(block, digits, strict=True))
        if self._ids is None and self.options.unmapped == "drop":
            raise InputError(
                "the log knows documents by their texts only",
                "give the folder of 'survivorship map' with --map, or --unmapped keep",
                where=self._where,
            )
        found = self._ids.ids(keys[unnamed]) if self._ids is not None else [None] * len(unnamed)
        named: dict[int, str | None] = dict(zip(unnamed, found, strict=True))
        result = []
        for i, one in enumerate(block):
            doc_id = one.doc_id or named[i]
            if doc_id is None:
                self.unmapped += self.counts_unmapped(one)
                if self.options.unmapped == "drop" or not digits[i]:
                    continue
                doc_id = f"text:{digits[i]}"
            result.append((one._replace(doc_id=doc_id), digits[i]))
        return result

    def counts_unmapped(self, one: _Candidate) -> bool:
        """Whether a candidate without id is a loss."""
        return True


class _Selected(_Collected):
    """The selected documents as judgments."""

    def __init__(self, options: DepthOptions, ids: PassageIds | None, log: AnnotationLog) -> None:
        super().__init__(options, ids, log)
        self._rows: list[tuple[str, str, int, int, str | None, str | None]] = []
        self._parts: list[pl.DataFrame] = []

    def add(self, block: Sequence[Annotation]) -> None:
        """Takes the selected documents of some queries."""
        candidates = [
            _Candidate(one.query_id, one.shown[position].doc_id, position, one.query, one.shown[position].text)
            for one in block
            for position in one.positions
        ]
        named = self.named(candidates)
        topic_keys = hex_keys(keys_of(one.query for one, _ in named))
        seen: set[tuple[str, str]] = set()
        rows = []
        for (one, key), topic_key in zip(named, topic_keys, strict=True):
            pair = (one.topic_id, one.doc_id)
            if pair in seen:
                self.repeated += 1
                continue
            seen.add(pair)
            has_query = topic_key if one.query else None
            rows.append((*pair, self.options.relevance, one.position, has_query, key or None))
        self._parts.append(pl.DataFrame(rows, schema=DEPTH_SCHEMA, orient="row"))

    def frame(self) -> pl.DataFrame:
        """The judgments, columns as in `DEPTH_SCHEMA`."""
        return pl.concat([pl.DataFrame(schema=DEPTH_SCHEMA), *self._parts], rechunk=True)


class _Placed(_Collected):
    """Given judgments with where the log showed their documents."""

    def __init__(self, options: DepthOptions, ids: PassageIds | None, log: AnnotationLog, qrels: str) -> None:
        super().__init__(options, ids, log)
        self._qrels = read_qrels_frame(qrels)
        self._places: dict[tuple[str, str], tuple[int, str | None, str | None]] = {}
        self._wanted: dict[str, set[str]] = {}
        for topic_id, doc_id in self._qrels.select("topic_id", "doc_id").iter_rows():
            self._wanted.setdefault(topic_id, set()).add(doc_id)

    def add(self, block: Sequence[Annotation]) -> None:
        """Takes the places of judged documents of some queries."""
        candidates = [
            _Candidate(one.query_id, shown.doc_id, position, one.query, shown.text)
            for one in block
            if one.query_id in self._wanted
            for position, shown in enumerate(one.shown)
            if not shown.doc_id or shown.doc_id in self._wanted[one.query_id]
        ]
        for one, key in self.named(candidates):
            if one.doc_id not in self._wanted[one.topic_id]:
                continue
            pair = (one.topic_id, one.doc_id)
            if pair in self._places:
                self.repeated += 1
                continue
            topic_key = hex_keys(keys_of([one.query]))[0] if one.query else None
            self._places[pair] = (one.position, topic_key, key or None)

    def counts_unmapped(self, one: _Candidate) -> bool:
        # Most of what was shown has no judgment: that it has no id either is no loss.
        return False

    def frame(self) -> pl.DataFrame:
        pairs = self._qrels.select("topic_id", "doc_id").iter_rows()
        places = [self._places.get(pair, (None, None, None)) for pair in pairs]
        self.unplaced = sum(place[0] is None for place in places)
        columns = dict(zip(("position", "topic_key", "doc_key"), zip(*places, strict=True), strict=True))
        added = pl.DataFrame(columns, schema={name: DEPTH_SCHEMA[name] for name in columns})
        return pl.concat([self._qrels, added], how="horizontal").select(list(DEPTH_SCHEMA))

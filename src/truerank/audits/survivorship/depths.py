"""`truerank survivorship depth`: judgments had fewer documents been shown; rankers trained on them, compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.survivorship.annotation_logs import Annotation, AnnotationLog, LogCounts, open_annotations
from truerank.audits.survivorship.mapping import PassageIds, hex_keys, keys_of, mapping_file, open_passage_ids
from truerank.audits.survivorship.queries import input_of_log, left_out, named_source, whole_numbers
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.loading import whole_number
from truerank.options import Flag, Options, Out, Range, command
from truerank.sources import read_qrels_frame
from truerank.sources.inputs import inputs_of
from truerank.sources.qrels import QREL_SCHEMA, qrel_text
from truerank.work.artifacts import written_by
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: The name of the whole log among the depths.
ALL: Final = "all"
#: `depths.parquet`: every judgment with where its document stood, counted from 0 (null: it was not shown); the keys of
#: the texts, where the log has texts.
DEPTH_SCHEMA: Final[dict[str, Any]] = QREL_SCHEMA | frame_schema("position: Int32, topic_key doc_key: String")
_BLOCK: Final = 1 << 10
#: Judgments that are read at once.
_ROWS: Final = 1 << 16


def depth_label(text: str, option: str, given: str = "") -> str:
    """The label of a depth: a number from 1 as it is usually written, or "all"."""
    number = whole_number(text)
    if text != ALL and not number:
        place = f" in '{given}'" if given else ""
        raise OptionError(option, f"'{text}'{place} is not a depth", f"give a whole number from 1, or '{ALL}'")
    return text if text == ALL else str(number)


def by_depth(label: str) -> tuple[bool, int]:
    return label == ALL, 0 if label == ALL else int(label)


class DepthCount(NamedTuple):
    """What is left at one depth; `label` is the depth, or "all"."""

    label: str
    qrels: int
    queries: int
    new_queries: int
    first_qrels: int


#: Numbers of documents shown, as `1,5`; in Python a sequence.
ShownDepths = Annotated[str | Sequence[int], Flag(metavar="K,K…", reads=str)]


@dataclass(frozen=True)
class ShownOptions(Options):
    """How many documents would have been shown.

    Attributes:
        shown: the depths. In Python a sequence.
    """

    shown: ShownDepths = "1,2,3,4,5,6,7,8,9"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_numbers(self.shown, "shown")

    @property
    def depths(self) -> tuple[int, ...]:
        """The numbers of documents shown, ascending."""
        return whole_numbers(self.shown, "shown")

    @property
    def labels(self) -> tuple[str, ...]:
        """The depths, ascending, and "all"."""
        return (*map(str, self.depths), ALL)


@dataclass(frozen=True)
class DepthOptions(ShownOptions):
    """How shallower annotation is simulated.

    Attributes:
        shown: how many documents would have been shown; the whole log (all) is always added. In Python a sequence.
        grade: of a selected document, where the log is the only source of judgments.
        unmapped: what becomes of selected documents whose text no passage id is known for: drop leaves them out, keep
            names them by the key of their text.
    """

    grade: Annotated[int, Range(at_least=1)] = 1
    unmapped: Literal["drop", "keep"] = "drop"


@dataclass(frozen=True, eq=False, repr=False)
class Depths(Result, shown_in="truerank.audits.survivorship.report"):
    """Judgments by annotation depth.

    Attributes:
        name: of the files.
        options: the choices.
        judgments: columns as in `DEPTH_SCHEMA`, in the order of the log, or of the judgments that were given.
        queries: queries of the log, discarded ones included.
        repeated: documents that stand a second time for a query; the first position counts.
        unplaced: judgments given whose document the log did not show; they belong to "all" only.
        unmapped: selected documents without a passage id, and what became of them is an option.
        counts: what was read of the log.
        out: the folder that it was written to.
    """

    name: str
    options: DepthOptions
    judgments: pl.DataFrame
    queries: int
    repeated: int = 0
    unplaced: int = 0
    unmapped: int = 0
    counts: LogCounts = field(default_factory=LogCounts)
    out: Path | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The depths, ascending, and "all"."""
        return self.options.labels

    def qrels(self, label: str | int, *, first: bool = False) -> pl.DataFrame:
        """The judgments of one depth: those whose 0-based position is below it.

        Args:
            label: the depth, or "all".
            first: only the judgment whose document was shown first, for each query, the paper's control.

        Returns:
            Columns as in `sources.qrels.QREL_SCHEMA`, in the order of `judgments`.

        Raises:
            OptionError: a depth below 1.

        Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 4.1.
        """
        frame = self._firsts if first else self.judgments
        if str(label) != ALL:
            frame = frame.filter(pl.col("position") < int(depth_label(str(label), "label")))
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

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            **picked(self, "name, queries"),
            "depths": [one._asdict() | {"discarded": self.discarded(one)} for one in self.levels],
            **picked(self, "repeated, unplaced, unmapped, log=counts"),
        }

    def discarded(self, one: DepthCount) -> float | None:
        """The share of the log's queries that have no judgment at one depth; None for an empty log."""
        return 1 - one.queries / self.queries if self.queries else None


@command
def depth(
    log: Annotated[str | Path, Flag(metavar="[NAME=]SRC", reads=str)],
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    mapping: Annotated[str | Path | None, Flag(metavar="DIR", reads=Path)] = None,
    *,
    options: DepthOptions = DepthOptions(),
    out: Out = None,
    progress: Progress | None = None,
) -> Depths:
    """Simulates the judgments there would be had fewer documents been shown for each query.

    Writes a file of judgments for each depth, qrels/NAME-K.qrels, and one with the first judgment of each query only,
    first/NAME-K.qrels.

    Args:
        log: an annotation log; its name is that of the files.
        qrels: official judgments: these are filtered by where the log showed their documents, and their order and
            grades stay. Without them the log's selected documents are the judgments.
        mapping: the folder that survivorship map wrote, for logs that know passages by their texts only.
        options: the depths, and what a selected document becomes.
        out: a folder for judgments, depths.parquet, page and manifest.
        progress: is told about the work.

    Returns:
        The judgments, by depth.

    Raises:
        InputError: a fault in a file; a log without ids and no mapping for it.

    Examples:

        truerank survivorship depth --log irds:msmarco-qna/dev --out depths/

        truerank survivorship depth --log dev=dev_v2.1.json.gz --mapping map/ --qrels qrels.dev.tsv --shown 1,5
        --out depths/

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 4.1.
    """
    given, spec = named_source(log)
    source = open_annotations(spec)
    ids = None if mapping is None else open_passage_ids(mapping)
    shown = progress or Quiet()
    shown.start("queries of the log")
    collected = _Selected(options, ids, source) if qrels is None else _Placed(options, ids, source, qrels)
    queries = 0
    for block in source.blocks(_BLOCK):
        queries += len(block)
        collected.add(block)
        shown.advance(len(block))
    result = Depths(
        name=given.replace("/", "-"),
        options=options,
        judgments=collected.frame(),
        queries=queries,
        repeated=collected.repeated,
        unplaced=collected.unplaced,
        unmapped=collected.unmapped,
        counts=source.log_counts,
        out=None if out is None else Path(out),
    )
    if out is not None:
        read = (input_of_log(given, source), *inputs_of(qrels=qrels, mapping=mapping and mapping_file(mapping)))
        with started("survivorship depth", read, {"options": options}, out, packages=("matplotlib",)) as job:
            dropped = {"unmapped": result.unmapped} if result.unmapped and result.options.unmapped == "drop" else {}
            job.skipped = {**left_out(result.counts), **dropped}
            for label in result.labels:
                for kind, first in (("qrels", False), ("first", True)):
                    job.text(f"{kind}/{result.name}-{label}.qrels", qrel_text(result.qrels(label, first=first)))
            job.parquet("depths.parquet", result.judgments)
            publish(result, job)
    return result


def depths_file(folder: str | Path) -> Path:
    """The file of a folder that `survivorship depth` wrote, or the file itself."""
    return Path(folder) / "depths.parquet" if Path(folder).is_dir() else Path(folder)


def depth_batches(folder: str | Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Some columns of the judgments that `survivorship depth` wrote, streamed; at least one frame."""
    path = depths_file(folder)
    with written_by("survivorship depth", path.parent, path.name):
        scanned = pl.scan_parquet(path, glob=False).select(list(DEPTH_SCHEMA)).select(columns)
        yield pl.DataFrame(schema=scanned.collect_schema())
        yield from scanned.collect_batches(chunk_size=_ROWS, maintain_order=True)


class _Candidate(NamedTuple):
    topic_id: str
    doc_id: str
    position: int
    query: str
    text: str


class _Collected:
    """What a log says about documents, block by block; documents known by their text get ids."""

    counts_unmapped = True

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
                "give `mapping`, the folder of 'survivorship map', or `unmapped` keep",
                where=self._where,
            )
        found = self._ids.ids(keys[unnamed]) if self._ids is not None else [None] * len(unnamed)
        named: dict[int, str | None] = dict(zip(unnamed, found, strict=True))
        result = []
        for i, one in enumerate(block):
            doc_id = one.doc_id or named[i]
            if doc_id is None:
                self.unmapped += self.counts_unmapped
                if self.options.unmapped == "drop" or not digits[i]:
                    continue
                doc_id = f"text:{digits[i]}"
            result.append((one._replace(doc_id=doc_id), digits[i]))
        return result


class _Selected(_Collected):
    def __init__(self, options: DepthOptions, ids: PassageIds | None, log: AnnotationLog) -> None:
        super().__init__(options, ids, log)
        self._parts: list[pl.DataFrame] = []

    def add(self, block: Sequence[Annotation]) -> None:
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
            rows.append((*pair, self.options.grade, one.position, has_query, key or None))
        self._parts.append(pl.DataFrame(rows, schema=DEPTH_SCHEMA, orient="row"))

    def frame(self) -> pl.DataFrame:
        return pl.concat([pl.DataFrame(schema=DEPTH_SCHEMA), *self._parts], rechunk=True)


class _Placed(_Collected):
    """Given judgments with where the log showed their documents."""

    # Most of what was shown has no judgment: that it has no id either is no loss.
    counts_unmapped = False

    def __init__(self, options: DepthOptions, ids: PassageIds | None, log: AnnotationLog, qrels: str) -> None:
        super().__init__(options, ids, log)
        self._qrels = read_qrels_frame(qrels)
        self._places: dict[tuple[str, str], tuple[int, str | None, str | None]] = {}
        self._wanted: dict[str, set[str]] = {}
        for topic_id, doc_id in self._qrels.select("topic_id", "doc_id").iter_rows():
            self._wanted.setdefault(topic_id, set()).add(doc_id)

    def add(self, block: Sequence[Annotation]) -> None:
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

    def frame(self) -> pl.DataFrame:
        pairs = self._qrels.select("topic_id", "doc_id").iter_rows()
        places = [self._places.get(pair, (None, None, None)) for pair in pairs]
        self.unplaced = sum(place[0] is None for place in places)
        columns = dict(zip(("position", "topic_key", "doc_key"), zip(*places, strict=True), strict=True))
        added = pl.DataFrame(columns, schema={name: DEPTH_SCHEMA[name] for name in columns})
        return pl.concat([self._qrels, added], how="horizontal").select(list(DEPTH_SCHEMA))

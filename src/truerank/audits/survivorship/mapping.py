"""The passages of an annotation log as passages of a collection, by their texts; and what a later corpus has lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.survivorship.keys import keys_of
from truerank.audits.survivorship.kinds import Kinds, independence
from truerank.audits.survivorship.options import MapOptions
from truerank.audits.survivorship.overlap import overlap_index, overlaps
from truerank.audits.survivorship.passage_ids import MAPPING_SCHEMA
from truerank.audits.survivorship.passage_table import PassageTable, passage_table
from truerank.audits.survivorship.results import (
    Share,
    fault_notes,
    file_input,
    log_input,
    named_source,
    provenance,
    share_of,
)
from truerank.errors import InputError
from truerank.reports.tables import Column, Table
from truerank.sources.annotation_logs import Annotation, LogCounts, open_annotations
from truerank.sources.documents import open_documents
from truerank.work.artifacts import Artifacts
from truerank.work.progress import Progress, Quiet

__all__ = ["LaterLoss", "MapCounts", "PassageMap", "map_passages"]

_DEFAULTS: Final = MapOptions()
_BLOCK: Final = 1 << 9
_LEVELS: Final = (1.0, 0.9, 0.8, 0.5, 0.3)
_MAPPED, _UNMATCHED, _AMBIGUOUS, _NO_TEXT = range(4)
_REASONS: Final = ("mapped", "unmatched", "ambiguous", "no-text")
#: `survival.parquet`: the queries with a selected passage; how many of these are in the collection, and the largest
#: overlap of one with a document of the later corpus (null: not asked for).
SURVIVAL_SCHEMA: Final[dict[str, Any]] = {
    "query_id": pl.String,
    "query_type": pl.String,
    "selected": pl.Int32,
    "mapped": pl.Int32,
    "overlap": pl.Float64,
}


class MapCounts(NamedTuple):
    """What became of passages: mapped to an id, no such text, a text that several have, no text in the log."""

    mapped: int = 0
    unmatched: int = 0
    ambiguous: int = 0
    no_text: int = 0


@dataclass(frozen=True)
class LaterLoss:
    """What the later corpus keeps of the queries that had a selected passage.

    Attributes:
        discarded: queries none of whose selected passages has the required overlap.
        levels: the discarded share at other required overlaps.
        kinds: discarded queries by their type, where the log has types.
        documents: of the later corpus.
    """

    discarded: Share
    levels: Mapping[float, float]
    kinds: Kinds | None
    documents: int

    def json(self) -> dict[str, Any]:
        """All figures by name."""
        return {
            "discarded": self.discarded.json(),
            "discarded_by_required_overlap": {f"{level:g}": share for level, share in self.levels.items()},
            "kinds": None if self.kinds is None else self.kinds.json(),
            "documents": self.documents,
        }


@dataclass(frozen=True, eq=False)
class PassageMap:
    """The result of `survivorship.map_passages`.

    Attributes:
        options: the choices.
        queries: of the log.
        survivors: queries with a selected passage.
        shown: what became of all passages shown.
        selected: what became of the selected ones.
        lost: survivors without any selected passage in the collection; None where no collection was given.
        table_counts: of the collection.
        later: what a later corpus keeps, where one was given.
        counts: what was read of the log.
        inputs: for the manifest.
    """

    options: MapOptions
    queries: int
    survivors: int
    shown: MapCounts
    selected: MapCounts
    lost: Share | None
    table_counts: Mapping[str, int]
    later: LaterLoss | None
    counts: LogCounts
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def table(self) -> Table:
        """What became of the passages."""
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        columns = (
            Column("passages"),
            Column("mapped", **number),
            Column("unmatched", **number),
            Column("ambiguous", **number),
            Column("without text", **number),
        )
        rows = (("shown", *self.shown), ("selected", *self.selected))
        return Table("Passages of the log in the collection", columns, rows, tuple(self.notes()))

    def notes(self) -> Iterator[str]:
        """What a reader of the table has to know."""
        if self.lost is not None:
            yield (
                "Texts are equal after repairing bytes read as latin-1 and joining blanks. Every passage that is not "
                "mapped stands in unmatched.jsonl, every text that several passages have in duplicates.tsv."
            )
            read = self.table_counts
            yield (
                f"The collection holds {read['passages']:,} passages, {read['distinct']:,} distinct texts; "
                f"{read['texts_repeated']:,} texts stand there more than once."
            )
            yield (
                f"{self.lost.found:,} of {self.survivors:,} queries with a selected passage have none in the "
                "collection."
            )
        if self.later is not None:
            lost = self.later.discarded
            levels = ", ".join(f"{level:g}: {share:.1%}" for level, share in self.later.levels.items())
            yield (
                f"Later corpus: {lost.found:,} of {lost.total:,} queries ({lost.value:.1%}, {lost.low:.1%} to "
                f"{lost.high:.1%}) have no selected passage of which {self.options.min_overlap:.0%} of the sequences "
                f"of {self.options.words} words stand in one document. Discarded by required overlap: {levels}."
            )
        yield from fault_notes(self.counts)

    def text(self) -> str:
        """The tables for a terminal."""
        tables = [self.table()]
        if self.later is not None and self.later.kinds is not None:
            tables.append(self.later.kinds.table())
        return "\n".join(table.text(120) for table in tables)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            "queries": self.queries,
            "survivors": self.survivors,
            "shown": self.shown._asdict(),
            "selected": self.selected._asdict(),
            "lost": None if self.lost is None else self.lost.json(),
            "collection": dict(self.table_counts),
            "later": None if self.later is None else self.later.json(),
            "log": self.counts.json(),
        }


def map_passages(
    log: str,
    out: str | Path,
    *,
    docs: str | None = None,
    later: str | None = None,
    options: MapOptions = _DEFAULTS,
    progress: Progress | None = None,
) -> PassageMap:
    """Gives the passages of an annotation log the ids they have in a collection, by their texts.

    Writes `mapping.parquet` (columns as in `passage_ids.MAPPING_SCHEMA`), `unmatched.jsonl`, `duplicates.tsv`,
    `survival.parquet`, with a later corpus `later-survived.txt` and `later-discarded.txt` (query ids), `summary.json`
    and `manifest.json`.

    Args:
        log: the source, see `open_annotations`; it has to hold texts.
        out: the folder.
        docs: the collection, such as MS MARCO's passages; its texts are held as 128-bit keys.
        later: a later corpus: a query is lost unless a selected passage overlaps with one of its documents, as when
            MS MARCO's second version was made.
        options: all other choices.
        progress: told about the work.

    Returns:
        The counts.

    Raises:
        InputError: a fault in a source; neither collection nor later corpus; repeated texts, where they are an error.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 2.
    """
    if docs is None and later is None:
        raise InputError("nothing to map to", "give --docs, --later, or both", where="map")
    shown = progress or Quiet()
    source = open_annotations(named_source(log)[1])
    artifacts = Artifacts(out)
    collection = None if docs is None else open_documents(docs)
    table = None
    if collection is not None:
        table = passage_table(collection, unique=options.duplicates == "fail", progress=shown)
    found = _Found(table, options, keep_texts=later is not None)
    shown.start("queries of the log")
    with artifacts.stream("unmatched.jsonl") as path, path.open("w", encoding="utf-8", newline="\n") as target:
        for block in source.blocks(_BLOCK):
            found.add(block, target)
            shown.advance(len(block))
    if table is not None:
        artifacts.parquet("mapping.parquet", found.mapping())
        artifacts.text("duplicates.tsv", "".join("\t".join(group) + "\n" for group in table.groups()))
    survival = found.survival()
    loss = None
    if later is not None:
        survival, loss = _later(found, survival, later, options, shown)
        keeps = pl.col("overlap") >= options.min_overlap
        for name, kept in (("survived", survival.filter(keeps)), ("discarded", survival.filter(~keeps))):
            artifacts.text(f"later-{name}.txt", "".join(f"{one}\n" for one in kept["query_id"]))
    artifacts.parquet("survival.parquet", survival)
    inputs = {"log": log_input(source)}
    for kind, given in (("docs", docs), ("later", later)):
        if given is not None:
            inputs[kind] = file_input(given)
    unplaced = int((survival["mapped"] == 0).sum())
    result = PassageMap(
        options=options,
        queries=found.queries,
        survivors=len(survival),
        shown=MapCounts(*found.shown.tolist()),
        selected=MapCounts(*found.selected.tolist()),
        lost=None if table is None else share_of(unplaced, len(survival)),
        table_counts={} if table is None else table.json(),
        later=loss,
        counts=source.counts,
        inputs=inputs,
    )
    artifacts.json("summary.json", result.json())
    artifacts.manifest(provenance("map", inputs, options.json()))
    return result


class _Found:
    """What the passages of a log are in the collection, counted block by block."""

    def __init__(self, table: PassageTable | None, options: MapOptions, *, keep_texts: bool) -> None:
        self.queries = 0
        self.shown = np.zeros(4, np.int64)
        self.selected = np.zeros(4, np.int64)
        self.texts: list[list[str]] = []
        self.text_owners: list[int] = []
        self._table = table
        self._first = options.duplicates == "first"
        self._keep_texts = keep_texts
        self._seen = np.zeros(0 if table is None else len(table.ids), bool)
        self._survivors = 0
        self._parts: list[pl.DataFrame] = []

    def add(self, block: list[Annotation], target: IO[str]) -> None:
        """Looks the passages of a block of queries up; writes those that are not mapped."""
        texts = [one.text for annotation in block for one in annotation.shown]
        chosen = np.array([one.selected for annotation in block for one in annotation.shown], bool)
        lengths = [len(annotation.shown) for annotation in block]
        status = self._status(texts)
        self.shown += np.bincount(status, minlength=4)
        self.selected += np.bincount(status[chosen], minlength=4)
        if self._table is not None:
            _write_unmapped(block, status, target)
        owners = np.repeat(np.arange(len(block)), lengths)
        selected = np.bincount(owners[chosen], minlength=len(block))
        mapped = np.bincount(owners[chosen & (status == _MAPPED)], minlength=len(block))
        survivors = np.flatnonzero(selected).tolist()
        if self._keep_texts:
            self.texts.append([texts[i] for i in np.flatnonzero(chosen).tolist()])
            place = {owner: number for number, owner in enumerate(survivors, start=self._survivors)}
            self.text_owners += [place[owner] for owner in owners[chosen].tolist()]
        self.queries += len(block)
        self._survivors += len(survivors)
        rows = [(block[i].query_id, block[i].query_type, int(selected[i]), int(mapped[i]), None) for i in survivors]
        self._parts.append(pl.DataFrame(rows, schema=SURVIVAL_SCHEMA, orient="row"))

    def _status(self, texts: list[str]) -> NDArray[np.int64]:
        status = np.full(len(texts), _UNMATCHED, np.int64)
        status[[i for i, text in enumerate(texts) if not text.strip()]] = _NO_TEXT
        if self._table is None or not texts:
            return status
        rows = self._table.find(keys_of(texts))
        found = (rows >= 0) & (status != _NO_TEXT)
        ambiguous = self._table.repeated[rows] & found if not self._first else np.zeros(len(texts), bool)
        status[found] = _MAPPED
        status[ambiguous] = _AMBIGUOUS
        self._seen[rows[status == _MAPPED]] = True
        return status

    def mapping(self) -> pl.DataFrame:
        """The texts that were found, by their keys."""
        if self._table is None:
            return pl.DataFrame(schema=MAPPING_SCHEMA)
        keys = self._table.keys[self._seen]
        columns = {
            "key_high": keys[:, 0],
            "key_low": keys[:, 1],
            "doc_id": self._table.ids.filter(pl.Series(self._seen)),
        }
        return pl.DataFrame(columns, schema=MAPPING_SCHEMA)

    def survival(self) -> pl.DataFrame:
        """The queries with a selected passage, columns as in `SURVIVAL_SCHEMA`."""
        return pl.concat([pl.DataFrame(schema=SURVIVAL_SCHEMA), *self._parts], rechunk=True)


def _write_unmapped(block: list[Annotation], status: NDArray[np.int64], target: IO[str]) -> None:
    starts = np.cumsum([0, *(len(annotation.shown) for annotation in block)])
    places = np.flatnonzero(status != _MAPPED)
    owners = np.searchsorted(starts, places, side="right") - 1
    for place, owner in zip(places.tolist(), owners.tolist(), strict=True):
        position = place - int(starts[owner])
        one = block[owner].shown[position]
        entry = {
            "query_id": block[owner].query_id,
            "position": position,
            "selected": one.selected,
            "reason": _REASONS[status[place]],
            "url": one.url,
            "text": one.text,
        }
        target.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _later(
    found: _Found, survival: pl.DataFrame, later: str, options: MapOptions, progress: Progress
) -> tuple[pl.DataFrame, LaterLoss]:
    documents = open_documents(later)
    index = overlap_index(found.texts, options.words)
    shares = overlaps(index, documents, progress)
    best = np.zeros(len(survival))
    np.maximum.at(best, np.array(found.text_owners, np.int64), shares)
    survival = survival.with_columns(pl.Series("overlap", best))
    lost = best < options.min_overlap
    kinds = None
    types = survival["query_type"].to_list()
    if any(types):
        counts: dict[str, tuple[int, int]] = {}
        for kind, is_lost in zip(types, lost.tolist(), strict=True):
            if kind:
                total, gone = counts.get(kind, (0, 0))
                counts[kind] = (total + 1, gone + is_lost)
        kinds = independence(counts, labelling="query type", split="later corpus", unlabelled=types.count(""))
    levels = {level: float((best < level).mean()) if len(best) else 0.0 for level in _LEVELS}
    loss = LaterLoss(share_of(int(lost.sum()), len(best)), levels, kinds, documents.counts.read)
    return survival, loss

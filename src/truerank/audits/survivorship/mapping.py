"""`truerank survivorship map`: the passages of a log as passages of a collection, by the keys of their texts.

The keys of eight million passages take half a gigabyte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import SPREAD, Hashes, Ints, frame_schema
from truerank.audits.survivorship.annotation_logs import Annotation, AnnotationLog, LogCounts, open_annotations
from truerank.audits.survivorship.queries import Kinds, independence, input_of_log, left_out, named_source
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError
from truerank.measures.magnitudes import Proportion, proportion
from truerank.options import Flag, Options, Out, Range, command
from truerank.sources.documents import DocumentSource, open_documents
from truerank.sources.inputs import inputs_of
from truerank.text.mojibake import repair
from truerank.work.artifacts import read_table, written_by
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import Run
from truerank.work.runs import run as started

#: Keys of n texts as numbers, shape (n, 2).
Keys = NDArray[np.uint64]

_SIZE: Final = 16


def canonical(text: str) -> str:
    """The form in which texts are compared: encoding repaired, blanks of any kind and number as one, none at the ends.

    A table of tab-separated lines cannot hold tabs and line ends, so that a text loses them on its way into a
    collection.
    """
    return " ".join(repair(text).split())


def key_of(text: str) -> bytes:
    """The key of a text, 16 bytes.

    Two of ten million different texts share one with a probability below 1e-24.
    """
    return blake2b(canonical(text).encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()


def keys_of(texts: Iterable[str]) -> Keys:
    return np.frombuffer(b"".join(key_of(text) for text in texts), ">u8").reshape(-1, 2).astype(np.uint64)


def hex_keys(keys: Keys) -> list[str]:
    """Keys as 32 hexadecimal digits each."""
    data = keys.astype(">u8").tobytes().hex()
    return [data[start : start + 2 * _SIZE] for start in range(0, len(data), 2 * _SIZE)]


def sorted_keys(keys: Keys) -> NDArray[np.int64]:
    """The order in which keys ascend; equal ones stay in their order."""
    return np.lexsort((keys[:, 1], keys[:, 0])).astype(np.int64)


def lookup(ordered: Keys, wanted: Keys) -> NDArray[np.int64]:
    """For each wanted key the first row of ascending keys that has it, -1 where none does."""
    if not len(ordered):
        return np.full(len(wanted), -1, np.int64)
    high, low = ordered[:, 0], ordered[:, 1]
    place = np.searchsorted(high, wanted[:, 0]).astype(np.int64)
    end = np.searchsorted(high, wanted[:, 0], side="right")
    # Several keys with the same first half are there by their second one; hardly ever more than one.
    crowded = np.flatnonzero(end - place > 1)
    for row in crowded.tolist():
        place[row] += np.searchsorted(low[place[row] : end[row]], wanted[row, 1])
    inside = np.minimum(place, len(ordered) - 1)
    found = (place < end) & (low[inside] == wanted[:, 1])
    return np.where(found, inside, -1)


_BLOCK = 1 << 13
#: `mapping.parquet`: a text's key in two halves, and the passage's id.
MAPPING_SCHEMA: Final[dict[str, Any]] = {"key_high": pl.UInt64, "key_low": pl.UInt64, "doc_id": pl.String}


@dataclass(frozen=True, eq=False)
class PassageTable:
    """The distinct texts of a collection.

    Attributes:
        keys: ascending, shape (n, 2).
        ids: the id of the first passage with that text, n of them.
        repeated: which texts several passages have, shape (n,).
        duplicates: columns `text_no` and `doc_id`, all passages with a text that others have, in groups.
    """

    keys: Keys
    ids: pl.Series
    repeated: NDArray[np.bool_]
    passages: int
    duplicates: pl.DataFrame

    def find(self, keys: Keys) -> NDArray[np.int64]:
        return lookup(self.keys, keys)

    def groups(self) -> Iterator[list[str]]:
        for _, group in self.duplicates.group_by("text_no", maintain_order=True):
            yield group["doc_id"].to_list()

    @property
    def texts_repeated(self) -> int:
        return int(self.repeated.sum())

    def json(self) -> dict[str, Any]:
        return {
            "passages": self.passages,
            "distinct": len(self.ids),
            "texts_repeated": self.texts_repeated,
            "passages_repeated": len(self.duplicates),
        }


def passage_table(documents: DocumentSource, *, unique: bool, progress: Progress) -> PassageTable:
    """Reads a collection and keeps its passages' ids by their texts' keys."""
    progress.start("passages of the collection")
    parts: list[Keys] = []
    names: list[pl.Series] = []
    for block in documents.batches(_BLOCK):
        parts.append(keys_of(one.text for one in block))
        names.append(pl.Series([one.doc_id for one in block], dtype=pl.String))
        progress.advance(len(block))
    keys, ids = np.concatenate(parts), pl.concat(names, rechunk=True)
    parts.clear()
    names.clear()
    order = sorted_keys(keys)
    keys, ids = keys[order], ids.gather(order)
    same = (keys[1:] == keys[:-1]).all(axis=1)
    if unique and same.any():
        row = int(np.flatnonzero(same)[0])
        raise InputError(
            f"the passages '{ids[row]}' and '{ids[row + 1]}' have the same text ({int(same.sum()):,} more do)",
            "leave such texts unmapped with `duplicates` leave, or take the first with `duplicates` first",
            where=documents.spec.location,
        )
    begins = np.concatenate(([True], ~same))
    crowd = np.concatenate((same, [False])) | np.concatenate(([False], same))
    duplicates = pl.DataFrame(
        {"text_no": np.cumsum(begins)[crowd], "doc_id": ids.filter(pl.Series(crowd)), "at": order[crowd]}
    )
    # Groups are in the order of the collection, not of the keys.
    duplicates = duplicates.sort(pl.col("at").min().over("text_no"), "at").drop("at")
    repeated = np.concatenate((same, [False]))[begins]
    return PassageTable(keys[begins], ids.filter(pl.Series(begins)), repeated, len(ids), duplicates)


class PassageIds:
    """Ids by key, in arrays.

    Args:
        frame: columns as in `MAPPING_SCHEMA`, no key twice.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        keys = np.column_stack([frame["key_high"].to_numpy(), frame["key_low"].to_numpy()])
        order = sorted_keys(keys)
        self._keys = keys[order]
        self._ids = frame["doc_id"].gather(order)

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self, keys: Keys) -> list[str | None]:
        rows = lookup(self._keys, keys)
        found = rows >= 0
        ids: list[str | None] = [None] * len(rows)
        for place, doc_id in zip(np.flatnonzero(found).tolist(), self._ids.gather(rows[found]).to_list(), strict=True):
            ids[place] = doc_id
        return ids


def mapping_file(folder: str | Path) -> Path:
    """The file of a folder that `survivorship map` wrote, or the file itself."""
    return Path(folder) / "mapping.parquet" if Path(folder).is_dir() else Path(folder)


def open_passage_ids(folder: str | Path) -> PassageIds:
    path = mapping_file(folder)
    with written_by("survivorship map", path.parent, path.name):
        return PassageIds(read_table(path, MAPPING_SCHEMA))


_DOCUMENTS: Final = 1 << 11
_WORD: Final = r"[\p{L}\p{N}]+"
_SHIFT: Final = np.uint64(29)
_SEED: Final = 20220711


class _Sequences(NamedTuple):
    """Sequences of words as hashes, each text's own ones once; `owners` are the texts' positions."""

    hashes: Hashes
    owners: Ints


class OverlapIndex(NamedTuple):
    """Texts to be looked for: their sequences in ascending order, the texts they belong to, how many each text has."""

    hashes: Hashes
    owners: Ints
    sizes: Ints
    words: int


def overlap_index(blocks: Iterable[Sequence[str]], words: int) -> OverlapIndex:
    found: list[_Sequences] = []
    number = 0
    for block in blocks:
        part = _sequences(block, words)
        found.append(_Sequences(part.hashes, part.owners + number))
        number += len(block)
    hashes = np.concatenate([part.hashes for part in found]) if found else np.zeros(0, np.uint64)
    owners = np.concatenate([part.owners for part in found]) if found else np.zeros(0, np.int64)
    order = np.argsort(hashes, kind="stable")
    return OverlapIndex(hashes[order], owners[order], np.bincount(owners, minlength=number), words)


def overlaps(index: OverlapIndex, documents: DocumentSource, progress: Progress) -> NDArray[np.float64]:
    """For each text the largest share of its sequences that are in one document; one pass over the documents."""
    progress.start("documents of the later corpus")
    best = np.zeros(len(index.sizes))
    for block in documents.batches(_DOCUMENTS):
        part = _sequences([one.text for one in block], index.words)
        begin = np.searchsorted(index.hashes, part.hashes)
        length = np.searchsorted(index.hashes, part.hashes, side="right") - begin
        total = int(length.sum())
        if total:
            within = np.arange(total) - np.repeat(np.cumsum(length) - length, length)
            owners = index.owners[np.repeat(begin, length) + within]
            pairs = np.repeat(part.owners, length) * len(best) + owners
            found, times = np.unique(pairs, return_counts=True)
            whose = found % len(best)
            np.maximum.at(best, whose, times / index.sizes[whose])
        progress.advance(len(block))
    return best


def _sequences(texts: Sequence[str], words: int) -> _Sequences:
    series = pl.Series([canonical(text).lower() for text in texts], dtype=pl.String)
    split = series.str.extract_all(_WORD)
    lengths = split.list.len().to_numpy().astype(np.int64)
    signs = split.explode(empty_as_null=False).hash(_SEED).to_numpy() if lengths.sum() else np.zeros(0, np.uint64)
    owners = np.repeat(np.arange(len(texts)), lengths)
    places = np.arange(len(signs)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    mixed = np.zeros(len(signs), np.uint64)
    with np.errstate(over="ignore"):
        for step in range(words):
            # Behind the end of a short text nothing is added.
            inside = places + step < lengths[owners]
            moved = np.zeros(len(signs), np.uint64)
            moved[: len(signs) - step] = signs[step:]
            mixed = (mixed ^ np.where(inside, moved, 0)) * SPREAD
            mixed ^= mixed >> _SHIFT
    whole = (places + words <= lengths[owners]) | (places == 0)
    pairs = pl.DataFrame({"owner": owners[whole], "hash": mixed[whole]}).unique().sort("owner", "hash")
    return _Sequences(pairs["hash"].to_numpy(), pairs["owner"].to_numpy())


_QUERIES: Final = 1 << 9
_LEVELS: Final = (1.0, 0.9, 0.8, 0.5, 0.3)
_MAPPED, _UNMATCHED, _AMBIGUOUS, _NO_TEXT = range(4)
_REASONS: Final = ("mapped", "unmatched", "ambiguous", "no-text")
#: `survival.parquet`: the queries with a selected passage; how many of these are in the collection, and the largest
#: overlap of one with a document of the later corpus (null: not asked for).
SURVIVAL_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "query_id query_type: String, selected mapped: Int32, overlap: Float64"
)


@dataclass(frozen=True)
class MapOptions(Options):
    """How passages are matched by their texts.

    Attributes:
        duplicates: passages of the collection with the same text: leave (list them, and map nothing to them), first
            (map to the first of them) or fail (end with an error).
        overlap: a passage survives a later corpus if at least this share of its word sequences is in one document
            there.
        words: length of these sequences.
    """

    duplicates: Literal["leave", "first", "fail"] = "leave"
    overlap: Annotated[float, Range(above=0, at_most=1)] = 0.8
    words: Annotated[int, Range(at_least=1)] = 5


class MapCounts(NamedTuple):
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

    discarded: Proportion
    levels: Mapping[float, float]
    kinds: Kinds | None
    documents: int

    def json(self) -> dict[str, Any]:
        levels = {f"{level:g}": share for level, share in self.levels.items()}
        return {
            "discarded": self.discarded.json(),
            "discarded_by_required_overlap": levels,
            **picked(self, "kinds, documents"),
        }


@dataclass(frozen=True, eq=False, repr=False)
class PassageMap(Result, shown_in="truerank.audits.survivorship.report"):
    """What the passages of a log are in a collection.

    Attributes:
        options: the choices.
        queries: of the log.
        shown: what became of all passages shown.
        selected: what became of the selected ones.
        lost: queries with a selected passage that have none in the collection; None where no collection was given.
        table_counts: of the collection.
        later: what a later corpus keeps, where one was given.
        counts: what was read of the log.
        mapping: the texts that were found, columns as in `MAPPING_SCHEMA`.
        survival: the queries with a selected passage, columns as in `SURVIVAL_SCHEMA`.
        duplicates: ids of passages of the collection that share a text, in groups.
        out: the folder that it was written to.
    """

    options: MapOptions
    queries: int
    shown: MapCounts
    selected: MapCounts
    lost: Proportion | None
    table_counts: Mapping[str, int]
    later: LaterLoss | None
    counts: LogCounts
    mapping: pl.DataFrame = field(default_factory=pl.DataFrame)
    survival: pl.DataFrame = field(default_factory=pl.DataFrame)
    duplicates: tuple[tuple[str, ...], ...] = ()
    out: Path | None = None

    @property
    def survivors(self) -> int:
        """How many queries have a selected passage."""
        return len(self.survival)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return picked(self, "queries, survivors, shown, selected, lost, collection=table_counts, later, log=counts")


@command
def map(  # noqa: A001
    log: Annotated[str | Path, Flag(metavar="[NAME=]SRC", reads=str)],
    docs: Annotated[str | None, Flag(metavar="SRC")] = None,
    later: Annotated[str | None, Flag(metavar="SRC")] = None,
    *,
    options: MapOptions = MapOptions(),
    out: Out = None,
    progress: Progress | None = None,
) -> PassageMap:
    """Gives the passages of an annotation log the ids they have in a collection, by their texts.

    Texts are equal after repairing UTF-8 that was read as latin-1. What is not mapped is listed in unmatched.jsonl,
    passages with the same text in duplicates.tsv, the ids in mapping.parquet, the queries in survival.parquet, with a
    later corpus also in later-survived.txt and later-discarded.txt.

    Args:
        log: an annotation log; it has to hold texts.
        docs: the collection, such as MS MARCO's passages; its texts are held as 128-bit keys.
        later: a later corpus: a query is lost unless a selected passage overlaps with one of its documents, as when MS
            MARCO's second version was made.
        options: what happens to texts that are there twice, and how much of a passage has to overlap.
        out: a folder for the mapping and what is not mapped.
        progress: is told about the work.

    Returns:
        The counts, the mapping, and the queries with what became of their passages.

    Raises:
        InputError: a fault in a source; neither collection nor later corpus; repeated texts, where they are an error.

    Examples:

        truerank survivorship map --log dev_v2.1.json.gz --docs collection.tsv --out map/

        truerank survivorship map --log train_v2.1.json.gz --docs irds:msmarco-passage --later irds:msmarco-passage-v2
        --out map/

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 2.
    """
    if docs is None and later is None:
        raise InputError("nothing to map to", "give `docs`, `later`, or both", where="survivorship map")
    progress = progress or Quiet()
    name, spec = named_source(log)
    source = open_annotations(spec)
    if out is None:
        return _mapped(source, (docs, later), options, progress, None)
    with started("survivorship map", inputs_of(docs=docs, later=later), {"options": options}, out) as job:
        result = _mapped(source, (docs, later), options, progress, job)
        job.read(input_of_log(name, source))
        job.skipped = left_out(source.log_counts)
        publish(result, job)
    return result


def _mapped(
    source: AnnotationLog,
    corpora: tuple[str | None, str | None],
    options: MapOptions,
    progress: Progress,
    job: Run | None,
) -> PassageMap:
    """The mapping; passages without one are written to the run as they are found, since there may be millions."""
    docs, later = corpora
    table = None
    if docs is not None:
        table = passage_table(open_documents(docs), unique=options.duplicates == "fail", progress=progress)
    found = _Matching(table, options, keep_texts=later is not None)
    progress.start("queries of the log")
    with _unmatched(job) as target:
        for block in source.blocks(_QUERIES):
            found.add(block, target)
            progress.advance(len(block))
    survival, loss = found.survival(), None
    if later is not None:
        survival, loss = _later(found, survival, later, options, progress)
    unplaced = int((survival["mapped"] == 0).sum())
    return PassageMap(
        options=options,
        queries=found.queries,
        shown=MapCounts(*found.shown.tolist()),
        selected=MapCounts(*found.selected.tolist()),
        lost=None if table is None else proportion(unplaced, len(survival)),
        table_counts={} if table is None else table.json(),
        later=loss,
        counts=source.log_counts,
        mapping=found.mapping(),
        survival=survival,
        duplicates=() if table is None else tuple(tuple(group) for group in table.groups()),
        out=None if job is None else job.folder,
    )


@contextmanager
def _unmatched(job: Run | None) -> Iterator[IO[str]]:
    if job is None:
        with Path(os.devnull).open("w", encoding="utf-8") as target:
            yield target
    else:
        with job.stream("unmatched.jsonl") as path, path.open("w", encoding="utf-8", newline="\n") as target:
            yield target


class _Matching:
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
        if self._table is None:
            return pl.DataFrame(schema=MAPPING_SCHEMA)
        keys = self._table.keys[self._seen]
        ids = self._table.ids.filter(pl.Series(self._seen))
        columns = {"key_high": keys[:, 0], "key_low": keys[:, 1], "doc_id": ids}
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
    found: _Matching, survival: pl.DataFrame, later: str, options: MapOptions, progress: Progress
) -> tuple[pl.DataFrame, LaterLoss]:
    documents = open_documents(later)
    index = overlap_index(found.texts, options.words)
    shares = overlaps(index, documents, progress)
    best = np.zeros(len(survival))
    np.maximum.at(best, np.array(found.text_owners, np.int64), shares)
    survival = survival.with_columns(pl.Series("overlap", best))
    lost = best < options.overlap
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
    loss = LaterLoss(proportion(int(lost.sum()), len(best)), levels, kinds, documents.counts.read)
    return survival, loss

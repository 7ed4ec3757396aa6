"""`truerank survivorship triples`: training triples as they would be had fewer documents been shown to annotators."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from itertools import chain, islice
from pathlib import Path
from typing import IO, Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.survivorship.depths import ALL, ShownDepths, ShownOptions, depth_batches, depths_file
from truerank.audits.survivorship.instances import Instance, InstanceSource, open_instances
from truerank.audits.survivorship.mapping import Keys, hex_keys, keys_of, lookup, sorted_keys
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError
from truerank.options import Flag, Out, Range, command
from truerank.records import Input
from truerank.sources.distinct import text_hashes
from truerank.sources.inputs import inputs_of
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import Run
from truerank.work.runs import run as started

#: `triples.parquet`: the training instances with the depth, from 1, at which the relevant document was shown.
TRIPLE_SCHEMA: Final[dict[str, Any]] = {**dict.fromkeys(Instance._fields, pl.String), "depth": pl.Int64}
_BLOCK: Final = 1 << 14
_GROUP: Final = 1 << 16


@dataclass(frozen=True)
class TriplesOptions(ShownOptions):
    """Which training triples stay.

    Attributes:
        shown: the depths to count, numbers of documents shown; all is always added. In Python a sequence.
        pairs_by: how the pair of a triple is looked up: by its id, by its text, or auto (by ids where it has them).
        tsv: also write triples-K.tsv for each depth: query, relevant, non-relevant; ids where pairs were looked up by
            id and all have them, else texts.
        limit: reading stops once the shallowest depth has so many triples, so that every depth has at least as many; by
            default everything is read.
    """

    shown: ShownDepths = "1,5"
    pairs_by: Literal["auto", "id", "text"] = "auto"
    tsv: bool = False
    limit: Annotated[int | None, Range(at_least=1), Flag(metavar="N")] = None


class TripleCount(NamedTuple):
    label: str
    triples: int
    pairs: int
    queries: int


@dataclass(frozen=True, eq=False, repr=False)
class Triples(Result, shown_in="truerank.audits.survivorship.report"):
    """Training triples by annotation depth.

    Attributes:
        options: the choices.
        read: triples of the stream that were read: all, or those up to the limit.
        levels: what is left, by depth.
        unknown: triples whose relevant pair has no judgment in the log; they are left out.
        unplaced: triples whose relevant document the log did not show; they are left out.
        by: how pairs were looked up: "id" or "text".
        instances: the stream as the manifest has it.
        out: the folder that it was written to.
    """

    options: TriplesOptions
    read: int
    levels: tuple[TripleCount, ...]
    unknown: int
    unplaced: int
    by: str
    instances: Input
    out: Path | None = None

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return picked(self, "read, limit=options.limit, by, depths=levels, unknown, unplaced")


@command
def triples(
    instances: Annotated[str, Flag(metavar="SRC")],
    depths: Annotated[str | Path, Flag(metavar="DIR", reads=Path)],
    *,
    options: TriplesOptions = TriplesOptions(),
    out: Out = None,
    progress: Progress | None = None,
) -> Triples:
    """Filters training triples by the depth at which their relevant document was shown.

    Order and non-relevant documents stay. The table triples.parquet has a column depth, by which instances build --kind
    by-depth chooses.

    Args:
        instances: training triples: MS MARCO's, of ids or texts, or a table of instances; ids need no texts.
        depths: the folder that survivorship depth wrote.
        options: the depths, and how pairs are looked up.
        out: a folder for triples.parquet, summary.json and manifest.json.
        progress: is told about the work.

    Returns:
        The counts.

    Raises:
        InputError: a fault in a source; no pair of the stream is judged; nothing to look pairs up by.

    Examples:

        truerank survivorship triples --instances triples.train.small.tsv --depths depths/ --pairs-by text
        --out triples/

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 5.1.
    """
    source = open_instances(instances)
    stream = iter(source)
    head = list(islice(stream, 1))
    by = options.pairs_by
    if by == "auto":
        by = "id" if head and head[0].query_id and head[0].relevant_id else "text"
    positions = _Positions(depths, by)
    if not len(positions):
        fault = f"the judgments have no {'ids' if by == 'id' else 'texts'}"
        raise InputError(fault, "use a log that has them, or choose `pairs_by`", where=depths)
    progress = progress or Quiet()
    progress.start("training triples")
    found = _Filtered(positions, options)
    every = chain(head, stream)
    if out is None:
        while not found.enough and (block := list(islice(every, _BLOCK))):
            found.part(block)
            progress.advance(len(block))
        return _counts(found, options, source)
    read = inputs_of(depths=depths_file(depths))
    with started("survivorship triples", read, {"options": options}, out) as job:
        _write_all(job, found, every, progress)
        result = replace(_counts(found, options, source), out=Path(out))
        job.read(result.instances)
        job.skipped = {"unknown": result.unknown, "unplaced": result.unplaced}
        publish(result, job)
    return result


def _counts(found: _Filtered, options: TriplesOptions, source: InstanceSource) -> Triples:
    if not found.kept[-1]:
        raise InputError("no relevant pair of the triples is judged in the log", "give its own", where=source.spec.spec)
    read = Input(source.spec.name, source.spec.spec, "instances", found.read, found.fingerprint or source.fingerprint)
    return Triples(options, found.read, found.levels(), found.unknown, found.unplaced, found.by, read)


class _Positions:
    """Where the documents of judged pairs were shown, by the pair's key."""

    def __init__(self, depths: str | Path, by: str) -> None:
        columns = ("topic_id", "doc_id") if by == "id" else ("topic_key", "doc_key")
        # Streamed, and texts become numbers: a log of eight million pairs would else take gigabytes.
        parts: list[tuple[Keys, NDArray[np.int32], NDArray[np.uint64]]] = []
        for batch in depth_batches(depths, (*columns, "position")):
            frame = batch.drop_nulls(columns)
            positions = frame["position"].fill_null(-1).cast(pl.Int32).to_numpy()
            parts.append(
                (_pair_keys(frame.select(columns).iter_rows()), positions, text_hashes(frame[columns[0]].to_list()))
            )
        keys, positions, topics = (np.concatenate(column) for column in zip(*parts, strict=True))
        del parts
        order = sorted_keys(keys)
        self.by = by
        self._keys, self.positions, self.topics = keys[order], positions[order], topics[order]

    def __len__(self) -> int:
        return len(self._keys)

    def rows(self, block: Sequence[Instance]) -> NDArray[np.int64]:
        if self.by == "id":
            return lookup(self._keys, _pair_keys((one.query_id, one.relevant_id) for one in block))
        queries = hex_keys(keys_of(one.query for one in block))
        documents = hex_keys(keys_of(one.relevant for one in block))
        return lookup(self._keys, _pair_keys(zip(queries, documents, strict=True)))


def _pair_keys(pairs: Iterable[tuple[Any, ...]]) -> Keys:
    joined = b"".join(
        blake2b(f"{topic}\0{document}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for topic, document in pairs
    )
    return np.frombuffer(joined, ">u8").reshape(-1, 2).astype(np.uint64)


class _Part(NamedTuple):
    instances: list[Instance]
    depths: NDArray[np.int64]


class _Filtered:
    def __init__(self, positions: _Positions, options: TriplesOptions) -> None:
        depths, limit = options.depths, options.limit
        self.tsv, self.labels = options.tsv, options.labels
        self.read = self.unknown = self.unplaced = 0
        self._limit = limit
        # Of what was read only: the hash of the whole file would read it to its end.
        self._together = None if limit is None else sha256()
        self.kept = np.zeros(len(depths) + 1, np.int64)
        self._positions = positions
        self._depths = depths
        self._times = np.zeros(len(positions), bool)

    @property
    def by(self) -> str:
        return self._positions.by

    @property
    def fingerprint(self) -> str:
        """The identity of the triples up to the limit; empty where all are read."""
        return "" if self._together is None else f"rows:{self._together.hexdigest()};rows={self.read}"

    @property
    def enough(self) -> bool:
        return self._limit is not None and int(self.kept[0]) >= self._limit

    def part(self, block: list[Instance]) -> _Part:
        """The triples of a block whose relevant document was shown, with its depth; up to the limit."""
        rows = self._positions.rows(block)
        positions = np.where(rows >= 0, self._positions.positions[rows], -1)
        if self._limit is not None:
            shallow = (positions >= 0) & (positions < (self._depths[0] if self._depths else np.inf))
            # Up to the triple that fills it, wherever blocks end.
            until = int(np.searchsorted(shallow.cumsum(), self._limit - int(self.kept[0]))) + 1
            block, rows, positions = block[:until], rows[:until], positions[:until]
        if self._together is not None:
            for one in block:
                self._together.update(json.dumps(one).encode())
        self.read += len(block)
        self.unknown += int((rows < 0).sum())
        self.unplaced += int(((rows >= 0) & (positions < 0)).sum())
        kept = np.flatnonzero(positions >= 0)
        depths = positions[kept] + 1
        self.kept += [*((depths <= depth).sum() for depth in self._depths), len(kept)]
        self._times[rows[kept]] = True
        return _Part([block[i] for i in kept.tolist()], depths)

    def levels(self) -> tuple[TripleCount, ...]:
        found = []
        for label, kept in zip(self.labels, self.kept.tolist(), strict=True):
            inside = self._times if label == ALL else self._times & (self._positions.positions < int(label))
            queries = len(np.unique(self._positions.topics[inside]))
            found.append(TripleCount(label, kept, int(inside.sum()), queries))
        return tuple(found)


def _write_all(job: Run, found: _Filtered, stream: Iterator[Instance], progress: Progress) -> None:
    """Writes what is left of the stream, block by block, and joins the blocks."""
    folder = job.work / "triples"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths: list[Path] = []
        with ExitStack() as stack:
            files: dict[str, IO[str]] = {}
            for label in found.labels if found.tsv else ():
                path = stack.enter_context(job.stream(f"triples-{label}.tsv"))
                files[label] = stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
            while not found.enough and (block := list(islice(stream, _BLOCK))):
                paths.append(_write(folder / f"{len(paths):06d}.parquet", found.part(block), files, found.by))
                progress.advance(len(block))
        frames = [pl.scan_parquet(path, glob=False) for path in paths] or [pl.LazyFrame(schema=TRIPLE_SCHEMA)]
        job.lazy_parquet("triples.parquet", pl.concat(frames), _GROUP)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(path: Path, part: _Part, files: Mapping[str, IO[str]], by: str) -> Path:
    rows = [(*(value or None for value in one), depth) for one, depth in zip(*part, strict=True)]
    frame = pl.DataFrame(rows, schema=TRIPLE_SCHEMA, orient="row")
    frame.write_parquet(path)
    for label, file in files.items():
        chosen = range(len(part.depths)) if label == ALL else np.flatnonzero(part.depths <= int(label)).tolist()
        file.writelines(_line(part.instances[i], by) for i in chosen)
    return path


def _line(one: Instance, by: str) -> str:
    ids = by == "id" and bool(one.nonrelevant_id)
    cells = (one.query_id, one.relevant_id, one.nonrelevant_id) if ids else (one.query, one.relevant, one.nonrelevant)
    return "\t".join(" ".join(cell.split()) for cell in cells) + "\n"

"""Training triples as they would be had fewer documents been shown to the annotators."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.survivorship.depths import ALL, open_depths
from truerank.audits.survivorship.keys import Keys, hex_keys, keys_of, lookup, sorted_keys
from truerank.audits.survivorship.options import TriplesOptions
from truerank.audits.survivorship.results import file_input, provenance
from truerank.errors import InputError
from truerank.rankers.training.instances import Instance, open_instances
from truerank.reports.tables import Column, Table
from truerank.work.artifacts import Artifacts
from truerank.work.progress import Progress, Quiet

__all__ = ["TRIPLE_SCHEMA", "TripleCount", "Triples", "triples"]

#: `triples.parquet`: the training instances with the depth, from 1, at which the relevant document was shown.
TRIPLE_SCHEMA: Final[dict[str, Any]] = {**dict.fromkeys(Instance._fields, pl.String), "depth": pl.Int64}
_DEFAULTS: Final = TriplesOptions()
_BLOCK: Final = 1 << 14
_GROUP: Final = 1 << 16


class TripleCount(NamedTuple):
    """What is left at one depth: triples, and distinct relevant pairs and queries among them."""

    label: str
    triples: int
    pairs: int
    queries: int


@dataclass(frozen=True)
class Triples:
    """The result of `survivorship.triples`.

    Attributes:
        options: the choices.
        read: triples of the stream that were read: all, or those up to the limit.
        levels: what is left, by depth.
        unknown: triples whose relevant pair has no judgment in the log; they are left out.
        unplaced: triples whose relevant document the log did not show; they are left out.
        by: how pairs were looked up: "id" or "text".
        inputs: for the manifest.
    """

    options: TriplesOptions
    read: int
    levels: tuple[TripleCount, ...]
    unknown: int
    unplaced: int
    by: str
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def table(self) -> Table:
        """Triples, pairs and queries by depth."""
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        columns = (
            Column("depth", align="right"),
            Column("triples", **number),
            Column("share", align="right", format=".1%"),
            Column("distinct pairs", **number),
            Column("queries", **number),
        )
        rows = tuple(
            (one.label, one.triples, one.triples / self.read if self.read else None, one.pairs, one.queries)
            for one in self.levels
        )
        notes = (
            f"Of {self.read:,} triples, in their order and with their non-relevant documents; looked up by {self.by}.",
            *self._limit_notes(),
            f"Left out: {self.unknown:,} whose relevant pair the log does not judge, {self.unplaced:,} whose relevant "
            "document it did not show.",
        )
        return Table("Training triples by simulated annotation depth", columns, rows, notes)

    def _limit_notes(self) -> tuple[str, ...]:
        limit, label = self.options.limit, self.levels[0].label
        if limit is None:
            return ()
        if self.levels[0].triples < limit:
            return (f"The stream ended before depth {label} had the {limit:,} triples that were asked for.",)
        return (f"Reading stopped when depth {label} had {limit:,} triples.",)

    def text(self) -> str:
        """The table for a terminal."""
        return self.table().text(120)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            "read": self.read,
            "limit": self.options.limit,
            "by": self.by,
            "depths": [one._asdict() for one in self.levels],
            "unknown": self.unknown,
            "unplaced": self.unplaced,
        }


def triples(
    instances: str,
    depths: str | Path,
    out: str | Path,
    *,
    tsv: bool = False,
    options: TriplesOptions = _DEFAULTS,
    progress: Progress | None = None,
) -> Triples:
    """Filters a stream of training triples by the depth at which the relevant document was shown.

    Writes `triples.parquet` (columns as in `TRIPLE_SCHEMA`, training order) as `instances build --kind by-depth` reads
    it, with `tsv` also `triples-K.tsv` for every depth (query, relevant, non-relevant: ids where pairs were looked up
    by id and all have them, else texts), `summary.json` and `manifest.json`.

    Args:
        instances: the stream, see `rankers.instances.open_instances`; ids need no texts.
        depths: the folder that `survivorship depth` wrote.
        out: the folder.
        tsv: also write a file of lines for each depth.
        options: the depths, and how pairs are looked up.
        progress: told about the work.

    Returns:
        The counts.

    Raises:
        InputError: a fault in a source; no pair of the stream is judged; nothing to look pairs up by.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 5.1.
    """
    source = open_instances(instances)
    judged = open_depths(depths)
    stream = iter(source.as_read())
    head = list(islice(stream, 1))
    by = options.by if options.by != "auto" else "id" if head and head[0].query_id and head[0].relevant_id else "text"
    positions = _Positions(judged, by)
    if not len(positions):
        fault = f"the judgments have no {'ids' if by == 'id' else 'texts'}"
        raise InputError(fault, "use a log that has them, or choose --by", where=depths)
    artifacts = Artifacts(out)
    told = progress or Quiet()
    told.start("training triples")
    found = _Filtered(positions, sorted(options.depths), options.limit)
    _write_all(artifacts, found, chain(head, stream), tsv=tsv, told=told)
    if not found.kept[-1]:
        raise InputError("no relevant pair of the triples is judged in the log", "give its own", where=instances)
    inputs = {
        "instances": {"source": instances, "fingerprint": found.fingerprint or source.fingerprint},
        "depths": file_input(str(Path(depths) / "depths.parquet" if Path(depths).is_dir() else depths)),
    }
    result = Triples(options, found.read, found.levels(), found.unknown, found.unplaced, by, inputs)
    artifacts.json("summary.json", result.json())
    artifacts.manifest(provenance("triples", inputs, options.json()))
    return result


class _Positions:
    """Where the documents of judged pairs were shown, by the pair's key."""

    def __init__(self, judged: pl.DataFrame, by: str) -> None:
        columns = ("topic_id", "doc_id") if by == "id" else ("topic_key", "doc_key")
        judged = judged.drop_nulls(columns)
        keys = _pair_keys(judged.select(columns).iter_rows())
        order = sorted_keys(keys)
        self.by = by
        self._keys = keys[order]
        self.positions = judged["position"].fill_null(-1).to_numpy()[order].astype(np.int64)
        self.topics = judged[columns[0]].rank("dense").to_numpy()[order].astype(np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    def rows(self, block: Sequence[Instance]) -> NDArray[np.int64]:
        """The row of each instance's relevant pair, -1 where it is not judged."""
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
    """What is left of a stream, and the counts."""

    def __init__(self, positions: _Positions, depths: Sequence[int], limit: int | None) -> None:
        self.read = self.unknown = self.unplaced = 0
        self._limit = limit
        # Of what was read only: the hash of the whole file would read it to its end.
        self._together = None if limit is None else sha256()
        self.kept = np.zeros(len(depths) + 1, np.int64)
        self._positions = positions
        self._depths = depths
        self._times = np.zeros(len(positions), bool)

    @property
    def labels(self) -> tuple[str, ...]:
        """The depths as they are called."""
        return (*map(str, self._depths), ALL)

    @property
    def by(self) -> str:
        """How pairs are looked up."""
        return self._positions.by

    @property
    def fingerprint(self) -> str:
        """The identity of the triples up to the limit; empty where all are read."""
        return "" if self._together is None else f"rows:{self._together.hexdigest()};rows={self.read}"

    @property
    def enough(self) -> bool:
        """Whether the shallowest depth has as many triples as were asked for."""
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
        """The counts by depth."""
        found = []
        for label, kept in zip(self.labels, self.kept.tolist(), strict=True):
            inside = self._times if label == ALL else self._times & (self._positions.positions < int(label))
            queries = len(np.unique(self._positions.topics[inside]))
            found.append(TripleCount(label, kept, int(inside.sum()), queries))
        return tuple(found)


def _write_all(
    artifacts: Artifacts, found: _Filtered, stream: Iterator[Instance], *, tsv: bool, told: Progress
) -> None:
    """Writes what is left of the stream, block by block, and joins the blocks."""
    folder = artifacts.work / "triples"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths: list[Path] = []
        with ExitStack() as stack:
            files: dict[str, IO[str]] = {}
            for label in found.labels if tsv else ():
                path = stack.enter_context(artifacts.stream(f"triples-{label}.tsv"))
                files[label] = stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
            while not found.enough and (block := list(islice(stream, _BLOCK))):
                paths.append(_write(folder / f"{len(paths):06d}.parquet", found.part(block), files, found.by))
                told.advance(len(block))
        frames = [pl.scan_parquet(path, glob=False) for path in paths] or [pl.LazyFrame(schema=TRIPLE_SCHEMA)]
        artifacts.lazy_parquet("triples.parquet", pl.concat(frames), _GROUP)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        artifacts.tidy()


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

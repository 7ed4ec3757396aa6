"""A built training set: its folder, what it holds, and its rows by size."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.errors import InputError
from truerank.experiments.instances.drawing import SCHEMA
from truerank.experiments.instances.options import FORMATS
from truerank.reports.tables import Column, Table
from truerank.text.normalising import normalise
from truerank.work.artifacts import Artifacts, atomic_path
from truerank.work.blocks import BlockStore

__all__ = ["ROWS", "TABLE", "Built", "export_instances", "export_name", "open_built", "write_rows"]

#: Rows that are held in memory at once, and rows of a group in the table.
ROWS: Final = 1000
_ENDINGS: Final = {
    "jsonl": "instances-{size}.jsonl",
    "parquet": "instances-{size}.parquet",
    "sentence-transformers": "sentence-transformers-{size}.jsonl",
    "triples": "triples-{size}.tsv",
}


def write_rows(artifacts: Artifacts, blocks: Iterator[pl.DataFrame], folder: Path, extra: dict[str, Any]) -> int:
    """Writes `instances.parquet`; only a block of rows is in memory at a time.

    Args:
        artifacts: of the set.
        blocks: frames with the columns of `SCHEMA` but `number`, and those of `extra`.
        folder: where the blocks lie meanwhile.
        extra: columns that only this kind of set has.

    Returns:
        The number of rows.
    """
    shutil.rmtree(folder, ignore_errors=True)
    store, schema = BlockStore(folder), {**SCHEMA, **extra}
    written = number = 0
    for block in blocks:
        numbers = pl.Series("number", range(written, written + len(block)), dtype=pl.Int64)
        store.save(number, block.with_columns(numbers).select(list(schema)))
        written, number = written + len(block), number + 1
    if not number:
        store.remove()
        return 0
    files = [folder / f"{place:08d}.arrow" for place in range(number)]
    artifacts.lazy_parquet(TABLE, pl.scan_ipc(files, glob=False), ROWS)
    store.remove()
    return written


def export_name(form: str, size: int) -> str:
    """The name of the file that holds a size in a format."""
    return _ENDINGS[form].format(size=size)


def export_instances(built: Built | str | Path, form: str, out: str | Path, size: int | None = None) -> Path:
    """Writes a set, or the beginning of one, as other programs read it.

    `jsonl` and `parquet` hold all columns; `sentence-transformers` is JSONL with anchor, positive, negative; `triples`
    is TSV of query, relevant, non-relevant text as MS MARCO has it, in which tabs and line ends of the texts become
    blanks.

    Args:
        built: the set or its folder.
        form: one of `FORMATS`.
        out: the file.
        size: in instances; None for the whole set.

    Raises:
        InputError: an unknown format, or a size that the set does not have.
    """
    set_ = built if isinstance(built, Built) else open_built(built)
    if form not in FORMATS:
        raise InputError(f"no format called '{form}'", f"one of {', '.join(FORMATS)}", where="--format")
    rows = set_.rows if size is None else size // 2
    if size is not None and (size % 2 or not 0 < rows <= set_.rows):
        fault = f"there are {2 * set_.rows:,} instances, not {size:,}"
        raise InputError(fault, "give an even number up to that", where=set_.folder)
    target = Path(out)
    frame = set_.lazy().head(rows)
    with atomic_path(target) as temporary:
        if form == "parquet":
            frame.sink_parquet(temporary, compression="zstd", statistics=True, row_group_size=ROWS, maintain_order=True)
        else:
            with temporary.open("w", encoding="utf-8", newline="\n") as stream:
                for line in _lines(frame, form):
                    stream.write(line)
    return target


def _lines(frame: pl.LazyFrame, form: str) -> Iterator[str]:
    texts = ["query", "relevant", "nonrelevant"]
    wanted = frame if form == "jsonl" else frame.select(texts)
    for block in wanted.collect_batches(chunk_size=ROWS, maintain_order=True):
        for row in block.iter_rows(named=True):
            if form == "triples":
                yield "\t".join(normalise(row[name]) for name in texts) + "\n"
            elif form == "sentence-transformers":
                names = zip(("anchor", "positive", "negative"), texts, strict=True)
                yield json.dumps({name: row[text] for name, text in names}, ensure_ascii=False) + "\n"
            else:
                yield json.dumps(row, ensure_ascii=False) + "\n"


TABLE: Final = "instances.parquet"
COMMAND: Final = "instances build"


@dataclass(frozen=True)
class Built:
    """A training set on the disk.

    Attributes:
        folder: where it lies; `DIR?size=N` is an instance source for every training.
        kind: none, leak, test, by-depth or by-version.
        sizes: in instances (pairs of a query and a document), ascending: a set of size N has N/2 rows.
        seed: of all choices.
        manifest: all that `manifest.json` holds.
    """

    folder: Path
    kind: str
    sizes: tuple[int, ...]
    seed: int
    manifest: Mapping[str, Any]

    @property
    def rows(self) -> int:
        """Rows of the largest size."""
        return int(self.manifest["rows"])

    def lazy(self) -> pl.LazyFrame:
        """The rows of the largest size, in order, not yet read; columns as in `drafts.SCHEMA`."""
        return pl.scan_parquet(self.folder / TABLE, glob=False)

    def json(self) -> dict[str, Any]:
        """The manifest, and the folder."""
        return {"folder": str(self.folder), **self.manifest}

    def table(self) -> Table:
        """The rows of each size by where they come from."""
        counts = self.manifest["counts"]["by_size"]
        groups = list(dict.fromkeys(group for own in counts.values() for group in own))
        skipped = [f"Not used: {number:,} {reason}." for reason, number in self.manifest["skipped"].items()]
        return Table(
            f"Training set of the kind {self.kind}, seed {self.seed}: rows by size",
            (
                Column("instances", align="right", format=",d"),
                Column("rows", align="right", format=",d"),
                *(Column(group, align="right", format=",d") for group in groups),
            ),
            tuple(
                (int(size), int(size) // 2, *(own.get(group, 0) for group in groups)) for size, own in counts.items()
            ),
            notes=(
                "An instance is a pair of a query and a document; a row is a query with a relevant and a non-relevant "
                "one. Each size is the beginning of the next.",
                *self.manifest["notes"],
                *skipped,
            ),
        )

    def text(self) -> str:
        """The table in plain characters."""
        return f"{self.table().text()}\nwritten: {self.folder / TABLE}\n"


def open_built(folder: str | Path) -> Built:
    """Opens the folder that `instances build` wrote.

    Raises:
        InputError: there is none, or it is broken.
    """
    folder = Path(folder)
    remedy = "give the folder that 'truerank instances build --out' wrote to the end"
    try:
        manifest: Any = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("no training set there", remedy, where=folder) from error
    except ValueError as error:
        raise InputError("no valid JSON", remedy, where=folder / "manifest.json") from error
    if not isinstance(manifest, dict) or manifest.get("command") != COMMAND:
        raise InputError("no manifest of a training set", remedy, where=folder / "manifest.json")
    if not (folder / TABLE).is_file():
        raise InputError(f"no {TABLE} here", remedy, where=folder)
    return Built(folder, manifest["kind"], tuple(manifest["sizes"]), manifest["seed"], manifest)

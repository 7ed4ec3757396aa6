"""A built training set: its folder, and what it holds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.core.result import Result, Summary, summarises
from truerank.core.tables import Column, Table
from truerank.errors import InputError
from truerank.loading import json_file
from truerank.work.artifacts import Artifacts, written_by
from truerank.work.blocks import BlockStore
from truerank_lab.instances.draws import SCHEMA

TABLE: Final = "instances.parquet"
#: What is said of the set besides its rows.
SUMMARY: Final = "summary.json"
COMMAND: Final = "instances build"
_REMEDY: Final = "give the folder that 'truerank-lab build --out' wrote to the end"
#: Rows that are held in memory at once, and rows of a group in the table.
ROWS: Final = 1000


def write_rows(artifacts: Artifacts, blocks: Iterator[pl.DataFrame], folder: Path, extra: dict[str, Any]) -> int:
    """Writes `instances.parquet`; only a block of rows is in memory at a time."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Built(Result, shown_in="truerank_lab.instances.built"):
    """A training set on the disk.

    Attributes:
        folder: where it lies; `DIR?size=N` is an instance source for every training.
        kind: none, leak, test or by-depth.
        sizes: in instances (pairs of a query and a document), ascending: a set of size N has N/2 rows.
        seed: of all choices.
        about: all that `summary.json` holds: options, inputs, counts and what could not be used.
        artifacts: the files with their hashes.
    """

    folder: Path
    kind: str
    sizes: tuple[int, ...]
    seed: int
    about: Mapping[str, Any]
    artifacts: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return int(self.about["rows"])

    def lazy(self) -> pl.LazyFrame:
        """The rows of the largest size, in order, not yet read; columns as in `draws.SCHEMA`."""
        return pl.scan_parquet(self.folder / TABLE, glob=False)


def open_built(folder: str | Path) -> Built:
    """Opens the folder that `build` wrote.

    Raises:
        InputError: there is none, or it is broken.
    """
    folder = Path(folder)
    if not (folder / SUMMARY).is_file():
        raise InputError("no training set there", _REMEDY, where=folder)
    manifest, about = (json_file(folder / name, _REMEDY) for name in ("manifest.json", SUMMARY))
    if not isinstance(manifest, dict) or manifest.get("command") != COMMAND:
        raise InputError("no manifest of a training set", _REMEDY, where=folder / "manifest.json")
    if not (folder / TABLE).is_file():
        raise InputError(f"no {TABLE} here", _REMEDY, where=folder)
    with written_by(COMMAND, folder, SUMMARY):
        sizes = tuple(int(size) for size in about["sizes"])
        table = pl.scan_parquet(folder / TABLE, glob=False)
        there = table.collect_schema()
        if wrong := [name for name, kind in SCHEMA.items() if there.get(name) != kind]:
            raise ValueError(f"column '{wrong[0]}' of {TABLE} is missing, or of another type")
        table.select(pl.all().null_count()).collect()
        return Built(folder, about["kind"], sizes, about["seed"], about, dict(manifest["artifacts"]))


@summarises(Built)
def _built(built: Built) -> Summary:
    about = built.about
    counts = about["counts"]["by_size"]
    groups = list(dict.fromkeys(group for own in counts.values() for group in own))
    table = Table(
        f"Training set of the kind {built.kind}, seed {built.seed}: rows by size",
        Column.numbers(",d", "instances", "rows", *groups),
        tuple((int(size), int(size) // 2, *(own.get(group, 0) for group in groups)) for size, own in counts.items()),
        notes=(
            "An instance is a pair of a query and a document; a row is a query with a relevant and a non-relevant one. "
            "Each size is the beginning of the next.",
            *about["notes"],
            *(f"Not used: {number:,} {reason}." for reason, number in about["skipped"].items()),
        ),
    )
    facts = {"folder": str(built.folder), **about, "artifacts": dict(built.artifacts)}
    return Summary((table, f"written: {built.folder / TABLE}"), facts)

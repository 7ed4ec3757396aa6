"""A built training set: its folder, what it holds, and its rows by size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.errors import InputError
from truerank.reports.tables import Column, Table

__all__ = ["TABLE", "Built", "open_built"]

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

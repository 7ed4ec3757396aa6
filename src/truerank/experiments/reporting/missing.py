"""What a grid has not finished, as a table and in words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import polars as pl

from truerank.errors import InputError
from truerank.experiments.grid.results import GridResults, cell_folder
from truerank.experiments.reporting.board import size_name
from truerank.loading import json_file
from truerank.reports.tables import Column, Table

__all__ = ["grid_table", "missing_sentences"]

_NAMED: Final = 8


def grid_table(results: GridResults) -> Table:
    """One row per training set and model: how many cells are finished, failed and missing, by size where any is not."""
    columns = (
        Column("training set"),
        Column("kind"),
        Column("model"),
        *(Column(name, ("cells",), align="right", format=",d") for name in ("planned", "done", "failed", "missing")),
        Column("not finished"),
    )
    rows = []
    for (name, kind, model), cells in results.cells.group_by("set", "kind", "model", maintain_order=True):
        counts = {status: int((cells["status"] == status).sum()) for status in ("done", "failed", "missing")}
        rows.append((name, kind, model, len(cells), *counts.values(), _open(cells)))
    starts = tuple(place for place in range(1, len(rows)) if rows[place - 1][0] != rows[place][0])
    notes = (
        "A cell is one training: a training set in one size, a model, a seed; or a checkpoint that is tested without "
        "training. Sizes are in instances: a query with one relevant and one non-relevant document is two.",
    )
    return Table("The grid behind this report.", columns, tuple(rows), notes, starts)


def missing_sentences(results: GridResults) -> tuple[str, ...]:
    """What is not there, one sentence each; empty where everything is."""
    return tuple(_sentences(results))


def _sentences(results: GridResults) -> Iterator[str]:
    cells = results.cells
    open_cells = cells.filter(pl.col("status") != "done")
    if not open_cells.height:
        return
    failed = cells.filter(pl.col("status") == "failed")
    yield (
        f"The grid is not finished: {len(cells) - len(open_cells):,} of {len(cells):,} cells are done, "
        f"{len(failed):,} failed, {len(open_cells) - len(failed):,} are missing. Tables hold what is there."
    )
    groups = list(open_cells.group_by("set", "model", maintain_order=True))
    for (name, model), own in groups[:_NAMED]:
        yield f"Not finished of {model} on {name}: {_open(own)}."
    if len(groups) > _NAMED:
        yield f"And of {len(groups) - _NAMED:,} more training sets and models; see the table of the grid."
    for row in failed.head(_NAMED).iter_rows(named=True):
        what = f"{row['model']} on {row['set']}, {size_name(row['size'])} instances, seed {row['seed']}"
        yield f"Failed: {what}{_reason(results, row['cell'])}."


def _open(cells: pl.DataFrame) -> str:
    """Sizes of which not all seeds are finished, with the seeds."""
    left = cells.filter(pl.col("status") != "done").sort("size", "seed", maintain_order=True)
    parts = []
    for (size,), own in left.group_by("size", maintain_order=True):
        seeds = ", ".join(map(str, own["seed"].unique().sort().to_list()))
        parts.append(f"{size_name(int(str(size)))} (seed {seeds})")
    return "; ".join(parts)


def _reason(results: GridResults, address: str) -> str:
    """Why a cell failed, with a colon before it; empty where nothing says so."""
    with contextlib.suppress(InputError, KeyError, TypeError):
        found = json_file(cell_folder(results.folder, address) / "failed.json")
        reason = " ".join(str(found["reason"]).split()).rstrip(".")
        return f": {reason[:200]}"
    return ""

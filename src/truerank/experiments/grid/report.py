"""What the commands on grids print."""

from __future__ import annotations

from typing import Final

import polars as pl

from truerank.core.verdict import Verdict
from truerank.experiments.grid.costs import CostEstimate
from truerank.experiments.grid.results import cell_folder
from truerank.experiments.grid.running import STATES, GridRun, GridStatus
from truerank.experiments.grid.working import LOG_FILE
from truerank.reports.results import Summary, summarises
from truerank.reports.tables import Column, Table

#: Failures that are named.
_NAMED: Final = 5


@summarises(GridStatus)
def _status(found: GridStatus) -> Summary:
    failed = found.failed
    lines = [f"failed: {cell_folder(found.folder, address) / LOG_FILE}: {why}" for address, why in failed[:_NAMED]]
    if len(failed) > _NAMED:
        lines.append(f"and {len(failed) - _NAMED:,} others, see record.parquet")
    if failed:
        lines.append("The others are not concerned; --retry-failed runs these again.")
    facts = {
        "folder": str(found.folder),
        "name": found.name,
        "cells": found.cells,
        "failed": [{"cell": address, "reason": reason} for address, reason in failed],
        "notes": list(found.notes),
    }
    verdicts = (Verdict("failed", f"{found.cells['failed']:,} cells failed."),) if failed else ()
    return Summary((_cells_table(found), *(["\n".join(lines)] if lines else [])), facts, verdicts)


@summarises(GridRun)
def _run(found: GridRun) -> Summary:
    estimate = found.estimate
    if found.only_costed and estimate is not None:
        return Summary((cost_table(estimate), estimate.sentence()), estimate.json())
    shown = _status(found)
    facts = {**shown.json, "estimate": None if estimate is None else estimate.json()}
    notes = (f"results: {found.folder}; truerank experiment report {found.folder}",)
    return Summary(shown.parts, facts, shown.verdicts, notes)


def _cells_table(found: GridStatus) -> Table:
    """How many cells of each model and set are done."""
    counted = (
        found.record.group_by("model", "set", maintain_order=True)
        .agg(pl.len().alias("cells"), *((pl.col("status") == one).sum().alias(one) for one in STATES))
        .rows()
    )
    columns = (Column("model"), Column("set"), *Column.numbers(",d", "cells", *STATES))
    return Table(f"{found.name}: cells", columns, tuple(counted), notes=found.notes)


def cost_table(estimate: CostEstimate) -> Table:
    """What is left, by model."""
    columns = (
        Column("model"),
        Column("runs", align="right", format=",d"),
        *Column.numbers(",.1f", "shortest (s)", "longest (s)"),
        Column("hours of one worker", align="right", format=",.3f"),
        Column("known from"),
    )
    rows = tuple((one.model, one.trainings, one.smallest, one.largest, one.hours, one.known) for one in estimate.models)
    return Table("What is left to be run", columns, rows)

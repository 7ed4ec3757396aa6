"""Running a grid: what it will cost, then cell by cell, going on from where a run ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import polars as pl

from truerank.core.plain import picked
from truerank.core.result import Result, Summary, summarises
from truerank.core.tables import Column, Table
from truerank.core.verdict import Verdict
from truerank.core.views import View, columns
from truerank.options import Flag, Options, Processes, command
from truerank.sources.inputs import inputs_of
from truerank.work.engines import Lost, open_engine, processors
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import plain
from truerank.work.runs import run as started
from truerank_lab.grid.design import Design, expand, read_design
from truerank_lab.grid.plan import Training, make_plan
from truerank_lab.grid.results import (
    DESIGN_FILE,
    LEAKED_FILE,
    RECORD_FILE,
    RECORD_SCHEMA,
    STATES,
    GridResults,
    cell_folder,
    is_done,
    write_failed,
    write_plan,
    write_record,
)  # fmt: skip
from truerank_lab.grid.worker import TrainAndScore
from truerank_lab.ready import ready

_PACKAGES: Final = ("torch", "transformers")
_HOUR: Final = 3600.0


@dataclass(frozen=True)
class RunOptions(Options):
    """Where the grid is run; nothing of it but the device decides about results.

    Attributes:
        engine: local (processes of this machine), ray (a cluster on this machine) or ray:ADDRESS.
        workers: trainings at a time; by default one for each processor, or as many as the cluster has room for.
        device: cpu, cuda, cuda:1; by default a GPU where there is one, except for small models. On a cluster, cuda
            asks for GPUs.
    """

    engine: Annotated[str, Flag(metavar="local|ray[:ADDRESS]")] = "local"
    workers: Processes | None = None
    device: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class GridRun(Result, shown_in="truerank_lab.grid.execution"):
    """How far a grid is.

    Attributes:
        folder: of the results.
        record: one row for each cell, see `results.RECORD_SCHEMA`.
        failed: address and reason of the cells that failed.
        notes: what was left out of collections and why.
        costs: of a dry run, what is left to be run: see `left_to_run`.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("failed",)
    fails_on: ClassVar[str] = "failed"

    folder: Path
    name: str
    record: pl.DataFrame
    failed: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    costs: pl.DataFrame | None = None

    @property
    def cells(self) -> dict[str, int]:
        """How many cells there are, and how many of each state."""
        return {"all": len(self.record)} | {one: int((self.record["status"] == one).sum()) for one in STATES}


@command
def run(
    design: Annotated[Design | str | Path, Flag(metavar="FILE|NAME", positional=True, reads=str)],
    *,
    dry_run: bool = False,
    options: RunOptions = RunOptions(),
    out: Annotated[str | Path, Flag(metavar="DIR", reads=Path)],
    progress: Progress | None = None,
) -> GridRun:
    """Runs the cells of a design that are not done: trains each model on each set, reranks, records.

    Every cell has an address that follows from all that decides its result: killed and called again, the run goes on,
    and no cell is run twice; nor is one where the design was extended. A cell that fails does not stop the others, and
    is tried again by the next run.

    Args:
        design: a design file, YAML, or the name of a ready one: leakage, leakage-small, pilot, transfer, survivorship.
        dry_run: say what it costs, and stop: nothing is trained or prepared.
        options: where it is run.
        out: the folder of the results.
        progress: receives progress updates.

    Returns:
        What became of each cell.

    Raises:
        InputError: a fault in the sources; another run is at work in the folder.
        MissingExtraError: what trains the models, or the engine, is not installed.

    Examples:

        truerank-lab run leakage-small --out grid/ --dry-run

        truerank-lab run design.yaml --out grid/ --workers 2

        truerank-lab run leakage --out /shared/grid --engine ray:auto --device cuda
    """
    wanted = design if isinstance(design, Design) else read_design(ready(str(design)))
    if dry_run:
        return GridRun(Path(out), wanted.name, pl.DataFrame(schema=RECORD_SCHEMA), costs=left_to_run(wanted, Path(out)))
    shown = progress or Quiet()
    local = options.engine == "local"
    engine = open_engine(options.engine, options.workers or (processors() if local else None), tolerant=True)
    with started("run", inputs_of(design=wanted.file), plain(options), out, packages=_PACKAGES) as job:
        folder = job.folder
        plan = make_plan(wanted, folder, shown)
        write_plan(folder, wanted, plan.cells, plan.leaked)
        trainings = _pending(plan.trainings, folder)
        by_number = {each.number: each for each in trainings}
        shown.start("trainings", len(trainings))
        try:
            for number, result in engine.run(TrainAndScore(folder.absolute(), options.device), trainings):
                if isinstance(result, Lost):
                    write_failed(folder, by_number[number].cell, result.reason)
                shown.advance(1)
        finally:
            # Also where it is interrupted: the record says what there is.
            record = write_record(folder, plan.cells)
        for name in (RECORD_FILE, DESIGN_FILE, LEAKED_FILE):
            job.note(name)
    return GridRun(folder, wanted.name, record, tuple(_failed(record, GridResults(folder))), plan.notes)


def _pending(trainings: Sequence[Training], out: Path) -> list[Training]:
    """What is not done, the largest first; of trainings with the same cell, the first."""
    by_cell = {each.cell["cell"]: each for each in reversed(trainings)}
    left = [each for address, each in by_cell.items() if not is_done(out, address)]
    return sorted(left, key=lambda each: (-each.cell["size"], each.number))


def _failed(record: pl.DataFrame, results: GridResults) -> Iterator[tuple[str, str]]:
    for address in record.filter(pl.col("status") == "failed")["cell"].unique(maintain_order=True):
        yield address, results.failure(address)


def left_to_run(design: Design, out: Path) -> pl.DataFrame:
    """What is left to be run, by model: `cells`, `instances` that are trained on, and `hours` of one worker, by the
    seconds per instance of its finished cells; null without any.
    """
    cells, keys = expand(design), ["set", "size", "model", "seed"]
    done = pl.DataFrame(schema={**{name: cells.schema[name] for name in keys}, "seconds": pl.Float64})
    if (out / RECORD_FILE).is_file():
        results = GridResults(out)
        ended = results.cells.filter(pl.col("status") == "done")
        seconds = pl.Series("seconds", [results.seconds(cell) for cell in ended["cell"]], pl.Float64)
        done = ended.with_columns(seconds).select(done.columns)
    spent = done.group_by("model").agg(pl.col("seconds").sum() / pl.col("size").sum())
    # A set without sizes is one set.
    unsized = cells.filter(pl.col("size") == 0)["set"].unique().implode()
    done = done.with_columns(pl.when(pl.col("set").is_in(unsized)).then(0).otherwise("size").alias("size"))
    left = cells.join(done, on=keys, how="anti", maintain_order="left")
    counted = left.group_by("model", maintain_order=True).agg(cells=pl.len(), instances=pl.sum("size"))
    hours = (pl.col("seconds") * pl.col("instances") / _HOUR).alias("hours")
    return counted.join(spent, on="model", how="left", maintain_order="left").with_columns(hours).drop("seconds")


_COSTS: Final = View(
    "costs",
    "costs",
    "What is left to be run",
    columns("model, cells:,d, instances:,d, hours of one worker=hours:,.3f"),
    notes=("Hours: by the seconds per instance of the cells that are finished; not known without any.",),
)
#: Failures that are named.
_NAMED: Final = 5


@summarises(GridRun)
def _summary(found: GridRun) -> Summary:
    if found.costs is not None:
        whole = f"{found.costs['cells'].sum():,} cells to do: trainings, and checkpoints that are only tested."
        facts: dict[str, Any] = {"name": found.name, "costs": found.costs.to_dicts()}
        return Summary((_COSTS.table({"costs": found.costs}, {}), whole), facts)
    failed = found.failed
    lines = [f"failed: {cell_folder(found.folder, address)}: {why}" for address, why in failed[:_NAMED]]
    lines += [f"and {len(failed) - _NAMED:,} others, see record.parquet"] if len(failed) > _NAMED else []
    failures = [{"cell": address, "reason": reason} for address, reason in failed]
    facts = {**picked(found, "folder, name, cells"), "failed": failures, "notes": list(found.notes)}
    verdicts = (Verdict("failed", f"{found.cells['failed']:,} cells failed."),) if failed else ()
    counted = (
        found.record.group_by("model", "set", maintain_order=True)
        .agg(pl.len().alias("cells"), *((pl.col("status") == one).sum().alias(one) for one in STATES))
        .rows()
    )
    heads = (Column("model"), Column("set"), *Column.numbers(",d", "cells", *STATES))
    table = Table(f"{found.name}: cells", heads, tuple(counted), notes=found.notes)
    notes = (f"results: {found.folder}; truerank-lab report {found.folder}",)
    return Summary((table, *(["\n".join(lines)] if lines else [])), facts, verdicts, notes)

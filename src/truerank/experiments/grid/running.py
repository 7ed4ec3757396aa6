"""Running a grid: costed first, then cell by cell, so that a run that ends anywhere goes on from there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.errors import InputError
from truerank.experiments.grid.costs import CostEstimate, estimate_cost, pending_works
from truerank.experiments.grid.design import Design
from truerank.experiments.grid.planning import Plan, Work, make_plan
from truerank.experiments.grid.results import (
    GridResults,
    cell_folder,
    open_results,
    write_design,
    write_leaked,
    write_record,
)
from truerank.experiments.grid.tracking import open_tracker
from truerank.experiments.grid.viewing import NoView, View
from truerank.experiments.grid.working import LOG_FILE, Outcome, TrainAndScore, note_failure
from truerank.reports.tables import Column, Table
from truerank.work.artifacts import Artifacts, installed_versions
from truerank.work.engines import Engine, open_engine
from truerank.work.tasks import Lost
from truerank.work.workers import processors

__all__ = ["GridRun", "GridStatus", "RunOptions", "estimate_grid", "run_grid", "run_status"]

_PACKAGES: Final = ("truerank", "torch", "transformers", "numpy", "polars")
_NAMED: Final = 5


@dataclass(frozen=True)
class RunOptions:
    """How a grid is run; nothing of it but the device decides about results.

    Attributes:
        engine: "local", "ray" (a cluster on this machine) or "ray:ADDRESS".
        workers: trainings at a time; None for one on each processor, or as many as the cluster has room for.
        device: None for a GPU where there is one (on a cluster, where the design asks for one); small models run on the
            CPU.
        retry_failed: run again what failed before.
        keep_models: save the trained rankers.
        max_hours: refuse to start where the estimate is larger.
        cluster: workers of the cluster that the estimate is compared with.
        record: "mlflow:URI", to record the cells there too.
    """

    engine: str = "local"
    workers: int | None = None
    device: str | None = None
    retry_failed: bool = False
    keep_models: bool = False
    max_hours: float | None = None
    cluster: int = 16
    record: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError(f"{self.workers} workers", "give 1 or more", where="--workers")
        if self.cluster < 1:
            raise InputError(f"a cluster of {self.cluster} workers", "give 1 or more", where="--cluster")
        if self.engine not in ("local", "ray") and not self.engine.startswith("ray:"):
            fault = f"no engine called '{self.engine}'"
            raise InputError(fault, "use 'local', 'ray' or 'ray:ADDRESS'", where="--engine")


@dataclass(frozen=True)
class GridStatus:
    """How far a grid is.

    Attributes:
        folder: of the results.
        name: of the experiment.
        record: one row for each cell, see `results.RECORD_SCHEMA`.
        failed: address and reason of the cells that failed.
        notes: what was left out of collections and why.
    """

    folder: Path
    name: str
    record: pl.DataFrame
    failed: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """How many cells of each model and set are done."""
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        counted = (
            self.record.group_by("model", "set", maintain_order=True)
            .agg(pl.len().alias("cells"), *((pl.col("status") == one).sum().alias(one) for one in _STATES))
            .rows()
        )
        columns = (Column("model"), Column("set"), Column("cells", **number), *(Column(s, **number) for s in _STATES))
        return Table(f"{self.name}: cells", columns, tuple(counted), notes=self.notes)

    def text(self) -> str:
        """The table, and what failed where."""
        lines = [self.table().text()]
        for address, reason in self.failed[:_NAMED]:
            lines.append(f"failed: {cell_folder(self.folder, address) / LOG_FILE}: {reason}\n")
        if len(self.failed) > _NAMED:
            lines.append(f"and {len(self.failed) - _NAMED:,} others, see record.parquet\n")
        if self.failed:
            lines.append("The others are not concerned; --retry-failed runs these again.\n")
        return "".join(lines)

    def json(self) -> dict[str, Any]:
        """Counts, and what failed."""
        counts = {one: int((self.record["status"] == one).sum()) for one in _STATES}
        return {
            "folder": str(self.folder),
            "name": self.name,
            "cells": {"all": len(self.record), **counts},
            "failed": [{"cell": address, "reason": reason} for address, reason in self.failed],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class GridRun(GridStatus):
    """What a run of a grid left behind: how far it is, and what it was expected to cost.

    Attributes:
        estimate: made before it started.
    """

    estimate: CostEstimate | None = None

    def json(self) -> dict[str, Any]:
        """Counts, what failed, and the estimate."""
        return {**super().json(), "estimate": None if self.estimate is None else self.estimate.json()}


_STATES: Final = ("done", "failed", "missing")


def run_status(out: str | Path) -> GridStatus:
    """How far a grid is, whether a run is at work or not.

    Args:
        out: the folder of the results.

    Raises:
        InputError: it holds no grid.
    """
    results = open_results(out)
    return GridStatus(results.folder, results.design.name, results.cells, tuple(_failed(results.cells, results)))


def estimate_grid(
    design: Design, out: str | Path, options: RunOptions = RunOptions(), *, view: View | None = None
) -> CostEstimate:
    """What a grid will cost, without running it; arguments and errors as in `run_grid`.

    What cells share is made: sets, first stages, vocabularies. A short trial of each model follows where no finished
    cell tells its rates.
    """
    shown = view or NoView()
    artifacts = Artifacts(out)
    with _alone(artifacts.work):
        plan = make_plan(design, artifacts.folder, shown)
        return _estimated(plan, artifacts.folder, options, shown)[0]


def run_grid(
    design: Design, out: str | Path, options: RunOptions = RunOptions(), *, view: View | None = None
) -> GridRun:
    """Runs all cells of a design that are not done; a run that was ended anywhere goes on.

    Every cell has an address that follows from all that decides its result, so that nothing is run twice: not after a
    kill, not where the design was extended. A cell that fails does not stop the others.

    Args:
        design: the experiment, see `read_design`.
        out: the folder of the results.
        options: how it is run.
        view: is told how far it is.

    Returns:
        What became of each cell.

    Raises:
        InputError: a fault in the sources; an estimate above `max_hours`; another run is at work in the folder.
        MissingExtraError: what trains the models, or the engine, is not installed.
    """
    shown = view or NoView()
    artifacts = Artifacts(out)
    folder = artifacts.folder
    with _alone(artifacts.work), open_tracker(options.record, design, folder) as tracker:
        plan = make_plan(design, folder, shown)
        write_design(folder, design)
        write_leaked(folder, plan.leaked)
        write_record(folder, plan.cells)
        estimate, seconds, works = _estimated(plan, folder, options, shown)
        if options.max_hours is not None and estimate.hours(_workers(options)) > options.max_hours:
            raise InputError(
                f"{estimate.sentence().rstrip('.')}, and {options.max_hours:g} hours were allowed",
                "raise --max-hours, or make the design smaller",
                where="--max-hours",
            )
        artifacts.log("started", runs=len(works), engine=options.engine, estimate=estimate.json())
        try:
            with shown.running(estimate):
                for work, outcome in _outcomes(works, seconds, folder, options, shown):
                    shown.ended(work, outcome)
                    tracker.record(work)
        finally:
            # Also where it is interrupted: the record says what there is.
            record = write_record(folder, plan.cells)
        if options.record is not None:
            # Also what an earlier run finished, which had no such record.
            for work in plan.works:
                tracker.record(work)
        artifacts.log("ended", **{one: int((record["status"] == one).sum()) for one in _STATES})
        _write_manifest(artifacts, plan, record)
        failed = tuple(_failed(record, open_results(folder)))
        run = GridRun(folder, design.name, record, failed, _notes(plan), estimate)
    artifacts.tidy()
    return run


def _estimated(
    plan: Plan, folder: Path, options: RunOptions, shown: View
) -> tuple[CostEstimate, dict[int, float], list[Work]]:
    works = pending_works(plan, folder, retry_failed=options.retry_failed)
    estimate, seconds = estimate_cost(
        plan,
        folder,
        works,
        workers=_workers(options),
        cluster=options.cluster,
        device=options.device,
        told=shown,
    )
    return estimate, seconds, works


def _workers(options: RunOptions) -> int:
    return options.workers or processors()


def _outcomes(
    works: Sequence[Work], seconds: dict[int, float], folder: Path, options: RunOptions, shown: View
) -> Iterator[tuple[Work, Outcome]]:
    """What becomes of each training, as they end; the longest begin first, so that none is left alone at the end."""
    by_number = {work.number: work for work in works}
    ordered = sorted(works, key=lambda work: (-seconds[work.number], work.number))

    def begun() -> Iterator[Work]:
        for work in ordered:
            shown.began(work)
            yield work

    _sweep(folder, works)
    task = TrainAndScore(folder.absolute(), options.device, options.engine != "local", options.keep_models)
    for number, result in _engine(options).run(task, begun()):
        work = by_number[number]
        if isinstance(result, Lost):
            note_failure(folder, work, result.reason)
            result = Outcome(number, result.reason)
        yield work, result


def _sweep(folder: Path, works: Sequence[Work]) -> None:
    """Removes what a killed worker was writing."""
    for work in works:
        for cell in work.cells:
            for half in cell_folder(folder, cell.address).glob(".*.tmp"):
                half.unlink(missing_ok=True)


def _engine(options: RunOptions) -> Engine:
    workers = _workers(options) if options.engine == "local" else options.workers
    return open_engine(options.engine, workers, tolerant=True)


@contextlib.contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Inside, no other run is at work in the folder; the system ends the claim with the process."""
    try:
        import fcntl
    except ImportError:  # no such locks on Windows
        yield
        return
    work.mkdir(parents=True, exist_ok=True)
    path = work / "lock"
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            fault = "another run is at work here"
            raise InputError(fault, "wait for it, or end it", where=work.parent) from error
        yield
        path.unlink(missing_ok=True)


def _failed(record: pl.DataFrame, results: GridResults) -> Iterator[tuple[str, str]]:
    for address in record.filter(pl.col("status") == "failed")["cell"].unique(maintain_order=True):
        yield address, results.failure(address)


def _notes(plan: Plan) -> tuple[str, ...]:
    return tuple(f"{name}: {note}." for name, one in plan.collections.items() for note in one.notes)


def _write_manifest(artifacts: Artifacts, plan: Plan, record: pl.DataFrame) -> None:
    artifacts.manifest(
        {
            "command": "experiment run",
            "versions": installed_versions(*_PACKAGES),
            "design": plan.design.json(),
            "sets": {name: one.json() for name, one in plan.sets.items()},
            "collections": {name: one.json() for name, one in plan.collections.items()},
            "cells": {one: int((record["status"] == one).sum()) for one in _STATES},
        }
    )

"""Running a grid: costed first, then cell by cell, so that a run that ends anywhere goes on from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal

import polars as pl

from truerank.errors import OptionError
from truerank.experiments.grid.costs import CostEstimate, estimate_cost, pending_works
from truerank.experiments.grid.design import Design
from truerank.experiments.grid.planning import Plan, Work, make_plan
from truerank.experiments.grid.reading import read_design
from truerank.experiments.grid.results import (
    DESIGN_FILE,
    LEAKED_FILE,
    RECORD_FILE,
    RECORD_SCHEMA,
    GridResults,
    cell_folder,
    open_results,
    write_design,
    write_leaked,
    write_record,
)
from truerank.experiments.grid.tracking import open_tracker
from truerank.experiments.grid.viewing import GridView, NoView, view_for
from truerank.experiments.grid.working import TrainAndScore, TrainingOutcome, note_failure
from truerank.options import Flag, Options, Processes, Range, command
from truerank.reports.results import Result
from truerank.sources.inputs import inputs_of
from truerank.work.artifacts import Artifacts
from truerank.work.engines import Engine, Lost, open_engine, processors
from truerank.work.runs import Run, locked, plain
from truerank.work.runs import run as started

_PACKAGES: Final = ("torch", "transformers")


@dataclass(frozen=True)
class RunOptions(Options):
    """How the grid is run; nothing of it but the device decides about results.

    Attributes:
        engine: local (processes of this machine), ray (a cluster on this machine) or ray:ADDRESS.
        workers: trainings at a time; by default one for each processor, or as many as the cluster has room for.
        device: cpu, cuda, cuda:1; by default a GPU where there is one (on a cluster, where the design asks for one),
            except for small models.
        max_hours: refuses to start where the estimate is larger.
        estimate_for: workers of a cluster that the estimate is also made for.
        retry_failed: runs again what failed before.
        keep_models: saves the trained rankers.
        record: mlflow:URI records the cells in MLflow, too.
    """

    engine: Annotated[str, Flag(metavar="local|ray[:ADDRESS]")] = "local"
    workers: Processes | None = None
    device: str | None = None
    max_hours: Annotated[float | None, Flag(metavar="HOURS"), Range(at_least=0)] = None
    estimate_for: Annotated[int, Range(at_least=1)] = 16
    retry_failed: bool = False
    keep_models: bool = False
    record: Annotated[str | None, Flag(metavar="mlflow:URI")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine.startswith("shard:"):
            remedy = "use local, ray or ray:ADDRESS; or give each job other models or sets with `set_`"
            raise OptionError("engine", "a grid is not run in shards", remedy)
        if self.engine not in ("local", "ray") and not self.engine.startswith("ray:"):
            raise OptionError("engine", f"no engine called '{self.engine}'", "use local, ray or ray:ADDRESS")


@dataclass(frozen=True, repr=False)
class GridStatus(Result, shown_in="truerank.experiments.grid.report"):
    """How far a grid is.

    Attributes:
        folder: of the results.
        name: of the experiment.
        record: one row for each cell, see `results.RECORD_SCHEMA`.
        failed: address and reason of the cells that failed.
        notes: what was left out of collections and why.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("failed",)

    folder: Path
    name: str
    record: pl.DataFrame
    failed: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()

    @property
    def cells(self) -> dict[str, int]:
        """How many cells there are, and how many of each state."""
        return {"all": len(self.record), **_states(self.record)}


@dataclass(frozen=True, repr=False)
class GridRun(GridStatus):
    """What a run of a grid left behind: how far it is, and what it was expected to cost.

    Attributes:
        estimate: made before it started.
        only_costed: nothing was run; the record is empty.
    """

    fails_on: ClassVar[str] = "failed"

    estimate: CostEstimate | None = None
    only_costed: bool = False


STATES: Final = ("done", "failed", "missing")


@command
def status(results: Annotated[str | Path, Flag(metavar="DIR", positional=True, reads=Path)]) -> GridStatus:
    """Says how many cells of a grid are done, failed or missing; also while it runs.

    Args:
        results: what `experiment run` writes.

    Returns:
        How far it is.

    Raises:
        InputError: it holds no grid.

    Examples:

        truerank experiment status grid/
    """
    found = open_results(results)
    return GridStatus(found.folder, found.design.name, found.cells, tuple(_failed(found.cells, found)))


@command
def run(
    design: Annotated[Design | str | Path, Flag(metavar="FILE", positional=True, reads=Path)],
    *,
    set_: Annotated[Mapping[str, str], Flag(metavar="KEY=VALUE")] = MappingProxyType({}),
    dry_run: bool = False,
    options: RunOptions = RunOptions(),
    out: Annotated[str | Path, Flag(metavar="DIR", reads=Path)],
    view: GridView | Literal["terminal"] | None = None,
) -> GridRun:
    """Runs the cells of a design that are not done: trains each model on each set, reranks, records.

    The cost is estimated first: from finished cells, or from a short trial of each model. Every cell has an address
    that follows from all that decides its result: killed and called again, the run goes on, and no cell is run twice;
    nor is one where the design was extended. A cell that fails does not stop the others.

    Args:
        design: the design, YAML: docs/experiments.md. In Python also one that `read_design` read.
        set_: a value of the design: collections.vaswani.docs=FILE.
        dry_run: says what it would cost, and stops. What cells share is made: sets, first stages, vocabularies.
        options: how it is run.
        out: the folder of the results.
        view: is told how far it is.

    Returns:
        What became of each cell.

    Raises:
        InputError: a fault in the sources; an estimate above `max_hours`; another run is at work in the folder.
        MissingExtraError: what trains the models, or the engine, is not installed.

    Examples:

        truerank experiment run leakage-small.yaml --out grid/ --dry-run

        truerank experiment run leakage-small.yaml --out grid/ --workers 2 --max-hours 1

        truerank experiment run leakage.yaml --out /shared/grid --engine ray:auto --set models.monot5.gpus=1
    """
    if isinstance(design, Design) and set_:
        raise OptionError("set_", "the design was read already", "give the values to `read_design`")
    wanted = design if isinstance(design, Design) else read_design(design, settings=set_)
    shown = view_for() if view == "terminal" else view or NoView()
    if dry_run:
        return _costed(wanted, Path(out), options, shown)
    given = {"set": dict(set_), **plain({"": options})}
    with started("experiment run", inputs_of(design=wanted.file), given, out, packages=_PACKAGES) as job:
        return _run(wanted, job, options, shown)


def _costed(design: Design, folder: Path, options: RunOptions, shown: GridView) -> GridRun:
    """What a grid will cost; no manifest is written, and that of an earlier run stays."""
    artifacts = Artifacts(folder)
    with locked(artifacts.work, folder):
        plan = make_plan(design, folder, shown)
        estimate = _estimated(plan, folder, options, shown)[0]
    return GridRun(folder, design.name, pl.DataFrame(schema=RECORD_SCHEMA), (), _notes(plan), estimate, True)


def _run(design: Design, job: Run, options: RunOptions, shown: GridView) -> GridRun:
    folder = job.folder
    with open_tracker(options.record, design, folder) as tracker:
        plan = make_plan(design, folder, shown)
        write_design(folder, design)
        write_leaked(folder, plan.leaked)
        write_record(folder, plan.cells)
        estimate, seconds, works = _estimated(plan, folder, options, shown)
        if options.max_hours is not None and estimate.hours(_workers(options)) > options.max_hours:
            raise OptionError(
                "max_hours",
                f"{estimate.sentence().rstrip('.')}, and {options.max_hours:g} hours were allowed",
                "raise it, or make the design smaller",
            )
        job.log("started", runs=len(works), engine=options.engine, estimate=estimate.json())
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
        job.log("ended", **_states(record))
        _publish(job, plan, record)
        return GridRun(
            folder, design.name, record, tuple(_failed(record, open_results(folder))), _notes(plan), estimate
        )


def _publish(job: Run, plan: Plan, record: pl.DataFrame) -> None:
    job.json(
        "summary.json",
        {
            "design": plan.design.json(),
            "sets": {name: one.json() for name, one in plan.sets.items()},
            "collections": {name: one.json() for name, one in plan.collections.items()},
            "cells": _states(record),
        },
    )
    for name in (RECORD_FILE, DESIGN_FILE, LEAKED_FILE):
        job.note(name)


def _states(record: pl.DataFrame) -> dict[str, int]:
    return {one: int((record["status"] == one).sum()) for one in STATES}


def _estimated(
    plan: Plan, folder: Path, options: RunOptions, shown: GridView
) -> tuple[CostEstimate, dict[int, float], list[Work]]:
    works = pending_works(plan, folder, retry_failed=options.retry_failed)
    estimate, seconds = estimate_cost(
        plan,
        folder,
        works,
        workers=_workers(options),
        cluster=options.estimate_for,
        device=options.device,
        told=shown,
    )
    return estimate, seconds, works


def _workers(options: RunOptions) -> int:
    return options.workers or processors()


def _outcomes(
    works: Sequence[Work], seconds: dict[int, float], folder: Path, options: RunOptions, shown: GridView
) -> Iterator[tuple[Work, TrainingOutcome]]:
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
            result = TrainingOutcome(number, result.reason)
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


def _failed(record: pl.DataFrame, results: GridResults) -> Iterator[tuple[str, str]]:
    for address in record.filter(pl.col("status") == "failed")["cell"].unique(maintain_order=True):
        yield address, results.failure(address)


def _notes(plan: Plan) -> tuple[str, ...]:
    return tuple(f"{name}: {note}." for name, one in plan.collections.items() for note in one.notes)

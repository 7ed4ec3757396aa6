"""Running a grid: costed first, then cell by cell, going on from where a run ended; what is seen and recorded of it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, TextIO

import polars as pl

from truerank.core.plain import picked, plain
from truerank.core.result import Result, Summary, summarises
from truerank.core.tables import Column, Table
from truerank.core.verdict import Verdict
from truerank.core.views import View, columns
from truerank.errors import OptionError, needed_for
from truerank.measures import Policy, evaluate
from truerank.options import Flag, Options, Processes, Range, command
from truerank.sources.inputs import inputs_of
from truerank.work.artifacts import Artifacts
from truerank.work.engines import Lost, open_engine, processors
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import Run, locked
from truerank.work.runs import run as started
from truerank_lab.grid.costs import CostEstimate, estimate_cost, pending_works
from truerank_lab.grid.design import Design, read_design
from truerank_lab.grid.plan import Plan, Work, make_plan
from truerank_lab.grid.results import (
    DESIGN_FILE,
    LEAKED_FILE,
    RECORD_FILE,
    RECORD_SCHEMA,
    GridResults,
    cell_folder,
    is_done,
    open_results,
    write_design,
    write_leaked,
    write_record,
)
from truerank_lab.grid.worker import LOG_FILE, TrainAndScore, TrainingOutcome, note_failure

_EVERY_SECONDS: Final = 15.0


class GridView(Progress, Protocol):
    """What a grid tells about itself: the stages before it, and each training as it begins and ends."""

    def running(self, estimate: CostEstimate) -> contextlib.AbstractContextManager[None]:
        """Inside, trainings begin and end."""

    def began(self, work: Work) -> None:
        """A training was handed to a worker."""

    def ended(self, work: Work, outcome: TrainingOutcome) -> None:
        """A training ended, well or not."""


class NoView(Quiet):
    @contextlib.contextmanager
    def running(self, estimate: CostEstimate) -> Iterator[None]:
        yield

    def began(self, work: Work) -> None:
        """Shows nothing."""

    def ended(self, work: Work, outcome: TrainingOutcome) -> None:
        """Shows nothing."""


class Tally:
    """Counts by model, and how long the rest will take: the estimate, corrected by what was measured since."""

    def __init__(self, estimate: CostEstimate) -> None:
        self._estimate = estimate
        self.left = {one.model: one.trainings for one in estimate.models}
        self.done = dict.fromkeys(self.left, 0)
        self.failed = dict.fromkeys(self.left, 0)
        self.working = dict.fromkeys(self.left, 0)
        self.seconds = dict.fromkeys(self.left, 0.0)
        self._expected = {one.model: one.hours * 3600 / max(1, one.trainings) for one in estimate.models}

    def began(self, work: Work) -> None:
        name = work.training.model.name
        self.working[name] += 1
        self.left[name] -= 1

    def ended(self, work: Work, outcome: TrainingOutcome) -> None:
        name = work.training.model.name
        self.working[name] -= 1
        self.failed[name] += bool(outcome.reason)
        self.done[name] += not outcome.reason
        self.seconds[name] += outcome.spent.training + outcome.spent.scoring

    def each(self, model: str) -> float:
        """Seconds of a training of a model, so far."""
        return self.seconds[model] / self.done[model] if self.done[model] else self._expected[model]

    def remaining(self) -> float:
        """Seconds until all is done; what is at work counts half."""
        rest = sum((self.left[name] + self.working[name] / 2) * self.each(name) for name in self.left)
        return rest / self._estimate.workers

    def sentence(self) -> str:
        done, failed, working = (sum(counts.values()) for counts in (self.done, self.failed, self.working))
        parts = [f"{done:,} of {self._estimate.left:,} runs done"]
        parts += [f"{failed:,} failed"] if failed else []
        parts += [f"{working:,} at work", f"about {_clock(self.remaining())} left"]
        return ", ".join(parts)


class Lines(NoView):
    """A line every so many seconds, where no terminal is."""

    def __init__(self, stream: TextIO, every: float = _EVERY_SECONDS) -> None:
        self._stream, self._every = stream, every
        self._tally: Tally | None = None
        self._last = time.monotonic()

    @contextlib.contextmanager
    def running(self, estimate: CostEstimate) -> Iterator[None]:
        """Begins with the cost, ends with the counts."""
        self.note(estimate.sentence())
        self._tally = Tally(estimate)
        try:
            yield
        finally:
            if estimate.left:
                self.note(self._tally.sentence())

    def note(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def began(self, work: Work) -> None:
        if self._tally is not None:
            self._tally.began(work)

    def ended(self, work: Work, outcome: TrainingOutcome) -> None:
        """Counts; writes what failed at once, and how far it is now and then."""
        if self._tally is None:
            return
        self._tally.ended(work, outcome)
        if outcome.reason:
            self.note(f"failed: {_named(work)}: {outcome.reason}")
        if time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            self.note(self._tally.sentence())


class LiveTable(Lines):
    """A table of the models that changes in place, with a bar below it."""

    def __init__(self, console: Any) -> None:
        super().__init__(console.file, every=float("inf"))
        self._console = console
        self._live: Any = None
        self._stage = ""

    def start(self, what: str, total: int | None = None) -> None:
        if self._live is None and what != self._stage:
            self._stage = what
            self.note(what)

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    @contextlib.contextmanager
    def running(self, estimate: CostEstimate) -> Iterator[None]:
        from rich.live import Live

        self.note(estimate.sentence())
        self._tally = Tally(estimate)
        if not estimate.left:
            yield
            return
        with Live(self._table(), console=self._console, refresh_per_second=2) as self._live:
            yield
            self._live.update(self._table())

    def began(self, work: Work) -> None:
        super().began(work)
        self._update()

    def ended(self, work: Work, outcome: TrainingOutcome) -> None:
        super().ended(work, outcome)
        self._update()

    def _update(self) -> None:
        if self._live is not None:
            self._live.update(self._table())

    def _table(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table as RichTable

        tally = self._tally
        if tally is None:
            return ""
        table = RichTable(box=None, pad_edge=False)
        table.add_column("model")
        for head in ("done", "failed", "at work", "left", "s/run"):
            table.add_column(head, justify="right")
        for name in tally.left:
            counts = (tally.done[name], tally.failed[name], tally.working[name], tally.left[name])
            table.add_row(name, *(f"{count:,}" for count in counts), f"{tally.each(name):,.1f}")
        ended = sum(tally.done.values()) + sum(tally.failed.values())
        whole = ended + sum(tally.working.values()) + sum(tally.left.values())
        return Group(table, ProgressBar(total=max(1, whole), completed=ended, width=60), tally.sentence())


def view_for() -> GridView:
    """The live table where standard error is a terminal, lines elsewhere."""
    if not sys.stderr.isatty():
        return Lines(sys.stderr)
    from rich.console import Console

    return LiveTable(Console(file=sys.stderr))


def _named(work: Work) -> str:
    training = work.training
    return f"{training.model.name} on {training.set.name}, {work.size:,} instances, seed {training.seed}"


def _clock(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:,.1f} hours"


_TAG = "truerank.cell"


class Mlflow:
    """One MLflow run for each cell, in an experiment of the design's name; a cell is recorded once."""

    def __init__(self, record: str, design: Design, out: Path) -> None:
        kind, _, address = record.partition(":")
        if kind != "mlflow" or not address:
            raise OptionError("record", f"no record called '{record}'", "give mlflow:URI")
        with needed_for("recording in MLflow", "mlflow"):
            from mlflow import MlflowClient
            from mlflow.exceptions import MlflowException
        self._design, self._out = design, out
        try:
            self._client: Any = MlflowClient(tracking_uri=address)
            found = self._client.get_experiment_by_name(design.name)
            self._experiment = found.experiment_id if found else self._client.create_experiment(design.name)
        except (MlflowException, OSError) as error:
            fault = f"no MLflow answers at '{address}' ({' '.join(str(error).split())[:120]})"
            raise OptionError("record", fault, "check the address") from error

    def record(self, work: Work) -> None:
        """Records what was trained on what, how it ended, and the measures on each collection."""
        results = open_results(self._out)
        for cell in work.cells:
            if not is_done(self._out, cell.address):
                continue
            if self._client.search_runs([self._experiment], f"tags.`{_TAG}` = '{cell.address}'", max_results=1):
                continue
            row = results.cells.row(by_predicate=pl.col("cell") == cell.address, named=True)
            parts = (row["model"], row["set"], str(row["size"]), f"seed {row['seed']}", row["variant"])
            name = " ".join(part for part in parts if part)
            run = self._client.create_run(self._experiment, tags={_TAG: cell.address}, run_name=name)
            for name in ("set", "kind", "label", "size", "model", "recipe", "seed", "variant"):
                self._client.log_param(run.info.run_id, name, row[name])
            # Means over the judged topics; names as MLflow takes them.
            metrics = {"steps": row["steps"], "loss": row["loss"]}
            for collection in row["collections"]:
                runs = {"cell": results.run(row["cell"], collection).select("topic_id", "doc_id", "score")}
                measures, rel = self._design.measures_of(collection), self._design.collection(collection).rel
                policy = Policy(ties="ascending", rel=rel)
                values = evaluate(results.qrels(collection), runs, " ".join(measures), policy)
                for measure, mean in zip(measures, values.values[0].mean(axis=1), strict=True):
                    metrics[f"{collection}/{measure.replace('@', '_at_')}"] = mean
            for name, value in metrics.items():
                if value is not None:
                    self._client.log_metric(run.info.run_id, name, float(value))
            self._client.set_terminated(run.info.run_id)


_PACKAGES: Final = ("torch", "transformers")


@dataclass(frozen=True)
class RunOptions(Options):
    """How the grid is run; nothing of it but the device decides about results.

    Attributes:
        engine: local (processes of this machine), ray (a cluster on this machine) or ray:ADDRESS.
        workers: trainings at a time; by default one for each processor, or as many as the cluster has room for.
        device: cpu, cuda, cuda:1; by default a GPU where there is one (on a cluster, where the design asks for one),
            except for small models.
        max_hours: refuse to start if the estimate is larger.
        estimate_for: workers of a cluster that the estimate is also made for.
        retry_failed: run failed cells again.
        keep_models: save the trained rankers.
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
        if self.engine not in ("local", "ray") and not self.engine.startswith("ray:"):
            raise OptionError("engine", f"no engine called '{self.engine}'", "use local, ray or ray:ADDRESS")


@dataclass(frozen=True, eq=False, repr=False)
class GridStatus(Result, shown_in="truerank_lab.grid.execution"):
    """How far a grid is.

    Attributes:
        folder: of the results.
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


@dataclass(frozen=True, eq=False, repr=False)
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
    """Counts the cells of a grid that are done, failed or missing, also while it runs.

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
        design: the design, YAML: docs/guide.md. In Python also one that `read_design` read.
        set_: a value of the design: collections.vaswani.docs=FILE.
        dry_run: estimate the cost, and stop. What cells share is built: sets, first stages, vocabularies.
        options: how it is run.
        out: the folder of the results.
        view: receives progress updates.

    Returns:
        What became of each cell.

    Raises:
        InputError: a fault in the sources; an estimate above `max_hours`; another run is at work in the folder.
        MissingExtraError: what trains the models, or the engine, is not installed.

    Examples:

        truerank-lab run leakage-small.yaml --out grid/ --dry-run

        truerank-lab run leakage-small.yaml --out grid/ --workers 2 --max-hours 1

        truerank-lab run leakage.yaml --out /shared/grid --engine ray:auto --set models.monot5.gpus=1
    """
    if isinstance(design, Design) and set_:
        raise OptionError("set_", "the design was read already", "give the values to `read_design`")
    wanted = design if isinstance(design, Design) else read_design(design, settings=set_)
    shown = view_for() if view == "terminal" else view or NoView()
    if dry_run:
        # What a grid will cost; no manifest is written, and that of an earlier run stays.
        folder = Path(out)
        artifacts = Artifacts(folder)
        with locked(artifacts.work, folder):
            plan = make_plan(wanted, folder, shown)
            estimate = _estimated(plan, folder, options, shown)[0]
        return GridRun(folder, wanted.name, pl.DataFrame(schema=RECORD_SCHEMA), (), _notes(plan), estimate, True)
    given = {"set": dict(set_), **plain(options)}
    with started("experiment run", inputs_of(design=wanted.file), given, out, packages=_PACKAGES) as job:
        return _run(wanted, job, options, shown)


def _run(design: Design, job: Run, options: RunOptions, shown: GridView) -> GridRun:
    folder = job.folder
    tracker = None if options.record is None else Mlflow(options.record, design, folder)
    plan = make_plan(design, folder, shown)
    write_design(folder, design)
    write_leaked(folder, plan.leaked)
    write_record(folder, plan.cells)
    estimate, seconds, works = _estimated(plan, folder, options, shown)
    if options.max_hours is not None and estimate.hours(estimate.workers) > options.max_hours:
        fault = f"{estimate.sentence().rstrip('.')}, and {options.max_hours:g} hours were allowed"
        raise OptionError("max_hours", fault, "raise it, or make the design smaller")
    job.log("started", runs=len(works), engine=options.engine, estimate=estimate.json())
    try:
        with shown.running(estimate):
            for work, outcome in _outcomes(works, seconds, folder, options, shown):
                shown.ended(work, outcome)
                if tracker is not None:
                    tracker.record(work)
    finally:
        # Also where it is interrupted: the record says what there is.
        record = write_record(folder, plan.cells)
    if tracker is not None:
        # Also what an earlier run finished, which had no such record.
        for work in plan.works:
            tracker.record(work)
    job.log("ended", **_states(record))
    summary = {"design": plan.design, "sets": plan.sets, "collections": plan.collections, "cells": _states(record)}
    job.json("summary.json", plain(summary))
    for name in (RECORD_FILE, DESIGN_FILE, LEAKED_FILE):
        job.note(name)
    failed = tuple(_failed(record, open_results(folder)))
    return GridRun(folder, design.name, record, failed, _notes(plan), estimate)


def _states(record: pl.DataFrame) -> dict[str, int]:
    return {one: int((record["status"] == one).sum()) for one in STATES}


def _estimated(
    plan: Plan, folder: Path, options: RunOptions, shown: GridView
) -> tuple[CostEstimate, dict[int, float], list[Work]]:
    works = pending_works(plan, folder, retry_failed=options.retry_failed)
    workers, cluster = options.workers or processors(), options.estimate_for
    estimate, seconds = estimate_cost(
        plan, folder, works, workers=workers, cluster=cluster, device=options.device, progress=shown
    )
    return estimate, seconds, works


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

    for cell in (cell for work in works for cell in work.cells):
        # What a killed worker was writing.
        for half in cell_folder(folder, cell.address).glob(".*.tmp"):
            half.unlink(missing_ok=True)
    task = TrainAndScore(folder.absolute(), options.device, options.engine != "local", options.keep_models)
    workers = options.workers or (processors() if options.engine == "local" else None)
    for number, result in open_engine(options.engine, workers, tolerant=True).run(task, begun()):
        work = by_number[number]
        if isinstance(result, Lost):
            note_failure(folder, work, result.reason)
            result = TrainingOutcome(number, result.reason)
        yield work, result


def _failed(record: pl.DataFrame, results: GridResults) -> Iterator[tuple[str, str]]:
    for address in record.filter(pl.col("status") == "failed")["cell"].unique(maintain_order=True):
        yield address, results.failure(address)


def _notes(plan: Plan) -> tuple[str, ...]:
    return tuple(f"{name}: {note}." for name, one in plan.collections.items() for note in one.notes)


_COSTS: Final = View(
    "costs",
    "models",
    "What is left to be run",
    columns(
        "model, runs=trainings:,d, shortest (s)=smallest:,.1f, longest (s)=largest:,.1f, "
        "hours of one worker=hours:,.3f, known from=known"
    ),
)
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
    return Summary((table, *(["\n".join(lines)] if lines else [])), facts, verdicts)


@summarises(GridRun)
def _run_summary(found: GridRun) -> Summary:
    estimate = found.estimate
    if found.only_costed and estimate is not None:
        costs = _COSTS.table({"models": pl.DataFrame(plain(estimate.models))}, {})
        return Summary((costs, estimate.sentence()), estimate.json())
    shown = _status(found)
    facts = {**shown.json, "estimate": plain(estimate)}
    notes = (f"results: {found.folder}; truerank-lab report {found.folder}",)
    return Summary(shown.parts, facts, shown.verdicts, notes)

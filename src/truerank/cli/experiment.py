"""`truerank experiment …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truerank.cli.console import JsonFlag, emit, note, pairs_option
from truerank.cli.experiment_report import report
from truerank.experiments.designs import copy_design, ready_designs
from truerank.experiments.grid import RunOptions, estimate_grid, read_design, run_grid, run_status
from truerank.experiments.grid.viewing import view_for

__all__ = ["app"]

app = typer.Typer(help="Grids of trainings on sets that differ only in a fault.", no_args_is_help=True)


@app.command("run")
def run(
    design: Annotated[Path, typer.Argument(metavar="FILE", help="The design, YAML: docs/experiments.md.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the results.")],
    settings: Annotated[
        list[str],
        typer.Option("--set", metavar="KEY=VALUE", help="A value of the design: collections.vaswani.docs=FILE."),
    ] = [],  # noqa: B006
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and stop.")] = False,
    max_hours: Annotated[float | None, typer.Option(metavar="HOURS", help="Refuse a grid that costs more.")] = None,
    engine: Annotated[
        str, typer.Option(metavar="local|ray[:ADDRESS]", help="This machine, or a Ray cluster.")
    ] = "local",
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Trainings at a time; default: one for each processor.")
    ] = None,
    cluster: Annotated[
        int, typer.Option(metavar="N", help="Workers of a cluster that the estimate is also made for.")
    ] = 16,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1; default: a GPU, where there is one, except for small models.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run again what failed before.")] = False,
    keep_models: Annotated[bool, typer.Option("--keep-models", help="Save the trained rankers.")] = False,
    record: Annotated[str | None, typer.Option(metavar="mlflow:URI", help="Record the cells in MLflow, too.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Runs the cells of a design that are not done: trains each model on each set, reranks, records.

    The cost is estimated first: from finished cells, or from a short trial of each model. Killed and called again, it
    goes on, and no cell is run twice; nor is one when the design was extended. A cell that fails does not stop the
    others. Exit code 1 if a cell has failed.

    Examples:

        truerank experiment run leakage-small.yaml --out grid/ --dry-run

        truerank experiment run leakage-small.yaml --out grid/ --workers 2 --max-hours 1

        truerank experiment run leakage.yaml --out /shared/grid --engine ray:auto --set models.monot5.gpus=1
    """
    wanted = read_design(design, settings=pairs_option(settings, "--set"))
    options = RunOptions(engine, workers, device, retry_failed, keep_models, max_hours, cluster, record)
    view = view_for()
    if dry_run:
        estimate = estimate_grid(wanted, out, options, view=view)
        emit(estimate.text(), estimate.json(), as_json)
        return
    found = run_grid(wanted, out, options, view=view)
    emit(found.text(), found.json(), as_json)
    note(f"results: {found.folder}; truerank experiment report {found.folder}")
    if found.failed:
        raise typer.Exit(1)


@app.command("status")
def status(
    results: Annotated[Path, typer.Argument(metavar="DIR", help="What 'experiment run --out' writes.")],
    as_json: JsonFlag = False,
) -> None:
    """Says how many cells of a grid are done, failed or missing; also while it runs.

    Examples:

        truerank experiment status grid/
    """
    found = run_status(results)
    emit(found.text(), found.json(), as_json)


@app.command("designs")
def designs(
    copy: Annotated[str | None, typer.Option("--copy", metavar="NAME", help="Write this one to a file.")] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE|DIR", help="Where to.")] = Path(),
    as_json: JsonFlag = False,
) -> None:
    """Lists the designs that come with the package, or copies one.

    Examples:

        truerank experiment designs

        truerank experiment designs --copy leakage-small
    """
    if copy is None:
        found = ready_designs()
        emit(found.text(), found.json(), as_json)
        return
    written = copy_design(copy, out)
    emit(f"{written}\n", {"file": str(written)}, as_json)


app.command("report")(report)

"""The report on an experiment: what its grid shows as one value."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

import polars as pl

from truerank.errors import InputError
from truerank.experiments.grid.results import DESIGN_FILE, RECORD_FILE, GridResults, cell_folder, open_results
from truerank.experiments.reporting.board import Board, boards, size_name
from truerank.experiments.reporting.effectiveness import Effectiveness, effectiveness
from truerank.experiments.reporting.memorised import Memorised, memorised
from truerank.experiments.reporting.options import ReportChoices, ReportOptions
from truerank.experiments.reporting.pilot import Pilot, pilot
from truerank.experiments.reporting.sizes import SizeEffect, size_effects
from truerank.experiments.reporting.statements import ExperimentFinding, effect_statements, memory_statements
from truerank.loading import json_file
from truerank.measures.method import Significance
from truerank.options import Flag, Out, Scoring, command
from truerank.reports.results import Result
from truerank.reports.tables import Column, Table
from truerank.sources.inputs import inputs_of
from truerank.work.publishing import publish
from truerank.work.runs import run as started

_PACKAGES: Final = ("scipy", "ir-measures", "matplotlib")


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentReport(Result, shown_in="truerank.experiments.reporting.page"):
    """What a grid shows.

    Attributes:
        name: of the experiment.
        options: the choices behind it, with those of the design filled in.
        boards: the scores by collection.
        effects: effectiveness by training set, by collection; empty for a pilot.
        sizes: the effect by training size; of leakage only.
        memorised: what was memorised; of leakage only.
        pilots: the models without the fault, by collection.
        grid: how much of the grid is finished.
        left_out: what the report does not show, and why, in sentences.
        out: the folder that it was written to.
    """

    name: str
    options: ReportChoices
    boards: tuple[Board, ...]
    effects: tuple[Effectiveness, ...]
    sizes: tuple[SizeEffect, ...]
    memorised: tuple[Memorised, ...]
    pilots: tuple[Pilot, ...]
    grid: Table
    left_out: tuple[str, ...]
    out: Path | None = None

    @cached_property
    def statements(self) -> tuple[ExperimentFinding, ...]:
        """What was found, most important first."""
        return (*effect_statements(self.effects), *memory_statements(self.memorised, self.baseline, self.options))

    @property
    def baseline(self) -> str:
        """What the others are compared with."""
        return self.options.baseline or ""


@command
def report(
    results: Annotated[GridResults | str | Path, Flag(metavar="DIR", positional=True, reads=Path)],
    *,
    options: ReportOptions = ReportOptions(),
    testing: Significance = Significance(),
    scoring: Scoring = Scoring(),
    out: Out = None,
) -> ExperimentReport:
    """Makes tables, figures and a page of what a grid has found so far.

    Effectiveness by training set, cross-validated, with tests, intervals over topics and the spread over seeds; models
    whose order changes; the effect by training size; what was memorised of leaked documents; the models without the
    fault. What is not finished is named.

    Args:
        results: what `experiment run` wrote, finished or not. In Python also opened results.
        options: what the report shows.
        testing: how training sets are compared with the baseline.
        scoring: how runs are scored; `rel` 1 stands for the lowest relevant grade of each collection of the design
            (but with `same_rel`).
        out: the folder of the report.

    Returns:
        The report.

    Raises:
        InputError: no results there; nothing finished, or nothing of the baseline; an unknown measure or size.

    Examples:

        truerank experiment report grid/ --out report/

        truerank experiment report grid/ --measures "nDCG@10 RR" --memorisation-size 2000 --ties ascending --out report/

        truerank experiment report transfer-grid/ --kind transfer --baseline T5_Min --json

    Source: leakage paper, section 4, Tables 3 to 8 and Figure 2; transfer paper, section 6, Tables 4 and 5;
    survivorship paper, section 5, Figure 1.
    """
    found = results if isinstance(results, GridResults) else open_results(results)
    choices = ReportChoices(**vars(options), policy=scoring, method=testing).of(found.design)
    made = _made(found, choices)
    if out is None:
        return made
    read = inputs_of(results=[found.folder / RECORD_FILE, found.folder / DESIGN_FILE])
    with started("experiment report", read, choices.json(), out, packages=_PACKAGES) as job:
        job.skipped = {"left_out": list(made.left_out)}
        publish(made, job)
    return replace(made, out=Path(out))


def _made(results: GridResults, options: ReportChoices) -> ExperimentReport:
    found = boards(results, options)
    effects = () if options.kind == "pilot" else tuple(effectiveness(board, options) for board in found)
    leakage = options.kind == "leakage"
    remembered, missing = memorised(results, found, options) if leakage else ((), ())
    wanted = leakage or options.kind == "pilot"
    pilots = [one for board in found if wanted and (one := pilot(board, options)) is not None]
    return ExperimentReport(
        name=results.design.name,
        options=options,
        boards=found,
        effects=effects,
        sizes=tuple(effect for board in found if leakage for effect in size_effects(board, options)),
        memorised=remembered,
        pilots=tuple(pilots),
        grid=grid_table(results),
        left_out=(*missing_sentences(results), *_left_out(results, found, effects), *missing),
    )


def _left_out(results: GridResults, found: tuple[Board, ...], effects: tuple[Effectiveness, ...]) -> Iterator[str]:
    there = {board.collection for board in found}
    for collection in (each.name for each in results.design.reported):
        if collection not in there:
            yield f"{collection} is left out: no cell that is tested on it is finished."
    for one in effects:
        if one.unmatched:
            names = ", ".join(row.name for row in one.unmatched)
            yield f"{one.board.collection}: no training size is finished of every training set for {names}."
        if one.comparison is None:
            yield f"{one.board.collection}: no model is finished both on {one.board.baseline} and on another set."


_NAMED: Final = 8


def grid_table(results: GridResults) -> Table:
    """One row per training set and model: how many cells are finished, failed and missing, by size where any is not."""
    columns = (
        Column("training set"),
        Column("kind"),
        Column("model"),
        *Column.numbers(",d", "planned", "done", "failed", "missing", above=("cells",)),
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

"""The report on an experiment: what its grid, or a pilot of it, shows, in sentences, tables, a figure and a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import polars as pl

from truerank.core.figures import Picture, line_panels
from truerank.core.page import Prose
from truerank.core.plain import picked, plain
from truerank.core.report import Report, ReportPart, ReportSection
from truerank.core.result import Result, Summary, page_note, reports, summarises
from truerank.core.tables import Table
from truerank.core.verdict import Verdict
from truerank.core.views import View, columns
from truerank.errors import OptionError
from truerank.measures import Significance
from truerank.options import Flag, Out, command
from truerank.sources.inputs import inputs_of
from truerank.work.publishing import publish
from truerank.work.runs import run as started
from truerank_lab.grid.results import DESIGN_FILE, RECORD_FILE, STATES, GridResults
from truerank_lab.reporting.board import GROUP_SIGN, Board, Choices, boards
from truerank_lab.reporting.effectiveness import (
    Effectiveness,
    control_table,
    controls,
    depth_panels,
    depth_table,
    effectiveness,
    effectiveness_table,
    effects,
    strategies_table,
)
from truerank_lab.reporting.memorisation import Memorised, memories, memorised, memorised_tables

_PACKAGES: Final = ("scipy", "ir-measures", "matplotlib")
#: Failures that are named.
_NAMED: Final = 8


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentReport(Result, shown_in="truerank_lab.reporting.report"):
    """What a grid shows.

    Attributes:
        name: of the experiment.
        choices: what it is made by.
        effects: effectiveness by training set, by benchmark; of a pilot, by control.
        memorised: what was memorised; of leakage only.
        grid: the cells of each training set and model: planned, done, failed, missing.
        left_out: what the report does not show, and why, in sentences.
        out: the folder that it was written to.
    """

    name: str
    choices: Choices
    effects: tuple[Effectiveness, ...]
    memorised: tuple[Memorised, ...]
    grid: pl.DataFrame
    left_out: tuple[str, ...]
    out: Path | None = None

    @property
    def statements(self) -> tuple[Verdict, ...]:
        """What was found, most important first."""
        said = controls if self.choices.kind == "pilot" else effects
        found = [verdict for one in self.effects for verdict in said(one)]
        return (*found, *memories(self.memorised, self.choices.baseline, self.choices))


@command
def report(
    results: Annotated[GridResults | str | Path, Flag(metavar="DIR", positional=True, reads=Path)],
    *,
    testing: Significance = Significance(),
    out: Out = None,
) -> ExperimentReport:
    """Writes the papers' tables and figure, and a page, from the results of a grid so far.

    Effectiveness by training set, cross-validated, with tests, intervals over topics and the spread over seeds; what
    was memorised of leaked documents. Equal scores are ranked by document id. What is not finished is named.

    Args:
        results: what `truerank-lab run` wrote, finished or not. In Python also opened results.
        testing: how training sets are compared with the baseline.
        out: the folder of the report.

    Returns:
        The report.

    Raises:
        InputError: no results there; nothing finished, or nothing of the baseline, or of the size for memorisation.

    Examples:

        truerank-lab report grid/ --out report/

    Source: leakage paper, section 4, Tables 3 to 8; transfer paper, section 6, Tables 4 and 5; survivorship paper,
    section 5, Figure 1.
    """
    if not testing.paired:
        raise OptionError("significance", f"{testing.significance} is not a paired test", "choose a paired one")
    found = results if isinstance(results, GridResults) else GridResults(results)
    designed = found.design.report
    # A design names a whole label; blocks of a table have the same baseline each.
    baseline = designed.baseline.rpartition(GROUP_SIGN)[2]
    choices = Choices(designed.kind, baseline, designed.memorisation_size, testing)
    made = _made(found, choices)
    if out is None:
        return made
    read = inputs_of(results=[found.folder / RECORD_FILE, found.folder / DESIGN_FILE])
    with started("report", read, plain(choices), out, packages=_PACKAGES) as job:
        job.skipped = {"left_out": list(made.left_out)}
        publish(made, job)
    return replace(made, out=Path(out))


def _made(results: GridResults, choices: Choices) -> ExperimentReport:
    found = boards(results, choices)
    if choices.kind == "pilot":
        # The baseline and the controls, which are sets of the kind other.
        kept = [(board.baseline, *(name for name in board.faults if board.kinds[name] == "other")) for board in found]
        found = tuple(replace(board, conditions=names) for board, names in zip(found, kept, strict=True))
    compared = tuple(effectiveness(board, choices) for board in found)
    remembered, missing = memorised(results, found, choices) if choices.kind == "leakage" else ((), ())
    states = [(pl.col("status") == one).sum().alias(one) for one in STATES]
    grid = results.cells.group_by("set", "kind", "model", maintain_order=True).agg(pl.len().alias("planned"), *states)
    left_out = (*_left_out(results, found, compared), *missing)
    return ExperimentReport(results.design.name, choices, compared, remembered, grid, left_out)


def _left_out(results: GridResults, found: tuple[Board, ...], compared: tuple[Effectiveness, ...]) -> Iterator[str]:
    """What is not there, one sentence each."""
    cells = results.cells
    counts = {one: int((cells["status"] == one).sum()) for one in STATES}
    if counts["done"] < len(cells):
        yield (
            f"The grid is not finished: {counts['done']:,} of {len(cells):,} cells are done, {counts['failed']:,} "
            f"failed, {counts['missing']:,} are missing. Tables hold what is there."
        )
    for row in cells.filter(pl.col("status") == "failed").head(_NAMED).iter_rows(named=True):
        reason = " ".join(results.failure(row["cell"]).split()).rstrip(".")[:200]
        yield f"Failed: {row['model']} on {row['set']}, {row['size']:,} instances, seed {row['seed']}: {reason}."
    there = {board.collection for board in found}
    for each in results.design.reported:
        if each.name not in there:
            yield f"{each.name} is left out: no cell that is tested on it is finished."
    for one in compared:
        if one.unmatched:
            names = ", ".join(row.name for row in one.unmatched)
            yield f"{one.board.collection}: no training size is finished of every training set for {names}."
        if one.comparison is None:
            yield f"{one.board.collection}: no model is finished both on {one.board.baseline} and on another set."


_GRID: Final = View(
    "grid",
    "grid",
    "The grid behind this report.",
    columns("training set=set, kind, model, planned:,d, done:,d, failed:,d, missing:,d"),
    notes=(
        "A cell is one training: a training set in one size, a model, a seed; or a checkpoint that is tested without "
        "training. Sizes are in instances: a query with one relevant and one non-relevant document is two.",
    ),
    ruled="set",
)
#: By the kind of report: what it is about, and the heading of its tables.
_WHAT: Final = {
    "leakage": "Rankers trained on sets that differ only in a leak",
    "transfer": "Rankers trained on documents selected by different strategies",
    "survivorship": "Rankers trained on sets annotated to different depths",
    "pilot": "Rankers trained without any fault",
}


def tables(result: ExperimentReport) -> Iterator[tuple[str, Table]]:
    """The tables by name, in reading order; the first is the main one of the kind of report."""
    kind, found = result.choices.kind, result.effects
    if kind == "transfer":
        yield "strategies", strategies_table(found)
    elif kind == "survivorship":
        yield "depths", depth_table(found)
    elif kind == "pilot" and any(one.board.faults for one in found):
        yield "controls", control_table(found)
    else:
        for one in found:
            yield f"effectiveness-{one.board.collection}", effectiveness_table(one)
    yield from memorised_tables(result.memorised, result.choices.baseline, result.choices)
    yield "grid", _GRID.table({"grid": result.grid}, {})


def pictures(result: ExperimentReport) -> Iterator[Picture]:
    """Effectiveness by depth.

    Source: survivorship paper, section 5, Figure 1.
    """
    if result.choices.kind == "survivorship":
        panels, x, y = depth_panels(result.effects), "depth of the annotation", "mean over topics"
        caption = (
            "Effectiveness by the depth of the annotation behind the training set, with "
            f"{100 * result.choices.confidence:.6g}% intervals over topics. The differences are tested in the table."
        )
        yield Picture("depths", caption, line_panels(panels, x_label=x, y_label=y))


@summarises(ExperimentReport)
def _summary(result: ExperimentReport) -> Summary:
    said = [f"{one.subject}: {one.sentence}" for one in result.statements]
    parts: list[Table | str] = [*said, *result.left_out, *(table for _, table in tables(result))]
    return Summary(tuple(parts), _facts(result), notes=page_note(result.out), width=120)


@reports(ExperimentReport)
def _report(result: ExperimentReport) -> Report:
    found = dict(tables(result))
    memory = [table for name, table in found.items() if name.startswith("memorised")]
    main: list[ReportPart] = [table for name, table in found.items() if table not in memory and name != "grid"]
    sections = (
        ReportSection("found", "What was found", (Prose(result.left_out),) if result.left_out else ()),
        ReportSection("effectiveness", "Effectiveness by training set", (*pictures(result), *main)),
        ReportSection("memory", "What was memorised", tuple(memory)),
        ReportSection("grid", "The grid", (found["grid"],)),
    )
    tested = [one.board for one in result.effects]
    collections = ", ".join(f"{one.collection} ({len(one.scores.topics):,} topics)" for one in tested)
    compared = "" if result.choices.kind == "pilot" else f", compared with {result.choices.baseline}"
    return Report(
        title=f"Experiment: {result.name}",
        lead=f"{_WHAT[result.choices.kind]}{compared}, on {collections}.",
        verdicts=result.statements,
        sections=sections,
        tables=found,
        json=_facts(result),
        footer=("An interval that includes 0 does not prove that there is no effect. This page needs no network.",),
        frames={"estimates": pl.concat([one.frame() for one in result.effects], how="vertical_relaxed")},
    )


def _facts(result: ExperimentReport) -> dict[str, Any]:
    said = [{"subject": one.subject, "verdict": one.word, "sentence": one.sentence, "shown": one.level == "bad"}
            for one in result.statements]  # fmt: skip
    effectiveness = [row for one in result.effects for row in one.frame().to_dicts()]
    memorisation = [
        {"collection": one.collection, "trained_on": one.condition, **one.row._asdict(), "topics": one.topics}
        | plain(one, "collection", "condition", "row", "found")
        for one in result.memorised
    ]
    facts = {**picked(result, "name, left_out"), "kind": result.choices.kind, "baseline": result.choices.baseline}
    return {**facts, "findings": said, "effectiveness": plain(effectiveness), "memorisation": memorisation}

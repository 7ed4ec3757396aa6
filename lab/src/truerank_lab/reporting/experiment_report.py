"""The report on an experiment: what its grid, or a pilot of it, shows, in sentences, tables, figures and a page."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import polars as pl

from truerank.core.figures import IntervalPanel, IntervalValue, Picture, interval_panels, line_panels
from truerank.core.page import Prose
from truerank.core.plain import picked, plain
from truerank.core.report import Report, ReportPart, ReportSection
from truerank.core.result import Result, Summary, page_note, reports, summarises
from truerank.core.tables import Cell, Column, Table, group_starts
from truerank.core.verdict import Verdict
from truerank.core.views import Field, View, columns, heads
from truerank.errors import InputError, OptionError
from truerank.loading import json_file
from truerank.measures import (
    Comparison,
    Difference,
    Evaluation,
    compare_evaluations,
    detectable_difference,
    lower_is_better,
    mean_interval,
)
from truerank.measures.comparison import Significance
from truerank.measures.report import difference_table
from truerank.options import Flag, Out, Scoring, command
from truerank.sources.inputs import inputs_of
from truerank.work.publishing import publish
from truerank.work.runs import run as started
from truerank_lab.grid.results import DESIGN_FILE, RECORD_FILE, GridResults, cell_folder, open_results
from truerank_lab.reporting.board import Board, BoardRow, ReportChoices, ReportOptions, boards, size_name
from truerank_lab.reporting.effectiveness import (
    TOPICS,
    Effectiveness,
    EffectivenessEstimate,
    SizeEffect,
    depth_panels,
    depth_table,
    depths_compared,
    effectiveness,
    panels,
    size_effects,
    sizes_table,
)
from truerank_lab.reporting.memorisation import Memorised, Place, TopicSpread, memorised, memorised_tables, significant


def _effect(one: Effectiveness, condition: str) -> Iterator[Verdict]:
    """Which rows differ from the baseline by the first measure, for one training set."""
    measure = one.measures[0]
    rows = [
        (estimate, estimate.difference)
        for row in one.shown_rows()
        if (estimate := one.estimates.get((row, condition, measure))) is not None
        and estimate.difference is not None
        and estimate.difference.difference is not None
    ]
    if not rows:
        return
    subject = f"{one.board.collection}, {condition}"
    survivors = [row for row, difference in rows if difference.significant]
    reach = _reach([difference.detectable for _, difference in rows if not difference.significant])
    against, lower = one.board.baseline, ", lower is better" if lower_is_better(measure) else ""
    if survivors:
        word, rest = f"{len(survivors)} of {len(rows)} differ", len(rows) - len(survivors)
        named = "; ".join(_named(one, row) for row in survivors)
        others = f" No difference is shown for the other {rest if rest > 1 else 'one'}." if rest else ""
        sentence = f"{measure}{lower}: {word} from {against}, corrected: {named}.{others}{reach}{_by_seeds(survivors)}"
        yield Verdict(word, sentence, subject=subject, level="bad")
        return
    named = "; ".join(_named(one, row) for row, _ in rows)
    if len(rows) > 6:
        values = [difference.difference for _, difference in rows if difference.difference is not None]
        ends = [end for _, difference in rows for end in (difference.low, difference.high) if end is not None]
        around = f", intervals within [{min(ends):+.4f}, {max(ends):+.4f}]" if ends else ""
        named = f"differences {min(values):+.4f} to {max(values):+.4f}{around}"
    what = "no difference is shown" if len(rows) == 1 else f"no difference is shown for any of {len(rows)}"
    sentence = f"{measure}{lower}: {what} to {against}: {named} (intervals not corrected).{reach}"
    yield Verdict("cannot tell", sentence, subject=subject)


def _reach(detectable: Sequence[float | None], form: str = ".4f") -> str:
    """The sizes that the topics could have shown, so that nobody takes what is not shown for what is not there."""
    known = [size for size in detectable if size]
    if not known:
        return ""
    limits = f"{min(known):{form}}" + (f" to {max(known):{form}}" if max(known) > min(known) else "")
    return f" Differences below {limits} are too small for these topics to show reliably."


def _controls(one: Effectiveness, condition: str) -> Iterator[Verdict]:
    """Which models of a pilot beat themselves trained on a control, by the first measure."""
    measure = one.measures[0]
    compared = {row.name: found for row in one.shown_rows() if (found := _difference(one, row, condition, measure))}
    if not compared:
        return
    beating = [name for name, found in compared.items() if found.significant and not found.better]
    named = "; ".join(f"{name} {_signed(_above(found), '+.4f')}" for name, found in compared.items())
    rest = _reach([found.detectable for name, found in compared.items() if name not in beating])
    word = f"{len(beating)} of {len(compared)} beat it"
    sentence = (
        f"{measure}: {len(beating)} of {len(compared)} models beat themselves trained on {condition}, corrected"
        f"{': ' + ', '.join(beating) if beating else ''}. {one.board.baseline} minus {condition}: {named} (intervals "
        f"not corrected).{rest}"
    )
    level: Literal["good", "unknown"] = "good" if len(beating) == len(compared) else "unknown"
    yield Verdict(word, sentence, subject=f"{one.board.collection}, {condition}", level=level)


def _difference(one: Effectiveness, row: BoardRow, condition: str, measure: str) -> Difference | None:
    """A condition minus the baseline; None where it is not known."""
    found = one.estimates.get((row, condition, measure))
    known = found is not None and found.difference is not None and found.difference.difference is not None
    return found.difference if found is not None and known else None


def _above(found: Difference) -> TopicSpread:
    """The baseline minus the condition, with its interval: the difference the other way round."""
    value, low, high = (None if each is None else -each for each in (found.difference, found.high, found.low))
    return TopicSpread(found.n[0], value, None, low, high)


def control_table(found: Sequence[Effectiveness]) -> Table:
    """One row per benchmark, measure and model: the mean, that of the control, and how far the model is above it."""
    base = found[0].board.baseline
    columns = (
        *heads("benchmark, measure, model, control, topics:,d"),
        *Column.numbers(".4f", f"on {base}", "on control", above=("mean",)),
        *Column.numbers("+.4f", "mean", "low", "high", above=("above control",)),
        Column("p corrected", align="right", format=".4g"),
    )
    rows: list[tuple[Cell, ...]] = []
    firsts: list[int] = []
    for one in found:
        firsts.append(len(rows))
        for measure, row, condition in itertools.product(one.measures, one.shown_rows(), one.board.faults):
            difference = _difference(one, row, condition, measure)
            if difference is None:
                continue
            name, above = f"{row.name}{'†' if difference.significant else ''}", _above(difference)
            means = (difference.baseline_mean, difference.mean, above.mean, above.low, above.high)
            rows.append((one.board.collection, measure, name, condition, above.n, *means, difference.p_corrected))
    notes = tuple(dict.fromkeys(note for one in found for note in one.notes() if not note.startswith(("Bold", "‡"))))
    return Table(
        f"The models trained on {base} and, as a control, on sets that teach nothing.",
        columns, tuple(rows), notes, tuple(place for place in firsts if place),
    )  # fmt: skip


def order_statements(found: Sequence[Effectiveness]) -> Iterator[str]:
    """By collection and training set, whether the order of the models changes, by every measure."""
    for one in found:
        for group, condition in dict.fromkeys(key[:2] for key in one.orders):
            parts = []
            for name in one.measures:
                changes = one.orders.get((group, condition, name))
                if changes is not None and (changes.swaps or changes.overtakings):
                    passing = [f"{pair.system} would pass {pair.other}" for pair in changes.overtakings]
                    swapping = [f"{pair.better} and {pair.worse} change places" for pair in changes.swaps]
                    parts.append(f"{name} ({'; '.join([*passing, *swapping])})")
            if parts:
                yield (
                    f"{one.board.collection}{f', {group}' if group else ''}: training on {condition} in place of "
                    f"{one.board.baseline} changes the order of the models by {', '.join(parts)}."
                )


def _memory(found: Sequence[Memorised], baseline: str, clear: Collection[Place]) -> Verdict:
    """What became of the ranks of the documents that leaked on one collection by one set."""
    first = found[0]
    changes = "; ".join(
        f"{one.row.name} rank {_signed(one.rank.difference, '+.2f')}, offset {_signed(one.offset.difference, '+.2f')}"
        for one in found
    )
    grown = [one for one in found if one.place in clear and (one.offset.difference.mean or 0) > 0]
    word = f"offset grows for {len(grown)} of {len(found)}" if grown else "cannot tell"
    named = ", ".join(one.row.name for one in grown)
    tested = f"The offset grows, corrected, for {named}." if grown else "No growth of the offset survives correction."
    if len(grown) < len(found):
        rest = [one.offset.difference for one in found if one not in grown]
        sizes = [None if each.sd is None else detectable_difference(each.n, each.sd) for each in rest]
        tested += _reach(sizes, ".2f")
    sentence = (
        f"Leaked documents after training on {first.condition}, compared with {baseline}: the rank of the relevant "
        f"ones (negative: it rises) and the offset to the non-relevant ones change by {changes} "
        f"(intervals not corrected). {tested}"
    )
    subject = f"{first.collection}, {first.condition}: memory"
    return Verdict(word, sentence, subject=subject, level="bad" if grown else "unknown")


def _named(whole: Effectiveness, one: EffectivenessEstimate) -> str:
    """The row and its difference; where one model is alone, its block says enough."""
    found, alone = one.difference, len({row.model for row in whole.board.rows}) == 1
    name = one.row.group if alone and one.row.group else one.row.name
    if found is None or found.difference is None:
        return name
    ends = "" if found.low is None or found.high is None else f" [{found.low:+.4f}, {found.high:+.4f}]"
    return f"{name} {found.difference:+.4f}{ends}"


def _by_seeds(survivors: Sequence[EffectivenessEstimate]) -> str:
    """Which differences exclude 0 over topics, but not over seeds: trained again, they may be others."""
    unsettled = [
        f"{one.row.name} ({over.n} seeds)"
        for one in survivors
        if (over := one.difference_over_seeds) is not None
        and not (over.low is not None and over.high is not None and (over.low > 0 or over.high < 0))
    ]
    return f" Over seeds, the interval holds 0 or is not known: {', '.join(unsettled)}." if unsettled else ""


def _signed(spread: TopicSpread, form: str) -> str:
    if spread.mean is None:
        return "unknown"
    ends = "" if spread.low is None or spread.high is None else f" [{spread.low:{form}}, {spread.high:{form}}]"
    return f"{spread.mean:{form}}{ends}"


@dataclass(frozen=True, eq=False)
class Pilot:
    """The models of one collection at one size of the baseline, in instances (0 for all rows).
     `scores` has one run per model, best first by the first measure; by topic, values are means over seeds, and `seeds`
    has those of single seeds by model, shape (seeds, measures). The others are compared with the best.
    """

    collection: str
    baseline: str
    size: int
    scores: Evaluation
    seeds: dict[str, np.ndarray[Any, np.dtype[np.float64]]]
    comparison: Comparison | None
    left_out: tuple[str, ...]
    options: ReportChoices

    def table(self) -> Table:
        shown = [Column("model"), Column("seeds", align="right", format="d")]
        for measure in self.scores.measures:
            shown.append(Column("mean", (measure,), align="right"))
            shown += Column.numbers(".4f", "low", "high", "sd over seeds", above=(measure,))
        rows = tuple(self._row(place, model) for place, model in enumerate(self.scores.runs))
        notes = [
            f"Trained on {self.baseline}, {size_name(self.size)} instances; by topic, values are means over seeds.",
            "Intervals: Student t over topics. Best first by the first measure.",
        ]
        if self.comparison is not None:
            best, method = self.scores.runs[0], self.options.method
            notes.append(f"† differs from {best}: {method.significance}, {method.corrected()}, α = {method.alpha:g}.")
        if self.left_out:
            notes.append(f"Not finished at this size: {', '.join(self.left_out)}.")
        title = f"{self.collection}: the models at {size_name(self.size)} instances without the fault."
        return Table(title, tuple(shown), rows, tuple(notes))

    def json(self) -> dict[str, Any]:
        rest = plain(self, "collection", "baseline", "options")
        return {"collection": self.collection, "trained_on": self.baseline, **rest}

    def _row(self, place: int, model: str) -> tuple[Cell, ...]:
        cells: list[Cell] = [model, len(self.seeds[model])]
        for number, measure in enumerate(self.scores.measures):
            values = self.scores.values[place, number]
            interval = mean_interval(values[~np.isnan(values)], self.options.confidence)
            mean, seeds = float(self.scores.mean[place, number]), self.seeds[model][:, number]
            marked = self.comparison is not None and any(
                one.significant for one in self.comparison.differences if (one.run, one.measure) == (model, measure)
            )
            ends: tuple[Cell, ...] = interval[2:] if self.scores.aggregates[number] == "mean" else (None, None)
            cells += [f"{mean:.4f}{'†' if marked else ''}", *ends]
            cells.append(float(seeds.std(ddof=1)) if len(seeds) > 1 else None)
        return tuple(cells)


def pilot(board: Board, options: ReportChoices) -> Pilot | None:
    """The models of a collection trained on the baseline at one size.

    Source: leakage paper, section 4 (trained models: pilot experiments).
    """
    known = [row for row in board.rows if board.sizes(row, board.baseline)]
    if not known:
        return None
    size = _size(board, known, options.pilot_size)
    rows = [row for row in known if size in board.sizes(row, board.baseline)]
    values = {row.name: board.seed_means(row, board.baseline, [size]).values[0] for row in rows}
    means = board.evaluation(list(values), list(values.values()))
    first = means.mean[:, 0] * (1 if lower_is_better(means.measures[0]) else -1)
    order = [means.runs[place] for place in np.argsort(first, kind="stable")]
    scores = board.evaluation(order, [values[name] for name in order])
    held = {row.name: board.values(board.of(row, board.baseline, size)["cell"].to_list()) for row in rows}
    tested = scores.averaged
    several = len(order) > 1 and bool(tested)
    seeds = {name: board.evaluation(list(map(str, range(len(v)))), list(v)).mean for name, v in held.items()}
    comparison = compare_evaluations(scores, order[0], measures=tested, method=options.method) if several else None
    left_out = tuple(row.name for row in board.rows if row not in rows)
    return Pilot(board.collection, board.baseline, size, scores, seeds, comparison, left_out, options)


def _size(board: Board, rows: Sequence[BoardRow], wanted: int | None) -> int:
    counts: dict[int, int] = {}
    for row in rows:
        for size in board.sizes(row, board.baseline):
            counts[size] = counts.get(size, 0) + 1
    if wanted is None:
        return max(counts, key=lambda size: (counts[size], size == 0, size))
    if wanted not in counts:
        fault = f"no model was trained on {board.baseline} with {size_name(wanted)} instances"
        raise OptionError("pilot_size", fault, f"one of {', '.join(map(size_name, sorted(counts)))}")
    return wanted


_PACKAGES: Final = ("scipy", "ir-measures", "matplotlib")


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentReport(Result, shown_in="truerank_lab.reporting.experiment_report"):
    """What a grid shows.

    Attributes:
        name: of the experiment.
        options: the choices behind it, with those of the design filled in.
        boards: the scores by collection.
        effects: effectiveness by training set, by collection; of a pilot, by control.
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
    def statements(self) -> tuple[Verdict, ...]:
        """What was found, most important first."""
        clear = significant(self.memorised, "offset", self.options)
        places: dict[tuple[str, str], list[Memorised]] = {}
        for one in self.memorised:
            places.setdefault((one.collection, one.condition), []).append(one)
        effect = _controls if self.options.kind == "pilot" else _effect
        effects = (found for one in self.effects for condition in one.board.faults for found in effect(one, condition))
        return (*effects, *(_memory(some, self.baseline, clear) for some in places.values()))

    @property
    def baseline(self) -> str:
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
    """Writes tables, figures and a page from the results of a grid so far.

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

        truerank-lab report grid/ --out report/

        truerank-lab report grid/ --measures "nDCG@10 RR" --memorisation-size 2000 --ties ascending --out report/

        truerank-lab report transfer-grid/ --kind transfer --baseline T5_Min --json

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
    compared = [_controlled(board) for board in found] if options.kind == "pilot" else found
    effects = tuple(effectiveness(board, options) for board in compared if board.faults or options.kind != "pilot")
    leakage = options.kind == "leakage"
    remembered, missing = memorised(results, found, options) if leakage else ((), ())
    wanted = leakage or options.kind == "pilot"
    pilots = [one for board in found if wanted and (one := pilot(board, options)) is not None]
    sizes = tuple(effect for board in found if leakage for effect in size_effects(board, options))
    left_out = (*_missing(results), *_left_out(results, found, effects), *missing)
    name, grid = results.design.name, grid_table(results)
    return ExperimentReport(name, options, found, effects, sizes, remembered, tuple(pilots), grid, left_out)


def _controlled(board: Board) -> Board:
    """The baseline and the controls of a pilot, which are sets of the kind other."""
    controls = (name for name in board.faults if board.kinds[name] == "other")
    return replace(board, conditions=(board.baseline, *controls))


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


_GRID: Final = View(
    "grid",
    "grid",
    "The grid behind this report.",
    (
        *columns("training set=set, kind, model"),
        *(Field(("cells", name), name, ",d") for name in ("planned", "done", "failed", "missing")),
        *columns("not finished=open"),
    ),
    notes=(
        "A cell is one training: a training set in one size, a model, a seed; or a checkpoint that is tested without "
        "training. Sizes are in instances: a query with one relevant and one non-relevant document is two.",
    ),
    ruled="set",
)


def grid_table(results: GridResults) -> Table:
    """One row per training set and model: how many cells are finished, failed and missing, by size where any is not."""
    rows = []
    for (name, kind, model), cells in results.cells.group_by("set", "kind", "model", maintain_order=True):
        counts = {status: int((cells["status"] == status).sum()) for status in ("done", "failed", "missing")}
        row = {"set": name, "kind": kind, "model": model, "planned": len(cells), **counts, "open": _open(cells)}
        rows.append(row)
    return _GRID.table({"grid": pl.DataFrame(rows)}, {})


def _missing(results: GridResults) -> Iterator[str]:
    """What is not there, one sentence each."""
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


_TITLES: Final = {
    "found": "What was found",
    "effectiveness": "Effectiveness by training set",
    "sizes": "Effect by training size",
    "memory": "What was memorised",
    "pilot": "The models without the fault",
    "details": "Every comparison",
    "grid": "The grid",
}
#: Tables with more rows are in their files only.
_LONGEST: Final = 60
#: Tables that are for files and the page, not for a terminal.
_LONG: Final = ("sizes",)
_SECTIONS: Final = {
    "effectiveness": "effectiveness",
    "strategies": "effectiveness",
    "controls": "pilot",
    "depths": "effectiveness",
    "order": "effectiveness",
    "sizes": "sizes",
    "memorised": "memory",
    "pilot": "pilot",
    "pairs": "details",
    "grid": "grid",
}
_WHAT: Final = {
    "leakage": "Rankers trained on sets that differ only in a leak",
    "transfer": "Rankers trained on documents selected by different strategies",
    "survivorship": "Rankers trained on sets annotated to different depths",
    "pilot": "Rankers trained without any fault",
}


@summarises(ExperimentReport)
def _summary(result: ExperimentReport) -> Summary:
    found = tables(result)
    shown = [table for name, table in found.items() if name not in _LONG and not name.endswith("-details")]
    return Summary((*sentences(result), *shown), _facts(result, found), notes=page_note(result.out), width=120)


@reports(ExperimentReport)
def _report(result: ExperimentReport) -> Report:
    found = tables(result)
    parts: dict[str, list[ReportPart]] = {name: [] for name in _TITLES}
    said = [*_orders(result), *result.left_out]
    if said:
        parts["found"].append(Prose(tuple(said)))
    for picture in pictures(result):
        parts[_SECTIONS[picture.name.partition("-")[0]]].append(picture)
    for name, table in found.items():
        section = "details" if name.endswith("-details") else _SECTIONS[name.partition("-")[0]]
        if len(table.rows) > _LONGEST:
            parts[section].append(Prose((f"{table.title} {len(table.rows):,} rows: tables/{name}.csv.",)))
        else:
            # Notes that stand below another table of the section are not repeated.
            before = {note for part in parts[section] if isinstance(part, Table) for note in part.notes}
            notes = tuple(note for note in table.notes if note not in before)
            parts[section].append(replace(table, notes=notes))
    collections = ", ".join(f"{one.collection} ({len(one.scores.topics):,} topics)" for one in result.boards)
    compared = "" if result.options.kind == "pilot" else f", compared with {result.baseline}"
    return Report(
        title=f"Experiment: {result.name}",
        lead=f"{_WHAT[str(result.options.kind)]}{compared}, on {collections}.",
        verdicts=result.statements,
        sections=tuple(ReportSection(name, _TITLES[name], tuple(some)) for name, some in parts.items()),
        tables=found,
        json=_facts(result, found),
        footer=(
            "An interval that includes 0 does not prove that there is no effect. Tables are in tables/ as CSV and "
            "LaTeX, figures in figures/. This page needs no network.",
        ),
    )


def tables(result: ExperimentReport) -> Mapping[str, Table]:
    """The tables by name, in reading order; the first is the main one of the kind of report."""
    return dict(_tables(result))


def sentences(result: ExperimentReport) -> tuple[str, ...]:
    """What was found and what is missing, one paragraph each."""
    found = [f"{one.subject}: {one.sentence}" for one in result.statements]
    if not found:
        found = ["Nothing is compared with the baseline."] if result.options.kind != "pilot" else []
    return (*found, *_orders(result), *result.left_out)


def _orders(result: ExperimentReport) -> tuple[str, ...]:
    """Changes of the order of models; a control is not trained on to be used."""
    return () if result.options.kind == "pilot" else tuple(order_statements(result.effects))


def _facts(result: ExperimentReport, found: Mapping[str, Table]) -> dict[str, Any]:
    return {
        **picked(result, "name, kind=options.kind, baseline"),
        "measures": list(dict.fromkeys(name for board in result.boards for name in board.scores.measures)),
        "findings": [
            {"subject": one.subject, "verdict": one.word, "sentence": one.sentence, "shown": one.level == "bad"}
            for one in result.statements
        ],
        "sentences": list(sentences(result)),
        "effectiveness": [one.json() for one in result.effects],
        "sizes": [{**plain(one), "row": one.row.name} for one in result.sizes],
        **picked(result, "memorisation=memorised, pilot=pilots, left_out"),
        "tables": list(found),
        "options": result.options.json(),
    }


def _first_measure(result: ExperimentReport) -> str:
    """That of figures and sentences; a benchmark may have its own."""
    return " or ".join(dict.fromkeys(board.scores.measures[0] for board in result.boards))


def _tables(result: ExperimentReport) -> Iterator[tuple[str, Table]]:
    names = {one: f"effectiveness-{one.board.collection}" for one in result.effects}
    if result.effects and result.options.kind == "transfer":
        yield "strategies", strategies_table(result.effects)
    elif result.effects and result.options.kind == "survivorship":
        yield "depths", depth_table(result.effects)
    elif result.effects and result.options.kind == "pilot":
        yield "controls", control_table(result.effects)
    else:
        for one, name in names.items():
            yield name, one.table()
    if result.sizes:
        yield "sizes", sizes_table(result.sizes, _first_measure(result), result.baseline)
    yield from memorised_tables(result.memorised, result.baseline, result.options).items()
    for each in result.pilots:
        yield f"pilot-{each.collection}", each.table()
    for one, name in names.items():
        if result.options.kind == "survivorship":
            for number, (row, found) in enumerate(depths_compared(one).items(), start=1):
                title = f"{one.board.collection}, {row}: training sets compared with each other."
                yield f"pairs-{one.board.collection}-{number}", replace(difference_table(found), title=title)
        order = None if result.options.kind == "pilot" else one.order_table()
        if order is not None:
            yield name.replace("effectiveness", "order"), order
        yield f"{name}-details", one.details()
    yield "grid", result.grid


def pictures(result: ExperimentReport) -> Iterator[Picture]:
    if result.options.kind == "survivorship" and result.effects:
        figure = line_panels(
            depth_panels(result.effects), x_label="depth of the annotation", y_label="mean over topics"
        )
        caption = (
            "Effectiveness by the depth of the annotation behind the training set, with "
            f"{100 * result.options.confidence:.6g}% intervals over topics. The differences are tested in the table."
        )
        yield Picture("depths", caption, figure)
    if result.effects and (name := {"pilot": "controls", "transfer": "strategies"}.get(str(result.options.kind))):
        yield Picture(name, *_difference_picture(result.effects, result.options.confidence, control=name == "controls"))
    for topics in TOPICS if result.sizes else ():
        chosen = panels(result.sizes, topics)
        if chosen:
            measure = _first_measure(result)
            words = "the topics that leak" if topics == "leaking" else "all topics"
            caption = (
                f"{measure} with the fault minus {result.baseline}, by training size in instances, on {words}; "
                f"{100 * result.options.confidence:.6g}% intervals over topics, not corrected for their number."
            )
            figure = line_panels(chosen, x_label="training instances", y_label=f"difference of {measure}")
            yield Picture(f"sizes-{topics}", caption, figure)


def _difference_picture(found: Sequence[Effectiveness], confidence: float, *, control: bool) -> tuple[str, Any]:
    """By benchmark, how far each model is above its control, or each strategy above the baseline's; with its words."""
    keys = dict.fromkeys((row, name) for one in found for row in one.shown_rows() for name in one.board.faults)
    known = [{key: _difference(one, *key, one.measures[0]) for key in keys} for one in found]
    shown = [key for key in keys if any(each[key] for each in known)]
    panels = []
    for one, each in zip(found, known, strict=True):
        values = [_interval(each[key], turned=control) for key in shown]
        base = one.board.baseline.rpartition(" | ")[2]
        label = f"{one.measures[0]}: {base} minus control" if control else f"{one.measures[0]}: minus {base}"
        panels.append(IntervalPanel(one.board.collection, label, tuple(values), {0.0: ""}))
    what = "model is above itself trained on a control" if control else "strategy is above the baseline of its queries"
    caption = (
        f"How far each {what}, with {100 * confidence:.6g}% intervals over topics, not corrected for their number."
    )
    return caption, interval_panels(_labels(shown), panels)


def _interval(found: Difference | None, *, turned: bool) -> IntervalValue:
    if found is None:
        return IntervalValue(None)
    above = _above(found)
    return (
        IntervalValue(above.mean, above.low, above.high)
        if turned
        else IntervalValue(found.difference, found.low, found.high)
    )


def _labels(rows: Sequence[tuple[BoardRow, str]]) -> list[str]:
    """Rows of a picture: queries, model and training set, each where it differs."""
    parts = [(row.group, row.model, name) for row, name in rows]
    shown = [number for number in range(3) if len({part[number] for part in parts}) > 1] or [1]
    return [", ".join(part[number] for number in shown if part[number]) for part in parts]


def strategies_table(found: Sequence[Effectiveness]) -> Table:
    """One row per block of queries and strategy, the measures of every benchmark side by side.

    The best of a block stands out; the first stage stands below. Where the design has several rankers, each strategy
    has a row for each.

    Source: transfer paper, section 6, Tables 4 and 5.
    """
    rows = list(dict.fromkeys(row for one in found for row in one.shown_rows()))
    conditions = list(dict.fromkeys(name for one in found for name in one.board.designed))
    places = [
        (row, name)
        for row in rows
        for name in conditions
        if any((row, name, measure) in one.estimates for one in found for measure in one.measures)
    ]
    shown_model, shown_group = len({row.model for row in rows}) > 1, any(row.group for row in rows)
    lead = [*([Column("queries")] if shown_group else []), Column("selection")]
    lead += [Column("ranker")] if shown_model else []
    values = [(one, measure) for one in found for measure in one.measures]
    measured = [Column(measure, (one.board.collection,), align="right") for one, measure in values]
    cells: list[tuple[Cell, ...]] = []
    for row, name in places:
        own = [*([row.group] if shown_group else []), name, *([row.model] if shown_model else [])]
        cells.append((*own, *(one.cell(row, name, measure) for one, measure in values)))
    strong = [
        (places.index((row, name)), len(lead) + column)
        for column, (one, measure) in enumerate(values)
        for row in rows
        for name in one.best([place for place in places if place[0] == row], measure)
    ]
    last: list[Cell] = ["first stage", *[""] * (len(lead) - 1)]
    last += [f"{float(one.board.first_stage.mean[0, one.measures.index(m)]):.4f}" for one, m in values]
    rules = group_starts([place[0] for place in places])
    said = [note for one in found for note in one.notes() if not note.startswith("What is reranked")]
    notes = tuple(dict.fromkeys(note.replace("the best of a row", "the best of a block") for note in said))
    return Table(
        "Effectiveness by the strategy that selects the version of the relevant training documents.",
        (*lead, *measured),
        (*cells, tuple(last)),
        notes,
        (*rules, len(places)),
        frozenset(strong),
    )

"""The report on an experiment: its tables, figures and findings as one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from truerank.experiments.grid.results import RECORD_FILE, GridResults, open_results
from truerank.experiments.report import page, survivorship
from truerank.experiments.report.board import Board, boards
from truerank.experiments.report.effectiveness import Effectiveness, effectiveness
from truerank.experiments.report.memorised import Memorised, memorised, memorised_tables
from truerank.experiments.report.missing import grid_table, missing_sentences
from truerank.experiments.report.options import ReportOptions
from truerank.experiments.report.pilot import Pilot, pilot
from truerank.experiments.report.sizes import TOPICS, SizeEffect, panels, size_effects, sizes_table
from truerank.experiments.report.statements import Statement, effect_statements, memory_statements, order_statements
from truerank.experiments.report.transfer import strategies_table
from truerank.measures.report import difference_table
from truerank.reports.figures import Picture, line_panels, to_svg_file
from truerank.reports.tables import Table
from truerank.work.artifacts import Artifacts, hash_file, installed_versions
from truerank.work.publishing import write_pictures, write_tables

__all__ = ["ExperimentReport", "report"]

_DEFAULTS: Final = ReportOptions()
#: Tables that are for files and the page, not for a terminal.
_LONG: Final = ("sizes",)


@dataclass(frozen=True, eq=False)
class ExperimentReport:
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
        inputs: what was read.
    """

    name: str
    options: ReportOptions
    boards: tuple[Board, ...]
    effects: tuple[Effectiveness, ...]
    sizes: tuple[SizeEffect, ...]
    memorised: tuple[Memorised, ...]
    pilots: tuple[Pilot, ...]
    grid: Table
    left_out: tuple[str, ...]
    inputs: Mapping[str, Any]

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name, in reading order."""
        return dict(self._tables())

    @cached_property
    def pictures(self) -> tuple[Picture, ...]:
        """The figures in reading order."""
        return tuple(self._pictures())

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """What was found, most important first."""
        return (*effect_statements(self.effects), *memory_statements(self.memorised, self.baseline, self.options))

    @property
    def baseline(self) -> str:
        """What the others are compared with."""
        return self.options.baseline or ""

    def table(self) -> Table:
        """The main table of the kind of report, of the first collection where each has its own."""
        return next(iter(self.tables.values()))

    def sentences(self) -> tuple[str, ...]:
        """What was found and what is missing, one paragraph each."""
        found = [f"{one.subject}: {one.sentence}" for one in self.statements]
        if not found:
            found = ["Nothing is compared with the baseline."] if self.options.kind != "pilot" else []
        return (*found, *order_statements(self.effects), *self.left_out)

    def text(self, width: int | None = 120) -> str:
        """The findings and the tables for a terminal, without the long ones.

        Args:
            width: characters per line; None for as wide as a table is.
        """
        shown = [table for name, table in self.tables.items() if name not in _LONG and not name.endswith("-details")]
        return "\n\n".join([*self.sentences(), *(table.text(width).rstrip("\n") for table in shown)]) + "\n"

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            "name": self.name,
            "kind": self.options.kind,
            "baseline": self.baseline,
            "measures": list(dict.fromkeys(name for board in self.boards for name in board.scores.measures)),
            "findings": [one._asdict() for one in self.statements],
            "sentences": list(self.sentences()),
            "effectiveness": [one.json() for one in self.effects],
            "sizes": [_size_json(one) for one in self.sizes],
            "memorisation": [one.json() for one in self.memorised],
            "pilot": [one.json() for one in self.pilots],
            "left_out": list(self.left_out),
            "tables": list(self.tables),
            "options": self.options.json(),
        }

    def html(self) -> str:
        """The report as one page that needs no network."""
        svgs = {one.name: to_svg_file(one.figure, name=one.name, description=one.caption) for one in self.pictures}
        return page.render(self, svgs)

    def save(self, folder: str | Path) -> Path:
        """Writes `report.html`, `summary.json`, `manifest.json`, `tables/` and `figures/`.

        Each table is written as text, CSV, LaTeX and Markdown, each figure as SVG and PDF.

        Args:
            folder: made if it does not exist.

        Returns:
            The folder.

        Raises:
            InputError: the folder cannot be written to.
        """
        artifacts = Artifacts(folder)
        write_tables(artifacts, self.tables)
        svgs = write_pictures(artifacts, self.pictures)
        artifacts.text("report.html", page.render(self, svgs))
        artifacts.json("summary.json", self.json())
        artifacts.manifest(self.provenance())
        return artifacts.folder

    def provenance(self) -> dict[str, Any]:
        """Inputs with hashes, options and versions."""
        return {
            "command": "experiment report",
            "inputs": dict(self.inputs),
            "options": self.options.json(),
            "left_out": list(self.left_out),
            "versions": installed_versions("truerank", "numpy", "scipy", "polars", "ir-measures", "matplotlib"),
        }

    @property
    def _first_measure(self) -> str:
        """That of figures and sentences; a benchmark may have its own."""
        return " or ".join(dict.fromkeys(board.scores.measures[0] for board in self.boards))

    def _tables(self) -> Iterator[tuple[str, Table]]:
        names = {one: f"effectiveness-{one.board.collection}" for one in self.effects}
        if self.effects and self.options.kind == "transfer":
            yield "strategies", strategies_table(self.effects)
        elif self.effects and self.options.kind == "survivorship":
            yield "depths", survivorship.depth_table(self.effects)
        else:
            for one, name in names.items():
                yield name, one.table()
        if self.sizes:
            yield "sizes", sizes_table(self.sizes, self._first_measure, self.baseline)
        yield from memorised_tables(self.memorised, self.baseline, self.options).items()
        for each in self.pilots:
            yield f"pilot-{each.collection}", each.table()
        for one, name in names.items():
            if self.options.kind == "survivorship":
                for number, (row, found) in enumerate(survivorship.depths_compared(one).items(), start=1):
                    title = f"{one.board.collection}, {row}: training sets compared with each other."
                    yield f"pairs-{one.board.collection}-{number}", replace(difference_table(found), title=title)
            order = one.order_table()
            if order is not None:
                yield name.replace("effectiveness", "order"), order
            yield f"{name}-details", one.details()
        yield "grid", self.grid

    def _pictures(self) -> Iterator[Picture]:
        if self.options.kind == "survivorship" and self.effects:
            figure = line_panels(
                survivorship.depth_panels(self.effects), x_label="depth of the annotation", y_label="mean over topics"
            )
            caption = (
                "Effectiveness by the depth of the annotation behind the training set, with "
                f"{100 * self.options.confidence:.6g}% intervals over topics. The differences are tested in the table."
            )
            yield Picture("depths", caption, figure)
        for topics in TOPICS if self.sizes else ():
            chosen = panels(self.sizes, topics)
            if chosen:
                measure = self._first_measure
                words = "the topics that leak" if topics == "leaking" else "all topics"
                caption = (
                    f"{measure} with the fault minus {self.baseline}, by training size in instances, on {words}; "
                    f"{100 * self.options.confidence:.6g}% intervals over topics, not corrected for their number."
                )
                figure = line_panels(chosen, x_label="training instances", y_label=f"difference of {measure}")
                yield Picture(f"sizes-{topics}", caption, figure)


def report(
    results: GridResults | str | Path, out: str | Path | None = None, *, options: ReportOptions = _DEFAULTS
) -> ExperimentReport:
    """Makes the tables and figures of an experiment from what its grid has finished so far.

    Args:
        results: of the grid, or the folder that it was written to.
        out: the folder for the report; None to write nothing.
        options: what is shown, and how runs are scored and compared.

    Returns:
        The report.

    Raises:
        InputError: no results there; nothing finished, or nothing of the baseline; an unknown measure or size.

    Source: leakage paper, section 4, Tables 3 to 8 and Figure 2; transfer paper, section 6, Tables 4 and 5;
    survivorship paper, section 5, Figure 1.
    """
    results = results if isinstance(results, GridResults) else open_results(results)
    options = options.of(results.design)
    found = boards(results, options)
    effects = () if options.kind == "pilot" else tuple(effectiveness(board, options) for board in found)
    leakage = options.kind == "leakage"
    remembered, missing = memorised(results, found, options) if leakage else ((), ())
    wanted = leakage or options.kind == "pilot"
    pilots = [one for board in found if wanted and (one := pilot(board, options)) is not None]
    result = ExperimentReport(
        name=results.design.name,
        options=options,
        boards=found,
        effects=effects,
        sizes=tuple(effect for board in found if leakage for effect in size_effects(board, options)),
        memorised=remembered,
        pilots=tuple(pilots),
        grid=grid_table(results),
        left_out=(*missing_sentences(results), *_left_out(results, found, effects), *missing),
        inputs={
            "results": str(results.folder),
            "record": hash_file(results.folder / RECORD_FILE),
            "design": results.design.json(),
        },
    )
    if out is not None:
        result.save(out)
    return result


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


def _size_json(one: SizeEffect) -> dict[str, Any]:
    intervals = {name: getattr(one, name)._asdict() for name in ("mean", "baseline", "difference")}
    return {**one._asdict(), "row": one.row.name, "seeds": list(one.seeds), **intervals}

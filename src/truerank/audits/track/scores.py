"""The mean scores of a track's runs, from run files or from tables of means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from truerank.arrays import Floats
from truerank.audits.track.means import MeansTable, measure_name, read_means
from truerank.errors import InputError, OptionError
from truerank.measures import Evaluation, Policy, evaluate, lower_is_better, parse_measures
from truerank.measures.report import evaluation_notes
from truerank.sources import parse
from truerank.sources.run_tables import Metadata, RowFilter, RunInfo

_SPARSE: Final = re.compile(r"RR(@\d+)? \(\w+\)")
#: Printed means carry four digits; two tables agree where they differ by rounding only.
_ROUNDING: Final = 1.0001e-4


@dataclass(frozen=True, eq=False)
class Scores:
    """The mean scores of runs and what is known about the runs.

    Attributes:
        runs: name, group, subtask and category of each.
        measures: as they are spelled in every table and figure.
        means: shape (runs, measures); NaN where unknown.
        main: the measure that runs are sorted by.
        evaluation: the scores by topic, where runs were read.
        sparse: the measure against the sparse judgments, where there is one.
        printed: the measures of the table of results; empty for all of them.
        notes: what a reader has to know of the scores, in sentences.
    """

    runs: tuple[RunInfo, ...]
    measures: tuple[str, ...]
    means: Floats
    main: str
    evaluation: Evaluation | None = None
    sparse: str | None = None
    printed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.means.flags.writeable = False

    def of(self, measure: str) -> Floats:
        """The means by one measure, shape (runs,).

        Raises:
            InputError: there is no such measure.
        """
        if measure not in self.measures:
            raise InputError(f"there is no measure '{measure}'", f"one of {', '.join(self.measures)}")
        found: Floats = self.means[:, self.measures.index(measure)]
        return found

    @property
    def gain(self) -> str | None:
        """The measure of cumulated gain (NCG@k), where there is one."""
        return next((name for name in self.measures if name.startswith("NCG")), None)

    @property
    def recall(self) -> str | None:
        """Recall at the same depth as the measure of cumulated gain, where there is one."""
        if self.gain is None:
            return None
        depth = self.gain.rpartition("@")[2]
        return next((name for name in self.measures if re.fullmatch(rf"R(\(.*\))?@{depth}", name)), None)

    @property
    def topics(self) -> int | None:
        """How many topics the means go over; None where they come from tables."""
        return None if self.evaluation is None else len(self.evaluation.topics)


def from_tables(
    paths: Sequence[str | Path], metadata: Metadata, selection: RowFilter, *, main: str, measures: Sequence[str] = ()
) -> Scores:
    """Puts tables of means together.

    A table adds its runs and measures to those before it. Where two tables differ in a measure of a run by more than
    rounding, the later one's measure stands beside the earlier one's under the name of its table.

    Args:
        main: the measure that runs are sorted by.

    Returns:
        The scores, runs sorted by the main measure.
    """
    tables = [read_means(path, selection) for path in paths]
    known = metadata
    for table, path in zip(tables, paths, strict=True):
        known = known.completed(table.infos, path)
    known = known.without(selection.excluded)
    wanted = {measure_name(name) or name for name in measures}
    runs = list(dict.fromkeys(run for table in tables for run in table.runs if run not in selection.excluded))
    columns, notes = _columns(tables, runs)
    if absent := sorted(wanted - set(columns)):
        raise OptionError("measures", f"no table has {', '.join(absent)}", f"there are {', '.join(columns)}")
    names = [name for name in columns if not wanted or name in wanted or name == main]
    if main not in names:
        raise InputError(
            f"no table has the main measure {main}",
            f"choose one with `measure`: {', '.join(columns)}",
            where=", ".join(str(path) for path in paths),
        )
    if not np.isfinite(columns[main]).any():
        raise InputError(f"no run has a value of {main}", "choose another with `measure`", where=paths[0])
    means = np.stack([columns[name] for name in names], axis=1)
    lacking = [run for run in runs if run not in tables[0].runs]
    if lacking:
        notes.append(f"{tables[0].name} lacks {len(lacking)} of the {len(runs)} runs: {', '.join(lacking)}.")
    notes += _strays(known, runs, columns[main], main)
    order = np.argsort(np.where(np.isnan(columns[main]), np.inf, -columns[main]), kind="stable")
    return Scores(
        runs=tuple(known.of(runs[i]) for i in order),
        measures=tuple(names),
        means=means[order],
        main=main,
        printed=tuple(name for name in names if name in tables[0].measures) if len(tables) > 1 else tuple(names),
        sparse=next((name for table in tables for name in table.measures if _SPARSE.fullmatch(name)), None),
        notes=tuple(notes),
    )


def from_runs(
    qrels: str,
    runs: Sequence[str | Path],
    metadata: Metadata,
    selection: RowFilter,
    *,
    main: str,
    measures: Sequence[str],
    policy: Policy,
    sparse_qrels: str | None = None,
) -> Scores:
    """Scores run files.

    Args:
        main: the measure that runs are sorted by.

    Returns:
        The scores, runs sorted by the main measure.
    """
    metadata = metadata.without(selection.excluded)
    chosen = [str(path) for path in runs if parse(str(path)).name not in selection.excluded]
    if not chosen:
        raise OptionError("run", "no run is left", "check `where`")
    if lower_is_better(parse_measures(main)[0]):
        raise OptionError("measure", f"{main} is better when lower", "choose a measure that grows with quality")
    evaluation = evaluate(qrels, chosen, " ".join([main, *measures]), policy)
    main = evaluation.measures[0]
    evaluation = evaluation.sorted(main)
    names, means = list(evaluation.measures), evaluation.mean
    notes = list(evaluation_notes(evaluation))
    sparse = None
    if sparse_qrels is not None:
        sparse = "RR (sparse)"
        column, note = _sparse(sparse_qrels, chosen, evaluation, policy)
        names, means = [*names, sparse], np.column_stack([means, column])
        notes.append(note)
    notes += _strays(metadata, list(evaluation.runs), means[:, 0], main)
    return Scores(
        runs=tuple(metadata.of(run) for run in evaluation.runs),
        measures=tuple(names),
        means=means,
        main=main,
        evaluation=evaluation,
        sparse=sparse,
        notes=tuple(notes),
    )


def _sparse(spec: str, runs: Sequence[str], evaluation: Evaluation, policy: Policy) -> tuple[Floats, str]:
    """The mean reciprocal rank against the sparse judgments, in the order of the evaluation's runs."""
    # Sparse judgments know one grade, whatever the others count from.
    found = evaluate(spec, runs, ["RR"], replace(policy, rel=1))
    shared = [number for number, topic in enumerate(found.topics) if topic in set(evaluation.topics)]
    if not shared:
        raise InputError("no topic of the qrels is judged here", "give sparse judgments of the same topics", where=spec)
    ranks = [found.of(run, found.measures[0])[shared] for run in evaluation.runs]
    column = np.array([np.nan if np.isnan(one).all() else one[~np.isnan(one)].mean() for one in ranks])
    return column, (
        f"RR (sparse) goes over the {len(shared):,} of {len(evaluation.topics):,} topics that have sparse judgments"
        f" ({len(found.topics):,} topics in the file)."
    )


def _columns(tables: Sequence[MeansTable], runs: Sequence[str]) -> tuple[dict[str, Floats], list[str]]:
    columns: dict[str, Floats] = {}
    notes: list[str] = []
    place = {run: number for number, run in enumerate(runs)}
    for table in tables:
        rows = [number for number, run in enumerate(table.runs) if run in place]
        places = [place[table.runs[number]] for number in rows]
        for position, measure in enumerate(table.measures):
            new = np.full(len(runs), np.nan)
            new[places] = table.values[rows, position]
            old = columns.get(measure)
            if old is None:
                columns[measure] = new
                continue
            differing = np.abs(new - old) > _ROUNDING
            if not differing.any():
                columns[measure] = np.where(np.isnan(old), new, old)
                continue
            columns[f"{measure} ({table.name})"] = new
            notes.append(
                f"{table.name} has another {measure} for {int(differing.sum()):,} of "
                f"{int(np.isfinite(new + old).sum()):,} runs; it is kept apart."
            )
    return columns, notes


def _strays(metadata: Metadata, runs: Sequence[str], main: Floats, measure: str) -> list[str]:
    """Runs that the metadata name and nobody scored, and the other way round."""
    notes: list[str] = []
    scored = {run for run, value in zip(runs, main, strict=True) if np.isfinite(value)}
    without = [run for run in metadata.runs if run not in scored]
    if without:
        notes.append(f"In the metadata, but without {measure}: {', '.join(without)}.")
    for part in ("group", "subtask", "category"):
        unknown = [run for run in runs if not getattr(metadata.of(run), part)]
        if unknown and len(unknown) < len(runs):
            notes.append(f"Without a {part} in the tables: {', '.join(unknown)}.")
    return notes

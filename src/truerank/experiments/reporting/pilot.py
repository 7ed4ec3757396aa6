"""The pilot: every model trained on the baseline at one size, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.errors import OptionError
from truerank.experiments.reporting.board import Board, BoardRow, size_name
from truerank.experiments.reporting.options import ReportChoices
from truerank.measures import Comparison, Evaluation, compare_evaluations, lower_is_better, mean_interval
from truerank.reports.tables import Cell, Column, Table


@dataclass(frozen=True, eq=False)
class Pilot:
    """The models of one collection at one size of the baseline.

    Attributes:
        collection: its name.
        baseline: what they were trained on.
        size: in instances, 0 for all rows.
        scores: one run per model, best first by the first measure; by topic, values are means over seeds.
        seeds: the means of single seeds by model, shape (seeds, measures).
        comparison: of the others with the best; None where one model is alone.
        left_out: models without a finished training at this size.
        options: the choices behind it.
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
        """One row per model."""
        columns = [Column("model"), Column("seeds", align="right", format="d")]
        for measure in self.scores.measures:
            columns.append(Column("mean", (measure,), align="right"))
            columns += Column.numbers(".4f", "low", "high", "sd over seeds", above=(measure,))
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
        return Table(title, tuple(columns), rows, tuple(notes))

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "collection": self.collection,
            "trained_on": self.baseline,
            "size": self.size,
            "scores": self.scores.json(),
            "seeds": {model: values.tolist() for model, values in self.seeds.items()},
            "comparison": None if self.comparison is None else self.comparison.json(),
            "left_out": list(self.left_out),
        }

    def _row(self, place: int, model: str) -> tuple[Cell, ...]:
        cells: list[Cell] = [model, len(self.seeds[model])]
        for number, measure in enumerate(self.scores.measures):
            values = self.scores.values[place, number]
            interval = mean_interval(values[~np.isnan(values)], self.options.confidence)
            mean, seeds = float(self.scores.mean[place, number]), self.seeds[model][:, number]
            marked = self.comparison is not None and any(
                one.significant for one in self.comparison.differences if (one.run, one.measure) == (model, measure)
            )
            whole = (self.scores.aggregates or ("mean",) * number)[number:][:1] == ("mean",)
            ends: tuple[Cell, ...] = interval[2:] if whole else (None, None)
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
    kinds = scores.aggregates or ("mean",) * len(scores.measures)
    tested = [measure for measure, kind in zip(scores.measures, kinds, strict=True) if kind == "mean"]
    several = len(order) > 1 and bool(tested)
    return Pilot(
        collection=board.collection,
        baseline=board.baseline,
        size=size,
        scores=scores,
        seeds={name: board.evaluation(list(map(str, range(len(v)))), list(v)).mean for name, v in held.items()},
        comparison=compare_evaluations(scores, order[0], measures=tested, method=options.method) if several else None,
        left_out=tuple(row.name for row in board.rows if row not in rows),
        options=options,
    )


def _size(board: Board, rows: Sequence[BoardRow], wanted: int | None) -> int:
    counts: dict[int, int] = {}
    for row in rows:
        for size in board.sizes(row, board.baseline):
            counts[size] = counts.get(size, 0) + 1
    if wanted is None:
        return max(counts, key=lambda size: (counts[size], size == 0, size))
    if wanted not in counts:
        raise OptionError(
            "pilot_size",
            f"no model was trained on {board.baseline} with {size_name(wanted)} instances",
            f"one of {', '.join(map(size_name, sorted(counts)))}",
        )
    return wanted

"""The scores of all finished cells of one collection, arranged as tables need them: rows by training set by size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.errors import InputError
from truerank.experiments.grid.design import Design, SetDesign
from truerank.experiments.grid.results import GridResults
from truerank.experiments.report.options import GROUP_SIGN, ReportOptions
from truerank.measures import Evaluation, Policy, evaluate
from truerank.measures.folds import Folds
from truerank.measures.grammar import parse_measures

__all__ = ["Board", "Row", "arranged", "boards", "size_name"]

Floats = NDArray[np.float64]

#: So many cells are scored at once: more share the work on the judgments, fewer need less memory.
_AT_ONCE: Final = 32


class Row(NamedTuple):
    """A row of a table: the block of training sets that it belongs to (may be empty), and the model."""

    group: str
    model: str

    @property
    def name(self) -> str:
        """Both in one text."""
        return f"{self.group}{GROUP_SIGN}{self.model}" if self.group else self.model


@dataclass(frozen=True, eq=False)
class Board:
    """What a grid found on one collection so far.

    Attributes:
        collection: its name.
        rows: in the order of the design.
        conditions: what tells the training sets of a row apart, the baseline first.
        baseline: the condition that the others are compared with.
        kinds: the kind of the sets by condition.
        cells: every cell that is tested on the collection: the record's columns, and `group`, `condition`, `row` (its
            model as tables call it).
        scores: of the finished cells, which are its runs.
        first_stage: of what they rerank.
        folds: the topics of each fold.
        leaking: the topics that leak.
    """

    collection: str
    rows: tuple[Row, ...]
    conditions: tuple[str, ...]
    baseline: str
    kinds: Mapping[str, str]
    cells: pl.DataFrame
    scores: Evaluation
    first_stage: Evaluation
    folds: Folds
    leaking: tuple[str, ...]

    @property
    def designed(self) -> tuple[str, ...]:
        """The conditions in the order of the design."""
        return tuple(self.cells["condition"].unique(maintain_order=True).to_list())

    @property
    def faults(self) -> tuple[str, ...]:
        """The conditions but the baseline."""
        return tuple(name for name in self.conditions if name != self.baseline)

    def of(self, row: Row, condition: str, size: int | None = None) -> pl.DataFrame:
        """The finished cells of a row and condition, of one size or of all, by size and seed."""
        chosen = (pl.col("group") == row.group) & (pl.col("row") == row.model) & (pl.col("condition") == condition)
        if size is not None:
            chosen &= pl.col("size") == size
        return self.cells.filter(chosen & (pl.col("status") == "done"))

    def sizes(self, row: Row, condition: str) -> tuple[int, ...]:
        """The sizes that at least one cell is finished of; all rows of a set (0) come last."""
        found = self.of(row, condition)["size"].unique().to_list()
        return tuple(sorted(found, key=lambda size: (size == 0, size)))

    def shared_sizes(self, row: Row) -> tuple[int, ...]:
        """The sizes that are finished of every condition of which any is."""
        by_condition = [set(found) for condition in self.conditions if (found := self.sizes(row, condition))]
        shared = set.intersection(*by_condition) if by_condition else set()
        return tuple(sorted(shared, key=lambda size: (size == 0, size)))

    def values(self, cells: Sequence[str]) -> Floats:
        """The scores of some cells, shape (cells, measures, topics)."""
        places = {name: place for place, name in enumerate(self.scores.runs)}
        return np.asarray(self.scores.values[[places[cell] for cell in cells]])

    def seed_means(self, row: Row, condition: str, sizes: Sequence[int]) -> Evaluation:
        """One run per size: by topic, the mean over its seeds (over what is finished of them)."""
        means = [self.values(self.of(row, condition, size)["cell"].to_list()).mean(axis=0) for size in sizes]
        return self.evaluation([size_name(size) for size in sizes], means)

    def evaluation(self, runs: Sequence[str], values: Sequence[Floats]) -> Evaluation:
        """Values of the shape (measures, topics) as runs of an evaluation like `scores`."""
        shape = (0, *self.scores.values.shape[1:])
        stacked = np.stack(values) if len(values) else np.zeros(shape)
        return replace(
            self.scores, runs=tuple(runs), values=stacked, missing=dict.fromkeys(runs, 0), coverage={}, inputs={}
        )


def size_name(size: int) -> str:
    """How tables call a training size."""
    return f"{size:,}" if size else "all"


def boards(results: GridResults, options: ReportOptions) -> tuple[Board, ...]:
    """Scores the finished cells of every collection, some at a time.

    Args:
        results: of the grid, finished or not.
        options: with everything that the design says filled in.

    Returns:
        One board per collection of which any cell is finished, in the order of the design.

    Raises:
        InputError: nothing is finished; no training set is the baseline, or none of its cells is finished; an unknown
            measure.
    """
    parse_measures(options.measures)
    cells = arranged(results.cells, results.design, pooled=options.kind == "transfer")
    _check_baseline(cells, options.baseline or "")
    if not (cells["status"] == "done").any():
        raise InputError("no cell is finished", "run 'truerank experiment run' first", where=results.folder)
    found = tuple(_boards(results, cells, options))
    if not any(_has_baseline(board) for board in found):
        raise InputError(
            f"no cell of the baseline '{options.baseline}' is finished",
            "run 'truerank experiment run' again, or choose another one with --baseline",
            where=results.folder,
        )
    return found


def arranged(cells: pl.DataFrame, design: Design, *, pooled: bool = False) -> pl.DataFrame:
    """The record with the columns `group`, `condition` and `row`.

    Args:
        cells: the record of a grid.
        design: the design behind it.
        pooled: models of the design that train the same ranker, such as one that reads first passages and one that
            takes the best passage, are one row, as are their variants.
    """
    labels = _labels(design.sets)
    rankers: dict[str, list[str]] = {}
    for model in design.models:
        rankers.setdefault(model.model, []).append(model.name)
    shown = {name: names[0] if len(names) == 1 else ranker for ranker, names in rankers.items() for name in names}
    row = pl.col("model").replace(shown) if pooled else pl.col("model")
    if not pooled:
        row = pl.when(pl.col("variant") == "").then(row).otherwise(pl.format("{} ({})", row, "variant"))
    return cells.with_columns(
        pl.col("set").replace_strict({name: label[0] for name, label in labels.items()}).alias("group"),
        pl.col("set").replace_strict({name: label[1] for name, label in labels.items()}).alias("condition"),
        row.alias("row"),
    )


def _labels(sets: Sequence[SetDesign]) -> dict[str, tuple[str, str]]:
    """Group and condition of each set; sets of one collection that have the same ones are told apart by their names."""
    found: dict[str, tuple[str, str]] = {}
    taken: dict[tuple[str, str, str], str] = {}
    for one in sets:
        group, sign, condition = (one.label or one.kind).rpartition(GROUP_SIGN)
        label = (group if sign else "", condition)
        if any(taken.get((collection, *label), one.name) != one.name for collection in one.collections):
            label = (label[0], f"{condition} ({one.name})")
        taken.update({(collection, *label): one.name for collection in one.collections})
        found[one.name] = label
    return found


def _boards(results: GridResults, cells: pl.DataFrame, options: ReportOptions) -> Iterator[Board]:
    baseline = options.baseline or ""
    for collection in (each.name for each in results.design.collections):
        own = cells.filter(pl.col("collections").list.contains(collection))
        done = own.filter(pl.col("status") == "done")["cell"].unique(maintain_order=True).to_list()
        if not done:
            continue
        judged, policy = results.qrels(collection), _policy(results.design, collection, options.policy)
        conditions = own["condition"].unique(maintain_order=True).to_list()
        pairs = own.select("group", "row").unique(maintain_order=True).rows()
        yield Board(
            collection=collection,
            rows=tuple(Row(*pair) for pair in pairs),
            conditions=tuple(sorted(conditions, key=lambda name: name != baseline)),
            baseline=baseline,
            kinds=dict(own.select("condition", "kind").unique(maintain_order=True).rows()),
            cells=own,
            scores=_scored(results, collection, judged, done, (options.measures, policy)),
            first_stage=evaluate(judged, {"first stage": results.first_stage(collection)}, [*options.measures], policy),
            folds=results.folds(collection),
            leaking=_leaking(results, collection),
        )


def _leaking(results: GridResults, collection: str) -> tuple[str, ...]:
    """The topics that leak; where only test data leak, those of the test data."""
    found = results.leaking_topics(collection)
    return found or tuple(results.leaked(collection)["topic_id"].unique().sort().to_list())


def _scored(
    results: GridResults,
    collection: str,
    judged: pl.DataFrame,
    cells: Sequence[str],
    scoring: tuple[tuple[str, ...], Policy],
) -> Evaluation:
    measures, policy = scoring
    parts = []
    for start in range(0, len(cells), _AT_ONCE):
        runs = {cell: results.run(cell, collection) for cell in cells[start : start + _AT_ONCE]}
        parts.append(evaluate(judged, runs, [*measures], policy))
    return replace(
        parts[0],
        runs=tuple(run for part in parts for run in part.runs),
        values=np.concatenate([part.values for part in parts]),
        missing={run: count for part in parts for run, count in part.missing.items()},
        coverage={},
        inputs={},
    )


def _policy(design: Design, collection: str, policy: Policy) -> Policy:
    """The policy with the depth that was reranked, beyond which a relevant document is not found (MFR)."""
    if policy.depth is not None:
        return policy
    own = design.collection(collection).depth
    return replace(policy, depth=max(own, *(model.depth or own for model in design.models)))


def _check_baseline(cells: pl.DataFrame, baseline: str) -> None:
    labels = cells["condition"].unique(maintain_order=True).to_list()
    if baseline not in labels:
        raise InputError(
            f"no training set is called '{baseline}', which is the baseline",
            f"name one of {', '.join(labels)} with --baseline",
            where="--baseline",
        )


def _has_baseline(board: Board) -> bool:
    return any(board.sizes(row, board.baseline) for row in board.rows)

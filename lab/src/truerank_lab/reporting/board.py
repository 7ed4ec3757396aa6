"""The scores of all finished cells, arranged as the tables of a report need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Floats
from truerank.errors import InputError
from truerank.measures import Evaluation, Policy, Significance, evaluate
from truerank.measures.folds import Folds
from truerank_lab.cross_validation import joined
from truerank_lab.grid.design import BenchmarkDesign, Design, ReportKind
from truerank_lab.grid.results import GridResults

#: In the label of a set: what stands before it is the block of the table, what stands behind it the condition.
GROUP_SIGN: Final = " | "
#: So many cells are scored at once: more share the work on the judgments, fewer need less memory.
_AT_ONCE: Final = 32


class Choices(NamedTuple):
    """What a report is made by.

    `size` is that of the tables on memorisation, None for the largest; `method` compares training sets, and says how
    often and from which seed the bootstrap draws.
    """

    kind: ReportKind
    baseline: str
    size: int | None
    method: Significance

    @property
    def confidence(self) -> float:
        return 1 - self.method.alpha


class BoardRow(NamedTuple):
    """A row of a table: the block of training sets that it belongs to (may be empty), and the model."""

    group: str
    model: str

    @property
    def name(self) -> str:
        return f"{self.group}{GROUP_SIGN}{self.model}" if self.group else self.model


@dataclass(frozen=True, eq=False)
class Board:
    """What a grid found on one benchmark so far: a collection, or several whose topics are one sample.

    Rows are in the order of the design; conditions tell the training sets of a row apart, the baseline first, and
    `kinds` has the kind of their sets. `cells` has every cell that is tested on the collection: the columns of the
    record, and `group`, `condition`, `row` (its model as tables call it). The finished ones are the runs of `scores`;
    `first_stage` is what they rerank. `folds` name topics; `checkpoints` the sets that nothing is trained on.
    """

    benchmark: BenchmarkDesign
    rows: tuple[BoardRow, ...]
    conditions: tuple[str, ...]
    baseline: str
    kinds: Mapping[str, str]
    cells: pl.DataFrame
    scores: Evaluation
    first_stage: Evaluation
    folds: Folds
    checkpoints: frozenset[str]

    @property
    def collection(self) -> str:
        return self.benchmark.name

    @property
    def designed(self) -> tuple[str, ...]:
        """The conditions in the order of the design."""
        return tuple(self.cells["condition"].unique(maintain_order=True).to_list())

    @property
    def faults(self) -> tuple[str, ...]:
        """The conditions but the baseline."""
        return tuple(name for name in self.conditions if name != self.baseline)

    def of(self, row: BoardRow, condition: str, size: int | None = None) -> pl.DataFrame:
        """The finished cells of a row and condition, of one size or of all, by size and seed."""
        chosen = (pl.col("group") == row.group) & (pl.col("row") == row.model) & (pl.col("condition") == condition)
        if size is not None:
            chosen &= pl.col("size") == size
        return self.cells.filter(chosen & (pl.col("status") == "done"))

    def sizes(self, row: BoardRow, condition: str) -> tuple[int, ...]:
        """The sizes that at least one cell is finished of."""
        return tuple(sorted(self.of(row, condition)["size"].unique().to_list()))

    def trained(self, row: BoardRow, condition: str) -> bool:
        """Whether a row was trained under a condition: a checkpoint that is only tested has no size and no seed."""
        return not set(self.of(row, condition)["set"].to_list()) <= self.checkpoints

    def shared_sizes(self, row: BoardRow) -> tuple[int, ...]:
        """The sizes that are finished of every condition of which any is; what is not trained has none."""
        trained = [condition for condition in self.conditions if self.trained(row, condition)]
        by_condition = [set(found) for condition in trained if (found := self.sizes(row, condition))]
        return tuple(sorted(set.intersection(*by_condition))) if by_condition else ()

    def values(self, cells: Sequence[str]) -> Floats:
        """The scores of some cells, shape (cells, measures, topics)."""
        places = {name: place for place, name in enumerate(self.scores.runs)}
        return np.asarray(self.scores.values[[places[cell] for cell in cells]])

    def seed_means(self, cells: pl.DataFrame, sizes: Sequence[int]) -> Evaluation:
        """One run per size: by topic, the mean over those of the cells that have it (over what is finished of them)."""
        by_size = [cells.filter(pl.col("size") == size)["cell"].to_list() for size in sizes]
        return self.evaluation(
            [size_name(size) for size in sizes], [self.values(some).mean(axis=0) for some in by_size]
        )

    def evaluation(self, runs: Sequence[str], values: Sequence[Floats]) -> Evaluation:
        """Values of the shape (measures, topics) as runs of an evaluation like `scores`."""
        stacked = np.stack(values) if len(values) else np.zeros((0, *self.scores.values.shape[1:]))
        return replace(
            self.scores, runs=tuple(runs), values=stacked, missing=dict.fromkeys(runs, 0), coverage={}, inputs={}
        )


def size_name(size: int) -> str:
    """How tables call a training size."""
    return f"{size:,}" if size else "all"


def boards(results: GridResults, choices: Choices) -> tuple[Board, ...]:
    """Scores the finished cells of every collection, some at a time."""
    cells = _arranged(results.cells, results.design, pooled=choices.kind == "transfer")
    if not (cells["status"] == "done").any():
        raise InputError("no cell is finished", "run 'truerank-lab run' first", where=results.folder)
    found = tuple(_boards(results, cells, choices))
    if not any(board.sizes(row, board.baseline) for board in found for row in board.rows):
        fault = f"no cell of the baseline '{choices.baseline}' is finished"
        raise InputError(fault, "run 'truerank-lab run' again", where=results.folder)
    return found


def _arranged(cells: pl.DataFrame, design: Design, *, pooled: bool) -> pl.DataFrame:
    """The record with the columns `group`, `condition` and `row`; pooled: models of one ranker are one row."""
    labels: dict[str, tuple[str, str]] = {}
    taken: dict[tuple[str, ...], str] = {}
    for one in design.sets:
        group, _, condition = one.label.rpartition(GROUP_SIGN)
        models = [each.name for each in design.models if not each.sets or one.name in each.sets]
        places = [(collection, model, group, condition) for collection in one.collections for model in models]
        # Sets that have the same ones for a collection and model are told apart by name.
        own = condition if not any(place in taken for place in places) else f"{condition} ({one.name})"
        taken.update(dict.fromkeys(places, one.name))
        labels[one.name] = (group, own)
    rankers = [model.model for model in design.models]
    several = {one.name: one.model for one in design.models if pooled and rankers.count(one.model) > 1}
    row = pl.col("model").replace(several)
    groups, conditions = ({name: label[place] for name, label in labels.items()} for place in (0, 1))
    set_ = pl.col("set")
    return cells.with_columns(group=set_.replace_strict(groups), condition=set_.replace_strict(conditions), row=row)


def _boards(results: GridResults, cells: pl.DataFrame, choices: Choices) -> Iterator[Board]:
    baseline, design = choices.baseline, results.design
    checkpoints = frozenset(each.name for each in design.sets if each.checkpoint is not None)
    for benchmark in design.reported:
        # A set is tested on all of a benchmark, or on nothing of it.
        own = cells.filter(pl.col("collections").list.contains(benchmark.collections[0]))
        done = own.filter(pl.col("status") == "done")["cell"].unique(maintain_order=True).to_list()
        if not done:
            continue
        conditions = own["condition"].unique(maintain_order=True).to_list()
        scores, first_stages = [], []
        for collection in benchmark.collections:
            measures, policy = [*design.measures_of(collection)], _policy(design, collection)
            judged, parts = results.qrels(collection), []
            for start in range(0, len(done), _AT_ONCE):
                runs = {cell: results.run(cell, collection) for cell in done[start : start + _AT_ONCE]}
                parts.append(evaluate(judged, runs, measures, policy))
            scores.append(joined(parts))
            first = {"first stage": results.first_stage(collection)}
            first_stages.append(evaluate(judged, first, measures, policy))
        yield Board(
            benchmark=benchmark,
            rows=tuple(BoardRow(*pair) for pair in own.select("group", "row").unique(maintain_order=True).rows()),
            conditions=tuple(sorted(conditions, key=lambda name: name != baseline)),
            baseline=baseline,
            kinds=dict(own.select("condition", "kind").unique(maintain_order=True).rows()),
            cells=own,
            scores=_together(benchmark, scores),
            first_stage=_together(benchmark, first_stages),
            folds=results.folds(benchmark.name),
            checkpoints=checkpoints,
        )


def _together(benchmark: BenchmarkDesign, parts: Sequence[Evaluation]) -> Evaluation:
    """The scores on all collections of a benchmark, one topic beside the other."""
    own = zip(benchmark.collections, parts, strict=True)
    topics = tuple(benchmark.topic(collection, topic) for collection, part in own for topic in part.topics)
    values = np.concatenate([part.values for part in parts], axis=2)
    missing = {run: sum(part.missing[run] for part in parts) for run in parts[0].missing}
    return replace(parts[0], topics=topics, values=values, missing=missing, coverage={}, inputs={})


def _policy(design: Design, collection: str) -> Policy:
    """Ties by document id, as in the papers; the grade that is relevant, and the depth that was reranked, beyond which
    a relevant document is not found (MFR)."""
    own = design.collection(collection)
    return Policy(
        ties="ascending", rel=own.rel, depth=max(own.depth, *(each.depth or own.depth for each in design.models))
    )

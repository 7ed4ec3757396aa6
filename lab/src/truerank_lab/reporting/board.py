"""The choices of a report, and the scores of all finished cells arranged as its tables need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Floats
from truerank.core.plain import plain
from truerank.errors import InputError, OptionError
from truerank.measures import Evaluation, Policy, Significance, evaluate
from truerank.measures.folds import Folds
from truerank.measures.grammar import parse_measures
from truerank.options import Flag, Options, Range, Scoring
from truerank_lab.grid.design import BenchmarkDesign, Design, ReportKind
from truerank_lab.grid.results import GridResults

#: What cross-validation chooses between: sizes of the training set, each the mean over its seeds, or single trainings.
Choose = Literal["sizes", "runs"]
#: In the label of a set: what stands before it is the block of the table, what stands behind it the condition.
GROUP_SIGN: Final = " | "

_USUAL: Final[dict[str, Choose]] = {
    "leakage": "sizes", "transfer": "runs", "survivorship": "sizes", "pilot": "sizes"
}  # fmt: skip


class Draws(NamedTuple):
    """How intervals are drawn: the bootstrap over topics, its confidence, number of draws and seed."""

    confidence: float = 0.95
    resamples: int = 10_000
    seed: int = 0


@dataclass(frozen=True)
class ReportOptions(Options):
    """What the report shows.

    Attributes:
        kind: which paper's tables and figures; by default as the design says.
        measures: what is shown, separated by blanks; the first is that of figures and sentences. By default those that
            the design has for each collection.
        baseline: label of the training sets that the others are compared with; by default the design's.
        choose: what cross-validation chooses between: training sizes, each the mean over its seeds, or single
            trainings; by default sizes, and runs for the kind transfer.
        memorisation_size: training size, in instances, of the tables on memorisation; by default the design's, or the
            largest that models with and without the leak share.
        pilot_size: training size of the pilot table; by default the largest that all models share.
        same_rel: `rel` holds for all collections, also where it is 1 and the design says otherwise.
    """

    kind: ReportKind | None = None
    measures: str | None = None
    baseline: Annotated[str | None, Flag(metavar="LABEL")] = None
    choose: Choose | None = None
    memorisation_size: Annotated[int | None, Flag(metavar="N"), Range(at_least=2)] = None
    pilot_size: Annotated[int | None, Flag(metavar="N"), Range(at_least=2)] = None
    same_rel: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("memorisation_size", "pilot_size"):
            if (getattr(self, name) or 0) % 2:
                fault = f"a training size of {getattr(self, name)}"
                raise OptionError(name, fault, "sizes are even: two instances a row")


@dataclass(frozen=True)
class ReportChoices(ReportOptions):
    """All choices behind a report.

    Attributes:
        policy: how runs are scored; grade 1 stands for the lowest relevant grade of each collection of the design.
        method: test, correction, level; number and seed of the bootstrap's draws.
    """

    policy: Scoring = field(default_factory=Scoring)
    method: Significance = field(default_factory=Significance)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.method.paired:
            raise OptionError("significance", f"{self.method.significance} is not a paired test", "choose a paired one")

    def of(self, design: Design) -> ReportChoices:
        """The same with what the design says where nothing is said here."""
        kind = self.kind or design.report.kind
        size = self.memorisation_size
        return replace(
            self,
            kind=kind,
            # A design names a whole label; blocks of a table have the same baseline each.
            baseline=(design.report.baseline if self.baseline is None else self.baseline).rpartition(GROUP_SIGN)[2],
            choose=self.choose or _USUAL[kind],
            memorisation_size=design.report.memorisation_size if size is None else size,
        )

    @property
    def named(self) -> tuple[str, ...]:
        """The measures that are asked for; empty for those of the design."""
        return () if self.measures is None else (self.measures,)

    @property
    def confidence(self) -> float:
        return 1 - self.method.alpha

    @property
    def draws(self) -> Draws:
        return Draws(self.confidence, self.method.draws, self.method.seed)

    def json(self) -> dict[str, Any]:
        """All of it, as plain values."""
        rest = {"measures": list(self.named), "policy": self.policy.json(), "method": self.method.json()}
        return {**plain(self, "policy", "method"), **rest}


#: So many cells are scored at once: more share the work on the judgments, fewer need less memory.
_AT_ONCE: Final = 32


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
    `first_stage` is what they rerank. `folds` and `leaking` name topics; `checkpoints` the sets for which a checkpoint
    is only tested.
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
    leaking: tuple[str, ...]
    checkpoints: frozenset[str] = frozenset()

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
        """The sizes that at least one cell is finished of; all rows of a set (0) come last."""
        found = self.of(row, condition)["size"].unique().to_list()
        return tuple(sorted(found, key=lambda size: (size == 0, size)))

    def trained(self, row: BoardRow, condition: str) -> bool:
        """Whether a row was trained under a condition: a checkpoint that is only tested has no size and no seed."""
        return not set(self.of(row, condition)["set"].to_list()) <= self.checkpoints

    def shared_sizes(self, row: BoardRow) -> tuple[int, ...]:
        """The sizes that are finished of every condition of which any is; what is not trained has none."""
        trained = [condition for condition in self.conditions if self.trained(row, condition)]
        by_condition = [set(found) for condition in trained if (found := self.sizes(row, condition))]
        shared = set.intersection(*by_condition) if by_condition else set()
        return tuple(sorted(shared, key=lambda size: (size == 0, size)))

    def values(self, cells: Sequence[str]) -> Floats:
        """The scores of some cells, shape (cells, measures, topics)."""
        places = {name: place for place, name in enumerate(self.scores.runs)}
        return np.asarray(self.scores.values[[places[cell] for cell in cells]])

    def seed_means(self, row: BoardRow, condition: str, sizes: Sequence[int]) -> Evaluation:
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


def boards(results: GridResults, options: ReportChoices) -> tuple[Board, ...]:
    """Scores the finished cells of every collection, some at a time."""
    if options.measures is not None:
        parse_measures(options.named)
    cells = arranged(results.cells, results.design, pooled=options.kind == "transfer")
    baseline = options.baseline or ""
    labels = cells["condition"].unique(maintain_order=True).to_list()
    if baseline not in labels:
        fault = f"no training set is called '{baseline}', which is the baseline"
        raise OptionError("baseline", fault, f"name one of {', '.join(labels)} with `baseline`")
    if not (cells["status"] == "done").any():
        raise InputError("no cell is finished", "run 'truerank-lab run' first", where=results.folder)
    found = tuple(_boards(results, cells, options))
    if not any(board.sizes(row, board.baseline) for board in found for row in board.rows):
        fault = f"no cell of the baseline '{options.baseline}' is finished"
        remedy = "run 'truerank-lab run' again, or choose another one with `baseline`"
        raise InputError(fault, remedy, where=results.folder)
    return found


def arranged(cells: pl.DataFrame, design: Design, *, pooled: bool = False) -> pl.DataFrame:
    """The record with the columns `group`, `condition` and `row`."""
    # Group and condition of each set; sets that have the same ones for a collection and model are told apart by name.
    labels: dict[str, tuple[str, str]] = {}
    taken: dict[tuple[str, ...], str] = {}
    for one in design.sets:
        group, sign, condition = (one.label or one.kind).rpartition(GROUP_SIGN)
        label = (group if sign else "", condition)
        models = [each.name for each in design.models if not each.sets or one.name in each.sets]
        places = [(collection, model) for collection in one.collections for model in models]
        if any(taken.get((*place, *label), one.name) != one.name for place in places):
            label = (label[0], f"{condition} ({one.name})")
        taken.update({(*place, *label): one.name for place in places})
        labels[one.name] = label
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


def _boards(results: GridResults, cells: pl.DataFrame, options: ReportChoices) -> Iterator[Board]:
    baseline, design = options.baseline or "", results.design
    checkpoints = frozenset(each.name for each in design.sets if each.checkpoint is not None)
    for benchmark in design.reported:
        # A set is tested on all of a benchmark, or on nothing of it.
        own = cells.filter(pl.col("collections").list.contains(benchmark.collections[0]))
        done = own.filter(pl.col("status") == "done")["cell"].unique(maintain_order=True).to_list()
        if not done:
            continue
        conditions = own["condition"].unique(maintain_order=True).to_list()
        pairs = own.select("group", "row").unique(maintain_order=True).rows()
        scores, first_stages = [], []
        for collection in benchmark.collections:
            measures, policy = options.named or design.measures_of(collection), _policy(design, collection, options)
            scores.append(_scored(results, collection, done, measures, policy))
            first = {"first stage": results.first_stage(collection)}
            first_stages.append(evaluate(results.qrels(collection), first, [*measures], policy))
        yield Board(
            benchmark=benchmark,
            rows=tuple(BoardRow(*pair) for pair in pairs),
            conditions=tuple(sorted(conditions, key=lambda name: name != baseline)),
            baseline=baseline,
            kinds=dict(own.select("condition", "kind").unique(maintain_order=True).rows()),
            cells=own,
            scores=_together(benchmark, scores),
            first_stage=_together(benchmark, first_stages),
            folds=results.folds(benchmark.name),
            leaking=tuple(_leaking(results, benchmark)),
            checkpoints=checkpoints,
        )


def _together(benchmark: BenchmarkDesign, parts: Sequence[Evaluation]) -> Evaluation:
    """The scores on all collections of a benchmark, one topic beside the other."""
    own = zip(benchmark.collections, parts, strict=True)
    topics = tuple(benchmark.topic(collection, topic) for collection, part in own for topic in part.topics)
    values = np.concatenate([part.values for part in parts], axis=2)
    missing = {run: sum(part.missing[run] for part in parts) for run in parts[0].missing}
    return replace(parts[0], topics=topics, values=values, missing=missing, coverage={}, inputs={})


def _leaking(results: GridResults, benchmark: BenchmarkDesign) -> Iterator[str]:
    """The topics that leak; where only test data leak, those of the test data."""
    for collection in benchmark.collections:
        found = results.leaking_topics(collection)
        found = found or tuple(results.leaked(collection)["topic_id"].unique().sort().to_list())
        yield from (benchmark.topic(collection, topic) for topic in found)


def _scored(
    results: GridResults, collection: str, cells: Sequence[str], measures: Sequence[str], policy: Policy
) -> Evaluation:
    judged, parts = results.qrels(collection), []
    for start in range(0, len(cells), _AT_ONCE):
        runs = {cell: results.run(cell, collection) for cell in cells[start : start + _AT_ONCE]}
        parts.append(evaluate(judged, runs, [*measures], policy))
    names = tuple(run for part in parts for run in part.runs)
    values = np.concatenate([part.values for part in parts])
    missing = {run: count for part in parts for run, count in part.missing.items()}
    return replace(parts[0], runs=names, values=values, missing=missing, coverage={}, inputs={})


def _policy(design: Design, collection: str, options: ReportChoices) -> Policy:
    """The policy with the grade that is relevant, and the depth that was reranked, beyond which a relevant document is
    not found (MFR)."""
    policy, own = options.policy, design.collection(collection)
    depth = max(own.depth, *(model.depth or own.depth for model in design.models))
    policy = replace(policy, depth=depth if policy.depth is None else policy.depth)
    return replace(policy, rel=own.rel) if policy.rel == Policy().rel and not options.same_rel else policy

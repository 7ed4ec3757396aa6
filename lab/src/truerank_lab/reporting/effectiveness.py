"""Cross-validated effectiveness by training set: what differs, by size or depth too, and which models change places."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.core.figures import LinePanel, LineSeries
from truerank.core.plain import picked, plain
from truerank.core.tables import Cell, Column, Table, group_starts
from truerank.core.views import heads
from truerank.measures import (
    Comparison,
    Difference,
    Evaluation,
    MeanInterval,
    OrderChanges,
    compare_evaluations,
    difference_interval,
    lower_is_better,
    mean_interval,
    order_changes,
)
from truerank.measures.report import evaluation_notes
from truerank_lab.cross_validation import FoldChoice, choose
from truerank_lab.reporting.board import Board, BoardRow, Choose, ReportChoices, size_name


class Tuned(NamedTuple):
    """A row under one condition, tuned for each measure by itself.
     `values`, shape (measures, topics): each topic's value comes from the setting chosen for its fold, as `choices`
    says. `seeds` are those that all settings have (none where single trainings are chosen between), `by_seed` their
    means under the same choices, shape (seeds, measures), and `runs` the means of all single trainings, shape
    (trainings, measures).
    """

    values: Floats
    choices: tuple[FoldChoice, ...]
    settings: tuple[str, ...]
    seeds: tuple[int, ...]
    by_seed: Floats
    runs: Floats

    def chosen(self, measure: str) -> str:
        """The settings chosen by a measure, and in how many folds each."""
        counts = Counter(choice.setting for choice in self.choices if choice.measure == measure)
        return ", ".join(f"{name} ×{count}" for name, count in counts.items())


def tuned(board: Board, row: BoardRow, condition: str, sizes: Sequence[int], mode: Choose) -> Tuned:
    """Tunes a row under one condition.

    Source: leakage paper, section 4 (a grid search over sizes); transfer paper, section 6 (over ten trainings).
    """
    trained = board.trained(row, condition)
    sizes = sizes if trained else board.sizes(row, condition)
    cells = board.of(row, condition).filter(pl.col("size").is_in(list(sizes)))
    runs = board.evaluation(cells["cell"].to_list(), list(board.values(cells["cell"].to_list())))
    if mode == "runs":
        parts = {"model": "{}", "variant": "{}", "size": "{}", "seed": "seed {}"}
        shown = {name: form for name, form in parts.items() if cells[name].n_unique() > 1 or name == "seed"}
        # A model that is there in one variant says which.
        if cells.select("model", "variant").n_unique() == cells["model"].n_unique():
            shown.pop("variant", None)
        rows = cells.iter_rows(named=True)
        names = [" ".join(form.format(row[name]) for name, form in shown.items()) for row in rows]
        named = board.evaluation(names, list(runs.values))
        choices = choose(named, board.folds)
        values = _picked(named, choices, board)
        return Tuned(values, choices, named.runs, (), np.zeros((0, len(named.measures))), runs.mean)
    settings = board.seed_means(row, condition, sizes)
    if not trained:
        settings = board.evaluation(["no training"], list(settings.values))
    choices = choose(settings, board.folds)
    # What is not trained varies with no seed.
    by_size = [set(cells.filter(pl.col("size") == size)["seed"].to_list()) for size in sizes] if trained else []
    seeds = tuple(sorted(set.intersection(*by_size))) if by_size else ()
    picked = [_picked(_of_seed(board, cells, sizes, seed), choices, board) for seed in seeds]
    by_seed = board.evaluation([str(seed) for seed in seeds], picked).mean
    return Tuned(_picked(settings, choices, board), choices, settings.runs, seeds, by_seed, runs.mean)


def _picked(settings: Evaluation, choices: Sequence[FoldChoice], board: Board) -> Floats:
    """Each topic's values from the setting chosen for its fold, shape (measures, topics)."""
    topics = np.array(settings.topics)
    found = np.full(settings.values.shape[1:], np.nan)
    for choice in choices:
        measure = settings.measures.index(choice.measure)
        inside = np.isin(topics, np.array(board.folds[choice.fold - 1]))
        found[measure, inside] = settings.values[settings.runs.index(choice.setting), measure, inside]
    return found


def _of_seed(board: Board, cells: pl.DataFrame, sizes: Sequence[int], seed: int) -> Evaluation:
    own = cells.filter(pl.col("seed") == seed)
    values = [board.values(own.filter(pl.col("size") == size)["cell"].to_list()).mean(axis=0) for size in sizes]
    return board.evaluation([size_name(size) for size in sizes], values)


class EffectivenessEstimate(NamedTuple):
    """One row under one condition by one measure.
     `mean` is over topics, of values that are means over seeds, or of the chosen trainings; `over_seeds` counts the
    seeds that all settings have, and `sd_seeds` is None below two. `runs` are the lowest and highest mean of a single
    training of any setting. `difference` is None for the baseline itself, and for measures that are not means over
    topics; `difference_over_seeds` has one value per seed that both have.
    """

    row: BoardRow
    condition: str
    measure: str
    mean: MeanInterval
    over_seeds: MeanInterval
    sd_seeds: float | None
    runs: tuple[float, float]
    chosen: str
    difference: Difference | None
    difference_over_seeds: MeanInterval | None


@dataclass(frozen=True, eq=False)
class Effectiveness:
    """The rows of one collection under all conditions.
     `estimates` is by row, condition and measure; `values`, by row and condition, has shape (measures, topics);
    `orders`, how the models of a group change places, is by group, condition and measure. No size of the rows in
    `unmatched` is finished under every condition.
    """

    board: Board
    options: ReportChoices
    estimates: Mapping[tuple[BoardRow, str, str], EffectivenessEstimate]
    values: Mapping[tuple[BoardRow, str], Floats]
    comparison: Comparison | None
    orders: Mapping[tuple[str, str, str], OrderChanges]
    unmatched: tuple[BoardRow, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        return self.board.scores.measures

    def shown_rows(self) -> list[BoardRow]:
        """The rows of which anything is known, block by block."""
        known = {key[0] for key in self.estimates}
        groups = list(dict.fromkeys(row.group for row in self.board.rows))
        return sorted((row for row in self.board.rows if row in known), key=lambda row: groups.index(row.group))

    def cell(self, row: BoardRow, condition: str, measure: str) -> str | None:
        """What the table says: the mean, † for a significant difference, ‡ for an overtaking, ↔ for a swap."""
        found = self.estimates.get((row, condition, measure))
        if found is None or found.mean.mean is None:
            return None
        mark = "†" if found.difference is not None and found.difference.significant else ""
        changes = self.orders.get((row.group, condition, measure))
        if changes is not None:
            mark += "‡" if any(one.system == row.model for one in changes.overtakings) else ""
            mark += "↔" if any(row.model in one[:2] for one in changes.swaps) else ""
        return f"{found.mean.mean:.4f}{mark}"

    def table(self) -> Table:
        """One row per model, the conditions side by side under each measure; the best of each measure stands out."""
        rows, conditions = self.shown_rows(), self.board.conditions
        grouped = any(row.group for row in rows)
        lead = [*([Column("queries")] if grouped else []), Column("model")]
        keys = [(measure, condition) for measure in self.measures for condition in conditions]
        columns = (*lead, *(Column(condition, (measure,), align="right") for measure, condition in keys))
        cells = [
            (*([row.group] if grouped else []), row.model, *(self.cell(row, c, m) for m, c in keys)) for row in rows
        ]
        strong = {
            (place, len(lead) + keys.index((measure, condition)))
            for place, row in enumerate(rows)
            for measure in self.measures
            for condition in self.best([(row, condition) for condition in conditions], measure)
        }
        rules = group_starts([row.group for row in rows])
        title = f"{self.board.collection}: effectiveness by training set, cross-validated over all topics."
        return Table(title, columns, tuple(cells), self.notes(), rules, frozenset(strong))

    def best(self, places: Sequence[tuple[BoardRow, str]], measure: str) -> list[str]:
        """The conditions with the best mean; none where only one is known."""
        known = {
            place: float(found.mean.mean)
            for place in places
            if (found := self.estimates.get((*place, measure))) is not None and found.mean.mean is not None
        }
        if len(known) < 2:
            return []
        best = (min if lower_is_better(measure) else max)(known.values())
        return [place[1] for place, mean in known.items() if mean == best]

    def details(self) -> Table:
        """Every number behind the table: intervals over topics, spread over seeds, p, and what was chosen."""
        columns = (
            *heads("measure, queries, model, trained_on, topics:,d"),
            *Column.numbers(".4f", "mean", "low", "high", above=("over topics",)),
            *Column.numbers("d", "seeds", above=("over seeds",)),
            *Column.numbers(".4f", "mean", "sd", "low", "high", above=("over seeds",)),
            *heads("single_trainings|lowest:.4f, single_trainings|highest:.4f"),
            *Column.numbers("+.4f", "mean", "low", "high", above=("difference, over topics",)),
            *heads("p|raw:.4g, p|corrected:.4g, p|†"),
            *Column.numbers("+.4f", "mean", "low", "high", above=("difference, over seeds",)),
            Column("chosen, folds"),
        )
        rows = [
            _detail(self.estimates[row, condition, measure])
            for measure in self.measures
            for row in self.shown_rows()
            for condition in self.board.conditions
            if (row, condition, measure) in self.estimates
        ]
        if not any(row[1] for row in rows):
            columns = columns[:1] + columns[2:]
            rows = [row[:1] + row[2:] for row in rows]
        rules = group_starts([row[0] for row in rows])
        title = f"{self.board.collection}: effectiveness by training set in detail; differences are to {self._base}."
        return Table(title, columns, tuple(rows), self.notes(), rules)

    def order_table(self) -> Table | None:
        """Every pair of models that changes places and every overtaking; None where there is none."""
        rows = [
            (measure, condition, group, kind, *pair)
            for (group, condition, measure), changes in self.orders.items()
            for kind, pairs in (("↔ change places", changes.swaps), ("‡ overtakes", changes.overtakings))
            for pair in pairs
        ]
        rows.sort(key=lambda row: self.measures.index(row[0]))
        grouped = any(row[2] for row in rows)
        columns = (
            *heads(f"measure, trained_on, {'queries, ' * grouped}kind, model, other"),
            *Column.numbers("+.4f", f"both on {self._base}", "afterwards", above=("model minus other",)),
        )
        cells = tuple(row if grouped else (*row[:2], *row[3:]) for row in rows)
        notes = (
            "Afterwards: both are trained on the other set (↔), or only the model is, not the other one (‡).",
            "A change of order says nothing about chance: whether a model differs from itself is tested above.",
        )
        title = f"{self.board.collection}: models whose order changes with the training set."
        rules = group_starts([row[0] for row in rows])
        return Table(title, columns, cells, notes, rules) if rows else None

    def notes(self) -> tuple[str, ...]:
        """How the numbers were made, one sentence each."""
        found = [self._chosen_by(), "Bold (or a star): the best of a row by each measure."]
        if self.comparison is not None:
            method = self.options.method
            how = f"{self.comparison.method.sentences()[0][3:-1]}; {method.corrected()}, α = {method.alpha:g}"
            found.append(f"† differs from {self._base}: {how}.")
        if self.orders:
            text = f"‡ overtakes a model that stays trained on {self._base}"
            found.append(f"{text}; ↔ changes places with one when both change.")
        untrained = [
            f"{row.name} ({condition})"
            for row in self.shown_rows()
            for condition in self.board.conditions
            if (row, condition) in self.values and not self.board.trained(row, condition)
        ]
        if untrained:
            found.append(f"Tested as it is, without training, so that it has no seeds: {', '.join(untrained)}.")
        lower = [measure for measure in self.measures if lower_is_better(measure)]
        found += [f"Lower is better: {', '.join(lower)}."] if lower else []
        found += evaluation_notes(self.board.scores)
        first = self.board.first_stage
        means = ", ".join(f"{m} {v:.4f}" for m, v in zip(first.measures, first.mean[0], strict=True))
        return (*found, f"What is reranked, without a model: {means}.")

    def json(self) -> dict[str, Any]:
        first = self.board.first_stage
        orders = [
            {"group": group, "condition": condition, **found.json()}
            for (group, condition, _), found in self.orders.items()
        ]
        return {
            **picked(self.board, "collection, baseline, conditions"),
            "topics": len(self.board.scores.topics),
            "leaking_topics": len(self.board.leaking),
            "estimates": [_estimate_json(one) for one in self.estimates.values()],
            "comparison": plain(self.comparison),
            "orders": orders,
            "first_stage": dict(zip(first.measures, first.mean[0].tolist(), strict=True)),
            "unmatched": [row.name for row in self.unmatched],
        }

    @property
    def _base(self) -> str:
        return self.board.baseline

    def _chosen_by(self) -> str:
        folds = f"{len(self.board.folds)} folds"
        if self.options.choose == "sizes" and all(len(self.board.shared_sizes(row)) < 2 for row in self.board.rows):
            return "By topic, values are means over seeds; there is one training size, so that nothing is chosen."
        if self.options.choose == "runs":
            return f"For each of {folds} and each measure, the training that is best on the other folds is chosen."
        return (
            f"By topic, values are means over seeds; for each of {folds} and each measure, the training size that is "
            "best on the other folds is chosen, among the sizes that are finished of every training set."
        )


def effectiveness(board: Board, options: ReportChoices) -> Effectiveness:
    """Tunes every row under every condition and compares it with itself under the baseline.

    Source: leakage paper, section 4, Tables 3 to 5; transfer paper, section 6, Tables 4 and 5.
    """
    mode = options.choose or "sizes"
    found: dict[tuple[BoardRow, str], Tuned] = {}
    unmatched = []
    for row in board.rows:
        held = [condition for condition in board.conditions if board.sizes(row, condition)]
        shared = board.shared_sizes(row)
        if any(board.trained(row, condition) for condition in held) and not shared:
            unmatched.append(row)
        for condition in held:
            if shared or not board.trained(row, condition):
                found[row, condition] = tuned(board, row, condition, shared, mode)
    comparison = _comparison(board, found, options)
    keys = [(row, condition, measure) for row, condition in found for measure in board.scores.measures]
    estimates = {key: _estimate(board, found, key, comparison, options) for key in keys}
    values, orders = {key: one.values for key, one in found.items()}, dict(_orders(board, found))
    return Effectiveness(board, options, estimates, values, comparison, orders, tuple(unmatched))


def _comparison(board: Board, found: Mapping[tuple[BoardRow, str], Tuned], options: ReportChoices) -> Comparison | None:
    """Every row under every condition against itself under the baseline; corrected by measure over all of them."""
    means = board.scores.averaged
    pairs = [
        (row, condition) for row, condition in found if condition != board.baseline and (row, board.baseline) in found
    ]
    if not pairs or not means:
        return None
    rows = list(dict.fromkeys(row for row, _ in pairs))
    by_condition: dict[str, Evaluation] = {}
    for condition in board.conditions:
        own = [row for row in rows if condition == board.baseline or (row, condition) in pairs]
        if own:
            values = [found[row, condition].values for row in own]
            by_condition[condition] = board.evaluation([row.name for row in own], values)
    return compare_evaluations(by_condition, board.baseline, measures=means, method=options.method)


def _estimate(
    board: Board,
    found: Mapping[tuple[BoardRow, str], Tuned],
    key: tuple[BoardRow, str, str],
    comparison: Comparison | None,
    options: ReportChoices,
) -> EffectivenessEstimate:
    row, condition, measure = key
    one, place = found[row, condition], board.scores.measures.index(measure)
    values = one.values[place]
    mean = mean_interval(values[~np.isnan(values)], options.confidence)
    if measure not in board.scores.averaged:
        aggregated = float(board.evaluation(["tuned"], [one.values]).mean[0, place])
        mean = MeanInterval(mean.n, aggregated, None, None)
    seeds = one.by_seed[:, place]
    base = found.get((row, board.baseline))
    shared = [seed for seed in one.seeds if base is not None and seed in base.seeds]
    over_seeds = None
    if condition != board.baseline and base is not None and shared:
        own = np.array([one.by_seed[one.seeds.index(seed), place] for seed in shared])
        other = np.array([base.by_seed[base.seeds.index(seed), place] for seed in shared])
        over_seeds = mean_interval(own - other, options.confidence)
    difference = None
    if comparison is not None and condition != board.baseline:
        names = {(d.run, d.measure): d for d in comparison.differences}
        difference = names.get((f"{condition}/{row.name}", measure))
    spread, sd = mean_interval(seeds, options.confidence), float(seeds.std(ddof=1)) if len(seeds) > 1 else None
    runs, chosen = (float(np.nanmin(one.runs[:, place])), float(np.nanmax(one.runs[:, place]))), one.chosen(measure)
    return EffectivenessEstimate(
        row, condition, measure, mean, spread, sd, runs, chosen, difference, difference_over_seeds=over_seeds
    )


def _orders(
    board: Board, found: Mapping[tuple[BoardRow, str], Tuned]
) -> Iterator[tuple[tuple[str, str, str], OrderChanges]]:
    """The order of the models of each group under the baseline and under each other condition."""
    for group in dict.fromkeys(row.group for row in board.rows):
        for condition in board.conditions[1:] if board.conditions[0] == board.baseline else ():
            rows = [row for row in board.rows if row.group == group and (row, condition) in found]
            rows = [row for row in rows if (row, board.baseline) in found]
            if len(rows) < 2:
                continue
            before, after = (
                board.evaluation([row.model for row in rows], [found[row, side].values for row in rows]).mean
                for side in (board.baseline, condition)
            )
            for place, measure in enumerate(board.scores.measures):
                if not (np.isfinite(before[:, place]).all() and np.isfinite(after[:, place]).all()):
                    continue
                first, second = (
                    {row.model: float(value) for row, value in zip(rows, means[:, place], strict=True)}
                    for means in (before, after)
                )
                lower, conditions = lower_is_better(measure), (board.baseline, condition)
                changes = order_changes(first, second, measure=measure, ascending=lower, conditions=conditions)
                yield (group, condition, measure), changes


def _detail(one: EffectivenessEstimate) -> tuple[Cell, ...]:
    found, seeds = one.difference, one.difference_over_seeds
    shown: tuple[Cell, ...] = (None,) * 6
    if found is not None:
        mark = "†" if found.significant else ""
        shown = (found.difference, found.low, found.high, found.p, found.p_corrected, mark)
    over: tuple[Cell, ...] = (None,) * 3 if seeds is None else seeds[1:]
    spread: tuple[Cell, ...] = (one.over_seeds.n, one.over_seeds.mean, one.sd_seeds, *one.over_seeds[2:])
    names = (one.measure, one.row.group, one.row.model, one.condition)
    return (*names, *one.mean, *spread, *one.runs, *shown, *over, one.chosen)


def _estimate_json(one: EffectivenessEstimate) -> dict[str, Any]:
    shown = ("difference", "low", "high", "p", "p_corrected", "significant", "better", "effect", "case")
    return {
        **one.row._asdict(),
        **picked(one, "trained_on=condition, measure"),
        **one.mean._asdict(),
        "over_seeds": {**one.over_seeds._asdict(), "sd": one.sd_seeds},
        "single_trainings": list(one.runs),
        "chosen": one.chosen,
        "difference": one.difference and {name: getattr(one.difference, name) for name in shown},
        "difference_over_seeds": plain(one.difference_over_seeds),
    }


#: The two sets of topics that effects are shown on.
TOPICS: Final = ("leaking", "all")


class SizeEffect(NamedTuple):
    """What a fault changes at one training size, in instances (0 for all rows), on the topics "leaking" or "all".

    `seeds` counts those of the condition and of the baseline; by topic, values are means over seeds; `difference` is
    condition minus baseline, with the interval over topics, None below one topic.
    """

    collection: str
    topics: str
    row: BoardRow
    condition: str
    size: int
    seeds: tuple[int, int]
    mean: MeanInterval
    baseline: MeanInterval
    difference: MeanInterval


def sizes_table(effects: Sequence[SizeEffect], measure: str, baseline: str) -> Table:
    """One row per collection, set of topics, model, training set and size."""
    columns = (
        *heads("collection, topics, model, trained_on, size:,d, n:,d"),
        Column("seeds", align="right"),
        *(Column("mean", (above,), "right", ".4f") for above in (baseline, "with the fault")),
        *Column.numbers("+.4f", "mean", "low", "high", above=("difference",)),
    )
    rows = []
    for one in effects:
        names = (one.collection, one.topics, one.row.name, one.condition, one.size or size_name(0), one.difference.n)
        means = (one.baseline.mean, one.mean.mean, *one.difference[1:])
        rows.append((*names, f"{one.seeds[0]} and {one.seeds[1]}", *means))
    starts = group_starts([one[:2] for one in effects])
    notes = (
        "Sizes are in instances: a query with one relevant and one non-relevant document is two.",
        "Intervals: Student t of the per-topic differences; by topic, values are means over seeds. They are not "
        "corrected for their number.",
    )
    return Table(f"{measure} by training size, difference to {baseline}.", columns, tuple(rows), notes, starts)


def panels(effects: Sequence[SizeEffect], topics: str) -> tuple[LinePanel, ...]:
    """One plot per collection and condition, one line per row: the difference by size."""
    found = []
    chosen = [one for one in effects if one.topics == topics]
    # All plots have the same sizes, so that the eye can go from one to the next.
    sizes = sorted({one.size for one in chosen}, key=lambda size: (size == 0, size))
    for collection, condition in dict.fromkeys((one.collection, one.condition) for one in chosen):
        own = [one for one in chosen if (one.collection, one.condition) == (collection, condition)]
        lines = []
        for row in dict.fromkeys(one.row for one in own):
            by_size = {one.size: one.difference for one in own if one.row == row}
            lines.append(LineSeries(row.name, tuple(_point(by_size.get(size)) for size in sizes)))
        n = max(one.difference.n for one in own)
        title = f"{collection}: {condition}, n = {n:,} topics"
        found.append(LinePanel(title, tuple(map(size_name, sizes)), tuple(lines), zero=True))
    return tuple(found)


def size_effects(board: Board, options: ReportChoices) -> Iterator[SizeEffect]:
    """The effect of every condition on every row at each size, by the first measure.

    Source: leakage paper, section 4, Figure 2.
    """
    ids = np.array(board.scores.topics)
    chosen = {"leaking": np.isin(ids, np.array(board.leaking, dtype=ids.dtype)), "all": np.ones(len(ids), dtype=bool)}
    for topics, inside in chosen.items():
        if not inside.any():
            continue
        for condition in board.faults:
            for row in board.rows:
                for size in board.sizes(row, condition):
                    if size in board.sizes(row, board.baseline):
                        yield _effect(board, (topics, inside), (row, condition, size), options.confidence)


def _effect(
    board: Board, topics: tuple[str, NDArray[np.bool_]], key: tuple[BoardRow, str, int], confidence: float
) -> SizeEffect:
    row, condition, size = key
    name, inside = topics
    first, second = (board.seed_means(row, side, [size]).values[0, 0, inside] for side in (condition, board.baseline))
    known = ~(np.isnan(first) | np.isnan(second))
    first, second = first[known], second[known]
    seeds = (len(board.of(row, condition, size)), len(board.of(row, board.baseline, size)))
    mean, baseline = (mean_interval(values, confidence) for values in (first, second))
    difference = difference_interval(first, second, confidence=confidence)
    return SizeEffect(board.collection, name, row, condition, size, seeds, mean, baseline, difference)


def _point(interval: MeanInterval | None) -> tuple[float, float | None, float | None] | None:
    if interval is None or interval.mean is None:
        return None
    return interval.mean, interval.low, interval.high


def depth_table(found: Sequence[Effectiveness]) -> Table:
    """One row per benchmark, measure, model and depth: the mean, the difference to the full set, and the loss.

    A loss is given twice, with its base: as a share of the full set's mean, and of the smaller set's.

    Source: survivorship paper, section 5, Figure 1.
    """
    baseline = found[0].board.baseline
    columns = (
        *heads("benchmark, measure, model, trained_on, topics:,d"),
        Column("mean", align="right"),
        *Column.numbers("+.4f", "mean", "low", "high", above=(f"difference to {baseline}",)),
        Column("p corrected", align="right", format=".4g"),
        *Column.numbers("+.1%", f"of {baseline}", "of the smaller set", above=("relative difference",)),
    )
    rows: list[tuple[Any, ...]] = []
    firsts: list[int] = []
    for one in found:
        for measure in one.measures:
            firsts.append(len(rows))
            for row in one.shown_rows():
                for name in one.board.designed:
                    estimate = one.estimates.get((row, name, measure))
                    if estimate is not None:
                        shown = one.cell(row, name, measure)
                        base = one.estimates.get((row, baseline, measure))
                        rows.append((one.board.collection, measure, row.name, name, *_cells(estimate, base, shown)))
    notes = (
        f"Relative differences: mean minus that of {baseline}, as a share of that of {baseline} or of the own mean.",
        *dict.fromkeys(note for one in found for note in one.notes() if not note.startswith(("Bold", "What is"))),
    )
    rules = tuple(place for place in firsts if place)
    return Table(
        "Effectiveness by depth of the annotation behind the training set.", columns, tuple(rows), notes, rules
    )


def depths_compared(one: Effectiveness) -> dict[str, Comparison]:
    """All pairs of depths of each model of a benchmark, by model; corrected by measure over those of all models."""
    means = one.board.scores.averaged
    held = {row: [name for name in one.board.designed if (row, name) in one.values] for row in one.shown_rows()}
    held = {row: names for row, names in held.items() if len(names) > 1}
    if not means:
        return {}
    method = one.options.method
    if method.family == "measure" and held:
        method = replace(method, family=sum(math.comb(len(names), 2) for names in held.values()))
    found = {}
    for row, names in held.items():
        scores = one.board.evaluation(names, [one.values[row, name] for name in names])
        found[row.name] = compare_evaluations(scores, None, measures=means, method=method)
    return found


def depth_panels(found: Sequence[Effectiveness]) -> tuple[LinePanel, ...]:
    """One plot per benchmark and measure, one line per model: the mean by depth with its interval over topics."""
    panels = []
    for one in found:
        for measure in one.measures:
            lines = []
            for row in one.shown_rows():
                estimates = (one.estimates.get((row, name, measure)) for name in one.board.designed)
                lines.append(LineSeries(row.name, tuple(_point(each and each.mean) for each in estimates)))
            lower = ", lower is better" if lower_is_better(measure) else ""
            panels.append(LinePanel(f"{one.board.collection}: {measure}{lower}", one.board.designed, tuple(lines)))
    return tuple(panels)


def _cells(one: EffectivenessEstimate, base: EffectivenessEstimate | None, shown: str | None) -> tuple[Any, ...]:
    found = one.difference
    differences = (None,) * 4 if found is None else (found.difference, found.low, found.high, found.p_corrected)
    shares: tuple[float | None, float | None] = (None, None)
    if base is not None and base is not one and one.mean.mean and base.mean.mean:
        change = one.mean.mean - base.mean.mean
        shares = (change / base.mean.mean, change / one.mean.mean)
    return (one.mean.n, shown, *differences, *shares)

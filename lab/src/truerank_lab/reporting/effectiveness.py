"""Cross-validated effectiveness by training set: what differs, and which models change places; the papers' tables."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Floats
from truerank.core.figures import LinePanel, LineSeries
from truerank.core.tables import Cell, Column, Table, group_starts
from truerank.core.verdict import Verdict
from truerank.core.views import Field, View, columns
from truerank.measures import (
    Comparison,
    Difference,
    Evaluation,
    MeanInterval,
    OrderChanges,
    compare_evaluations,
    lower_is_better,
    mean_interval,
    order_changes,
)
from truerank.measures.report import evaluation_notes
from truerank_lab.cross_validation import FoldChoice, choose
from truerank_lab.reporting.board import Board, BoardRow, Choices

#: Row, condition, measure.
Place = tuple[BoardRow, str, str]


class _Tuned(NamedTuple):
    """A row under one condition, tuned for each measure by itself.

    `values`, shape (measures, topics): each topic's value comes from the setting chosen for its fold. `seeds` are those
    that all settings have (none where single trainings are chosen between), `by_seed` their means under the same
    choices, shape (seeds, measures), and `runs` the means of all single trainings, shape (trainings, measures).
    """

    values: Floats
    choices: tuple[FoldChoice, ...]
    seeds: tuple[int, ...]
    by_seed: Floats
    runs: Floats


def _tuned(board: Board, row: BoardRow, condition: str, sizes: Sequence[int], *, single: bool) -> _Tuned:
    """Tunes a row under one condition: chooses between sizes, each the mean over its seeds, or single trainings.

    Source: leakage paper, section 4 (a grid search over sizes); transfer paper, section 6 (over ten trainings).
    """
    trained = board.trained(row, condition)
    sizes = sizes if trained else board.sizes(row, condition)
    cells = board.of(row, condition).filter(pl.col("size").is_in(list(sizes)))
    runs = board.evaluation(cells["cell"].to_list(), list(board.values(cells["cell"].to_list())))
    if single:
        parts = [name for name in ("model", "size") if cells[name].n_unique() > 1]
        names = [" ".join(str(each) for each in row) for row in cells.select(*parts, "seed").rows()]
        named = board.evaluation(names, list(runs.values))
        choices = choose(named, board.folds)
        return _Tuned(_picked(named, choices, board), choices, (), np.zeros((0, len(named.measures))), runs.mean)
    settings = board.seed_means(cells, sizes)
    choices = choose(settings, board.folds)
    # What is not trained varies with no seed.
    by_size = [set(cells.filter(pl.col("size") == size)["seed"].to_list()) for size in sizes] if trained else []
    seeds = tuple(sorted(set.intersection(*by_size))) if by_size else ()
    of_seeds = (board.seed_means(cells.filter(pl.col("seed") == seed), sizes) for seed in seeds)
    picked = [_picked(each, choices, board) for each in of_seeds]
    by_seed = board.evaluation([str(seed) for seed in seeds], picked).mean
    return _Tuned(_picked(settings, choices, board), choices, seeds, by_seed, runs.mean)


def _picked(settings: Evaluation, choices: Sequence[FoldChoice], board: Board) -> Floats:
    """Each topic's values from the setting chosen for its fold, shape (measures, topics)."""
    topics = np.array(settings.topics)
    found = np.full(settings.values.shape[1:], np.nan)
    for choice in choices:
        measure = settings.measures.index(choice.measure)
        inside = np.isin(topics, np.array(board.folds[choice.fold - 1]))
        found[measure, inside] = settings.values[settings.runs.index(choice.setting), measure, inside]
    return found


class Estimate(NamedTuple):
    """One row under one condition by one measure.

    `mean` is over topics, of values that are means over seeds, or of the chosen trainings; `over_seeds` counts the
    seeds that all settings have. `runs` are the lowest and highest mean of a single training of any setting, `chosen`
    the settings and in how many folds each. `difference` is None for the baseline itself, and for measures that are not
    means over topics; `difference_over_seeds` has one value per seed that both have.
    """

    row: BoardRow
    condition: str
    measure: str
    mean: MeanInterval
    over_seeds: MeanInterval
    runs: tuple[float, float]
    chosen: str
    difference: Difference | None
    difference_over_seeds: MeanInterval | None


@dataclass(frozen=True, eq=False)
class Effectiveness:
    """The rows of one benchmark under all conditions.

    `orders`, how the models of a group change places, is by group, condition and measure. No size of the rows in
    `unmatched` is finished under every condition.
    """

    board: Board
    choices: Choices
    estimates: Mapping[Place, Estimate]
    comparison: Comparison | None
    orders: Mapping[tuple[str, str, str], OrderChanges]
    unmatched: tuple[BoardRow, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        return self.board.scores.measures

    @property
    def rows(self) -> list[BoardRow]:
        """The rows of which anything is known, block by block."""
        known = {place[0] for place in self.estimates}
        groups = list(dict.fromkeys(row.group for row in self.board.rows))
        return sorted((row for row in self.board.rows if row in known), key=lambda row: groups.index(row.group))

    def frame(self) -> pl.DataFrame:
        """Every number behind the tables: one row for each measure, row and condition; `change` is to the baseline."""
        places = itertools.product(self.measures, self.rows, self.board.designed)
        known = [(row, name, measure) for measure, row, name in places if (row, name, measure) in self.estimates]
        rows: list[dict[str, Any]] = []
        for place in known:
            one, base = self.estimates[place], self.estimates.get((place[0], self.board.baseline, place[2]))
            shares: tuple[float | None, float | None] = (None, None)
            if base is not None and base is not one and one.mean.mean and base.mean.mean:
                change = one.mean.mean - base.mean.mean
                shares = (change / base.mean.mean, change / one.mean.mean)
            rows.append({
                "benchmark": self.board.collection, "measure": one.measure, "queries": one.row.group,
                "model": one.row.model, "row": one.row.name, "trained_on": one.condition, "shown": self.cell(place),
                **_values(one.mean, "", "n mean low high"), "of_baseline": shares[0], "of_own": shares[1],
                **_values(one.difference, "change_", "difference low high p p_corrected significant baseline_mean"),
                **_values(one.over_seeds, "seeds_", "n mean low high"),
                **_values(one.difference_over_seeds, "seeds_change_", "mean low high"),
                "lowest": one.runs[0], "highest": one.runs[1], "chosen": one.chosen,
            })  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None)

    def change(self, place: Place) -> Difference | None:
        """The difference to the baseline; None where it is not known."""
        found = self.estimates[place].difference if place in self.estimates else None
        return found if found is not None and found.difference is not None else None

    def cell(self, place: Place) -> str | None:
        """What a table says: the mean, † for a significant difference, ‡ for an overtaking, ↔ for a swap."""
        row, condition, measure = place
        found = self.estimates.get(place)
        if found is None or found.mean.mean is None:
            return None
        mark = "†" if found.difference is not None and found.difference.significant else ""
        changes = self.orders.get((row.group, condition, measure))
        if changes is not None:
            mark += "‡" if any(one.system == row.model for one in changes.overtakings) else ""
            mark += "↔" if any(row.model in one[:2] for one in changes.swaps) else ""
        return f"{found.mean.mean:.4f}{mark}"

    def best(self, row: BoardRow, measure: str) -> list[str]:
        """The conditions of a row with the best mean; none where only one is known."""
        found = {name: self.estimates.get((row, name, measure)) for name in self.board.conditions}
        known = {
            name: float(one.mean.mean) for name, one in found.items() if one is not None and one.mean.mean is not None
        }
        if len(known) < 2:
            return []
        best = (min if lower_is_better(measure) else max)(known.values())
        return [name for name, mean in known.items() if mean == best]

    def notes(self) -> tuple[str, ...]:
        """How the numbers were made, one sentence each."""
        base, method = self.board.baseline, self.choices.method
        found = [self._chosen_by()]
        if self.comparison is not None:
            how = f"{self.comparison.method.sentences()[0][3:-1]}; {method.corrected()}, α = {method.alpha:g}"
            found.append(f"† differs from {base}: {how}.")
        if self.orders:
            text = f"‡ overtakes a model that stays trained on {base}"
            found.append(f"{text}; ↔ changes places with one when both change.")
        known = dict.fromkeys(place[:2] for place in self.estimates)
        untrained = [f"{row.name} ({name})" for row, name in known if not self.board.trained(row, name)]
        if untrained:
            found.append(f"Tested as it is, without training, so that it has no seeds: {', '.join(untrained)}.")
        lower = [measure for measure in self.measures if lower_is_better(measure)]
        found += [f"Lower is better: {', '.join(lower)}."] if lower else []
        return (*found, *evaluation_notes(self.board.scores))

    def _chosen_by(self) -> str:
        folds = f"{len(self.board.folds)} folds"
        if self.choices.kind == "transfer":
            return f"For each of {folds} and each measure, the training that is best on the other folds is chosen."
        if all(len(self.board.shared_sizes(row)) < 2 for row in self.board.rows):
            return "By topic, values are means over seeds; there is one training size, so that nothing is chosen."
        return (
            f"By topic, values are means over seeds; for each of {folds} and each measure, the training size that is "
            "best on the other folds is chosen, among the sizes that are finished of every training set."
        )


def _values(value: Any, prefix: str, names: str) -> dict[str, Any]:
    return {
        f"{prefix}{name}".replace("change_difference", "change"): getattr(value, name, None) for name in names.split()
    }


def effectiveness(board: Board, choices: Choices) -> Effectiveness:
    """Tunes every row under every condition and compares it with itself under the baseline.

    Source: leakage paper, section 4, Tables 3 to 5; transfer paper, section 6, Tables 4 and 5.
    """
    found: dict[tuple[BoardRow, str], _Tuned] = {}
    unmatched = []
    for row in board.rows:
        held = [condition for condition in board.conditions if board.sizes(row, condition)]
        shared = board.shared_sizes(row)
        if any(board.trained(row, condition) for condition in held) and not shared:
            unmatched.append(row)
        for condition in held:
            if shared or not board.trained(row, condition):
                found[row, condition] = _tuned(board, row, condition, shared, single=choices.kind == "transfer")
    comparison = _comparison(board, found, choices)
    places = [(row, condition, measure) for row, condition in found for measure in board.scores.measures]
    estimates = {place: _estimate(board, found, place, comparison, choices) for place in places}
    return Effectiveness(board, choices, estimates, comparison, dict(_orders(board, found)), tuple(unmatched))


def _comparison(board: Board, found: Mapping[tuple[BoardRow, str], _Tuned], choices: Choices) -> Comparison | None:
    """Every row under every condition against itself under the baseline; corrected by measure over all of them."""
    means = board.scores.averaged
    pairs = [each for each in found if each[1] != board.baseline and (each[0], board.baseline) in found]
    if not pairs or not means:
        return None
    rows = list(dict.fromkeys(row for row, _ in pairs))
    by_condition: dict[str, Evaluation] = {}
    for condition in board.conditions:
        own = [row for row in rows if condition == board.baseline or (row, condition) in pairs]
        if own:
            values = [found[row, condition].values for row in own]
            by_condition[condition] = board.evaluation([row.name for row in own], values)
    return compare_evaluations(by_condition, board.baseline, measures=means, method=choices.method)


def _estimate(
    board: Board,
    found: Mapping[tuple[BoardRow, str], _Tuned],
    place: Place,
    comparison: Comparison | None,
    choices: Choices,
) -> Estimate:
    row, condition, measure = place
    one, number = found[row, condition], board.scores.measures.index(measure)
    values = one.values[number]
    mean = mean_interval(values[~np.isnan(values)], choices.confidence)
    if measure not in board.scores.averaged:
        mean = MeanInterval(mean.n, float(board.evaluation(["tuned"], [one.values]).mean[0, number]), None, None)
    base = found.get((row, board.baseline))
    over_seeds = difference = None
    if condition != board.baseline and base is not None:
        shared = [seed for seed in one.seeds if seed in base.seeds]
        if shared:
            own, other = (
                np.array([side.by_seed[side.seeds.index(seed), number] for seed in shared]) for side in (one, base)
            )
            over_seeds = mean_interval(own - other, choices.confidence)
        if comparison is not None:
            of_it = {(each.run, each.measure): each for each in comparison.differences}
            difference = of_it.get((f"{condition}/{row.name}", measure))
    runs = (float(np.nanmin(one.runs[:, number])), float(np.nanmax(one.runs[:, number])))
    counts = Counter(choice.setting for choice in one.choices if choice.measure == measure)
    chosen = ", ".join(f"{name} ×{count}" for name, count in counts.items())
    spread = mean_interval(one.by_seed[:, number], choices.confidence)
    return Estimate(row, condition, measure, mean, spread, runs, chosen, difference, over_seeds)


def _orders(
    board: Board, found: Mapping[tuple[BoardRow, str], _Tuned]
) -> Iterator[tuple[tuple[str, str, str], OrderChanges]]:
    """The order of the models of each group under the baseline and under each other condition."""
    for group, condition in itertools.product(dict.fromkeys(row.group for row in board.rows), board.faults):
        sides = (board.baseline, condition)
        rows = [row for row in board.rows if row.group == group and all((row, side) in found for side in sides)]
        if len(rows) < 2:
            continue
        before, after = (
            board.evaluation([row.model for row in rows], [found[row, side].values for row in rows]).mean
            for side in sides
        )
        for place, measure in enumerate(board.scores.measures):
            if np.isfinite(before[:, place]).all() and np.isfinite(after[:, place]).all():
                first, second = (
                    {row.model: float(value) for row, value in zip(rows, means[:, place], strict=True)}
                    for means in (before, after)
                )
                lower = lower_is_better(measure)
                changes = order_changes(first, second, measure=measure, ascending=lower, conditions=sides)
                yield (group, condition, measure), changes


def effectiveness_table(one: Effectiveness) -> Table:
    """One row per model, the conditions side by side under each measure; the best of each measure stands out.

    Source: leakage paper, section 4, Tables 3 to 5.
    """
    rows, conditions = one.rows, one.board.conditions
    keys = list(itertools.product(one.measures, conditions))
    columns = (Column("model"), *(Column(condition, (measure,), align="right") for measure, condition in keys))
    cells = [(row.name, *(one.cell((row, condition, measure)) for measure, condition in keys)) for row in rows]
    strong = frozenset(
        (place, 1 + keys.index((measure, condition)))
        for place, row in enumerate(rows)
        for measure in one.measures
        for condition in one.best(row, measure)
    )
    first = one.board.first_stage
    means = ", ".join(f"{m} {v:.4f}" for m, v in zip(first.measures, first.mean[0], strict=True))
    best = "Bold (or a star): the best of a row by each measure."
    notes = (best, *one.notes(), f"What is reranked, without a model: {means}.")
    title = f"{one.board.collection}: effectiveness by training set, cross-validated over all topics."
    return Table(title, columns, tuple(cells), notes, group_starts([row.group for row in rows]), strong)


def strategies_table(found: Sequence[Effectiveness]) -> Table:
    """One row per block of queries and strategy, the measures of every benchmark side by side.

    The best of a block stands out; the first stage stands below.

    Source: transfer paper, section 6, Tables 4 and 5.
    """
    rows = list(dict.fromkeys(row for one in found for row in one.rows))
    conditions = list(dict.fromkeys(name for one in found for name in one.board.designed))
    known = {place[:2] for one in found for place in one.estimates}
    places = [each for each in itertools.product(rows, conditions) if each in known]
    lead = [Column("queries"), Column("selection")]
    values = [(one, measure) for one in found for measure in one.measures]
    measured = [Column(measure, (one.board.collection,), align="right") for one, measure in values]
    cells = [(row.group, name, *(one.cell((row, name, measure)) for one, measure in values)) for row, name in places]
    strong = frozenset(
        (places.index((row, name)), len(lead) + column)
        for column, (one, measure) in enumerate(values)
        for row in rows
        for name in one.best(row, measure)
    )
    last: list[Cell] = ["first stage", ""]
    last += [f"{float(one.board.first_stage.mean[0, one.measures.index(m)]):.4f}" for one, m in values]
    best = "Bold (or a star): the best of a block by each measure."
    notes = (best, *dict.fromkeys(note for one in found for note in one.notes()))
    title = "Effectiveness by the strategy that selects the version of the relevant training documents."
    rules = (*group_starts([place[0] for place in places]), len(places))
    return Table(title, (*lead, *measured), (*cells, tuple(last)), notes, rules, strong)


_PLACES: Final = "benchmark, measure, model=row, "


def depth_table(found: Sequence[Effectiveness]) -> Table:
    """One row per benchmark, measure, model and depth: the mean, the difference to the full set, and the loss.

    A loss is given twice, with its base: as a share of the full set's mean, and of the smaller set's.

    Source: survivorship paper, section 5, Figure 1.
    """
    base = found[0].board.baseline
    named = {"mean": "change", "low": "change_low", "high": "change_high"}
    shown = (
        *columns(f"{_PLACES}trained on=trained_on, topics=n:,d, mean=shown:s"),
        *(Field((f"difference to {base}", name), field, "+.4f") for name, field in named.items()),
        *columns("p corrected=change_p_corrected:.4g"),
        Field(("relative difference", f"of {base}"), "of_baseline", "+.1%"),
        Field(("relative difference", "of the smaller set"), "of_own", "+.1%"),
    )
    note = f"Relative differences: mean minus that of {base}, as a share of that of {base} or of the own mean."
    title = "Effectiveness by depth of the annotation behind the training set."
    return _long(title, shown, found, pl.lit(value=True), (note,))


def control_table(found: Sequence[Effectiveness]) -> Table:
    """One row per benchmark, measure and model: the mean, that of the control, and how far the model is above it."""
    base = found[0].board.baseline
    named = {"mean": "above", "low": "above_low", "high": "above_high"}
    shown = (
        *columns(f"{_PLACES}control=trained_on, topics=n:,d"),
        Field(("mean", f"on {base}"), "change_baseline_mean", ".4f"),
        Field(("mean", "on control"), "mean", ".4f"),
        *(Field(("above control", name), field, "+.4f") for name, field in named.items()),
        *columns("p corrected=change_p_corrected:.4g"),
    )
    title = f"The models trained on {base} and, as a control, on sets that teach nothing."
    return _long(title, shown, found, pl.col("change").is_not_null(), ())


def _long(
    title: str, shown: tuple[Field, ...], found: Sequence[Effectiveness], where: pl.Expr, notes: tuple[str, ...]
) -> Table:
    """One row per benchmark, measure, model and condition; the control's table has a mark beside the model."""
    every = pl.concat([one.frame() for one in found], how="vertical_relaxed").filter(where)
    marked = pl.col("row") + pl.when("change_significant").then(pl.lit("†")).otherwise(pl.lit(""))
    turned = {"above": "change", "above_low": "change_high", "above_high": "change_low"}
    turns = {name: -pl.col(field) for name, field in turned.items()}
    rows = every.with_columns(row=marked if "above" in {field.field for field in shown} else pl.col("row"), **turns)
    notes = (*notes, *dict.fromkeys(note for one in found for note in one.notes()))
    return View("estimates", "rows", title, shown, notes, ruled="measure").table({"rows": rows}, {})


def above(found: Difference) -> tuple[float | None, float | None, float | None]:
    """The baseline minus the condition, with its interval: the difference the other way round."""
    value, low, high = (None if each is None else -each for each in (found.difference, found.high, found.low))
    return value, low, high


def depth_panels(found: Sequence[Effectiveness]) -> tuple[LinePanel, ...]:
    """One plot per benchmark and measure, one line per model: the mean by depth with its interval over topics."""

    def point(one: Effectiveness, place: Place) -> tuple[float, float | None, float | None] | None:
        found = one.estimates[place].mean if place in one.estimates else None
        return None if found is None or found.mean is None else (found.mean, found.low, found.high)

    panels = []
    for one, measure in ((each, measure) for each in found for measure in each.measures):
        depths = one.board.designed
        lines = (LineSeries(row.name, tuple(point(one, (row, name, measure)) for name in depths)) for row in one.rows)
        lower = ", lower is better" if lower_is_better(measure) else ""
        panels.append(LinePanel(f"{one.board.collection}: {measure}{lower}", depths, tuple(lines)))
    return tuple(panels)


def effects(one: Effectiveness) -> Iterator[Verdict]:
    """Which rows differ from the baseline by the first measure, for each training set."""
    measure, against = one.measures[0], one.board.baseline
    for condition in one.board.faults:
        compared = {row: found for row in one.rows if (found := one.change((row, condition, measure))) is not None}
        if not compared:
            continue
        lower = ", lower is better" if lower_is_better(measure) else ""
        reach = reachable([found.detectable for found in compared.values() if not found.significant])
        survivors = {row: found for row, found in compared.items() if found.significant}
        subject = f"{one.board.collection}, {condition}"
        if survivors:
            rest = len(compared) - len(survivors)
            word, named = (
                f"{len(survivors)} of {len(compared)} differ",
                "; ".join(_named(one, *each) for each in survivors.items()),
            )
            others = f" No difference is shown for the other {rest if rest > 1 else 'one'}." if rest else ""
            over = _by_seeds([one.estimates[row, condition, measure] for row in survivors])
            sentence = f"{measure}{lower}: {word} from {against}, corrected: {named}.{others}{reach}{over}"
            yield Verdict(word, sentence, subject=subject, level="bad")
            continue
        named = "; ".join(_named(one, *each) for each in compared.items())
        if len(compared) > 6:
            values = [found.difference for found in compared.values() if found.difference is not None]
            ends = [end for found in compared.values() for end in (found.low, found.high) if end is not None]
            around = f", intervals within [{min(ends):+.4f}, {max(ends):+.4f}]" if ends else ""
            named = f"differences {min(values):+.4f} to {max(values):+.4f}{around}"
        what = "no difference is shown" if len(compared) == 1 else f"no difference is shown for any of {len(compared)}"
        sentence = f"{measure}{lower}: {what} to {against}: {named} (intervals not corrected).{reach}"
        yield Verdict("cannot tell", sentence, subject=subject)


def controls(one: Effectiveness) -> Iterator[Verdict]:
    """Which models of a pilot beat themselves trained on a control, by the first measure."""
    measure = one.measures[0]
    for condition in one.board.faults:
        compared = {row.name: found for row in one.rows if (found := one.change((row, condition, measure)))}
        if not compared:
            continue
        beating = [name for name, found in compared.items() if found.significant and not found.better]
        named = "; ".join(f"{name} {signed(*above(found), '+.4f')}" for name, found in compared.items())
        rest = reachable([found.detectable for name, found in compared.items() if name not in beating])
        sentence = (
            f"{measure}: {len(beating)} of {len(compared)} models beat themselves trained on {condition}, corrected"
            f"{': ' + ', '.join(beating) if beating else ''}. {one.board.baseline} minus {condition}: {named} "
            f"(intervals not corrected).{rest}"
        )
        level: Literal["good", "unknown"] = "good" if len(beating) == len(compared) else "unknown"
        word, subject = f"{len(beating)} of {len(compared)} beat it", f"{one.board.collection}, {condition}"
        yield Verdict(word, sentence, subject=subject, level=level)


def reachable(detectable: Sequence[float | None], form: str = ".4f") -> str:
    """The sizes that the topics could have shown, so that nobody takes what is not shown for what is not there."""
    known = [size for size in detectable if size]
    if not known:
        return ""
    limits = f"{min(known):{form}}" + (f" to {max(known):{form}}" if max(known) > min(known) else "")
    return f" Differences below {limits} are too small for these topics to show reliably."


def signed(mean: float | None, low: float | None, high: float | None, form: str) -> str:
    """A value with its interval."""
    if mean is None:
        return "unknown"
    return f"{mean:{form}}" + ("" if low is None or high is None else f" [{low:{form}}, {high:{form}}]")


def _named(whole: Effectiveness, row: BoardRow, found: Difference) -> str:
    """The row and its difference; where one model is alone, its block says enough."""
    alone = len({each.model for each in whole.board.rows}) == 1
    name = row.group if alone and row.group else row.name
    return f"{name} {signed(found.difference, found.low, found.high, '+.4f')}"


def _by_seeds(survivors: Sequence[Estimate]) -> str:
    """Which differences exclude 0 over topics, but not over seeds: trained again, they may be others."""
    unsettled = [
        f"{one.row.name} ({over.n} seeds)"
        for one in survivors
        if (over := one.difference_over_seeds) is not None
        and not (over.low is not None and over.high is not None and (over.low > 0 or over.high < 0))
    ]
    return f" Over seeds, the interval holds 0 or is not known: {', '.join(unsettled)}." if unsettled else ""

"""How scores, comparisons and orders of runs are shown, drawn and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from truerank.core.figures import (
    DifferencePanel,
    ForestRow,
    Picture,
    difference_panels,
    forest_plot,
    order_overview,
)
from truerank.core.plain import plain
from truerank.core.result import Result, Summary, shows, summarises, summary, writes
from truerank.core.tables import Cell, Column, Table, group_starts
from truerank.core.views import heads
from truerank.measures.comparison import MARK, Comparison, Difference
from truerank.measures.grammar import lower_is_better
from truerank.measures.magnitudes import difference_interval, mean_interval
from truerank.measures.orders import OrderChanges, ranks
from truerank.measures.repeats import RepeatedPair
from truerank.measures.results import Evaluation
from truerank.measures.run_comparison import RunComparison, TopicDifferences
from truerank.measures.significance import CASES, TESTS
from truerank.work.publishing import write_pictures
from truerank.work.runs import Run

#: Rows of one figure.
_MOST_ROWS: Final = 40


def evaluation_pictures(evaluation: Evaluation) -> Iterator[Picture]:
    """One figure for each measure that is a mean over topics: the mean of every run with its interval."""
    for measure in evaluation.averaged:
        rows = []
        for run in evaluation.runs[:_MOST_ROWS]:
            scores = evaluation.of(run, measure)
            _, mean, low, high = mean_interval(scores[~np.isnan(scores)])
            rows.append(ForestRow(run, mean, low, high, "" if mean is None else f"{mean:.4f}"))
        yield Picture(
            _name("scores", measure),
            f"Mean {measure} of {_of(len(rows), len(evaluation.runs), 'run')} over {len(evaluation.topics):,} topics, "
            f"with 95% intervals (Student t). They show how far a mean depends on the topics; "
            "whether two runs differ is what 'truerank compare' tests, topic by topic.",
            forest_plot(rows, x_label=f"mean {measure}"),
        )


def comparison_pictures(comparison: Comparison, topics: Sequence[TopicDifferences] = ()) -> Iterator[Picture]:
    """The figures of a comparison, by measure: differences with intervals, the order, and differences by topic."""
    for measure in comparison.measures:
        yield difference_picture(comparison, measure)
        if comparison.baseline is None and len(comparison.runs) > 2:
            yield order_picture(comparison, measure)
        chosen = [one for one in topics if one.measure == measure]
        if chosen:
            pairs = sum(row.measure == measure for row in comparison.differences)
            yield topic_picture(chosen, comparison.method.confidence, pairs)


def difference_picture(comparison: Comparison, measure: str) -> Picture:
    """Every difference by one measure with its interval and its p; beyond 40 the largest ones."""
    rows = [row for row in comparison.differences if row.measure == measure]
    several = comparison.baseline is None or len({row.baseline for row in rows}) > 1
    if len(rows) > _MOST_ROWS:
        known = [row for row in rows if row.difference is not None]
        rows = sorted(known, key=lambda row: -abs(row.difference or 0.0))[:_MOST_ROWS]
    method, number = comparison.method, sum(row.measure == measure for row in comparison.differences)
    which = f"The {len(rows):,} largest of {number:,} differences" if len(rows) < number else "Differences"
    against = "between runs" if comparison.baseline is None else f"to {comparison.baseline}"
    return Picture(
        _name("differences", measure),
        f"{which} in {measure} {against}, with {100 * method.confidence:.6g}% intervals of each difference, which are "
        f"not corrected. Filled: significant ({TESTS[method.significance]}, {method.corrected()}, α = "
        f"{method.alpha:g})." + (" Lower is better." if lower_is_better(measure) else ""),
        forest_plot(
            [_row(row, several) for row in rows],
            x_label=f"difference in {measure}",
            line=0.0,
            line_label="no difference" if several else str(comparison.baseline),
            meanings={"filled": "significant", "hollow": "not significant"},
        ),
    )


def order_picture(comparison: Comparison, measure: str) -> Picture:
    """The runs from the best, with lines that join runs of which no pair differs significantly."""
    means = _means(comparison, measure)
    return Picture(
        _name("order", measure),
        f"Mean {measure} of {len(means):,} runs, the best first. A line joins runs of which no pair differs "
        f"significantly ({TESTS[comparison.method.significance]}, {comparison.method.corrected()}, α = "
        f"{comparison.method.alpha:g}): these topics do not distinguish them, which does not make them equal.",
        order_overview(list(means), list(means.values()), undistinguished(comparison, measure), x_label=measure),
    )


def undistinguished(comparison: Comparison, measure: str) -> list[tuple[int, int]]:
    """The longest stretches of the order in which no pair of runs differs significantly."""
    order = list(_means(comparison, measure))
    apart = {
        frozenset((row.run, row.baseline))
        for row in comparison.differences
        if row.measure == measure and row.significant
    }
    found: list[tuple[int, int]] = []
    for first in range(len(order)):
        last = first
        while last + 1 < len(order) and not any(
            frozenset((order[last + 1], other)) in apart for other in order[first : last + 1]
        ):
            last += 1
        if last > first and (not found or found[-1][1] < last):
            found.append((first, last))
    return found


def topic_picture(topics: Sequence[TopicDifferences], confidence: float = 0.95, pairs: int | None = None) -> Picture:
    """Differences by topic of some pairs by one measure, with their mean and its interval."""
    measure, panels = topics[0].measure, []
    which = _of(len(topics), pairs or len(topics), "pair")
    for one in topics:
        interval = difference_interval(one.scores, one.baseline_scores, confidence=confidence)
        outcomes = [one.outcomes.count(kind) for kind in ("win", "tie", "loss")]
        counts = " / ".join(f"{count:,}" for count in outcomes)
        mean = "" if interval.mean is None else f"{interval.mean:+.4f}, "
        panels.append(
            DifferencePanel(f"{one.run} − {one.baseline}\n{mean}{counts}", one.differences, interval.low, interval.high)
        )
    return Picture(
        _name("topics", measure),
        f"Differences in {measure} by topic, sorted, of {which}: gains filled, "
        f"losses hatched. Dashed: the mean difference, with its {100 * confidence:.6g}% interval (Student t). Above "
        "each plot: the mean, and topics won / tied / lost.",
        difference_panels(panels, y_label=f"difference in {measure}"),
    )


def _row(row: Difference, several: bool) -> ForestRow:
    words = "no difference known" if row.difference is None else f"{row.difference:+.4f}"
    if row.low is not None and row.high is not None:
        words += f" [{row.low:+.4f}, {row.high:+.4f}]"
    if row.p_corrected is not None:
        words += f" p = {row.p_corrected:.2g}"
    return ForestRow(
        f"{row.run} − {row.baseline}" if several else row.run,
        row.difference,
        row.low,
        row.high,
        words.replace("-", "−") + (f" {MARK}" if row.significant else ""),
        "filled" if row.significant else "hollow",
    )


def _means(comparison: Comparison, measure: str) -> dict[str, float]:
    """The means by run, the best first; equal ones in the order of the runs."""
    means: dict[str, float] = {}
    for row in comparison.differences:
        if row.measure == measure:
            for run, mean in ((row.baseline, row.baseline_mean), (row.run, row.mean)):
                if mean is not None:
                    means.setdefault(run, mean)
    sign = 1 if lower_is_better(measure) else -1
    order = [run for run in comparison.runs if run in means]
    return {run: means[run] for run in sorted(order, key=lambda run: sign * means[run])}


def _name(kind: str, measure: str) -> str:
    """A word for files and ids: "differences-nDCG-10"."""
    signs = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in measure)
    return f"{kind}-{signs.strip('-')}"


def _of(shown: int, there: int, noun: str) -> str:
    return f"{there:,} {noun}{'' if there == 1 else 's'}" if shown == there else f"{shown:,} of {there:,} {noun}s"


_NAMED: Final = 10
_PAIRS: Final = ("swaps", "overtakings")


def evaluation_table(evaluation: Evaluation) -> Table:
    """One row per run, one column per measure, and how the run fits the qrels."""
    columns = [Column("run")]
    for measure, kind in zip(evaluation.measures, evaluation.aggregates, strict=True):
        columns.append(Column(measure, align="right", format=",.0f" if kind == "sum" else ".4f"))
    columns.append(Column("missing", ("topics",), align="right", format=",d"))
    if evaluation.coverage:
        columns.append(Column("unknown", ("topics",), align="right", format=",d"))
        columns.append(Column("unjudged", ("results",), align="right", format=".1%"))
    rows = tuple(
        (run, *(plain(value) for value in means), *_counts(evaluation, run))
        for run, means in zip(evaluation.runs, evaluation.mean, strict=True)
    )
    count = len(evaluation.topics)
    title = f"Scores over {count:,} topic{'' if count == 1 else 's'}."
    return Table(title, tuple(columns), rows, notes=evaluation_notes(evaluation))


def scores_by_topic(evaluation: Evaluation) -> Table:
    """One row per run and topic, one column per measure."""
    columns = (Column("run"), Column("topic"), *Column.numbers(".4f", *evaluation.measures))
    rows = tuple(
        (run, topic, *(plain(value) for value in evaluation.values[i, :, j]))
        for i, run in enumerate(evaluation.runs)
        for j, topic in enumerate(evaluation.topics)
    )
    return Table("Scores by topic.", columns, rows)


def evaluation_notes(evaluation: Evaluation) -> tuple[str, ...]:
    """What a reader has to know of the scores, one sentence each."""
    kinds = list(zip(evaluation.measures, evaluation.aggregates, strict=True))
    sums, harmonic = ([name for name, kind in kinds if kind == asked] for asked in ("sum", "harmonic"))
    notes = list(evaluation.policy.sentences())
    if sums:
        notes.append(f"Sums over topics, not means: {', '.join(sums)}.")
    if harmonic:
        notes.append(f"Harmonic means over topics: {', '.join(harmonic)}.")
    return (*notes, *evaluation.remarks)


def difference_table(comparison: Comparison) -> Table:
    """One row per measure and pair."""
    several = comparison.baseline is None or len({row.baseline for row in comparison.differences}) > 1
    columns = [Column("run"), Column("measure"), *([Column("baseline")] if several else [])]
    columns += heads(
        "topics:, mean|run:.4f, mean|baseline:.4f, difference|mean:+.4f, difference|low:+.4f, difference|high:+.4f, "
        f"p|raw:.4g, p|corrected:.4g, p|{MARK}, effect:+.3f"
    )
    if comparison.method.paired:
        columns += heads("win / tie / loss:")
    columns += heads("detectable:.4f")
    rows = tuple(_difference_row(comparison, row, several) for row in comparison.differences)
    title = (
        "Runs compared with each other."
        if comparison.baseline is None
        else f"Runs compared with {comparison.baseline}."
    )
    notes = (*comparison.sentences(), *comparison.method.sentences(), *_cautions(comparison))
    return Table(title, tuple(columns), rows, notes=notes, rules=group_starts([row[1] for row in rows]))


def repeats_table(pairs: Sequence[RepeatedPair]) -> Table:
    """Differences for other topics and other repetitions, and the noise between repetitions of each system."""
    columns = (
        Column("run"), Column("baseline"), Column("measure"),
        *Column.numbers("+.4f", "mean", "low", "high", above=("difference when run again",)),
        *(
            Column(name, (of,), align="right", format=form)
            for of in ("run", "baseline")
            for name, form in (("repeats", ",d"), ("sd", ".4f"), ("low", ".4f"), ("high", ".4f"))
        ),
    )  # fmt: skip
    rows, notes = [], []
    for run, baseline, measure, found in pairs:
        cells = [
            cell
            for one in (found.system, found.baseline)
            for cell in ((one.repeats, one.by_repeat, one.low, one.high) if one.repeats > 1 else (1, None, None, None))
        ]
        rows.append((run, baseline, measure, found.mean, found.low, found.high, *cells))
        most = max(found.system.repeats, found.baseline.repeats)
        plan = [f"{least:.4f} with {n} repeats and {topics:,d} topics" for n, topics, least in found.detectable]
        plan = [text for (n, _, _), text in zip(found.detectable, plan, strict=True) if n >= most]
        single = found.topics_only[0] > 0 or found.topics_only[1] < 0
        if single and found.low <= 0 <= found.high:
            notes.append(f"{run} − {baseline}, {measure}: shown for these repetitions, not for others.")
        notes.append(f"{run} − {baseline}, {measure}: shown with a power of 80% would be {', '.join(plan)}.")
    return Table(
        "Differences beside the noise between repetitions.", columns, tuple(rows),
        notes=(
            "Difference when run again: for other topics and other repetitions; Satterthwaite's degrees of freedom.",
            "sd: between the means of repetitions, beyond what chance of topics explains, with its interval; two "
            "repetitions leave the upper end open.",
            *notes,
        ),
    )  # fmt: skip


def score_table(comparison: Comparison) -> Table:
    """One row per run and one column per measure, with a mark at each significant difference to the baseline."""
    means: dict[tuple[str, str], str] = {}
    for row in comparison.differences:
        means.setdefault((row.baseline, row.measure), _shown(row.baseline_mean))
        marked = MARK if row.significant and comparison.baseline is not None else ""
        means[row.run, row.measure] = _shown(row.mean) + marked
    columns = (Column("run"), *(Column(measure, align="right") for measure in comparison.measures))
    rows = tuple((run, *(means.get((run, measure)) for measure in comparison.measures)) for run in comparison.runs)
    if comparison.baseline is None:
        return Table("Scores.", columns, rows)
    note = (
        f"{MARK} differs from {comparison.baseline}: {TESTS[comparison.method.significance]}, "
        f"{comparison.method.corrected()}, α = {comparison.method.alpha:g}."
    )
    return Table("Scores.", columns, rows, notes=(note,))


def order_table(order: OrderChanges) -> Table:
    """One row per system: means and ranks under both conditions; a mark where it overtakes or is overtaken."""
    names, (first, second) = list(order.before), order.conditions
    places = ranks(list(order.before.values()), ascending=order.ascending)
    later = ranks(list(order.after.values()), ascending=order.ascending)
    overtakers = {overtaking.system for overtaking in order.overtakings}
    swapped = {name for swap in order.swaps for name in swap[:2]}
    marks = [("↔" if name in swapped else "") + ("‡" if name in overtakers else "") for name in names]
    rows = sorted(zip(places.tolist(), range(len(names)), strict=True))
    return Table(
        title=f"{order.measure}: order of the systems, {first} and {second}.".removeprefix(": "),
        columns=(
            Column("system"),
            *(replace(column, above=(name,)) for name in (first, second) for column in heads("mean:.4f, rank:,d")),
            *heads("ranks_lost:+,d, changes"),
        ),
        rows=tuple(
            (
                names[i],
                order.before[names[i]],
                int(places[i]),
                order.after[names[i]],
                int(later[i]),
                int(later[i] - places[i]),
                marks[i],
            )
            for _, i in rows
        ),
        notes=order.sentences(),
    )


def swap_table(order: OrderChanges) -> Table:
    """Every pair that changes places, and every system that would pass one that stays as it was."""
    first, second = order.conditions
    rows = [("change places ↔", *swap) for swap in order.swaps]
    rows += [("overtakes ‡", *overtaking) for overtaking in order.overtakings]
    return Table(
        title=f"{order.measure}: pairs of systems whose order changes.".removeprefix(": "),
        columns=(
            *heads("kind, system, other"),
            *Column.numbers("+.4f", first, second, above=("difference",)),
        ),
        rows=tuple(rows),
        notes=(
            "Differences are system minus other, in the unit of the measure.",
            f"↔ both change from {first} to {second}; ‡ the system changes, the other one stays as in {first}.",
        ),
    )


@shows(TopicDifferences)
def topic_table(found: TopicDifferences) -> Table:
    """One row per topic."""
    columns = (
        Column("topic"),
        *Column.numbers(".4f", found.run, found.baseline),
        *heads("difference:+.4f, for_the_run"),
    )
    values = (found.scores.tolist(), found.baseline_scores.tolist(), found.differences.tolist(), found.outcomes)
    rows = tuple(zip(found.topics, *values, strict=True))
    return Table(f"{found.measure} by topic.", columns, rows, notes=(found.sentence(),))


@summarises(Evaluation)
def _evaluation(evaluation: Evaluation) -> Summary:
    by_topic = (scores_by_topic(evaluation),) if evaluation.per_topic else ()
    return Summary(
        (evaluation_table(evaluation), *by_topic),
        evaluation.json(per_topic=evaluation.per_topic),
        pictures=lambda: evaluation_pictures(evaluation),
    )


@summarises(Comparison)
def _comparison(comparison: Comparison) -> Summary:
    # The means are for people: other forms have them in the table of differences.
    means = score_table(comparison).text().rstrip("\n")
    return Summary(
        (means, difference_table(comparison)), comparison.json(), pictures=lambda: comparison_pictures(comparison)
    )


@summarises(RunComparison)
def _run_comparison(found: RunComparison) -> Summary:
    shown: list[Result] = [*([] if found.comparison is None else [found.comparison]), *found.topics, *found.orders]
    parts = tuple(part for one in shown for part in summary(one).parts)
    if found.repeated:
        parts += (repeats_table(found.repeated),)
    if found.conventions and found.comparison is not None:
        first = found.comparison.differences[0]
        parts += ("\n".join(one.sentence(first.run, first.baseline) for one in found.conventions),)
    return Summary(parts, found.json(), pictures=lambda: _compared_pictures(found))


def _compared_pictures(found: RunComparison) -> Iterator[Picture]:
    if found.comparison is not None:
        yield from comparison_pictures(found.comparison, found.drawn)


@summarises(OrderChanges)
def _order_changes(order: OrderChanges) -> Summary:
    changed = (swap_table(order),) if order.swaps or order.overtakings else ()
    return Summary((order_table(order), *changed), order.json())


@writes(Evaluation)
def _write_evaluation(evaluation: Evaluation, run: Run) -> None:
    """Writes `per_topic.parquet` and `summary.json`, which `load_evaluation` reads, and figures if asked for."""
    run.parquet("per_topic.parquet", evaluation.frame())
    run.json("summary.json", evaluation.json())
    if evaluation.plot:
        write_pictures(run, evaluation_pictures(evaluation))


@writes(RunComparison)
def _write_comparison(found: RunComparison, run: Run) -> None:
    """Writes what there is of `comparison`, `per_topic`, `order` and `swaps`, each as .json, .csv, .md and .tex.

    Figures, if asked for, are in figures/ as .svg and .pdf.
    """
    if found.comparison is not None:
        _write(run, "comparison", found.comparison.json(), difference_table(found.comparison))
    if found.repeated:
        value = {"repeated": [plain(one) for one in found.repeated]}
        _write(run, "repeated", value, repeats_table(found.repeated))
    if found.topics:
        value = {"per_topic": [result.json() for result in found.topics]}
        tables = {result.measure: topic_table(result) for result in found.topics}
        _write(run, "per_topic", value, _stacked("Differences by topic.", tables))
    if found.orders:
        orders = {order.measure: order_table(order) for order in found.orders}
        _write(run, "order", {"orders": [o.json() for o in found.orders]}, _stacked("Order of systems.", orders))
        changed = {order.measure: order for order in found.orders if order.swaps or order.overtakings}
        if changed:
            swaps = {name: swap_table(order) for name, order in changed.items()}
            pairs = {name: {key: order.json()[key] for key in _PAIRS} for name, order in changed.items()}
            _write(run, "swaps", pairs, _stacked("Pairs of systems whose order changes.", swaps))
    if found.plot:
        write_pictures(run, _compared_pictures(found))


def _write(run: Run, name: str, value: Mapping[str, Any], table: Table) -> None:
    run.json(f"{name}.json", value)
    run.text(f"{name}.csv", table.csv())
    run.text(f"{name}.md", table.markdown())
    run.text(f"{name}.tex", table.latex())


def _stacked(title: str, tables: Mapping[str, Table]) -> Table:
    """Tables of the same shape below each other, with the measure in the first column."""
    first = next(iter(tables.values()))
    columns = (Column("measure"), *first.columns)
    rows = tuple((name, *row) for name, table in tables.items() for row in table.rows)
    notes = tuple(dict.fromkeys(f"{name}: {note}" for name, table in tables.items() for note in table.notes))
    return Table(title, columns, rows, notes)


def _shown(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.4f}"


def _counts(evaluation: Evaluation, run: str) -> tuple[Cell, ...]:
    missing = evaluation.missing.get(run, 0)
    if not evaluation.coverage:
        return (missing,)
    found = evaluation.coverage[run]
    return missing, found.unknown, found.unjudged / found.results if found.results else None


def _difference_row(comparison: Comparison, row: Difference, several: bool) -> tuple[Cell, ...]:
    cells: list[Cell] = [row.run, row.measure, *([row.baseline] if several else [])]
    cells += [" + ".join(f"{n:,}" for n in row.n), row.mean, row.baseline_mean]
    cells += [
        row.difference,
        row.low,
        row.high,
        row.p,
        row.p_corrected,
        MARK if row.significant else "",
        row.effect,
    ]
    if comparison.method.paired:
        cells.append(f"{row.wins} / {row.ties} / {row.losses}")
    return (*cells, row.detectable)


def _cautions(comparison: Comparison) -> tuple[str, ...]:
    """What else a reader has to know."""
    found = []
    for case, meaning in CASES.items():
        rows = [row for row in comparison.differences if row.case == case]
        names = ", ".join(dict.fromkeys(f"{row.run} by {row.measure}" for row in rows[:_NAMED]))
        if rows:
            more = f" and {len(rows) - _NAMED:,} more" if len(rows) > _NAMED else ""
            found.append(f"No test of {names}{more}: {meaning}.")
    skipped = max((row.skipped for row in comparison.differences), default=0)
    if skipped:
        found.append(f"Up to {skipped:,} topics are left out of a comparison because a run was not scored on them.")
    if comparison.left_out:
        found.append(f"Not compared, because they are not means over topics: {', '.join(comparison.left_out)}.")
    if len({tuple(policy.sentences()) for policy in comparison.policies.values()}) > 1:
        found.append("The evaluations were made under different policies; see 'policies' in the JSON.")
    else:
        found += next((policy.sentences() for policy in comparison.policies.values()), ())
    found += comparison.remarks
    return tuple(found)

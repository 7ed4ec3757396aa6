"""The figures of scores and comparisons: intervals, differences by topic, the order and what no test tells apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from truerank.measures.comparison import MARK, Comparison, Difference
from truerank.measures.grammar import lower_is_better
from truerank.measures.magnitude import difference_interval, mean_interval
from truerank.measures.results import Evaluation
from truerank.measures.run_comparison import TopicDifferences
from truerank.measures.significance import TESTS
from truerank.reports.figures import (
    DifferencePanel,
    ForestRow,
    Picture,
    difference_panels,
    forest_plot,
    order_overview,
)

#: Rows of one figure.
_MOST_ROWS: Final = 40


def evaluation_pictures(evaluation: Evaluation, confidence: float = 0.95) -> Iterator[Picture]:
    """One figure for each measure that is a mean over topics: the mean of every run with its interval."""
    kinds = evaluation.aggregates or ("mean",) * len(evaluation.measures)
    for measure in [name for name, kind in zip(evaluation.measures, kinds, strict=True) if kind == "mean"]:
        rows = []
        for run in evaluation.runs[:_MOST_ROWS]:
            scores = evaluation.of(run, measure)
            _, mean, low, high = mean_interval(scores[~np.isnan(scores)], confidence)
            rows.append(ForestRow(run, mean, low, high, "" if mean is None else f"{mean:.4f}"))
        yield Picture(
            _name("scores", measure),
            f"Mean {measure} of {_of(len(rows), len(evaluation.runs), 'run')} over {len(evaluation.topics):,} topics, "
            f"with {100 * confidence:.6g}% intervals (Student t). They show how far a mean depends on the topics; "
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
        f"{comparison.method.alpha:g}): these topics do not tell them apart, which does not make them equal.",
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

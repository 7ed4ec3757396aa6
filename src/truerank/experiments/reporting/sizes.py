"""The effect of a fault by size of the training set: on the topics that leak, and on all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.experiments.reporting.board import Board, BoardRow, size_name
from truerank.experiments.reporting.options import ReportChoices
from truerank.measures import MeanInterval, difference_interval, mean_interval
from truerank.reports.figures import LinePanel, LineSeries
from truerank.reports.tables import Column, Table

#: The two sets of topics that effects are shown on.
TOPICS: Final = ("leaking", "all")


class SizeEffect(NamedTuple):
    """What a fault changes at one training size.

    Attributes:
        collection: its name.
        topics: "leaking" or "all".
        row: the row.
        condition: the training sets.
        size: in instances, 0 for all rows.
        seeds: seeds of the condition, and of the baseline.
        mean: of the condition over these topics; by topic, values are means over seeds.
        baseline: of the baseline at the same size.
        difference: condition minus baseline, with the interval over topics; None below one topic.
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


def size_effects(board: Board, options: ReportChoices) -> tuple[SizeEffect, ...]:
    """The effect of every condition on every row at each size, by the first measure.

    Source: leakage paper, section 4, Figure 2.
    """
    return tuple(_effects(board, options))


def sizes_table(effects: Sequence[SizeEffect], measure: str, baseline: str) -> Table:
    """One row per collection, set of topics, model, training set and size."""
    columns = (
        Column("collection"),
        Column("topics"),
        Column("model"),
        Column("trained on"),
        Column("size", align="right"),
        Column("n", align="right", format=",d"),
        Column("seeds", align="right"),
        Column("mean", (baseline,), align="right", format=".4f"),
        Column("mean", ("with the fault",), align="right", format=".4f"),
        *Column.numbers("+.4f", "mean", "low", "high", above=("difference",)),
    )
    rows = tuple(
        (
            one.collection,
            one.topics,
            one.row.name,
            one.condition,
            size_name(one.size),
            one.difference.n,
            f"{one.seeds[0]} and {one.seeds[1]}",
            one.baseline.mean,
            one.mean.mean,
            *one.difference[1:],
        )
        for one in effects
    )
    starts = [place for place, one in enumerate(effects) if place and effects[place - 1][:2] != one[:2]]
    notes = (
        "Sizes are in instances: a query with one relevant and one non-relevant document is two.",
        "Intervals: Student t of the per-topic differences; by topic, values are means over seeds. They are not "
        "corrected for their number.",
    )
    return Table(f"{measure} by training size, difference to {baseline}.", columns, rows, notes, tuple(starts))


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
            values = tuple(
                None if size not in by_size or by_size[size].mean is None else _point(by_size[size]) for size in sizes
            )
            lines.append(LineSeries(row.name, values))
        n = max(one.difference.n for one in own)
        title = f"{collection}: {condition}, n = {n:,} topics"
        found.append(LinePanel(title, tuple(map(size_name, sizes)), tuple(lines), zero=True))
    return tuple(found)


def _effects(board: Board, options: ReportChoices) -> Iterator[SizeEffect]:
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
    return SizeEffect(
        collection=board.collection,
        topics=name,
        row=row,
        condition=condition,
        size=size,
        seeds=(len(board.of(row, condition, size)), len(board.of(row, board.baseline, size))),
        mean=mean_interval(first, confidence),
        baseline=mean_interval(second, confidence),
        difference=difference_interval(first, second, confidence=confidence),
    )


def _point(interval: MeanInterval) -> tuple[float, float | None, float | None]:
    return float(interval.mean or 0.0), interval.low, interval.high

"""Tables 4 and 5 of the transfer paper: strategies that choose the version of a training document, by benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from truerank.experiments.reporting.board import BoardRow
from truerank.experiments.reporting.effectiveness import Effectiveness
from truerank.measures import lower_is_better
from truerank.reports.tables import Cell, Column, Table

__all__ = ["strategies_table"]


def strategies_table(found: Sequence[Effectiveness]) -> Table:
    """One row per block of queries and strategy, the measures of every benchmark side by side.

    The best of a block stands out; the first stage stands below. Where the design has several rankers, each strategy
    has a row for each.

    Args:
        found: the results by benchmark, at least one.

    Source: transfer paper, section 6, Tables 4 and 5.
    """
    rows = list(dict.fromkeys(row for one in found for row in one.shown_rows()))
    conditions = list(dict.fromkeys(name for one in found for name in one.board.designed))
    places = [
        (row, name)
        for row in rows
        for name in conditions
        if any((row, name, measure) in one.estimates for one in found for measure in one.measures)
    ]
    shown_model, shown_group = len({row.model for row in rows}) > 1, any(row.group for row in rows)
    lead = [*([Column("queries")] if shown_group else []), Column("selection")]
    lead += [Column("ranker")] if shown_model else []
    values = [(one, measure) for one in found for measure in one.measures]
    columns = [Column(measure, (one.board.collection,), align="right") for one, measure in values]
    cells: list[tuple[Cell, ...]] = []
    for row, name in places:
        own = [*([row.group] if shown_group else []), name, *([row.model] if shown_model else [])]
        cells.append((*own, *(one.cell(row, name, measure) for one, measure in values)))
    last: list[Cell] = ["first stage", *[""] * (len(lead) - 1)]
    last += [f"{float(one.board.first_stage.mean[0, one.measures.index(m)]):.4f}" for one, m in values]
    rules = [place for place in range(1, len(places)) if places[place - 1][0] != places[place][0]]
    said = [note for one in found for note in one.notes() if not note.startswith("What is reranked")]
    notes = tuple(dict.fromkeys(note.replace("the best of a row", "the best of a block") for note in said))
    return Table(
        "Effectiveness by the strategy that selects the version of the relevant training documents.",
        (*lead, *columns),
        (*cells, tuple(last)),
        notes,
        (*rules, len(places)),
        frozenset(_strong(places, values, len(lead))),
    )


def _strong(
    places: Sequence[tuple[BoardRow, str]], values: Sequence[tuple[Effectiveness, str]], lead: int
) -> set[tuple[int, int]]:
    """The best cell of each block and column."""
    found = set()
    for column, (one, measure) in enumerate(values):
        for block in dict.fromkeys(row for row, _ in places):
            known: dict[int, float] = {}
            for number, (row, name) in enumerate(places):
                estimate = one.estimates.get((row, name, measure))
                if row == block and estimate is not None and estimate.mean.mean is not None:
                    known[number] = estimate.mean.mean
            if len(known) > 1:
                best = (min if lower_is_better(measure) else max)(known.values())
                found |= {(number, lead + column) for number, mean in known.items() if mean == best}
    return found

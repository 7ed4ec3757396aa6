"""Counts of labels as tables."""

from __future__ import annotations

from typing import Final

import polars as pl

from truerank.judging.tables import COMBINED, LabelCounts
from truerank.reports.tables import Column, Table

__all__ = ["label_tables"]

_SHARES: Final = "The intervals are Wilson's; they hold for a random sample of each split."
_DIFFERENT: Final = "A pair labelled Different Topic counts as that, whatever else it carries."
_BETTER: Final = "2: relevant, and better than the other version."


def label_tables(found: LabelCounts) -> dict[str, Table]:
    """The tables by name, in order; the last one has the notes on what was left out.

    Args:
        found: what `judge table` counted.
    """
    last = list(found.parts)[-1]
    return {
        name: _table(found, name, frame, found.notes if name == last else ()) for name, frame in found.parts.items()
    }


def _table(found: LabelCounts, name: str, frame: pl.DataFrame, notes: tuple[str, ...]) -> Table:
    own: tuple[str, ...] = ()
    above: dict[str, str] = {}
    # A line above the row of totals.
    rules = [len(frame) - 1] if len(frame) > 1 else []
    if name == "a":
        title, rules = f"True and false candidates among {found.answered:,} judged pairs.", [*range(2, len(frame), 2)]
    elif name == "b":
        title, own, rules = "Reformulation types of the judged pairs.", (_DIFFERENT,), []
    elif name == "shares":
        title, own, rules = "Shares of the reasons.", (_SHARES,), _changes(frame)
        above = dict.fromkeys(("low", "high"), f"{found.settings['confidence']:.0%} interval")
    elif found.scheme == "survivorship":
        title = "Discarded queries by the reason why they were unanswered."
    elif found.scheme == "transfer":
        title, own = "Which version of the documents is relevant.", (_BETTER,)
        above = {label: f"V1={first} V2={second}" for label, (first, second) in COMBINED.items()}
    elif found.scheme.startswith("transfer:"):
        title, rules = "How relevant each version of the documents is.", _changes(frame)
        above = dict.fromkeys(frame.columns[2:-1], "grade")
    else:
        title = found.title
    columns = [_column(column, kind, above.get(column)) for column, kind in frame.schema.items()]
    return Table.of(frame, columns, title, notes=(*own, *notes), rules=tuple(rules))


def _column(name: str, kind: pl.DataType, above: str | None) -> Column:
    headings = () if above is None else (above,)
    if kind in (pl.String, pl.Null):
        return Column(name, headings)
    return Column(name, headings, align="right", format=".3f" if kind.is_float() else ",d")


def _changes(frame: pl.DataFrame) -> list[int]:
    """The rows, after the first, that begin another group."""
    names = frame.to_series(0).to_list()
    return [at for at in range(1, len(names)) if names[at] != names[at - 1]]

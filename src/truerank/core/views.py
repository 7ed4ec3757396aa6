"""Views: tables declared over the frames of a result.

The columns of a view are a short text: `columns("model=judge, pairs:,d, κ=kappa~.3f")`. Each column is a heading and,
after `=`, the field where it is another word. `:` and a format follow a number, `~` and a format a number with its
interval, which is in the fields `kappa`, `kappa_low` and `kappa_high`. Words have neither. Where a text gets cryptic,
columns are `Field` values. The grammar is checked when the module that declares the view is imported. Headings, title
and notes may name facts in braces.

A view says what a frame looks like. Filters, joins, totals and headings out of data belong in a function that returns
a frame or a `Table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from string import Formatter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from truerank.core.tables import Cell, Column, Interval, Table, group_starts

if TYPE_CHECKING:
    import polars as pl

#: Where a table is shown: everywhere; on the page and in files; in files only.
Place = Literal["everywhere", "page", "files"]

_FIELD: Final = re.compile(r"(?:(?P<heading>[^=:~,]+)=)?(?P<field>\w+)(?:(?P<sign>[:~])(?P<form>.+))?")
#: A comma inside a format (",d") divides no columns.
_COMMA: Final = re.compile(r",(?=\s)")
_FORM: Final = re.compile(r"[+]?,?(?:\.\d+)?[dfgs%]")


class Field(NamedTuple):
    """One column of a view.

    `heading`: over the cells, and the headings over it; `field`: of the frame; `form`: of numbers, empty for words;
    `interval`: whether the ends of an interval are in the fields FIELD_low and FIELD_high.
    """

    heading: tuple[str, ...]
    field: str
    form: str = ""
    interval: bool = False

    def needs(self) -> tuple[str, ...]:
        """The fields that the frame must have."""
        return (self.field, f"{self.field}_low", f"{self.field}_high") if self.interval else (self.field,)

    def column(self) -> Column:
        """The column of the table."""
        return Column(self.heading[-1], self.heading[:-1], "right" if self.form else "left", self.form)

    def cell(self, row: Mapping[str, Any]) -> Cell:
        return Interval(*(row[name] for name in self.needs())) if self.interval else row[self.field]


class ColumnSpread(NamedTuple):
    """Columns side by side for the values of a field, in a frame that has a row for each.

    `field`: whose values are spread; `headings`: over the columns of each value, in their order, or one for all values
    in which "{}" is the value; `columns`: of each value, below its heading.
    """

    field: str
    headings: Mapping[Any, tuple[str, ...]] | tuple[str, ...]
    columns: tuple[Field, ...]

    def heads(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[Any, tuple[str, ...]]:
        """The headings of each value."""
        if isinstance(self.headings, tuple):
            return {row[self.field]: tuple(part.format(row[self.field]) for part in self.headings) for row in rows}
        return self.headings


def columns(text: str) -> tuple[Field, ...]:
    """The columns of a text.

    Raises:
        ValueError: it does not follow the grammar.
    """
    read = []
    for part in _COMMA.split(text):
        match = _FIELD.fullmatch(part.strip())
        if match is None or (match["form"] and not _FORM.fullmatch(match["form"])):
            raise ValueError(f"'{part.strip()}' is not a column: write HEADING=FIELD, then :FORMAT or ~FORMAT")
        heading = match["heading"] or match["field"].replace("_", " ")
        read.append(Field((heading,), match["field"], match["form"] or "", match["sign"] == "~"))
    return tuple(read)


def heads(text: str) -> tuple[Column, ...]:
    """The columns of a table whose rows are cells already, by the same short text.

    There is no field, so a heading needs no `=`. Headings over it stand before it: `p|raw:.2g, p|corrected:.2g`. A `:`
    without a format moves words to the right.

    Raises:
        ValueError: a format that is none.
    """
    return tuple(_head(part.strip()) for part in _COMMA.split(text))


def _head(text: str) -> Column:
    named, sign, form = text.partition(":")
    heading, raw, _ = named.partition("=")
    *above, title = (heading if raw else heading.replace("_", " ")).split("|")
    if form and not _FORM.fullmatch(form):
        raise ValueError(f"'{text}' is not a column: write HEADING, then :FORMAT")
    return Column(title, tuple(above), "right" if sign else "left", form)


@dataclass(frozen=True)
class View:
    """A table over a frame.

    Args:
        title: the caption; names of facts stand in braces.
        columns: made of a text by `columns`, or fields.
        notes: sentences below the table; names of facts stand in braces.
        section: the section of the page; by default the name.
        place: where it is shown.
        where: only rows with these values.
        spread: columns for the values of a field; rows with the same values in `columns` become one.
        ruled: a field; where its value changes there is a line.
        by: a field of many values, of which the page shows the first ones only.
    """

    name: str
    frame: str
    title: str
    columns: tuple[Field, ...]
    notes: tuple[str, ...] = ()
    section: str = ""
    place: Place = "everywhere"
    where: Mapping[str, Any] | None = None
    spread: ColumnSpread | None = None
    ruled: str = ""
    by: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "section", self.section or self.name)

    def table(self, frames: Mapping[str, pl.DataFrame], facts: Mapping[str, Any]) -> Table:
        """The table; without rows where the frame is absent.

        Raises:
            KeyError: the frame has no such field, or there is no such fact.
        """
        rows = frames[self.frame].rows(named=True) if self.frame in frames else []
        rows = [row for row in rows if all(row[name] == value for name, value in (self.where or {}).items())]
        shown, cells = self._cells(rows)
        for text in (self.title, *self.notes):
            lacking = [name for _, name, _, _ in Formatter().parse(text) if name and name not in facts]
            if lacking:
                raise KeyError(f"view '{self.name}' names the fact '{lacking[0]}', which is not among {sorted(facts)}")
        keys = [row[self.ruled] for row in rows] if self.ruled else []
        return Table(
            self.title.format_map(facts),
            tuple(replace(column, title=column.title.format_map(facts)) for column in shown),
            tuple(cells),
            notes=tuple(note.format_map(facts) for note in self.notes),
            rules=group_starts(keys),
        )

    def _cells(self, rows: list[dict[str, Any]]) -> tuple[list[Column], list[tuple[Cell, ...]]]:
        shown = [field.column() for field in self.columns]
        if self.spread is None:
            return shown, [tuple(field.cell(row) for field in self.columns) for row in rows]
        spread, heads, groups = (
            self.spread,
            self.spread.heads(rows),
            dict[tuple[Cell, ...], dict[Any, dict[str, Any]]](),
        )
        for row in rows:
            groups.setdefault(tuple(field.cell(row) for field in self.columns), {})[row[spread.field]] = row
        for heading in heads.values():
            shown += [field._replace(heading=(*heading, *field.heading)).column() for field in spread.columns]
        cells = [
            key + tuple(f.cell(found[v]) if v in found else None for v in heads for f in spread.columns)
            for key, found in groups.items()
        ]
        return shown, cells


def tables(
    views: Iterable[View | tuple[str, Table]], frames: Mapping[str, pl.DataFrame], facts: Mapping[str, Any]
) -> Iterator[tuple[str, Table]]:
    """The tables of the views by name; those without rows are left out."""
    for view in views:
        name, table = (view.name, view.table(frames, facts)) if isinstance(view, View) else view
        if table.rows:
            yield name, table

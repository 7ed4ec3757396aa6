"""The figures that a track's text states, and whether they follow from its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.audits.track.analysis import SUBTASKS, Analysis
from truerank.errors import InputError, OptionError
from truerank.reports.tables import Column, Table
from truerank.sources import compressed, formats, grammar
from truerank.sources.rows import rows

_NAMES: Final = ("statement", "name", "key")
_VALUES: Final = ("value", "stated")


class Statement(NamedTuple):
    """One figure that follows from the runs.

    `name` is what a table of stated figures calls it; `unit` is "percent", "runs", "groups" or "topics"; `stated` is
    the figure that a text gives for it, as written there, "" for none.
    """

    name: str
    value: float
    unit: str
    stated: str = ""

    @property
    def shown(self) -> str:
        """The value as people read it: percentages to two digits, counts as they are."""
        return f"{self.value:.2f}" if self.unit == "percent" else f"{self.value:,.0f}"

    @property
    def difference(self) -> float | None:
        """By how much the value is above the stated figure; None where none is stated."""
        return self.value - float(self.stated) if self.stated else None


def statements(analysis: Analysis, stated: Mapping[str, str] | None = None) -> tuple[Statement, ...]:
    """The figures of a track's text, beside those that are stated."""
    found = [*_percentages(analysis), *_counts(analysis)]
    names = [one.name for one in found]
    for name in stated or {}:
        if name not in names:
            raise OptionError("stated", f"no statement is called '{name}'", f"one of: {'; '.join(names)}")
    return tuple(one._replace(stated=(stated or {}).get(one.name, "")) for one in found)


def agrees(statement: Statement) -> bool | None:
    """Whether the value, rounded half up to the digits of the stated figure, is that figure; None for none stated."""
    if not statement.stated:
        return None
    figure = Decimal(statement.stated)
    # Six digits first: what a division adds behind them must not push a half up or down.
    value = Decimal(f"{statement.value:.6f}")
    return value.quantize(Decimal(1).scaleb(int(figure.as_tuple().exponent)), ROUND_HALF_UP) == figure


def read_stated(path: str | Path) -> dict[str, str]:
    """Reads figures that a text states, as they are written: a table with the columns `statement` and `value`."""
    spec = grammar.parse(str(path))
    form = formats.detect(compressed.checked_file(spec.path), spec.format)
    found: dict[str, str] = {}
    for row in rows(spec.path, "csv" if form == "lines" else form):
        values = {str(name).strip().lower(): value for name, value in row.values.items()}
        name, value = (_cell(values, names) for names in (_NAMES, _VALUES))
        if name is None or value is None:
            raise InputError("no statement or no value", "give columns statement, value", where=path, line=row.line)
        try:
            Decimal(value)
        except InvalidOperation as error:
            raise InputError(f"'{value}' is no number", "write it as 29.4", where=path, line=row.line) from error
        found[name] = value
    return found


def statements_table(found: Sequence[Statement]) -> Table:
    """The figures; with those stated and the differences where there are any."""
    compared = any(one.stated for one in found)
    columns = [Column("statement"), Column("value", align="right"), Column("unit")]
    if compared:
        columns += [
            Column("stated", align="right"),
            Column("difference", align="right", format="+.2f"),
            Column("agrees"),
        ]
    rows = []
    for one in found:
        verdict = {None: None, True: "yes", False: "no"}[agrees(one)]
        rows.append(
            (one.name, one.shown, one.unit, *((one.stated or None, one.difference, verdict) if compared else ()))
        )
    notes = ("Agrees: the value, rounded to the digits of the stated figure, is that figure.",) if compared else ()
    return Table("What follows from the runs.", tuple(columns), tuple(rows), notes=notes)


def _percentages(analysis: Analysis) -> Iterator[Statement]:
    for one in analysis.best:
        if one.gain is not None:
            yield Statement(f"best {one.category} over best {analysis.baseline}", one.gain, "percent")
    for gap in analysis.gaps:
        if gap.gain is not None and gap.measure == analysis.scores.main:
            yield Statement("best fullrank over best rerank", gap.gain, "percent")
    if analysis.candidates is not None and analysis.candidates.gain is not None:
        yield Statement("best NCG over the candidates", analysis.candidates.gain, "percent")
    for duel in analysis.duels:
        name = f"topics that {duel.first.category} wins over {duel.second.category}"
        yield Statement(name, float(duel.wins), "topics")


def _counts(analysis: Analysis) -> Iterator[Statement]:
    infos = analysis.scores.runs
    groups = {run.group for run in infos if run.group}
    if groups:
        yield Statement("groups", float(len(groups)), "groups")
    yield Statement("runs", float(len(infos)), "runs")
    for category in analysis.categories:
        yield Statement(f"runs {category}", float(sum(run.category == category for run in infos)), "runs")
    for subtask in SUBTASKS:
        if any(run.subtask for run in infos):
            yield Statement(f"runs {subtask}", float(sum(run.subtask == subtask for run in infos)), "runs")


def _cell(values: Mapping[str, Any], names: Sequence[str]) -> str | None:
    for name in names:
        if values.get(name) is not None and str(values[name]).strip():
            return str(values[name]).strip()
    return None

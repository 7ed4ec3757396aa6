"""Mean scores of systems, as tables of a track have them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import ir_measures
import numpy as np

from truerank.arrays import Floats
from truerank.errors import InputError
from truerank.sources import grammar
from truerank.sources.rows import Row
from truerank.sources.run_tables import (
    DESCRIBING,
    NOT_STATED,
    RowFilter,
    RunInfo,
    cell_text,
    info_of,
    keyed,
    normal_name,
    run_of,
    table_rows,
)

_MEASURE: Final = ("measure", "metric")
_VALUE: Final = ("value", "score", "mean")
_SPARSE: Final = re.compile(r"M?RR(@\d+)? ?\((\w+)\)")
#: Measures that ir_measures does not know.
_OURS: Final = re.compile(r"(NCG@\d+|MFR|HMFR|RR_MSMARCO@\d+)(\(.*\))?")


@dataclass(frozen=True, eq=False)
class MeansTable:
    """Mean scores of systems as one table gives them.

    Attributes:
        runs: their names in the order of the table.
        measures: as `measure_name` spells them.
        values: shape (runs, measures), NaN where the cell is empty.
        infos: what the same table says about its runs.
    """

    name: str
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    values: Floats
    infos: Mapping[str, RunInfo]


def read_means(path: str | Path, selection: RowFilter) -> MeansTable:
    """Reads mean scores: one row per run with a column per measure, or one row per run and measure.

    Columns of the first form that are no measure and no description of the run are passed over. Measures may be
    spelled as by trec_eval (`ndcg_cut_10`), ir_measures (`nDCG@10`) or papers (`NDCG@10`, `MRR (MS)`).
    """
    taken: list[_Taken] = []
    long = False
    for number, row in enumerate(table_rows(path)):
        values = keyed(row)
        run = run_of(values, path, row.line)
        long = long or (number == 0 and all(any(name in values for name in names) for names in (_MEASURE, _VALUE)))
        if selection.holds(values) if long else selection.note(run, values):
            taken.append(_Taken(row, values, run))
    if not taken:
        if selection.conditions:
            raise InputError("no row is left", "check `where`", where=path)
        raise InputError("no row in it", "give a table with a header and one row per run", where=path)
    cells: dict[tuple[str, str], float] = {}
    infos: dict[str, RunInfo] = {}
    for (row, values, run), measure, column, value in (_long_cells if long else _wide_cells)(path, taken):
        if (run, measure) in cells:
            fault, remedy = f"the {measure} of the run '{run}' appears twice", "remove one row, or choose with `where`"
            raise InputError(fault, remedy, where=path, line=row.line)
        cells[run, measure] = _number(value, column, path, row.line)
        if run not in infos:
            infos[run] = info_of(run, values, path, row.line)
    measures = tuple(dict.fromkeys(measure for _, measure in cells))
    means = np.array([[cells.get((run, measure), math.nan) for measure in measures] for run in infos])
    return MeansTable(grammar.parse(str(path)).name, tuple(infos), measures, means, infos)


@functools.cache
def measure_name(text: str) -> str | None:
    """The usual spelling of a measure, or None if this is none.

    `ndcg_cut_10` and `NDCG@10` become `nDCG@10`, `recip_rank` and `MRR` become `RR`, `map` becomes `AP`; a reciprocal
    rank with a word in brackets, as `MRR (MS)`, is one against other judgments and becomes `RR (MS)`.
    """
    name = text.strip()
    if match := _SPARSE.fullmatch(name):
        return f"RR{match[1] or ''} ({match[2]})"
    if _OURS.fullmatch(name):
        return name
    for parse in (_one_trec_measure, ir_measures.parse_measure):
        try:
            return str(parse(name))
        except (ValueError, NameError, KeyError, SyntaxError, TypeError, AttributeError):
            continue
    return None


class _Taken(NamedTuple):
    """A row of a table that the filter keeps, its values by column, and the run it names."""

    row: Row
    values: dict[str, Any]
    run: str


#: A row, the measure of one of its scores, the column of that, and what stands there.
_Cell = tuple[_Taken, str, str, Any]


def _one_trec_measure(name: str) -> Any:
    found = ir_measures.parse_trec_measure(name)
    if len(found) != 1:
        raise ValueError(name)
    return found[0]


def _wide_cells(path: str | Path, taken: Sequence[_Taken]) -> Iterator[_Cell]:
    columns = _measure_columns([one.row for one in taken])
    if not columns:
        remedy = "name columns by measures, such as nDCG@10"
        raise InputError("no column of scores", remedy, where=path, line=taken[0].row.line)
    for one in taken:
        yield from ((one, measure, column, one.row.values.get(column)) for measure, column in columns.items())


def _measure_columns(found: Sequence[Row]) -> dict[str, str]:
    """The columns that hold scores, by measure: known measures, and other columns that hold nothing but numbers."""
    columns: dict[str, str] = {}
    for column in found[0].values:
        if normal_name(column) in DESCRIBING:
            continue
        name = measure_name(column)
        cells = [cell_text(row.values.get(column)) for row in found]
        if name is None and any(cells) and all(_is_number(cell) for cell in cells):
            name = column.strip()
        if name is not None:
            columns.setdefault(name, column)
    return columns


def _long_cells(_: str | Path, taken: Sequence[_Taken]) -> Iterator[_Cell]:
    measure_column, value_column = (
        next(name for name in names if name in taken[0].values) for names in (_MEASURE, _VALUE)
    )
    for one in taken:
        given = cell_text(one.values.get(measure_column))
        yield one, measure_name(given) or given, value_column, one.values.get(value_column)


def _number(value: Any, column: str, path: str | Path, line: int) -> float:
    text = cell_text(value)
    if text.lower() in NOT_STATED or text == "nan":
        return math.nan
    if not _is_number(text):
        raise InputError(f"'{text}' in the column '{column}' is not a number", "correct it", where=path, line=line)
    return float(text)


def _is_number(text: str) -> bool:
    try:
        return text.lower() in NOT_STATED or math.isfinite(float(text))
    except ValueError:
        return False

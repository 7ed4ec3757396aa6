"""What a track keeps: who made which run and how, mean scores of systems, and the files of its collection."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import ir_measures
import numpy as np

from truerank.arrays import Floats
from truerank.errors import InputError, OptionError
from truerank.sources import compressed, formats, grammar, irds, open_queries, read_qrels_frame
from truerank.sources.documents import open_documents
from truerank.sources.rows import Row, rows

_RUN: Final = ("run", "run_id", "runid", "run_name", "run_tag", "runtag", "system", "tag", "name")
_GROUP: Final = ("group", "participant", "team", "organization", "organisation", "affiliation", "org", "pid")
_SUBTASK: Final = ("subtask", "sub_task", "subtask_type", "setting")
_CATEGORY: Final = ("category", "neural", "model_type", "run_type", "approach", "family")
_MEASURE: Final = ("measure", "metric")
_VALUE: Final = ("value", "score", "mean")
_DESCRIBING: Final = frozenset((*_RUN, *_GROUP, *_SUBTASK, *_CATEGORY))

_FULLRANK: Final = frozenset(("fullrank", "full", "fullranking", "endtoend", "e2e", "fullretrieval"))
_RERANK: Final = frozenset(("rerank", "reranking", "reranker"))
_SPARSE: Final = re.compile(r"M?RR(@\d+)? ?\((\w+)\)")
_NOT_STATED: Final = frozenset(("", "-", "–", "n/a", "na", "none", "null", "unknown"))
#: Measures that ir_measures does not know.
_OURS: Final = re.compile(r"(NCG@\d+|MFR|HMFR|RR_MSMARCO@\d+)(\(.*\))?")


class RunInfo(NamedTuple):
    """Who made a run and how; an empty text where the tables do not say.

    `subtask` is "fullrank" or "rerank"; `category` is the track's own word, such as trad, nn or nnlm.
    """

    run: str
    group: str = ""
    subtask: str = ""
    category: str = ""


@dataclass(frozen=True)
class RowFilter:
    """Which rows of the tables count: those that hold these values in the columns of these names.

    A table without such a column is not affected. What was left out, and which columns were found, is remembered so
    that a condition that applies nowhere can be refused.

    Attributes:
        conditions: value by name of the column.
        found: the conditions that some table had a column for.
        kept: the runs whose row counts, of tables with one row per run.
        left_out: the runs whose row does not.
    """

    conditions: Mapping[str, str] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)

    @property
    def excluded(self) -> set[str]:
        """The runs that no table keeps."""
        return self.left_out - self.kept

    def note(self, run: str, values: Mapping[str, Any]) -> bool:
        """The same as `holds` for the one row of a run, remembered."""
        holds = self.holds(values)
        (self.kept if holds else self.left_out).add(run)
        return holds

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether a row, with its columns' names in their normal form, counts."""
        there = {name: wanted for name, wanted in self.conditions.items() if _key(name) in values}
        self.found.update(there)
        return all(_text(values[_key(name)]) == wanted for name, wanted in there.items())

    def check(self) -> None:
        """Refuses a condition on a column that no table has."""
        for name in self.conditions:
            if name not in self.found:
                raise OptionError("where", f"no table has a column '{name}'", "name a column of the tables")


@dataclass(frozen=True)
class Metadata:
    """What tables say about runs.

    Attributes:
        runs: by name, in the order of the tables.
    """

    runs: Mapping[str, RunInfo] = field(default_factory=dict)

    def of(self, run: str) -> RunInfo:
        """What is known about a run, perhaps nothing but its name."""
        return self.runs.get(run, RunInfo(run))

    def completed(self, read: Mapping[str, RunInfo], path: str | Path) -> Metadata:
        """Completed by what a later table says of runs.

        Raises:
            InputError: that table describes a run otherwise.
        """
        runs = dict(self.runs)
        for run, new in read.items():
            old = self.of(run)
            for part, before, now in zip(RunInfo._fields, old, new, strict=True):
                if before and now and before != now:
                    fault = f"the {part} of the run '{run}' is '{now}' here and '{before}' in an earlier table"
                    raise InputError(fault, "correct one of them", where=path)
            runs[run] = RunInfo(*(now or before for before, now in zip(old, new, strict=True)))
        return Metadata(runs)

    def without(self, runs: Collection[str]) -> Metadata:
        """The same without these runs."""
        return Metadata({name: info for name, info in self.runs.items() if name not in runs})


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


def read_metadata(paths: Sequence[str | Path], selection: RowFilter) -> Metadata:
    """Reads tables with one row per run: CSV, TSV, JSONL or Parquet, columns found by their usual names.

    Several tables complete one another.
    """
    found = Metadata()
    for path in paths:
        read: dict[str, RunInfo] = {}
        for row in _table(path):
            values = _keyed(row)
            run = _run(values, path, row.line)
            if not selection.note(run, values):
                continue
            if run in read:
                raise InputError(f"the run '{run}' appears twice", "remove one row", where=path, line=row.line)
            read[run] = _info(run, values, path, row.line)
        found = found.completed(read, path)
    return found


def read_means(path: str | Path, selection: RowFilter) -> MeansTable:
    """Reads mean scores: one row per run with a column per measure, or one row per run and measure.

    Columns of the first form that are no measure and no description of the run are passed over. Measures may be
    spelled as by trec_eval (`ndcg_cut_10`), ir_measures (`nDCG@10`) or papers (`NDCG@10`, `MRR (MS)`).
    """
    taken: list[_Taken] = []
    long = False
    for number, row in enumerate(_table(path)):
        values = _keyed(row)
        run = _run(values, path, row.line)
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
            infos[run] = _info(run, values, path, row.line)
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


def _table(path: str | Path) -> Iterator[Row]:
    spec = grammar.parse(str(path))
    if spec.scheme != "file":
        raise InputError("tables are read from files", "give a path", where=spec.spec)
    form = formats.detect(compressed.checked_file(spec.path), spec.format)
    # A table of names and numbers has no column of texts by which it could be told.
    form = "csv" if form == "lines" else form
    if form not in ("csv", "tsv", "jsonl", "json", "parquet"):
        fault = f"tables are not read from {form} files"
        raise InputError(fault, "give CSV, TSV, JSONL or Parquet", where=spec.location)
    return rows(spec.path, form)


def _keyed(row: Row) -> dict[str, Any]:
    return {_key(name): value for name, value in row.values.items()}


def _key(name: str) -> str:
    return re.sub(r"[\s\-]+", "_", str(name).strip()).lower()


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _run(values: Mapping[str, Any], path: str | Path, line: int) -> str:
    column = next((name for name in _RUN if name in values), None)
    if column is None:
        there = ", ".join(map(repr, list(values)[:12])) or "none"
        raise InputError("no column of run names", f"there are {there}; name one 'run'", where=path, line=line)
    run = _text(values[column])
    if not run:
        raise InputError("a row without the name of a run", "name the run, or remove the row", where=path, line=line)
    return run


def _info(run: str, values: Mapping[str, Any], path: str | Path, line: int) -> RunInfo:
    def stated(names: Sequence[str]) -> str:
        given = next((_text(values[name]) for name in names if name in values), "")
        return "" if given.lower() in _NOT_STATED else given

    subtask = stated(_SUBTASK)
    plain = re.sub(r"[\s_\-]+", "", subtask.lower())
    if plain and plain not in _FULLRANK | _RERANK:
        raise InputError(f"the subtask '{subtask}' is not known", "write fullrank or rerank", where=path, line=line)
    known = "" if not plain else "fullrank" if plain in _FULLRANK else "rerank"
    return RunInfo(run, stated(_GROUP), known, stated(_CATEGORY))


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
        if _key(column) in _DESCRIBING:
            continue
        name = measure_name(column)
        cells = [_text(row.values.get(column)) for row in found]
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
        given = _text(one.values.get(measure_column))
        yield one, measure_name(given) or given, value_column, one.values.get(value_column)


def _number(value: Any, column: str, path: str | Path, line: int) -> float:
    text = _text(value)
    if text.lower() in _NOT_STATED or text == "nan":
        return math.nan
    if not _is_number(text):
        raise InputError(f"'{text}' in the column '{column}' is not a number", "correct it", where=path, line=line)
    return float(text)


def _is_number(text: str) -> bool:
    try:
        return text.lower() in _NOT_STATED or math.isfinite(float(text))
    except ValueError:
        return False


Kind = Literal["collection", "queries", "qrels"]


class FileStatistics(NamedTuple):
    """One file or data set: what it is, where it lies, its records and its size; None where the size is not known."""

    description: str
    location: str
    kind: Kind
    records: int
    size: int | None


def file_statistics(spec: str, kind: Kind, description: str = "") -> FileStatistics:
    """Counts the records of a source.

    Files are streamed by the readers that open them elsewhere; a folder's size is the sum of its files. What is on
    ir_datasets has no size of its own.

    Args:
        spec: a path, or an ir_datasets id with `irds:`.
        kind: what it holds.
        description: what to call it; by default its kind.

    Returns:
        The counts.

    Raises:
        InputError: not readable, of no known format, or on Hugging Face.
    """
    parsed = grammar.parse(spec)
    if parsed.scheme == "hf":
        raise InputError("files on Hugging Face are not counted", "give a file or an irds: id", where=spec)
    irds_id = parsed.location if parsed.scheme == "irds" else None
    size = sum(path.stat().st_size for path in _files(parsed.path, kind)) if irds_id is None else None
    return FileStatistics(description or kind.capitalize(), spec, kind, _records(spec, kind, irds_id), size)


def _records(spec: str, kind: Kind, irds_id: str | None) -> int:
    if kind == "qrels":
        return read_qrels_frame(spec).height
    if kind == "collection" and irds_id is not None:
        return irds.count_documents(irds_id)
    source = open_queries(spec) if kind == "queries" else open_documents(spec, keep_empty=True)
    for _ in source.batches():
        pass
    return source.counts.read


def _files(path: Path, kind: Kind) -> Sequence[Path]:
    if not compressed.is_folder(path):
        return [compressed.checked_file(path)]
    # Of a BEIR folder only the part that is counted; of any other folder all files.
    part = {"collection": "corpus.jsonl*", "queries": "queries.jsonl*", "qrels": "qrels/test.tsv*"}[kind]
    found = sorted(path.glob(part)) or sorted(path.rglob("*"))
    files = [file for file in found if file.is_file() and not file.name.startswith(".")]
    if not files:
        raise InputError("an empty folder", "give the folder or file that holds them", where=path)
    return files

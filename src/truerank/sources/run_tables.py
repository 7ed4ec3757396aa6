"""Tables of runs: who made which run and how."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError, OptionError
from truerank.sources import compressed, formats, grammar
from truerank.sources.rows import Row, rows

_RUN: Final = ("run", "run_id", "runid", "run_name", "run_tag", "runtag", "system", "tag", "name")
_GROUP: Final = ("group", "participant", "team", "organization", "organisation", "affiliation", "org", "pid")
_SUBTASK: Final = ("subtask", "sub_task", "subtask_type", "setting")
_CATEGORY: Final = ("category", "neural", "model_type", "run_type", "approach", "family")
DESCRIBING: Final = frozenset((*_RUN, *_GROUP, *_SUBTASK, *_CATEGORY))

_FULLRANK: Final = frozenset(("fullrank", "full", "fullranking", "endtoend", "e2e", "fullretrieval"))
_RERANK: Final = frozenset(("rerank", "reranking", "reranker"))
NOT_STATED: Final = frozenset(("", "-", "–", "n/a", "na", "none", "null", "unknown"))


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
        there = {name: wanted for name, wanted in self.conditions.items() if normal_name(name) in values}
        self.found.update(there)
        return all(cell_text(values[normal_name(name)]) == wanted for name, wanted in there.items())

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


def read_metadata(paths: Sequence[str | Path], selection: RowFilter) -> Metadata:
    """Reads tables with one row per run: CSV, TSV, JSONL or Parquet, columns found by their usual names.

    Several tables complete one another.
    """
    found = Metadata()
    for path in paths:
        read: dict[str, RunInfo] = {}
        for row in table_rows(path):
            values = keyed(row)
            run = run_of(values, path, row.line)
            if not selection.note(run, values):
                continue
            if run in read:
                raise InputError(f"the run '{run}' appears twice", "remove one row", where=path, line=row.line)
            read[run] = info_of(run, values, path, row.line)
        found = found.completed(read, path)
    return found


def table_rows(path: str | Path) -> Iterator[Row]:
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


def keyed(row: Row) -> dict[str, Any]:
    return {normal_name(name): value for name, value in row.values.items()}


def normal_name(name: str) -> str:
    return re.sub(r"[\s\-]+", "_", str(name).strip()).lower()


def cell_text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def run_of(values: Mapping[str, Any], path: str | Path, line: int) -> str:
    column = next((name for name in _RUN if name in values), None)
    if column is None:
        there = ", ".join(map(repr, list(values)[:12])) or "none"
        raise InputError("no column of run names", f"there are {there}; name one 'run'", where=path, line=line)
    run = cell_text(values[column])
    if not run:
        raise InputError("a row without the name of a run", "name the run, or remove the row", where=path, line=line)
    return run


def info_of(run: str, values: Mapping[str, Any], path: str | Path, line: int) -> RunInfo:
    def stated(names: Sequence[str]) -> str:
        given = next((cell_text(values[name]) for name in names if name in values), "")
        return "" if given.lower() in NOT_STATED else given

    subtask = stated(_SUBTASK)
    plain = re.sub(r"[\s_\-]+", "", subtask.lower())
    if plain and plain not in _FULLRANK | _RERANK:
        raise InputError(f"the subtask '{subtask}' is not known", "write fullrank or rerank", where=path, line=line)
    known = "" if not plain else "fullrank" if plain in _FULLRANK else "rerank"
    return RunInfo(run, stated(_GROUP), known, stated(_CATEGORY))

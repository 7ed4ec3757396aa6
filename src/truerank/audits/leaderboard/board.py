"""Scores of systems on tasks as people publish them: folders of MTEB results, tables in three orientations."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Floats
from truerank.errors import InputError
from truerank.sources.golden_cells import is_missing, is_whole, number_of
from truerank.sources.golden_roles import named_columns
from truerank.sources.golden_rows import GoldenRows, first_names, is_empty, opened_rows
from truerank.sources.golden_scores import refuse_marks, with_texts
from truerank.sources.golden_words import is_measure, lower_is_better, words_of
from truerank.sources.mteb_results import CELLS, one_score_each, read_mteb_results
from truerank.sources.recognition import Reading, several_paths
from truerank.text.printable import counted

_SYSTEM: Final = (
    "system model model_name model_id system_id system_name run run_id method name config configuration retriever "
    "pipeline experiment variant"
).split()
_TASK: Final = ("task", "task_name", "task_id", "dataset", "data_set", "benchmark", "collection")
_SCORE: Final = ("score", "value", "main_score", "ndcg@10", "ndcg_at_10")
#: What columns can be named, and what two of these roles are here.
_ROLES: Final = ("system", "task", "score", "id", "question", "measure", "repeat")
_NAMED: Final = {"id": "item", "question": "item", "measure": "measure"}
#: Further columns of a table with a row for each score, by what they say.
_ABOUT: Final = {
    "item": ("item", "item_id", "question", "question_id", "query", "query_id", "topic", "topic_id", "id"),
    "measure": ("measure", "metric", "metric_name", "measure_name"),
    "split": ("split",),
    "data_revision": ("data_revision", "dataset_revision", "revision", "data_version", "dataset_version"),
    "tool_version": ("tool_version", "mteb_version", "version"),
    "prompt": ("prompt", "prompt_name", "instruction", "instructions", "template"),
    "type": ("type", "task_type", "category"),
    "model_revision": ("model_revision",),
}
_REPEAT: Final = ("repeat", "repetition", "trial", "seed", "epoch", "iteration")
#: Words of names that are averages of tasks, ranks, or facts about a system, and those that stand beside them there.
_NO_TASK: Final = frozenset(
    "rank mean average avg median overall total parameters parameter params dimensions dimension dims dim size memory "
    "tokens token length context window license licence date year release released updated shot zs latency speed "
    "throughput cost price position place n num count counts chunks ci pp std stdev sd se stderr variance seconds "
    "second secs sec ms duration runtime elapsed time".split()
)
_BESIDE: Final = frozenset(
    "max maximum min embedding model number of no nb usage zero mb gb m b k s low high lower upper bound half width "
    "error questions queries samples items rows docs documents index million millions billion "
    "billions task tasks type types tasktype dataset datasets borda macro micro all active sequence seq vector input "
    "output score scores evaluation training inference open weights url link per query the in".split()
)
#: What tools call the first column of a frame that has no name.
_UNNAMED: Final = ("", "index", "unnamed: 0")
#: A number that may have a comma between thousands.
_THOUSANDS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+|[^,]*")
_KEY: Final = ["system", "task"]


@dataclass(frozen=True, eq=False)
class ScoreBoard:
    """Scores of systems on tasks.

    Attributes:
        cells: columns `CELLS`, one row for each score.
        trained: the data sets that a system says it was trained on, by system; none where it says that there are none.
        types: the type of each task that has one.
        foreign: metadata whose model has another name, by system.
        remarks: what was left out, and why.
        readings: what each file was taken for.
    """

    cells: pl.DataFrame
    trained: Mapping[str, frozenset[str]] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()

    @property
    def main(self) -> pl.DataFrame:
        """The cells of the main measure."""
        return self.cells.filter(pl.col("measure") == "")


class ChosenScores(NamedTuple):
    """One score for each system and task: `means` with columns system, task, score; `items` also with item, of those
    that have any; `others` with measure, by the other measures."""

    means: pl.DataFrame
    items: pl.DataFrame
    others: pl.DataFrame


def read_board(paths: Any, columns: str = "") -> ScoreBoard:
    """Reads folders of MTEB results (`MODEL/REVISION/TASK.json`) and tables of scores, several as one.

    A table has a row for each system and a column for each task, a row for each task and a column for each system, or a
    row for each score with columns for system, task, score, and item where there are several of a task.

    Args:
        paths: folders, files, or frames.
        columns: what columns are, where their names do not say: "system=model,task=data,score=ndcg".
    """
    boards = [_board(path, columns) for path in several_paths(paths)]
    if not boards:
        raise InputError("nothing to read", "give a table of scores, or a folder of MTEB results")
    cells = pl.concat([board.cells for board in boards])
    if len(boards) > 1:
        _refuse_repeated(cells, boards[-1].readings[0].path)
    return ScoreBoard(
        cells,
        {system: own for board in boards for system, own in board.trained.items()},
        {task: kind for board in boards for task, kind in board.types.items()},
        {system: name for board in boards for system, name in board.foreign.items()},
        tuple(remark for board in boards for remark in board.remarks),
        tuple(reading for board in boards for reading in board.readings),
    )


def _board(source: Any, columns: str) -> ScoreBoard:
    if isinstance(source, str | Path) and Path(source).is_dir():
        found = read_mteb_results(Path(source))
        left = f"{len(found.broken):,d} files have no scores that can be read, and are left out"
        broken = (f"{left}: {first_names(found.broken)}.",) if found.broken else ()
        reading = Reading(str(source), "results of MTEB", _counts(found.cells), remarks=broken)
        return ScoreBoard(found.cells, found.trained, foreign=found.foreign, remarks=broken, readings=(reading,))
    table = opened_rows(source)
    roles, cells, remarks = _table(table, named_columns(columns, table, _ROLES))
    types = cells.drop_nulls("type").unique("task", keep="first", maintain_order=True)
    said = "; ".join(f"{role} in {first_names(names, quoted=True)}" for role, names in roles.items())
    reading = Reading(str(table.where), "leaderboard", f"{_counts(cells)}; {said}", remarks=tuple(remarks))
    return ScoreBoard(
        cells, types=dict(types.select("task", "type").iter_rows()), remarks=(*table.remarks, *remarks),
        readings=(reading,),
    )  # fmt: skip


def _counts(cells: pl.DataFrame) -> str:
    main = cells.filter(pl.col("measure") == "")
    return f"{counted(main['system'].n_unique(), 'system')} on {counted(main['task'].n_unique(), 'task')}"


def with_types(board: ScoreBoard, source: Any) -> ScoreBoard:
    """The board with the types of tasks of a table with columns task and type."""
    table = opened_rows(source)
    task, kind = _column(table, _TASK), _column(table, _ABOUT["type"])
    if task is None or kind is None:
        raise table.fault(f"no column of tasks and types: {', '.join(table.names)}", "name columns task and type")
    types = {
        _name(table, row, task, "a task"): _name(table, row, kind, "a type")
        for row in range(len(table.rows))
    }  # fmt: skip
    return replace(board, types={**board.types, **types})


def chosen(cells: pl.DataFrame) -> ChosenScores:
    """One score for each system and task: see `one_score_each`."""
    own = one_score_each(cells)
    main = own.filter(pl.col("measure") == "")
    means = main.group_by(_KEY).agg(pl.col("score").mean()).sort(_KEY)
    others = own.filter(pl.col("measure") != "").group_by(*_KEY, "measure").agg(pl.col("score").mean())
    items = main.filter(pl.col("item").is_not_null()).select(*_KEY, "item", "score")
    return ChosenScores(means, items, others.sort("measure", *_KEY))


_Read = tuple[dict[str, tuple[str, ...]], pl.DataFrame, list[str]]


def _table(table: GoldenRows, named: Mapping[str, tuple[str, ...]]) -> _Read:
    """What columns were taken for, the cells, and remarks; `named` says what somebody named, by role."""
    scores = named.get("score", ())
    taken = {name for names in named.values() for name in names}
    system, task, score = (
        named.get(role, (_column(table, names, taken),))[0]
        for role, names in (("system", _SYSTEM), ("task", _TASK), ("score", _SCORE))
    )
    about = {
        name: column for name, names in _ABOUT.items() if (column := _column(table, names, taken | {task})) is not None
    }
    about |= {_NAMED[role]: names[0] for role, names in named.items() if role in _NAMED}
    if len(scores) < 2 and system and score and (task or "item" in about):
        return _long(table, (system, task, score), about, named.get("repeat", (_column(table, _REPEAT, taken),))[0])
    remarks = list[str]()
    if system is None and task is None and table.names[0].strip().lower() in _UNNAMED:
        system = table.names[0]
        remarks.append("The first column has no name; its rows are taken for systems.")
    if system and task and len(scores) > 1:
        system, task = (system, None) if "system" in named or "task" not in named else (None, task)
    if system and task and (columns := [name for name in _scores(table, system) if name != task]):
        asked = tuple(f"system={system},task={task},score={name}" for name in columns)
        raise table.two_readings(f"scores of '{system}' on '{task}' in {first_names(columns, quoted=True)}", asked)
    if (system is None) == (task is None):
        names_found = ", ".join(table.names)
        what = "a column of systems and one of tasks, and none of scores" if system else "no column of systems or tasks"
        remedy = "name them: --columns system=COLUMN,task=COLUMN,score=COLUMN; or two of them"
        raise table.fault(f"{what}: {names_found}", remedy)
    head = next(name for name in (system, task) if name is not None)
    columns = list(scores) or _scores(table, head)
    kinds = ("system", "task") if task is None else ("task", "system")
    _refuse_groups(table, head, kinds, columns)
    remedy = f"give a column for each {kinds[1]}, or rows with a column of systems, one of tasks and one of scores"
    if len(columns) < 2:
        what = f"one score of each {kinds[0]}, in '{columns[0]}', and no {kinds[1]}" if columns else "no scores"
        raise table.fault(f"fewer than two columns of numbers: {what}", remedy)
    measures = [] if scores else [name for name in columns if is_measure(name)]
    if 2 * len(measures) > len(columns):
        fault = f"{first_names(measures, quoted=True)} are measures of one test, and no {kinds[1]}s"
        also = f"if they are {kinds[1]}s: --columns {kinds[0]}={head},score={'+'.join(columns)}"
        raise table.fault(fault, f"{remedy}; {also}")
    if aside := [name for name in table.names if name != head and name not in columns]:
        remarks.append(f"Not taken for scores: {', '.join(aside)}.")
    remarks += [f"{text[0].upper()}{text[1:]}." for text in with_texts(table, aside)]
    remarks += _remarks(table, columns, None)
    rows, summaries = [], []
    for row, cells in enumerate(table.rows):
        own = _name(table, row, head, "a name")
        if task is not None and _is_no_task(own):
            summaries.append(own)
            continue
        for column in columns:
            if not is_missing(cells.get(column)):
                pair = (own, column) if task is None else (column, own)
                rows.append({"system": pair[0], "task": pair[1], "score": _number(table, row, column)})
    roles = {kinds[0]: (head,), f"{kinds[1]}s": tuple(columns)}
    return roles, _cells(rows, table), [*remarks, *_no_tasks(summaries)]


def _scores(table: GoldenRows, head: str) -> list[str]:
    """The columns of scores: no counts beside shares, and none that is on no scale beside others that are."""
    every = [name for name in table.names if name != head and not _is_no_task(name) and _numeric(table, name)]
    largest = {name: max(_as_number(cell) or 0.0 for cell in table.filled(name)) for name in every}
    whole = {name for name in every if is_whole(table, name)}
    shares = [name for name in every if name not in whole and largest[name] <= 1]
    limit = 1 if shares and len(shares) >= len(every) - len(whole) else 100
    return [name for name in every if name not in whole or largest[name] <= limit]


def _refuse_groups(table: GoldenRows, head: str, kinds: tuple[str, str], columns: Sequence[str]) -> None:
    """Asks about a table with several rows of a system, or of a task, that a further column tells apart."""
    own = table.cells(head)
    rest = [name for name in table.names if name not in (head, *columns) and not _numeric(table, name)]
    for name in rest if len(set(own)) < len(own) else ():
        if len({*zip(own, map(str, table.cells(name)), strict=True)}) == len(own):
            choices = tuple(f"{kinds[1]}={name},{kinds[0]}={head},score={column}" for column in columns)
            raise table.two_readings(f"several rows of each {kinds[0]}, by '{name}': {kinds[1]}s, or copies", choices)


def _long(table: GoldenRows, names: tuple[str, str | None, str], about: Mapping[str, str], repeat: str | None) -> _Read:
    """A row for each score."""
    system, task, score = names
    remarks = list[str]()
    single = Path(table.name).stem or "the task"
    rows: list[dict[str, Any]] = []
    summaries: list[str] = []
    for row, cells in enumerate(table.rows):
        if is_missing(cells[score]):
            continue
        own: dict[str, Any] = {
            "system": _name(table, row, system, "a system"),
            "task": single if task is None else _name(table, row, task, "a task"),
            "score": _number(table, row, score),
        }
        if task is not None and _is_no_task(own["task"]):
            summaries.append(own["task"])
            continue
        own |= {name: None if is_empty(cells.get(column)) else str(cells[column]) for name, column in about.items()}
        rows.append(own)
    measures = list(dict.fromkeys(str(own.get("measure") or "") for own in rows))
    for own in rows:
        own["measure"] = "" if (named := own.get("measure") or "") in ("", measures[0]) else named
    remarks += [*_no_tasks(summaries), *_remarks(table, [score], system)]
    if len(measures) > 1:
        remarks.append(f"The order is by {measures[0]}, the first measure of the table.")
    if repeat is not None and len({cells.get(repeat) for cells in table.rows}) > 1:
        remarks.append(f"Scores are means over the values of {repeat}.")
        frame = pl.DataFrame(rows, infer_schema_length=None)
        key = [name for name in frame.columns if name != "score"]
        rows = frame.group_by(key, maintain_order=True).agg(pl.col("score").mean()).to_dicts()
    roles = {"system": (system,), "task": () if task is None else (task,), "score": (score,)}
    roles |= {name: (column,) for name, column in about.items()}
    return {role: own for role, own in roles.items() if own}, _cells(rows, table), remarks


def _cells(rows: list[dict[str, Any]], table: GoldenRows) -> pl.DataFrame:
    frame = pl.DataFrame([{"measure": "", **row} for row in rows], schema=CELLS)
    _refuse_repeated(frame, table.where)
    return frame


def _refuse_repeated(cells: pl.DataFrame, where: str | Path) -> None:
    key = [*_KEY, "item", "measure", "split", "data_revision", "model_revision"]
    if len(repeated := cells.filter(pl.struct(key).is_duplicated())):
        fault = f"several scores for {' of '.join(repeated.select('task', 'system').row(0))}"
        raise InputError(fault, "keep one, or name the items in a column 'item'", where=where)


def _column(table: GoldenRows, names: Iterable[str], taken: Collection[str | None] = ()) -> str | None:
    known = {name.lower().strip(): name for name in table.names if name not in taken}
    return next((known[name] for name in names if name in known), None)


def _is_no_task(name: str) -> bool:
    """Whether a name says nothing but that it is an average, a rank, or a fact about a system: "Max Tokens"."""
    words = set(words_of(name))
    if words_of(name)[:1] in (("avg",), ("average",)) or (lower_is_better(name) and "rank" not in words):
        return True
    return bool(words & _NO_TASK) and all(word in _NO_TASK | _BESIDE or word.isdecimal() for word in words)


def _no_tasks(names: Sequence[str]) -> list[str]:
    return [f"Not taken for tasks: {', '.join(dict.fromkeys(names))}."] if names else []


def _remarks(table: GoldenRows, columns: Sequence[str], system: str | None) -> Iterator[str]:
    """What cells without numbers, and numbers that may be marks of failures, were taken for."""
    if missing := [str(cell) for name in columns for cell in table.filled(name) if is_missing(cell)]:
        yield f"Read as missing scores: {len(missing):,d} of the cells, such as '{missing[0]}'."
    if comma := [name for name in columns if any("," in str(cell) for cell in table.filled(name))]:
        yield f"Read as decimal commas: those in {first_names(comma)}."
    yield from (f"{text[0].upper()}{text[1:]}." for text in refuse_marks(table, columns, system))


def _numeric(table: GoldenRows, name: str) -> bool:
    numbers = [cell for cell in table.filled(name) if not is_missing(cell)]
    texts = [str(cell) for cell in numbers if "," in str(cell)]
    # 1,300 may be a thousand and more.
    plain = not any("." in str(cell) for cell in numbers) and not all(_THOUSANDS.fullmatch(text) for text in texts)
    return bool(numbers) and all(_as_number(cell) is not None for cell in numbers) and (plain or not texts)


def _as_number(cell: Any) -> float | None:
    value = number_of(cell) if any(map(str.isdigit, str(cell))) else None  # "yes" is no score
    return value if value is not None and np.isfinite(value) else None


def _number(table: GoldenRows, row: int, name: str) -> float:
    value = _as_number(table.rows[row][name])
    if value is None:
        raise table.fault(f"'{str(table.rows[row][name])[:40]}' in {name} is not a score", "write a number", row)
    return value


def _name(table: GoldenRows, row: int, column: str, what: str) -> str:
    if is_empty(cell := table.rows[row].get(column)):
        raise table.fault(f"a row without {what} in {column}", "name it", row)
    return str(cell).strip()


def block(means: pl.DataFrame) -> tuple[list[str], list[str], Floats]:
    """The systems and tasks of a block without holes, and their scores, shape (tasks, systems).

    Of system and task with the most holes, the one with the larger share of them goes, until none is left.

    Args:
        means: columns system, task, score.
    """
    wide = means.pivot("system", index="task", values="score", sort_columns=True).sort("task")
    tasks, systems = wide["task"].to_list(), wide.columns[1:]
    scores = wide.select(systems).cast(pl.Float64).to_numpy().astype(np.float64)
    held = ~np.isnan(scores)
    rows, columns = np.ones(len(tasks), np.bool_), np.ones(len(systems), np.bool_)
    while not held[np.ix_(rows, columns)].all():
        by_task = np.where(rows, (~held[:, columns]).mean(axis=1), -1.0)
        by_system = np.where(columns, (~held[rows]).mean(axis=0), -1.0)
        # Of equal shares a system goes: every system that stays is compared on all tasks. Two have to stay.
        if by_task.max() > by_system.max() or columns.sum() == 2:
            rows[int(np.argmax(by_task))] = False
        else:
            columns[int(np.argmax(by_system))] = False
    kept = [task for task, keep in zip(tasks, rows, strict=True) if keep]
    return [one for one, keep in zip(systems, columns, strict=True) if keep], kept, scores[np.ix_(rows, columns)]

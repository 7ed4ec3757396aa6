"""Scores of systems on tasks as people publish them: folders of MTEB results, tables in three orientations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.arrays import Floats
from truerank.errors import InputError
from truerank.loading import json_file
from truerank.sources.golden_columns import GoldenRows, is_empty, opened_rows

#: A score, and how it was made; null where the file does not say.
CELLS: Final = {
    "system": pl.String, "task": pl.String, "item": pl.String, "score": pl.Float64, "split": pl.String,
    "data_revision": pl.String, "tool_version": pl.String, "model_revision": pl.String, "place": pl.String,
}  # fmt: skip
_SYSTEM: Final = ("system", "model", "model_name", "run", "method", "name")
_TASK: Final = ("task", "task_name", "dataset", "data_set", "benchmark", "collection")
_ITEM: Final = ("item", "item_id", "question", "question_id", "query", "query_id", "topic", "topic_id", "id")
_SCORE: Final = ("score", "value", "main_score", "ndcg@10", "ndcg_at_10")
#: Columns of tables that are averages of others, or facts about a system.
_NO_TASKS: Final = frozenset(
    ("rank", "mean", "average", "avg", "overall", "total", "parameters", "params", "n_parameters", "dimensions", "year")
)
#: The score of results that name no main score: that of retrieval tasks.
_MAIN: Final = "ndcg_at_10"


@dataclass(frozen=True, eq=False)
class ScoreBoard:
    """Scores of systems on tasks.

    Attributes:
        cells: columns `CELLS`, one row for each score.
        trained: the data sets that a system says it was trained on, by system.
        remarks: what was left out, and why.
    """

    cells: pl.DataFrame
    trained: Mapping[str, frozenset[str]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def read_board(source: Any) -> ScoreBoard:
    """Reads a folder of MTEB results (`MODEL/REVISION/TASK.json`), or a table of scores.

    A table has a row for each system and a column for each task, a row for each task and a column for each system, or a
    row for each score with columns for system, task, score, and item where there are several of a task.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        if path.is_dir():
            return _folder(path)
        if not path.exists():
            raise InputError("no such file or folder", "give a folder of MTEB results, or a table", where=path)
    return ScoreBoard(_table(opened_rows(source)))


def _folder(folder: Path) -> ScoreBoard:
    rows: list[tuple[Any, ...]] = []
    trained: dict[str, frozenset[str]] = {}
    broken = 0
    for path in sorted(folder.rglob("*.json")):
        parts = path.relative_to(folder).parts
        system, revision = (parts[-3], parts[-2]) if len(parts) > 2 else (parts[0] if len(parts) > 1 else path.stem, "")
        try:
            value = json_file(path)
            if path.name == "model_meta.json":
                if names := value.get("training_datasets"):
                    trained[system] = trained.get(system, frozenset()) | frozenset(map(str, names))
                continue
            found = list(_scores(value))
            task = str(value.get("task_name") or value["mteb_dataset_name"])
        except (InputError, KeyError, TypeError, AttributeError):
            broken += path.name != "model_meta.json"
            continue
        broken += not found
        about = (_text(value.get("dataset_revision")), _text(value.get("mteb_version")), revision, "/".join(parts))
        for split, subset, score in found:
            name = task if subset in ("", "default") else f"{task} ({subset})"
            rows.append((system, name, None, score, split, *about))
    if not rows:
        raise InputError(
            "no scores in these files", "give a folder of MODEL/REVISION/TASK.json, or a table", where=folder
        )
    remarks = (f"{broken:,d} files have no scores that can be read, and are left out.",) if broken else ()
    return ScoreBoard(pl.DataFrame(rows, CELLS, orient="row"), trained, remarks)


def _scores(value: Mapping[str, Any]) -> Iterable[tuple[str, str, float]]:
    """Split, subset and main score; of older files the score of retrieval tasks."""
    if "scores" in value:
        for split, entries in value["scores"].items():
            for entry in entries:
                if isinstance(score := entry.get("main_score"), int | float):
                    yield split, str(entry.get("hf_subset", "")), float(score)
        return
    for split in ("test", "dev", "validation", "train"):
        if isinstance(entry := value.get(split), Mapping) and isinstance(score := entry.get(_MAIN), int | float):
            yield split, "", float(score)


def _text(value: Any) -> str | None:
    return None if value in (None, "", "None", "external") else str(value)


def _table(table: GoldenRows) -> pl.DataFrame:
    system, task, item, score = (_column(table, names) for names in (_SYSTEM, _TASK, _ITEM, _SCORE))
    if system and task and score:
        names = [(system, "a system"), (task, "a task")]
        rows = [
            (
                _name(table, row, *names[0]),
                _name(table, row, *names[1]),
                str(cells[item]) if item and not is_empty(cells.get(item)) else None,
                _number(table, row, score),
            )
            for row, cells in enumerate(table.rows)
            if not is_empty(cells[score])
        ]
        return _cells(rows, table)  # fmt: skip
    if (system is None) == (task is None):
        names_found = ", ".join(table.names)
        what = "a column of systems and one of tasks, and none of scores" if system else "no column of systems or tasks"
        raise table.fault(
            f"{what}: {names_found}", "name columns system, task, score; or one of them, and the others in columns"
        )
    head = system or task or ""
    columns = [name for name in table.names if name != head and name.lower() not in _NO_TASKS and _numeric(table, name)]
    if len(columns) < 2:
        raise table.fault("fewer than two columns of numbers", "give a column for each task, or for each system")
    rows = []
    for row, cells in enumerate(table.rows):
        own = _name(table, row, head, "a name")
        for column in columns:
            if not is_empty(cells.get(column)):
                pair = (own, column) if system else (column, own)
                rows.append((*pair, None, _number(table, row, column)))
    return _cells(rows, table)


def _cells(rows: list[tuple[str, str, str | None, float]], table: GoldenRows) -> pl.DataFrame:
    frame = pl.DataFrame(rows, {name: CELLS[name] for name in ("system", "task", "item", "score")}, orient="row")
    key = ["system", "task", "item"]
    if len(repeated := frame.filter(pl.struct(key).is_duplicated())):
        named = " of ".join(repeated.select("task", "system").row(0))
        raise table.fault(f"several scores for {named}", "keep one, or name the items in a column 'item'")
    rest = [pl.lit(None, kind).alias(name) for name, kind in CELLS.items() if name not in frame.columns]
    return frame.with_columns(rest).select(*CELLS)


def _column(table: GoldenRows, names: Iterable[str]) -> str | None:
    known = {name.lower().strip(): name for name in table.names}
    return next((known[name] for name in names if name in known), None)


def _numeric(table: GoldenRows, name: str) -> bool:
    filled = table.filled(name)
    return bool(filled) and all(_as_number(cell) is not None for cell in filled)


def _as_number(cell: Any) -> float | None:
    try:
        value = float(str(cell).strip().rstrip("%"))
    except ValueError:
        return None
    return value if np.isfinite(value) else None


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
        # Of equal shares a system goes: every system that stays is compared on all tasks.
        if by_task.max() > by_system.max():
            rows[int(np.argmax(by_task))] = False
        else:
            columns[int(np.argmax(by_system))] = False
    kept = [task for task, keep in zip(tasks, rows, strict=True) if keep]
    return [one for one, keep in zip(systems, columns, strict=True) if keep], kept, scores[np.ix_(rows, columns)]

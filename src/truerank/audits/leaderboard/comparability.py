"""Which rows of a leaderboard are comparable: revisions, splits, scales, holes, copies, training."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import polars as pl

from truerank.audits.leaderboard.board import ScoreBoard
from truerank.core.rules import Finding, Rule, rules_of
from truerank.sources.golden_columns import first_names

RULES: Final = rules_of(__name__.rpartition(".")[0], Rule)
#: Fewer shared tasks say nothing about copies.
_TASKS: Final = 3
#: Scores on the scale of 0 to 100 are above this; on that of 0 to 1, none is.
_SCALE: Final = 1.5
#: What versions of one data set add to its name.
_VARIANT: Final = re.compile(r"(HardNegatives|Retrieval|Reranking|\.v\d+)+$")
_KEY: Final = ["system", "task"]


def findings(board: ScoreBoard) -> Iterator[Finding]:
    """What is not comparable, by rule."""
    cells = board.cells
    for rule, column in (("mixed-data-revisions", "data_revision"), ("mixed-versions", "tool_version")):
        for task, values in _several(cells, column):
            noun = "revisions of the data" if column == "data_revision" else "versions of the tool"
            yield _finding(rule, task, f"{task}: {len(values)} {noun} ({first_names(values)}).")
    for task, split, others, count in _split(cells):
        yield _finding("mixed-splits", task, f"{task}: {count} systems have no scores on {split}, only on {others}.")
    for task, large, small in _scales(cells):
        yield _finding("mixed-scales", task, f"{task}: {large} scores above {_SCALE:g}, {small} below.")
    tasks = cells["task"].unique().sort()
    for system, own in cells.group_by("system", maintain_order=True).agg(pl.col("task").unique().sort()).iter_rows():
        if lacking := sorted(set(tasks) - set(own)):
            yield _finding(
                "missing-task", system, f"{system} lacks {len(lacking)} of {len(tasks)} tasks ({first_names(lacking)})."
            )
    for system, task, low, high in _revised(cells):
        yield _finding("several-revisions", system, f"{system} has {task} with {low:.4f} and {high:.4f}.")
    for one, other, shared in _equal(cells):
        yield _finding(
            "equal-systems", f"{one}\0{other}", f"{one} and {other} have the same score on all {shared} tasks."
        )
    unknown = cells.filter(pl.col("data_revision").is_null() & pl.col("place").is_not_null())
    for task, count in unknown.group_by("task").agg(pl.col("system").n_unique()).sort("task").iter_rows():
        yield _finding("unknown-revision", task, f"{task}: {count} systems without a revision of the data.")
    for system, names in trained_tasks(board).items():
        yield _finding("trained-on-task", system, f"{system} names {first_names(sorted(names))} as training data.")


def trained_tasks(board: ScoreBoard) -> dict[str, frozenset[str]]:
    """The tasks of the board that a system says it was trained on, by system."""
    stems = {task: _stem(task) for task in board.cells["task"].unique()}
    found = {}
    for system, names in sorted(board.trained.items()):
        own = {_stem(name) for name in names}
        if tasks := frozenset(task for task, stem in stems.items() if stem in own):
            found[system] = tasks
    return found


def _stem(name: str) -> str:
    return _VARIANT.sub("", name.rpartition("/")[2]).lower()


def _finding(rule: str, subject: str, evidence: str) -> Finding:
    return Finding(RULES[rule], evidence, "", 0, subject)


def _several(cells: pl.DataFrame, column: str) -> Iterator[tuple[str, list[str]]]:
    by_task = cells.drop_nulls(column).group_by("task").agg(pl.col(column).unique().sort()).sort("task")
    return ((task, values) for task, values in by_task.iter_rows() if len(values) > 1)


def _split(cells: pl.DataFrame) -> Iterator[tuple[str, str, str, int]]:
    """Tasks of which some systems lack the split that most have."""
    for task, own in sorted(cells.drop_nulls("split").partition_by("task", as_dict=True).items()):
        counts = own.group_by("split").agg(pl.col("system").n_unique()).sort("system", "split", descending=True)
        split = counts["split"][0]
        lacking = own.group_by("system").agg(pl.col("split").unique()).filter(~pl.col("split").list.contains(split))
        if len(lacking):
            others = first_names(lacking["split"].explode().unique().sort().to_list())
            yield str(task[0]), split, others, len(lacking)


def _scales(cells: pl.DataFrame) -> Iterator[tuple[str, int, int]]:
    large = cells.filter(pl.col("item").is_null()).group_by("task").agg(
        (pl.col("score") > _SCALE).sum().alias("large"),
        ((pl.col("score") <= 1) & (pl.col("score") > 0)).sum().alias("small"),
    )  # fmt: skip
    found = large.filter((pl.col("large") > 0) & (pl.col("small") > 0)).sort("task")
    return found.iter_rows()


def _revised(cells: pl.DataFrame) -> Iterator[tuple[str, str, float, float]]:
    several = cells.filter(pl.col("model_revision").is_not_null()).group_by(_KEY).agg(
        pl.col("score").min().alias("low"), pl.col("score").max().alias("high"), pl.col("model_revision").n_unique()
    )  # fmt: skip
    # One task of a system is enough: the one that differs most.
    differing = several.filter((pl.col("model_revision") > 1) & (pl.col("high") - pl.col("low") > 1e-9))
    most = differing.sort("system", pl.col("low") - pl.col("high"), "task").unique(
        "system", keep="first", maintain_order=True
    )
    return most.select("system", "task", "low", "high").iter_rows()


def _equal(cells: pl.DataFrame) -> Iterator[tuple[str, str, int]]:
    means = cells.group_by(_KEY).agg(pl.col("score").mean().round(10)).sort(_KEY)
    rows = (
        means.group_by("system", maintain_order=True).agg("task", "score").filter(pl.col("task").list.len() >= _TASKS)
    )
    seen: dict[tuple[tuple[str, ...], tuple[float, ...]], str] = {}
    for system, tasks, scores in rows.iter_rows():
        key = (tuple(tasks), tuple(scores))
        if key in seen:
            yield seen[key], system, len(tasks)
        else:
            seen[key] = system

"""Which rows of a leaderboard are comparable: revisions, splits, scales, holes, copies, training."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from truerank.audits.leaderboard.board import ScoreBoard
from truerank.core.rules import Finding, Rule, rules_of
from truerank.sources.golden_columns import first_names
from truerank.sources.mteb_results import one_score_each

RULES: Final = rules_of(__name__.rpartition(".")[0], Rule)
#: Fewer shared tasks say nothing about copies.
_TASKS: Final = 3
#: Scores of copies differ by rounding to three decimals at most.
_EQUAL: Final = 5e-4
#: Scores on the scale of 0 to 100 are above this; on that of 0 to 1, none is.
_SCALE: Final = 1.5
#: MRR@1 and P@1 are one number. In MTEB's results ties and passages that answer themselves part them by up to .025.
_FIRST_GAP: Final = 0.05
#: What versions of one data set add to its name.
_VARIANT: Final = re.compile(r"(HardNegatives|Retrieval|Reranking|\.v\d+)+$")
_KEY: Final = ["system", "task"]


def findings(board: ScoreBoard) -> Iterator[Finding]:
    """What is not comparable, by rule."""
    cells = board.main
    for task, revision, systems, most in _minorities(cells, "data_revision"):
        evidence = f"{task}: {first_names(systems)} on revision {revision}, most on {most}."
        yield _finding("mixed-data-revisions", f"{task}\0{revision}", evidence)
    for task, values in _several(cells, "tool_version"):
        yield _finding("mixed-versions", task, f"{task}: {len(values)} versions of the tool ({first_names(values)}).")
    for task, values in _several(cells, "prompt"):
        yield _finding("mixed-prompts", task, f"{task}: {len(values)} prompts ({first_names(values, quoted=True)}).")
    for task, split, others, systems in _split(cells):
        evidence = f"{task}: {first_names(systems)} have no scores on {split}, only on {others}."
        yield _finding("mixed-splits", task, evidence)
    for system, tasks, scale in _scales(cells):
        evidence = f"{system}: scores of {first_names(tasks)} are from 0 to {scale}, those of most systems are not."
        yield _finding("mixed-scales", system, evidence)
    tasks = cells["task"].unique().sort()
    for system, own in cells.group_by("system", maintain_order=True).agg(pl.col("task").unique().sort()).iter_rows():
        if lacking := sorted(set(tasks) - set(own)):
            yield _finding(
                "missing-task", system, f"{system} lacks {len(lacking)} of {len(tasks)} tasks ({first_names(lacking)})."
            )
    for system, task, low, high in _revised(cells):
        yield _finding("several-revisions", system, f"{system} has {task} with {low:.4f} and {high:.4f}.")
    for one, other, shared, gap in _equal(cells):
        evidence = f"{one} and {other} have the same scores on all {shared} tasks that both have, within {gap:.4f}."
        yield _finding("equal-systems", f"{one}\0{other}", evidence)
    for task, system, gap, place in cells.filter(pl.col("first_gap") > _FIRST_GAP).select(
        "task", "system", "first_gap", "place"
    ).iter_rows():  # fmt: skip
        evidence = f"{system}, {task}: MRR@1 and P@1 are one number, and differ by {gap:.3f}."
        yield Finding(RULES["impossible-scores"], evidence, place, 0, f"{system}\0{task}")
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


def _minorities(cells: pl.DataFrame, column: str) -> Iterator[tuple[str, str, list[str], str]]:
    """By task each value that is not the one of most systems, its systems, and the value of most."""
    counts = cells.drop_nulls(column).group_by("task", column).agg(pl.col("system").unique().sort())
    counts = counts.with_columns(pl.col("system").list.len().alias("size"))
    for (task,), own in sorted(counts.partition_by("task", as_dict=True).items()):
        own = own.sort("size", column, descending=[True, False])
        for value, systems in own[1:].select(column, "system").iter_rows():
            yield str(task), value, systems, own[column][0]


def _split(cells: pl.DataFrame) -> Iterator[tuple[str, str, str, list[str]]]:
    """Tasks of which some systems lack the split that most have."""
    for task, own in sorted(cells.drop_nulls("split").partition_by("task", as_dict=True).items()):
        counts = own.group_by("split").agg(pl.col("system").n_unique()).sort("system", "split", descending=True)
        split = counts["split"][0]
        lacking = own.group_by("system").agg(pl.col("split").unique()).filter(~pl.col("split").list.contains(split))
        if len(lacking):
            others = first_names(lacking["split"].explode().unique().sort().to_list())
            yield str(task[0]), split, others, lacking["system"].sort().to_list()


def _scales(cells: pl.DataFrame) -> Iterator[tuple[str, list[str], int]]:
    """Systems whose scores are on another scale than those of most systems of the task: the tasks and the scale."""
    means = cells.group_by(_KEY).agg(pl.col("score").max()).filter(pl.col("score") > 0)
    marked = means.with_columns(large=pl.col("score") > _SCALE).with_columns(
        most=pl.col("large").mean().over("task") > 0.5, both=pl.col("large").n_unique().over("task") > 1
    )
    odd = marked.filter(pl.col("both") & (pl.col("large") != pl.col("most"))).sort(_KEY)
    for (system, large), own in odd.partition_by("system", "large", as_dict=True, maintain_order=True).items():
        yield str(system), own["task"].to_list(), 100 if large else 1


def _revised(cells: pl.DataFrame) -> Iterator[tuple[str, str, float, float]]:
    several = cells.filter(pl.col("model_revision").is_not_null()).group_by(*_KEY, "split").agg(
        pl.col("score").min().alias("low"), pl.col("score").max().alias("high"), pl.col("model_revision").n_unique()
    )  # fmt: skip
    # One task of a system is enough: the one that differs most.
    differing = several.filter((pl.col("model_revision") > 1) & (pl.col("high") - pl.col("low") > 1e-9))
    most = differing.sort("system", pl.col("low") - pl.col("high"), "task").unique(
        "system", keep="first", maintain_order=True
    )
    return most.select("system", "task", "low", "high").iter_rows()


def _equal(cells: pl.DataFrame) -> Iterator[tuple[str, str, int, float]]:
    """Pairs of systems that differ on no task that both have, how many these are, and by how much they differ."""
    means = one_score_each(cells).group_by(_KEY).agg(pl.col("score").mean())
    wide = means.pivot("system", index="task", values="score", sort_columns=True)
    systems = wide.columns[1:]
    scores = wide.select(systems).cast(pl.Float64).to_numpy()
    for number, system in enumerate(systems):
        gaps = np.abs(scores[:, number + 1 :] - scores[:, [number]])
        shared = np.isfinite(gaps).sum(axis=0)
        largest = np.where(np.isfinite(gaps), gaps, 0).max(axis=0)
        for other in np.flatnonzero((shared >= _TASKS) & (largest <= _EQUAL)):
            yield system, systems[number + 1 + int(other)], int(shared[other]), float(largest[other])

"""Which rows of a leaderboard are comparable: how scores were made, what is missing, copies, training.

What a file says of itself is compared with what most files say: `_minorities`. Results of one board are compared with
each other, and the measures of one file among themselves.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from truerank.audits.leaderboard.board import ScoreBoard
from truerank.core.rules import Finding, Rule, rules_of
from truerank.sources.golden_rows import first_names
from truerank.sources.mteb_results import counted_splits, one_score_each

RULES: Final = rules_of(__name__.rpartition(".")[0], Rule)
#: Fewer shared tasks say nothing about copies, fewer systems nothing about a task.
_TASKS: Final = 3
_SYSTEMS: Final = 5
#: A name of so few letters is the beginning of others by chance.
_SHORT: Final = 5
#: Scores of copies differ by rounding to three decimals at most.
_EQUAL: Final = 5e-4
#: Scores on the scale of 0 to 100 are above this; on that of 0 to 1, none is.
_SCALE: Final = 1.5
#: How many times a score on the larger scale is one on the smaller, at least.
_APART: Final = 10
#: Main scores of MTEB that are on neither.
_NO_SHARES: Final = ("p-MRR",)
#: Decimals that are few where others have more.
_COARSE: Final = 2
#: A task separates systems so little: of the median over tasks of their standard deviation.
_FLAT: Final = 0.1
#: What versions of one data set add to its name; what its translations and samples do; and names of the same one.
_VARIANT: Final = re.compile(r"(hardnegatives|retrieval|reranking|\.v\d+)+$")
_RELATIVE: Final = re.compile(r"^nano|(-[a-z]{2,3}|-chinese)$")
_SAME: Final = {"mmarco": "msmarco", "naturalquestions": "nq", "wikipedia-nq": "nq"}
_CHECKPOINT: Final = re.compile(r"[-_.]?(ckpt|checkpoint|step|epoch|iter)[-_]?\d+$", re.IGNORECASE)
_KEY: Final = ["system", "task"]


def findings(board: ScoreBoard) -> Iterator[Finding]:
    """What is not comparable, by rule."""
    cells, chosen = board.main, one_score_each(board.main)
    yield from _made_otherwise(cells)
    yield from _splits(cells)
    yield from _scales(cells)
    yield from _missing(cells)
    yield from _revised(cells)
    yield from _impossible(cells)
    yield from _copies(chosen)
    yield from _precision(chosen)
    yield from _checkpoints(board)
    unknown = cells.filter(pl.col("data_revision").is_null() & pl.col("place").is_not_null())
    for task, systems in unknown.group_by("task").agg(pl.col("system").unique().sort()).sort("task").iter_rows():
        evidence = f"{task}: {len(systems)} systems without a revision of the data ({first_names(systems)})."
        yield _finding("unknown-revision", task, evidence)
    for system, name in sorted(board.foreign.items()):
        yield _finding("foreign-metadata", system, f"{system} has the metadata of {name}.")
    yield from _trained(board)


def trained_tasks(board: ScoreBoard) -> dict[str, frozenset[str]]:
    """The tasks of the board that a system says it was trained on, by system."""
    stems = {task: _stem(task) for task in board.cells["task"].unique()}
    found = {}
    for system, names in sorted(board.trained.items()):
        own = {_stem(name) for name in names}
        if tasks := frozenset(task for task, stem in stems.items() if stem in own):
            found[system] = tasks
    return found


def _trained(board: ScoreBoard) -> Iterator[Finding]:
    """Training on a task, and on its relatives: a translation, a sample, or a larger set of which it is a part."""
    named = trained_tasks(board)
    for system, tasks in named.items():
        yield _finding("trained-on-task", system, f"{system} names {first_names(sorted(tasks))} as training data.")
    stems = {task: _stem(task) for task in sorted(set(board.cells["task"]))}
    for system, names in sorted(board.trained.items()):
        for name in sorted(names):
            own = _stem(_RELATIVE.sub("", _RELATIVE.sub("", _stem(name))))
            own = _SAME.get(own, own)
            related = [
                task for task, stem in stems.items() if stem == own or (len(own) > _SHORT and stem.startswith(own))
            ]
            if left := [task for task in related if task not in named.get(system, ())]:
                evidence = f"{system} names {name} as training data, a relative of {first_names(left)}."
                yield _finding("trained-on-relative", f"{system}\0{name}", evidence)


def _stem(name: str) -> str:
    return _VARIANT.sub("", name.rpartition("/")[2].lower())


def _finding(rule: str, subject: str, evidence: str, place: str | None = None) -> Finding:
    return Finding(RULES[rule], evidence, place or "", 0, subject)


def _made_otherwise(cells: pl.DataFrame) -> Iterator[Finding]:
    """Scores of one task on other data, by another prompt, language or measure than most."""
    for task, revision, systems, most in _minorities(cells, "data_revision"):
        evidence = f"{task}: {first_names(systems)} on revision {revision}, most on {most}."
        yield _finding("mixed-data-revisions", f"{task}\0{revision}", evidence)
    for task, values in _several(cells, "tool_version"):
        evidence = f"{task}: {len(values)} versions of the tool ({first_names(values)})"
        rare = [
            f"{first_names(systems)} with {value}" for _, value, systems, _ in _minorities(cells, "tool_version", task)
        ]
        yield _finding("mixed-versions", task, f"{evidence}: {'; '.join(rare[:_TASKS])}.")
    for task, values in _several(cells, "prompt"):
        yield _finding("mixed-prompts", task, f"{task}: {len(values)} prompts ({first_names(values, quoted=True)}).")
    for task, value, systems, most in _minorities(cells, "languages"):
        # Versions of a tool name more or fewer languages of the same data.
        if set(value.split(", ")).isdisjoint(most.split(", ")):
            evidence = f"{task}: {first_names(systems)} in {value}, most in {most}."
            yield _finding("mixed-languages", f"{task}\0{value}", evidence)
    # Several measures of a file may have the value of its main score.
    named = cells.filter(pl.col("main_measure") != "").with_columns(pl.col("main_measure").str.split(" "))
    counts = named.explode("main_measure").group_by("task", "main_measure").agg(pl.col("system").n_unique())
    counts = counts.sort("task", "system", "main_measure", descending=[False, True, False])
    usual = counts.group_by("task").agg(pl.col("main_measure").first().alias("most"))
    odd = named.join(usual, on="task").filter(~pl.col("main_measure").list.contains(pl.col("most")))
    odd = odd.group_by("task", "most", pl.col("main_measure").list.first()).agg(pl.col("system").unique().sort())
    for task, most, measure, systems in odd.sort("task", "main_measure").iter_rows():
        evidence = f"{task}: the main score of {first_names(systems)} is {measure}, that of most is {most}."
        yield _finding("another-main-score", f"{task}\0{measure}", evidence)
    unlike = cells.filter(pl.col("main_measure") == "").group_by("task").agg(pl.col("system").unique().sort())
    for task, systems in unlike.sort("task").iter_rows():
        evidence = f"{task}: the main score of {first_names(systems)} is no measure of its file."
        yield _finding("another-main-score", f"{task}\0", evidence)


def _several(cells: pl.DataFrame, column: str) -> Iterator[tuple[str, list[str]]]:
    by_task = cells.drop_nulls(column).group_by("task").agg(pl.col(column).unique().sort()).sort("task")
    return ((task, values) for task, values in by_task.iter_rows() if len(values) > 1)


def _minorities(cells: pl.DataFrame, column: str, task: str = "") -> Iterator[tuple[str, str, list[str], str]]:
    """By task each value that is not the one of most systems, its systems, and the value of most."""
    own = cells.drop_nulls(column).filter((pl.col("task") == task) | (task == ""))
    counts = own.group_by("task", column).agg(pl.col("system").unique().sort())
    counts = counts.sort("task", pl.col("system").list.len(), column, descending=[False, True, False])
    for (name,), values in counts.partition_by("task", as_dict=True, maintain_order=True).items():
        for value, systems in values[1:].select(column, "system").iter_rows():
            yield str(name), value, systems, values[column][0]


def _splits(cells: pl.DataFrame) -> Iterator[Finding]:
    """Systems that lack the split that most have, that have others beside it, or several scores on one."""
    counted = dict(counted_splits(cells.drop_nulls("split")).iter_rows())
    for (task,), own in sorted(cells.drop_nulls("split").partition_by("task", as_dict=True).items()):
        split = counted[task]
        by_system = own.group_by("system").agg(pl.col("split").unique()).sort("system")
        lacking = by_system.filter(~pl.col("split").list.contains(split))
        if len(lacking):
            others = first_names(lacking["split"].explode().unique().sort().to_list())
            evidence = f"{task}: {first_names(lacking['system'])} have no scores on {split}, only on {others}."
            yield _finding("mixed-splits", str(task), evidence)
        more = by_system.filter(pl.col("split").list.contains(split) & (pl.col("split").list.len() > 1))
        if len(more):
            others = first_names(more["split"].explode().unique().drop_nulls().sort().to_list())
            evidence = f"{task}: {first_names(more['system'])} have scores on {others}; {split} counts here."
            yield _finding("several-scores", f"{task}\0splits", evidence)
    alone = cells.filter(pl.col("place").is_not_null() & pl.col("item").is_null())
    repeated = alone.group_by("system", "task", "split", "place").agg(pl.len(), pl.col("score").n_unique().alias("own"))
    for system, task, split in (
        repeated.filter(pl.col("own") > 1).sort("task", "system").select(*_KEY, "split").iter_rows()
    ):
        evidence = f"{system}, {task}: several scores on {split} in one file; their mean counts here."
        yield _finding("several-scores", f"{system}\0{task}", evidence)


def _scales(cells: pl.DataFrame) -> Iterator[Finding]:
    """Systems whose scores are on another scale than those of most systems of the task, or than most of their own."""
    for (system, large), own in odd_scales(cells).partition_by("system", "large", as_dict=True).items():
        scale = 100 if large else 1
        evidence = f"{system}: scores of {first_names(own['task'])} are from 0 to {scale}, those of most are not."
        yield _finding("mixed-scales", str(system), evidence)


def odd_scales(cells: pl.DataFrame) -> pl.DataFrame:
    """Scores on another scale than most of the task, or of the system: columns system, task, large; in this order."""
    cells = cells.filter(~pl.col("main_measure").is_in(_NO_SHARES).fill_null(False))
    largest = pl.max_horizontal(pl.col("score").max(), pl.col("largest").max())
    means = cells.group_by(_KEY).agg(pl.col("score").max(), largest.alias("file"), pl.col("largest").max())
    marked = means.filter(pl.col("score") > 0).with_columns(large=pl.col("file") > _SCALE)
    large, score = pl.col("large"), pl.col("score")
    # The file of a hard task in percent may have a score below 1, too.
    apart = score.filter(large).median().over("task") > _APART * score.filter(~large).median().over("task")
    of_task = apart & (large != (large.mean().over("task") > 0.5))
    own = large.filter(pl.col("largest").is_not_null())
    of_own = pl.col("largest").is_not_null() & (large != (own.mean().over("system") > 0.5))
    return marked.filter(of_task.fill_null(False) | of_own.fill_null(False)).sort(*_KEY).select(*_KEY, "large")


def _missing(cells: pl.DataFrame) -> Iterator[Finding]:
    tasks = set(cells["task"])
    for system, own in cells.group_by("system", maintain_order=True).agg(pl.col("task").unique()).iter_rows():
        if lacking := sorted(tasks - set(own)):
            evidence = f"{system} lacks {len(lacking)} of {len(tasks)} tasks ({first_names(lacking)})."
            yield _finding("missing-task", system, evidence)


def _revised(cells: pl.DataFrame) -> Iterator[Finding]:
    """Systems with other scores for another revision, or whose tasks are of several revisions."""
    named = cells.filter(pl.col("model_revision").is_not_null())
    several = named.group_by(*_KEY, "split").agg(
        pl.col("score").min().alias("low"), pl.col("score").max().alias("high"), pl.col("model_revision").n_unique()
    )
    # One task of a system is enough: the one that differs most.
    differing = several.filter((pl.col("model_revision") > 1) & (pl.col("high") - pl.col("low") > _EQUAL / 5))
    most = differing.sort("system", pl.col("low") - pl.col("high"), "task")
    found = {
        system: (task, low, high) for system, task, low, high in reversed(most.select(*_KEY, "low", "high").rows())
    }
    counts = one_score_each(named).group_by("system", "model_revision").agg(pl.col("task").n_unique())
    counts = counts.sort("system", "task", "model_revision", descending=[False, True, False])
    for (system,), own in counts.partition_by("system", as_dict=True, maintain_order=True).items():
        parts = [
            f"{tasks} of {revision or 'no revision'}"
            for revision, tasks in own.select("model_revision", "task").iter_rows()
        ]
        texts = [f"tasks are of several revisions ({first_names(parts)})"] if len(parts) > 1 else []
        if system in found:
            task, low, high = found[str(system)]
            texts.append(f"{task} has {low:.4f} and {high:.4f}")
        if texts:
            yield _finding("several-revisions", str(system), f"{system}: {'; '.join(texts)}.")


def _impossible(cells: pl.DataFrame) -> Iterator[Finding]:
    """Files that contradict themselves, and scores that no measure has, or hardly ever."""
    for system, task, what, place in cells.drop_nulls("contradiction").sort("task", "system").select(
        *_KEY, "contradiction", "place"
    ).iter_rows():  # fmt: skip
        yield _finding("impossible-scores", f"{system}\0{task}", f"{system}, {task}: {what}.", place)
    file = pl.col("place").str.extract(r"([^/]+)\.json$")
    task = pl.col("task").str.replace(r" \([^)]*\)$", "")
    for system, name, place in cells.filter(file != task).sort("place").unique("place", maintain_order=True).select(
        *_KEY, "place"
    ).iter_rows():  # fmt: skip
        yield _finding("misnamed-file", place, f"{system}: {place} holds a result of {name}.", place)
    score = pl.col("score")
    percent = pl.max_horizontal(score.max(), pl.col("largest").max()).over("system") > _SCALE
    outside = (score < 0) | ((score > 1) & ~percent) | (score > 100)
    for rule, where, what in (
        ("impossible-scores", outside, "outside 0 to 1 and 0 to 100"), ("zero-scores", score == 0, "exactly"),
    ):  # fmt: skip
        odd = cells.filter(where & pl.col("item").is_null()).sort("task", "system")
        for system, task, value, place in odd.select(*_KEY, "score", "place").iter_rows():
            text = f"{what} 0" if rule == "zero-scores" else f"{value:.4g}, {what}"
            yield _finding(rule, f"{system}\0{task}\0{value}", f"{system}, {task}: the score is {text}.", place)


def _copies(chosen: pl.DataFrame) -> Iterator[Finding]:
    """Systems that differ on no task that both have, and single results that occur twice."""
    twins = set()
    for one, other, shared, gap in _equal(chosen):
        twins.add(frozenset((one, other)))
        evidence = f"{one} and {other} have the same scores on all {shared} tasks that both have, within {gap:.4f}."
        yield _finding("equal-systems", f"{one}\0{other}", evidence)
    # A result with all its measures occurs once; where nothing separates systems, it may occur everywhere.
    same = chosen.drop_nulls("fingerprint").filter(pl.col("score") > 0).group_by("fingerprint").agg(
        pl.col("system").unique().sort(), pl.col("task").unique().sort()
    )  # fmt: skip
    for systems, tasks in same.select("system", "task").sort("task", "system").iter_rows():
        if len(systems) == 1 and len(tasks) > 1:
            evidence = f"{systems[0]} has one result for {first_names(tasks)}, in all measures."
            yield _finding("equal-results", f"{systems[0]}\0{tasks[0]}", evidence)
        elif 1 < len(systems) <= _TASKS and frozenset(systems) not in twins:
            evidence = f"{first_names(tasks)}: {first_names(systems)} have one result, in all measures."
            yield _finding("equal-results", "\0".join((*systems, tasks[0])), evidence)


def _equal(chosen: pl.DataFrame) -> Iterator[tuple[str, str, int, float]]:
    """Pairs of systems that differ on no task that both have, how many these are, and by how much they differ."""
    wide = chosen.group_by(_KEY).agg(pl.col("score").mean()).pivot(
        "system", index="task", values="score", sort_columns=True
    )  # fmt: skip
    systems = wide.columns[1:]
    scores = wide.select(systems).cast(pl.Float64).to_numpy()
    for number, system in enumerate(systems):
        gaps = np.abs(scores[:, number + 1 :] - scores[:, [number]])
        shared = np.isfinite(gaps).sum(axis=0)
        largest = np.where(np.isfinite(gaps), gaps, 0).max(axis=0)
        for other in np.flatnonzero((shared >= _TASKS) & (largest <= _EQUAL)):
            yield system, systems[number + 1 + int(other)], int(shared[other]), float(largest[other])


def _precision(chosen: pl.DataFrame) -> Iterator[Finding]:
    """Systems with rounded scores among others, and tasks that hardly separate systems."""
    means = chosen.filter(pl.col("item").is_null()).group_by(_KEY).agg(pl.col("score").mean())
    decimals = means.with_columns(places=pl.when(pl.col("score") > _SCALE).then(_COARSE - 2).otherwise(_COARSE))
    rounded = (pl.col("score") * 10.0 ** pl.col("places")).round(6)
    coarse = decimals.group_by("system").agg((rounded == rounded.round(0)).all(), pl.len()).sort("system")
    few = coarse.filter(pl.col("score") & (pl.col("len") >= _TASKS))["system"]
    if 0 < len(few) <= len(coarse) / 2:
        for system in few:
            yield _finding("coarse-scores", system, f"{system}: no score has more than two digits, those of most have.")
    spread = means.group_by("task").agg(pl.col("score").std(), pl.len()).filter(pl.col("len") >= _SYSTEMS).sort("task")
    if len(spread) < _TASKS:
        return
    usual = float(np.median(spread["score"].to_numpy()))
    for task, sd, count in spread.iter_rows():
        if sd <= _FLAT * usual:
            evidence = f"{task}: the standard deviation of {count} systems is {sd:.4f}, in the median task {usual:.4f}."
            yield _finding("flat-task", str(task), evidence)


def _checkpoints(board: ScoreBoard) -> Iterator[Finding]:
    """Checkpoints of one training, which fill ranks."""
    systems = sorted(set(board.main["system"]))
    families = defaultdict(list)
    for system in systems:
        families[_CHECKPOINT.sub("", system)].append(system)
    for name, own in families.items():
        if len(own) > 1 and any(_CHECKPOINT.search(one) for one in own):
            yield _finding("checkpoints", name, f"{name}: {len(own)} checkpoints are rows ({first_names(own)}).")

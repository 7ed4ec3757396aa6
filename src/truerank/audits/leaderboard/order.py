"""The order of the systems of a board, as frames: ranks with intervals, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Floats, Ints, frame_schema
from truerank.audits.leaderboard.board import ChosenScores
from truerank.measures.orders import kendall
from truerank.measures.rank_groups import RankGroups, order_by
from truerank.sources.golden_rows import first_names

#: Systems in the terminal.
SHOWN: Final = 15
_WAYS: Final = ("mean", "mean rank", "standardised mean", "median")


class SharedScores(NamedTuple):
    """Scores without holes: the names of systems and tasks, and the scores, shape (tasks, systems)."""

    systems: list[str]
    tasks: list[str]
    scores: Floats

    @property
    def means(self) -> Floats:
        return np.asarray(self.scores.mean(axis=0))


class Questions(NamedTuple):
    """Scores of questions that all systems have, shape (questions, systems), their weights, and the number of their
    task."""

    scores: Floats
    weights: Floats
    tasks: Ints


def questions_of(items: pl.DataFrame, systems: list[str], tasks: list[str]) -> Questions | None:
    """The questions of every task that all systems have; None where a task has fewer than two."""
    own = items.filter(pl.col("system").is_in(systems) & pl.col("task").is_in(tasks))
    if not len(own):
        return None
    wide = own.pivot("system", index=["task", "item"], values="score").drop_nulls().sort("task", "item")
    counts = wide.group_by("task").len().filter(pl.col("len") > 1)
    if len(counts) < len(tasks) or any(system not in wide.columns for system in systems):
        return None
    number = wide["task"].rank("dense").to_numpy().astype(np.int64) - 1
    weights: Floats = 1 / (len(tasks) * np.bincount(number)[number])
    return Questions(wide.select(systems).to_numpy().astype(np.float64), weights, number)


def places(means: Floats) -> Ints:
    """Ranks from 1; equal means in the order of the systems."""
    order = np.lexsort((np.arange(len(means)), -means))
    found = np.empty(len(means), np.int64)
    found[order] = np.arange(1, len(means) + 1)
    return found


def ranked(systems: list[str], groups: RankGroups) -> pl.DataFrame:
    """Systems from the first to the last: ranks and their intervals."""
    order = np.argsort(places(groups.means))
    columns = {
        "rank": np.arange(1, len(order) + 1),
        "system": [systems[one] for one in order],
        "mean": groups.means[order],
        "rank_low": groups.low[order], "rank_high": groups.high[order],
        "own_low": groups.own_low[order], "own_high": groups.own_high[order],
        "first": groups.first[order],
        "shown": np.arange(len(order)) < SHOWN,
    }  # fmt: skip
    return pl.DataFrame(columns)


def left_out(main: pl.DataFrame, odd: pl.DataFrame, means: pl.DataFrame, compared: Set[str]) -> dict[str, str]:
    """Why systems are not compared: the tasks on which each has no score, or none of the `means` that count."""
    found = dict[str, str]()
    for system in sorted({*main["system"]} - compared):
        own, scale, counted = ({*frame.filter(system=system)["task"]} for frame in (main, odd, means))
        lacking = {"no score": {*means["task"]} - own, "another scale": scale, "another split": own - scale - counted}
        found[system] = "; ".join(f"{what} on {first_names(sorted(of))}" for what, of in lacking.items() if of)
    return found


def neighbours_apart(groups: RankGroups, most: int) -> dict[str, int]:
    """How many neighbours among the first differ: with all pairs, with all neighbours, and each pair by itself."""
    order = np.argsort(places(groups.means))[:most]
    ways = {"neighbours_told": groups.better, "neighbours_family": groups.neighbours, "neighbours_alone": groups.alone}
    found = {
        name: int((better[order[:-1], order[1:]] | better[order[1:], order[:-1]]).sum())
        for name, better in ways.items()
    }
    return {"neighbours": len(order) - 1, **found}


def without_task(block: SharedScores) -> pl.DataFrame:
    """The order with one task left out."""
    systems, tasks, scores = block
    whole, rows = block.means, []
    ranks = places(whole)
    for number, task in enumerate(tasks if len(tasks) > 1 else ()):
        left = np.delete(scores, number, axis=0).mean(axis=0)
        moves = places(left) - ranks
        most = int(np.argmax(np.abs(moves)))
        rows.append((task, kendall(whole, left).tau, systems[int(np.argmax(left))], int(moves[most]), systems[most]))
    schema = {"task": pl.String, "tau": pl.Float64, "leader": pl.String, "move": pl.Int64, "moved": pl.String}
    return pl.DataFrame(rows, schema, orient="row").sort("tau", "task")


def by_other_ways(block: SharedScores, types: Mapping[str, str], chosen: ChosenScores) -> pl.DataFrame:
    """The order by other averages and by other measures, of the systems that have all that these need."""
    systems, tasks, scores = block
    every = np.arange(len(systems))
    values = {way: (order_by(scores, way), every) for way in _WAYS}
    kinds = [types.get(task) for task in tasks]
    if None not in kinds and 1 < len(set(kinds)) < len(kinds):
        parts = [scores[[kind == one for kind in kinds]].mean(axis=0) for one in sorted({str(kind) for kind in kinds})]
        values["mean over types"] = (np.mean(parts, axis=0), every)
    for (measure,), own in chosen.others.partition_by("measure", as_dict=True, maintain_order=True).items():
        wide = own.filter(pl.col("task").is_in(tasks)).pivot("system", index="task", values="score")
        if len(wide) < len(tasks):
            continue
        full = [
            number for number in every if systems[number] in wide.columns and not wide[systems[number]].null_count()
        ]
        if len(full) > 1:
            means = wide.select([systems[number] for number in full]).to_numpy().mean(axis=0)
            values[f"{measure}, mean"] = (means, np.array(full))
    rows = []
    for way, (found, of) in values.items():
        first = set(of[np.argsort(-block.means[of], kind="stable")][:10].tolist())
        own_order = of[np.argsort(-found, kind="stable")]
        rows.append(
            (way, len(of), kendall(block.means[of], found).tau, systems[int(own_order[0])],
             len(first & set(own_order[:10].tolist())))
        )  # fmt: skip
    schema = frame_schema("how: String, compared: Int64, tau: Float64, leader: String, shared: Int64")
    return pl.DataFrame(rows, schema, orient="row")


def without_trained(block: SharedScores, trained: Mapping[str, frozenset[str]]) -> pl.DataFrame:
    """Ranks by the mean over the tasks that a system was not trained on."""
    ranks, rows = places(block.means), []
    for number, system in enumerate(block.systems):
        own = np.array([task in trained.get(system, ()) for task in block.tasks])
        if own.any():
            rest = None if own.all() else int(places(block.scores[~own].mean(axis=0))[number])
            rows.append((system, int(own.sum()), int(ranks[number]), rest, len(block.systems)))
    schema = {"system": pl.String, "tasks": pl.Int64, "rank": pl.Int64, "rank_rest": pl.Int64, "compared": pl.Int64}
    return pl.DataFrame(rows, schema, orient="row").sort("rank")

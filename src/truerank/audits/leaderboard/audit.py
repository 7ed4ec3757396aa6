"""The command `leaderboard`: which rank is a rank?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final

import numpy as np
import polars as pl

from truerank.arrays import Floats, Ints
from truerank.audits.leaderboard.board import ScoreBoard, block, read_board
from truerank.audits.leaderboard.comparability import RULES, findings, trained_tasks
from truerank.audits.leaderboard.verdicts import claim_verdict, order_verdict, rows_verdict
from truerank.core.audit import Audit, Look
from truerank.core.figures.export import Picture
from truerank.core.figures.forest import ForestRow, forest_plot
from truerank.core.figures.heat_maps import value_map
from truerank.core.verdict import Verdict
from truerank.core.views import View, columns
from truerank.errors import OptionError
from truerank.measures.magnitudes import difference_interval
from truerank.measures.orders import kendall
from truerank.measures.rank_groups import RankGroups, letters, order_by, rank_groups
from truerank.options import Flag, Options, Out, Resampling, command
from truerank.sources.benchmarks import benchmark_of_task
from truerank.sources.inputs import inputs_of
from truerank.text.printable import listed
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: Systems in the terminal, in figures, and neighbours that are counted.
_SHOWN, _DRAWN, _NEIGHBOURS = 15, 40, 50
_WAYS: Final = ("mean", "mean rank", "standardised mean", "median")
_KEY: Final = ["system", "task"]


@dataclass(frozen=True)
class LeaderboardOptions(Options):
    """What is compared.

    Attributes:
        claim: a claim, as "A > B"; repeat the option for several.
        tasks: only these tasks; by default all that can be compared.
        systems: only these systems.
    """

    claim: Annotated[tuple[str, ...], Flag(metavar="A>B", reads=list[str])] = ()
    tasks: Annotated[tuple[str, ...], Flag(metavar="NAME", reads=list[str])] = ()
    systems: Annotated[tuple[str, ...], Flag(metavar="NAME", reads=list[str])] = ()


class Leaderboard(Audit, shown_in="truerank.core.audit"):
    """Which rows of a leaderboard are comparable, and which ranks the scores support.

    `frames["systems"]` has each system's mean, rank and interval of ranks; `frames["without_task"]`, `frames["ways"]`
    what the order rests on; `frames["trained"]` ranks without the tasks that a system was trained on.
    """

    verdict_words: ClassVar[tuple[str, ...]] = (
        "NOT COMPARABLE", "DOES NOT HOLD", "MIXED", "TIED", "HOLDS EXCEPT", "CANNOT TELL", "COMPARABLE", "FIRST",
        "HOLDS",
    )  # fmt: skip
    look: ClassVar[Look] = Look(
        "Which rank is a rank?",
        "{systems:,} systems on {tasks:,} tasks; compared: {compared:,} systems on the {shared_tasks:,} tasks that "
        "all of them have.",
        rules=RULES,
        views=(
            View(
                "first", "systems", "The first systems, and the ranks that the scores do not exclude",
                columns("rank:d, system, mean:.4f, best rank=rank_low:d, worst rank=rank_high:d, group=letters"),
                ("All intervals of ranks hold together with a confidence of {confidence:.0%}. Systems that share a "
                 "letter are not told apart.", "{chance_over}"),
                section="order", where={"shown": True},
            ),
            View(
                "systems", "systems", "All systems",
                columns("rank:d, system, mean:.4f, best rank=rank_low:d, worst rank=rank_high:d, group=letters"),
                section="order", place="page", by="system",
            ),
            View(
                "without_task", "without_task", "The order without one task",
                columns("without=task, τ with the order on all=tau:.3f, first=leader, largest move=move:d, of=moved"),
                section="rests", place="page",
            ),
            View(
                "ways", "ways", "The order by another average",
                columns("average=how, τ with the mean=tau:.3f, first=leader, in the first ten as well=shared:d"),
                section="rests", place="page",
            ),
            View(
                "trained", "trained", "Systems that were trained on tasks, as they say",
                columns("system, tasks:d, rank on all=rank:d, rank on the others=rank_rest:d, of systems=compared:d"),
                ("Ranks are among all systems, by the mean over the tasks that this system was not trained on.",),
                section="trained", place="page", by="system",
            ),
        ),
        sections={"order": "The order", "rests": "What the order rests on", "trained": "Training on tasks"},
        pictures=lambda found: _pictures(found),  # noqa: PLW0108 - it is defined below
    )  # fmt: skip


@command
def leaderboard(
    source: Annotated[Any, Flag(metavar="PATH", positional=True, reads=str)],
    options: LeaderboardOptions = LeaderboardOptions(),
    resampling: Resampling = Resampling(resamples=2_000),
    *,
    out: Out = None,
) -> Leaderboard:
    """Finds out which rows of a leaderboard are comparable, and which ranks the scores support.

    Intervals of ranks hold for all systems together. With a score for each task, tasks are taken for a sample of tasks
    of their kind; with scores of questions, tasks are fixed and questions are the sample.

    Args:
        source: a folder of MTEB results (MODEL/REVISION/TASK.json), or a table of scores with a row for each system,
            for each task, or for each score (columns system, task, score, and item for questions). In Python also a
            frame.
        options: what is compared.
        resampling: random signs, confidence of all intervals together, and seed.
        out: a folder for the page, the tables and the findings.

    Returns:
        The audit.

    Raises:
        InputError: nothing that can be read as scores of systems on tasks.

    Examples:

        truerank leaderboard results/ --out board/

        truerank leaderboard scores.csv --claim "mine > baseline"
    """
    board = _restricted(read_board(source), options)
    means, items = chosen(board.cells)
    systems, tasks, scores = block(means)
    if len(systems) < 2:
        raise OptionError("systems", "fewer than two systems share a task", "give two that were scored on one task")
    evidence = _evidence(items, systems, tasks)
    groups = (
        rank_groups(scores, confidence=resampling.confidence, resamples=resampling.resamples, seed=resampling.seed)
        if evidence is None
        else rank_groups(
            *evidence, confidence=resampling.confidence, resamples=resampling.resamples, seed=resampling.seed
        )
    )
    found = tuple(findings(board))
    order = np.lexsort((np.arange(len(systems)), -groups.means))
    frames = {
        "systems": _systems(systems, groups, order),
        "without_task": _without_task(systems, tasks, scores),
        "ways": _ways(systems, scores),
        "trained": _trained(board, systems, tasks, scores),
        "scores": means,
    }
    near = min(_NEIGHBOURS, len(order))
    facts = {
        "systems": board.cells["system"].n_unique(), "tasks": board.cells["task"].n_unique(), "cells": len(board.cells),
        "compared": len(systems), "shared_tasks": len(tasks), "confidence": resampling.confidence,
        "enough": groups.enough, "first_group": int(groups.first.sum()), "leader": systems[order[0]],
        "neighbours": near - 1, "neighbours_told": _told(groups.better, order[:near]),
        "neighbours_alone": _told(groups.alone, order[:near]),
        "rows_of_evidence": len(scores) if evidence is None else len(evidence[0]),
        "chance_over": "Tasks are taken for a sample of tasks of this kind, which they are not: they were chosen."
        if evidence is None else "The tasks are fixed; questions are taken for a sample of questions of their kind.",
        "tasks_compared": tasks, "remarks": list(board.remarks), **_gallery(board),
    }  # fmt: skip
    counts = {name: sum(one.rule is rule for one in found) for name, rule in RULES.items()}
    rows = "tasks" if evidence is None else "questions"
    verdicts = (
        *(_claim(text, board, means, items, resampling.confidence) for text in options.claim),
        order_verdict(facts, rows),
        rows_verdict(counts, facts),
    )
    result = Leaderboard(verdicts, found, frames, facts)
    if out is not None:
        given = inputs_of(source=source)
        with started("leaderboard", given, {"options": options, "resampling": resampling}, out) as job:
            publish(result, job)
            result = replace(result, folder=job.folder)
    return result


def chosen(cells: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One score for each system and task, and those of their items.

    Of several revisions of a system the one with most tasks counts, of several splits of a task the one that most
    systems have.
    """
    size = pl.col("task").n_unique().over("system", "model_revision")
    own = cells.with_columns(size.alias("size")).sort(
        "system", "size", "model_revision", descending=[False, True, False]
    )
    own = own.filter(pl.col("model_revision").eq_missing(pl.col("model_revision").first().over("system")))
    count = pl.col("system").n_unique().over("task", "split")
    own = own.with_columns(count.alias("size")).sort("task", "size", "split", descending=[False, True, True])
    own = own.filter(pl.col("split").eq_missing(pl.col("split").first().over("task")))
    means = own.group_by(_KEY).agg(pl.col("score").mean()).sort(_KEY)
    return means, own.filter(pl.col("item").is_not_null()).select(*_KEY, "item", "score")


def _gallery(board: ScoreBoard) -> dict[str, Any]:
    """The benchmarks of the gallery among the tasks."""
    items = board.cells.group_by("task").agg(pl.col("item").drop_nulls().unique()).sort("task")
    known = [one for task, ids in items.iter_rows() if (one := benchmark_of_task(task, ids)) is not None]
    return {"gallery": [one.json() for one in known]} if known else {}


def _restricted(board: ScoreBoard, options: LeaderboardOptions) -> ScoreBoard:
    cells = board.cells
    for option, column, names in (("tasks", "task", options.tasks), ("systems", "system", options.systems)):
        if names:
            if unknown := set(names) - set(cells[column]):
                known = listed(sorted(set(cells[column]))[:8])
                raise OptionError(option, f"there is no {column} '{min(unknown)}'", f"there are {known}, …")
            cells = cells.filter(pl.col(column).is_in(list(names)))
    return replace(board, cells=cells)


def _evidence(items: pl.DataFrame, systems: list[str], tasks: list[str]) -> tuple[Floats, Floats, Ints] | None:
    """Scores of questions that all systems have, their weights, and the number of their task; None without them."""
    own = items.filter(pl.col("system").is_in(systems) & pl.col("task").is_in(tasks))
    if not len(own):
        return None
    wide = own.pivot("system", index=["task", "item"], values="score").drop_nulls().sort("task", "item")
    counts = wide.group_by("task").len().filter(pl.col("len") > 1)
    if len(counts) < len(tasks) or any(system not in wide.columns for system in systems):
        return None
    number = wide["task"].rank("dense").to_numpy().astype(np.int64) - 1
    weights: Floats = 1 / (len(tasks) * np.bincount(number)[number])
    return wide.select(systems).to_numpy().astype(np.float64), weights, number


def _systems(systems: list[str], groups: RankGroups, order: Ints) -> pl.DataFrame:
    held = letters(order, groups.better | groups.better.T)
    names = [_letter(number) for number in range(len(held))]
    rows = [
        (place + 1, systems[one], float(groups.means[one]), int(groups.low[one]), int(groups.high[one]),
         " ".join(name for name, (start, end) in zip(names, held, strict=True) if start <= place <= end),
         bool(groups.first[one]), place < _SHOWN)
        for place, one in enumerate(order)
    ]  # fmt: skip
    return pl.DataFrame(
        rows,
        {"rank": pl.Int64, "system": pl.String, "mean": pl.Float64, "rank_low": pl.Int64, "rank_high": pl.Int64,
         "letters": pl.String, "first": pl.Boolean, "shown": pl.Boolean},
        orient="row",
    )  # fmt: skip


def _letter(number: int) -> str:
    """a … z, aa, ab, …"""
    more, last = divmod(number, 26)
    return (_letter(more - 1) if more else "") + chr(ord("a") + last)


def _told(better: Any, order: Ints) -> int:
    return int((better[order[:-1], order[1:]] | better[order[1:], order[:-1]]).sum())


def _without_task(systems: list[str], tasks: list[str], scores: Floats) -> pl.DataFrame:
    whole, rows = scores.mean(axis=0), []
    places = _places(whole)
    for number, task in enumerate(tasks if len(tasks) > 1 else ()):
        left = np.delete(scores, number, axis=0).mean(axis=0)
        moves = _places(left) - places
        most = int(np.argmax(np.abs(moves)))
        rows.append((task, kendall(whole, left).tau, systems[int(np.argmax(left))], int(moves[most]), systems[most]))
    schema = {"task": pl.String, "tau": pl.Float64, "leader": pl.String, "move": pl.Int64, "moved": pl.String}
    return pl.DataFrame(rows, schema, orient="row").sort("tau", "task")


def _places(means: Floats) -> Ints:
    order = np.lexsort((np.arange(len(means)), -means))
    places = np.empty(len(means), np.int64)
    places[order] = np.arange(1, len(means) + 1)
    return places


def _ways(systems: list[str], scores: Floats) -> pl.DataFrame:
    whole = scores.mean(axis=0)
    first = set(np.argsort(-whole, kind="stable")[:10].tolist())
    rows = []
    for how in _WAYS:
        values = order_by(scores, how)
        own = np.argsort(-values, kind="stable")
        rows.append((how, kendall(whole, values).tau, systems[int(own[0])], len(first & set(own[:10].tolist()))))
    schema = {"how": pl.String, "tau": pl.Float64, "leader": pl.String, "shared": pl.Int64}
    return pl.DataFrame(rows, schema, orient="row")


def _trained(board: ScoreBoard, systems: list[str], tasks: list[str], scores: Floats) -> pl.DataFrame:
    named, places, rows = trained_tasks(board), _places(scores.mean(axis=0)), []
    for number, system in enumerate(systems):
        own = np.array([task in named.get(system, ()) for task in tasks])
        if own.any():
            rest = None if own.all() else int(_places(scores[~own].mean(axis=0))[number])
            rows.append((system, int(own.sum()), int(places[number]), rest, len(systems)))
    schema = {"system": pl.String, "tasks": pl.Int64, "rank": pl.Int64, "rank_rest": pl.Int64, "compared": pl.Int64}
    return pl.DataFrame(rows, schema, orient="row").sort("rank")


def _claim(text: str, board: ScoreBoard, means: pl.DataFrame, items: pl.DataFrame, confidence: float) -> Verdict:
    """A claim on the tasks that both systems have."""
    parts = [part.strip() for part in text.split(">")]
    known = set(means["system"])
    if len(parts) != 2 or parts[0] == parts[1] or not set(parts) <= known:
        unknown = next((part for part in parts if part not in known), text)
        raise OptionError(
            "claim", f"'{unknown}' is not a system of this board", "write 'A > B' with two of its systems"
        )
    one, other = (means.filter(pl.col("system") == part).select("task", "score") for part in parts)
    both = one.join(other, on="task", suffix="_other").sort("task")
    if not len(both):
        raise OptionError("claim", f"{text}: no task in common", "name systems that were scored on one task")
    named = trained_tasks(board)
    trained = both["task"].is_in([*{task for part in parts for task in named.get(part, ())}])
    sample, rest = (_difference(own, confidence) for own in (both, both.filter(~trained)))
    evidence = _evidence(items.filter(pl.col("system").is_in(parts)), parts, both["task"].to_list())
    fixed = None
    if evidence is not None:
        fixed = _fixed(evidence, confidence)
    return claim_verdict((parts[0], parts[1]), sample, fixed, rest if trained.any() else None)


def _difference(both: pl.DataFrame, confidence: float) -> dict[str, Any]:
    first, second = (both[name].to_numpy().astype(np.float64) for name in ("score", "score_other"))
    found = difference_interval(first, second, confidence=confidence)
    return {"value": found.mean, "low": found.low, "high": found.high, "tasks": len(both),
            "wins": int((first > second).sum()), "losses": int((first < second).sum())}  # fmt: skip


def _fixed(evidence: tuple[Floats, Floats, Ints], confidence: float) -> Mapping[str, float]:
    """The interval of a difference on fixed tasks: a stratified mean over questions."""
    from scipy.special import ndtri

    scores, weights, groups = evidence
    gap = scores[:, 0] - scores[:, 1]
    sizes = np.bincount(groups)
    centre = (np.bincount(groups, gap) / sizes)[groups]
    error = np.sqrt(np.sum((weights * (gap - centre)) ** 2 * (sizes / (sizes - 1))[groups]))
    value, half = float(weights @ gap), float(ndtri((1 + confidence) / 2) * error)
    return {"low": value - half, "high": value + half}


def _pictures(found: Leaderboard) -> Iterator[Picture]:
    rows = found.frames["systems"].head(_DRAWN)
    if len(rows):
        drawn = [
            ForestRow(f"{rank} {system}", rank, low, high, f"{mean:.4f}", "filled")
            for rank, system, mean, low, high in rows.select(
                "rank", "system", "mean", "rank_low", "rank_high"
            ).iter_rows()
        ]
        caption = f"Ranks of the first {len(rows)} systems, with the ranks that the scores do not exclude."
        yield Picture("ranks", caption, forest_plot(drawn, x_label="rank"), "order")
        names, scores = rows["system"].to_list(), found.frames["scores"]
        tasks = scores["task"].unique().sort().to_list()
        values = np.full((len(names), len(tasks)), np.nan)
        held = scores.filter(pl.col("system").is_in(names))
        at = [names.index(one) for one in held["system"]], [tasks.index(one) for one in held["task"]]
        values[at] = held["score"].to_numpy()
        caption = "Scores by task; a missing one is left empty. Darkness is by task: the darker, the higher."
        yield Picture("scores", caption, value_map(names, tasks, values, by_column=True), "order")

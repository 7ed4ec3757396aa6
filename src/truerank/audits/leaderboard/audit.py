"""The command `leaderboard`: which rank is a rank?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final

import polars as pl

from truerank.audits.benchmarks import benchmark_of_task
from truerank.audits.leaderboard.board import ChosenScores, ScoreBoard, block, chosen, read_board, with_types
from truerank.audits.leaderboard.claims import resolved, standings, task_claim
from truerank.audits.leaderboard.comparability import RULES, findings, odd_scales, trained_tasks
from truerank.audits.leaderboard.options import LeaderboardOptions
from truerank.audits.leaderboard.order import (
    SharedScores,
    by_other_ways,
    left_out,
    neighbours_apart,
    places,
    questions_of,
    ranked,
    without_task,
    without_trained,
)
from truerank.audits.leaderboard.verdicts import claim_verdict, order_verdict, rows_verdict, scale_verdict
from truerank.audits.leaderboard.views import LOOK
from truerank.core.audit import Audit, Look
from truerank.core.verdict import Verdict
from truerank.errors import OptionError
from truerank.measures.rank_groups import RankGroups, rank_groups
from truerank.options import Columns, Flag, Out, Resampling, command
from truerank.sources.inputs import inputs_of
from truerank.text.printable import listed
from truerank.work.publishing import publish
from truerank.work.runs import run as started

_SAMPLE: Final = "Tasks are taken for a sample of tasks of this kind, which they are not: they were chosen."
_FIXED: Final = "The tasks are fixed; questions are taken for a sample of their kind."
#: Systems whose neighbours are counted.
_NEIGHBOURS: Final = 50


class Leaderboard(Audit, shown_in="truerank.core.audit"):
    """Which rows of a leaderboard are comparable, and which ranks the scores support.

    `frames["systems"]` has each system's mean, rank and intervals of ranks: of its own pairs, and of all pairs; with
    scores of questions on these tasks, and `frames["kind"]` on other tasks of their kind. `frames["without_task"]` and
    `frames["ways"]` say what the order rests on, `frames["trained"]` has ranks without the tasks that a system was
    trained on, and `frames["left_out"]` the systems that are in no order, each against the first one.
    """

    verdict_words: ClassVar[tuple[str, ...]] = (
        "NOT COMPARABLE", "DOES NOT HOLD", "MIXED", "TIED", "HOLDS EXCEPT", "CANNOT TELL", "COMPARABLE", "FIRST",
        "HOLDS",
    )  # fmt: skip
    look: ClassVar[Look] = LOOK


@command
def leaderboard(
    paths: Annotated[Any, Flag(metavar="PATH", positional=True, reads=list[str])],
    options: LeaderboardOptions = LeaderboardOptions(),
    resampling: Resampling = Resampling(resamples=2_000),
    *,
    columns: Columns = "",
    out: Out = None,
) -> Leaderboard:
    """Finds out which rows of a leaderboard are comparable, and which ranks the scores support.

    Each system gets the ranks that its own pairs do not exclude, and those that all pairs together do not exclude. With
    a score for each task, tasks are taken for a sample of tasks of their kind. With scores of questions, the order is
    on these tasks, with questions as the sample, and on other tasks of their kind.

    Args:
        paths: folders of MTEB results (MODEL/REVISION/TASK.json), or tables of scores with a row for each system, for
            each task, or for each score (columns system, task, score, and item for questions; also measure, split,
            data_revision, tool_version, prompt, type). In Python also frames.
        options: what is compared.
        resampling: random signs, confidence of all intervals together, and seed.
        columns: what columns are, where their names do not say, such as system=Model,task=Data,score=nDCG.
        out: a folder for the page, the tables and the findings.

    Returns:
        The audit.

    Raises:
        InputError: nothing that can be read as scores of systems on tasks.

    Examples:

        truerank leaderboard results/ --out board/

        truerank leaderboard results/ --first 20

        truerank leaderboard scores.csv --claim "mine > baseline"
    """
    board = _restricted(read_board(paths, columns), options)
    odd = odd_scales(board.main)
    cells = board.cells.join(odd, on=["system", "task"], how="anti")
    if cells["system"].n_unique() < 2:
        cells, odd = board.cells, odd.clear()
    scores = chosen(cells)
    whole = SharedScores(*block(scores.means))
    shared = _first(whole, scores, options.first)
    trained = trained_tasks(board)
    orders = _orders(scores, shared, resampling)
    found = tuple(findings(board))
    main = board.main
    why = left_out(main, odd, scores.means, frozenset(whole.systems))
    left = [standings(scores, one["leader"], why, one["noun"], resampling.confidence) for _, one in orders.values()]
    frames = {
        **{name: ranked(shared.systems, groups) for name, (groups, _) in orders.items()},
        "left_out": left[0],
        "without_task": without_task(shared),
        "ways": by_other_ways(shared, board.types, scores),
        "trained": without_trained(shared, trained),
        "scores": scores.means,
    }
    facts = {
        "systems": main["system"].n_unique(), "tasks": main["task"].n_unique(), "cells": len(main),
        "compared": len(shared.systems), "shared_tasks": len(shared.tasks), "confidence": resampling.confidence,
        "orders": {name: fact for name, (_, fact) in orders.items()},
        "chance_over": _FIXED if "kind" in orders else _SAMPLE,
        "left_out": left[0].drop("shown").to_dicts(), "tasks_compared": shared.tasks,
        "training_unknown": len(set(main["system"]) - set(board.trained)),
        "on_another_scale": len(odd), "remarks": list(board.remarks), **_gallery(board),
        "remarks_text": " ".join(board.remarks),
    }  # fmt: skip
    counts = {name: sum(one.rule is rule for one in found) for name, rule in RULES.items()}
    many, sure = len(options.claim), resampling.confidence
    subjects = ("order on these tasks", "order on tasks of this kind") if "kind" in orders else ("order",)
    verdicts = (
        *(_claimed(text, cells, frozenset(odd["system"]), trained, sure, many=many) for text in options.claim),
        *(order_verdict(*one) for one in zip(facts["orders"].values(), subjects, left, strict=True)),
        rows_verdict(counts, facts),
    )
    result = Leaderboard(verdicts, found, frames, facts)
    if out is not None:
        given = inputs_of(paths=paths, types=options.types)
        with started("leaderboard", given, {"options": options, "resampling": resampling}, out) as job:
            publish(result, job)
            result = replace(result, folder=job.folder)
    return result.read_from(board.readings)


def _claimed(
    text: str, cells: pl.DataFrame, odd: frozenset[str], trained: dict[str, frozenset[str]], sure: float, *, many: int
) -> Verdict:
    """Whether a claim holds, by the scores that are on the scale of most."""
    known = frozenset(cells["system"])
    parts = [resolved(part.strip(), known | odd) for part in text.split(">")]
    lost = [part for part in parts if part in odd - known]
    return scale_verdict(parts, lost) if lost else claim_verdict(task_claim(text, cells, trained, sure, many), many)


def _gallery(board: ScoreBoard) -> dict[str, Any]:
    """The benchmarks of the gallery among the tasks."""
    items = board.main.group_by("task").agg(pl.col("item").drop_nulls().unique()).sort("task")
    known = [one for task, ids in items.iter_rows() if (one := benchmark_of_task(task, ids)) is not None]
    return {"gallery": [one.json() for one in known]} if known else {}


def _restricted(board: ScoreBoard, options: LeaderboardOptions) -> ScoreBoard:
    board = board if options.types is None else with_types(board, options.types)
    cells = board.cells
    known = set(cells["system"])
    names = {"tasks": options.tasks, "systems": tuple(resolved(name, known) for name in options.systems)}
    for option, column in (("tasks", "task"), ("systems", "system")):
        if wanted := names[option]:
            if unknown := set(wanted) - set(cells[column]):
                some = listed(sorted(set(cells[column]))[:8])
                raise OptionError(option, f"there is no {column} '{min(unknown)}'", f"there are {some}, …")
            cells = cells.filter(pl.col(column).is_in(list(wanted)))
    return replace(board, cells=cells)


def _first(found: SharedScores, scores: ChosenScores, first: int | None) -> SharedScores:
    """What all compared systems have; of the first ones, what these have."""
    if first is not None and first < len(found.systems):
        own = [system for system, place in zip(found.systems, places(found.means), strict=True) if place <= first]
        means = scores.means.filter(pl.col("system").is_in(own))
        # Tasks that one of the first lacks are left out, and not the system.
        full = means.group_by("task").len().filter(pl.col("len") == len(own))["task"]
        found = SharedScores(*block(means.filter(pl.col("task").is_in(full.implode()))))
    if len(found.systems) < 2:
        raise OptionError("systems", "fewer than two systems share a task", "give two that were scored on one task")
    return found


def _orders(
    scores: ChosenScores, shared: SharedScores, resampling: Resampling
) -> dict[str, tuple[RankGroups, Mapping[str, Any]]]:
    """Rank groups and their facts: with questions on these tasks and on others, otherwise on others."""
    questions = questions_of(scores.items, shared.systems, shared.tasks)
    how: dict[str, Any] = vars(resampling)
    found: dict[str, tuple[RankGroups, str, int]] = {}
    if questions is not None:
        found["systems"] = (rank_groups(*questions, **how), "questions", len(questions.scores))
    name = "systems" if questions is None else "kind"
    found[name] = (rank_groups(shared.scores, **how), "tasks", len(shared.tasks))
    return {name: (groups, _facts(groups, shared, *rest)) for name, (groups, *rest) in found.items()}


def _facts(groups: RankGroups, shared: SharedScores, noun: Any, rows: Any) -> Mapping[str, Any]:
    return {
        "noun": noun, "rows": rows, "enough": groups.enough, "first_group": int(groups.first.sum()),
        "compared": len(shared.systems), "leader": shared.systems[int(places(groups.means).argmin())],
        "tasks": len(shared.tasks), **neighbours_apart(groups, _NEIGHBOURS),
    }  # fmt: skip

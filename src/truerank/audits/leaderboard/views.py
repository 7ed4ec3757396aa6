"""Tables and pictures of a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from truerank.audits.leaderboard.comparability import RULES
from truerank.core.audit import Audit, Look
from truerank.core.figures.export import Picture
from truerank.core.figures.forest import ForestRow, forest_plot
from truerank.core.figures.heat_maps import value_map
from truerank.core.views import View, columns

_DRAWN: Final = 40
_RANKS: Final = columns(
    "rank:d, system, mean:.4f, best rank=own_low:d, worst rank=own_high:d, best of all=rank_low:d, "
    "worst of all=rank_high:d"
)
_LEFT: Final = columns("system, why, shared tasks=tasks:d, difference~+.4f")
_MINUS: Final = "Each minus the first one, on the tasks that both have; {confidence:.0%} for one system that you name."
_NOTES: Final = (
    "Best and worst rank: not excluded by the pairs of this system. {confidence:.0%} for one system that you named "
    "before you saw the scores, and not for the one that these scores put first.",
    "Best and worst of all: not excluded by all pairs, {confidence:.0%} for all systems together.",
)


def pictures(found: Audit) -> Iterator[Picture]:
    """Ranks with their intervals, and scores by task with holes."""
    rows = found.frames["systems"].head(_DRAWN)
    if not len(rows):
        return
    for ends, name, what in (
        ("own", "ranks", "the pairs of this system do not exclude"),
        ("rank", "ranks_of_all", "all pairs together do not exclude"),
    ):  # fmt: skip
        fields = ("rank", "system", "mean", f"{ends}_low", f"{ends}_high")
        drawn = [
            ForestRow(f"{rank} {system}", rank, low, high, f"{mean:.4f}", "filled")
            for rank, system, mean, low, high in rows.select(fields).iter_rows()
        ]
        caption = f"Ranks of the first {len(rows)} systems, with the ranks that {what}."
        yield Picture(name, caption, forest_plot(drawn, x_label="rank"), "order")
    names, scores = rows["system"].to_list(), found.frames["scores"]
    tasks = scores["task"].unique().sort().to_list()
    values = np.full((len(names), len(tasks)), np.nan)
    places = {name: number for number, name in enumerate(names)}
    for system, task, score in scores.select("system", "task", "score").iter_rows():
        if system in places:
            values[places[system], tasks.index(task)] = score
    caption = "Scores by task; a missing one is left empty. Darkness is by task: the darker, the higher."
    yield Picture("scores", caption, value_map(names, tasks, values, by_column=True), "order")


LOOK: Final = Look(
    "Which rank is a rank?",
    "{systems:,} systems on {tasks:,} tasks; compared: {compared:,} systems on the {shared_tasks:,} tasks that "
    "all of them have. {remarks_text}",
    rules=RULES,
    views=(
        View(
            "first", "systems", "The first systems, and the ranks that the scores do not exclude", _RANKS,
            (*_NOTES, "{chance_over}"), section="order", where={"shown": True},
        ),
        View("systems", "systems", "All systems", _RANKS, section="order", place="page", by="system"),
        View(
            "left_first", "left_out", "Left out of the order, against the first one", _LEFT, (_MINUS,),
            section="order", where={"shown": True},
        ),
        View("left_out", "left_out", "All that are left out", _LEFT, section="order", place="page", by="system"),
        View(
            "kind", "kind", "The order on other tasks of this kind", _RANKS,
            (*_NOTES, "Tasks, with their questions, are taken for a sample of tasks of this kind."),
            section="order", place="page", by="system",
        ),
        View(
            "without_task", "without_task", "The order without one task",
            columns("without=task, τ with the order on all=tau:.3f, first=leader, largest move=move:d, of=moved"),
            section="rests", place="page",
        ),
        View(
            "ways", "ways", "The order by another average or measure",
            columns("by=how, systems=compared:d, τ with the mean=tau:.3f, first=leader, "
                    "in the first ten as well=shared:d"),
            section="rests", place="page",
        ),
        View(
            "trained", "trained", "Systems that were trained on tasks, as they say",
            columns("system, tasks:d, rank on all=rank:d, rank on the others=rank_rest:d, of systems=compared:d"),
            ("Ranks are among all systems, by the mean over the tasks that this system was not trained on. "
             "{training_unknown:,} systems do not say what they were trained on.",),
            section="trained", place="page", by="system",
        ),
    ),
    sections={"order": "The order", "rests": "What the order rests on", "trained": "Training on tasks"},
    pictures=pictures,
)  # fmt: skip

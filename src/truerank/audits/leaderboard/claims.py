"""Claims that one system is better than another: on these tasks, and on another task of their kind."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.audits.leaderboard.board import ChosenScores, chosen
from truerank.audits.leaderboard.order import SHOWN, Questions, questions_of
from truerank.errors import OptionError
from truerank.measures.magnitudes import difference_interval, too_few


class TaskDifference(NamedTuple):
    """A mean difference over tasks, with its interval where there is one; `few` says why there is none.

    `fixed` holds the ends for questions of their kind on these tasks, where there are scores of questions.
    """

    value: float
    low: float | None
    high: float | None
    tasks: int
    wins: int
    losses: int
    fixed: tuple[float, float] | None = None
    few: str = ""


class TaskClaim(NamedTuple):
    """A claim on the tasks that both systems have, and on those of them that neither was trained on (None: all)."""

    system: str
    baseline: str
    every: TaskDifference
    untrained: TaskDifference | None


def task_claim(
    text: str, cells: pl.DataFrame, trained: dict[str, frozenset[str]], confidence: float, claims: int = 1
) -> TaskClaim:
    """The claim of a text, "A > B".

    Args:
        text: the claim.
        cells: the scores; of both systems the split that both have counts, whatever others have.
        trained: the tasks that a system was trained on, by system.
        confidence: of all intervals together.
        claims: that are tested together.

    Raises:
        OptionError: it does not name two systems that share a task.
    """
    known = set(cells["system"])
    parts = [resolved(part.strip(), known) for part in text.split(">")]
    if len(parts) != 2 or parts[0] == parts[1] or not set(parts) <= known:
        unknown = next((part for part in parts if part not in known), text)
        raise OptionError(
            "claim", f"'{unknown}' is not a system of this board", "write 'A > B' with two of its systems"
        )
    own = chosen(cells.filter(pl.col("system").is_in(parts)))
    both = _shared(own.means, *parts)
    if not len(both):
        raise OptionError("claim", f"{text}: no task in common", "name systems that were scored on one task")
    seen = both["task"].is_in([*{task for part in parts for task in trained.get(part, ())}])

    def found(tasks: pl.DataFrame) -> TaskDifference:
        """The difference; of too few tasks that differ there is no interval for another one."""
        difference = _difference(tasks, own.items, parts, 1 - (1 - confidence) / claims)
        few = too_few((tasks["score"] - tasks["score_other"]).to_numpy(), confidence, "task")
        return difference._replace(low=None, high=None, few=few) if few else difference

    every, untrained = found(both), found(both.filter(~seen)) if seen.any() else None
    return TaskClaim(parts[0], parts[1], every, untrained)


def standings(scores: ChosenScores, leader: str, why: Mapping[str, str], noun: str, confidence: float) -> pl.DataFrame:
    """The systems that are left out of an order, by `why`, each minus its first one on the tasks that both have.

    Intervals are over tasks, or over questions where `noun` says so and both systems have them; each holds by itself.
    """
    rows = []
    for system, reason in why.items():
        found = _difference(_shared(scores.means, system, leader), scores.items, [system, leader], confidence)
        ends = (noun == "questions" and found.fixed) or (found.low, found.high)
        rows.append((system, reason, found.tasks, found.value if found.tasks else None, *ends))
    numbers = dict.fromkeys(("difference", "difference_low", "difference_high"), pl.Float64)
    schema = {"system": pl.String, "why": pl.String, "tasks": pl.Int64, **numbers}
    frame = pl.DataFrame(rows, schema, orient="row").sort("difference", descending=True, nulls_last=True)
    return frame.with_columns(shown=pl.int_range(pl.len()) < SHOWN)


def _shared(means: pl.DataFrame, system: str, other: str) -> pl.DataFrame:
    """The scores of two systems on the tasks that both have."""
    one, two = (means.filter(pl.col("system") == name).select("task", "score") for name in (system, other))
    return one.join(two, on="task", suffix="_other").sort("task")


def resolved(name: str, known: Set[str]) -> str:
    """The system that a name means: as the board writes it, with a slash for MTEB's two underscores, or without the
    organisation where only one system ends so."""
    if name in known or (name := name.replace("/", "__")) in known:
        return name
    ending = [one for one in known if one.endswith(f"__{name}")]
    return ending[0] if len(ending) == 1 else name


def _difference(both: pl.DataFrame, items: pl.DataFrame, systems: list[str], confidence: float) -> TaskDifference:
    first, second = (both[name].to_numpy().astype(np.float64) for name in ("score", "score_other"))
    found = difference_interval(first, second, confidence=confidence)
    questions = questions_of(items, systems, both["task"].to_list()) if len(both) else None
    fixed = None if questions is None else on_fixed_tasks(questions, confidence)
    value = float(np.mean(first - second)) if len(both) else np.nan
    wins, losses = int((first > second).sum()), int((first < second).sum())
    return TaskDifference(value, found.low, found.high, len(both), wins, losses, fixed)


def on_fixed_tasks(questions: Questions, confidence: float) -> tuple[float, float]:
    """The interval of the difference of two systems on fixed tasks: of a stratified mean over questions."""
    gap = questions.scores[:, 0] - questions.scores[:, 1]
    sizes = np.bincount(questions.tasks)
    centre = (np.bincount(questions.tasks, gap) / sizes)[questions.tasks]
    spread = (sizes / (sizes - 1))[questions.tasks]
    error = float(np.sqrt(np.sum((questions.weights * (gap - centre)) ** 2 * spread)))
    value, half = float(questions.weights @ gap), float(scipy.special.ndtri((1 + confidence) / 2)) * error
    return value - half, value + half

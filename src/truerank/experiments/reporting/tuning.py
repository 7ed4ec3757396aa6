"""Five-fold cross-validation of a row: the size, or the training, that is best on the other folds ranks each fold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.experiments.reporting.board import Board, BoardRow, size_name
from truerank.experiments.reporting.options import Choose
from truerank.measures import Evaluation, FoldChoice
from truerank.measures.cross_validation import choose

Floats = NDArray[np.float64]


class Tuned(NamedTuple):
    """A row under one condition, tuned for each measure by itself.

    Attributes:
        values: by topic, shape (measures, topics): each topic's value comes from the setting chosen for its fold.
        choices: by measure and fold.
        settings: what was chosen between.
        seeds: the seeds that all settings have; empty where single trainings are chosen between.
        by_seed: means of each of these seeds alone under the same choices, shape (seeds, measures). Their mean is that
            of `values` where every setting has no other seeds.
        runs: means of the single trainings that there are to choose from, shape (trainings, measures), all sizes.
    """

    values: Floats
    choices: tuple[FoldChoice, ...]
    settings: tuple[str, ...]
    seeds: tuple[int, ...]
    by_seed: Floats
    runs: Floats

    def chosen(self, measure: str) -> str:
        """The settings chosen by a measure, and in how many folds each."""
        counts = Counter(choice.setting for choice in self.choices if choice.measure == measure)
        return ", ".join(f"{name} ×{count}" for name, count in counts.items())


def tuned(board: Board, row: BoardRow, condition: str, sizes: Sequence[int], mode: Choose) -> Tuned:
    """Tunes a row under one condition.

    Source: leakage paper, section 4 (a grid search over sizes); transfer paper, section 6 (over ten trainings).
    """
    trained = board.trained(row, condition)
    sizes = sizes if trained else board.sizes(row, condition)
    cells = board.of(row, condition).filter(pl.col("size").is_in(list(sizes)))
    runs = board.evaluation(cells["cell"].to_list(), list(board.values(cells["cell"].to_list())))
    if mode == "runs":
        named = board.evaluation(_run_names(cells), list(runs.values))
        choices = choose(named, board.folds)
        values = _picked(named, choices, board)
        return Tuned(values, choices, named.runs, (), np.zeros((0, len(named.measures))), runs.mean)
    settings = board.seed_means(row, condition, sizes)
    if not trained:
        settings = board.evaluation(["no training"], list(settings.values))
    choices = choose(settings, board.folds)
    # What is not trained varies with no seed.
    seeds = _shared_seeds(cells, sizes) if trained else ()
    alone = [_of_seed(board, cells, sizes, seed) for seed in seeds]
    picked = [_picked(one, choices, board) for one in alone]
    by_seed = board.evaluation([str(seed) for seed in seeds], picked).mean
    return Tuned(_picked(settings, choices, board), choices, settings.runs, seeds, by_seed, runs.mean)


def _picked(settings: Evaluation, choices: Sequence[FoldChoice], board: Board) -> Floats:
    """Each topic's values from the setting chosen for its fold, shape (measures, topics)."""
    topics = np.array(settings.topics)
    found = np.full(settings.values.shape[1:], np.nan)
    for choice in choices:
        measure = settings.measures.index(choice.measure)
        inside = np.isin(topics, np.array(board.folds[choice.fold - 1]))
        found[measure, inside] = settings.values[settings.runs.index(choice.setting), measure, inside]
    return found


def _of_seed(board: Board, cells: pl.DataFrame, sizes: Sequence[int], seed: int) -> Evaluation:
    own = cells.filter(pl.col("seed") == seed)
    values = [board.values(own.filter(pl.col("size") == size)["cell"].to_list()).mean(axis=0) for size in sizes]
    return board.evaluation([size_name(size) for size in sizes], values)


def _shared_seeds(cells: pl.DataFrame, sizes: Sequence[int]) -> tuple[int, ...]:
    by_size = [set(cells.filter(pl.col("size") == size)["seed"].to_list()) for size in sizes]
    return tuple(sorted(set.intersection(*by_size))) if by_size else ()


def _run_names(cells: pl.DataFrame) -> list[str]:
    """What tells trainings apart, as far as it differs among them."""
    parts = {"model": "{}", "variant": "{}", "size": "{}", "seed": "seed {}"}
    shown = {name: form for name, form in parts.items() if cells[name].n_unique() > 1 or name == "seed"}
    # A model that is there in one variant says which.
    if cells.select("model", "variant").n_unique() == cells["model"].n_unique():
        shown.pop("variant", None)
    return [" ".join(form.format(row[name]) for name, form in shown.items()) for row in cells.iter_rows(named=True)]

"""Folds of topics, and a grid search that chooses on the training folds what ranks the topics of the test fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.core.plain import picked
from truerank.core.tables import Table
from truerank.core.views import heads
from truerank.errors import InputError
from truerank.loading import load_json
from truerank.measures.folds import Folds, first_twice, folds
from truerank.measures.grammar import lower_is_better
from truerank.measures.results import Evaluation
from truerank.measures.scoring import evaluate
from truerank.sources import compressed, read_qrels_frame
from truerank.sources.lines import whole_text

_SAME_DECIMALS: Final = 12
#: Ranks topics under parameters: (parameters, topics) -> run, columns as in `sources.runs.RUN_SCHEMA`.
Ranker = Callable[[Mapping[str, Any], tuple[str, ...]], pl.DataFrame]


def read_folds(file: str | Path) -> Folds:
    """Reads folds from JSON, a list of lists of topics, compressed or not.

    Args:
        file: the file.

    Returns:
        The topics of each fold, as they are there.

    Raises:
        InputError: not readable, another shape, fewer than two folds, or a topic in two of them.
    """
    path = compressed.checked_file(Path(file))
    value = load_json(whole_text(path)[0], path, remedy="write a JSON list of lists of topics")
    if not isinstance(value, list) or not all(isinstance(fold, list) for fold in value):
        raise InputError("no list of lists of topics", "write one list for each fold", where=path)
    found = tuple(tuple(map(str, fold)) for fold in value)
    if len(found) < 2:
        raise InputError(f"{len(found)} fold is too few", "cross-validation needs 2 or more", where=path)
    every = [topic for fold in found for topic in fold]
    if len(set(every)) < len(every):
        raise InputError(f"the topic {first_twice(every)} is there twice", "give it one fold", where=path)
    return found


class FoldChoice(NamedTuple):
    """What was chosen for one fold by one measure.

    Attributes:
        measure: its name.
        fold: its number, from 1.
        topics: number of judged topics of the fold.
        setting: the setting that is best on the other folds.
        train: its mean on the other folds.
        test: its mean on the topics of this fold.
        tied: settings that are as good on the other folds and come later.
    """

    measure: str
    fold: int
    topics: int
    setting: str
    train: float
    test: float
    tied: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The settings that a grid search chose, fold by fold, and the run that came of it.

    Attributes:
        folds: the topics of each fold.
        settings: the settings in the order in which they were given.
        choices: by fold.
        run: the merged run, with the columns of a run; a topic's results are those of the setting chosen for its fold.
        grid: every setting on all topics.
        unjudged: topics of the folds without judgments.
    """

    folds: Folds
    settings: tuple[str, ...]
    choices: tuple[FoldChoice, ...]
    run: pl.DataFrame
    grid: Evaluation
    unjudged: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """Everything but the run, as plain numbers and texts."""
        return picked(self, "folds, settings, unjudged, choices, grid")


def cross_validate(
    qrels: str,
    settings: Sequence[Mapping[str, Any]],
    measure: str,
    *,
    rank: Ranker,
    k: int | str | Path = 5,
    seed: int = 0,
) -> CrossValidation:
    """Chooses a setting for each fold on the other folds, and merges what it ranks.

    Runs are made one after the other: first all of them to be scored, then the chosen ones again for the topics of
    their folds.

    Args:
        qrels: relevance judgments; the choice is over their topics.
        settings: the grid: one mapping of parameters each.
        measure: what is optimised.
        rank: ranks topics under one setting; called with all topics of the folds, and again with some of them, for
            which it should then give the same.
        k: number of folds, or a file of them (see `read_folds`).
        seed: of the division into folds.

    Returns:
        The choices, the merged run, and the scores of the grid.

    Raises:
        InputError: a setting that is there twice, a fault in a run, topics of the qrels that no fold has, or a fold
            without judgments.

    Source: leakage paper, section 4 (five folds, a grid search over sizes of the training set).
    """
    by_name = {" ".join(f"{name}={value}" for name, value in setting.items()): setting for setting in settings}
    if len(by_name) < len(settings):
        raise InputError("a setting is there twice", "give every setting once")
    judged = read_qrels_frame(qrels)
    topics = tuple(judged["topic_id"].unique(maintain_order=True).to_list())
    divided = _divided(k, topics, seed)
    every = tuple(dict.fromkeys([*topics, *(topic for fold in divided for topic in fold)]))
    scores = joined([evaluate(judged, {name: rank(one, every)}, measure) for name, one in by_name.items()])
    choices = choose(scores, divided)
    run = _merged(by_name, rank, divided, choices, every)
    unjudged = tuple(topic for topic in every if topic not in set(topics))
    return CrossValidation(divided, tuple(by_name), choices, run, scores, unjudged)


def choose(scores: Evaluation, divided: Folds) -> tuple[FoldChoice, ...]:
    """Chooses one of several runs for each fold on the other folds, for each measure by itself, from their scores."""
    _matching(divided, scores.topics)
    return tuple(choice for measure in scores.measures for choice in _choices(scores, divided, measure))


def _divided(k: int | str | Path, topics: tuple[str, ...], seed: int) -> Folds:
    return folds(topics, k, seed) if isinstance(k, int) else _matching(read_folds(k), topics, k)


def _matching(divided: Folds, topics: tuple[str, ...], where: str | Path | None = None) -> Folds:
    """The folds, if they have all topics, and topics of each are judged."""
    held = {topic for fold in divided for topic in fold}
    if absent := [topic for topic in topics if topic not in held]:
        fault = f"{len(absent):,} topics of the qrels are in no fold, such as {absent[0]}"
        raise InputError(fault, "add them, or remove their judgments", where=where)
    for number, fold in enumerate(divided, start=1):
        if not set(topics).intersection(fold):
            raise InputError(f"no topic of fold {number} has judgments", "give matching folds", where=where)
    return divided


def joined(evaluations: Sequence[Evaluation]) -> Evaluation:
    """The scores of all runs as one evaluation; they were made some at a time to keep memory small."""
    runs = tuple(run for one in evaluations for run in one.runs)
    missing = {run: count for one in evaluations for run, count in one.missing.items()}
    values = np.concatenate([one.values for one in evaluations])
    return replace(evaluations[0], runs=runs, values=values, missing=missing, coverage={}, inputs={})


def _choices(scores: Evaluation, divided: Folds, measure: str) -> Iterator[FoldChoice]:
    """The best setting of each fold by one measure."""
    column, minimised = scores.measures.index(measure), lower_is_better(measure)
    for number, fold in enumerate(divided, start=1):
        inside = np.isin(np.array(scores.topics), np.array(fold))
        train, test = _means(scores, ~inside)[:, column], _means(scores, inside)[:, column]
        # Sums in another order differ in the last bit; such settings are as good as each other.
        key = np.round(train if minimised else -train, _SAME_DECIMALS)
        key = np.where(np.isnan(key), np.inf, key)
        best = int(np.argmin(key))
        tied = tuple(scores.runs[place] for place in np.flatnonzero(key == key[best]) if place != best)
        yield FoldChoice(
            measure, number, int(inside.sum()), scores.runs[best], float(train[best]), float(test[best]), tied
        )


def _means(scores: Evaluation, topics: NDArray[np.bool_]) -> NDArray[np.float64]:
    """One number per setting and measure over some topics, made as the measure asks for."""
    kept = tuple(topic for topic, inside in zip(scores.topics, topics, strict=True) if inside)
    return replace(scores, topics=kept, values=scores.values[:, :, topics]).mean


def _merged(
    settings: Mapping[str, Mapping[str, Any]],
    rank: Ranker,
    divided: Folds,
    choices: Sequence[FoldChoice],
    every: tuple[str, ...],
) -> pl.DataFrame:
    """The results of each fold's topics from the setting that was chosen for it, in the order of the topics."""
    needed: dict[str, set[str]] = {}
    for choice in choices:
        needed.setdefault(choice.setting, set()).update(divided[choice.fold - 1])
    parts = [
        rank(settings[name], tuple(topic for topic in every if topic in topics)) for name, topics in needed.items()
    ]
    order = pl.DataFrame({"topic_id": every, "place": range(len(every))})
    joined = pl.concat(parts).join(order, on="topic_id", how="left", maintain_order="left")
    return joined.sort("place", maintain_order=True).drop("place")


def choice_table(validation: CrossValidation) -> Table:
    """One row per fold."""
    columns = heads("measure, fold:d, topics:,d, chosen, mean|other_folds:.4f, mean|this_fold:.4f, as_good")
    rows = tuple((*choice[:6], ", ".join(choice.tied)) for choice in validation.choices)
    notes = [
        f"{len(validation.settings):,} settings, {len(validation.folds):,} folds.",
        "The best mean on the other folds is chosen; of equal ones the first in the given order.",
    ]
    if validation.unjudged:
        notes.append(f"{len(validation.unjudged):,} topics of the folds have no judgments.")
    return Table("Settings chosen by cross-validation.", columns, rows, notes=tuple(notes))

"""Folds of topics, and a grid search that chooses on the training folds what ranks the topics of the test fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from truerank.loading import load_json, whole_number
from truerank.measures.folds import Folds, first_twice, folds
from truerank.measures.grammar import lower_is_better
from truerank.measures.results import Evaluation
from truerank.measures.scoring import evaluate
from truerank.sources import compressed, read_qrels_frame
from truerank.sources.lines import numbered_lines, whole_text

_REMEDY: Final = "write a JSON list of lists of topics, Capreolus' object, or lines: topic TAB fold"
_SAME_DECIMALS: Final = 12
#: Ranks topics under parameters: (parameters, topics) -> run, columns as in `sources.runs.RUN_SCHEMA`.
Ranker = Callable[[Mapping[str, Any], tuple[str, ...]], pl.DataFrame]


def read_folds(file: str | Path) -> Folds:
    """Reads folds from JSON or from lines, compressed or not.

    JSON: a list of lists of topics (as Anserini has them), or Capreolus' object of `{"predict": {"test": [topics]}}` by
    fold. Lines: topic, blank or tab, fold.

    Args:
        file: the file.

    Returns:
        The topics of each fold as they are there; folds in the order of the JSON, or by number or name.

    Raises:
        InputError: not readable, another shape, fewer than two folds, or a topic in two of them.
    """
    path = compressed.checked_file(Path(file))
    if compressed.head(path).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{"):
        value = load_json(whole_text(path)[0], path, remedy=_REMEDY)
        parts = value if isinstance(value, list) else [_test_part(fold, path) for fold in value.values()]
        return checked_folds([_topics(fold, path) for fold in parts], path)
    by_fold: dict[str, list[str]] = {}
    for line in numbered_lines(path):
        cells = line.text.split()
        if cells and len(cells) != 2:
            raise InputError(f"{len(cells)} columns instead of 2", "write topic TAB fold", where=path, line=line.number)
        if cells:
            by_fold.setdefault(cells[1], []).append(cells[0])
    return checked_folds([by_fold[name] for name in sorted(by_fold, key=_number_first)], path)


def checked_folds(given: Iterable[Iterable[str]], where: str | Path | None = None) -> Folds:
    """Folds that can be used."""
    found = tuple(tuple(fold) for fold in given)
    if len(found) < 2:
        raise InputError(f"{len(found)} fold is too few", "cross-validation needs 2 or more", where=where)
    if empty := [number for number, fold in enumerate(found, start=1) if not fold]:
        raise InputError(f"fold {empty[0]} is empty", "leave it out or fill it", where=where)
    every = [topic for fold in found for topic in fold]
    if len(set(every)) < len(every):
        raise InputError(f"the topic {first_twice(every)} is there twice", "give it one fold", where=where)
    return found


def _test_part(fold: Any, path: Path) -> Any:
    predict = fold.get("predict") if isinstance(fold, dict) else None
    if not isinstance(predict, dict) or "test" not in predict:
        raise InputError('a fold without {"predict": {"test": [topics]}}', _REMEDY, where=path)
    return predict["test"]


def _topics(fold: Any, path: Path) -> list[str]:
    if not isinstance(fold, list) or not all(isinstance(topic, str | int) for topic in fold):
        raise InputError("a fold that is not a list of topics", _REMEDY, where=path)
    return [str(topic) for topic in fold]


def _number_first(name: str) -> tuple[int, int, str]:
    number = whole_number(name)
    return (1, 0, name) if number is None else (0, number, name)


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
        origin: where the folds come from, in words.
    """

    folds: Folds
    settings: tuple[str, ...]
    choices: tuple[FoldChoice, ...]
    run: pl.DataFrame
    grid: Evaluation
    unjudged: tuple[str, ...]
    origin: str

    def json(self) -> dict[str, Any]:
        """Everything but the run, as plain numbers and texts."""
        return picked(self, "folds, origin, settings, unjudged, choices, grid")


def cross_validate(
    qrels: str,
    settings: Sequence[Mapping[str, Any]],
    measure: str,
    *,
    rank: Ranker,
    k: int | str | Path | Iterable[Iterable[str]] = 5,
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
        k: number of folds; or the folds themselves, or a file of them (see `read_folds`).
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
    divided, origin = _divided(k, topics, seed)
    every = tuple(dict.fromkeys([*topics, *(topic for fold in divided for topic in fold)]))
    scores = _joined([evaluate(judged, {name: rank(one, every)}, measure) for name, one in by_name.items()])
    choices = choose(scores, divided)
    run = _merged(by_name, rank, divided, choices, every)
    unjudged = tuple(topic for topic in every if topic not in set(topics))
    return CrossValidation(divided, tuple(by_name), choices, run, scores, unjudged, origin)


def choose(scores: Evaluation, divided: Folds) -> tuple[FoldChoice, ...]:
    """Chooses one of several runs for each fold on the other folds, for each measure by itself, from their scores."""
    checked, _ = _divided(divided, scores.topics, 0)
    return tuple(choice for measure in scores.measures for choice in _choices(scores, checked, measure))


def _divided(k: int | str | Path | Iterable[Iterable[str]], topics: tuple[str, ...], seed: int) -> tuple[Folds, str]:
    """The folds and where they come from."""
    if isinstance(k, int):
        return folds(topics, k, seed), f"drawn with the seed {seed}"
    where = k if isinstance(k, str | Path) else None
    divided = read_folds(where) if where is not None else checked_folds(k)  # type: ignore[arg-type]
    held = {topic for fold in divided for topic in fold}
    if absent := [topic for topic in topics if topic not in held]:
        raise InputError(
            f"{len(absent):,} topics of the qrels are in no fold, such as {absent[0]}",
            "add them, or remove their judgments",
            where=where,
        )
    judged = set(topics)
    for number, fold in enumerate(divided, start=1):
        if not judged.intersection(fold):
            raise InputError(f"no topic of fold {number} has judgments", "give matching folds", where=where)
    return divided, "given" if where is None else f"from {Path(where).name}"


def _joined(evaluations: Sequence[Evaluation]) -> Evaluation:
    """The scores of all settings as one evaluation; they were made one by one to keep memory small."""
    first = evaluations[0]
    return replace(
        first,
        runs=tuple(run for one in evaluations for run in one.runs),
        values=np.concatenate([one.values for one in evaluations]),
        missing={run: count for one in evaluations for run, count in one.missing.items()},
        coverage={run: found for one in evaluations for run, found in one.coverage.items()},
        inputs={},
    )


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
        f"{len(validation.settings):,} settings, {len(validation.folds):,} folds ({validation.origin}).",
        "The best mean on the other folds is chosen; of equal ones the first in the given order.",
    ]
    if validation.unjudged:
        notes.append(f"{len(validation.unjudged):,} topics of the folds have no judgments.")
    return Table("Settings chosen by cross-validation.", columns, rows, notes=tuple(notes))

"""Folds of topics, and a grid search that chooses on the training folds what ranks the topics of the test fold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.core.plain import picked
from truerank.core.result import Result, Summary, summarises, writes
from truerank.core.tables import Table, group_starts
from truerank.core.views import heads
from truerank.errors import InputError
from truerank.loading import load_json, whole_number
from truerank.measures.folds import Folds, first_twice, folds
from truerank.measures.grammar import MeasureSpec, lower_is_better
from truerank.measures.report import evaluation_table
from truerank.measures.results import Evaluation
from truerank.measures.scoring import QrelSource, evaluate
from truerank.options import Out, Scoring
from truerank.records import RunRow
from truerank.sources import SourceSpec, compressed, read_qrels_frame, read_run_frame
from truerank.sources.inputs import input_of
from truerank.sources.lines import numbered_lines, whole_text
from truerank.sources.qrels import QREL_SCHEMA
from truerank.sources.runs import RUN_SCHEMA
from truerank.work.publishing import publish
from truerank.work.runs import Run as Job
from truerank.work.runs import run as started

_REMEDY: Final = "write a JSON list of lists of topics, an object {fold: [topics]}, or lines: topic TAB fold"


def read_folds(file: str | Path) -> Folds:
    """Reads folds from JSON or from lines, compressed or not.

    JSON: a list of lists of topics (as Anserini has them), an object of lists by fold, an object with the fold of each
    topic, or Capreolus' object of `{"predict": {"test": [topics]}}` by fold. Lines: topic, blank or tab, fold.

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
        return checked_folds(_of_json(value, path), path)
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


def _of_json(value: Any, path: Path) -> list[list[str]]:
    if isinstance(value, list):
        return [_topics(fold, path) for fold in value]
    if isinstance(value, dict) and value:
        if all(isinstance(fold, list) for fold in value.values()):
            return [_topics(fold, path) for fold in value.values()]
        if all(isinstance(fold, dict) for fold in value.values()):
            return [_topics(_test_part(fold, path), path) for fold in value.values()]
        if all(isinstance(fold, str | int) for fold in value.values()):
            names = sorted({str(fold) for fold in value.values()}, key=_number_first)
            return [[topic for topic, fold in value.items() if str(fold) == name] for name in names]
    raise InputError("no folds", _REMEDY, where=path)


def _test_part(fold: dict[str, Any], path: Path) -> Any:
    predict = fold.get("predict")
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


Run = str | Path | pl.DataFrame | Iterable[RunRow]
#: Ranks topics under parameters: (params, topics) -> run.
Ranker = Callable[[Mapping[str, Any], tuple[str, ...]], Run]

_SAME_DECIMALS: Final = 12


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


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Result, shown_in="truerank_lab.cross_validation"):
    """The settings that a grid search chose, fold by fold and measure by measure, and the runs that came of it.

    Attributes:
        folds: the topics of each fold.
        settings: the settings in the order in which they were given.
        choices: by measure and fold.
        runs: by measure, the merged run, with the columns of a run; a topic's results are those of the setting chosen
            for its fold.
        evaluation: the merged runs, called "tuned for MEASURE", by all measures.
        grid: every setting on all topics, by all measures.
        minimised: the measures of which the lowest mean was chosen.
        unjudged: topics of the folds without judgments.
        origin: where the folds come from, in words.
    """

    folds: Folds
    settings: tuple[str, ...]
    choices: tuple[FoldChoice, ...]
    runs: Mapping[str, pl.DataFrame]
    evaluation: Evaluation
    grid: Evaluation
    minimised: tuple[str, ...]
    unjudged: tuple[str, ...]
    origin: str

    def score(self, measure: str) -> float:
        """The mean of the run that was tuned for a measure, by that measure.

        Raises:
            InputError: there is no such measure.
        """
        measures, runs = self.evaluation.measures, self.evaluation.runs
        if measure not in measures:
            raise InputError(f"there is no measure '{measure}'", f"one of {', '.join(measures)}")
        return float(self.evaluation.mean[runs.index(_name(measure)), measures.index(measure)])

    def sentences(self) -> tuple[str, ...]:
        """How the choice was made, one sentence each."""
        found = [
            f"{len(self.settings):,} settings, {len(self.folds):,} folds ({self.origin}).",
            "The best mean on the other folds is chosen; of equal ones the first in the given order.",
        ]
        if self.minimised:
            found.append(f"Lower is better: {', '.join(self.minimised)}.")
        if self.unjudged:
            found.append(f"{len(self.unjudged):,} topics of the folds have no judgments.")
        return tuple(found)

    def json(self) -> dict[str, Any]:
        """Everything but the runs, as plain numbers and texts."""
        return picked(self, "folds, origin, settings, minimised, unjudged, choices, scores=evaluation, grid")


def cross_validate(
    qrels: QrelSource,
    settings: Mapping[str, Run] | Sequence[Mapping[str, Any]],
    measures: MeasureSpec = "nDCG@10",
    *,
    rank: Ranker | None = None,
    k: int | str | Path | Iterable[Iterable[str]] = 5,
    seed: int = 0,
    policy: Scoring | None = None,
    minimise: Iterable[str] | None = None,
    out: Out = None,
) -> CrossValidation:
    """Chooses a setting for each fold on the other folds, for each measure by itself, and merges what it ranks.

    Runs are read, or made, one after the other: first all of them to be scored, then the chosen ones again for the
    topics of their folds.

    Args:
        qrels: relevance judgments; the choice is over their topics.
        settings: saved runs by the name of their setting; or, with `rank`, the grid: one mapping of parameters each.
        measures: what is optimised, each by itself.
        rank: ranks topics under one setting; called with all topics of the folds, and again with some of them, for
            which it should then give the same.
        k: number of folds; or the folds themselves, or a file of them (see `folds.read_folds`).
        seed: of the division into folds.
        policy: how runs are scored.
        minimise: the measures of which the lowest mean is the best; None for those of which it is (MFR).
        out: a folder for the merged runs as `tuned-N.run`, `cross_validation.json`, `folds.json` and the manifest.

    Returns:
        The choices, the merged run of each measure, and its scores.

    Raises:
        InputError: no setting, a fault in a run, topics of the qrels that no fold has, or a fold without judgments.

    Source: leakage paper, section 4 (five folds, a grid search over sizes of the training set).
    """
    grid = _Grid.of(settings, rank)
    judged = _judged(qrels)
    topics = tuple(judged["topic_id"].unique(maintain_order=True).to_list())
    divided, origin = _divided(k, topics, seed)
    every = tuple(dict.fromkeys([*topics, *(topic for fold in divided for topic in fold)]))
    scoring = policy or Scoring()
    scores = _joined([evaluate(judged, {name: grid.run(name, every)}, measures, scoring) for name in grid.names])
    minimised = _minimised(scores.measures, minimise)
    choices = choose(scores, divided, minimised)
    runs = _merged(grid, divided, choices, every)
    found = CrossValidation(
        folds=divided,
        settings=grid.names,
        choices=choices,
        runs=runs,
        evaluation=evaluate(judged, {_name(measure): run for measure, run in runs.items()}, measures, scoring),
        grid=scores,
        minimised=minimised,
        unjudged=tuple(topic for topic in every if topic not in set(topics)),
        origin=origin,
    )
    if out is not None:
        options = {"measures": scores.measures, "seed": seed, "scoring": scoring, "folds": origin}
        saved = dict(settings) if isinstance(settings, Mapping) else {}
        inputs = (input_of("qrels", qrels), *(input_of("run", run, name) for name, run in saved.items()))
        with started("cross_validate", inputs, options, out, packages=("ir-measures",)) as job:
            publish(found, job)
    return found


def choose(scores: Evaluation, divided: Folds, minimise: Iterable[str] | None = None) -> tuple[FoldChoice, ...]:
    """Chooses one of several runs for each fold on the other folds, for each measure by itself, from their scores."""
    checked, _ = _divided(divided, scores.topics, 0)
    minimised = _minimised(scores.measures, minimise)
    return tuple(
        choice for measure in scores.measures for choice in _choices(scores, checked, measure, measure in minimised)
    )


class _Grid(NamedTuple):
    """The settings by name, and how each becomes a run."""

    runs: Mapping[str, Run]
    params: Mapping[str, Mapping[str, Any]]
    rank: Ranker | None

    @classmethod
    def of(cls, settings: Mapping[str, Run] | Sequence[Mapping[str, Any]], rank: Ranker | None) -> _Grid:
        if not settings:
            raise InputError("no setting", "give at least one run or one mapping of parameters")
        if isinstance(settings, Mapping):
            if rank is not None:
                raise InputError("saved runs need no function that ranks", "give a list of parameters, or leave it out")
            # What can be read only once is needed twice.
            held = {n: r if isinstance(r, str | Path | pl.DataFrame) else list(r) for n, r in settings.items()}
            return cls(held, {}, None)
        if rank is None:
            raise InputError("parameters need a function that ranks", "give `rank`, or runs by name")
        params = {_label(setting): setting for setting in settings}
        if len(params) < len(settings):
            raise InputError("a setting is there twice", "give every setting once")
        return cls({}, params, rank)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.runs or self.params)

    def run(self, name: str, topics: tuple[str, ...]) -> Any:
        """The run of a setting over at least these topics."""
        return self.runs[name] if self.rank is None else self.rank(self.params[name], topics)


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


def _minimised(measures: Sequence[str], minimise: Iterable[str] | None) -> tuple[str, ...]:
    if minimise is None:
        return tuple(measure for measure in measures if lower_is_better(measure))
    wanted = set(minimise)
    if unknown := sorted(wanted - set(measures)):
        raise InputError(f"{unknown[0]} is not among the measures", f"one of {', '.join(measures)}")
    return tuple(measure for measure in measures if measure in wanted)


def _choices(scores: Evaluation, divided: Folds, measure: str, minimised: bool) -> Iterator[FoldChoice]:
    """The best setting of each fold by one measure."""
    column = scores.measures.index(measure)
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
    grid: _Grid, divided: Folds, choices: Sequence[FoldChoice], every: tuple[str, ...]
) -> dict[str, pl.DataFrame]:
    """By measure, the results of each fold's topics from the setting that was chosen for it."""
    needed: dict[str, dict[str, tuple[str, ...]]] = {}
    for choice in choices:
        held = needed.setdefault(choice.setting, {})
        held[choice.measure] = (*held.get(choice.measure, ()), *divided[choice.fold - 1])
    parts: dict[str, list[pl.DataFrame]] = {choice.measure: [] for choice in choices}
    for setting, by_measure in needed.items():
        wanted = {topic for topics in by_measure.values() for topic in topics}
        frame = _frame(grid.run(setting, tuple(topic for topic in every if topic in wanted)))
        for measure, topics in by_measure.items():
            parts[measure].append(frame.filter(pl.col("topic_id").is_in(list(topics))))
    order = pl.DataFrame({"topic_id": list(every), "place": range(len(every))})
    return {
        measure: pl.concat(frames)
        .join(order, on="topic_id", how="left", maintain_order="left")
        .sort("place", maintain_order=True)
        .drop("place")
        for measure, frames in parts.items()
    }


def _frame(run: Run) -> pl.DataFrame:
    """The run with all columns; ranks that are missing are those of the scores, equal ones by document id."""
    if isinstance(run, str | Path):
        return read_run_frame(run)
    frame = run if isinstance(run, pl.DataFrame) else pl.DataFrame(list(run), schema=RUN_SCHEMA, orient="row")
    if "rank" not in frame.columns:
        frame = frame.sort("score", "doc_id", descending=[True, False], maintain_order=True)
        frame = frame.with_columns(pl.int_range(1, pl.len() + 1).over("topic_id").alias("rank"))
    if "tag" not in frame.columns:
        frame = frame.with_columns(pl.lit("").alias("tag"))
    return frame.select([pl.col(name).cast(kind) for name, kind in RUN_SCHEMA.items()])


def _judged(qrels: QrelSource) -> pl.DataFrame:
    if isinstance(qrels, str | Path | SourceSpec):
        return read_qrels_frame(qrels if isinstance(qrels, SourceSpec) else str(qrels))
    if isinstance(qrels, pl.DataFrame):
        if "topic_id" not in qrels.columns:
            raise InputError("columns missing: topic_id", f"needed are {', '.join(QREL_SCHEMA)}", where="the qrels")
        return qrels
    return pl.DataFrame([qrel[:3] for qrel in qrels], schema=QREL_SCHEMA, orient="row")


def _label(setting: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in setting.items()) or "no parameters"


def _name(measure: str) -> str:
    return f"tuned for {measure}"


def choice_table(validation: CrossValidation) -> Table:
    """One row per measure and fold."""
    columns = heads("measure, fold:d, topics:,d, chosen, mean|other_folds:.4f, mean|this_fold:.4f, as_good")
    rows = tuple((*choice[:6], ", ".join(choice.tied)) for choice in validation.choices)
    rules = group_starts([choice[0] for choice in validation.choices])
    return Table("Settings chosen by cross-validation.", columns, rows, notes=validation.sentences(), rules=rules)


@summarises(CrossValidation)
def _validation(validation: CrossValidation) -> Summary:
    return Summary((choice_table(validation), evaluation_table(validation.evaluation)), validation.json())


@writes(CrossValidation)
def _write_validation(validation: CrossValidation, run: Job) -> None:
    """Writes the merged runs as `tuned-N.run`, `cross_validation.json` and `folds.json`.

    The runs are numbered in the order of the measures; the JSON says which is which.
    """
    files = {measure: f"tuned-{number}.run" for number, measure in enumerate(validation.runs, start=1)}
    for measure, name in files.items():
        frame = validation.runs[measure].with_columns(pl.lit("Q0").alias("Q0"), pl.lit("tuned").alias("tag"))
        with run.stream(name) as temporary:
            frame.select("topic_id", "Q0", "doc_id", "rank", "score", "tag").write_csv(
                temporary, separator=" ", include_header=False, quote_style="never"
            )
    run.json("cross_validation.json", {**validation.json(), "files": files})
    run.text("folds.json", json.dumps([list(fold) for fold in validation.folds], ensure_ascii=False) + "\n")

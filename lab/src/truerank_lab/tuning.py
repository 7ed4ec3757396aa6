"""Tuning: a model's parameters chosen by cross-validation over the topics, beside the model as its preset has it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import polars as pl

from truerank.core.plain import picked
from truerank.core.result import Result, Summary, summarises, writes
from truerank.errors import OptionError
from truerank.lexical.index import Index, open_index
from truerank.lexical.presets import ModelName, changed, model_of, preset_named, require_analyser
from truerank.lexical.scoring import Searcher
from truerank.lexical.searching import Retrieval, input_of_index, model_text, search, topic_queries, write_run
from truerank.loading import whole_number
from truerank.measures import evaluate
from truerank.options import Flag, Options, Out, Range, Seed, Source, command
from truerank.sources.inputs import inputs_of
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import Run
from truerank.work.runs import run as started
from truerank_lab.cross_validation import CrossValidation, choice_table, cross_validate

#: The values that are tried for each model where the user names none.
GRIDS: Final[dict[str, dict[str, tuple[float, ...]]]] = {
    "bm25": {"k1": (0.6, 0.9, 1.2, 1.6, 2.0), "b": (0.2, 0.4, 0.6, 0.75, 0.9)},
    "ql": {"mu": (100, 250, 500, 1000, 1500, 2500, 5000)},
    "rm3": {"terms": (10, 20, 40), "documents": (5, 10, 20), "original_weight": (0.3, 0.5, 0.7, 0.9)},
    "axiomatic": {"beta": (0.1, 0.2, 0.4, 0.6, 0.8), "terms": (10, 20, 40), "documents": (10, 20)},
    "prf": {"terms": (10, 20, 40), "documents": (5, 10, 20), "new_weight": (0.1, 0.2, 0.4)},
}


@dataclass(frozen=True, eq=False, repr=False)
class Tuning(Result, shown_in="truerank_lab.tuning"):
    """A model as its preset has it ("base") and with parameters chosen by cross-validation ("tuned").

    Attributes:
        base: name and parameters of the model as it was.
        base_run: its run, columns as in `sources.runs.RUN_SCHEMA`.
        validation: the choices, fold by fold, and the merged run: each topic under what was chosen on the other folds.
        means: of both runs, by the measure that was maximised.
        options: preset, grid, measure, folds, seed, k, field and weights.
    """

    base: Mapping[str, Any]
    base_run: pl.DataFrame
    validation: CrossValidation
    means: Mapping[str, float]
    options: Mapping[str, Any]

    def json(self) -> dict[str, Any]:
        """Everything but the runs."""
        return {**picked(self, "base, means, options"), "validation": self.validation.json()}


@dataclass(frozen=True)
class TuningOptions(Options):
    """How parameters are chosen.

    Attributes:
        grid: values to try; repeat the option for each parameter.
        measure: what is maximised.
        folds: how many folds, or a file of them.
        seed: of the division into folds.
    """

    grid: Annotated[Mapping[str, Sequence[Any]], Flag(metavar="NAME=VALUE,VALUE")] = field(default_factory=dict)
    measure: str = "nDCG@10"
    folds: Annotated[int | str | Path, Flag(metavar="K|FILE", reads=str)] = 5
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.measure.split()) != 1:
            raise OptionError("measure", f"'{self.measure}' is not one measure", "name one")


@command
def tune(
    index: Annotated[Index | str | Path, Flag(metavar="DIR", reads=str)],
    topics: Source,
    qrels: Source,
    model: ModelName | None = None,
    *,
    k: Annotated[int, Range(at_least=1)] = 1000,
    retrieval: Retrieval = Retrieval(),
    choosing: TuningOptions = TuningOptions(),
    out: Out = None,
    progress: Progress | None = None,
) -> Tuning:
    """Chooses a model's parameters by cross-validation over the topics.

    Each fold's topics are searched with the parameters that are best on the other folds; `tuned.run` joins them. The
    same seed gives the same choice.

    Args:
        index: the folder that `index` wrote.
        topics: a path, irds:ID or hf:ORG/NAME.
        qrels: relevance judgments.
        model: by default the preset's usual model.
        k: documents for each topic at most.
        retrieval: how documents are retrieved, and the base of what is tried.
        choosing: how parameters are chosen.
        out: a folder for base.run, tuned.run and tuning.json.
        progress: is told how many settings are done.

    Returns:
        The choices, both runs and their scores.

    Raises:
        InputError: an empty grid, several measures, or what searching and scoring raise.

    Examples:

        truerank-lab tune --index index/ --topics topics.trec --qrels qrels.txt --measure AP --out tuned/

        truerank-lab tune --index index/ --topics topics.trec --qrels qrels.txt --grid k1=0.9,1.2 --grid b=0.4,0.75
        --out tuned/
    """
    opened = open_index(index)
    if not retrieval.any_analyser:
        require_analyser(opened, retrieval.preset)
    base = model_of(retrieval.preset, model or "", retrieval.set_)
    tried = choosing.grid or GRIDS[model or preset_named(retrieval.preset).model]
    values = {key: tuple(some) for key, some in tried.items()}
    settings, searcher, shown = grid_of(values), Searcher(opened, retrieval.weights or None), progress or Quiet()
    queries = {query.topic_id: query for query in topic_queries(topics, retrieval.field)}
    shown.start(f"{len(settings)} settings", len(settings))

    def rank(setting: Mapping[str, Any], wanted: tuple[str, ...]) -> pl.DataFrame:
        chosen = [queries[topic] for topic in wanted if topic in queries]
        found = search(searcher, chosen, changed(base, setting), k=k).run
        shown.advance(1)
        return found

    number = whole_number(str(choosing.folds))
    folds = choosing.folds if number is None else number
    validation = cross_validate(qrels, settings, choosing.measure, rank=rank, k=folds, seed=choosing.seed)
    base_run = search(searcher, list(queries.values()), base, k=k).run
    scores = evaluate(qrels, {"base": base_run, "tuned": validation.run}, choosing.measure)
    options = {"preset": retrieval.preset, "grid": values, **picked(choosing, "measure, folds, seed")}
    options |= {"k": k, "field": retrieval.field, "weights": searcher.weights}
    means = dict(zip(scores.runs, scores.mean[:, 0].tolist(), strict=True))
    tuning = Tuning(base.json(), base_run, validation, means, options)
    if out is not None:
        inputs = (input_of_index(opened), *inputs_of(topics=topics, qrels=qrels))
        with started("tune", inputs, {"model": tuning.base, **options}, out) as job:
            publish(tuning, job)
    return tuning


def grid_of(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values, the last parameter changing fastest."""
    if not values or not all(values.values()):
        raise OptionError("grid", "nothing to try", "write NAME=VALUE,VALUE")
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


@summarises(Tuning)
def _tuning(tuning: Tuning) -> Summary:
    tried = "; ".join(f"{name}: {', '.join(map(str, values))}" for name, values in tuning.options["grid"].items())
    means = ", ".join(f"{name} {mean:.4f}" for name, mean in tuning.means.items())
    said = f"{model_text(tuning.base)}, {tuning.options['measure']}: {means}; `compare` tests them. Tried: {tried}."
    return Summary((said, choice_table(tuning.validation)), tuning.json())


@writes(Tuning)
def _write_tuning(tuning: Tuning, run: Run) -> None:
    """Writes `base.run`, `tuned.run` and `tuning.json`."""
    for name, found in (("base", tuning.base_run), ("tuned", tuning.validation.run)):
        write_run(found.with_columns(pl.lit(f"{tuning.base['model']}-{name}").alias("tag")), run.folder / f"{name}.run")
        run.note(f"{name}.run")
    run.json("tuning.json", tuning.json())

"""Tuning: a model's parameters chosen by cross-validation over the topics, beside the model as its preset has it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.errors import InputError
from truerank.lexical.index import Index, open_index
from truerank.lexical.presets import DEFAULT_PRESET, changed, model_of, preset_named
from truerank.lexical.scoring import Searcher
from truerank.lexical.searching import model_text, search, topic_queries, write_run
from truerank.measures import CrossValidation, Evaluation, cross_validate, difference_interval, evaluate
from truerank.measures.report import choice_table
from truerank.reports.tables import Column, Table
from truerank.work.artifacts import Artifacts, installed_versions
from truerank.work.progress import Progress, Quiet

__all__ = ["GRIDS", "Tuning", "grid_of", "tune"]

#: The values that are tried for each model where the user names none.
GRIDS: Final[dict[str, dict[str, tuple[float, ...]]]] = {
    "bm25": {"k1": (0.6, 0.9, 1.2, 1.6, 2.0), "b": (0.2, 0.4, 0.6, 0.75, 0.9)},
    "ql": {"mu": (100, 250, 500, 1000, 1500, 2500, 5000)},
    "rm3": {"terms": (10, 20, 40), "documents": (5, 10, 20), "original_weight": (0.3, 0.5, 0.7, 0.9)},
    "axiomatic": {"beta": (0.1, 0.2, 0.4, 0.6, 0.8), "terms": (10, 20, 40), "documents": (10, 20)},
    "prf": {"terms": (10, 20, 40), "documents": (5, 10, 20), "new_weight": (0.1, 0.2, 0.4)},
}


@dataclass(frozen=True)
class Tuning:
    """A model as its preset has it ("base") and with parameters chosen by cross-validation ("tuned").

    Attributes:
        base: name and parameters of the model as it was.
        base_run: its run, columns as in `sources.runs.RUN_SCHEMA`.
        tuned_run: the merged run: each topic under the parameters chosen on the other folds.
        measure: what was maximised.
        validation: the choices, fold by fold.
        evaluation: both runs by the measure.
        grid: the values tried for each parameter.
        preset: where the base comes from.
        index: what the index holds.
        options: topics, qrels, field, depth, weights and seed.
    """

    base: Mapping[str, Any]
    base_run: pl.DataFrame
    tuned_run: pl.DataFrame
    measure: str
    validation: CrossValidation
    evaluation: Evaluation
    grid: Mapping[str, Sequence[Any]]
    preset: str
    index: Mapping[str, Any]
    options: Mapping[str, Any]

    def table(self) -> Table:
        """Base and tuned beside each other, with the interval of their difference."""
        base, tuned = (self.evaluation.values[self.evaluation.runs.index(name), 0] for name in ("base", "tuned"))
        gap = difference_interval(tuned, base)
        number: dict[str, Any] = {"align": "right", "format": ".4f"}
        rows = (
            ("base", model_text(self.base), float(np.mean(base)), None, None, None),
            ("tuned", "chosen by fold", float(np.mean(tuned)), gap.mean, gap.low, gap.high),
        )
        columns = (
            Column("run"),
            Column("parameters"),
            Column(self.measure, **number),
            Column("difference", **number),
            Column("from", ("95% interval",), **number),
            Column("to", ("95% interval",), **number),
        )
        tried = "; ".join(f"{name}: {', '.join(map(str, values))}" for name, values in self.grid.items())
        return Table(
            f"{self.base['model']}, preset {self.preset}, tuned for {self.measure}",
            columns,
            rows,
            notes=(f"{gap.n:,} topics; Student's t interval of the mean difference.", f"Tried: {tried}."),
        )

    def text(self) -> str:
        """Both tables for a terminal."""
        return f"{self.table().text()}\n{choice_table(self.validation).text()}"

    def json(self) -> dict[str, Any]:
        """Everything but the runs."""
        base, tuned = (self.evaluation.values[self.evaluation.runs.index(name), 0] for name in ("base", "tuned"))
        return {
            "preset": self.preset,
            "base": dict(self.base),
            "measure": self.measure,
            "options": dict(self.options),
            "grid": {name: list(values) for name, values in self.grid.items()},
            "means": {"base": float(np.mean(base)), "tuned": float(np.mean(tuned))},
            "difference": difference_interval(tuned, base)._asdict(),
            "validation": self.validation.json(),
        }

    def save(self, folder: str | Path) -> Path:
        """Writes `base.run`, `tuned.run`, `tuning.json` and `manifest.json`.

        Raises:
            InputError: the folder cannot be written to.
        """
        artifacts = Artifacts(folder)
        for name, run in (("base", self.base_run), ("tuned", self.tuned_run)):
            write_run(
                run.with_columns(pl.lit(f"{self.base['model']}-{name}").alias("tag")), artifacts.folder / f"{name}.run"
            )
        artifacts.json("tuning.json", self.json())
        source = {key: self.index[key] for key in ("source", "fingerprint")}
        artifacts.manifest({"command": "tune", "versions": installed_versions("truerank", "numpy"), "index": source})
        return artifacts.folder


def tune(
    index: Index | str | Path,
    topics: str,
    qrels: str,
    *,
    model: str = "",
    preset: str = DEFAULT_PRESET,
    parameters: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    measure: str = "nDCG@10",
    folds: int | str | Path = 5,
    seed: int = 0,
    k: int = 1000,
    topic_field: str = "title",
    weights: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Chooses parameters on the other folds for each fold of the topics; the same seed gives the same choice.

    Args:
        index: the index, or its folder.
        topics: a source of topics, see `sources.read_topics`.
        qrels: a source of relevance judgments.
        model: one of `MODELS`; empty: the preset's usual one.
        preset: where the parameters come from that are not tuned.
        parameters: changes to the preset, as in `model_of`.
        grid: the values to try by parameter; None for those of `GRIDS`.
        measure: what is maximised.
        folds: how many, or a file that says which topics are together.
        seed: of the division into folds.
        k: depth of the runs.
        topic_field: as in `search`.
        weights: of the index's fields.
        progress: is told how many settings are done.

    Returns:
        The choices, both runs and their scores.

    Raises:
        InputError: an unknown name, an empty grid, several measures, or what searching and scoring raise.
    """
    if len(measure.split()) != 1:
        raise InputError(f"'{measure}' is not one measure", "name one", where="--measure")
    base = model_of(preset, model, parameters)
    name = model or preset_named(preset).model
    tried = {key: tuple(values) for key, values in (grid or GRIDS[name]).items()}
    settings = grid_of(tried)
    searcher = Searcher(open_index(index), weights)
    queries = {query.topic_id: query for query in topic_queries(topics, topic_field)}
    told = progress or Quiet()
    told.start(f"{len(settings)} settings", len(settings))

    def rank(setting: Mapping[str, Any], wanted: tuple[str, ...]) -> pl.DataFrame:
        chosen = [queries[topic] for topic in wanted if topic in queries]
        found = search(searcher, chosen, changed(base, setting), k=k, topic_field=topic_field).run
        told.advance(1)
        return found

    validation = cross_validate(qrels, settings, measure, rank=rank, k=folds, seed=seed)
    found = search(searcher, list(queries.values()), base, k=k, topic_field=topic_field)
    tuned = next(iter(validation.runs.values()))
    evaluation = evaluate(qrels, {"base": found.run, "tuned": tuned}, measure)
    options = {
        "topics": topics,
        "qrels": qrels,
        "field": topic_field,
        "k": k,
        "weights": searcher.weights,
        "seed": seed,
    }
    return Tuning(
        base.json(),
        found.run,
        tuned,
        evaluation.measures[0],
        validation,
        evaluation,
        tried,
        preset,
        found.index,
        options,
    )


def grid_of(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values, the last parameter changing fastest.

    Raises:
        InputError: a parameter without values, or none at all.
    """
    if not values or not all(values.values()):
        raise InputError("nothing to try", "write NAME=VALUE,VALUE", where="--grid")
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]

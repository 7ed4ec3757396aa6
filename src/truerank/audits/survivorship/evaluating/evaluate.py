"""Systems scored by the judgments of every annotation depth: what shallow annotation does to the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.survivorship.evaluating.inputs import (
    DepthSets,
    kept_run,
    largest_cutoff,
    read_depth_sets,
)
from truerank.audits.survivorship.evaluating.options import EvaluateOptions
from truerank.audits.survivorship.evaluating.results import DepthEvaluation, DepthScores
from truerank.audits.survivorship.results import file_input
from truerank.errors import InputError
from truerank.measures import evaluate as score_runs
from truerank.measures import parse_measures
from truerank.sources import parse, unique_names
from truerank.work.progress import Progress, Quiet

__all__ = ["evaluate", "score_depths"]

_DEFAULTS: Final = EvaluateOptions()


def evaluate(
    runs: Sequence[str],
    out: str | Path | None = None,
    *,
    depths: str | Path | None = None,
    qrels: Sequence[str] = (),
    options: EvaluateOptions = _DEFAULTS,
    progress: Progress | None = None,
) -> DepthEvaluation:
    """Scores runs by the judgments of each annotation depth, and by the first judgment of each query only.

    Args:
        runs: run files, `FILE`; each is read once.
        out: the folder to write; None to write nothing.
        depths: the folder that `survivorship depth` wrote, or one with files NAME-K.qrels.
        qrels: in its place, `K=FILE` for each depth.
        options: measures, test and policies.
        progress: told about the work.

    Returns:
        Scores by depth with their tests, trends and the order of the systems.

    Raises:
        InputError: a fault in a file, or in how the files fit together.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 4, Table 4.
    """
    if not runs:
        raise InputError("no run", "name one or more with --run", where="--run")
    sets = read_depth_sets(depths, qrels)
    names = unique_names([parse(run) for run in runs])
    cutoff = largest_cutoff(parse_measures(options.measures))
    wanted = _queries(sets)
    shown = progress or Quiet()
    shown.start("runs", total=len(names))
    scored: dict[str, _Run] = {}
    for name, path in zip(names, runs, strict=True):
        run = kept_run(path, wanted, cutoff)
        scored[name] = _Run(_scored(name, run.rows, sets, wanted, options), run.queries, run.unknown)
        shown.advance(1)
    inputs = {**sets.inputs, "runs": {name: file_input(path) for name, path in zip(names, runs, strict=True)}}
    result = _result(sets, wanted, scored, options, inputs)
    if out is not None:
        result.save(out)
    return result


def score_depths(
    sets: DepthSets, runs: Mapping[str, pl.DataFrame], options: EvaluateOptions = _DEFAULTS
) -> DepthEvaluation:
    """The same for runs and judgments that are frames already.

    Args:
        sets: judgments by depth.
        runs: by name, columns as in `sources.runs.RUN_SCHEMA`.
        options: measures, test and policies.

    Raises:
        InputError: a run without any of the queries.
    """
    wanted = _queries(sets)
    known = frozenset(wanted)
    scored: dict[str, _Run] = {}
    for name, frame in runs.items():
        topics = frozenset(frame["topic_id"].unique())
        scores = _scored(name, frame, sets, wanted, options)
        scored[name] = _Run(scores, topics & known, len(topics - known))
    return _result(sets, wanted, scored, options, {})


@dataclass(frozen=True, eq=False)
class _Scores:
    """One run's scores: `values` of shape (measures, depths, queries), NaN where a depth lacks the query."""

    measures: tuple[str, ...]
    values: NDArray[np.float64] = field(repr=False)


class _Run(NamedTuple):
    """One run: its scores by set of judgments, which of the queries it has, and how many others."""

    scores: Mapping[str, _Scores]
    queries: frozenset[str]
    unknown: int


def _queries(sets: DepthSets) -> pl.Series:
    """The queries of all depths, those of the full set first."""
    frames = [frame["topic_id"] for frame in reversed(list(sets.every.values()))]
    return pl.concat(frames).unique(maintain_order=True).alias("topic_id")


def _scored(
    name: str, rows: pl.DataFrame, sets: DepthSets, wanted: pl.Series, options: EvaluateOptions
) -> dict[str, _Scores]:
    places = pl.DataFrame({"topic_id": wanted}).with_row_index("place")
    found: dict[str, _Scores] = {}
    for variant, frames in (("all", sets.every), ("first", sets.first)):
        layers: list[NDArray[np.float64]] = []
        spelled: tuple[str, ...] = ()
        for judged in frames.values():
            scores = score_runs(judged, {name: rows}, options.measures, options.policy())
            spelled = scores.measures
            at = pl.DataFrame({"topic_id": scores.topics}).join(places, on="topic_id", maintain_order="left")["place"]
            layer = np.full((len(spelled), len(wanted)), np.nan)
            layer[:, at.to_numpy()] = scores.values[0]
            layers.append(layer)
        found[variant] = _Scores(spelled, np.stack(layers, axis=1))
    return found


def _result(
    sets: DepthSets,
    wanted: pl.Series,
    runs: Mapping[str, _Run],
    options: EvaluateOptions,
    inputs: Mapping[str, Any],
) -> DepthEvaluation:
    measures = next(iter(runs.values())).scores["all"].measures
    variants = {}
    for variant, frames in (("all", sets.every), ("first", sets.first)):
        values = np.stack([run.scores[variant].values for run in runs.values()])
        queries = {label: frozenset(frame["topic_id"]) for label, frame in frames.items()}
        variants[variant] = DepthScores(
            values=values,
            qrels=tuple(len(frame) for frame in frames.values()),
            queries=tuple(len(ids) for ids in queries.values()),
            present={name: tuple(len(ids & run.queries) for ids in queries.values()) for name, run in runs.items()},
            together=tuple(len(ids.intersection(*(run.queries for run in runs.values()))) for ids in queries.values()),
        )
    return DepthEvaluation(
        name=sets.name,
        labels=sets.labels,
        places=sets.places,
        systems=tuple(runs),
        measures=measures,
        topics=tuple(wanted),
        variants=variants,
        options=options,
        derived=sets.derived,
        strays=sets.strays,
        unknown={name: run.unknown for name, run in runs.items()},
        inputs=inputs,
    )

"""The scores of runs as one immutable value: by run, measure and topic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures import registry
from ir_measures.measures.base import Measure

from truerank.arrays import Floats, frame_schema
from truerank.core.plain import plain
from truerank.core.result import Result
from truerank.errors import InputError
from truerank.loading import json_file
from truerank.options import Scoring
from truerank.plugins import Plugins
from truerank.work.artifacts import written_by

#: Measures of other packages: each is a `Measure` of ir_measures with `values(view)`, which returns the value of every
#: topic, shape (topics,), from an `effectiveness.View`; and `lower_is_better`, where that is so.
MEASURES: Final = Plugins("truerank.measures", "measure", ("NAME", "SUPPORTED_PARAMS", "values"))


def lower_is_better(measure: str | Measure) -> bool:
    """Whether a lower value of a measure is the better one: of ranks it is."""
    name = str(measure).partition("(")[0].partition("@")[0]
    if name in ("MFR", "HMFR"):
        return True
    return name not in registry and name in MEASURES and bool(getattr(MEASURES.load(name), "lower_is_better", False))


Aggregate = Literal["mean", "sum", "harmonic"]
#: A second name of the options of scoring, for those who score in Python.
Policy = Scoring

#: `per_topic.parquet`: one value per run, measure and topic, in that order; null where a topic was skipped.
PER_TOPIC_SCHEMA: Final[dict[str, Any]] = frame_schema("run measure topic_id: String, value: Float64")


class Coverage(NamedTuple):
    """How a run and the qrels fit together.

    `matched` topics are in both, `missing` ones only in the qrels, `unknown` ones only in the run; `results` are the
    results scored of the matched topics, `unjudged` those of them without a judgment.
    """

    matched: int
    missing: int
    unknown: int
    results: int
    unjudged: int


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Result, shown_in="truerank.measures.report"):
    """The scores of runs.

    Attributes:
        runs: their names.
        measures: the measures as they are spelled.
        topics: the ids of the topics of the qrels, in the order of the qrels.
        values: the scores, shape (runs, measures, topics); NaN where a topic was skipped.
        missing: by run, how many topics of the qrels it lacks.
        policy: the choices under which they were scored.
        aggregates: by measure, how one number is made of its topics: "mean", "sum" (counts such as NumRet) or
            "harmonic" (HMFR); by default "mean" throughout.
        coverage: by run, how it fits the qrels; empty where the values do not come from runs.
        remarks: what has to be said of single measures, and of runs that hardly mean what they say.
        inputs: what was read: sources and their numbers of rows.
        per_topic: whether the scores of every topic are shown too.
        plot: whether figures are written with the scores.
    """

    runs: tuple[str, ...]
    measures: tuple[str, ...]
    topics: tuple[str, ...]
    values: Floats
    missing: Mapping[str, int]
    policy: Scoring
    aggregates: tuple[Aggregate, ...] = ()
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    per_topic: bool = False
    plot: bool = False

    def __post_init__(self) -> None:
        shape = (len(self.runs), len(self.measures), len(self.topics))
        if self.values.shape != shape:
            raise ValueError(f"values have the shape {self.values.shape}, runs, measures and topics say {shape}")
        values = self.values.view()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "aggregates", self.aggregates or ("mean",) * len(self.measures))

    @classmethod
    def of_scores(cls, scores: Mapping[str, pl.DataFrame], policy: Scoring, measure: str = "score") -> Evaluation:
        """Scores that another program computed, as an evaluation; NaN where a system lacks a topic.

        Args:
            scores: by system: columns topic_id and value.
            policy: is in the result; nothing is scored here.
            measure: what the values are; higher is better.
        """
        topics = tuple(dict.fromkeys(topic for frame in scores.values() for topic in frame["topic_id"]))
        places = {topic: place for place, topic in enumerate(topics)}
        values = np.full((len(scores), 1, len(topics)), np.nan)
        for row, frame in enumerate(scores.values()):
            values[row, 0, [places[topic] for topic in frame["topic_id"]]] = frame["value"].to_numpy()
        return cls(tuple(scores), (measure,), topics, values, {}, policy, ("mean",))

    @property
    def averaged(self) -> tuple[str, ...]:
        """The measures that are means over topics."""
        return tuple(name for name, kind in zip(self.measures, self.aggregates, strict=True) if kind == "mean")

    @property
    def mean(self) -> Floats:
        """One number per run and measure, over the topics that were not skipped: shape (runs, measures).

        The mean, but the sum of counts and the harmonic mean where `aggregates` says so; NaN where every topic was
        skipped.
        """
        found = np.full(self.values.shape[:2], np.nan)
        for position in range(len(self.measures)):
            for run in range(len(self.runs)):
                found[run, position] = _aggregated(self.values[run, position], self.aggregates[position])
        return found

    def of(self, run: str, measure: str) -> Floats:
        """The scores of one run by one measure, shape (topics,).

        Raises:
            InputError: there is no such run or measure.
        """
        found: Floats = self.values[
            self._position(self.runs, run, "run"), self._position(self.measures, measure, "measure")
        ]
        return found

    def frame(self) -> pl.DataFrame:
        """The scores as a long table with the columns of `PER_TOPIC_SCHEMA`."""
        runs, measures, topics = self.values.shape
        return pl.DataFrame(
            {
                "run": pl.Series(self.runs, dtype=pl.String).gather(np.repeat(np.arange(runs), measures * topics)),
                "measure": pl.Series(self.measures, dtype=pl.String).gather(
                    np.tile(np.repeat(np.arange(measures), topics), runs)
                ),
                "topic_id": pl.Series(self.topics, dtype=pl.String).gather(np.tile(np.arange(topics), runs * measures)),
                "value": pl.Series(self.values.ravel(), dtype=pl.Float64).fill_nan(None),
            },
            schema=PER_TOPIC_SCHEMA,
        )

    def sorted(self, measure: str) -> Evaluation:
        """The same with the runs ordered by a measure, the best first; equal ones keep their order.

        Args:
            measure: one of `measures`.

        Raises:
            InputError: there is no such measure.
        """
        column = self.mean[:, self._position(self.measures, measure, "measure")]
        key = np.where(np.isnan(column), np.inf, column if lower_is_better(measure) else -column)
        order = np.argsort(key, kind="stable")
        return replace(self, runs=tuple(self.runs[i] for i in order), values=self.values[order])

    def json(self, *, per_topic: bool = False) -> dict[str, Any]:
        """What `summary.json` holds: policy, number of topics, and each run's measures and coverage.

        Args:
            per_topic: also each run's scores by measure and topic.
        """
        return {
            "policy": self.policy.json(),
            "topics": len(self.topics),
            "measures": dict(zip(self.measures, self.aggregates, strict=True)),
            "runs": {
                run: {
                    "measures": {name: plain(value) for name, value in zip(self.measures, means, strict=True)},
                    "missing": self.missing.get(run, 0),
                    **({"coverage": self.coverage[run]._asdict()} if run in self.coverage else {}),
                    **({"per_topic": self._by_topic(run)} if per_topic else {}),
                }
                for run, means in zip(self.runs, self.mean, strict=True)
            },
            "remarks": list(self.remarks),
            "inputs": dict(self.inputs),
        }

    def _by_topic(self, run: str) -> dict[str, dict[str, float | None]]:
        scores = self.values[self.runs.index(run)]
        return {
            measure: {topic: plain(value) for topic, value in zip(self.topics, values, strict=True)}
            for measure, values in zip(self.measures, scores, strict=True)
        }

    @staticmethod
    def _position(names: tuple[str, ...], name: str, kind: str) -> int:
        if name not in names:
            raise InputError(f"there is no {kind} '{name}'", f"one of {', '.join(names)}")
        return names.index(name)


def load_evaluation(folder: str | Path) -> Evaluation:
    """Opens the folder that `evaluate` wrote.

    Raises:
        InputError: the folder lacks one of the files, or one of them is broken.
    """
    folder = Path(folder)
    with written_by("evaluate", folder, "summary.json", "per_topic.parquet"):
        summary = json_file(folder / "summary.json")
        frame = pl.read_parquet(folder / "per_topic.parquet", glob=False, columns=list(PER_TOPIC_SCHEMA))
        runs, measures = tuple(summary["runs"]), tuple(summary["measures"])
        shape = (len(runs), len(measures), summary["topics"])
        topics = tuple(frame["topic_id"].head(summary["topics"]).to_list())
        values = frame["value"].cast(pl.Float64).fill_null(math.nan).to_numpy().reshape(shape).copy()
        coverage = {run: Coverage(**found["coverage"]) for run, found in summary["runs"].items() if "coverage" in found}
        return Evaluation(
            runs=runs,
            measures=measures,
            topics=topics,
            values=values,
            missing={run: int(found["missing"]) for run, found in summary["runs"].items()},
            policy=Scoring(**summary["policy"]),
            aggregates=tuple(summary["measures"].values()),
            coverage=coverage,
            remarks=tuple(summary["remarks"]),
            inputs=summary["inputs"],
        )


def _aggregated(values: Floats, kind: Aggregate) -> float:
    known = values[~np.isnan(values)]
    if not len(known):
        return math.nan
    if kind == "sum":
        return float(known.sum())
    if kind == "harmonic":
        return float(len(known) / np.sum(1.0 / known)) if np.isfinite(known).any() else math.inf
    return float(known.mean())

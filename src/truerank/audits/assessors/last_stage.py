"""What if the model were the last stage? Each run reordered by the model's own grades, scored by it and by people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import polars as pl

from truerank.audits.assessors.bootstrapping import bootstrap
from truerank.audits.assessors.grades import Grades
from truerank.audits.assessors.ordering import SystemScores, values_on
from truerank.judging.coefficients import Floats
from truerank.measures.grammar import MeasureSpec
from truerank.measures.names import lower_is_better
from truerank.measures.scoring import evaluate
from truerank.options import Resampling, Scoring

_KEYS: Final = ["topic_id", "doc_id"]
#: So many results of a run are reordered, where the scoring does not say a depth.
_DEPTH: Final = 100


def reordered(run: pl.DataFrame, grades: pl.DataFrame, lowest: int, depth: int) -> pl.DataFrame:
    """A run with its first results ordered by grades, the highest first; equal ones keep their order."""
    ordered = run.sort(["topic_id", "score", "doc_id"], descending=[False, True, True])
    place = pl.int_range(pl.len()).over("topic_id")
    first = ordered.with_columns(place.alias("place")).filter(pl.col("place") < depth)
    joined = first.join(grades, on=_KEYS, how="left", maintain_order="left")
    grade = pl.col("relevance").fill_null(lowest).cast(pl.Float64)
    new = joined.sort(["topic_id", grade, "place"], descending=[False, True, False], maintain_order=True)
    rank = pl.int_range(1, pl.len() + 1).over("topic_id")
    return new.select(*_KEYS, rank.alias("rank"), (-rank.cast(pl.Float64)).alias("score"))


def last_stage_frame(
    grades: Grades,
    runs: Mapping[str, pl.DataFrame],
    scores: SystemScores,
    plan: tuple[MeasureSpec, Scoring, Resampling],
) -> pl.DataFrame:
    """What reordering by a model's grades brings by the model's own judgment, and by people's."""
    measures, scoring, resampling = plan
    depth = scoring.depth or _DEPTH
    rows = []
    for number, judge in enumerate(scores.names):
        changed = {name: reordered(run, grades.qrels[judge], grades.scale[0], depth) for name, run in runs.items()}
        of = (grades.qrels[""], grades.qrels[judge])
        after = [np.nan_to_num(values_on(scores.topics, evaluate(qrels, changed, measures, scoring))) for qrels in of]
        for at, measure in enumerate(scores.measures):
            sign = -1.0 if lower_is_better(measure) else 1.0
            before = sign * scores.people[at], sign * scores.judges[number, at]
            own = [sign * values[at] for values in after]
            gains = [(own[side] - before[side]).mean(axis=0) for side in (0, 1)]
            gap = np.stack([gains[1] - gains[0], gains[1], gains[0]], axis=1)

            def statistic(weights: Floats, gap: Floats = gap) -> Floats:
                return np.asarray(weights @ gap / weights.sum(axis=1, keepdims=True))

            found = bootstrap(statistic, len(scores.topics), resampling)
            best = [float(part.mean(axis=1).max()) for part in before]
            above = [int((own[side].mean(axis=1) > best[side]).sum()) for side in (0, 1)]
            ends = [float(part[0]) for part in found[:3]]
            rows.append((judge, measure, float(found.value[1]), float(found.value[2]), *ends, above[1], above[0]))
    schema = {
        "judge": pl.String, "measure": pl.String, "model": pl.Float64, "people": pl.Float64, "value": pl.Float64,
        "low": pl.Float64, "high": pl.Float64, "above": pl.Int64, "people_above": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")

"""The order of systems under people and each model: correlations, pairs, moves, families, the model as last stage."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.arrays import Floats, frame_schema
from truerank.audits.assessors.agreement import bootstrap
from truerank.audits.assessors.grades import Grades
from truerank.errors import InputError, OptionError
from truerank.measures.grammar import MeasureSpec
from truerank.measures.orders import ORDER_STATISTICS, order_statistics, ranks
from truerank.measures.results import Evaluation, lower_is_better
from truerank.measures.scoring import RunSource, evaluate, named_runs
from truerank.measures.significance import Correction, correct, paired_t_columns
from truerank.options import Resampling, Scoring
from truerank.sources import read_run_frame
from truerank.sources.notebook import frame_of
from truerank.sources.run_tables import RowFilter, read_metadata
from truerank.sources.runs import RUN_SCHEMA

#: The best so many systems are looked at for themselves.
BEST: Final = (10, 20)
#: With fewer systems there is no order worth a verdict.
FEWEST_RUNS: Final = 5
#: Bands of the best rank of a document.
_BANDS: Final = (5, 10, 20, 50, 100)
_DEEPEST: Final = 1 << 40


@dataclass(frozen=True, eq=False)
class SystemScores:
    """Scores of every run under people and under each model.

    Attributes:
        runs: their names.
        measures: as they are spelled.
        topics: ids of topics that every run was scored on.
        people: scores by people's grades, shape (measures, runs, topics).
        judges: scores by each model's grades, shape (judges, measures, runs, topics).
        names: of the models.
        left_out: topics that a run was not scored on.
    """

    runs: tuple[str, ...]
    measures: tuple[str, ...]
    topics: tuple[str, ...]
    people: Floats
    judges: Floats
    names: tuple[str, ...]
    left_out: int = 0

    def each(self) -> Iterator[tuple[str, str, float, Floats, Floats]]:
        """By model and measure: names, the sign of better, scores by people and by the model, (runs, topics)."""
        for judge, own in zip(self.names, self.judges, strict=True):
            for at, measure in enumerate(self.measures):
                yield judge, measure, -1.0 if lower_is_better(measure) else 1.0, self.people[at], own[at]


class Subset(NamedTuple):
    """Systems that are compared: a name and their positions."""

    name: str
    runs: NDArray[np.int64]


def read_systems(runs: RunSource) -> dict[str, pl.DataFrame]:
    """The runs by name, read once for all judgments."""
    return {
        name: read_run_frame(run) if isinstance(run, str | Path) else frame_of(run, RUN_SCHEMA, "score")
        for name, run in named_runs(runs).items()
    }


def score_systems(
    grades: Grades, runs: Mapping[str, pl.DataFrame], measures: MeasureSpec, scoring: Scoring
) -> SystemScores:
    """Scores every run under people and under each model.

    A model's scores rest on all that it graded of people's topics, and what it did not grade is not relevant.
    """
    topics = grades.topics
    found = [evaluate(qrels, dict(runs), measures, scoring) for qrels in grades.qrels.values()]
    if bad := [measure for measure in found[0].measures if measure not in found[0].averaged]:
        raise OptionError("measures", f"{bad[0]} is not a mean over topics", "leave it out")
    every = np.stack([values_on(topics, one) for one in found])
    kept: NDArray[np.bool_] = np.asarray(np.isfinite(every).all(axis=(0, 1, 2)))
    if not kept.any():
        raise InputError("no topic on which every run was scored", "give runs of the same topics", where="run")
    every = every[..., kept]
    return SystemScores(
        runs=tuple(runs),
        measures=found[0].measures,
        topics=tuple(topic for topic, there in zip(topics, kept.tolist(), strict=True) if there),
        people=every[0],
        judges=every[1:],
        names=grades.judges,
        left_out=int((~kept).sum()),
    )


def rank_bands(grades: Grades, runs: Mapping[str, pl.DataFrame]) -> list[tuple[str, NDArray[np.int64]]]:
    """The judged pairs by the best rank that any run gives the document; a name and positions of pairs."""
    pairs = pl.DataFrame({"topic_id": [grades.topics[at] for at in grades.topic], "doc_id": grades.documents})
    placed = []
    for run in runs.values():
        ordered = run.sort(["topic_id", "score", "doc_id"], descending=[False, True, True])
        placed.append(
            ordered.select("topic_id", "doc_id", (pl.int_range(pl.len()) + 1).over("topic_id").alias("place"))
        )
    best = pl.concat(placed).group_by("topic_id", "doc_id").agg(pl.col("place").min())
    place = pairs.join(best, on=["topic_id", "doc_id"], how="left", maintain_order="left")["place"]
    ranked = place.fill_null(_DEEPEST).to_numpy()
    found = []
    for low, high in itertools.pairwise((0, *_BANDS, _DEEPEST)):
        name = f"rank {low + 1}-{high}" if high < _DEEPEST else f"deeper than {low}, or in no run"
        found.append((name, np.flatnonzero((ranked > low) & (ranked <= high))))
    return [(name, chosen) for name, chosen in found if len(chosen)]


def values_on(topics: Sequence[str], evaluation: Evaluation) -> Floats:
    """The scores of an evaluation on these topics, shape (measures, runs, topics); 0 for a topic that it lacks.

    Such a topic is one of which the model graded nothing: it has no relevant document.
    """
    place = {topic: at for at, topic in enumerate(evaluation.topics)}
    known = [at for at, topic in enumerate(topics) if topic in place]
    values = np.zeros((len(evaluation.measures), len(evaluation.runs), len(topics)))
    values[:, :, known] = np.swapaxes(evaluation.values, 0, 1)[:, :, [place[topics[at]] for at in known]]
    return values


def subsets(people: Floats, sign: float) -> list[Subset]:
    """All systems, and the best 10 and 20 by people's mean scores where there are more.

    Args:
        people: scores, shape (runs, topics).
    """
    order = np.argsort(-sign * people.mean(axis=1), kind="stable")
    return [Subset("all", order), *(Subset(f"best {k}", order[:k]) for k in BEST if k < len(order))]


def order_frame(scores: SystemScores, resampling: Resampling) -> pl.DataFrame:
    """Correlations of the two orders."""
    rows = []
    for judge, measure, sign, people, model in scores.each():
        for name, chosen in subsets(people, sign):
            first, second = sign * people[chosen], sign * model[chosen]
            total = first.shape[1]

            def statistic(weights: Floats, first: Floats = first, second: Floats = second) -> Floats:
                drawn = weights.sum(axis=1, keepdims=True)
                return order_statistics(weights @ first.T / drawn, weights @ second.T / drawn)

            found = bootstrap(statistic, total, resampling, centred=True)
            for at, one in enumerate(ORDER_STATISTICS):
                ends = [None if np.isnan(part[at]) else float(np.clip(part[at], -1, 1)) for part in found[:3]]
                rows.append((judge, measure, name, len(chosen), one, *ends))
    schema = frame_schema(
        "judge measure systems: String, n: Int64, statistic: String, value value_low value_high: Float64"
    )
    return pl.DataFrame(rows, schema=schema, orient="row")


def pairs_frame(scores: SystemScores, correction: Correction, confidence: float) -> pl.DataFrame:
    """Pairs of systems that differ significantly under people, under the model, or under both."""
    level = round(1 - confidence, 12)
    rows = []
    for judge, measure, sign, people, model in scores.each():
        slope = _slope(people.mean(axis=1), model.mean(axis=1))
        for name, chosen in subsets(people, sign):
            one, two = np.triu_indices(len(chosen), 1)
            gaps = [(values[chosen][one] - values[chosen][two]).T for values in (people, model)]
            zero = np.zeros_like(gaps[0])
            tested = ((gaps[0], zero), (gaps[1], zero), (gaps[1], slope * gaps[0]))
            found, model_found, moved = (_significant(*sides, correction, level) for sides in tested)
            means = [np.sign(np.round(gap.mean(axis=0), 12)) for gap in gaps]
            same, swapped = means[0] == means[1], means[0] * means[1] < 0
            both = found & model_found
            counts = (
                len(one), found, model_found, both & same, found & ~model_found, model_found & ~found, both & swapped,
                swapped, swapped & moved, swapped & (moved | both),
            )  # fmt: skip
            rows.append((judge, measure, name, *(int(np.sum(count)) for count in counts)))
    kinds = ("pairs", "people", "model", "both", "lost", "gained", "opposite", "swapped", "turned", "reversed")
    schema = {"judge": pl.String, "measure": pl.String, "systems": pl.String, **dict.fromkeys(kinds, pl.Int64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def scores_frame(scores: SystemScores, resampling: Resampling) -> pl.DataFrame:
    """The mean score and rank of every run under people and under each model."""
    rows = []
    for judge, measure, sign, people, model in scores.each():
        gaps = np.concatenate([model - people, (model - people).mean(axis=0, keepdims=True)])

        def statistic(weights: Floats, gaps: Floats = gaps) -> Floats:
            return np.asarray(weights @ gaps.T / weights.sum(axis=1, keepdims=True))

        found = bootstrap(statistic, gaps.shape[1], resampling)
        means = people.mean(axis=1), model.mean(axis=1)
        places = [ranks(sign * mean) for mean in means]
        for at, run in enumerate(scores.runs):
            ends = [float(part[at]) for part in found[:3]]
            rows.append((judge, measure, run, *(float(m[at]) for m in means), *ends, *(int(p[at]) for p in places)))
        ends = [float(part[-1]) for part in found[:3]]
        rows.append((judge, measure, "", *(float(mean.mean()) for mean in means), *ends, None, None))
    numbers = ("people", "model", "value", "value_low", "value_high")
    schema = {
        "judge": pl.String, "measure": pl.String, "run": pl.String, **dict.fromkeys(numbers, pl.Float64),
        "people_rank": pl.Int64, "model_rank": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _slope(people: Floats, model: Floats) -> float:
    """How much of a difference under people is one under the model; 1 where too few systems tell it."""
    apart = people - people.mean()
    spread = float(apart @ apart)
    return max(0.0, float(apart @ (model - model.mean())) / spread) if len(people) > 2 and spread > 0 else 1.0


def _significant(first: Floats, second: Floats, correction: Correction, level: float) -> NDArray[np.bool_]:
    p = paired_t_columns(first, second)
    corrected = correct([None if np.isnan(one) else float(one) for one in p], correction)
    return np.array([one is not None and one < level for one in corrected], dtype=bool)


FamilySource = str | Path | Mapping[str, str] | None
#: Outside a family, so many runs are needed to say what a run of some score gains.
_FEWEST_OTHERS: Final = 3


def read_families(source: FamilySource, runs: tuple[str, ...], judges: tuple[str, ...] = ()) -> dict[str, str]:
    """The family of each run and model: the column family (or category) of a table, or else its column group."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        found = {str(run): str(family) for run, family in source.items()}
    else:
        known = read_metadata([source], RowFilter({})).runs
        by_category = any(info.category for info in known.values())
        found = {run: info.category if by_category else info.group for run, info in known.items()}
    found = {run: family for run, family in found.items() if run in (*runs, *judges) and family}
    if not found:
        there = ", ".join((*runs[:3], *judges[:3]))
        problem = "no run has a family" if runs else "no model has a family"
        raise OptionError("families", problem, f"write the columns run and family; runs and models are {there}")
    if runs and {found.get(run) for run in runs} == {found.get(runs[0])} != {None}:
        raise InputError("all runs are of one family", "leave some runs without a family", where="families")
    return found


def families_frame(
    scores: SystemScores, families: Mapping[str, str], resampling: Resampling, correction: Correction
) -> pl.DataFrame:
    """What the runs of each family gain under each model.

    The gain is the mean over a family's runs of model minus people, less the same mean over the other runs. A model
    that stretches the scale gives good runs more than weak ones, whatever their family. So there is an adjusted gain
    too: the other runs say by a straight line what a run of some score under people gains, and the family is compared
    with that. Its interval allows for topics (bootstrap) and for runs (the scatter of runs around the line).
    """
    member = np.array([families.get(run, "") for run in scores.runs])
    names = [name for name in dict.fromkeys(member.tolist()) if name]
    rows = []
    for judge, measure, sign, people, model in scores.each():
        inside = [member == name for name in names]
        found = [_family_gain(sign * people, sign * model, own, resampling) for own in inside]
        corrected = correct([one["p"] for one in found], correction)
        for name, own, one, p in zip(names, inside, found, corrected, strict=True):
            counts = int(own.sum()), int((~own).sum())
            rows.append({"judge": judge, "measure": measure, "family": name, "runs": counts[0], "others": counts[1]})
            rows[-1] |= {**one, "corrected": p}
    numbers = ("value", "value_low", "value_high", "adjusted", "adjusted_low", "adjusted_high", "p", "corrected")
    schema = {
        "judge": pl.String, "measure": pl.String, "family": pl.String, "runs": pl.Int64, "others": pl.Int64,
        **dict.fromkeys(numbers, pl.Float64),
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _family_gain(people: Floats, model: Floats, own: NDArray[np.bool_], resampling: Resampling) -> dict[str, Any]:
    others = ~own
    gaps = model - people
    enough = int(others.sum()) >= _FEWEST_OTHERS

    def statistic(weights: Floats) -> Floats:
        drawn = weights.sum(axis=1, keepdims=True)
        gap, score = weights @ gaps.T / drawn, weights @ people.T / drawn
        plain = gap[:, own].mean(axis=1) - gap[:, others].mean(axis=1)
        rest = _residuals(score, gap, others)[:, own].mean(axis=1) if enough else np.full(len(weights), np.nan)
        return np.stack([plain, rest], axis=1)

    found = bootstrap(statistic, people.shape[1], resampling)
    none: dict[str, Any] = dict.fromkeys(("adjusted", "adjusted_low", "adjusted_high", "p"))
    gain = dict(zip(("value", "value_low", "value_high"), (float(part[0]) for part in found[:3]), strict=True))
    if not enough or np.isnan(found.value[1]):
        return {**gain, **none}
    rest = _residuals(people.mean(axis=1)[None], gaps.mean(axis=1)[None], others)[0]
    freedom = max(1, int(others.sum()) - 2)
    scatter = float((rest[others] ** 2).sum() / freedom)
    error = float(np.sqrt(found.error[1] ** 2 + scatter * (1 / own.sum() + 1 / others.sum())))
    value = float(found.value[1])
    least = max(1, min(freedom, people.shape[1] - 1))
    reach = float(scipy.special.stdtrit(least, (1 + resampling.confidence) / 2)) * error
    p = float(2 * scipy.special.stdtr(least, -abs(value) / error)) if error > 0 else None
    return {**gain, "adjusted": value, "adjusted_low": value - reach, "adjusted_high": value + reach, "p": p}


def _residuals(score: Floats, gap: Floats, others: NDArray[np.bool_]) -> Floats:
    """Gains less what the straight line through the other runs says of a run with this score; shape (n, runs)."""
    x, y = score[:, others], gap[:, others]
    centre, level = x.mean(axis=1, keepdims=True), y.mean(axis=1, keepdims=True)
    spread = ((x - centre) ** 2).sum(axis=1, keepdims=True)
    slope = np.divide(
        ((x - centre) * (y - level)).sum(axis=1, keepdims=True), spread, out=np.zeros_like(spread), where=spread > 1e-12
    )
    return np.asarray(gap - level - slope * (score - centre))


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
    schema = frame_schema(
        "judge measure: String, model people value value_low value_high: Float64, above people_above: Int64"
    )
    return pl.DataFrame(rows, schema=schema, orient="row")

"""Scores of runs from a model's judgments, corrected by people's of a sample, and how many labels that needs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures.base import Measure

from truerank.arrays import Floats, Ints, frame_schema
from truerank.audits.assessors.grades import Grades
from truerank.audits.assessors.options import AssessorRules
from truerank.audits.assessors.sampling_designs import (
    Correcting,
    LinearMeasure,
    Ranks,
    label_plan,
    linear_measure,
    ranks_of,
    strata_of,
    with_probabilities,
)
from truerank.errors import InputError
from truerank.measures.grammar import MeasureSpec, parse_measures
from truerank.measures.magnitudes import mean_interval
from truerank.measures.prediction_powered import (
    Adjustment,
    LabelEstimates,
    Labelled,
    Pairs,
    basis,
    estimate,
    estimate_topics,
    half_widths,
    sums_by,
)
from truerank.measures.scoring import evaluate
from truerank.options import Resampling, Scoring

_COLUMNS_AT_ONCE: Final = 500
_SCORES: Final = frame_schema(
    "run measure method: String, labels: Int64, model model_low model_high people people_low people_high corrected "
    "corrected_low corrected_high power: Float64"
)
_DIFFERENCES: Final = frame_schema(
    "first second measure method: String, model corrected corrected_low corrected_high: Float64"
)


@dataclass(frozen=True)
class CorrectedScores:
    """What corrected scores are made of.

    Attributes:
        scores: run, measure, method (pairs, topics, or "" where nothing is estimated), labels (of people, that were
            used), model, model_low, model_high (the model's judgments alone, interval over topics), people,
            people_low, people_high (the same labels without the model), corrected, low, high, power (λ).
        differences: first, second, measure, method, model, corrected, low, high: of each two runs, first minus second.
        topics: how many topics the model judged.
        pairs: how many pairs it judged.
        labels: how many of them people judged.
        remarks: what was left out, and why.
    """

    scores: pl.DataFrame
    differences: pl.DataFrame
    topics: int
    pairs: int
    labels: int
    remarks: tuple[str, ...]


def corrected_scores(
    people: pl.DataFrame,
    model: pl.DataFrame,
    runs: Mapping[str, pl.DataFrame],
    measures: MeasureSpec = "P@10 DCG@10",
    correcting: Correcting = Correcting(),
    *,
    scoring: Scoring = Scoring(),
) -> CorrectedScores:
    """Estimates what people's judgments of all pairs would give each run, with intervals.

    P@k, DCG@k and RBP are estimated from any sample of pairs. Every other measure needs topics that people judged whole
    (`design="topics"`, or labels of all pairs): nDCG, AP and the like divide by what the judgments of the whole topic
    say, and a ratio of estimates is not an estimate of the ratio where a topic has few labels.

    Args:
        people: topic_id, doc_id, relevance, and `stratum` and `probability` of having been drawn. Without these, they
            are taken as drawn by the design for these runs and measures; a stratum then has the probability of its
            labels over its pairs. With the design topics: all pairs of the topics that were drawn.
        model: topic_id, doc_id, relevance, of all pairs. What the model did not judge counts as not relevant.
        runs: name → topic_id, doc_id, score.
        measures: of which the scores are.
        correcting: how the labels correct the scores.
        scoring: ties, depth, and the grade that counts as relevant.

    Returns:
        The scores and the differences of each two runs.

    Raises:
        InputError: no label for a pair of the model; probabilities that cannot be; a stratum with a single label; fewer
            than three whole topics.
    """
    ranks = ranks_of(model, runs, scoring)
    labels = _placed(people, ranks)
    remarks = []
    if strangers := len(people) - len(labels):
        remarks.append(f"{strangers:,} labels of people are for pairs that the model did not judge; they are not used.")
    if not len(labels):
        raise InputError(
            "people judged none of the model's pairs", "give labels of the same collection", where="people"
        )
    there = np.bincount(ranks.topic, minlength=len(ranks.topics))
    judged = np.bincount(ranks.topic[labels["row"].to_numpy()], minlength=len(ranks.topics))
    whole = np.flatnonzero(judged == there)
    parsed = parse_measures(measures)
    linear = {one: linear_measure(one, int(ranks.ranks.max()) + 1, scoring) for one in parsed}
    sums = [one for one in linear.values() if one is not None and correcting.design != "topics"]
    drawn = _drawn(ranks, labels, sums, correcting, remarks) if sums else labels
    scores, differences = [], []
    for measure, sum_of in linear.items():
        if sum_of is not None and correcting.design != "topics":
            found = _from_pairs(sum_of, ranks, drawn, correcting)
        elif correcting.design == "topics" or len(whole) == len(ranks.topics):
            model_scores = _model_scores(measure, ranks, runs, scoring)
            people_scores, used = _people_scores(measure, ranks, labels, whole, runs=runs, scoring=scoring)
            found = _from_topics(model_scores, people_scores, whole, correcting)._replace(labels=used)
        else:
            found = _Found(_model_scores(measure, ranks, runs, scoring))
            remarks.append(
                f"{measure} is not a sum over documents: it is corrected from topics that people judged whole "
                "(design topics), not from single pairs."
            )
        scores += found.rows(str(measure), ranks.runs, correcting)
        differences += found.pairs(str(measure), ranks.runs)
    return CorrectedScores(
        pl.DataFrame(scores, schema=_SCORES, orient="row"),
        pl.DataFrame(differences, schema=_DIFFERENCES, orient="row"),
        len(ranks.topics),
        len(ranks.frame),
        len(labels),
        tuple(remarks),
    )


class _Found(NamedTuple):
    """The estimates of one measure.

    `model` (scores of the topics under the model, shape (topics, runs)), `corrected` and `people` (estimates with half
    widths, None where there is none), `between` (means and half widths of the differences, shape (2, pairs of runs)),
    `labels` (used) and `method`.
    """

    model: Floats
    corrected: tuple[LabelEstimates, Floats] | None = None
    people: tuple[LabelEstimates, Floats] | None = None
    between: Floats | None = None
    labels: int = 0
    method: str = ""

    def rows(self, measure: str, runs: tuple[str, ...], correcting: Correcting) -> list[tuple[Any, ...]]:
        """A row of the scores for each run."""
        rows = []
        for column, run in enumerate(runs):
            alone = mean_interval(self.model[:, column], correcting.confidence)
            values: list[float | None] = [alone.mean, alone.low, alone.high]
            for found in (self.people, self.corrected):
                values += [None] * 3 if found is None else _ends(found[0].means[column], found[1][column])
            power = None if self.corrected is None else float(self.corrected[0].coefficients[-1])
            power = None if correcting.adjustment in ("none", "grades") and self.method == "pairs" else power
            rows.append((run, measure, self.method, self.labels, *values, power))
        return rows

    def pairs(self, measure: str, runs: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """A row of the differences for each two runs."""
        means = self.model.mean(axis=0)
        rows = []
        for place, (first, second) in enumerate(itertools.combinations(range(len(runs)), 2)):
            values = [None] * 3 if self.between is None else _ends(*self.between[:, place])
            gain = float(means[first] - means[second])
            rows.append((runs[first], runs[second], measure, self.method, gain, *values))
        return rows


def _ends(mean: float, half: float) -> list[float | None]:
    return [float(mean), float(mean - half), float(mean + half)]


def _from_pairs(linear: LinearMeasure, ranks: Ranks, labels: pl.DataFrame, correcting: Correcting) -> _Found:
    """From labels of single pairs."""
    grades = ranks.grades
    weights, predicted = linear.of_ranks(ranks.ranks), linear.of_grades(grades)
    labelled = Labelled(
        labels["row"].to_numpy(),
        linear.of_grades(labels["relevance"].to_numpy().astype(np.int64)),
        labels["stratum"].rank("dense").to_numpy().astype(np.int64) - 1,
        labels["probability"].to_numpy(),
    )
    pairs = Pairs(ranks.topic, weights, _features(predicted, grades, correcting.adjustment))
    topics = len(ranks.topics)
    fixed = np.ones(1) if correcting.adjustment == "fixed" else None

    def widths(found: LabelEstimates) -> Floats:
        return half_widths(found, correcting.confidence, correcting.target, topics=topics)

    corrected = estimate(pairs, labelled, topics, fixed=fixed, folds=correcting.folds, seed=correcting.seed)
    alone = estimate(
        pairs._replace(features=basis(predicted, "none")),
        labelled,
        topics,
        folds=correcting.folds,
        seed=correcting.seed,
    )
    runs = len(ranks.runs)
    both, between = _both(runs), []
    for start in range(0, len(both), _COLUMNS_AT_ONCE):
        part = both[start : start + _COLUMNS_AT_ONCE]
        # The runs themselves decide the coefficients, so that differences agree with the scores.
        columns = np.concatenate((weights, weights[:, part[:, 0]] - weights[:, part[:, 1]]), axis=1)
        found = estimate(
            pairs._replace(weights=columns),
            labelled,
            topics,
            fixed=fixed,
            tuned_on=runs,
            folds=correcting.folds,
            seed=correcting.seed,
        )
        between.append(np.stack((found.means, widths(found)))[:, runs:])
    modelled = sums_by(ranks.topic, weights * predicted[:, None], topics)
    differences = np.concatenate(between, axis=1) if between else None
    return _Found(modelled, (corrected, widths(corrected)), (alone, widths(alone)), differences, len(labels), "pairs")


def _features(predicted: Floats, grades: Ints, adjustment: Adjustment) -> Floats:
    return basis(grades.astype(np.float64) if adjustment == "grades" else predicted, adjustment)


def _placed(people: pl.DataFrame, ranks: Ranks) -> pl.DataFrame:
    """The labels of pairs that the model judged, with the place of the pair in the column row."""
    places = ranks.frame.select("topic_id", "doc_id", pl.int_range(pl.len(), dtype=pl.Int64).alias("row"))
    return people.join(places, on=["topic_id", "doc_id"], how="inner", maintain_order="left")


def _drawn(
    ranks: Ranks, labels: pl.DataFrame, measures: list[LinearMeasure], correcting: Correcting, remarks: list[str]
) -> pl.DataFrame:
    """The labels with stratum and probability: as given, or by the design."""
    if "probability" in labels.columns:
        key = "stratum" if "stratum" in labels.columns else "probability"
        _check_given(labels, key, ranks, measures)
        return labels.with_columns(pl.col(key).cast(pl.String).alias("stratum"))
    for design in dict.fromkeys((correcting.design, "uniform")):
        strata = strata_of(ranks, measures, design)
        names = np.array([*strata.names, None], dtype=object)[strata.stratum].tolist()
        pairs = ranks.frame.with_columns(pl.Series("stratum", names, dtype=pl.String))
        found = with_probabilities(labels, pairs)
        counts = dict(found.group_by("stratum").len().iter_rows())
        lacking = [
            name
            for name, size in zip(strata.names, strata.sizes, strict=True)
            if counts.get(name, 0) < min(2, int(size))
        ]
        if not lacking:
            return _placed(found, ranks)
        remarks.append(
            f"Stratum '{lacking[0]}' of the design {design} has fewer than two labels: the labels are taken as a "
            "uniform sample."
        )
    raise InputError(
        "people judged fewer than two of the pairs that count in the scores", "label more of them", where="people"
    )


def _check_given(labels: pl.DataFrame, key: str, ranks: Ranks, measures: list[LinearMeasure]) -> None:
    """Refuses probabilities that cannot be, or that do not fit these runs and measures."""
    chance = labels["probability"].to_numpy()
    if not np.all((chance > 0) & (chance <= 1)):
        raise InputError("a probability is not above 0 and at most 1", "correct the column", where="people")
    spread = labels.group_by(key).agg(
        pl.col("probability").min().alias("low"), pl.col("probability").max().alias("high")
    )
    for name, low, high in spread.filter(pl.col("high") - pl.col("low") > 1e-9).sort(key).head(1).iter_rows():
        fault = f"stratum '{name}' has probabilities from {low:g} to {high:g}"
        raise InputError(fault, "give all pairs of a stratum the same one", where="people")
    counting = np.zeros(len(ranks.topic), np.bool_)
    for measure in measures:
        counting |= measure.of_ranks(ranks.ranks).any(axis=1)
    covered, needed = float(np.sum(1 / chance)), int(counting.sum())
    if covered < needed - 0.5:
        fault = f"the labels stand for {covered:,.0f} pairs, but {needed:,} count in the scores"
        raise InputError(fault, "draw them for these runs and measures", where="people")


def _model_scores(measure: Measure, ranks: Ranks, runs: Mapping[str, pl.DataFrame], scoring: Scoring) -> Floats:
    """The scores of all topics under the model's judgments, shape (topics, runs)."""
    return evaluate(ranks.frame, dict(runs), measure, scoring).values[:, 0, :].T


def _people_scores(
    measure: Measure,
    ranks: Ranks,
    labels: pl.DataFrame,
    whole: Ints,
    *,
    runs: Mapping[str, pl.DataFrame],
    scoring: Scoring,
) -> tuple[Floats, int]:
    """The scores of the whole topics under people's judgments, shape (whole topics, runs), and the labels in them."""
    named = [ranks.topics[number] for number in whole]
    if len(named) < 3:
        raise InputError(f"people judged every pair of {len(named)} topics", "judge 3 topics or more", where="people")
    used = labels.filter(pl.col("topic_id").is_in(named)).select("topic_id", "doc_id", "relevance")
    found = evaluate(used, dict(runs), measure, scoring)
    return found.values[:, 0, :].T[[found.topics.index(topic) for topic in named]], len(used)


def _from_topics(model: Floats, people: Floats, whole: Ints, correcting: Correcting) -> _Found:
    """From the scores of topics that people judged whole."""
    fixed, runs = {"none": 0.0, "fixed": 1.0}.get(correcting.adjustment), model.shape[1]

    def widths(found: LabelEstimates) -> Floats:
        # Both parts of the variance are estimated from the judged topics.
        return half_widths(found, correcting.confidence, correcting.target, topics=int(found.design_freedom[0]) + 1)

    corrected = estimate_topics(model, people, whole, fixed=fixed)
    alone = estimate_topics(model, people, whole, fixed=0.0)
    both = _both(runs)
    between = None
    if len(both):
        columns, others = (
            np.concatenate((part, part[:, both[:, 0]] - part[:, both[:, 1]]), axis=1) for part in (model, people)
        )
        gains = estimate_topics(columns, others, whole, fixed=fixed, tuned_on=runs)
        between = np.stack((gains.means, widths(gains)))[:, runs:]
    return _Found(model, (corrected, widths(corrected)), (alone, widths(alone)), between, method="topics")


def _both(runs: int) -> Ints:
    """Each two runs, shape (pairs of runs, 2)."""
    return np.array(list(itertools.combinations(range(runs), 2)), np.int64).reshape(-1, 2)


#: The measure of the plan, and those that are corrected where none is asked for that single pairs can correct.
PLANNED = "P@10"
_LINEAR = ("P@10", "DCG@10")


def corrected_frame(
    grades: Grades,
    runs: Mapping[str, pl.DataFrame],
    measures: MeasureSpec,
    rules: AssessorRules,
    plan: tuple[Scoring, Resampling],
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Scores of the runs from each model's grades of all pairs, corrected by people's grades of some of them."""
    scoring, resampling = plan
    people, found, remarks = grades.qrels[""], [], []
    names = list(dict.fromkeys([*map(str, parse_measures(measures)), *_LINEAR]))
    correcting = Correcting(design=rules.people_sample, confidence=resampling.confidence, seed=resampling.seed)
    for judge in grades.judges:
        model = grades.qrels[judge]
        if not len(model.join(people, on=["topic_id", "doc_id"], how="anti")):
            continue
        try:
            one = corrected_scores(people, model, runs, " ".join(names), correcting, scoring=scoring)
        except InputError as error:
            remarks.append(f"{judge}: scores are not corrected: {error}")
            continue
        found.append(one.scores.select(pl.lit(judge).alias("judge"), pl.all()))
        remarks += [f"{judge}: {remark}" for remark in one.remarks]
    return (pl.concat(found) if found else pl.DataFrame(schema={"judge": pl.String})), tuple(dict.fromkeys(remarks))


def plans_frame(
    grades: Grades, runs: Mapping[str, pl.DataFrame], rules: AssessorRules, plan: tuple[Scoring, Resampling]
) -> pl.DataFrame:
    """How many labels of people an interval needs that is as wide as the margin on both sides, for each model.

    The collection's own topics are what the interval is for; people's grades so far are the pilot.
    """
    scoring, resampling = plan
    correcting = Correcting(target="collection", confidence=resampling.confidence, seed=resampling.seed)
    rows = []
    for judge in grades.judges:
        model, pilot = grades.qrels[judge], grades.qrels[""]
        try:
            one = label_plan(model, runs, PLANNED, correcting, width=2 * rules.margin, pilot=pilot, scoring=scoring)
        except InputError:
            continue
        rows.append((judge, len(model), one.labels, one.width, one.reached))
    schema = frame_schema("judge: String, pairs labels: Int64, width: Float64, reached: Boolean")
    return pl.DataFrame(rows, schema=schema, orient="row")

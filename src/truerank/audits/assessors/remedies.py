"""Where a model's scores are off: scores corrected by people's sample of its pairs, and how many labels that takes."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from truerank.audits.assessors.correcting import corrected_scores
from truerank.audits.assessors.grades import Grades
from truerank.audits.assessors.options import AssessorRules
from truerank.audits.assessors.sampling_designs import Correcting, label_plan
from truerank.errors import InputError
from truerank.measures.grammar import MeasureSpec, parse_measures
from truerank.options import Resampling, Scoring

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
    schema = {
        "judge": pl.String, "pairs": pl.Int64, "labels": pl.Int64, "width": pl.Float64, "reached": pl.Boolean,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")

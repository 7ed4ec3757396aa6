"""`truerank judge audit`: can a model's judgments stand in for people's?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl

from truerank.audits.assessors import agreeing, ordering
from truerank.audits.assessors.agreeing import counted
from truerank.audits.assessors.bootstrapping import bootstrap
from truerank.audits.assessors.ensembles import ensembles_frame
from truerank.audits.assessors.families import FamilySource, families_frame, read_families
from truerank.audits.assessors.grades import Grades, read_grades, read_voices
from truerank.audits.assessors.last_stage import last_stage_frame
from truerank.audits.assessors.options import AssessorRules
from truerank.audits.assessors.remedies import corrected_frame, plans_frame
from truerank.audits.assessors.results import AssessorAudit
from truerank.judging.coefficients import Floats
from truerank.judging.rating_table import Ratings
from truerank.judging.ratings import named_source
from truerank.judging.store import Store
from truerank.measures.grammar import MeasureSpec
from truerank.measures.scoring import RunSource, has_runs, run_inputs
from truerank.options import Flag, Out, Resampling, Scoring, command
from truerank.records import Input
from truerank.sources.inputs import input_of
from truerank.sources.notebook import is_single
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: Qrels, label files and stores, as [NAME=]SRC; in Python also judgments of any kind by name.
Grading: TypeAlias = str | Path | pl.DataFrame | Mapping[str, Any] | Sequence[Any] | Store | Ratings


@command
def audit(  # noqa: PLR0917 - people, models and runs are told apart by place, the rest by name
    people: Annotated[Grading, Flag(metavar="[NAME=]SRC", reads=list[str])],
    model: Annotated[Grading, Flag(metavar="[NAME=]SRC", reads=list[str])],
    run: Annotated[RunSource, Flag(metavar="FILE", reads=list[str])] = (),
    families: Annotated[FamilySource, Flag(metavar="FILE", reads=str)] = None,
    measures: Annotated[MeasureSpec, Flag(reads=str)] = "nDCG@10",
    rules: AssessorRules = AssessorRules(),
    resampling: Resampling = Resampling(resamples=1_000),
    scoring: Scoring = Scoring(),
    *,
    out: Out = None,
) -> AssessorAudit:
    """Says for which uses the grades of a model can stand in for those of people.

    Compared are agreement, grades given too high or too low, and, with runs, the order of the systems, the families
    that a model favours, and what happens where the model itself is the last stage. All intervals are over topics.
    There are four verdicts for each model: on absolute scores, the order of all systems, the order of the best, and
    selecting what people judge next: USABLE, WITH CARE, NOT USABLE or UNKNOWN.

    Args:
        people: grades of people: qrels, label files or judging stores; several, and annotators of one source, are
            several people.
        model: grades of models, in the same forms; of a store, those of its models count.
        run: TREC runs, whose order is compared.
        families: a table of runs with the columns run and family, such as what made them; in Python also by run.
        measures: measures of ir_measures that are means over topics; the first one decides the verdicts.
        rules: what is compared, and by which rules.
        resampling: of the intervals over topics.
        scoring: how runs are scored; its lowest relevant grade also divides the grades.
        out: a folder for the report, its tables and figures, the card and the figures as Parquet.

    Returns:
        What was found.

    Raises:
        InputError: a fault in a source, with its place; nothing in common; a scale that does not fit.

    Examples:

        truerank judge audit --people track.qrels --model gpt=gpt.qrels --model llama=llama.qrels --out assessors/

        truerank judge audit --people passages.judged --model passages.judged --run runs/bm25.run --run runs/mono.run
        --families runs.csv --rel 2 --fail-on "not usable"

    Source: Rahmani et al. (2025), Judging the Judges (LLMJudge); Clarke, Dietz (2024) for the circularity of model
    judges.
    """
    grades = read_grades(read_voices(people, models=False), read_voices(model, models=True), rules)
    runs = ordering.read_systems(run) if has_runs(run) else {}
    of = read_families(families, tuple(runs))
    code = grades.code_of(scoring.rel)
    frames = _agreement(grades, code, rules, resampling)
    scores = None
    remarks: tuple[str, ...] = ()
    if runs:
        scores = ordering.score_systems(grades, runs, measures, scoring)
        frames["ranks"] = agreeing.rating_frame(grades, resampling, ordering.rank_bands(grades, runs))
        frames["order"] = ordering.order_frame(scores, resampling)
        frames["pairs"] = ordering.pairs_frame(scores, rules.correction, resampling.confidence)
        frames["scores"] = ordering.scores_frame(scores, resampling)
        frames["corrected"], remarks = corrected_frame(grades, runs, measures, rules, (scoring, resampling))
        frames["plans"] = plans_frame(grades, runs, rules, (scoring, resampling))
        frames["last_stage"] = last_stage_frame(grades, runs, scores, (measures, scoring, resampling))
        if of:
            frames["families"] = families_frame(scores, of, resampling, rules.correction)
    found = AssessorAudit(
        grades=grades,
        scores=scores,
        frames=frames,
        families=of,
        rules=rules,
        resampling=resampling,
        scoring=scoring,
        remarks=remarks,
        out=None if out is None else Path(out),
    )
    if out is not None:
        options = {
            "measures": str(measures), "rules": rules, "resampling": resampling, "scoring": scoring,
        }  # fmt: skip
        inputs = [
            *_inputs("people", people),
            *_inputs("model", model),
            *run_inputs(run),
            *_inputs("families", families),
        ]
        with started("judge audit", inputs, options, out, packages=("scipy", "ir-measures", "matplotlib")) as job:
            job.skipped = {"undecided": grades.undecided, "outside": [one._asdict() for one in grades.outside]}
            publish(found, job)
    return found


def _agreement(grades: Grades, code: int, rules: AssessorRules, resampling: Resampling) -> dict[str, pl.DataFrame]:
    """The figures that need no runs."""
    judges = list(zip(grades.judges, grades.given.T, strict=True))
    said = list(zip(grades.people, grades.said.T, strict=True))
    return {
        "agreement": agreeing.agreement_frame(grades, judges, resampling),
        "cuts": agreeing.cuts_frame(grades, resampling),
        "confusion": agreeing.confusion_frame(grades),
        "rating": agreeing.rating_frame(grades, resampling, agreeing.grade_bands(grades)),
        "topics": agreeing.topics_frame(grades),
        "between": agreeing.between_frame(grades, judges, resampling),
        "differences": agreeing.differences_frame(grades, judges, resampling, rules.correction),
        "people": agreeing.between_frame(grades, said, resampling),
        "ceiling": agreeing.ceiling_frame(grades, resampling),
        "ensembles": ensembles_frame(grades, resampling, rules.correction),
        "choosing": choosing_frame(grades, code, resampling),
    }


def _inputs(role: str, sources: Any) -> list[Input]:
    if sources is None:
        return []
    if isinstance(sources, Mapping) and not is_single(sources):
        return [input_of(role, source, str(name)) for name, source in sources.items()]
    several = sources if isinstance(sources, list | tuple) else (sources,)
    found = []
    for source in several:
        if isinstance(source, str | Path):
            name, spec = named_source(str(source))
            found.append(input_of(role, spec, name))
        else:
            found.append(input_of(role, source))
    return found


#: The share of relevant documents that people want to have seen.
_WANTED = 0.9


def choosing_frame(grades: Grades, code: int, resampling: Resampling) -> pl.DataFrame:
    """How a judge's grades order documents for people.

    Args:
        grades: what was said.
        code: the lowest code of people that counts as relevant.
        resampling: of the intervals over topics.

    Returns:
        Columns judge, topics (with relevant documents and others); value, low, high: the chance that a relevant
        document of a topic has a higher grade of the judge than another one, ties count half (the area under the ROC
        curve), mean over topics; missed, missed_low, missed_high: the share of relevant documents to which the judge
        gave its lowest grade; effort: the share of a topic's documents that people see, by falling grade, until they
        have seen 90% of the relevant ones.
    """
    rows = []
    for name, codes in zip(grades.judges, grades.given.T, strict=True):
        counts = counted(grades, grades.reference, codes).reshape(len(grades.topics), len(grades.scale), -1)
        relevant, others = counts[:, code:].sum(axis=1), counts[:, :code].sum(axis=1)
        known = (relevant.sum(axis=1) > 0) & (others.sum(axis=1) > 0)
        lower = np.cumsum(others, axis=1) - others
        wins = (relevant * (lower + others / 2)).sum(axis=1)
        area = np.divide(
            wins, relevant.sum(axis=1) * others.sum(axis=1), out=np.zeros(len(wins)), where=known
        )  # fmt: skip

        counted_topics = known.astype(np.float64)

        def statistic(
            weights: Floats, area: Floats = area, relevant: Floats = relevant, known: Floats = counted_topics
        ) -> Floats:
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = weights @ (area * known) / (weights @ known)
                missed = weights @ relevant[:, 0] / (weights @ relevant.sum(axis=1))
            return np.stack([mean, missed], axis=1)

        found = bootstrap(statistic, len(grades.topics), resampling)
        ends = [None if np.isnan(part[at]) else float(part[at]) for at in (0, 1) for part in found[:3]]
        rows.append((name, int(known.sum()), *ends, _effort(relevant[known], others[known])))
    numbers = ("value", "low", "high", "missed", "missed_low", "missed_high", "effort")
    schema = {"judge": pl.String, "topics": pl.Int64, **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _effort(relevant: Floats, others: Floats) -> float | None:
    """The mean share of documents seen until the wanted share of relevant ones is; equal grades in random order."""
    if not len(relevant):
        return None
    found = []
    for good, bad in zip(relevant[:, ::-1], others[:, ::-1], strict=True):
        wanted = _WANTED * good.sum()
        before = np.cumsum(good)
        at = int(np.searchsorted(before, wanted - 1e-9))
        inside = (wanted - (before[at] - good[at])) / good[at]
        seen = (good + bad)[:at].sum() + inside * (good + bad)[at]
        found.append(seen / (good + bad).sum())
    return float(np.mean(found))

"""`truerank judge audit`: can a model's judgments stand in for people's?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import polars as pl

from truerank.audits.assessors import agreeing, ordering
from truerank.audits.assessors.choosing import choosing_frame
from truerank.audits.assessors.ensembles import ensembles_frame
from truerank.audits.assessors.families import FamilySource, families_frame, read_families
from truerank.audits.assessors.grades import Grades, read_grades, read_voices
from truerank.audits.assessors.last_stage import last_stage_frame
from truerank.audits.assessors.options import AssessorRules
from truerank.audits.assessors.ordering import SystemScores
from truerank.audits.assessors.remedies import corrected_frame, plans_frame
from truerank.audits.assessors.results import AssessorAudit
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
    frames = _agreement(grades, grades.code_of(scoring.rel), rules, resampling)
    scores: SystemScores | None = None
    remarks: tuple[str, ...] = ()
    if runs:
        scores = ordering.score_systems(grades, runs, measures, scoring)
        systems = _Systems(grades, runs, scores, of, rules)
        ordered, remarks = systems.frames(measures, scoring, resampling)
        frames |= ordered
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
    if out is None:
        return found
    options = {"measures": str(measures), "rules": rules, "resampling": resampling, "scoring": scoring}
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


@dataclass(frozen=True)
class _Systems:
    """The runs, scored by people's grades and by each model's, and the families they are of."""

    grades: Grades
    runs: Mapping[str, pl.DataFrame]
    scores: SystemScores
    families: Mapping[str, str]
    rules: AssessorRules

    def frames(
        self, measures: MeasureSpec, scoring: Scoring, resampling: Resampling
    ) -> tuple[dict[str, pl.DataFrame], tuple[str, ...]]:
        """The figures about runs, and remarks on corrected scores."""
        grades, runs, scores, rules = self.grades, self.runs, self.scores, self.rules
        ways = (scoring, resampling)
        corrected, remarks = corrected_frame(grades, runs, measures, rules, ways)
        found = {
            "ranks": agreeing.rating_frame(grades, resampling, ordering.rank_bands(grades, runs)),
            "order": ordering.order_frame(scores, resampling),
            "pairs": ordering.pairs_frame(scores, rules.correction, resampling.confidence),
            "scores": ordering.scores_frame(scores, resampling),
            "corrected": corrected,
            "plans": plans_frame(grades, runs, rules, ways),
            "last_stage": last_stage_frame(grades, runs, scores, (measures, *ways)),
        }
        if self.families:
            found["families"] = families_frame(scores, self.families, resampling, rules.correction)
        return found, remarks


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

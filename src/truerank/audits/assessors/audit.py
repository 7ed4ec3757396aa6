"""`truerank judge audit`: can a model's judgments stand in for people's? The command and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

import polars as pl

from truerank.audits.assessors import agreement, order
from truerank.audits.assessors.agreement import choosing_frame, ensembles_frame
from truerank.audits.assessors.correction import corrected_frame, plans_frame
from truerank.audits.assessors.grades import Grades, read_grades, read_voices
from truerank.audits.assessors.options import AssessorRules
from truerank.audits.assessors.order import FamilySource, SystemScores, families_frame, last_stage_frame, read_families
from truerank.audits.assessors.panel import judge_families, left_out_frame, panel_frame
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.judging.ratings import Ratings, read_ratings
from truerank.judging.store import Store
from truerank.measures.grammar import MeasureSpec
from truerank.measures.scoring import RunSource, has_runs, run_inputs
from truerank.options import Columns, Flag, Out, Resampling, Scoring, command
from truerank.records import Input
from truerank.sources.grammar import named_source
from truerank.sources.inputs import input_of, inputs_of
from truerank.sources.notebook import is_single
from truerank.sources.recognition import several_paths
from truerank.work.publishing import publish
from truerank.work.runs import run as started


@dataclass(frozen=True, eq=False, repr=False)
class AssessorAudit(Result, shown_in="truerank.audits.assessors.page"):
    """Whether the grades of models can stand in for those of people, and for what.

    Attributes:
        grades: what people and models said about the same pairs.
        scores: the scores of the runs under people and each model; None without runs.
        frames: the figures by name: agreement, cuts, confusion, rating, ranks, topics, between, differences, people,
            ceiling, ensembles, choosing, panel, left_out; with runs order, pairs, scores, last_stage;
            with families families; with runs corrected and plans.
        families: the family of each run and model, where it was given.
        rules: the rules.
        resampling: of the intervals.
        scoring: how runs were scored.
        remarks: what became of the corrected scores, in sentences.
        out: the folder that it was written to.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("NOT USABLE", "WITH CARE", "UNKNOWN")

    grades: Grades
    scores: SystemScores | None
    frames: Mapping[str, pl.DataFrame]
    families: Mapping[str, str] = field(default_factory=dict)
    rules: AssessorRules = AssessorRules()
    resampling: Resampling = Resampling()
    scoring: Scoring = Scoring()
    remarks: tuple[str, ...] = ()
    out: Path | None = None

    def best(self) -> tuple[str, ...]:
        """The models by their α (ordinal) with people, the highest first; equal ones in the order given."""
        main = self.frames["agreement"].filter(pl.col("coefficient") == "alpha-ordinal")
        known = {judge: value for judge, value in main.select("judge", "value").iter_rows() if value is not None}
        return tuple(sorted(self.grades.judges, key=lambda judge: -known.get(judge, float("-inf"))))

    def of(self, frame: str, **wanted: Any) -> list[dict[str, Any]]:
        """Rows of a frame in which these columns have these values; none where the frame is not there."""
        if frame not in self.frames:
            return []
        found = self.frames[frame]
        for column, value in wanted.items():
            found = found.filter(pl.col(column) == value)
        return found.rows(named=True)


#: Qrels, label files and stores, as [NAME=]SRC; in Python also judgments of any kind by name.
Grading: TypeAlias = str | Path | pl.DataFrame | Mapping[str, Any] | Sequence[Any] | Store | Ratings


@command
def audit(  # noqa: PLR0917 - people, models and runs are told apart by place, the rest by name
    people: Annotated[Grading, Flag(metavar="[NAME=]SRC", reads=list[str])] = (),
    model: Annotated[Grading, Flag(metavar="[NAME=]SRC", reads=list[str])] = (),
    run: Annotated[RunSource, Flag(metavar="FILE", reads=list[str])] = (),
    families: Annotated[FamilySource, Flag(metavar="FILE", reads=str)] = None,
    measures: Annotated[MeasureSpec, Flag(reads=str)] = "nDCG@10",
    rules: AssessorRules = AssessorRules(),
    resampling: Resampling = Resampling(resamples=1_000),
    scoring: Scoring = Scoring(),
    *,
    paths: Annotated[Any, Flag(metavar="PATH", positional=True, reads=list[str])] = (),
    columns: Columns = "",
    out: Out = None,
) -> AssessorAudit:
    """Says for which uses the grades of a model can stand in for those of people.

    Compared are agreement, grades given too high or too low, and, with runs, the order of the systems, the families
    that a model favours, and what happens where the model itself is the last stage. All intervals are over topics.
    Three models and more are a panel: to how many judges that err independently do they amount?
    There are four verdicts for each model: on absolute scores, the order of all systems, the order of the best, and
    selecting what people judge next: USABLE, WITH CARE, NOT USABLE or UNKNOWN.

    Args:
        people: grades of people: qrels, label files or judging stores; several, and annotators of one source, are
            several people.
        model: grades of models, in the same forms; of a store, those of its models count.
        run: TREC runs, whose order is compared.
        families: a table with the columns run and family, such as what made a run; in Python also by name. Models may
            be in it, too; the family of a model that is not is its name as far as the first of - _ / . : @.
        measures: measures of ir_measures that are means over topics; the first one decides the verdicts.
        rules: what is compared, and by which rules.
        resampling: of the intervals over topics.
        scoring: how runs are scored; its lowest relevant grade also divides the grades.
        paths: instead of `people` and `model`: judging stores and label files that say who is a model, in a column
            `role` or by its name, such as a column "gpt" beside one of a person.
        columns: of label files: what columns are, where their names do not say, such as
            id=topic,document=passage,label=ann+gpt.
        out: a folder for the report, its tables and figures, the card and the figures as Parquet.

    Returns:
        What was found.

    Raises:
        InputError: a fault in a source, with its place; nothing in common; a scale that does not fit.

    Examples:

        truerank judge audit grades.csv --columns id=topic,document=passage,label=ann+gpt

        truerank judge audit --people track.qrels --model gpt=gpt.qrels --model llama=llama.qrels --out assessors/

        truerank judge audit --people passages.judged --model passages.judged --run runs/bm25.run --run runs/mono.run
        --families runs.csv --rel 2 --fail-on "not usable"

    Source: Rahmani et al. (2025), Judging the Judges (LLMJudge); Clarke, Dietz (2024) for the circularity of model
    judges.
    """
    both = several_paths(paths)
    named = [not (isinstance(given, list | tuple | Mapping) and not given) for given in (people, model)]
    if named != [not both] * 2:
        fault = "not both people and a model" if not both else "two readings: paths, and people or models beside them"
        raise OptionError("people", fault, "give `people` and `model`, or paths of files that say who is a model")
    ratings = read_ratings(list(both), columns=columns) if both else None
    if ratings and not (ratings.models and ratings.people):
        fault = f"nobody, or everybody, is said to be a model: {', '.join(one.name for one in ratings.annotators)}"
        raise InputError(fault, "give a column role, or name the files by `people` and `model`", where=both[0])
    said = read_voices(ratings or people, models=False), read_voices(ratings or model, models=True)
    grades = read_grades(*said, rules)
    runs = order.read_systems(run) if has_runs(run) else {}
    of = read_families(families, tuple(runs), grades.judges)
    frames = _agreement(grades, grades.code_of(scoring.rel), rules, resampling)
    frames["panel"] = panel_frame(grades, resampling)
    frames["left_out"] = left_out_frame(grades, judge_families(grades.judges, of), resampling, rules.correction)
    scores: SystemScores | None = None
    remarks: tuple[str, ...] = ()
    if runs:
        scores = order.score_systems(grades, runs, measures, scoring)
        ways = (scoring, resampling)
        corrected, remarks = corrected_frame(grades, runs, measures, rules, ways)
        frames |= {
            "ranks": agreement.rating_frame(grades, resampling, order.rank_bands(grades, runs)),
            "order": order.order_frame(scores, resampling),
            "pairs": order.pairs_frame(scores, rules.correction, resampling.confidence),
            "scores": order.scores_frame(scores, resampling),
            "corrected": corrected,
            "plans": plans_frame(grades, runs, rules, ways),
            "last_stage": last_stage_frame(grades, runs, scores, (measures, *ways)),
        }
        if any(run in of for run in runs):
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
    found = found.read_from(ratings.readings()) if ratings else found
    if out is None:
        return found
    options = {"measures": str(measures), "rules": rules, "resampling": resampling, "scoring": scoring}
    inputs = [
        *inputs_of(paths=both),
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
        "agreement": agreement.agreement_frame(grades, judges, resampling),
        "cuts": agreement.cuts_frame(grades, resampling),
        "confusion": agreement.confusion_frame(grades),
        "rating": agreement.rating_frame(grades, resampling, agreement.grade_bands(grades)),
        "topics": agreement.topics_frame(grades),
        "between": agreement.between_frame(grades, judges, resampling),
        "differences": agreement.differences_frame(grades, judges, resampling, rules.correction),
        "people": agreement.between_frame(grades, said, resampling),
        "ceiling": agreement.ceiling_frame(grades, resampling),
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

"""The command `check`: is this number true?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from truerank.claims.claim import Claim, chosen_claim
from truerank.claims.conclusion import concluded, no_claim
from truerank.claims.data_questions import collection_answer, leakage_answer, models_answer
from truerank.claims.inquiry import Inquiry, resolved, written_settings
from truerank.claims.judging_questions import pools_answer, unjudged_answer
from truerank.claims.material import ClaimMaterial, completed, read_material
from truerank.claims.options import ClaimOptions, ClaimSources
from truerank.claims.planning import planned
from truerank.claims.results import QUESTIONS, Check, ClaimAnswer, ClaimConclusion, PlannedQuestion
from truerank.claims.scoring_questions import policies_answer, significance_answer
from truerank.claims.steps import AuditSteps
from truerank.claims.version_question import versions_answer
from truerank.options import Encoding, Flag, Labels, Out, Resampling, Scoring, command
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

__all__ = ["check"]


@command
def check(  # noqa: PLR0917 - the file of settings stands first, the rest is named
    settings: Annotated[str | Path | None, Flag(metavar="FILE", positional=True, reads=str)] = None,
    sources: ClaimSources = ClaimSources(),
    options: ClaimOptions = ClaimOptions(),
    judged: Labels = Labels(),
    encoding: Encoding = Encoding(),
    resampling: Resampling = Resampling(resamples=1_000),
    scoring: Scoring = Scoring(),
    *,
    out: Out = None,
    progress: Progress | None = None,
) -> Check:
    """Checks whether a result can be believed: all audits that apply to it, on one page.

    The claim is that one run is better than another. The command says first which questions can be answered with what
    was given, and what is lacking for the others. Then it runs the audits that apply, each in a folder of its own below
    `out`, and says what each of them does to the difference. The conclusion is one of HOLDS, HOLDS EXCEPT, CANNOT TELL,
    DOES NOT HOLD and UNKNOWN. A check that was killed continues when it is started again.

    Args:
        settings: a check.yaml, such as an earlier check wrote; other options replace what stands in it. "sample" is the
            embedded sample, whose faults are known.
        sources: what is given.
        options: what the claim is about.
        judged: judged pairs of topics and training queries; leaks then rest on what people confirmed.
        encoding: what turns queries into vectors.
        resampling: random removals of topics, confidence of all intervals together, and seed.
        scoring: how runs are scored.
        out: a folder for the page, the card, check.yaml, and the audits.
        progress: is told what happens.

    Returns:
        The answers and the conclusion.

    Raises:
        InputError: nothing to check, or a source or option is at fault.

    Examples:

        truerank check --test beir/scifact --run bm25.run --run dense.run --baseline bm25 --train train-queries.tsv
        --out check/

        truerank check --test topics.trec --qrels track.qrels --docs corpus.jsonl --run a.run --run b.run
        --model-judgments gpt=gpt.qrels --out check/ --fail-on "does not hold"

        truerank check check/check.yaml
    """
    given = Inquiry(completed(sources), options, judged, encoding, resampling, scoring, out)
    if settings is not None:
        given = resolved(settings, given)
        given = replace(given, sources=completed(given.sources))
    told = progress or Quiet()
    plan = planned(given.sources)
    material = read_material(given.sources)
    if given.options.dry_run:
        return _planned_only(given, material, plan)
    if given.out is None:
        with TemporaryDirectory() as folder:
            return _checked(given, material, plan, Path(folder), told)
    with started("check", given.inputs(), given.chosen(), given.out, packages=("scipy", "ir-measures")) as job:
        found = replace(_checked(given, material, plan, job.folder, told), folder=job.folder)
        publish(found, job)
    return found


def _planned_only(given: Inquiry, material: ClaimMaterial, plan: tuple[PlannedQuestion, ...]) -> Check:
    waiting = ClaimConclusion("UNKNOWN", "Nothing was run: this is the plan.", (), tuple(QUESTIONS))
    return Check(None, None, (), waiting, plan, written_settings(given, Path()), material.test)


def _checked(
    given: Inquiry, material: ClaimMaterial, plan: tuple[PlannedQuestion, ...], folder: Path, told: Progress
) -> Check:
    """Answers every question that can be answered, in their order."""
    claim = _claim(given, material)
    work = _Questions(given, material, claim, folder, told)
    asked = dict(work.questions())
    answers = []
    for one in plan:
        if not one.answerable or one.name not in asked:
            answers.append(_unanswered(one))
            continue
        told.start(f"check: {one.name}")
        answers.append(asked[one.name]())
    conclusion = no_claim(answers) if claim is None else concluded(claim, answers)
    base = None if claim is None else claim.base
    return Check(claim, base, tuple(answers), conclusion, plan, written_settings(given, folder), material.test)


def _claim(given: Inquiry, material: ClaimMaterial) -> Claim | None:
    if material.qrels is None or len(material.runs) < 2:
        return None
    return chosen_claim(
        material.runs,
        material.qrels,
        given.options.measure,
        given.scoring,
        (given.sources.system, given.sources.baseline),
        comparisons=given.options.comparisons,
        confidence=given.resampling.confidence,
    )


def _unanswered(one: PlannedQuestion) -> ClaimAnswer:
    return ClaimAnswer(
        one.name,
        "UNKNOWN",
        "Not given.",
        "unknown",
        "What this does to the claim is not known.",
        (),
        f"Give {one.needs}.",
    )


@dataclass(frozen=True, eq=False)
class _Questions:
    """What answers need: everything that was read, and where audits write.

    Attributes:
        given: what was asked.
        material: what was read.
        claim: the claim, if there is one.
        folder: of the check; each audit has one of its own in it.
        told: is told what happens.
    """

    given: Inquiry
    material: ClaimMaterial
    claim: Claim | None
    folder: Path
    told: Progress

    def questions(self) -> Iterator[tuple[str, Callable[[], ClaimAnswer]]]:
        """The questions that have an answer here, by name."""
        claim, steps = self.claim, AuditSteps(self.folder, self.told)
        yield "leakage", lambda: leakage_answer(self.given, self.material, claim, steps)
        yield "collection", lambda: collection_answer(self.given, claim, steps)
        if claim is not None:
            yield "significance", lambda: significance_answer(claim)
            yield "unjudged", lambda: unjudged_answer(claim)
            yield "pools", lambda: pools_answer(claim, self.material.teams)
            yield "models", lambda: models_answer(self.given, self.material, claim, steps)
            yield "versions", lambda: versions_answer(self.given, claim, steps)
            yield "policies", lambda: policies_answer(claim, self.given.options.measures)

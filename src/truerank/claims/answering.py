"""Asks every question that can be answered with what was given, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from truerank.claims.claim import Claim, chosen_claim
from truerank.claims.conclusion import concluded, no_claim
from truerank.claims.data_questions import collection_answer, leakage_answer
from truerank.claims.inquiry import Inquiry, written_settings
from truerank.claims.material import ClaimMaterial
from truerank.claims.model_judgments import models_answer
from truerank.claims.pool_trials import with_trials
from truerank.claims.pools import pools_answer
from truerank.claims.results import QUESTIONS, Check, ClaimAnswer, ClaimConclusion, PlannedQuestion
from truerank.claims.scoring_questions import policies_answer, significance_answer
from truerank.claims.steps import AuditSteps
from truerank.claims.unjudged import unjudged_answer
from truerank.claims.version_question import versions_answer
from truerank.work.progress import Progress


def only_planned(given: Inquiry, material: ClaimMaterial, plan: tuple[PlannedQuestion, ...]) -> Check:
    """What could be answered, with nothing run."""
    waiting = ClaimConclusion("UNKNOWN", "Nothing was run: this is the plan.", (), tuple(QUESTIONS))
    return Check(None, None, (), waiting, plan, written_settings(given, Path()), material.test)


def answered(
    given: Inquiry, material: ClaimMaterial, plan: tuple[PlannedQuestion, ...], folder: Path | None, told: Progress
) -> Check:
    """Answers every question that can be answered, in their order; without a folder no audit writes its page."""
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
    base, settings = None if claim is None else claim.base, written_settings(given, folder or Path())
    return Check(claim, base, tuple(answers), conclusion, plan, settings, material.test)


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
    return ClaimAnswer(one.name, "UNKNOWN", "Not given.", "unknown", "", (), f"Give {one.needs}.")


@dataclass(frozen=True, eq=False)
class _Questions:
    """What answers need: everything that was read, and where audits write.

    Attributes:
        given: what was asked.
        material: what was read.
        claim: the claim, if there is one.
        folder: of the check, if there is one; each audit has one of its own in it.
        told: is told what happens.
    """

    given: Inquiry
    material: ClaimMaterial
    claim: Claim | None
    folder: Path | None
    told: Progress

    def questions(self) -> Iterator[tuple[str, Callable[[], ClaimAnswer]]]:
        """The questions that have an answer here, by name."""
        claim, steps = self.claim, AuditSteps(self.folder, self.told)
        yield "leakage", lambda: leakage_answer(self.given, self.material, claim, steps)
        yield "collection", lambda: collection_answer(self.given, claim, steps)
        if claim is not None:
            yield "significance", lambda: significance_answer(claim)
            yield "unjudged", lambda: unjudged_answer(claim, self.material.teams)
            yield "pools", lambda: self._pools(claim, steps)
            yield "models", lambda: models_answer(self.given, self.material, claim, steps)
            yield "versions", lambda: versions_answer(self.given, claim, steps)
            yield "policies", lambda: policies_answer(claim, self.given.options.measures)

    def _pools(self, claim: Claim, steps: AuditSteps) -> ClaimAnswer:
        teams, sources = self.material.teams, self.given.sources
        answer = pools_answer(claim, teams)
        if not self.given.options.trials or not sources.has("docs") or sources.test is None:
            return answer
        return with_trials(self.given, claim, teams, answer, steps)

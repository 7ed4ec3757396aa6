"""Asks every question that can be answered with what was given: first what repairs the data, then the rest of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from truerank.claims.claim import Claim, ClaimChange, change_by, chosen_claim, claim_of
from truerank.claims.conclusion import concluded, files_at_fault, golden_limits, no_claim
from truerank.claims.data_questions import collection_answer, leakage_answer, versions_answer
from truerank.claims.file_questions import files_answer
from truerank.claims.inquiry import ClaimMaterial, Inquiry, written_settings
from truerank.claims.pools import pools_answer
from truerank.claims.questions import NAMES, Plan
from truerank.claims.register import in_register
from truerank.claims.results import FILES_FIRST, LEFT_OUT, NOT_GIVEN, Check, ClaimAnswer, SystemScore
from truerank.claims.score_files import apart, missing_scores, pair_of_results, results_answer
from truerank.claims.scoring_questions import (
    chance_answer,
    choice_answer,
    labels_answer,
    policies_answer,
    repeated_scores_answer,
    repeats_answer,
)
from truerank.claims.steps import AuditSteps
from truerank.claims.unjudged import unjudged_answer
from truerank.errors import InputError, OptionError
from truerank.measures.magnitudes import fewest_changes, mean_interval
from truerank.measures.results import Evaluation
from truerank.measures.scoring import evaluate
from truerank.sources.mteb_results import task_scores
from truerank.work.progress import Progress

Asked = Mapping[str, Callable[[], ClaimAnswer]]


def answered(given: Inquiry, material: ClaimMaterial, plan: Plan, folder: Path, progress: Progress) -> Check:
    """Answers every question that can be answered, in their order and in the words of those who asked."""
    check = _answered(given, material, plan, folder, progress)
    names = (material.test, given.options.measure, *(reading.path for reading in given.readings))
    return in_register(check, (*material.runs, *material.scores), names, golden=given.unit == "questions")


def _answered(given: Inquiry, material: ClaimMaterial, plan: Plan, folder: Path, progress: Progress) -> Check:
    steps = AuditSteps(folder, progress, kept=given.out is not None)
    finished = partial(_finished, given, material, written_settings(given, folder if steps.kept else Path()))
    if material.scores:
        return _of_scores(given, material, plan, finished)
    progress.start("check: files")
    claim, files = _begun(given, material)
    answers = {} if files is None else {"files": files}
    if files is not None and files.word == "FILES AT FAULT":
        return finished(plan, answers, claim)

    def ask(asked: Asked) -> dict[str, ClaimAnswer]:
        answers = {}
        for name, needs in plan.items():
            if needs == "" and name in asked:
                progress.start(f"check: {name}")
                answers[name] = asked[name]()
        return answers

    versions = claim is not None and plan.get("versions") == ""
    answers |= ask(_of_data(given, material, claim, steps, frozenset(material.gone if versions else ())))
    if claim is None:
        single, limits = None, tuple[str, ...]()
        if material.qrels is not None and material.runs:
            found = evaluate(material.qrels, dict(material.runs), given.options.measure, given.scoring)
            single = _mean_of(found, given)
        elif material.qrels is not None:
            limits = golden_limits(material.qrels, given)
        return finished(plan, answers, None, single=single, limits=limits)
    change = _all_repairs(claim, answers, given)
    answers |= ask(_of_claim(given, material, claim if change is None else change.claim, steps))
    return finished(plan, answers, claim, change=change)


def _all_repairs(claim: Claim, answers: Mapping[str, ClaimAnswer], given: Inquiry) -> ClaimChange | None:
    repairs = [answer.repair for answer in answers.values() if answer.repair is not None]
    return change_by(claim, repairs, "after all repairs", given.resampling) if repairs else None


def _finished(  # noqa: PLR0917 - what was given comes first, then what was found
    given: Inquiry,
    material: ClaimMaterial,
    settings: dict[str, Any],
    plan: Plan,
    answers: dict[str, ClaimAnswer],
    claim: Claim | None,
    *,
    change: ClaimChange | None = None,
    single: SystemScore | None = None,
    limits: tuple[str, ...] = (),
) -> Check:
    """The check with its conclusion on what was answered."""
    check = partial(Check, settings=settings, test=material.test, readings=given.readings, single=single)
    files = answers.get("files")
    if files is not None and files.word == "FILES AT FAULT":
        others = {name: ClaimAnswer(name, "UNKNOWN", FILES_FIRST, "unknown", "") for name in plan}
        every = tuple({**others, "files": files}.values())
        return check(claim=claim, base=None, answers=every, conclusion=files_at_fault(files))
    if change is not None and claim is not None:
        answers["chance"] = _with_repairs(answers["chance"], claim, answers, change)
    names = [name for name in NAMES if name in plan or name in answers]
    every = tuple(answers.get(name) or _unanswered(name, plan[name]) for name in names)
    if claim is None:
        return check(claim=None, base=None, answers=every, conclusion=no_claim(every, single, limits))
    conclusion = concluded(claim, change, every, given.known.told())
    after = None if change is None else change.after
    return check(claim=claim, base=claim.base, answers=every, conclusion=conclusion, repaired=after)


def _of_scores(given: Inquiry, material: ClaimMaterial, plan: Plan, finished: Callable[..., Check]) -> Check:
    """What scores alone can answer: chance, and the smallest difference that they could have shown."""
    names = given.sources.system, given.sources.baseline
    measure = "score" if given.table is None else given.table.measure
    scores = Evaluation.of_scores(material.scores, given.scoring, measure)
    if len(material.scores) == 1:
        if material.repeated_scores and given.table is not None and "repeat" not in given.table.columns:
            fault = "one system with several scores of a question, and no column that says what they are"
            remedy = "name it: --columns system=COLUMN, or repeat=COLUMN"
            raise InputError(fault, remedy, where=given.table.name)
        return finished(plan, {}, None, single=_mean_of(scores, given))
    asked = partial(claim_of, confidence=given.resampling.confidence)
    claim = asked(scores, names, comparisons=given.options.comparisons, unit=given.unit)
    results, files = pair_of_results(claim, given.readings), apart(claim)
    if results is not None and files is None:
        # Which split counts is a question of the two: other systems may lack it.
        scores = Evaluation.of_scores(task_scores(results[0]), given.scoring, "score")
        claim = asked(scores, (claim.system, claim.baseline), comparisons=claim.comparisons, unit="tasks")
    if files is None:
        files = missing_scores(claim) if results is None else results_answer(claim, *results)
    answers = {} if files is None else {"files": files}
    if files is not None and files.word == "FILES AT FAULT":
        return finished(plan, answers, claim)
    change = _all_repairs(claim, answers, given)
    repaired = claim if change is None else change.claim
    answers["chance"] = chance_answer(repaired)
    if (repeats := repeated_scores_answer(repaired, material.repeated_scores)) is not None:
        answers["repeats"] = repeats
    return finished(plan, answers, claim, change=change)


def _mean_of(found: Evaluation, given: Inquiry) -> SystemScore:
    """The mean of the only system; of few topics there is no interval, and none leaves the scale of its scores."""
    scores, confidence = found.values[0, 0][~np.isnan(found.values[0, 0])], given.resampling.confidence
    mean = mean_interval(scores, confidence)
    low, high = mean.low, mean.high
    if low is None or high is None or mean.n < fewest_changes(confidence):
        low = high = None
    elif scores.min() >= 0 and scores.max() <= 1:
        low, high = max(low, 0.0), min(high, 1.0)
    return SystemScore(found.runs[0], found.measures[0], mean.mean or 0.0, low, high, mean.n, confidence, given.unit)


def _begun(given: Inquiry, material: ClaimMaterial) -> tuple[Claim | None, ClaimAnswer | None]:
    """The claim and whether the files are what they seem; where they allow no claim, they are asked first."""
    if material.qrels is None or not material.runs:
        return None, None
    if len(material.runs) == 1:
        return None, files_answer(given, material, material.qrels, None)
    try:
        claim = chosen_claim(
            material.runs,
            material.qrels,
            given.options.measure,
            given.scoring,
            (given.sources.system, given.sources.baseline),
            comparisons=given.options.comparisons,
            confidence=given.resampling.confidence,
            unit=given.unit,
        )
    except OptionError:
        raise
    except InputError:
        files = files_answer(given, material, material.qrels, None)
        if files.word != "FILES AT FAULT":
            raise
        return None, files
    return claim, files_answer(given, material, material.qrels, claim)


def _unanswered(name: str, needs: str | None) -> ClaimAnswer:
    settles = f"Give {needs}." if needs else "Leave out `ignore`."
    return ClaimAnswer(name, "UNKNOWN", NOT_GIVEN if needs else LEFT_OUT, "unknown", "", (), settles)


def _of_data(
    given: Inquiry, material: ClaimMaterial, claim: Claim | None, steps: AuditSteps, gone: frozenset[str]
) -> Asked:
    """The questions about the data, whose answers may repair them."""
    asked: dict[str, Callable[[], ClaimAnswer]] = {
        "leakage": lambda: leakage_answer(given, material, claim, steps),
        "collection": lambda: collection_answer(given, claim, steps, gone),
    }
    if claim is not None:
        asked["versions"] = lambda: versions_answer(given, material, claim, steps)
    return asked


def _of_claim(given: Inquiry, material: ClaimMaterial, claim: Claim, steps: AuditSteps) -> Asked:
    """The questions about the claim on the repaired data."""

    return {
        "chance": lambda: chance_answer(claim),
        "unjudged": lambda: unjudged_answer(claim),
        "pools": lambda: pools_answer(claim),
        "models": lambda: _models_answer(given, material, claim, steps),
        "labels": lambda: labels_answer(claim, material.again, given.resampling),
        "choice": lambda: choice_answer(claim, material.tried, given.resampling),
        "repeats": lambda: repeats_answer(claim, material.repeats),
        "policies": lambda: policies_answer(claim, given.options.measures),
    }


def _models_answer(given: Inquiry, material: ClaimMaterial, claim: Claim, steps: AuditSteps) -> ClaimAnswer:
    # Here: a check without judgments of models would wait for the audit of them.
    from truerank.claims.model_judgments import models_answer

    return models_answer(given, material, claim, steps)


def _with_repairs(
    answer: ClaimAnswer, claim: Claim, answers: Mapping[str, ClaimAnswer], change: ClaimChange
) -> ClaimAnswer:
    """The answer about chance, which was asked of the repaired data, with the difference as given."""
    named = "; ".join(one.repair.what for one in answers.values() if one.repair is not None)
    return replace(
        answer,
        estimates=(claim.base, change.after),
        evidence=f"Repaired: {named}. {answer.evidence}",
        facts={**answer.facts, "moved": change.moved, "change": change.size},
    )

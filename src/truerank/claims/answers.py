"""Asks every question that can be answered with what was given: first what repairs the data, then the rest of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from truerank.claims.claim import Claim, ClaimChange, Repair, change_by, chosen_claim, claim_of_scores
from truerank.claims.conclusion import concluded, files_at_fault, golden_limits, no_claim
from truerank.claims.data_questions import collection_answer, leakage_answer, versions_answer
from truerank.claims.file_questions import files_answer
from truerank.claims.inquiry import ClaimMaterial, Inquiry, written_settings
from truerank.claims.model_judgments import models_answer
from truerank.claims.pools import pools_answer, with_trials
from truerank.claims.questions import NAMES, PlannedQuestion, question
from truerank.claims.register import in_register
from truerank.claims.results import FILES_FIRST, LEFT_OUT, NOT_GIVEN, Check, ClaimAnswer, ClaimConclusion, SystemScore
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
#: Seconds from which on a question says how long it takes.
_LONG: Final = 5
_ALL_REPAIRS: Final = "after all repairs"


def only_planned(given: Inquiry, material: ClaimMaterial, plan: tuple[PlannedQuestion, ...]) -> Check:
    """What could be answered, with nothing run."""
    waiting = ClaimConclusion("UNKNOWN", "", "This is the plan; nothing was run.", unknown=NAMES)
    if material.scores:
        plan = tuple(replace(one, answerable=True, needs="") if one.name == "chance" else one for one in plan)
    return Check(None, None, (), waiting, plan, written_settings(given, Path()), material.test, readings=given.readings)


def answered(
    given: Inquiry, material: ClaimMaterial, plan: tuple[PlannedQuestion, ...], folder: Path, progress: Progress
) -> Check:
    """Answers every question that can be answered, in their order and in the words of those who asked."""
    check = _answered(given, material, plan, folder, progress)
    names = (material.test, given.options.measure, *(reading.path for reading in given.readings))
    return in_register(check, (*material.runs, *material.scores), names, golden=given.unit == "questions")


def _answered(
    given: Inquiry, material: ClaimMaterial, plan: tuple[PlannedQuestion, ...], folder: Path, progress: Progress
) -> Check:
    steps = AuditSteps(folder, progress, kept=given.out is not None)
    settings = written_settings(given, folder if steps.kept else Path())
    read: dict[str, Any] = {"readings": given.readings}
    if material.scores:
        return _of_scores(given, material, plan, settings)
    seconds = {each.name: each.seconds for each in plan}
    progress.start(_announced("files", seconds["files"]))
    claim, files = _begun(given, material)
    if files is not None:
        plan = tuple(_asked(one) if one.name == "files" else one for one in plan)
    if files is not None and files.word == "FILES AT FAULT":
        every = tuple(files if each.name == "files" else _unasked(each) for each in plan)
        return Check(claim, None, every, files_at_fault(files, every), plan, settings, material.test, **read)

    def ask(asked: Asked) -> dict[str, ClaimAnswer]:
        answers = {}
        for each in plan:
            if each.answerable and each.name in asked:
                progress.start(_announced(each.name, each.seconds))
                answers[each.name] = asked[each.name]()
        return answers

    answers = {} if files is None else {"files": files}
    answers |= ask(_of_data(given, material, claim, steps))
    if claim is None:
        single = None
        if material.runs and material.qrels is not None:
            found = evaluate(material.qrels, dict(material.runs), given.options.measure, given.scoring)
            single = _mean_of(found, given.resampling.confidence)
        every = tuple(answers.get(each.name) or _unanswered(each) for each in plan)
        alone = material.qrels is not None and not material.runs
        limits = golden_limits(material.qrels, given) if alone and material.qrels is not None else ()
        single = None if single is None else single._replace(unit=given.unit)
        conclusion = no_claim(every, single, limits)
        return Check(None, None, every, conclusion, plan, settings, material.test, single=single, **read)
    versions = answers.get("versions")
    if versions is not None and versions.repair is not None and versions.repair.documents:
        for name, answer in answers.items():
            if answer.repair is not None and answer.repair.beside is not None:
                answers[name] = replace(answer, repair=replace(answer.repair, what=answer.repair.beside))
    repairs = [answer.repair for answer in answers.values() if answer.repair is not None]
    change = change_by(claim, repairs, _ALL_REPAIRS, given.resampling) if repairs else None
    answers |= ask(_of_claim(given, material, claim if change is None else change.claim, steps))
    if change is not None:
        answers["chance"] = _with_repairs(answers["chance"], claim, repairs, change)
    every = tuple(answers.get(each.name) or _unanswered(each) for each in plan)
    final = None if change is None else change.after
    word = concluded(claim, change, every, given.known.told())
    return Check(
        claim,
        claim.base,
        every,
        word,
        plan,
        settings,
        material.test,
        repaired=final,
        **read,
    )


def _of_scores(
    given: Inquiry, material: ClaimMaterial, plan: tuple[PlannedQuestion, ...], settings: dict[str, Any]
) -> Check:
    """What scores alone can answer: chance, and the smallest difference that they could have shown."""
    names = given.sources.system, given.sources.baseline
    unit = given.unit
    measure = "score" if given.table is None else given.table.measure
    if len(material.scores) == 1:
        if material.repeated_scores and given.table is not None and "repeat" not in given.table.columns:
            fault = "one system with several scores of a question, and no column that says what they are"
            remedy = "name it: --columns system=COLUMN, or repeat=COLUMN"
            raise InputError(fault, remedy, where=given.table.name)
        single = _mean_of(Evaluation.of_scores(material.scores, given.scoring, measure), given.resampling.confidence)
        single = single._replace(unit=unit)
        every = tuple(_unanswered(one) for one in plan)
        conclusion = no_claim(every, single)
        return Check(
            None, None, every, conclusion, plan, settings, material.test, single=single, readings=given.readings
        )
    claim = claim_of_scores(
        material.scores, given.scoring, names,
        comparisons=given.options.comparisons, confidence=given.resampling.confidence, unit=unit, measure=measure,
    )  # fmt: skip
    results, files = pair_of_results(claim, given.readings), apart(claim)
    if results is not None and files is None:
        # Which split counts is a question of the two: other systems may lack it.
        claim = claim_of_scores(
            task_scores(results[0]), given.scoring, (claim.system, claim.baseline),
            comparisons=claim.comparisons, confidence=given.resampling.confidence, unit="tasks",
        )  # fmt: skip
    if files is None:
        files = missing_scores(claim) if results is None else results_answer(claim, *results)
    plan = tuple(_asked(one) if one.name == "chance" or (files and one.name == "files") else one for one in plan)
    if files is not None and files.word == "FILES AT FAULT":
        every = tuple(files if one.name == "files" else _unasked(one) for one in plan)
        return Check(
            claim, None, every, files_at_fault(files, every), plan, settings, material.test, readings=given.readings
        )
    repairs = [files.repair] if files is not None and files.repair is not None else []
    change = change_by(claim, repairs, _ALL_REPAIRS, given.resampling) if repairs else None
    repaired = claim if change is None else change.claim
    answers = {
        "files": files,
        "chance": chance_answer(repaired),
        "repeats": repeated_scores_answer(repaired, material.repeated_scores),
    }
    if change is not None:
        answers["chance"] = _with_repairs(chance_answer(repaired), claim, repairs, change)
    plan = _with_repeats(plan, answers["repeats"])
    every = tuple(answers.get(one.name) or _unanswered(one) for one in plan)
    final = None if change is None else change.after
    word = concluded(claim, change, every, given.known.told())
    return Check(
        claim, claim.base, every, word, plan, settings, material.test, repaired=final,
        readings=given.readings,
    )  # fmt: skip


def _mean_of(found: Evaluation, confidence: float) -> SystemScore:
    """The mean of the only system; of few topics there is no interval, and none leaves the scale of its scores."""
    scores = found.values[0, 0][~np.isnan(found.values[0, 0])]
    mean = mean_interval(scores, confidence)
    low, high = mean.low, mean.high
    if low is None or high is None or mean.n < fewest_changes(confidence):
        low = high = None
    elif scores.min() >= 0 and scores.max() <= 1:
        low, high = max(low, 0.0), min(high, 1.0)
    return SystemScore(found.runs[0], found.measures[0], mean.mean or 0.0, low, high, mean.n, confidence)


def _asked(planned: PlannedQuestion) -> PlannedQuestion:
    return replace(planned, answerable=True, needs="")


def _with_repeats(plan: tuple[PlannedQuestion, ...], answer: ClaimAnswer | None) -> tuple[PlannedQuestion, ...]:
    """The plan with the question that a column of repetitions asks."""
    if answer is None or any(one.name == "repeats" for one in plan):
        return plan
    asked = PlannedQuestion("repeats", True, what=question("repeats").what)
    return tuple(sorted((*plan, asked), key=lambda one: NAMES.index(one.name)))


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


def _announced(name: str, seconds: float) -> str:
    """A question as progress names it, with roughly how long it takes where that is worth knowing."""
    return f"check: {name}" + (f" (about {seconds:,.0f} s)" if seconds >= _LONG else "")


def _unanswered(planned: PlannedQuestion) -> ClaimAnswer:
    settles = f"Give {planned.needs}." if planned.needs else "Leave out `ignore`."
    return ClaimAnswer(planned.name, "UNKNOWN", NOT_GIVEN if planned.needs else LEFT_OUT, "unknown", "", (), settles)


def _unasked(planned: PlannedQuestion) -> ClaimAnswer:
    return ClaimAnswer(planned.name, "UNKNOWN", FILES_FIRST, "unknown", "")


def _of_data(given: Inquiry, material: ClaimMaterial, claim: Claim | None, steps: AuditSteps) -> Asked:
    """The questions about the data, whose answers may repair them."""
    asked: dict[str, Callable[[], ClaimAnswer]] = {
        "leakage": lambda: leakage_answer(given, material, claim, steps),
        "collection": lambda: collection_answer(given, claim, steps, frozenset(material.gone)),
    }
    if claim is not None:
        asked["versions"] = lambda: versions_answer(given, material, claim, steps)
    return asked


def _of_claim(given: Inquiry, material: ClaimMaterial, claim: Claim, steps: AuditSteps) -> Asked:
    """The questions about the claim on the repaired data."""

    def pools() -> ClaimAnswer:
        answer = pools_answer(claim, material.teams)
        if not given.options.trials or not given.sources.has("docs") or given.sources.test is None:
            return answer
        return with_trials(given, claim, material.teams, answer, steps)

    return {
        "chance": lambda: chance_answer(claim),
        "unjudged": lambda: unjudged_answer(claim, material.teams),
        "pools": pools,
        "models": lambda: models_answer(given, material, claim, steps),
        "labels": lambda: labels_answer(claim, material.again, given.resampling),
        "choice": lambda: choice_answer(claim, material.tried, given.resampling),
        "repeats": lambda: repeats_answer(claim, material.repeats),
        "policies": lambda: policies_answer(claim, given.options.measures),
    }


def _with_repairs(answer: ClaimAnswer, claim: Claim, repairs: Sequence[Repair], change: ClaimChange) -> ClaimAnswer:
    """The answer about chance, which was asked of the repaired data, with the difference as given."""
    named = "; ".join(repair.what for repair in repairs if repair.what)
    return replace(
        answer,
        estimates=(claim.base, change.after),
        evidence=f"Repaired: {named}. {answer.evidence}",
        facts={**answer.facts, "moved": change.moved, "change": change.size},
    )

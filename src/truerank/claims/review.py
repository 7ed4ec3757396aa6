"""A check as SARIF: the questions that the claim does not survive, for the review of a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from truerank.claims.claim import Effect
from truerank.claims.questions import QUESTIONS, question
from truerank.claims.results import Check, ClaimAnswer
from truerank.records import Input
from truerank.reports.sarif import Level, SarifFinding, SarifRule, sarif

_LEVELS: Final[Mapping[Effect, Level]] = {
    "falls": "error", "smaller": "warning", "not shown": "warning", "appears": "warning", "unknown": "note",
}  # fmt: skip


def review(result: Check, inputs: Sequence[Input]) -> str:
    """The answers that do not leave the claim standing: what falls is an error, what is open a warning."""
    levels = {answer.question: _level(answer) for answer in result.answers}
    rules = [
        SarifRule(
            each.name, each.text, "What becomes of the claim under it.", "Read the page of the check.",
            levels[each.name] or "note",
        )
        for each in QUESTIONS
        if each.name in levels
    ]  # fmt: skip
    return sarif(f"check of {result.test}", rules, _findings(result, inputs))


def _level(answer: ClaimAnswer) -> Level | None:
    """How grave an answer is; None for one that leaves the claim standing or was not given."""
    if answer.word == "FILES AT FAULT":
        return "error"
    if answer.effect == "unknown" and not answer.objects:
        return None
    return _LEVELS.get(answer.effect, "warning" if answer.objects else None)


def _findings(result: Check, inputs: Sequence[Input]) -> Iterator[SarifFinding]:
    places: dict[str, str] = {}
    for each in inputs:
        places.setdefault(each.role, each.source or each.name)
    for answer in result.answers:
        if _level(answer) is not None:
            place = places.get(question(answer.question).role, places.get("qrels", result.test))
            message = f"{result.sentence()}: {answer.evidence} {answer.consequence}"
            yield SarifFinding(answer.question, message, place, 0, result.sentence())

"""A check as SARIF: the questions that the claim does not survive, for the review of a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from truerank.claims.claim import Effect
from truerank.claims.results import QUESTIONS, Check
from truerank.records import Input
from truerank.reports.sarif import Level, SarifFinding, SarifRule, sarif

_LEVELS: Final[Mapping[Effect, Level]] = {
    "falls": "error", "could turn": "warning", "not shown": "warning", "appears": "warning", "unknown": "note",
}  # fmt: skip
#: The input beside which a finding is shown, by question; otherwise the judgments.
_ROLES: Final = {"leakage": "train", "collection": "docs", "models": "model_judgments", "versions": "docs"}


def review(result: Check, inputs: Sequence[Input]) -> str:
    """The answers that do not leave the claim standing: what falls is an error, what is open a warning.

    Args:
        result: the check.
        inputs: what it read, as in its manifest.
    """
    levels = {one.question: _LEVELS.get(one.effect, "note") for one in result.answers}
    rules = [
        SarifRule(name, question, "What becomes of the claim under it.", "Read the page of the check.", levels[name])
        for name, question in QUESTIONS.items()
        if name in levels
    ]
    return sarif(f"check of {result.test}", rules, _findings(result, inputs))


def _findings(result: Check, inputs: Sequence[Input]) -> Iterator[SarifFinding]:
    places: dict[str, str] = {}
    for one in inputs:
        places.setdefault(one.role, one.source or one.name)
    for answer in result.answers:
        if answer.effect in _LEVELS and answer.effect != "unknown":
            place = places.get(_ROLES.get(answer.question, "qrels"), places.get("qrels", result.test))
            message = f"{result.sentence()}: {answer.evidence} {answer.consequence}"
            yield SarifFinding(answer.question, message, place, 0, result.sentence())

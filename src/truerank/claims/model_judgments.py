"""The question about a model's judgments: whether they say the same, and whether they favour the claim's system."""

from __future__ import annotations

from typing import Final

from truerank.audits.assessors.auditing import audit as judge_audit
from truerank.audits.assessors.verdicts import verdicts_of
from truerank.claims.claim import Claim, Effect
from truerank.claims.inquiry import Inquiry
from truerank.claims.material import ClaimMaterial
from truerank.claims.results import ClaimAnswer
from truerank.claims.steps import AuditSteps

_NAMED: Final = 3


def models_answer(given: Inquiry, material: ClaimMaterial, claim: Claim, steps: AuditSteps) -> ClaimAnswer:
    """(f) The audit of a model's judgments, and the claim by them in place of people's."""
    steps.told.start("judgments of models")
    found = judge_audit(
        given.sources.qrels, dict(material.models), given.sources.run, measures=claim.measure,
        resampling=given.resampling, scoring=given.scoring, out=steps.place("models"),
    )  # fmt: skip
    verdicts = [one for one in verdicts_of(found) if one.use == "order"]
    rows = []
    for name in found.grades.judges:
        scored = claim.scored(found.grades.qrels[name])
        rows.append(claim.estimate(claim.differences(scored), f"by the judgments of {name}"))
    base = claim.base
    told = ", ".join(f"{one.label} {one.figures()}" for one in rows)
    turned = [one.label for one in rows if one.effect == "falls"]
    weak = [one.label for one in rows if one.effect == "not shown"]
    effect: Effect = base.effect
    if base.effect == "stands" and turned + weak:
        effect = "could turn" if turned else "not shown"
    elif base.effect != "stands" and any(one.effect == "stands" for one in rows):
        effect = "appears"
    words = list(dict.fromkeys("ORDER UNKNOWN" if one.word == "UNKNOWN" else one.word for one in verdicts))
    evidence = " ".join(f"{one.judge}: {one.reason}" for one in verdicts[:_NAMED])
    return ClaimAnswer(
        "models", " / ".join(words) or "UNKNOWN", evidence, effect, f"The difference is {told}.", tuple(rows),
        "", "models", " and ".join(turned + weak),
        {"verdicts": {one.judge: one.word for one in verdicts}},
    )  # fmt: skip

"""The question about a model's judgments: whether they say the same, and whether they favour the claim's system."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from truerank.claims.claim import Claim, ClaimEstimate, Effect
from truerank.claims.inquiry import ClaimMaterial, Inquiry
from truerank.claims.results import ClaimAnswer
from truerank.claims.steps import AuditSteps
from truerank.measures import evaluate
from truerank.measures.grammar import lower_is_better

_NAMED: Final = 3
_NONE: Final = np.zeros(0, np.int64)
#: What no figure tells where the truth itself may come from a model.
_REMARK: Final = "This holds by these judgments, which a model made."
_LIMITED: Final = "All figures rest on a model's judgments; people's may differ."


def models_answer(given: Inquiry, material: ClaimMaterial, claim: Claim, steps: AuditSteps) -> ClaimAnswer:
    """(f) The claim by a model's judgments in place of people's, and whether the model favours the claim's system."""
    if not material.models:
        return _by_a_model(claim)
    # Here: a check without judgments of models would wait for the audit.
    from truerank.audits.assessors.audit import audit as judge_audit
    from truerank.audits.assessors.verdicts import verdicts_of

    steps.progress.start("judgments of models")
    found = judge_audit(
        given.sources.qrels, dict(material.models), given.sources.run, measures=claim.measure,
        resampling=given.resampling, scoring=given.scoring, out=steps.place("models"),
    )  # fmt: skip
    verdicts = [one for one in verdicts_of(found) if one.use == "order"]
    rows, favours = [], {}
    for name in found.grades.judges:
        # On the topics of the claim, some of which a repair may have left out.
        judgments = found.grades.qrels[name].join(claim.qrels, on="topic_id", how="semi")
        scored = claim.scored(judgments)
        rows.append(claim.estimate(claim.differences(scored), f"by the judgments of {name}"))
        favours[name] = favour(claim, judgments)
    base = claim.base
    text = ", ".join(f"{one.label} the difference is {one.figures()}" for one in rows)
    turned = [one.label for one in rows if one.effect == "falls"]
    weak = [one.label for one in rows if one.effect == "not shown"]
    effect: Effect = base.effect
    if base.effect == "stands" and turned + weak:
        effect = "falls" if turned else "not shown"
    elif base.effect != "stands" and any(one.effect == "stands" for one in rows):
        effect = "appears"
    words = list(dict.fromkeys("ORDER UNKNOWN" if one.word == "UNKNOWN" else one.word for one in verdicts))
    evidence = " ".join(f"{one.judge}: {one.sentence}" for one in verdicts[:_NAMED])
    consequence = f"{text[:1].upper()}{text[1:]}.{''.join(_favoured(claim, *each) for each in favours.items())}"
    facts = {
        "verdicts": {one.judge: one.word for one in verdicts},
        "favours": {name: {"value": one.value, "low": one.low, "high": one.high} for name, one in favours.items()},
        "judged_by": given.sources.judged_by,
    }
    return ClaimAnswer(
        "models", " / ".join(words) or "UNKNOWN", evidence, effect, consequence, tuple(rows),
        "", "models", " and ".join(turned + weak), facts, _LIMITED if given.sources.judged_by == "model" else "",
        remark=_REMARK if given.sources.judged_by == "model" else "",
    )  # fmt: skip


def favour(claim: Claim, judgments: pl.DataFrame) -> ClaimEstimate:
    """How much more a model's judgments raise the claim's system than they raise the other runs.

    The difference of differences by topic: the system's score by the model less that by people, less the mean of the
    same over all other runs. A model that is too kind to every run favours none.
    """
    scored = evaluate(judgments, dict(claim.runs), claim.measure, claim.scoring)
    place = {topic: at for at, topic in enumerate(scored.topics)}
    both = [(place[topic], at) for at, topic in enumerate(claim.evaluation.topics) if topic in place]
    model, people = (np.array(ends, np.int64) for ends in zip(*both, strict=True)) if both else (_NONE, _NONE)
    errors = {
        run: scored.of(run, scored.measures[0])[model] - claim.evaluation.of(run, claim.measure)[people]
        for run in claim.runs
    }
    own = errors.pop(claim.system) - np.mean(list(errors.values()), axis=0)
    sign = -1.0 if lower_is_better(claim.measure) else 1.0
    found = claim.estimate(sign * own, f"{claim.system} raised beyond other runs")
    return replace(found, effect=claim.base.effect)


def _favoured(claim: Claim, judge: str, found: ClaimEstimate) -> str:
    """What a model does for the claim's system, as a sentence; empty where it has no interval."""
    if found.value is None or found.low is None or found.high is None:
        return ""
    others = claim.baseline if len(claim.runs) == 2 else f"the other {len(claim.runs) - 1} runs"
    how = f"{claim.system}'s score {found.figures()} more than that of {others}"
    if found.low > 0:
        return f" {judge} favours {claim.system}: it raises {how}."
    if found.high < 0:
        return f" {judge} is against {claim.system}: it raises {how}."
    return f" {judge} does not favour {claim.system} by more than chance explains: it raises {how}."


def _by_a_model(claim: Claim) -> ClaimAnswer:
    """What can be said where the judgments of the claim come from a model, and there are no others."""
    return ClaimAnswer(
        "models", "JUDGED BY A MODEL", "The judgments of this claim come from a model, as `judged_by` says.",
        claim.base.effect, "The difference holds for these judgments.", (),
        "Give people's judgments as `qrels` and these as `model_judgments`.", facts={"judged_by": "model"},
        possible=_LIMITED, remark=_REMARK,
    )  # fmt: skip

"""The question about a model's judgments: whether they say the same, and whether they favour one of the two runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from truerank.claims.claim import Claim, ClaimEstimate, Effect, signed
from truerank.claims.inquiry import ClaimMaterial, Inquiry
from truerank.claims.results import ClaimAnswer
from truerank.claims.steps import AuditSteps
from truerank.text.printable import listed

if TYPE_CHECKING:
    from truerank.audits.assessors.grades import Grades
    from truerank.audits.collection.second_grades import Cut

_NAMED: Final = 3
#: What judgments say that do not say the same.
_WORDS: Final = {"stands": "SHOWS IT", "falls": "SHOWS THE OPPOSITE", "not shown": "DOES NOT SHOW IT"}
_SETTLES: Final = "Give more of the pairs that people graded."
_MENDS: Final = "Make sure that each grade stands beside its own pair, in its order and ids, or correct the grades."
#: What no figure tells where the truth itself may come from a model.
_REMARK: Final = "A model made these judgments; people may decide otherwise."
_LIMITED: Final = "People's judgments may say otherwise."


class _Look(NamedTuple):
    """One model's judgments: the difference by them, why they say nothing, and the part that errors do not explain."""

    row: ClaimEstimate
    sentences: tuple[str, ...]
    fault: str = ""
    says: Literal["nothing", "the same", "against", "errs"] = "nothing"
    beyond: ClaimEstimate | None = None

    def word(self, base: Effect) -> str:
        """What the model's judgments say of the claim, whose own judgments have an effect."""
        if self.says == "nothing":
            return "NOT USABLE" if self.fault else "CANNOT TELL"
        if self.says == "errs":
            return "ERRS BY CHANCE"
        return "SAYS THE SAME" if self.row.effect == base else _WORDS.get(self.row.effect, "CANNOT TELL")


def models_answer(given: Inquiry, material: ClaimMaterial, claim: Claim, steps: AuditSteps) -> ClaimAnswer:
    """(f) The claim by a model's judgments in place of people's, as far as these are shown to say anything."""
    if not material.models:
        return _by_a_model(claim)
    # Here: a check without judgments of models would wait for the audit.
    from truerank.audits.assessors.audit import audit as judge_audit
    from truerank.audits.assessors.order import FEWEST_RUNS
    from truerank.audits.assessors.verdicts import equal_grades, verdicts_of
    from truerank.claims.judgment_faults import cuts

    steps.progress.start("judgments of models")
    models, divided, strange = cuts(claim.qrels, material.models, claim.scoring.rel)
    if not models:
        settles = "Give the model's judgments with the ids of people's."
        return ClaimAnswer("models", "NOT USABLE", strange, "unknown", "", (), settles, remark=strange)
    found = judge_audit(
        given.sources.qrels, models, given.sources.run, measures=claim.measure,
        resampling=given.resampling, scoring=given.scoring, out=steps.place("models") if steps.kept else None,
    )  # fmt: skip
    looks = {
        name: _look(claim, found.grades, name, given.resampling.seed, divided.get(name)) for name in found.grades.judges
    }
    usable = [one for one in looks.values() if one.says != "nothing"]
    against = [one.row for one in usable if one.says == "against"]
    effect: Effect = claim.base.effect if usable else "unknown"
    if against:
        effect = "falls" if any(row.effect == "falls" for row in against) else "not shown"
    elif effect not in ("stands", "unknown") and any(one.row.effect == "stands" for one in usable):
        effect = "appears"
    verdicts = {(one.judge, one.use): one for one in verdicts_of(found)}
    # Few runs have no order to speak of; how the grades agree is known all the same.
    use = "choosing" if found.scores is None or len(found.scores.runs) < FEWEST_RUNS else "order"
    orders = {name: verdicts[name, "order"].word for name in looks}
    words = dict.fromkeys(one.word(claim.base.effect) for one in looks.values())
    evidence = [one.fault or f"{name}: {verdicts[name, use].sentence}" for name, one in looks.items()]
    by_model = given.sources.judged_by == "model"
    possible, remarks = [_LIMITED] if by_model else [], [_REMARK] if by_model else []
    # The conclusion names the fault; its figures are in the evidence.
    remarks += [": ".join(one.fault.rstrip(".").split(": ")[:2]) + "." for one in looks.values() if one.fault]
    remarks += filter(None, (equal_grades(found.grades, name) for name in looks))
    if errs := [name for name, one in looks.items() if one.says == "errs"]:
        possible.append(f"By the judgments of {listed(errs)} chance can explain the lead; their errors alone do that.")
    remarks += [one.sentences[-1] for one in looks.values() if one.says == "nothing" and not one.fault]
    remarks += [strange] if strange else []
    mends = _MENDS if any(one.fault for one in looks.values()) else ""
    facts = {
        "verdicts": orders,
        "faults": {name: one.fault for name, one in looks.items() if one.fault},
        "favours": {
            name: {end: getattr(one.beyond, end) for end in ("value", "low", "high")}
            for name, one in looks.items() if one.beyond is not None
        },
        "judged_by": given.sources.judged_by,
    }  # fmt: skip
    says = [one.sentences[0] for one in usable if one.says == "against"]
    faults = [one.fault for one in looks.values() if one.fault]
    return ClaimAnswer(
        "models", " / ".join(words), " ".join(evidence[:_NAMED]), effect,
        " ".join(sentence for one in looks.values() for sentence in one.sentences),
        tuple(one.row for one in looks.values()), "" if usable else mends or _SETTLES, "models", tuple(says), facts,
        " ".join(possible), remark=" ".join(remarks), found=" ".join((*says, *faults)),
        unless="you trust people's judgments more",
    )  # fmt: skip


def _look(claim: Claim, grades: Grades, name: str, seed: int, cut: Cut | None) -> _Look:
    """What one model's judgments say of a claim."""
    # Here: as the audit is.
    from truerank.claims.judgment_faults import by_people, coverage, expected, fault_of

    # On the topics of the claim, some of which a repair may have left out.
    judgments = grades.qrels[name].join(claim.qrels, on="topic_id", how="semi")
    row = claim.of(claim.scored(judgments), f"by the judgments of {name}")
    change = f"{signed(claim.base.value or 0.0)} → {row.figures()}{claim.measured}"
    sentences = [f"By {name}'s judgments: {change}.", *coverage(grades, name)]
    if cut is not None:
        sentences.insert(0, cut.sentence(f"{name}'s"))
        for other in cut.others:
            scored = claim.scored(cut.at(other).join(claim.qrels, on="topic_id", how="semi"))
            by_other = claim.estimate(claim.differences(scored), "").figures()
            sentences.append(f"With those of at least {other} as relevant it would be {by_other}.")
    elif outside := [str(one.grade) for one in grades.outside if one.name == name]:
        sentences.insert(0, f"{name}'s grades {', '.join(outside)} count as the nearest ones of people.")
    if fault := fault_of(grades, name, claim.scoring.rel, claim.confidence):
        return _Look(row, tuple(sentences), f"{name} says nothing about the claim: {fault}")
    shown = claim.base.effect == "stands"
    same, filled = by_people(claim, judgments)
    if shown and same != "stands":
        return _Look(
            row, (*sentences, f"{name} cannot tell: by people's grades of its pairs, chance can explain the lead.")
        )
    errors, beyond = expected(claim, judgments, seed, len(grades.judges)), None
    if errors is not None:
        value, mean, low, high = (one or 0.0 for one in (row.value, errors.value, errors.low, errors.high))
        beyond = replace(errors, value=value - mean, low=value - high, high=value - low)
        favours = claim.system if value > high else claim.baseline if value < low else ""
        says = f"{name} favours {favours}" if favours else f"No sign that {name} favours a system"
        sentences.append(f"{says}: errors that do not depend on the system would give {errors.figures()}.")
    if not shown or row.effect == "stands":
        return _Look(row, tuple(sentences), says="the same", beyond=beyond)
    removed = row.effect == "falls" or filled != "stands" or (beyond is not None and (beyond.high or 0) < 0)
    return _Look(row, tuple(sentences), says="against" if removed else "errs", beyond=beyond)


def _by_a_model(claim: Claim) -> ClaimAnswer:
    """What can be said where the judgments of the claim come from a model, and there are no others."""
    return ClaimAnswer(
        "models", "JUDGED BY A MODEL", "A model made the judgments, as `judged_by` says.",
        claim.base.effect, "What is found here holds for these judgments.", (),
        "Give people's judgments as `qrels` and these as `model_judgments`.", facts={"judged_by": "model"},
        possible=_LIMITED, remark=_REMARK,
    )  # fmt: skip

"""What all answers say together, in one of five words; never more than they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from truerank.claims.claim import Claim
from truerank.claims.results import ClaimAnswer, ClaimConclusion
from truerank.claims.scoring_questions import smallest_shown

#: Questions whose answer repairs the data: what stands after it is the better figure.
_REPAIRS: Final = ("leakage", "collection", "pools", "versions")
#: What is open, as a sentence names it.
_OPEN: Final = {
    "significance": "chance",
    "leakage": "leakage",
    "collection": "faults of the collection",
    "unjudged": "unjudged documents",
    "pools": "the pools",
    "models": "judgments of models",
    "versions": "new versions of the documents",
    "policies": "measure and conventions",
}
#: What could show a difference that the data do not show, where it is not known.
_COULD: Final = {
    "unjudged": "grades of the unjudged documents",
    "pools": "judgments of the run that was judged less",
    "versions": "judgments of the documents that may have changed",
    "policies": "scores on the topics that one run lacks",
}
_FALLEN: Final = "The repaired data do not show the lead, and the repair changes it by more than chance."


def concluded(claim: Claim, answers: Sequence[ClaimAnswer]) -> ClaimConclusion:
    """The conclusion on a claim.

    DOES NOT HOLD: the data show the opposite; or the repaired data do not show the difference, and the repair changed
    it by more than chance.
    CANNOT TELL: the difference is not shown as the data are. HOLDS EXCEPT: it is shown, but not under some conditions.
    HOLDS: it is shown, and stands in every answer. What was not answered, and measures that do not show it, are named.

    Args:
        claim: the claim.
        answers: to all questions.
    """
    base = claim.base
    unknown = tuple(one.question for one in answers if one.effect == "unknown")
    least = smallest_shown(claim)
    fallen = [one for one in answers if one.question in _REPAIRS and one.effect == "falls"]
    named = f"{claim.system} is better than {claim.baseline}"
    told = _told(unknown)
    if base.effect == "unknown":
        return ClaimConclusion("UNKNOWN", f"There is no difference to look at.{told}", (), unknown, least)
    if base.effect != "stands":
        return _not_shown(claim, answers, (unknown, least))
    if fallen:
        how = " ".join(one.consequence for one in fallen)
        others = tuple(one.exception for one in answers if one.effect in ("falls", "could turn", "not shown"))
        return ClaimConclusion("DOES NOT HOLD", f"{_FALLEN} {how}{told}", others, unknown, least)
    open_ones = [one for one in answers if one.effect in ("falls", "could turn", "not shown")]
    exceptions = tuple(one.exception for one in open_ones)
    shown = f"{named} by {base.figures()} {claim.measure} on {base.topics} topics"
    if exceptions:
        return ClaimConclusion(
            "HOLDS EXCEPT", f"{shown}, except {_listed(exceptions)}.{told}", exceptions, unknown, least
        )
    looked = len(answers) - len(unknown)
    return ClaimConclusion(
        "HOLDS",
        f"{shown}. This stands in all {looked} questions that could be answered.{_weak(answers)}{told}",
        (),
        unknown,
        least,
    )


def _not_shown(
    claim: Claim, answers: Sequence[ClaimAnswer], rest: tuple[tuple[str, ...], float | None]
) -> ClaimConclusion:
    """A difference that is not shown as the data are."""
    base, (unknown, least) = claim.base, rest
    appearing = [one for one in answers if one.effect == "appears"]
    after = "".join(f" {one.consequence}" for one in appearing)
    could = [_COULD[one.question] for one in answers if one.effect == "could turn" and one.question in _COULD]
    if could:
        after += f" What is not known could show the claim: {_listed(could)}."
    opposite = base.high is not None and base.high < 0
    if opposite and not appearing:
        reason = f"The data show the opposite: {base.figures()} {claim.measure} on {base.topics} topics."
        return ClaimConclusion(
            "DOES NOT HOLD", f"{reason}{after}{_told(unknown)}", ("as the data are",), unknown, least
        )
    reason = f"The difference is {base.figures()} {claim.measure} on {base.topics} topics"
    reason += ": the opposite of the claim" if opposite else ", which chance can explain"
    if least is not None:
        reason += f"; differences from {least:.3f} on could have been shown"
    return ClaimConclusion("CANNOT TELL", f"{reason}.{after}{_told(unknown)}", (), unknown, least)


def no_claim(answers: Sequence[ClaimAnswer]) -> ClaimConclusion:
    """The conclusion where fewer than two runs were given."""
    unknown = tuple(one.question for one in answers if one.word == "UNKNOWN")
    reason = "There are no two runs, and so no claim to check; what was found about the data stands below."
    return ClaimConclusion("UNKNOWN", reason, (), unknown)


def _weak(answers: Sequence[ClaimAnswer]) -> str:
    """Which other measures do not show the difference."""
    weak = [name for one in answers for name in one.facts.get("not_shown", ())]
    names = list(dict.fromkeys(name.partition(",")[0] for name in weak))
    return f" By {_listed(names)} it is not shown." if names else ""


def _told(unknown: Sequence[str]) -> str:
    return f" Not known: {_listed([_OPEN[name] for name in unknown])}." if unknown else ""


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

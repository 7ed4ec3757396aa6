"""What all answers say together, in one word; never more than they say.

Three kinds of statements are kept apart: what was found to change the claim, what these data cannot exclude, and what
was not asked. Only the first, and of the second what is plausible by the rule of its question, makes an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import polars as pl

from truerank.claims.claim import Claim, ClaimChange, ClaimEstimate
from truerank.claims.inquiry import Inquiry
from truerank.claims.questions import question
from truerank.claims.results import LEFT_OUT, NOT_GIVEN, ClaimAnswer, ClaimConclusion, ConclusionWord
from truerank.claims.scoring_questions import smallest_shown, spread_of
from truerank.measures.floors import fixed_list
from truerank.measures.magnitudes import fewest_changes
from truerank.text.printable import counted, listed

#: Questions whose exceptions speak against a claim: none of them shows one.
_OF_THE_DATA: Final = ("files", "leakage", "collection", "versions")
#: So many repairs are all named; of more, those that change the difference by more than chance explains.
_NAMED: Final = 2
#: How the sentence begins where the word is about the claim.
_FELL: Final = "The repair changes the difference by more than chance explains."


def concluded(
    claim: Claim, change: ClaimChange | None, answers: Sequence[ClaimAnswer], told: Sequence[str] = ()
) -> ClaimConclusion:
    """The conclusion on a claim. The word follows the difference of the repaired data.

    FILES AT FAULT: the files allow no comparison. DOES NOT HOLD: its interval is below 0. CANNOT TELL: it includes 0,
    or there are too few topics for any interval, or the repair leaves nothing to compare. HOLDS EXCEPT: it is above 0,
    but not under some conditions that were found, or are plausible. HOLDS, SMALLER THAN CLAIMED: it is above 0, and
    smaller by more than chance once it is repaired or run again. HOLDS: none of these.
    """
    unknown = tuple(answer.question for answer in answers if answer.effect == "unknown" and not answer.possible)
    repairs = tuple(answer.repair.what for answer in answers if answer.repair and answer.repair.what)
    possible = tuple(answer.possible for answer in answers if answer.possible)
    final = claim.base if change is None else change.after
    repaired = claim if change is None else change.claim
    nothing = f"Nothing is left to compare {listed(repairs)}" if repairs and change is None else ""
    least = None if nothing else smallest_shown(repaired)
    exceptions: tuple[str, ...] = ()

    def conclusion(word: ConclusionWord, head: str, brief: str = "", rest: Sequence[str] = ()) -> ClaimConclusion:
        rest = [part for part in (*rest, *(answer.remark for answer in answers)) if part]
        open_ones = [answer for answer in answers if answer.question in unknown]
        text = " ".join((head, *rest, *_left_open(open_ones)))
        short = " ".join((*filter(None, [brief]), *rest))
        return ClaimConclusion(word, text, short, exceptions, unknown, least, possible, repairs)

    if final.effect == "unknown" or final.value is None:
        return conclusion("UNKNOWN", "There is no difference to look at.", "There is no difference to look at.")
    by = f"{final.figures()} {claim.measure} on {final.topics} {claim.unit}"
    fell = _FELL if change is not None and change.moved else ""
    before = f"As the files are, it is {claim.base.figures()}; repaired: {'; '.join(repairs)}." if change else ""
    if change is not None and len(repairs) > _NAMED:
        before, fell = f"As the files are, it is {claim.base.figures()}. {_outline(answers, change)}", ""
    if final.effect == "falls" and not nothing:
        opposite = "The data show the opposite"
        return conclusion("DOES NOT HOLD", f"{opposite}: {by}.", f"{opposite}.", (before, fell))
    few = nothing or _same(repaired)
    if final.effect != "stands":
        few = few or repaired.too_few(repaired.gaps)
    elif claim.base.effect != "stands":
        few = few or "Only the repair makes a lead"
    elif any(answer.facts.get("only_without") for answer in answers):
        few = few or "Only without what is missing there is a lead"
    if few:
        as_it_is = "as the files are, it" if nothing else "the difference"
        return conclusion("CANNOT TELL", f"{few}; {as_it_is} is {by}.", f"{few}.", (before,))
    if final.effect != "stands":
        chance = "Chance can explain the difference"
        power = (
            f"{final.topics} {claim.unit} reveal a true difference of about {least:.3f} "
            f"({spread_of(least, final.topics)}) four times in five."
            if least
            else ""
        )
        others = (answer for answer in answers if answer.question not in _OF_THE_DATA)
        hidden = [answer.exception for answer in others if answer.plausible and answer.exception]
        hint = f"What could show it: {listed(hidden)}." if hidden else ""
        return conclusion("CANNOT TELL", f"{chance}, {by}.", f"{chance}.", (power, before, fell, hint))
    exceptions = (*(answer.exception for answer in answers if answer.objects), *told)
    smaller = change is not None and change.moved and _is_smaller(claim.base, final)
    fell = fell if smaller else ""
    shown = f"{claim.system} is better than {claim.baseline} by {by}"
    if exceptions:
        named = listed(exceptions)
        return conclusion("HOLDS EXCEPT", f"{shown}, except {named}.", f"Except {named}.", (before, fell))
    # What a repair does is in the final difference.
    smaller = smaller or any(answer.effect == "smaller" and answer.repair is None for answer in answers)
    word: ConclusionWord = "HOLDS, SMALLER THAN CLAIMED" if smaller else "HOLDS"
    return conclusion(word, f"{shown}.", "", (before, fell if smaller else _weak(answers)))


def files_at_fault(grave: ClaimAnswer, answers: Sequence[ClaimAnswer]) -> ClaimConclusion:
    """The conclusion where the files allow no comparison."""
    unknown = tuple(answer.question for answer in answers if answer.word == "UNKNOWN")
    reason = f"{grave.evidence} {grave.settles}"
    return ClaimConclusion("FILES AT FAULT", reason, reason, (), unknown)


def golden_limits(qrels: pl.DataFrame, given: Inquiry) -> str:
    """What a golden set without a system lets one know beforehand."""
    relevant = qrels.filter(pl.col("relevance") >= given.scoring.rel)["topic_id"].n_unique()
    fewest = fewest_changes(given.resampling.confidence)
    if relevant < fewest:
        return f"{counted(relevant, 'question')} cannot show any difference: {fewest} are needed at least."
    text = (
        f"{relevant:,d} questions show a difference only if at least {fewest} of them change, all of them in one "
        f"direction: by a measure of 0 or 1, from {fewest / relevant:.3f} on."
    )
    floor = fixed_list(qrels, given.options.measure, given.scoring, seed=given.resampling.seed).mean
    return text if floor is None else f"{text} One list for all questions scores {floor:.3f} {given.options.measure}."


def no_claim(answers: Sequence[ClaimAnswer], system: str = "", limits: str = "") -> ClaimConclusion:
    """The conclusion where fewer than two runs were given, of which one may be there."""
    unknown = tuple(answer.question for answer in answers if answer.word == "UNKNOWN")
    reason = "A claim needs two runs. What was found about the data follows."
    if system:
        reason = f"{system} is the only system: a claim needs another one to compare it with. Its data can be checked."
    reason = " ".join(
        (
            reason,
            *filter(None, (limits,)),
            *(answer.remark for answer in answers if answer.question == "files" and answer.remark),
        )
    )
    return ClaimConclusion("UNKNOWN", reason, reason, (), unknown)


def _same(claim: Claim) -> str:
    """Says so where the two systems differ on no topic."""
    gaps = claim.differences(claim.evaluation)
    known = gaps[~np.isnan(gaps)]
    if not len(known) or known.any():
        return ""
    why = "results that were copied, one system by two names, or a change that these scores do not show"
    return f"{claim.system} and {claim.baseline} have the same score on all {len(known)} {claim.unit}: {why}"


def _is_smaller(base: ClaimEstimate, final: ClaimEstimate) -> bool:
    return base.value is not None and final.value is not None and round(base.value - final.value, 3) > 0


def _outline(answers: Sequence[ClaimAnswer], change: ClaimChange) -> str:
    """Which of several repairs change the difference by more than chance explains."""
    repaired = [(answer.repair.what, answer.facts.get("moved")) for answer in answers if answer.repair is not None]
    grave = [what for what, moved in repaired if moved]
    if not grave:
        end = "; together they do." if change.moved else "."
        return f"No one of {len(repaired)} repairs changes it by more than chance explains{end}"
    number = "one changes" if len(grave) == 1 else f"{len(grave)} change"
    return f"Of {len(repaired)} repairs {number} it by more than chance explains: {'; '.join(grave)}."


def _weak(answers: Sequence[ClaimAnswer]) -> str:
    """Which other measures do not show the difference."""
    weak = [name for answer in answers for name in answer.facts.get("not_shown", ())]
    names = list(dict.fromkeys(name.partition(",")[0] for name in weak))
    return f"By {listed(names)} it is not shown." if names else ""


def _left_open(answers: Sequence[ClaimAnswer]) -> Iterable[str]:
    """The questions that were not asked, and those that were and have no answer."""
    for text, asked in (("Asked, and not settled", True), ("Not asked", False)):
        names = [
            question(one.question).subject for one in answers if (one.evidence not in (NOT_GIVEN, LEFT_OUT)) is asked
        ]
        if names:
            yield f"{text}: {listed(names)}."

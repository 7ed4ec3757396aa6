"""What all answers say together: one word, what was found, before and after, what it means, and what would settle it.

Three kinds of statements are kept apart: what was found to change the claim, what these data cannot exclude, and what
was not checked. Only the first, and of the second what is plausible by the rule of its question, makes an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.claims.claim import Claim, ClaimChange, ClaimEstimate, Repair, became, signed
from truerank.claims.file_questions import LARGE
from truerank.claims.inquiry import Inquiry
from truerank.claims.questions import flags, question
from truerank.claims.results import NOT_GIVEN, ClaimAnswer, ClaimConclusion, ClaimRow, ConclusionWord, SystemScore
from truerank.claims.scoring_questions import sizes_shown, smallest_shown
from truerank.measures.floors import fixed_list
from truerank.measures.magnitudes import fewest_changes
from truerank.text.printable import capital, counted

#: Rows of the first table.
_MOST_ROWS: Final = 6


def concluded(
    claim: Claim, change: ClaimChange | None, answers: Sequence[ClaimAnswer], told: Sequence[str] = ()
) -> ClaimConclusion:
    """The conclusion on a claim. The word follows the difference of the repaired data.

    DOES NOT HOLD: its interval is below 0. CANNOT TELL: it includes 0, too few topics differ, nothing is left, or what
    nobody judged may turn it. HOLDS EXCEPT: above 0, but not under conditions that were found, or are plausible.
    HOLDS SMALLER: above 0, but less than as given by more than chance. HOLDS: none of these.
    """
    outcome = _Outcome(claim, change, tuple(answers))
    final = outcome.final
    if final.effect == "unknown" or final.value is None:
        return outcome.whole("UNKNOWN", "", "There is no difference to look at.")
    if outcome.nothing:
        return outcome.nothing_left()
    if final.effect == "falls":
        return outcome.falls()
    if final.effect != "stands":
        return outcome.not_shown()
    return outcome.appears() or outcome.excepted(told) or outcome.holds()


@dataclass(frozen=True)
class _Outcome:
    """What all answers leave of a claim."""

    claim: Claim
    change: ClaimChange | None
    answers: tuple[ClaimAnswer, ...]

    @cached_property
    def repairing(self) -> list[ClaimAnswer]:
        return [answer for answer in self.answers if answer.repair is not None]

    @property
    def nothing(self) -> bool:
        """Whether the repairs leave nothing to compare."""
        return bool(self.repairing) and self.change is None

    @property
    def base(self) -> ClaimEstimate:
        return self.claim.base

    @property
    def final(self) -> ClaimEstimate:
        """The difference that counts."""
        return self.base if self.change is None else self.change.after

    @property
    def repaired(self) -> Claim:
        return self.claim if self.change is None else self.change.claim

    @cached_property
    def fault(self) -> ClaimAnswer | None:
        """The repair that changes the answer; None where none does."""
        able = [answer for answer in self.repairing if "change" in answer.facts]
        if self.change is None or not able or not (self.change.moved or self.final.effect != self.base.effect):
            return None
        return max(able, key=lambda answer: (bool(answer.facts.get("moved")), abs(answer.facts["change"])))

    @cached_property
    def rows(self) -> tuple[ClaimRow, ...]:
        """All topics, and those that a repair touches: what decides, or leaves out most."""
        split = self.fault
        if split is None and self.change is not None:
            touched = [answer for answer in self.repairing if answer.repair and answer.repair.touched(self.claim)]
            split = max(touched, key=lambda one: len(one.repair.touched(self.claim)) if one.repair else 0, default=None)
        return _rows(self.claim, self.change, split)

    @property
    def moved(self) -> bool:
        """Whether the repairs change the difference by more than chance."""
        return self.change is not None and self.change.moved

    @property
    def became(self) -> str:
        """What becomes of the lead on the repaired data: "On the other 13 the lead is gone: +0.058 → −0.021"."""
        return self.on(self.fault, became(self.claim, self.base, self.final, moved=self.moved))

    def on(self, answer: ClaimAnswer | None, says: str) -> str:
        """A sentence on what a repair leaves."""
        repair = None if answer is None else answer.repair
        where = "After all repairs" if repair is None else _how([repair])
        if repair is not None and repair.topics & frozenset(self.claim.answered):
            corrected = ", with the faults below corrected," * self.rows[-1].name.endswith(", corrected")
            where = f"On the other {self.final.topics:,d}{corrected}"
        if repair is not None and repair.where:
            where = repair.where
        comma = "" if where.endswith(",") or (where.startswith("On ") and says.startswith("the ")) else ","
        return f"{where}{comma} {says}."

    @property
    def found(self) -> str:
        return "" if self.fault is None else self.fault.found

    @property
    def also(self) -> tuple[str, ...]:
        """What else was repaired, what random removals would do, and what has to be said in any case."""
        remarks = [answer.remark for answer in self.answers if answer.remark]
        if self.fault is None or self.change is None:
            return tuple(remarks)
        named = [answer.found for answer in self.repairing if answer is not self.fault and answer.found]
        beside = str(self.fault.facts["beside"]) if self.fault.facts.get("moved") else ""
        return tuple(
            filter(None, (beside, f"Corrected or left out as well: {' '.join(named)}" if named else "", *remarks))
        )

    @property
    def repairs(self) -> str:
        """What was repaired, and what that changes."""
        if self.change is None:
            return ""
        if self.fault is not None:
            return f" {self.found} {self.became}"
        before, after = signed(self.base.value or 0.0), signed(self.final.value or 0.0)
        how = _how([answer.repair for answer in self.repairing if answer.repair is not None])
        says = f"{how}, nothing changes." if before == after else f"{how}: {before} → {after}."
        named = filter(None, (answer.found for answer in self.repairing))
        return f" {' '.join((*named, says))}"

    @property
    def wide(self) -> ClaimAnswer | None:
        """What touches a large part of the topics, though it does not decide."""
        most = LARGE * len(self.claim.answered)
        touched = (one for one in self.repairing if one.repair and len(one.repair.touched(self.claim)) >= most)
        return next((one for one in touched if one.found), None)

    @property
    def doubts(self) -> list[ClaimAnswer]:
        """What may make the difference another one, and speaks for no system."""
        return [one for one in self.answers if one.plausible and one.exception and one.question not in _OF_THE_DATA]

    @property
    def turning(self) -> list[ClaimAnswer]:
        """What shows a lead of either where the data as they are show none."""
        return [
            answer
            for answer in self.answers
            if answer.question in _TURNING and (answer.found or answer.exception) and answer.repair is None
            if any(one.effect in ("stands", "falls") and not (one.is_range or one.measure) for one in answer.estimates)
        ]

    @property
    def scores(self) -> str:
        """Both scores, and on how many topics."""
        row = self.final
        gone = self.base.topics - row.topics
        on = f"{self.claim.measured} on {counted(row.topics, self.claim.unit[:-1])}"
        on += f", {gone:,d} left out" if gone and self.fault is None else ""
        both = "{:.3f} against {:.3f}".format(*row.scores or ())
        return f"{'' if self.claim.measured else 'mean score '}{both}{on}"

    def whole(self, word: ConclusionWord, found: str, figure: str, **rest: Any) -> ClaimConclusion:
        """A conclusion with all that does not depend on its word."""
        fault, rows = self.fault, rest.pop("rows", self.rows)
        means = (part.replace(found or figure, "").replace(figure, "").strip() for part in rest.get("means", ()))
        rest["means"] = tuple(part for part in means if part and part not in f"{found} {figure}")
        return ClaimConclusion(
            word, found, figure,
            **{
                "decided_by": "chance" if fault is None else fault.question,
                "not_checked": _unchecked(self.answers, self.claim),
                "example": None if fault is None else fault.example,
                "rows": rows,
                "caption": _caption(self.claim, rows, self.final),
                **rest,
            },
        )  # fmt: skip

    def by(self, answers: Sequence[ClaimAnswer]) -> dict[str, Any]:
        """What a conclusion has of the answers that decide it."""
        settles = tuple(answer.settles for answer in answers if answer.settles)
        return {"decided_by": answers[0].question, "settles": settles, "rows": _conditions(self.rows, answers)}

    def cannot(self, found: str, figure: str, **rest: Any) -> ClaimConclusion:
        to_do = f"choose {self.claim.system}" if self.claim.golden else f"call {self.claim.system} better"
        decision = f"This test is no reason to {to_do}."
        if "settles" not in rest:
            rest["settles"] = _more(self.repaired, self.final, self.fault)
        rest = {"decision": decision, "means": self.also, **rest}
        return self.whole("CANNOT TELL", found, figure, **rest)

    def nothing_left(self) -> ClaimConclusion:
        unit = self.claim.unit
        figure = f"No {unit[:-1]} is left to compare; as given, the difference is {_lead(self.claim, self.base)}."
        found = " ".join(answer.found for answer in self.repairing)
        deciding = self.repairing[0].question
        settles = self.repairing[0].settles or f"New {unit} without that fault."
        return self.cannot(found, figure, settles=(settles,), decided_by=deciding)

    def falls(self) -> ClaimConclusion:
        a, b = self.claim.system, self.claim.baseline
        figure = f"{a} is worse than {b}, not better: {self.scores}."
        figure = self.became if self.fault is not None and self.base.effect == "stands" else figure
        if doubts := [one for one in self.doubts if any(row.effect == "stands" for row in one.estimates)]:
            first, *says = doubts[0].exception
            decision = "This test is no reason to prefer either system."
            figure = " ".join((f"As judged, {a} is behind.", *says))
            return self.cannot(first, figure, decision=decision, **self.by(doubts[:1]))
        decision = f"Prefer {b} on {self.claim.unit} like these."
        return self.whole("DOES NOT HOLD", self.found, figure, decision=decision, means=self.also)

    def not_shown(self) -> ClaimConclusion:
        claim, final, first = self.claim, self.final, self.fault or self.wide
        if not np.nan_to_num(self.repaired.gaps).any():
            pair, unit = f"{claim.system} and {claim.baseline}", claim.unit[:-1]
            same = f"{pair} score the same on every {unit}. Are they one system?"
            return self.cannot(same, f"The difference is 0 on all {final.topics:,d} {claim.unit}.", settles=())
        if self.base.effect == "stands":
            return self.cannot(self.found, self.became, means=(*_may(claim, final), *self.also))
        few = self.repaired.too_few(self.repaired.gaps)
        topics = counted(final.topics, claim.unit[:-1])
        says = f"{capital(few)}." if few else f"With {topics}, chance alone can explain that{final.interval}."
        figure = f"{_side(claim, final)}. {says}{self.repairs}"
        if first is None and (turning := self.turning):
            figure = f"{figure} {(turning[0].exception or (turning[0].consequence,))[-1]}"
            found = turning[0].found or turning[0].exception[0]
            return self.cannot(found, figure, **self.by(turning[:1]))
        if first is not None:
            before, after = signed(self.base.value or 0.0), _lead(claim, final).replace(" (", ", ").rstrip(")")
            figure = f"Chance can explain the difference with them ({before}) and without them ({after})."
            figure = self.on(first, few) if few else figure
        means = (*_may(claim, final), *self.also, *(" ".join(answer.exception) for answer in self.doubts))
        return self.cannot("" if first is None else first.found, figure, means=means)

    def appears(self) -> ClaimConclusion | None:
        """A lead that only the repair makes, or only what is missing; None where it is there as given."""
        if self.base.effect != "stands":
            found = self.found or self.repairing[0].found
            figure = f"A lead appears only after the repair: {signed(self.base.value or 0.0)} → "
            return self.cannot(found, f"{figure}{_lead(self.claim, self.final)}.")
        for answer in self.answers:
            if answer.facts.get("only_without"):
                return self.cannot(answer.found, answer.consequence, **self.by([answer]))
        return None

    def excepted(self, told: Sequence[str]) -> ClaimConclusion | None:
        """A lead that some conditions take away; None where none does."""
        objecting = [answer for answer in self.answers if answer.objects]
        exceptions = (*(answer.exception for answer in objecting), *((text,) for text in told))
        if not exceptions:
            return None
        (found, *says), *others = exceptions
        return self.whole(
            "HOLDS EXCEPT", found, " ".join(says) or f"As given, the lead is {_lead(self.claim, self.final)}.",
            decision=f"Prefer {self.claim.system} only if {objecting[0].unless if objecting else _NO_FAVOUR}.",
            means=(*(" ".join(one) for one in others), *self.also),
            **(self.by(objecting) if objecting else {}),
        )  # fmt: skip

    def holds(self) -> ClaimConclusion:
        claim, final, fault = self.claim, self.final, self.fault
        decision = f"You can prefer {claim.system} on {claim.unit} like these."
        if unlooked := _unchecked(self.answers, claim):
            decision += f" Not checked: {unlooked[0]}."
        if self.moved and (self.base.value or 0.0) - (final.value or 0.0) >= _LEAST:
            return self.whole("HOLDS SMALLER", self.found, self.became, decision=decision, means=self.also)
        # What a repair does is in the final difference.
        if smaller := [one for one in self.answers if one.effect == "smaller" and one.repair is None]:
            rest = {"decision": decision, "means": self.also, **self.by(smaller[:1])}
            return self.whole("HOLDS SMALLER", smaller[0].found, smaller[0].consequence, **rest)
        by = signed(final.value or 0.0)
        if final.ends is not None:
            by += ", {:.6g}% interval {} to {}".format(100 * claim.confidence, *map(signed, final.ends))
        beats = f"{claim.system} beats {claim.baseline}: {self.scores} ({by})"
        figure = f"{beats}.{self.repairs}" if fault is None else self.on(fault, beats)
        settles = tuple(dict.fromkeys(answer.settles for answer in self.repairing if answer.settles))
        means = tuple(part for part in self.also if fault is None or part != fault.facts.get("beside"))
        return self.whole("HOLDS", self.found, figure, decision=decision, means=means, settles=settles)


def _how(repairs: Sequence[Repair]) -> str:
    """How a sentence on what is left begins."""
    kinds = {repair.done for repair in repairs}
    done = kinds.pop() if len(kinds) == 1 else "corrected or left out"
    return "Without them" if done == "left out" else capital(done)


#: What a yes in check.yaml asks for.
_NO_FAVOUR: Final = "that does not favour it"
#: Questions whose exceptions speak against a claim: none of them shows one.
_OF_THE_DATA: Final = ("files", "leakage", "collection", "versions")
#: Questions that may show a lead where there is none.
_TURNING: Final = ("files", "unjudged", "pools")
#: A difference that three decimals show.
_LEAST: Final = 0.0005


def _lead(claim: Claim, row: ClaimEstimate) -> str:
    value, space, ends = row.figures().partition(" ")
    return f"{value}{claim.measured}{space}{ends}"


def _side(claim: Claim, row: ClaimEstimate) -> str:
    """Who leads, and by how much."""
    value = row.value or 0.0
    if not round(value, 3):
        return f"{claim.system} and {claim.baseline} score the same on average"
    return f"{claim.system} {'leads' if value > 0 else 'is behind'} by {abs(value):.3f}{claim.measured}"


def _may(claim: Claim, row: ClaimEstimate) -> tuple[str, ...]:
    """How far either may be ahead."""
    if row.few or row.low is None or row.high is None or row.low >= 0 or row.high <= 0:
        return ()
    ends = {claim.baseline: -row.low, claim.system: row.high}
    first, second = sorted(ends, key=lambda name: -ends[name])
    furthest = {name: f"{round(end, 3):.2g}" for name, end in ends.items()}
    where = "" if row.topics == claim.base.topics else f"On these {row.topics:,d} {claim.unit}, "
    return (f"{where}{first} may be ahead by up to {furthest[first]}, {second} by up to {furthest[second]}.",)


def _more(claim: Claim, row: ClaimEstimate, fault: ClaimAnswer | None) -> tuple[str, ...]:
    """How many topics would settle it."""
    units, least = claim.unit, smallest_shown(claim)
    more = fault.settles if fault is not None and fault.settles else ""
    if not least or row.few:
        return (more or f"More {units}: the two must score differently on at least {fewest_changes(claim.level)}.",)
    return (f"{(more or f'More {units}.')[:-1]}: {sizes_shown(row, least)}",)


def _rows(claim: Claim, change: ClaimChange | None, fault: ClaimAnswer | None) -> tuple[ClaimRow, ...]:
    """All topics as given, those that the deciding fault touches, the others, and what the answer rests on."""
    units, base = claim.unit, claim.base
    every = f"All {base.topics:,d} {units}" if base.topics > 1 else f"The only {units[:-1]}"
    if not claim.runs and base.topics < len(claim.evaluation.topics):
        every = f"{counted(base.topics, units[:-1])} with both scores"
    if change is None:
        return (ClaimRow(every, "as given", base, "answer"),)
    rows, left = [ClaimRow(every, "as given", base)], change.after
    name = f"{every}, corrected"
    if fault is not None and fault.repair is not None:
        touched = fault.repair.touched(claim)
        which, note = fault.repair.which
        if 0 < len(touched) < base.topics:
            part = claim.of(claim.evaluation, "", touched)
            others = claim.of(claim.evaluation, "", frozenset(claim.answered) - touched)
            rows.append(ClaimRow(f"{counted(part.topics, units[:-1])} {which}", note, part, "touched"))
            if not _alike(others, left):
                rows.append(ClaimRow(f"{others.topics:,d} other {units}", "as given", others))
            every = f"All {left.topics:,d} {units}" if left.topics == base.topics else f"{left.topics:,d} other {units}"
            name = every if _alike(others, left) else f"{every}, corrected"
            if fault.repair.where:
                rows, name = rows[:1], f"{counted(left.topics, units[:-1])}, each once"
    elif _alike(base, left):
        return (ClaimRow(every, "", left, "answer"),)
    return (*rows, ClaimRow(name, "the answer rests on these", left, "answer"))


def _alike(one: ClaimEstimate, other: ClaimEstimate) -> bool:
    """Whether two rows show the same three decimals."""
    return one.figures() == other.figures() and one.topics == other.topics


def _conditions(rows: tuple[ClaimRow, ...], deciding: Sequence[ClaimAnswer]) -> tuple[ClaimRow, ...]:
    """The rows with the topics that failed and the others, or with conditions under which the lead is not shown."""
    found = [row._replace(role="") for row in rows]
    for answer in deciding:
        if answer.split:
            touched, others = answer.split
            row = ClaimRow(others.label, "", others)
            row = row._replace(note="the answer rests on these", role="answer") if answer.effect == "smaller" else row
            found += [ClaimRow(touched.label, "", touched, "touched"), row]
        found += [
            ClaimRow(capital(one.label), "", one, "answer" if answer.effect == "smaller" else "touched")
            for one in answer.estimates
            if not answer.split and (one.effect != rows[-1].estimate.effect or answer.effect == "smaller")
            if not (one.is_range or one.measure)
            if not _alike(one, rows[-1].estimate)
        ]
    return tuple(found[:_MOST_ROWS])


def _caption(claim: Claim, rows: tuple[ClaimRow, ...], final: ClaimEstimate) -> str:
    """The finding as a title; none for a single row, or for conditions, which the answer has said."""
    apart = len(rows) > 1 and rows[-1].estimate is not final
    if len(rows) < 2 or rows[-1].role == "touched" or (apart and final.effect != "stands"):
        return ""
    a, units, value, last = claim.system, claim.unit, final.value or 0.0, rows[-1]
    if apart:
        where = f"{last.name[0].lower()}{last.name[1:]}"
        where = f"on the other {last.estimate.topics:,d} {units}" if "other" in where else where
        left, lead = last.estimate, f"{a} leads by {rows[0].estimate.value or 0:.3f} as given"
        return f"{lead}, by {left.value or 0:.3f} {where}" if left.effect == "stands" else f"{lead}, not {where}"
    touched = next((row for row in rows if row.role == "touched"), None)
    if touched is not None and touched.estimate.effect == "stands" != final.effect:
        others = f"on the other {final.topics:,d}" if "other" in rows[-1].name else "once they are repaired"
        return f"{a} leads on the {touched.name}, not {others}"
    if final.effect == "stands":
        return f"{a} leads by {value:.3f}{claim.measured}"
    if final.effect == "falls":
        return f"{claim.baseline} leads by {-value:.3f}{claim.measured}"
    lead = f"a lead of {value:.3f}" if value > 0 else f"a difference of {signed(value)}"
    return f"{counted(final.topics, units[:-1])} are too few to show {lead}"


#: What threatens a claim most, where nobody looked.
_THREATS: Final = ("leakage", "collection", "versions", "models")


def _unchecked(answers: Iterable[ClaimAnswer], claim: Claim | None) -> tuple[str, ...]:
    """What nobody looked at, the largest threat first, each with the option that gives it.

    Args:
        answers: to all questions.
        claim: of scores alone nothing can be given that says how they were made.
    """
    if claim is not None and not claim.runs:
        return ("how the scores were made",)
    found = dict[str, str]()
    for answer in answers:
        if not answer.given:
            needs = answer.settles.removeprefix("Give ").removesuffix(".") if answer.evidence == NOT_GIVEN else ""
            found[answer.question] = f"{question(answer.question).subject} ({flags(needs) or '--ignore'})"
        elif answer.facts.get("without_documents"):
            found[answer.question] = "document texts (--docs)"
        elif answer.facts.get("without_encoder"):
            found[answer.question] = "texts alike in meaning alone (truerank[encoder])"
    # Without a claim, what compares systems waits for a second one.
    order = _THREATS[:3] if claim is None else (*_THREATS, *found)
    return tuple(found[name] for name in dict.fromkeys(order) if name in found)


def files_at_fault(grave: ClaimAnswer) -> ClaimConclusion:
    """The conclusion where the files allow no comparison."""
    return ClaimConclusion(
        "FILES AT FAULT", grave.found or grave.evidence, "No score is shown.", "Use no score of these files.",
        settles=(grave.settles,) if grave.settles else (), decided_by="files",
        not_checked=("everything else",),
    )  # fmt: skip


def golden_limits(qrels: pl.DataFrame, given: Inquiry) -> tuple[str, ...]:
    """What a golden set without a system lets one know beforehand."""
    relevant = qrels.filter(pl.col("relevance") >= given.scoring.rel)["topic_id"].n_unique()
    fewest = fewest_changes(given.resampling.confidence)
    if relevant < fewest:
        return (f"{counted(relevant, 'topic')} cannot show any difference: at least {fewest} are needed.",)
    text = (
        f"{relevant:,d} topics show a difference only if at least {fewest} of them change, all in one direction: by a "
        f"measure of 0 or 1, from {fewest / relevant:.3f} on."
    )
    floor = fixed_list(qrels, given.options.measure, given.scoring, seed=given.resampling.seed).mean
    return (text, *([] if floor is None else [f"One list for all topics scores {floor:.3f} {given.options.measure}."]))


def no_claim(
    answers: Sequence[ClaimAnswer], single: SystemScore | None = None, limits: tuple[str, ...] = ()
) -> ClaimConclusion:
    """The conclusion where fewer than two runs were given, of which one may be there."""
    found = [answer for answer in answers if answer.found and answer.given]
    figure, settles = "No system was given, so only the test set was checked.", "Give two systems to compare."
    if single is not None:
        ends = ""
        if single.low is not None and single.high is not None:
            ends = f" ({100 * single.confidence:.6g}% interval {single.low:.3f} to {single.high:.3f})"
        measure = "" if single.measure == "score" else f" {single.measure}"
        on = counted(single.topics, single.unit.removesuffix("s"))
        figure = f"{single.system} scores {single.value:.3f}{measure} on {on}{ends}."
        settles = "Add a second system to compare."
    remarks = [answer.remark for answer in answers if answer.question == "files" and answer.remark]
    return ClaimConclusion(
        "UNKNOWN", found[0].found if found else "", figure, "", (*limits, *remarks), (settles,),
        not_checked=_unchecked(answers, None), decided_by=found[0].question if found else "",
    )  # fmt: skip

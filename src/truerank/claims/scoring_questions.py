"""Questions that judgments and runs alone answer: chance, measures and conventions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from truerank.claims.claim import Claim, ClaimEstimate, Effect, signed
from truerank.claims.results import ClaimAnswer
from truerank.measures import Significance, compare_evaluations, detectable_difference
from truerank.measures.grammar import lower_is_better, parse_measures
from truerank.options import Missing, Scoring, Ties

__all__ = ["policies_answer", "significance_answer", "smallest_shown"]

_TIES: Final[tuple[Ties, ...]] = ("trec_eval", "ascending", "rank")
_MISSING: Final[tuple[Missing, ...]] = ("default", "skip")
#: The power with which a difference is called one that could have been shown.
_POWER: Final = 0.8
#: Measures that a sentence names.
_NAMED: Final = 4


def significance_answer(claim: Claim) -> ClaimAnswer:
    """(a) The paired t-test of the claim, corrected for the comparisons that it was chosen from."""
    base = claim.base
    many = claim.comparisons
    testing = Significance(correction="bonferroni", confidence=claim.confidence, family=many)
    row = compare_evaluations(claim.scored(), claim.baseline, method=testing).of(claim.system, claim.measure)
    of = f"Bonferroni over {many} comparisons" if many > 1 else "one comparison, no correction"
    p = "has no value" if row.p is None else f"= {row.p:.2g}"
    evidence = f"Paired t-test on {base.topics} topics: p {p}"
    if row.p_corrected is not None and many > 1:
        evidence += f", {row.p_corrected:.2g} corrected ({of})"
    wins = "" if row.wins is None else f"; better on {row.wins} topics, worse on {row.losses}, equal on {row.ties}"
    facts = {"p": row.p, "p_corrected": row.p_corrected, "effect_size": row.effect, "comparisons": many}
    least = smallest_shown(claim)
    shown = {"stands": "MORE THAN CHANCE", "not shown": "NOT SHOWN", "falls": "THE OTHER WAY ROUND"}
    word = shown.get(base.effect, "UNKNOWN")
    if base.effect == "falls" and (base.high is None or base.high >= 0):
        word = "NOT SHOWN"
    sentences = {
        "stands": f"The interval {_ends(base)} is above 0.",
        "not shown": f"The interval {_ends(base)} includes 0.",
        "falls": f"The difference is {base.figures()}: not in favour of {claim.system}.",
        "unknown": "There is no difference to test.",
    }
    settles = (
        ""
        if base.effect == "stands" or least is None
        else f"Topics: {base.topics} show differences from {least:.3f} on."
    )
    return ClaimAnswer(
        "significance",
        word,
        f"{evidence}{wins}.",
        base.effect,
        sentences[base.effect],
        (base,),
        settles,
        exception="chance",
        facts={**facts, "detectable": least},
    )


def smallest_shown(claim: Claim) -> float | None:
    """The smallest true difference that the corrected test would find with a power of 0.8; None where it is unknown."""
    found = claim.differences(claim.evaluation)
    known = found[~np.isnan(found)]
    if len(known) < 2:
        return None
    return detectable_difference(len(known), float(known.std(ddof=1)), alpha=1 - claim.level, power=_POWER)


def _ends(one: ClaimEstimate) -> str:
    return (
        "of the difference" if one.low is None or one.high is None else f"from {signed(one.low)} to {signed(one.high)}"
    )


def policies_answer(claim: Claim, measures: str) -> ClaimAnswer:
    """(h) The claim under every measure, order of ties and rule for missing topics."""
    main: list[ClaimEstimate] = []
    every: list[tuple[ClaimEstimate, str]] = []
    names = dict.fromkeys((claim.measure, *(str(one) for one in parse_measures(measures))))
    for ties in _TIES:
        for missing in _MISSING:
            scoring = Scoring(ties=ties, missing=missing, depth=claim.scoring.depth, rel=claim.scoring.rel)
            found = claim.scored(measure=" ".join(names), scoring=scoring)
            for place, name in enumerate(found.measures):
                if (found.aggregates or ("mean",) * len(found.measures))[place] != "mean":
                    continue
                one = claim.estimate(claim.differences_by(found, name), f"by {name}", measure=name)
                every.append((one, f"{name}, ties {ties}, missing topics {missing}"))
                if (ties, missing) == (claim.scoring.ties, claim.scoring.missing):
                    main.append(one)
    return _with_lacking(claim, _policies(claim, tuple(main), every))


def _policies(claim: Claim, main: tuple[ClaimEstimate, ...], every: list[tuple[ClaimEstimate, str]]) -> ClaimAnswer:
    turned = [name for one, name in every if one.effect == "falls"]
    open_ones = [name for one, name in every if one.effect == "not shown"]
    own = [one for one, _ in every if one.measure == claim.measure]
    values = [one.value for one in own if one.value is not None]
    spread = f"{claim.measure} alone gives {signed(min(values))} to {signed(max(values))}" if values else "no value"
    evidence = (
        f"{len(every)} policies tried ({len(main)} measures, {len(_TIES)} orders of ties, {len(_MISSING)} rules for "
        f"missing topics); {spread}."
    )
    base = claim.base.effect
    effect: Effect = base
    if turned:
        effect = "could turn" if base == "stands" else base
        told = f"The sign changes in {len(turned)} of {len(every)} policies: {_by(claim, turned)}."
    else:
        weak = "all intervals are above 0"
        if open_ones:
            weak = f"in {len(open_ones)} of them the interval includes 0 ({_by(claim, open_ones)})"
        told = f"The sign changes in none of {len(every)} policies; {weak}."
        # The claim is one by its own measure: another measure that shows less leaves it standing.
        if base == "stands" and any(one.effect == "not shown" for one in own):
            effect = "not shown"
    shown = [name for one, name in every if one.measure == claim.measure and one.effect == "stands"]
    if base != "stands" and shown:
        effect = "appears"
        told = f"With {shown[0].partition(', ')[2]} the difference of {claim.measure} is above 0 beyond chance."
    word = "DEPENDS" if turned else "SAME SIGN" if open_ones else "DOES NOT DEPEND"
    facts = {"policies": len(every), "turned": turned, "not_shown": open_ones}
    rows = tuple(one for one in main if one.measure != claim.measure)
    return ClaimAnswer(
        "policies", word, evidence, effect, told, rows, exception=_by(claim, turned or open_ones), facts=facts
    )  # fmt: skip


def _by(claim: Claim, policies: Sequence[str]) -> str:
    """Policies by their measures; those of the claim's own measure by their conventions."""
    measures = dict.fromkeys(name.partition(",")[0] for name in policies)
    names = [f"{name} with other conventions" if name == claim.measure else name for name in measures]
    return f"by {', '.join(names[:_NAMED])}{' and others' if len(names) > _NAMED else ''}"


def _with_lacking(claim: Claim, answer: ClaimAnswer) -> ClaimAnswer:
    """The answer with what topics could do that only one of the two runs has, whatever the other scored there."""
    topics = claim.evaluation.topics
    there = [set(claim.runs[name]["topic_id"].unique()) for name in (claim.system, claim.baseline)]
    lacking = [np.array([topic not in own for topic in topics]) for own in there]
    if (lacking[0] == lacking[1]).all():
        return answer
    told = " and ".join(
        f"{name} lacks {int(one.sum())}" for name, one in zip((claim.system, claim.baseline), lacking, strict=True)
    )
    evidence = f"{answer.evidence} Of {len(topics)} topics, {told}."
    differences = np.nan_to_num(claim.differences(claim.evaluation))
    if lower_is_better(claim.measure):
        return replace(answer, evidence=evidence)
    best = max(1.0, float(np.nanmax(claim.evaluation.values)))
    alone = lacking[0] & ~lacking[1], lacking[1] & ~lacking[0]
    low, high = np.where(alone[1], differences - best, differences), np.where(alone[0], differences + best, differences)
    base, least, most = claim.base, float(low.mean()), float(high.mean())
    effect: Effect = answer.effect
    turns = least <= 0 if base.effect == "stands" else claim.estimate(high, "").effect == "stands"
    if turns and effect != "appears":
        effect = "could turn"
    row = ClaimEstimate("lacking topics: any score", base.value, least, most, base.topics, effect, is_range=True)
    consequence = (
        f"{answer.consequence} Scores on the topics that one run lacks can give any difference from {signed(least)} to "
        f"{signed(most)}."
    )
    exception = "on topics that one run lacks" if turns and not answer.facts["turned"] else answer.exception
    return replace(
        answer, evidence=evidence, effect=effect, consequence=consequence, exception=exception,
        estimates=(*answer.estimates, row), settles="Complete the runs, or score both on the topics that both have.",
    )  # fmt: skip

"""Questions that judgments and runs alone answer: chance, measures and conventions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from truerank.claims.claim import Claim, ClaimEstimate, Effect, signed
from truerank.claims.results import ClaimAnswer
from truerank.measures import Significance, compare_evaluations, detectable_difference
from truerank.measures.grammar import lower_is_better, parse_measures
from truerank.options import Missing, Scoring, Ties

Floats = NDArray[np.float64]
_TIES: Final[tuple[Ties, ...]] = ("trec_eval", "ascending", "rank")
_MISSING: Final[tuple[Missing, ...]] = ("default", "skip")
#: The power with which a difference is called one that could have been shown.
_POWER: Final = 0.8
#: Levels of a difference that are tried.
_LEVELS: Final = 41
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
        else f"Give more topics: {base.topics} show differences from {least:.3f} on."
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
    spread = f"is {signed(min(values))} to {signed(max(values))}" if values else "has no value"
    evidence = (
        f"{len(every)} combinations tried: {len(main)} measures, {len(_TIES)} orders of ties, {len(_MISSING)} rules "
        f"for missing topics. By {claim.measure} the difference {spread}."
    )
    base = claim.base.effect
    effect: Effect = base
    named = turned or open_ones
    if turned:
        effect = "could turn" if base == "stands" else base
        told = f"{claim.baseline} leads in {len(turned)} of the {len(every)} combinations: {_by(claim, turned)}."
    else:
        weak = "all intervals are above 0"
        if open_ones:
            weak = f"in {len(open_ones)} the interval includes 0 ({_by(claim, open_ones)})"
        told = f"{claim.baseline} leads in none of the {len(every)} combinations; {weak}."
        # The claim is one by its own measure: another measure that shows less leaves it standing.
        if base == "stands" and any(one.effect == "not shown" for one in own):
            effect = "not shown"
            named = [name for one, name in every if one.measure == claim.measure and one.effect == "not shown"]
    shown = [name for one, name in every if one.measure == claim.measure and one.effect == "stands"]
    if base != "stands" and shown:
        effect = "appears"
        told = f"With {shown[0].partition(', ')[2]} the difference of {claim.measure} is above 0 beyond chance."
    word = "DEPENDS" if turned else "SAME SIGN" if open_ones else "DOES NOT DEPEND"
    facts = {"policies": len(every), "turned": turned, "not_shown": open_ones}
    rows = tuple(one for one in main if one.measure != claim.measure)
    return ClaimAnswer(
        "policies", word, evidence, effect, told, rows, exception=_by(claim, named), facts=facts
    )  # fmt: skip


def _by(claim: Claim, policies: Sequence[str]) -> str:
    """Policies by their measures; those of the claim's own measure by the conventions that are other ones."""
    by_measure: dict[str, list[str]] = {}
    usual = (f"ties {claim.scoring.ties}", f"missing topics {claim.scoring.missing}")
    for name in policies:
        measure, *conventions = name.split(", ")
        by_measure.setdefault(measure, []).extend(one for one in conventions if one not in usual)
    names = [
        f"{measure} with {' or '.join(dict.fromkeys(others))}" if measure == claim.measure and others else measure
        for measure, others in by_measure.items()
    ]
    return f"by {', '.join(names[:_NAMED])}{' and others' if len(names) > _NAMED else ''}"


def _lacking_run(claim: Claim, lacking: Sequence[NDArray[np.bool_]]) -> str:
    """The run that lacks topics which the other one has; both words where each does."""
    system, baseline = lacking
    if (system & ~baseline).any() and (baseline & ~system).any():
        return "only one run"
    return claim.system if (system & ~baseline).any() else claim.baseline


def could_show(claim: Claim, low: Floats, high: Floats) -> bool:
    """Whether some differences within bounds, by topic, would show the claim.

    Among all differences within the bounds, those that are as near as possible to one level have the largest t; every
    level is tried on a grid.

    Args:
        claim: the claim.
        low: the least difference of each topic, shape (topics,).
        high: the largest, shape (topics,).
    """
    levels = np.linspace(0, max(1e-9, float(high.max())), _LEVELS)
    return any(claim.estimate(np.clip(level, low, high), "").effect == "stands" for level in levels)


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
    turns = least <= 0 if base.effect == "stands" else could_show(claim, low, high)
    hides = base.effect == "stands" and claim.estimate(low, "").effect != "stands"
    if turns and effect != "appears":
        effect = "could turn"
    elif hides and effect == "stands":
        effect = "not shown"
    row = ClaimEstimate("lacking topics: any score", base.value, least, most, base.topics, effect, is_range=True)
    consequence = (
        f"{answer.consequence} Scores on the topics that one run lacks can give any difference from {signed(least)} to "
        f"{signed(most)}."
    )
    exception = answer.exception
    if (turns or hides) and not answer.facts["turned"]:
        exception = f"with other scores on the topics that {_lacking_run(claim, lacking)} lacks"
    return replace(
        answer, evidence=evidence, effect=effect, consequence=consequence, exception=exception,
        estimates=(*answer.estimates, row), settles="Complete the runs, or score both on the topics that both have.",
    )  # fmt: skip

"""Questions that judgments and runs alone answer: chance, measures and conventions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import polars as pl

from truerank.arrays import Flags, Floats, Ints
from truerank.claims.claim import Claim, ClaimEstimate, Effect, became, effect_of, signed
from truerank.claims.file_questions import ended_with
from truerank.claims.results import ClaimAnswer
from truerank.core.plain import plain
from truerank.errors import OptionError
from truerank.measures import Significance, compare_evaluations, detectable_difference, evaluate
from truerank.measures.conventions import ConventionRange, convention_range
from truerank.measures.grammar import lower_is_better, parse_measures
from truerank.measures.magnitudes import ROUNDING, losing_tail
from truerank.measures.repeats import apart_from_repeats, repeated_difference, scores_of_table
from truerank.measures.selection import chosen_lead
from truerank.options import Resampling, Ties
from truerank.text.printable import capital, counted, listed

_TIES: Final[tuple[Ties, ...]] = ("trec_eval", "ascending", "rank")
#: The power with which a difference is called one that could have been shown.
_POWER: Final = 0.8
#: How far below what can be shown a difference may be, so that the number of topics for it is worth naming.
_FURTHEST: Final = 4
#: Measures that a sentence names.
_NAMED: Final = 4
#: A run that is better than its repetitions is so by more than chance at this level.
_LUCK: Final = 0.05


#: Above this error of the test no plain HOLDS is said.
_MOST_ERROR: Final = 0.08


def chance_answer(claim: Claim) -> ClaimAnswer:
    """(a) The paired t-test of the claim, corrected for the comparisons that it was chosen from."""
    base = claim.base
    many = claim.comparisons
    testing = Significance(correction="bonferroni", confidence=claim.confidence, family=many)
    row = compare_evaluations(claim.scored(), claim.baseline, method=testing).of(claim.system, claim.measure)
    p = "has no value" if row.p is None else f"= {row.p:.2g}"
    wins = f"paired t-test, p {p}"
    if row.p_corrected is not None and many > 1:
        wins += f"; {row.p_corrected:.2g} corrected for {many} pairs"
    if row.wins is not None:
        wins = f"{claim.system} is better on {row.wins}, worse on {row.losses}, equal on {row.ties} ({wins})"
    units, ends = claim.unit, _ends(base)
    facts = {"p": row.p, "p_corrected": row.p_corrected, "effect_size": row.effect, "comparisons": many}
    least = smallest_shown(claim)
    shown = {"stands": "MORE THAN CHANCE", "not shown": "CHANCE CAN EXPLAIN IT", "falls": "THE OTHER WAY ROUND"}
    word = shown.get(base.effect, "UNKNOWN")
    few = claim.too_few(claim.gaps)
    sentences = {
        "stands": f"Chance alone hardly explains it: the {ends}, is above 0." if ends else "All differ by as much.",
        "not shown": f"{capital(few)}." if few else f"Chance alone can explain it: the {ends}, includes 0.",
        "falls": f"{claim.system} is behind by {base.figures().removeprefix('−')}.",
        "unknown": "There is no difference to test.",
    }
    tail = _losses(claim) if base.effect == "stands" else ""
    weak = base.effect == "not shown" and not base.few
    settles = f"More {units}: {sizes_shown(base, least)}" if weak and least else ""
    return ClaimAnswer(
        "chance", word, f"Of {counted(base.topics, units[:-1])} {wins}.", base.effect, sentences[base.effect], (base,),
        settles, exception=(tail,) if tail else (),
        unless="such losses do not matter to you", plausible=bool(tail), facts={**facts, "detectable": least},
    )  # fmt: skip


def _losses(claim: Claim) -> str:
    """Says so where few large losses make Student's t call more than so many differences shown that are none."""
    known = claim.gaps[~np.isnan(claim.gaps)]
    widest = float(np.nanmax(claim.evaluation.values) - np.nanmin(claim.evaluation.values))
    if (tail := losing_tail(known, widest)) is None or tail[1] <= _MOST_ERROR:
        return ""
    return (
        f"{claim.system} loses much on few of {len(known)} {claim.unit} (skewness −{-tail[0]:.1f}); with such losses "
        f"the test is wrong in about {tail[1]:.0%} of cases, not 5%."
    )


def sizes_shown(row: ClaimEstimate, least: float) -> str:
    """What these topics show, and how many would show the difference seen, or half of what these show.

    Args:
        least: the smallest difference that the topics of the row show with a power of 0.8.
    """
    size, able = abs(row.value or 0.0), f"{row.topics:,d} can show a difference of {least:#.2g} (80% power)"
    if not least / _FURTHEST < size < least:
        return f"{able}, half of that ({least / 2:#.2g}) needs about {4 * row.topics:,d}."
    enough = math.ceil(row.topics * (least / size) ** 2)
    # A plan is no figure: two digits.
    step = 10 ** max(0, len(str(enough)) - 2)
    return f"{able}, the {size:#.2g} seen here needs about {math.ceil(enough / step) * step:,d} in all."


def smallest_shown(claim: Claim) -> float | None:
    """The smallest true difference that the corrected test would find with a power of 0.8; None where it is unknown."""
    found = claim.differences(claim.evaluation)
    known = found[~np.isnan(found)]
    if len(known) < 2 or np.ptp(known) <= ROUNDING:
        return None
    return detectable_difference(len(known), float(known.std(ddof=1)), alpha=1 - claim.level, power=_POWER)


def _ends(one: ClaimEstimate) -> str:
    return "" if one.low is None or one.high is None else f"95% interval, {signed(one.low)} to {signed(one.high)}"


def choice_answer(claim: Claim, tried: Mapping[str, pl.DataFrame], resampling: Resampling) -> ClaimAnswer:
    """Whether the lead is more than that of the best of all configurations that were tried on these topics."""
    own = {claim.system: claim.runs[claim.system], claim.baseline: claim.runs[claim.baseline]}
    # The system may be among them by its name, or by another one.
    others = {name: run for name, run in tried.items() if name not in own}
    found = evaluate(claim.qrels, {**own, **others}, claim.measure, claim.scoring)
    sign = -1.0 if lower_is_better(claim.measure) else 1.0
    scores = sign * np.stack([found.of(name, claim.measure) for name in found.runs], axis=1)
    scores = scores[np.isfinite(scores).all(axis=1)]
    place = {name: number for number, name in enumerate(found.runs)}
    baseline = scores[:, place[claim.baseline]]
    columns = [
        number
        for name, number in place.items()
        if name == claim.system
        or (name != claim.baseline and not np.array_equal(scores[:, number], scores[:, place[claim.system]]))
    ]
    lead = chosen_lead(
        scores[:, columns], baseline, columns.index(place[claim.system]),
        confidence=claim.confidence, resamples=resampling.resamples, seed=resampling.seed,
    )  # fmt: skip
    row = ClaimEstimate(
        f"as the best of {lead.tried:,d} tried", lead.lead, lead.low, lead.high, len(scores),
        effect_of(lead.lead, lead.low, lead.high),
    )  # fmt: skip
    order = "the best" if lead.place == 1 else "one"
    says = f"{claim.system} is {order} of {lead.tried:,d} settings tried on these {claim.unit}."
    evidence = (
        f"By luck alone, the best of them leads by this much {100 * lead.p:.2g} times in 100. Picked on one half and "
        f"measured on the other, the best setting leads by {signed(lead.cross_fitted)}."
    )
    stands = row.effect == "stands"
    word = "MORE THAN THE CHOICE" if stands else "THE CHOICE EXPLAINS IT"
    consequence = f"Counting that choice, {became(claim, claim.base, row, moved=True)}."
    return ClaimAnswer(
        "choice", word, evidence, row.effect, consequence, (row,),
        "" if stands else f"Measure {claim.system} on {claim.unit} that it was not chosen on.",
        exception=(says, consequence), facts=lead._asdict(), found=says, unless="you have measured it on others, too",
    )  # fmt: skip


def repeats_answer(claim: Claim, repeats: Mapping[str, Mapping[str, pl.DataFrame]]) -> ClaimAnswer:
    """Whether the difference is more than the noise between repetitions of the same systems."""
    for name in repeats:
        if name not in (claim.system, claim.baseline):
            remedy = f"name {claim.system} or {claim.baseline}"
            raise OptionError("repeats", f"'{name}' is neither the system nor the baseline", remedy)
    sign = -1.0 if lower_is_better(claim.measure) else 1.0
    both, remarks = list[Floats](), list[str]()
    for name in claim.pair:
        runs = dict(repeats.get(name, {name: claim.runs[name]}))
        found = evaluate(claim.qrels, runs, claim.measure, claim.scoring)
        answered: Flags = np.array([np.isin(found.topics, run["topic_id"].unique().to_list()) for run in runs.values()])
        lacking = answered.any(axis=0) & ~answered
        scores = sign * np.stack([found.of(one, claim.measure) for one in runs], axis=1)
        scores[np.flatnonzero(lacking.any(axis=0))] = np.nan
        both.append(scores)
        remarks += [
            f"{one} has no results for {count:,d} topics that its other runs have; these are left out."
            for one, count in zip(runs, lacking.sum(axis=1), strict=True)
            if count
        ]
    return _repeats_answer(claim, both[0], both[1], remarks, chosen=True)


def repeated_scores_answer(claim: Claim, repeats: Mapping[str, pl.DataFrame]) -> ClaimAnswer | None:
    """The same of a score table with repetitions; None where neither system of the claim has any."""
    if claim.system not in repeats and claim.baseline not in repeats:
        return None
    scores = scores_of_table(claim.evaluation, repeats)
    both = [
        scores.get((name, claim.measure), claim.evaluation.of(name, claim.measure)[:, None])
        for name in (claim.system, claim.baseline)
    ]
    return _repeats_answer(claim, both[0], both[1])


def _repeats_answer(
    claim: Claim, system: Floats, baseline: Floats, remarks: Sequence[str] = (), *, chosen: bool = False
) -> ClaimAnswer:
    """The answer by the scores of both, shape (topics, repetitions); topics with a NaN are left out.

    Where the runs of the claim are `chosen` ones, beside or among the repetitions, they are compared with these.
    """
    known = np.flatnonzero(np.isfinite(np.concatenate((system, baseline), axis=1)).all(axis=1))
    remarks, given = list(remarks), (system[known], baseline[known])
    both = [np.unique(scores, axis=1) for scores in given]
    for name, every, different in zip((claim.system, claim.baseline), given, both, strict=True):
        if copies := every.shape[1] - different.shape[1]:
            remarks.append(
                f"{copies} of {every.shape[1]} runs of {name} {'repeats' if copies == 1 else 'repeat'} the scores of "
                "another one and are left out. Was one file given twice?"
            )
    if len(known) < 2 or max(one.shape[1] for one in both) < 2:
        few = "" if len(known) > 1 else f"{len(known):,d} topics are answered by all repetitions."
        return ClaimAnswer(
            "repeats", "UNKNOWN", " ".join(filter(None, (*remarks, few))), "unknown", "", (),
            "Give complete runs that differ in what the system draws at random, such as its seed.",
            remark=" ".join(remarks),
        )  # fmt: skip
    apart = repeated_difference(*both, confidence=claim.level)
    row = ClaimEstimate(
        "for another run of each", apart.mean, apart.low, apart.high, len(known),
        effect_of(apart.mean, apart.low, apart.high),
    )  # fmt: skip
    lucky = [
        text
        for text in (
            _lucky(claim, *one, known) for one in zip((claim.system, claim.baseline), both, (1, -1), strict=True)
        )
        if text
    ]
    if chosen and lucky and row.effect == "stands" and apart.mean < (claim.base.value or 0):
        row = replace(row, effect="smaller")
        remarks += lucky
    told = []
    for name, noise in zip((claim.system, claim.baseline), (apart.system, apart.baseline), strict=True):
        if noise.repeats == 1:
            told.append(f"{name} was run once")
            continue
        told.append(f"{name}'s score varies by {noise.by_repeat:.3f} (standard deviation, {noise.repeats} runs)")
    stands = row.effect in ("stands", "smaller")
    single = apart.topics_only[0] > 0 and not stands
    word = "MORE THAN THE NOISE" if stands else "CANNOT TELL" if single else "WITHIN THE NOISE"
    most = max(apart.system.repeats, apart.baseline.repeats)
    plan = [
        f"{count} runs of each on {topics:,d} {claim.unit} can show a difference of {least:#.2g}"
        for count, topics, least in apart.detectable
        if count >= most
    ]
    found = "" if stands and not lucky else lucky[0] if lucky else f"From run to run {told[0]}."
    says = became(claim, claim.base, row, moved=row.effect == "smaller")
    consequence = f"Counting that, {says}."
    return ClaimAnswer(
        "repeats", word, f"From run to run: {'; '.join(told)}.", row.effect, consequence, (row,),
        "" if stands else f"With 80% power, {plan[-1]}.",
        exception=(found, consequence), unless="you will use this very run",
        facts=plain(apart), remark=" ".join(remarks), found=found,
    )  # fmt: skip


def _lucky(claim: Claim, name: str, repetitions: Floats, sign: int, known: Ints) -> str:
    """Says that a run is above (sign 1) or below (-1) its repetitions by more than chance; empty where it is not."""
    own = claim.evaluation.of(name, claim.measure)[known] * (-1.0 if lower_is_better(claim.measure) else 1.0)
    others, p = apart_from_repeats(sign * own, sign * repetitions)
    way = "luckiest" if sign > 0 else "unluckiest"
    return f"This run of {name} is its {way} of {others + 1} (p = {p:.2g})." if p <= _LUCK else ""


def labels_answer(claim: Claim, again: pl.DataFrame | None, resampling: Resampling) -> ClaimAnswer:
    """What is left of the difference by the grades of pairs that were judged again."""
    # Here: few checks have second judgments.
    from truerank.audits.collection.label_noise import label_noise
    from truerank.audits.collection.second_grades import again_fault, best_cut

    if again is None:
        raise OptionError("judged_again", "no pair that was judged again", "give judgments of some pairs")
    remark = ""
    if (cut := best_cut(claim.qrels, again, claim.scoring.rel)) is not None:
        again, remark = cut.at(cut.grade), f"{cut.sentence('the second')} "
    word, fault, remedy = again_fault(claim.qrels, again, claim.scoring.rel, claim.confidence)
    if fault:
        short = "" if word == "CANNOT TELL" else f"{fault.partition(':')[0]}."
        return ClaimAnswer("labels", word, f"{remark}{fault}", "unknown", "", (), remedy, remark=short)
    noise_for = partial(
        label_noise, claim.qrels, again, claim.pair, claim.measure, scoring=claim.scoring,
        resampling=Resampling(resampling.resamples, claim.level, resampling.seed),
    )  # fmt: skip
    noise, found = noise_for(target="topics")
    wrong = found[0]
    found_here = f"{wrong.count:,d} of {wrong.of:,d} judgments changed when judged again."
    evidence, beside = f"{remark}{found_here} {wrong.here}".strip(), ""
    if noise["beside"]:
        lost = f"{noise['beside']:,d} of the {len(again):,d} pairs that were judged again have no first judgment."
        evidence, beside = f"{evidence} {lost}", lost if 2 * noise["beside"] > len(again) else ""
    rows, before = [], []
    for one in noise["differences"]:
        sign = -1.0 if lower_is_better(one["measure"]) else 1.0
        low, high = sorted(sign * one[end] for end in ("corrected_low", "corrected_high"))
        label = "judged again" + ("" if one["measure"] == claim.measure else f", by {one['measure']}")
        mean = sign * one["corrected"]
        rows.append(ClaimEstimate(label, mean, low, high, len(claim.evaluation.topics), effect_of(mean, low, high)))
        before.append(f"{signed(sign * one['model'])} → {rows[-1].figures()} {one['measure']}")
    more = "Have more pairs judged again, or all of some topics."
    facts = {"again": noise["again"]}
    if not rows:
        remarks = " ".join((evidence, *noise["remarks"]))
        return ClaimAnswer("labels", "CANNOT TELL", remarks, "unknown", "", (), more, facts=facts, remark=beside)
    part = f"By second judgments of {noise['again']:,d} of {len(claim.qrels):,d} pairs"
    of = part if noise["again"] < len(claim.qrels) else "By the second judgments of all pairs"
    used = noise["differences"][0]["measure"]
    consequence = f"{of}: {before[0]}."
    consequence += f" {claim.measure} needs topics that were judged again as a whole." if used != claim.measure else ""
    word, settles = "CANNOT TELL", more
    effect: Effect = "unknown"
    if all(row.effect == "stands" for row in rows):
        word, effect, settles = "MORE THAN WRONG JUDGMENTS", rows[0].effect, ""
    # The chance of topics is in both differences; that of the pairs is in their change.
    elif any(
        not one["corrected_low"] <= one["model"] <= one["corrected_high"]
        for one in noise_for(target="collection")[0]["differences"]
    ):
        word, effect = "WRONG JUDGMENTS MAY EXPLAIN IT", rows[0].effect
        settles = "Find out which grades are right where the two differ, and correct the others."
    else:
        consequence += " Too few documents were judged again to tell."
        found_here = f"{found_here[:-1]}; {wrong.of:,d} are too few to compare the systems by."
    return ClaimAnswer(
        "labels", word, evidence, effect, consequence, tuple(rows), settles, exception=(found_here, consequence),
        unless="you trust the first judgments",
        facts=facts, remark=beside, found=found_here if wrong.count else "",
    )  # fmt: skip


def policies_answer(claim: Claim, measures: str) -> ClaimAnswer:
    """(h) The claim under every measure and order of ties."""
    main: list[ClaimEstimate] = []
    every: list[tuple[ClaimEstimate, str]] = []
    names = _telling(claim, [str(one) for one in parse_measures(measures)])
    for ties in _TIES:
        found = claim.scored(measure=" ".join(names), scoring=replace(claim.scoring, ties=ties))
        for name in found.averaged:
            one = claim.of(found, f"by {name}", measure=name)
            every.append((one, f"{name}, ties {ties}"))
            if ties == claim.scoring.ties:
                main.append(one)
    over = None
    if claim.runs and not claim.equivalent:
        pair = claim.pair
        counted = [topic for topic, gap in zip(claim.evaluation.topics, claim.gaps, strict=True) if not math.isnan(gap)]
        qrels = claim.qrels.filter(pl.col("topic_id").is_in(counted))
        over = convention_range(qrels, pair[claim.system], pair[claim.baseline], claim.measure, claim.scoring.rel)
    return _policies(claim, tuple(main), every, over, _beyond_lists(claim, every))


def _telling(claim: Claim, measures: Sequence[str]) -> list[str]:
    """The claim's measure, and those that can say else: none that looks beyond all results, no two that are equal."""
    lengths = [run.group_by("topic_id").len()["len"].to_numpy().max(initial=0) for run in claim.pair.values()]
    able = (name for name in measures if int(parse_measures(name)[0].params.get("cutoff") or 0) <= max(lengths))
    found = claim.scored(measure=" ".join(dict.fromkeys((claim.measure, *able))))
    kept = dict[bytes, str]()
    for name in found.averaged:
        kept.setdefault(np.round(claim.differences_by(found, name), 9).tobytes(), name)
    return [claim.measure, *(name for name in kept.values() if name != claim.measure)]


def _beyond_lists(claim: Claim, every: Sequence[tuple[ClaimEstimate, str]]) -> list[str]:
    """Measures by which the baseline leads only where the lists of the system have ended."""
    leads = dict.fromkeys(row.measure for row, _ in every if row.high is not None and row.high < 0)
    if not claim.runs or not leads or len((cut := ended_with(claim, claim.system))[claim.baseline]) == len(
        claim.pair[claim.baseline]
    ):  # fmt: skip
        return []
    found = claim.scored(measure=" ".join(leads), runs=cut)
    rows = {name: claim.estimate(claim.differences_by(found, name), "", measure=name) for name in found.measures}
    return [name for name, row in rows.items() if row.high is None or row.high >= 0]


def _policies(
    claim: Claim,
    main: tuple[ClaimEstimate, ...],
    every: list[tuple[ClaimEstimate, str]],
    over: ConventionRange | None,
    beyond: Sequence[str] = (),
) -> ClaimAnswer:
    # Another measure that shows the opposite, and conventions by which the claim's own does not show it.
    against = [name for row, name in every if row.high is not None and row.high < 0]
    others = [(row, name) for row, name in every if row.measure != claim.measure and row.measure not in beyond]
    opposite = [name for row, name in others if name in against]
    own = [(row, name) for row, name in every if row.measure == claim.measure]
    weak = [name for row, name in own if row.effect != "stands"]
    shown = [name for row, name in every if row.effect == "stands"]
    open_ones = [(row.value or 0, name) for row, name in every if row.effect != "stands" and name not in against]
    values = [row.value for row, _ in own if row.value is not None]
    spread = f"it is {signed(min(values))} to {signed(max(values))}" if values else "it has no value"
    if values and round(min(values), 3) == round(max(values), 3):
        spread = f"it is {signed(min(values))} in every order of ties"
    evidence = (
        f"{counted(len(main), 'measure')} and {len(_TIES)} orders of ties were tried. By {claim.measure} {spread}."
    )
    base = claim.base.effect
    effect: Effect = base
    turned = shown if base == "falls" else opposite
    more = "leads by more than chance"
    told = [(against, f"{claim.baseline} {more}"), (shown, f"{claim.system} {more}")]
    if base == "stands":
        turned = opposite + weak
        effect = "falls" if opposite else "not shown" if weak else base
        told[1:] = [
            ([name for value, name in open_ones if round(value, 3) <= 0], f"{claim.system} is not ahead"),
            (
                [name for value, name in open_ones if round(value, 3) > 0],
                f"chance can explain the lead of {claim.system}",
            ),
        ]
    elif any(row.effect == "stands" for row, _ in own):
        effect = "appears"
    none = "Every measure and order of ties says the same." if base != "not shown" else "No measure shows a lead."
    text = capital("; ".join(f"{_by(claim, names)}, {says}" for names, says in told if names))
    text = f"{text}." if text else none
    remark = ""
    if beyond and base == "stands":
        remark = f"{claim.baseline} leads by {listed(beyond)} only where the results of {claim.system} have ended."
        text = f"{text} {remark}"
    rows = tuple(row for row in main if row.measure != claim.measure)
    if over is not None and over.conventions > 1:
        low, high = over.difference
        evidence += f" {over.sentence(claim.system, claim.baseline)}"
        if base == "stands" and low <= 0:
            effect = "not shown" if effect == "stands" else effect
            turned = [*turned, f"{claim.measure}, {listed([one.says for one in over.lowest])}"]
        own_effect: Effect = "stands" if low > 0 else "falls" if high < 0 else "not shown"
        label = f"in the {over.conventions} ways in which programs compute {claim.measure}"
        topics = claim.base.topics
        rows += (ClaimEstimate(label, claim.base.value, low, high, topics, own_effect, is_range=True),)
    word = "DEPENDS" if turned else "SAME SIGN" if open_ones else "DOES NOT DEPEND"
    facts = {"policies": len(every), "turned": turned, "not_shown": [name for _, name in open_ones]}
    heard, by = open_ones if base == "stands" else shown or (base == "not shown" and against), _by(claim, turned)
    says = f"{claim.baseline} leads {by}." if opposite else f"{capital(by)}, chance can explain the lead."
    if over is not None and over.difference[0] <= 0 and not opposite and not weak:
        says = f"{capital(by)}, the difference is {signed(over.difference[0])}."
    shows = [f"There the difference is {row.figures()}." for row, name in every if name in turned]
    return ClaimAnswer(
        "policies", word, evidence, effect, text, rows, exception=(says, *shows[:1]) if turned else (), facts=facts,
        unless=f"{claim.measure} is what counts for you",
        remark=remark, found=says if turned and base == "stands" else text if heard else "",
    )  # fmt: skip


def _by(claim: Claim, policies: Sequence[str]) -> str:
    """Policies by their measures; those of the claim's own measure by the conventions that alone turn it."""
    others = [name.partition(",")[0] for name in policies if not name.startswith(f"{claim.measure},")]
    own = [name.partition(", ")[2] for name in policies if name.startswith(f"{claim.measure},")]
    names = list(dict.fromkeys(others))
    ties = [f"ties broken by {way}" for way in _TIES if f"ties {way}" in own]
    if len(ties) == len(_TIES):
        names.insert(0, claim.measure)
    elif own:
        names.insert(0, f"{claim.measure} with {' or '.join(ties or own[:1])}")
    return f"by {listed([*names[:_NAMED], *(['others'] if len(names) > _NAMED else [])])}"

"""The question about a model's judgments: whether they say the same, and whether they favour one of the two runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Ints
from truerank.audits.assessors.audit import audit as judge_audit
from truerank.audits.assessors.grades import Grades, read_voices
from truerank.audits.assessors.order import FEWEST_RUNS
from truerank.audits.assessors.verdicts import equal_grades, verdicts_of
from truerank.audits.collection.second_grades import (
    LEVEL,
    Cut,
    apart,
    best_cut,
    disagreement,
    far_from_random,
    moved_topics,
)
from truerank.claims.claim import Claim, ClaimEstimate, Effect, signed
from truerank.claims.inquiry import ClaimMaterial, Inquiry
from truerank.claims.results import ClaimAnswer
from truerank.claims.steps import AuditSteps
from truerank.claims.unjudged import DEEPEST, KEYS, judged_results
from truerank.text.printable import listed

_NAMED: Final = 3
#: What judgments say that do not say the same.
_WORDS: Final = {"stands": "SHOWS IT", "falls": "SHOWS THE OPPOSITE", "not shown": "DOES NOT SHOW IT"}
_SETTLES: Final = "Give more of the pairs that people graded."
_MENDS: Final = "Make sure that each grade stands beside its own pair, in its order and ids, or correct the grades."
#: What no figure tells where the truth itself may come from a model.
_REMARK: Final = "A model made these judgments; people may decide otherwise."
_LIMITED: Final = "People's judgments may say otherwise."
#: Draws of errors; grades in all of them, at most.
_DRAWS, _FEWEST_DRAWS, _HELD = 1_000, 50, 4_000_000
#: Documents are as hard to judge where the better of their ranks is in one band: the last rank of each.
_BANDS: Final = (3, 10, 30, DEEPEST)


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
    steps.progress.start("judgments of models")
    models, divided, strange = _cuts(claim.qrels, material.models, claim.scoring.rel)
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

    # On the topics of the claim, some of which a repair may have left out.
    judgments = grades.qrels[name].join(claim.qrels, on="topic_id", how="semi")
    row = claim.of(claim.scored(judgments), f"by the judgments of {name}")
    change = f"{signed(claim.base.value or 0.0)} → {row.figures()}{claim.measured}"
    sentences = [f"By {name}'s judgments: {change}.", *_coverage(grades, name)]
    if cut is not None:
        sentences.insert(0, cut.sentence(f"{name}'s"))
        for other in cut.others:
            scored = claim.scored(cut.at(other).join(claim.qrels, on="topic_id", how="semi"))
            by_other = claim.estimate(claim.differences(scored), "").figures()
            sentences.append(f"With those of at least {other} as relevant it would be {by_other}.")
    elif outside := [str(one.grade) for one in grades.outside if one.name == name]:
        sentences.insert(0, f"{name}'s grades {', '.join(outside)} count as the nearest ones of people.")
    if fault := _fault_of(grades, name, claim.scoring.rel, claim.confidence):
        return _Look(row, tuple(sentences), f"{name} says nothing about the claim: {fault}")
    shown = claim.base.effect == "stands"
    same, filled = _by_people(claim, judgments)
    if shown and same != "stands":
        return _Look(
            row, (*sentences, f"{name} cannot tell: by people's grades of its pairs, chance can explain the lead.")
        )
    errors, beyond = _expected(claim, judgments, seed, len(grades.judges)), None
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


def _fault_of(grades: Grades, judge: str, rel: int, confidence: float) -> str:
    """Why a model's grades say nothing about a claim, in one sentence; empty where nothing is shown to be wrong."""
    outside = [one for one in grades.outside if one.name == judge]
    if 2 * sum(one.pairs for one in outside) > len(grades.qrels[judge]):
        scale = f"{grades.scale[0]} to {grades.scale[-1]}"
        return (
            f"most of its grades ({listed([str(one.grade) for one in outside])}) are outside people's scale ({scale})."
        )
    codes = grades.given[:, grades.judges.index(judge)]
    met = codes >= 0
    codes = codes[met]
    if moved := moved_topics(grades.qrels[""], grades.qrels[judge], rel, "people"):
        return f"its {moved}"
    z, *shares = far_from_random(grades.qrels[""], grades.qrels[judge], rel)
    if codes.min() >= grades.code_of(rel) and z > -scipy.special.ndtri(LEVEL / 2):
        figures = f"people call {shares[0]:.0%} of its {len(codes):,} pairs relevant, and {shares[1]:.0%} of all"
        return f"it calls all of its pairs relevant, and rows of other grades may be missing: {figures} on its topics."
    if len(np.unique(codes)) == 1:
        grade = grades.scale[codes[0]]
        return f"it gives all {len(codes):,} pairs that people graded, too, the grade {grade}."
    lack = disagreement(grades.qrels[""], grades.qrels[judge], rel, confidence, "people")
    few = ", and these are too few to show a modest agreement" * lack.few
    return f"its grades {lack.cause}: {lack.figures} ({len(codes):,} pairs{few})." if lack.cause else ""


def _cuts(people: pl.DataFrame, models: Mapping[str, Any], rel: int) -> tuple[dict[str, Any], dict[str, Cut], str]:
    """The models that graded a pair of people's, how the grades of some were divided, and what the others graded."""
    found, cut, others = dict[str, Any](), dict[str, Cut](), list[str]()
    for name, source in models.items():
        voices = read_voices({name: source}, models=True)
        met = {voice.name: voice.grades for voice in voices if len(voice.grades.join(people, on=KEYS, how="semi"))}
        others += [apart(people, v.grades, f"pairs that {v.name} graded") for v in voices if v.name not in met]
        own = {key: one for key, grades in met.items() if (one := best_cut(people, grades, rel)) is not None}
        changed = own or len(met) < len(voices)
        found |= {k: own[k].at(own[k].grade) if k in own else v for k, v in met.items()} if changed else {name: source}
        cut |= own
    return found, cut, " ".join(others)


def _coverage(grades: Grades, judge: str) -> tuple[str, ...]:
    """How much of what people graded a model graded, too; nothing where it is most of it, and of every topic."""
    met = grades.given[:, grades.judges.index(judge)] >= 0
    topics = len(np.unique(grades.topic[met]))
    if topics == len(grades.topics) and 2 * met.sum() >= len(met):
        return ()
    return (
        f"{judge} graded {met.sum():,} of the {len(met):,} pairs that people graded, on {topics:,} of "
        f"{len(grades.topics):,} topics.",
    )


def _by_people(claim: Claim, model: pl.DataFrame) -> tuple[Effect, Effect]:
    """The claim by people's grades of the pairs that a model graded: of these alone, and with its own of all others."""
    same = claim.qrels.join(model, on=KEYS, how="semi")
    filled = pl.concat([same, model.join(same, on=KEYS, how="anti").select(same.columns).cast(same.schema)])
    first, second = (claim.of(claim.scored(one), "").effect if len(one) else "unknown" for one in (same, filled))
    return first, second


def _expected(claim: Claim, model: pl.DataFrame, seed: int, models: int = 1) -> ClaimEstimate | None:
    """The difference that a model's grades would give if its errors ignored the systems; None without errors.

    Among the first results of both runs on a topic, its grades are exchanged at random between documents that have one
    grade of people, and of which the better rank is alike. The ends are those of chance: as any order of its grades is
    as likely then, one of so many draws is beyond an end as seldom as the level says, of all models together.
    """
    asked = replace(claim, qrels=model, evaluation=claim.scored(model))
    results = judged_results(asked)
    best = np.minimum(*(results.ranks[run] for run in claim.pair))
    rows = results.rows.with_columns(pl.Series("far", np.searchsorted(_BANDS, best)))
    rows = rows.filter(pl.Series(best <= results.depth) & (pl.col("relevance") >= 0))
    people = claim.qrels.select(*KEYS, pl.col("relevance").alias("people"))
    rows = rows.join(people, on=KEYS, how="inner", maintain_order="left")
    kind = rows.select(pl.struct("topic_id", "people", "far").rank("dense")).to_series().to_numpy()
    given = rows["relevance"].to_numpy().astype(np.int64)
    if (given == rows["people"].to_numpy()).all():
        return None
    order, draws = np.argsort(kind, kind="stable"), int(np.clip(_HELD // len(rows), _FEWEST_DRAWS, _DRAWS))
    drawn = np.random.default_rng(seed).random((len(rows), draws))
    exchanged: Ints = np.empty(drawn.shape, np.int64)
    exchanged[order] = given[np.argsort(kind[:, None] + drawn, axis=0)]
    keys = rows.select(KEYS).with_columns(open=True)
    open_rows = results.rows.join(keys, on=KEYS, how="left", maintain_order="left")["open"].fill_null(value=False)
    means = np.nanmean(results.regraded(open_rows.to_numpy()).differences(exchanged), axis=1)
    tail = (1 - claim.level) / 2 / models
    value, reach = float(means.mean()), float(-scipy.special.ndtri(tail) * means.std(ddof=1))
    low, high = value - reach, value + reach
    if beyond := int((draws + 1) * tail + 1e-9):
        low, high = (float(one) for one in np.sort(means)[[beyond - 1, -beyond]])
    return ClaimEstimate("", value, low, high, len(asked.evaluation.topics), "unknown")

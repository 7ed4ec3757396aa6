"""Questions that audits of the data answer, and what repairing the data does to the claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from truerank.audits.collection.audit import audit as collection_audit
from truerank.audits.collection.cleaning import clean as collection_clean
from truerank.audits.collection.options import CollectionOptions, Parts
from truerank.audits.collection.results import CollectionAudit
from truerank.audits.collection.results import load_audit as load_collection_audit
from truerank.audits.leakage.audit import audit as leakage_audit
from truerank.audits.leakage.options import AuditOptions
from truerank.claims.claim import Claim, Effect, signed
from truerank.claims.example_leaks import example_leaks
from truerank.claims.inquiry import Inquiry
from truerank.claims.material import ClaimMaterial
from truerank.claims.repairing import changed_difference, repaired_effect
from truerank.claims.results import ClaimAnswer
from truerank.claims.steps import AuditSteps
from truerank.measures.placebo import placebo_removal
from truerank.options import Resampling
from truerank.work.progress import Progress

_NO_CLAIM: Final = ""


def leakage_answer(given: Inquiry, material: ClaimMaterial, claim: Claim | None, steps: AuditSteps) -> ClaimAnswer:
    """(b) The leakage audit, and the claim on the topics that do not leak, beside random removals of as many."""
    test = str(given.sources.test)
    depends = {
        "train": steps.inputs("train", given.sources.train), "test": steps.inputs("test", [test]),
        "labels": steps.inputs("labels", given.judged.labels), "judged": given.judged,
        "encoding": replace(given.encoding, cache=None),
        "variants": steps.inputs("variants", [given.options.variants]),
    }  # fmt: skip

    def run(folder: Path | None, told: Progress) -> dict[str, Any]:
        """The leakage audit, as far as the claim needs it."""
        named = {} if given.options.variants is None else {material.test: given.options.variants}
        options = AuditOptions(variants=named)
        found = leakage_audit(
            given.sources.train, [test], options=options, encoding=given.encoding, judged=given.judged,
            out=folder, progress=told,
        )  # fmt: skip
        one = next(iter(found.summary["tests"].values()))
        return {name: one[name] for name in ("verdict", "why", "settle", "leaked_topics", "topics")}

    found = steps.once("leakage", depends, run)
    word, why, leaked, folder = found["verdict"], found["why"], frozenset(found["leaked_topics"]), "leakage"
    whole = example_leaks(given, steps)
    if whole is not None:
        leaked |= whole.topics
        why = f"{why} Query and relevant document in one training example: {whole.why}"
        if whole.word == "CONTAMINATED" and word != "CONTAMINATED":
            word, folder = whole.word, whole.folder
        elif whole.word == "UNKNOWN" and word == "CLEAN":
            word = "UNKNOWN"
    settles = " ".join(found["settle"][:1])
    facts = {"leaked_topics": sorted(leaked), "verdict": word}
    answer = ClaimAnswer("leakage", word, why, "unknown", _NO_CLAIM, (), settles, folder, "leakage", facts)
    if claim is None:
        return answer
    return without_leaked(claim, answer, leaked, given.resampling)


def without_leaked(claim: Claim, answer: ClaimAnswer, leaked: frozenset[str], resampling: Resampling) -> ClaimAnswer:
    """The answer on leakage with what the removal of leaked topics does to the claim.

    Args:
        claim: the claim.
        answer: what the audit says.
        leaked: ids of leaked topics.
        resampling: random removals, confidence and seed.
    """
    base, differences = claim.base, claim.differences(claim.evaluation)
    gone = np.array([topic in leaked for topic in claim.evaluation.topics])
    known = ~np.isnan(differences)
    if not gone[known].any():
        if answer.word == "CLEAN":
            return replace(answer, effect=base.effect, consequence="No topic leaks: the difference stays as it is.")
        told = "No judged topic is known to leak, so there is none to remove."
        return replace(answer, effect="unknown", consequence=told)
    after = claim.estimate(differences[~gone], f"{int((~gone & known).sum())} topics without a leak")
    placebo = placebo_removal(
        {"difference": differences[known]}, gone[known], measure=claim.measure, draws=resampling.resamples,
        confidence=resampling.confidence, seed=resampling.seed,
    )  # fmt: skip
    moved = placebo.word == "moved more than chance"
    effect = repaired_effect(base, after, moved)
    if not placebo.systems:
        return replace(answer, effect="not shown", consequence=f"{placebo.reason}", exception="every topic leaks")
    row = placebo.systems[0]
    consequence = (
        f"On the {after.topics} topics without a leak the difference is {after.figures()}. It changes by "
        f"{signed(row.change)}; the removal of as many random topics changes it by {signed(row.low)} to "
        f"{signed(row.high)} (p = {row.p:.2g})."
    )
    facts = {**answer.facts, "placebo": placebo.json()}
    return replace(
        answer, effect=effect, consequence=consequence, estimates=(after,),
        exception="on the topics that do not leak", facts=facts,
    )  # fmt: skip


def collection_answer(given: Inquiry, claim: Claim | None, steps: AuditSteps) -> ClaimAnswer:
    """(c) The collection audit, and the claim on judgments and rankings that are repaired."""
    sources = given.sources
    pair = {} if claim is None else claim.pair
    measure = given.options.measure
    depends = {
        "qrels": steps.inputs("qrels", [sources.qrels]), "docs": steps.inputs("docs", [sources.docs]),
        "topics": steps.inputs("topics", [sources.test]), "rel": given.scoring.rel,
        "runs": steps.inputs("run", list(sources.run) if isinstance(sources.run, list | tuple) else [sources.run]),
        "pair": list(pair), "measure": measure, "resampling": given.resampling,
    }  # fmt: skip

    audits: list[CollectionAudit] = []

    def run(folder: Path | None, told: Progress) -> dict[str, Any]:
        """The collection audit and its repair; `audits` keeps the audit for a check without a folder."""
        parts = Parts(qrels=sources.qrels, docs=sources.docs, topics=sources.test, run=pair or ())
        options = CollectionOptions(
            measures=measure, resamples=given.resampling.resamples, confidence=given.resampling.confidence,
            seed=given.resampling.seed,
        )  # fmt: skip
        found = collection_audit(parts, options=options, scoring=given.scoring, out=folder, progress=told)
        audits.append(found)
        if folder is not None and sources.has("qrels"):
            collection_clean(sources.qrels, found, out=folder / "clean")
        whole = found.verdicts[0]
        return {
            "verdict": whole.word,
            "why": whole.reason,
            "settle": "Read the audit: it names every instance and its remedy.",
        }

    found = steps.once("collection", depends, run)
    facts = {"verdict": found["verdict"]}
    answer = ClaimAnswer(
        "collection", found["verdict"], found["why"], "unknown", _NO_CLAIM, (), found["settle"], "collection",
        "once the collection is repaired", facts,
    )  # fmt: skip
    if claim is None:
        return answer
    place = steps.place("collection")
    return _repaired(claim, answer, audits[0] if place is None else load_collection_audit(place))


def _repaired(claim: Claim, answer: ClaimAnswer, audit: CollectionAudit) -> ClaimAnswer:
    base = claim.base
    cleaned = collection_clean(claim.qrels, audit)
    groups = dict(cleaned.duplicates.iter_rows())
    changed = len(cleaned.changes)
    if not changed and not groups:
        told = "Nothing is certain enough to be repaired: the difference stays as it is."
        effect: Effect = base.effect if answer.word == "SOUND" else "unknown"
        return replace(answer, effect=effect, consequence=told)
    after = claim.scored(cleaned.qrels, equivalent=groups)
    estimate, moved, change = changed_difference(claim, after, "collection repaired")
    consequence = (
        f"With {changed:,d} judgments corrected and {len(groups):,d} copies counted once the difference is "
        f"{estimate.figures()}; the repair changes it by {signed(change)}."
    )
    effect = repaired_effect(base, estimate, moved)
    facts = {**answer.facts, "changed": changed, "copies": len(groups), "moved": moved, "change": change}
    return replace(answer, effect=effect, consequence=consequence, estimates=(estimate,), facts=facts)

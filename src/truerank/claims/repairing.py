"""What a repair of the data does to a claim: the difference after it, and whether it changed by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from truerank.claims.claim import Claim, ClaimEstimate, Effect, Repair, signed
from truerank.measures import difference_interval
from truerank.measures.document_placebo import RankedDocuments, document_placebos
from truerank.measures.placebo import SystemPlacebo, placebo_removal
from truerank.options import Resampling


class ClaimChange(NamedTuple):
    """What repairs do to the difference.

    Attributes:
        claim: the claim on the repaired data.
        after: the difference of the repaired data.
        size: after minus before.
        moved: whether that is more than chance makes.
        effect: what becomes of the claim.
        beside: what chance makes, as a sentence; empty where nothing random is compared.
    """

    claim: Claim
    after: ClaimEstimate
    size: float
    moved: bool
    effect: Effect
    beside: str


def change_by(claim: Claim, repairs: Sequence[Repair], label: str, resampling: Resampling) -> ClaimChange | None:
    """The difference after repairs that are applied together; None where no topic is left.

    Chance is the removal of as many random topics, of as many random documents that are alike, and where judgments
    change, the interval of the changes by topic.
    """
    repaired = claim.repaired(repairs)
    if repaired is None:
        return None
    old = dict(zip(claim.evaluation.topics, claim.differences(claim.evaluation), strict=True))
    new = dict(zip(repaired.evaluation.topics, repaired.differences(repaired.evaluation), strict=True))
    after = repaired.estimate(np.array([*new.values()]), label)
    if after.value is None or claim.base.value is None:
        return None
    tests = [_without_topics(claim, frozenset(old) - frozenset(new), resampling)]
    documents = frozenset(document for repair in repairs for document in repair.documents)
    tests.append(_without_documents(claim, documents, resampling))
    beside = [
        f"as many random {what} change it by {signed(test.low)} to {signed(test.high)} (p = {test.p:.2g})"
        for what, test in zip(("topics", "documents"), tests, strict=True)
        if test is not None
    ]
    moved = any(test is not None and test.p <= 1 - resampling.confidence for test in tests)
    # Where no other documents are like those, the change by topic is all that can be tested.
    if tests[1] is None:
        kept = np.array([(old[topic], value) for topic, value in new.items() if topic in old]).reshape(-1, 2)
        kept = kept[~np.isnan(kept).any(axis=1)]
        ends = difference_interval(kept[:, 1], kept[:, 0], confidence=claim.confidence)
        moved |= ends.low is not None and ends.high is not None and not ends.low <= 0 <= ends.high
    effect = repaired_effect(claim.base, after, moved)
    return ClaimChange(repaired, after, after.value - claim.base.value, moved, effect, "; ".join(beside))


def _without_topics(claim: Claim, topics: frozenset[str], resampling: Resampling) -> SystemPlacebo | None:
    differences = claim.differences(claim.evaluation)
    gone = np.array([topic in topics for topic in claim.evaluation.topics])
    known = ~np.isnan(differences)
    if not gone[known].any():
        return None
    placebo = placebo_removal(
        {"difference": differences[known]}, gone[known], measure=claim.measure, draws=resampling.resamples,
        confidence=resampling.confidence, seed=resampling.seed,
    )  # fmt: skip
    return placebo.systems[0] if placebo.systems else None


def _without_documents(claim: Claim, documents: frozenset[str], resampling: Resampling) -> SystemPlacebo | None:
    if not documents:
        return None
    ranked = RankedDocuments.of(claim.qrels, claim.pair, claim.scoring)
    (placebo,) = document_placebos(
        ranked, documents, claim.measure, contrast=(claim.system, claim.baseline), resampling=resampling
    )
    return placebo.systems[0] if placebo.systems else None


def repaired_effect(base: ClaimEstimate, after: ClaimEstimate, moved: bool) -> Effect:
    """What repairing does to the claim.

    It falls where the change is more than chance makes, and the difference turns its sign, or is no longer shown and
    the size that was claimed is excluded. It appears where the repaired data show what the data as they are do not.
    """
    if after.value is None or base.value is None:
        return "unknown"
    if base.effect != "stands":
        return "appears" if after.effect == "stands" else base.effect
    if after.effect == "stands":
        return "smaller" if moved and after.value < base.value else "stands"
    excluded = after.value <= 0 or (after.high is not None and after.high < base.value)
    return "falls" if moved and excluded else "not shown"

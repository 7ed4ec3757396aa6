"""What a repair of the data does to a claim: the difference after it, and whether it changed by more than chance."""

from __future__ import annotations

import numpy as np

from truerank.claims.claim import Claim, ClaimEstimate, Effect
from truerank.measures import Evaluation, difference_interval


def repaired_effect(base: ClaimEstimate, after: ClaimEstimate, moved: bool) -> Effect:
    """What repairing does to the claim.

    It falls where the change is more than chance makes, and the difference turns its sign, or is no longer shown and
    the size that was claimed is excluded. It appears where the repaired data show what the data as they are do not.

    Args:
        base: the difference as the data are.
        after: the difference of the repaired data.
        moved: whether the change is more than chance makes.
    """
    if after.value is None or base.value is None:
        return "unknown"
    if base.effect != "stands":
        return "appears" if after.effect == "stands" and moved else base.effect
    if after.effect == "stands":
        return "stands"
    excluded = after.value <= 0 or (after.high is not None and after.high < base.value)
    return "falls" if moved and excluded else "not shown"


def changed_difference(claim: Claim, after: Evaluation, label: str) -> tuple[ClaimEstimate, bool, float]:
    """The difference after a change of the judgments; whether the change is more than chance, and its size.

    The change is tested by the interval of the differences of the topics that both have.

    Args:
        claim: the claim.
        after: both runs, scored on the changed judgments.
        label: the condition.
    """
    places = {topic: place for place, topic in enumerate(after.topics)}
    new = claim.differences(after)
    old = claim.differences(claim.evaluation)
    shared = [(old[at], new[places[t]]) for at, t in enumerate(claim.evaluation.topics) if t in places]
    both = np.array(shared, np.float64).reshape(-1, 2)
    both = both[~np.isnan(both).any(axis=1)]
    ends = difference_interval(both[:, 1], both[:, 0], confidence=claim.confidence)
    moved = ends.low is not None and ends.high is not None and not ends.low <= 0 <= ends.high
    return claim.estimate(new, label), moved, float(ends.mean or 0.0)

"""Each verb of what becomes of a lead has its condition, and figures on both sides."""

from __future__ import annotations

import pytest
from test_check_claims import claim, collection

from truerank.claims.claim import ClaimEstimate, became, effect_of

CLAIM = claim(*collection(topics=6))
LEAD = (0.05, 0.01, 0.09)
NONE = (0.02, -0.03, 0.07)


def row(value: float | None, low: float | None, high: float | None, *, few: bool = False) -> ClaimEstimate:
    return ClaimEstimate("", value, low, high, 40, "not shown" if few else effect_of(value, low, high), few=few)


@pytest.mark.parametrize(
    ("before", "after", "moved", "says"),
    [
        (LEAD, LEAD, False, "the lead stays: +0.050 nDCG@10"),
        (LEAD, (0.04, 0.01, 0.07), False, "the lead stays: +0.050 → +0.040 nDCG@10"),
        # "shrinks" needs more than chance makes, and a smaller lead.
        (LEAD, (0.04, 0.01, 0.07), True, "the lead shrinks but stays: +0.050 → +0.040 nDCG@10"),
        (LEAD, (0.06, 0.01, 0.11), True, "the lead grows: +0.050 → +0.060 nDCG@10"),
        # "gone" needs more than chance makes, and nothing that is left.
        (LEAD, (-0.02, -0.06, 0.02), True, "the lead is gone: +0.050 → −0.020 nDCG@10"),
        (LEAD, (0.0, -0.04, 0.04), True, "the lead is gone: +0.050 → 0.000 nDCG@10"),
        (LEAD, (-0.02, -0.06, 0.02), False, "chance can explain the lead: +0.050 → −0.020 nDCG@10 (−0.060 to +0.020)"),
        (LEAD, NONE, False, "chance can explain the lead: +0.050 → +0.020 nDCG@10 (−0.030 to +0.070)"),
        (LEAD, NONE, True, "the lead shrinks to what chance can explain: +0.050 → +0.020 nDCG@10 (−0.030 to"),
        (LEAD, (0.06, -0.03, 0.15), True, "chance can explain the lead: +0.050 → +0.060 nDCG@10 (−0.030 to +0.150)"),
        # An interval below 0 is no absence of a lead, but one of the other.
        (LEAD, (-0.05, -0.09, -0.01), False, "plain is ahead: +0.050 → −0.050 nDCG@10 (−0.090 to −0.010)"),
        (NONE, LEAD, True, "good leads by more than chance: +0.020 → +0.050 nDCG@10 (+0.010 to +0.090)"),
        (NONE, NONE, False, "little changes, and chance can explain the difference: +0.020 nDCG@10"),
        (LEAD, (None, None, None), True, "nothing is left to compare"),
    ],
)  # fmt: skip
def test_each_verb_has_its_condition(
    before: tuple[float, float, float],
    after: tuple[float | None, float | None, float | None],
    moved: bool,
    says: str,
) -> None:
    assert became(CLAIM, row(*before), row(*after), moved=moved).startswith(says)


@pytest.mark.parametrize("moved", [True, False])
def test_too_few_that_differ_are_no_chance_although_the_interval_is_above_0(moved: bool) -> None:
    told = became(CLAIM, row(*LEAD), row(0.04, 0.01, 0.07, few=True), moved=moved)
    assert "too few topics differ to show " in told
    # An interval that a test of signs contradicts is not shown.
    assert told.endswith("+0.050 → +0.040 nDCG@10")

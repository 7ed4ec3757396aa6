"""Whether a claim (one run is better than another) can be believed: all audits that apply, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.claims.checking import check as check
    from truerank.claims.claim import Claim as Claim
    from truerank.claims.claim import ClaimEstimate as ClaimEstimate
    from truerank.claims.options import ClaimOptions as ClaimOptions
    from truerank.claims.options import ClaimSources as ClaimSources
    from truerank.claims.results import Check as Check
    from truerank.claims.results import ClaimAnswer as ClaimAnswer
    from truerank.claims.results import ClaimConclusion as ClaimConclusion
    from truerank.claims.results import PlannedQuestion as PlannedQuestion

__getattr__, __dir__ = lazily(__name__, __file__)

__all__ = [
    "Check",
    "Claim",
    "ClaimAnswer",
    "ClaimConclusion",
    "ClaimEstimate",
    "ClaimOptions",
    "ClaimSources",
    "PlannedQuestion",
    "check",
]

"""Whether a claim (one run is better than another) can be believed: all audits that apply, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.claims.checking import check
    from truerank.claims.claim import Claim, ClaimEstimate
    from truerank.claims.options import ClaimOptions, ClaimSources
    from truerank.claims.results import Check, ClaimAnswer, ClaimConclusion

__getattr__, __dir__ = lazily(__name__, __file__)

__all__ = [
    "Check", "Claim", "ClaimAnswer", "ClaimConclusion", "ClaimEstimate", "ClaimOptions", "ClaimSources",
    "check",
]  # fmt: skip

"""The transfer audit: are judgments still true for the new version of a document?

Source: Fröbe, Akiki, Potthast, Hagen: Noise-Reduction for Automatically Transferred Relevance Judgments (CLEF 2022).
"""

from truerank.audits.transfer.carrying import COMBINE, Carrying, CarryOptions, carry_judgments
from truerank.audits.transfer.experts import Comparison
from truerank.audits.transfer.links import PATTERNS, Route
from truerank.audits.transfer.matching import MatchOptions, match_versions
from truerank.audits.transfer.versions import Matched, Version, load_matched, read_versions
from truerank.text.urls import UrlRules

__all__ = [
    "COMBINE",
    "PATTERNS",
    "CarryOptions",
    "Carrying",
    "Comparison",
    "MatchOptions",
    "Matched",
    "Route",
    "UrlRules",
    "Version",
    "carry_judgments",
    "load_matched",
    "match_versions",
    "read_versions",
]

"""The transfer audit: are judgments still true for the new version of a document?

Source: Fröbe, Akiki, Potthast, Hagen: Noise-Reduction for Automatically Transferred Relevance Judgments (CLEF 2022).
"""

from truerank.audits.transfer.carrying import COMBINE, Carrying, CarryOptions, carry_judgments
from truerank.audits.transfer.describing import Description, describe_sets
from truerank.audits.transfer.estimating import Estimates, estimate_errors
from truerank.audits.transfer.experts import Comparison
from truerank.audits.transfer.links import PATTERNS, Route
from truerank.audits.transfer.matching import MatchOptions, match_versions
from truerank.audits.transfer.scan_options import ScanOptions
from truerank.audits.transfer.scan_results import Scan, load_scan
from truerank.audits.transfer.scanning import scan_versions
from truerank.audits.transfer.versions import Matched, Version, load_matched, read_versions
from truerank.text.urls import UrlRules

__all__ = [
    "COMBINE",
    "PATTERNS",
    "CarryOptions",
    "Carrying",
    "Comparison",
    "Description",
    "Estimates",
    "MatchOptions",
    "Matched",
    "Route",
    "Scan",
    "ScanOptions",
    "UrlRules",
    "Version",
    "carry_judgments",
    "describe_sets",
    "estimate_errors",
    "load_matched",
    "load_scan",
    "match_versions",
    "read_versions",
    "scan_versions",
]

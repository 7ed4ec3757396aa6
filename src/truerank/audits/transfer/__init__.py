"""Are my relevance judgments still true for the new version of the documents?

Source: Fröbe, Akiki, Potthast, Hagen: Noise-Reduction for Automatically Transferred Relevance Judgments (CLEF 2022).
"""

from truerank.audits.transfer.carrying import COMBINE, Carrying, Experts, carry
from truerank.audits.transfer.cleaning import JudgmentCleaning, Removal, clean
from truerank.audits.transfer.collecting import SnapshotOptions, Snapshots, snapshots
from truerank.audits.transfer.describing import Description, describe
from truerank.audits.transfer.estimating import Estimates, estimate
from truerank.audits.transfer.experts import Comparison
from truerank.audits.transfer.matching.finding import MatchOptions, match
from truerank.audits.transfer.matching.links import PATTERNS, Route
from truerank.audits.transfer.matching.versions import Matched, Version, load_matched, read_versions
from truerank.audits.transfer.negatives import NegativeSource
from truerank.audits.transfer.scanning.options import Samples, ScanOptions
from truerank.audits.transfer.scanning.results import Scan, load_scan
from truerank.audits.transfer.scanning.scan import default_ranker, scan
from truerank.audits.transfer.selecting import Selection, SelectOptions, select
from truerank.audits.transfer.statement import TransferCard, card
from truerank.sources.archive import ArchiveOptions
from truerank.text.main_content import ContentOptions
from truerank.text.urls import UrlRules

__all__ = [
    "COMBINE",
    "PATTERNS",
    "ArchiveOptions",
    "Carrying",
    "Comparison",
    "ContentOptions",
    "Description",
    "Estimates",
    "Experts",
    "JudgmentCleaning",
    "MatchOptions",
    "Matched",
    "NegativeSource",
    "Removal",
    "Route",
    "Samples",
    "Scan",
    "ScanOptions",
    "SelectOptions",
    "Selection",
    "SnapshotOptions",
    "Snapshots",
    "TransferCard",
    "UrlRules",
    "Version",
    "card",
    "carry",
    "clean",
    "default_ranker",
    "describe",
    "estimate",
    "load_matched",
    "load_scan",
    "match",
    "read_versions",
    "scan",
    "select",
    "snapshots",
]

"""Are my relevance judgments still true for the new version of the documents?

Source: Fröbe, Akiki, Potthast, Hagen: Noise-Reduction for Automatically Transferred Relevance Judgments (CLEF 2022).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.audits.transfer.archive import ArchiveOptions as ArchiveOptions
    from truerank.audits.transfer.captures import SnapshotOptions as SnapshotOptions
    from truerank.audits.transfer.captures import Snapshots as Snapshots
    from truerank.audits.transfer.captures import snapshots as snapshots
    from truerank.audits.transfer.estimates import Estimates as Estimates
    from truerank.audits.transfer.estimates import estimate as estimate
    from truerank.audits.transfer.matching.links import PATTERNS as PATTERNS
    from truerank.audits.transfer.matching.links import Route as Route
    from truerank.audits.transfer.matching.matches import MatchOptions as MatchOptions
    from truerank.audits.transfer.matching.matches import match as match
    from truerank.audits.transfer.matching.versions import Matched as Matched
    from truerank.audits.transfer.matching.versions import Version as Version
    from truerank.audits.transfer.matching.versions import load_matched as load_matched
    from truerank.audits.transfer.matching.versions import read_versions as read_versions
    from truerank.audits.transfer.removal import JudgmentCleaning as JudgmentCleaning
    from truerank.audits.transfer.removal import Removal as Removal
    from truerank.audits.transfer.removal import clean as clean
    from truerank.audits.transfer.routes import COMBINE as COMBINE
    from truerank.audits.transfer.routes import Carrying as Carrying
    from truerank.audits.transfer.routes import ExpertComparison as ExpertComparison
    from truerank.audits.transfer.routes import Experts as Experts
    from truerank.audits.transfer.routes import carry as carry
    from truerank.audits.transfer.scanning.options import Samples as Samples
    from truerank.audits.transfer.scanning.options import ScanOptions as ScanOptions
    from truerank.audits.transfer.scanning.options import ScanScoring as ScanScoring
    from truerank.audits.transfer.scanning.results import Scan as Scan
    from truerank.audits.transfer.scanning.results import load_scan as load_scan
    from truerank.audits.transfer.scanning.scan import default_ranker as default_ranker
    from truerank.audits.transfer.scanning.scan import scan as scan
    from truerank.audits.transfer.selection import NegativeSource as NegativeSource
    from truerank.audits.transfer.selection import Selection as Selection
    from truerank.audits.transfer.selection import SelectOptions as SelectOptions
    from truerank.audits.transfer.selection import select as select
    from truerank.text.main_content import ContentOptions as ContentOptions
    from truerank.text.urls import UrlRules as UrlRules
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]

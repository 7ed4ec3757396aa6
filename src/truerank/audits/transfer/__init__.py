"""The transfer audit: are judgments still true for the new version of a document?

Source: Fröbe, Akiki, Potthast, Hagen: Noise-Reduction for Automatically Transferred Relevance Judgments (CLEF 2022).
"""

from truerank.audits.transfer.matching import MatchOptions, match_versions
from truerank.audits.transfer.versions import Matched, Version, load_matched, read_versions
from truerank.text.urls import UrlRules

__all__ = ["MatchOptions", "Matched", "UrlRules", "Version", "load_matched", "match_versions", "read_versions"]

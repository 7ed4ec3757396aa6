"""What do the runs of a track show?

Runs before they are judged: candidates, validation, selection of topics. Runs after it: the report.

Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track (TREC 2019).
"""

from truerank.audits.track.analysis import (
    Agreement,
    Analysis,
    Best,
    CandidateGain,
    Duel,
    RunMap,
    RunSimilarities,
    Statement,
    SubtaskGap,
    analyse,
    run_map,
    run_similarities,
)
from truerank.audits.track.audit import CountedFiles, TrackReport, TrackReportOptions, report
from truerank.audits.track.candidates import Candidates, candidates
from truerank.audits.track.file_counts import FileStatistics, file_statistics
from truerank.audits.track.scores import Scores
from truerank.audits.track.selection import TopicRow, TopicRule, TopicSelection, select_topics
from truerank.audits.track.validation import KINDS, Fault, Limits, RunCheck, Validation, validate
from truerank.sources.run_tables import Metadata, RunInfo

__all__ = [
    "KINDS", "Agreement", "Analysis", "Best", "CandidateGain", "Candidates", "CountedFiles", "Duel", "Fault",
    "FileStatistics", "Limits", "Metadata", "RunCheck", "RunInfo", "RunMap", "RunSimilarities", "Scores", "Statement",
    "SubtaskGap", "TopicRow", "TopicRule", "TopicSelection", "TrackReport", "TrackReportOptions", "Validation",
    "analyse", "candidates", "file_statistics", "report", "run_map", "run_similarities", "select_topics", "validate",
]  # fmt: skip

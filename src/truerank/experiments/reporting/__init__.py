"""Reports on experiments: the tables and figures of the three papers, from the results of a grid."""

from truerank.experiments.reporting.making import ExperimentReport, report
from truerank.experiments.reporting.options import ReportChoices, ReportOptions

__all__ = ["ExperimentReport", "ReportChoices", "ReportOptions", "report"]

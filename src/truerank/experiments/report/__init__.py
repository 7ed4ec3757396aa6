"""Reports on experiments: the tables and figures of the three papers, from the results of a grid."""

from truerank.experiments.report.options import ReportOptions
from truerank.experiments.report.report import ExperimentReport, report

__all__ = ["ExperimentReport", "ReportOptions", "report"]

"""Reports on experiments: the tables and figures of the three papers, from the results of a grid."""

from truerank.experiments.report.making import ExperimentReport, report
from truerank.experiments.report.options import ReportOptions

__all__ = ["ExperimentReport", "ReportOptions", "report"]

"""Reports on experiments: the tables and figures of the three papers, from the results of a grid."""

from truerank_lab.reporting.board import ReportChoices, ReportOptions
from truerank_lab.reporting.experiment_report import ExperimentReport, report

__all__ = ["ExperimentReport", "ReportChoices", "ReportOptions", "report"]

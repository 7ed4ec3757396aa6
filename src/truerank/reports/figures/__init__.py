"""Figures for reports: the same data gives the same SVG and PDF bytes; no state of pyplot is read or changed.

Every figure can be read without colour (hatching, dashes, markers, words), takes its ink from the page around it, so
that it fits light and dark, and keeps its words as text.
"""

from truerank.reports.figures.differences import DifferencePanel, difference_panels, topic_pairs
from truerank.reports.figures.distributions import cumulative_curves, order_overview, side_by_side_histograms
from truerank.reports.figures.export import page_svg, to_files, to_pdf, to_svg, to_svg_file
from truerank.reports.figures.forest import ForestMark, ForestRow, forest_plot
from truerank.reports.figures.heat_maps import HeatMap, heat_maps, similarity_map
from truerank.reports.figures.intervals import IntervalPanel, IntervalValue, interval_panels
from truerank.reports.figures.lines import LinePanel, LineSeries, line_panels
from truerank.reports.figures.ordered import RunGroup, grouped_scores, ordered_scores
from truerank.reports.figures.pictures import Picture
from truerank.reports.figures.scatters import Panel, Series, scatter_panels
from truerank.reports.figures.thresholds import histogram, precision_curve, stacked_histograms

__all__ = [
    "DifferencePanel",
    "ForestMark",
    "ForestRow",
    "HeatMap",
    "IntervalPanel",
    "IntervalValue",
    "LinePanel",
    "LineSeries",
    "Panel",
    "Picture",
    "RunGroup",
    "Series",
    "cumulative_curves",
    "difference_panels",
    "forest_plot",
    "grouped_scores",
    "heat_maps",
    "histogram",
    "interval_panels",
    "line_panels",
    "order_overview",
    "ordered_scores",
    "page_svg",
    "precision_curve",
    "scatter_panels",
    "side_by_side_histograms",
    "similarity_map",
    "stacked_histograms",
    "to_files",
    "to_pdf",
    "to_svg",
    "to_svg_file",
    "topic_pairs",
]

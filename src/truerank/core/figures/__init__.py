"""Figures for reports: the same data gives the same SVG and PDF bytes; no state of pyplot is read or changed.

Every figure can be read without colour (hatching, dashes, markers, words), takes its ink from the page around it, so
that it fits light and dark, and keeps its words as text.
"""

from truerank.core.figures.distributions import (
    DifferencePanel,
    cumulative_curves,
    difference_panels,
    histogram,
    order_overview,
    precision_curve,
    side_by_side_histograms,
    stacked_histograms,
    topic_pairs,
)
from truerank.core.figures.export import Picture, page_svg, to_files, to_pdf, to_svg, to_svg_file
from truerank.core.figures.forest import (
    ForestMark,
    ForestRow,
    IntervalPanel,
    IntervalValue,
    RunGroup,
    forest_plot,
    grouped_scores,
    interval_panels,
    ordered_scores,
)
from truerank.core.figures.heat_maps import HeatMap, heat_maps, similarity_map
from truerank.core.figures.lines import LinePanel, LineSeries, Panel, Series, line_panels, scatter_panels

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

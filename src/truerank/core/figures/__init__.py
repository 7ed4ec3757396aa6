"""Figures for reports: the same data gives the same SVG and PDF bytes; no state of pyplot is read or changed.

Every figure can be read without colour (hatching, dashes, markers, words), takes its ink from the page around it, so
that it fits light and dark, and keeps its words as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.core.figures.distributions import DifferencePanel as DifferencePanel
    from truerank.core.figures.distributions import cumulative_curves as cumulative_curves
    from truerank.core.figures.distributions import difference_panels as difference_panels
    from truerank.core.figures.distributions import histogram as histogram
    from truerank.core.figures.distributions import order_overview as order_overview
    from truerank.core.figures.distributions import precision_curve as precision_curve
    from truerank.core.figures.distributions import side_by_side_histograms as side_by_side_histograms
    from truerank.core.figures.distributions import stacked_histograms as stacked_histograms
    from truerank.core.figures.distributions import topic_pairs as topic_pairs
    from truerank.core.figures.export import Picture as Picture
    from truerank.core.figures.export import page_svg as page_svg
    from truerank.core.figures.export import to_files as to_files
    from truerank.core.figures.export import to_pdf as to_pdf
    from truerank.core.figures.export import to_svg as to_svg
    from truerank.core.figures.export import to_svg_file as to_svg_file
    from truerank.core.figures.forest import ForestMark as ForestMark
    from truerank.core.figures.forest import ForestRow as ForestRow
    from truerank.core.figures.forest import IntervalPanel as IntervalPanel
    from truerank.core.figures.forest import IntervalValue as IntervalValue
    from truerank.core.figures.forest import RunGroup as RunGroup
    from truerank.core.figures.forest import forest_plot as forest_plot
    from truerank.core.figures.forest import grouped_scores as grouped_scores
    from truerank.core.figures.forest import interval_panels as interval_panels
    from truerank.core.figures.forest import ordered_scores as ordered_scores
    from truerank.core.figures.heat_maps import HeatMap as HeatMap
    from truerank.core.figures.heat_maps import similarity_map as similarity_map
    from truerank.core.figures.lines import LinePanel as LinePanel
    from truerank.core.figures.lines import LineSeries as LineSeries
    from truerank.core.figures.lines import Panel as Panel
    from truerank.core.figures.lines import Series as Series
    from truerank.core.figures.lines import line_panels as line_panels
    from truerank.core.figures.lines import scatter_panels as scatter_panels
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]

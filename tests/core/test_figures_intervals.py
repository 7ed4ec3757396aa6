"""Intervals in rows: the same bytes, marks without colour, and values that are not known."""

from __future__ import annotations

import re

from matplotlib.figure import Figure

from truerank.core.figures import (
    ForestMark,
    ForestRow,
    IntervalPanel,
    IntervalValue,
    forest_plot,
    interval_panels,
    to_svg_file,
)

VALUES = (IntervalValue(0.5, 0.2, 0.8, "good"), IntervalValue(0.1, None, None, "bad"), IntervalValue(None))


def drawn(groups: tuple[str, ...] = ("good", "bad")) -> str:
    panels = [IntervalPanel("First", "τ", VALUES, {0.8: ""}), IntervalPanel("Second $x$", "α", VALUES, {})]
    figure = interval_panels(("one", "two", "three"), panels, groups=groups)
    return to_svg_file(figure, name="x", description="rows")


def test_the_same_bytes_and_all_words() -> None:
    assert drawn() == drawn()
    for word in ("one", "two", "three", "First", "Second $x$", "good", "bad"):
        assert f"<!-- {word} -->" in drawn()


ROWS = (
    ForestRow("nDCG@10", mark=None, bold=True),
    ForestRow("bm25", 0.1, -0.1, 0.3, "+0.10", "hollow"),
    ForestRow("dense", 0.4, 0.2, 0.6, "+0.40 $†$"),
    ForestRow("AP", mark=None, bold=True),
    ForestRow("dense", None, figures="no test"),
)


def forest(rows: tuple[ForestRow, ...] = ROWS, *, narrow: bool = False) -> Figure:
    meanings: dict[ForestMark, str] = {"filled": "significant", "hollow": "not significant"}
    return forest_plot(rows, x_label="difference", line=0.0, line_label="bm25", meanings=meanings, narrow=narrow)


def test_a_forest_draws_each_interval_where_it_is() -> None:
    bars = [bar for one in forest().axes[0].collections for bar in one.get_segments()]
    assert [(bar[:, 0].tolist(), bar[:, 1].tolist()) for bar in bars] == [
        ([-0.1, 0.3], [1.0, 1.0]),
        ([0.2, 0.6], [2.0, 2.0]),
    ]


def test_the_narrow_layout_has_the_same_words_and_intervals() -> None:
    def content(figure: Figure) -> tuple[list[str], list[list[float]]]:
        svg = to_svg_file(figure, name="x", description="")
        ends = [bar[:, 0].tolist() for one in figure.axes[0].collections for bar in one.get_segments()]
        return sorted(re.findall(r"<!-- (.+?) -->", svg, flags=re.DOTALL)), ends

    assert content(forest()) == content(forest(narrow=True))
    assert len(content(forest())[1]) == 2
    assert forest(narrow=True).get_figwidth() < forest().get_figwidth()


def test_labels_of_any_width_stay_left_of_the_values() -> None:
    """Capitals are wide: the place for labels is measured, not estimated from the number of letters."""
    rows = tuple(ForestRow(label, 0.5, 0.2, 0.8) for label in ("WWWWWWWWWWWWWWWW", "iiiiiiiiiiiiiiii"))
    figure = forest_plot(rows, x_label="share")
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert max(label.get_window_extent().x1 for label in axes.get_yticklabels()) < axes.get_window_extent().x0


def test_a_forest_without_rows_is_a_figure() -> None:
    assert forest_plot((), x_label="share", percent=True).axes

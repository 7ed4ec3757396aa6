"""Figures of runs: told apart without colour, complete, and the same every time."""

from __future__ import annotations

import re

import matplotlib.colors
import numpy as np
import pytest

from truerank.core.figures import (
    Panel,
    RunGroup,
    Series,
    grouped_scores,
    ordered_scores,
    page_svg,
    scatter_panels,
    to_files,
    to_svg,
    to_svg_file,
    topic_pairs,
)
from truerank.core.figures.lines import marks


def groups():
    parts = (RunGroup("nnlm", [0.7, 0.6], "best_run\n0.7000, +40.0 %"), RunGroup("trad", [0.5], "old\n0.5000"))
    return grouped_scores(parts, y_label="nDCG@10, n = 3 runs", reference=0.5, reference_label="best trad")


def order():
    return ordered_scores(
        [("nDCG@10", [0.2, 0.3, 0.4]), ("NCG@100", [0.5, np.nan, 0.1])],
        ["rerank", "fullrank", "fullrank"],
        x_label="runs by nDCG@10",
        counted="runs",
    )


def clouds(second="a"):
    panels = [
        Panel("τ: 0.5 $x$", "RR", "AP", (Series("a", [0.1, 0.2], [0.3, 0.4]), Series("b", [0.5], [0.6]))),
        Panel("other", "RR", "P@10", (Series(second, [0.1], [0.2]),)),
    ]
    return scatter_panels(panels)


def pairs(number=5):
    values = np.linspace(0.9, 0.1, number)
    return topic_pairs(
        [f"topic {place}" for place in range(number)], values, values[::-1], names=("new", "old"), x_label="nDCG@10"
    )


def words(figure):
    return re.findall(r"<!-- (.*?) -->", to_svg(figure, name="x", description=""))


def test_sixteen_series_differ_without_their_colours():
    looks = marks([f"group {number}" for number in range(16)])
    assert len({(look.shape, look.solid) for look in looks.values()}) == 16
    few = marks(["fullrank", "rerank"])
    assert [look.solid for look in few.values()] == [True, False]


def test_neighbouring_colours_are_seen_on_light_and_dark():
    def luminance(colour):
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
            for part in matplotlib.colors.to_rgb(colour)
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for look in marks([str(number) for number in range(16)]).values():
        light = 1.05 / (luminance(look.colour) + 0.05)
        dark = (luminance(look.colour) + 0.05) / (luminance("#17191a") + 0.05)
        assert min(light, dark) > 2.5, look.colour


def test_every_group_says_its_number_and_its_best():
    found = words(groups())
    for expected in ("nnlm", "n = 2", "best_run", "0.7000, +40.0 %", "best trad", "n = 1", "nDCG@10, n = 3 runs"):
        assert expected in found


def test_the_best_of_each_kind_is_named_in_every_panel():
    found = words(order())
    assert [word for word in found if word.startswith("0.") and len(word) == 6] == [
        "0.4000", "0.2000", "0.1000", "0.5000",
    ]  # fmt: skip
    assert found.count("best fullrank") == found.count("best rerank") == 2
    assert "runs by nDCG@10, n = 3 runs" in found


def test_panels_that_share_series_share_a_legend():
    shared, apart = clouds(), clouds("c")
    assert len(shared.legends) == 1
    assert len(apart.legends) == 0
    assert [len(axes.get_legend().get_texts()) for axes in apart.axes] == [2, 1]
    assert "τ: 0.5 $x$" in words(shared)


@pytest.mark.parametrize(("number", "named"), [(5, True), (120, True), (121, False)])
def test_topics_are_named_while_there_is_room(number, named):
    found = words(pairs(number))
    assert ("topic 0" in found) == named
    assert any(f"n = {number}" in word for word in found)


def test_wins_and_losses_are_drawn_in_different_lines():
    lines = pairs().axes[0].collections
    assert [len(one.get_segments()) for one in lines] == [2, 2]
    assert lines[0].get_linestyle() != lines[1].get_linestyle()


@pytest.mark.parametrize("make", [groups, order, clouds, pairs])
def test_files_and_pages_hold_the_same_figure(make):
    svg, pdf = to_files(make(), name="one", description="What it shows")
    assert svg == to_svg_file(make(), name="one", description="What it shows")
    assert svg.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<svg width="')
    assert "var(" not in svg
    assert "currentColor" not in svg
    inline = page_svg(svg)
    assert inline == to_svg(make(), name="one", description="What it shows")
    assert inline.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "currentColor" in inline
    assert (svg, pdf) == to_files(make(), name="one", description="What it shows")


def test_nothing_to_draw_is_still_a_figure():
    assert "n = 0" in words(grouped_scores([RunGroup("a", [], "")], y_label="x", reference=None, reference_label=""))
    assert ordered_scores([("x", [])], [], x_label="runs", counted="runs").axes
    assert scatter_panels([Panel("", "x", "y", ())]).axes

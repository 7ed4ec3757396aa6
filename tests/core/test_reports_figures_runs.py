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

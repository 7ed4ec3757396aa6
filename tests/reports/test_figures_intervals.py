"""Intervals in rows: the same bytes, marks without colour, and values that are not known."""

from __future__ import annotations

from truerank.reports.figures import IntervalPanel, IntervalValue, interval_panels, to_svg_file

VALUES = (IntervalValue(0.5, 0.2, 0.8, "good"), IntervalValue(0.1, None, None, "bad"), IntervalValue(None))


def drawn(groups: tuple[str, ...] = ("good", "bad")) -> str:
    panels = [IntervalPanel("First", "τ", VALUES, {0.8: ""}), IntervalPanel("Second $x$", "α", VALUES, {})]
    figure = interval_panels(("one", "two", "three"), panels, groups=groups)
    return to_svg_file(figure, name="x", description="rows")


def test_the_same_bytes_and_all_words() -> None:
    assert drawn() == drawn()
    for word in ("one", "two", "three", "First", "Second $x$", "good", "bad"):
        assert f">{word}</text>" in drawn()


def test_groups_differ_in_shape() -> None:
    """Whoever prints in black and white tells groups apart: another mark, not another colour."""
    assert drawn(("good", "bad")) != drawn(("bad", "good"))

"""Intervals in rows: the same bytes, marks without colour, and values that are not known."""

from __future__ import annotations

from matplotlib.figure import Figure

from truerank.reports.figures import (
    IntervalPanel,
    IntervalRow,
    IntervalValue,
    interval_panels,
    interval_rows,
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
        assert f">{word}</text>" in drawn()


def test_groups_differ_in_shape() -> None:
    """Whoever prints in black and white tells groups apart: another mark, not another colour."""
    assert drawn(("good", "bad")) != drawn(("bad", "good"))


ROWS = (
    IntervalRow("bm25", 0.1, -0.1, 0.3, "+0.10", strong=False, group="nDCG@10"),
    IntervalRow("dense", 0.4, 0.2, 0.6, "+0.40 $†$", group="nDCG@10"),
    IntervalRow("dense", None, words="no test", group="AP"),
)


def forest(rows: tuple[IntervalRow, ...] = ROWS) -> Figure:
    looks = ("significant", "not significant")
    return interval_rows(rows, x_label="difference", line=0.0, line_label="bm25", looks=looks)


def test_a_forest_has_its_names_words_and_groups_in_order() -> None:
    names = [label.get_text() for label in forest().axes[0].get_yticklabels()]
    assert names == ["nDCG@10", "bm25", "dense", "AP", "dense"]
    svg = to_svg_file(forest(), name="x", description="rows")
    for word in ("+0.10", "+0.40 $†$", "no test", "dashed: bm25", "significant", "not significant", "difference"):
        assert f">{word}</text>" in svg
    assert svg == to_svg_file(forest(), name="x", description="rows")


def test_a_forest_draws_each_interval_where_it_is() -> None:
    bars = [bar for one in forest().axes[0].collections for bar in one.get_segments()]
    assert [(bar[:, 0].tolist(), bar[:, 1].tolist()) for bar in bars] == [
        ([-0.1, 0.3], [1.0, 1.0]),
        ([0.2, 0.6], [2.0, 2.0]),
    ]


def test_strong_rows_differ_in_shape() -> None:
    weak = tuple(row._replace(strong=False) for row in ROWS)
    assert to_svg_file(forest(weak), name="x", description="") != to_svg_file(forest(), name="x", description="")


def test_a_forest_without_rows_is_a_figure() -> None:
    assert interval_rows((), x_label="share", percent=True).axes

"""Views: the grammar of columns, tables over frames, and what a mistake in a declaration does."""

from __future__ import annotations

import polars as pl
import pytest

from truerank.core.audit import Audit, Look
from truerank.core.tables import Column, Interval
from truerank.core.views import ColumnSpread, Field, View, columns, heads, tables

FRAMES = {
    "scores": pl.DataFrame(
        {
            "run": ["a", "a", "b"],
            "measure": ["P@10", "AP", "P@10"],
            "topics": [1200, 1200, 1200],
            "mean": [0.25, 0.5, None],
            "mean_low": [0.125, None, None],
            "mean_high": [0.375, None, None],
        }
    )
}
FLAT = View("flat", "scores", "Scores of {n} runs", columns("system=run, measure, topics:,d, mean~.2f"), ("By {who}.",))


def test_a_text_says_what_the_columns_are() -> None:
    assert columns("model=judge, pairs:,d, κ=kappa~.3f, move:+d") == (
        Field(("model",), "judge"),
        Field(("pairs",), "pairs", ",d"),
        Field(("κ",), "kappa", ".3f", interval=True),
        Field(("move",), "move", "+d"),
    )


def test_headings_of_cells_may_have_headings_over_them() -> None:
    assert heads("depth:, p|raw:.2g, p|at most:.2g, left_out, a_b=c") == (
        Column("depth", align="right"),
        *Column.numbers(".2g", "raw", "at most", above=("p",)),
        Column("left out"),
        Column("a_b"),
    )
    with pytest.raises(ValueError, match="is not a column"):
        heads("a, b:xyz")


@pytest.mark.parametrize("text", ["", "a b", "a:", "a:xyz", "a=b=c", "a=", "a:.3f,b", "a~.3f~.2f"])
def test_another_text_is_refused_where_it_is_declared(text: str) -> None:
    with pytest.raises(ValueError, match="is not a column"):
        columns(text)


def test_an_interval_is_one_cell_and_three_numbers() -> None:
    table = FLAT.table(FRAMES, {"n": 2, "who": "people"})
    assert table.title == "Scores of 2 runs"
    assert table.notes == ("By people.",)
    assert table.rows[0] == ("a", "P@10", 1200, Interval(0.25, 0.125, 0.375))
    assert [row[-1] for row in table._shown()] == ["0.25 [0.12, 0.38]", "0.50", "–"]
    assert table.csv().splitlines() == [
        "system,measure,topics,mean,mean low,mean high",
        "a,P@10,1200,0.25,0.125,0.375",
        "a,AP,1200,0.5,,",
        "b,P@10,1200,,,",
    ]


def test_values_of_a_field_are_columns() -> None:
    spread = ColumnSpread("measure", ("by {}",), columns("mean:.1f"))
    table = View("wide", "scores", "", columns("run"), spread=spread, ruled="run").table(FRAMES, {})
    assert [(*column.above, column.title) for column in table.columns] == [
        ("run",), ("by P@10", "mean"), ("by AP", "mean"),
    ]  # fmt: skip
    assert table.rows == (("a", 0.25, 0.5), ("b", None, None))


def test_rows_are_chosen_and_ruled() -> None:
    table = View("one", "scores", "", columns("run, mean:.1f"), where={"measure": "P@10"}, ruled="run").table(
        FRAMES, {}
    )
    assert table.rows == (("a", 0.25), ("b", None))
    assert table.rules == (1,)


def test_an_absent_frame_leaves_its_table_out() -> None:
    absent = View("absent", "nowhere", "", columns("run"))
    assert [name for name, _ in tables((absent, FLAT), FRAMES, {"n": 2, "who": ""})] == ["flat"]


@pytest.mark.parametrize(
    "broken", [View("x", "scores", "", columns("rum")), View("x", "scores", "{no}", columns("run"))]
)
def test_a_wrong_name_is_an_error(broken: View) -> None:
    with pytest.raises(KeyError):
        broken.table(FRAMES, {})


def test_faults_of_a_declaration_are_named() -> None:
    view = View("a", "a", "{absent:d} rows", columns("x"))
    with pytest.raises(KeyError, match=r"view 'a'.*'absent'"):
        view.table({"a": pl.DataFrame({"x": [1]})}, {"there": 1})
    with pytest.raises(ValueError, match="of section 'a'"):
        Look("title", "lead", views=(view,))
    with pytest.raises(ValueError, match="ODD has no level"):

        class Odd(Audit, shown_in="truerank.core.audit"):
            verdict_words = ("ODD",)

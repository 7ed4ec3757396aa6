"""Views: the grammar of columns, tables over frames, and what a mistake in a declaration does."""

from __future__ import annotations

import polars as pl
import pytest

from truerank.core.audit import Audit, Look
from truerank.core.tables import Interval
from truerank.core.views import Field, View, columns

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


def test_faults_of_a_declaration_are_named() -> None:
    view = View("a", "a", "{absent:d} rows", columns("x"))
    with pytest.raises(KeyError, match=r"view 'a'.*'absent'"):
        view.table({"a": pl.DataFrame({"x": [1]})}, {"there": 1})
    with pytest.raises(ValueError, match="of section 'a'"):
        Look("title", "lead", views=(view,))
    with pytest.raises(ValueError, match="ODD has no level"):

        class Odd(Audit, shown_in="truerank.core.audit"):
            verdict_words = ("ODD",)

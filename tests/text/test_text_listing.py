"""Names in a sentence, and columns of numbers."""

from __future__ import annotations

import pytest

from truerank.core.tables import Column
from truerank.text.printable import and_more, first_few, listed


@pytest.mark.parametrize(
    ("names", "sentence"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_all_names(names: list[str], sentence: str) -> None:
    assert listed(names) == sentence


def test_the_first_names() -> None:
    names = ["a", "b", "c"]
    assert first_few(names, 3) == "a, b, c"
    assert first_few(names, 2) == "a, b …"
    assert and_more(names, 3) == "a, b, c"
    assert and_more(names, 1) == "a and 2 more"
    assert and_more([str(n) for n in range(1002)], 1) == "0 and 1,001 more"


def test_columns_of_numbers_are_what_they_are_one_by_one() -> None:
    low, high = Column.numbers(".1%", "low", "high", above=("share",))
    assert low == Column("low", ("share",), align="right", format=".1%")
    assert high == Column("high", ("share",), "right", ".1%")
    assert Column.numbers(",d") == ()

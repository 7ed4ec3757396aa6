"""Distinct texts in bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from truerank.sources.distinct import DistinctTexts


@given(st.lists(st.lists(st.text(max_size=4), min_size=1), max_size=8))
def test_exact_while_there_is_room(batches: list[list[str]]) -> None:
    distinct = DistinctTexts()
    seen: list[str] = []
    for batch in batches:
        new = [batch[place] for place in distinct.new(batch)]
        assert new == [text for text in dict.fromkeys(batch) if text not in seen]
        seen += new
    assert distinct.count == len(seen)
    assert not distinct.estimated


def test_estimate_beyond_what_is_remembered() -> None:
    distinct = DistinctTexts(remember=1000, sketch=4096)
    texts = [f"query {number}" for number in range(200_000)]
    passed = 0
    for start in range(0, len(texts), 5000):
        passed += len(distinct.new(texts[start : start + 5000]))
    assert passed == 200_000
    assert distinct.estimated
    assert abs(distinct.count - 200_000) < 200_000 * 4 / 64  # four standard errors of 1/sqrt(4096)
    assert list(distinct.new(texts[:500])) == []  # the first thousand are still known

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.text.normalising import normalise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  polio   outbreaks\t", "polio outbreaks"),
        ("a\x00b\x85c", "a b c"),
        ("cafe\u0301", "caf\u00e9"),
        ("zero\u200bwidth\ufeff", "zero width"),
        ("\u202eright to left\u202c", "right to left"),
        ("Radio Waves", "Radio Waves"),
        ("\u00a0\u3000", ""),
        ("", ""),
    ],
)
def test_blanks_controls_and_composition(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.text())
def test_no_blank_at_the_ends_none_doubled_no_control(text: str) -> None:
    result = normalise(text)
    assert result == result.strip()
    assert "  " not in result
    assert not any(unicodedata.category(sign) == "Cc" for sign in result)


@given(st.text(), st.text())
def test_the_kind_and_number_of_blanks_between_words_do_not_matter(left: str, right: str) -> None:
    assert normalise(f"{left} {right}") == normalise(f"\n{left}\t \r\n{right}\u00a0")


@given(st.text())
def test_canonically_equal_texts_are_one(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(text)

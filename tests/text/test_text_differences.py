from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from truerank.text.words import mark


def _words(side: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    return [(token, status) for token, status in side if any(sign.isalnum() for sign in token)]


def test_each_word_says_whether_the_other_text_holds_it() -> None:
    topic, query = mark("Black Bear Attacks", "what is a black bear attack")
    assert topic == (
        ("Black", "same"),
        (" ", "same"),
        ("Bear", "same"),
        (" ", "same"),
        ("Attacks", "inflected"),
    )
    assert _words(query) == [
        ("what", "other"),
        ("is", "other"),
        ("a", "other"),
        ("black", "same"),
        ("bear", "same"),
        ("attack", "inflected"),
    ]


def test_joined_words_and_initials_count_as_inflected() -> None:
    topic, query = mark("U.S. rainforest", "united states rain forests")
    assert _words(topic) == [("U.S.", "inflected"), ("rainforest", "inflected")]
    assert {status for _, status in query if status != "same"} == {"inflected"}
    assert len(_words(query)) == 4


def test_markup_comes_back_as_it_was() -> None:
    text = "<script>alert('x')</script> & \"polio\""
    topic, query = mark(text, "polio")
    assert "".join(token for token, _ in topic) == text
    assert query == (("polio", "same"),)


@given(st.text(), st.text())
def test_the_pieces_of_a_side_are_its_text(topic_text: str, query_text: str) -> None:
    topic, query = mark(topic_text, query_text)
    assert "".join(token for token, _ in topic) == topic_text
    assert "".join(token for token, _ in query) == query_text


@given(st.text())
def test_a_text_differs_from_itself_nowhere(text: str) -> None:
    for side in mark(text, text):
        assert all(status == "same" for _, status in side)

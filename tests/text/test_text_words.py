from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.text.words import asks_for_definition, content_words, joined_words, spans, stem, stems, words


def _bag(text: str) -> set[str]:
    return {stem(word) for word in content_words(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Polio, and Post-Polio!", ("polio", "and", "post", "polio")),
        ("U.S. invasion", ("us", "invasion")),
        ("the u.s.a today", ("the", "usa", "today")),
        ("Alzheimer's don’t", ("alzheimer", "dont")),
        ("C++ vs C# vs C", ("c++", "vs", "c#", "vs", "c")),
        ("snake_case 3.5%", ("snake", "case", "3", "5")),
        ("Straße CAFÉ cafe\u0301", ("strasse", "café", "café")),
        ("हिन्दी खोज", ("हिन्दी", "खोज")),
        ("?! 😀", ()),
        ("", ()),
    ],
)
def test_words(text: str, expected: tuple[str, ...]) -> None:
    assert words(text) == expected


def test_stems_and__bag() -> None:
    assert stems("the attacks of bears") == ("the", "attack", "of", "bear")
    assert _bag("attacks by the black bears") == _bag("Black bear attack") == {"black", "bear", "attack"}
    assert _bag("diet without sugar") != _bag("diet with sugar")


def test_a_text_of_function_words_keeps_them() -> None:
    assert content_words("The Who") == ("the", "who")
    assert content_words("who is the president") == ("president",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what is piracy", True),
        ("Who was Stirling", True),
        ("what's cyanide", True),
        ("whats cyanide", True),
        ("define creativity", True),
        ("what causes cancer", False),
        ("piracy", False),
        ("what", False),
        ("", False),
    ],
)
def test_questions_for_a_definition(text: str, expected: bool) -> None:
    assert asks_for_definition(text) is expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (["rain", "forests"], ["rainforest"], {(0, 0), (1, 0)}),
        (["homeschooling"], ["home", "schools"], {(0, 0), (0, 1)}),
        (["united", "states", "tax"], ["us", "tax"], {(0, 0), (1, 0)}),
        (["united", "kingdom"], ["us"], set()),
        (["a", "b"], ["a", "b"], set()),
    ],
)
def test_several_words_in_one(left: list[str], right: list[str], expected: set[tuple[int, int]]) -> None:
    assert set(joined_words(left, right)) == expected
    assert set(joined_words(right, left)) == {(b, a) for a, b in expected}


def test_stems_are_the_same_in_every_thread() -> None:
    forms = [f"running{number}s" for number in range(300)]
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append([stem.__wrapped__(form) for form in forms])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[stem(form) for form in forms]] * 4


@given(st.text())
def test_spans_are_in_order_apart_and_never_empty(text: str) -> None:
    end = 0
    for span in spans(text):
        assert end <= span.start < span.end <= len(text)
        assert span.form
        end = span.end


@given(st.lists(st.sampled_from(["black", "bears", "attack", "the", "u.s.", "post-polio"]), min_size=1), st.randoms())
def test_a_bag_knows_neither_order_nor_letter_case(parts: list[str], random: object) -> None:
    shuffled = list(parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert _bag(" ".join(shuffled).upper()) == _bag(" ".join(parts))

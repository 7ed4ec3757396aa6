"""Passages: every policy against what it says of itself."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.text.passages import (
    CAST2021,
    CAST2022,
    POLICIES,
    WHOLE,
    Sentences,
    Sliding,
    passages,
    policy_named,
    sentences,
)

TEXTS = st.text(st.sampled_from(list("ab Cd.!?\n\t1é。")), max_size=200)
SMALL = (WHOLE, Sliding(3, 2), Sliding(4, 4), Sentences(5, "close at", "five"), Sentences(5, "fit", "fit"))


def found(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def test_sentences_end_where_english_sentences_end() -> None:
    text = 'Dr. A. Smith paid 3.5 dollars (e.g. in the U.S. state). "Was it?" He did!  Yes'
    assert found(text) == ["Dr. A. Smith paid 3.5 dollars (e.g. in the U.S. state).", '"Was it?"', "He did!", "Yes"]
    assert found("no end\n\nanother part\nstill it") == ["no end", "another part\nstill it"]
    assert found("今日は。明日も。") == ["今日は。", "明日も。"]
    assert found("Ünder. Éin. 4 more. and no more") == ["Ünder.", "Éin.", "4 more. and no more"]
    assert found(" \n ") == []


def test_cast2021_closes_a_passage_at_two_thirds() -> None:
    # Sentences of ten tokens: nine words and a full stop. 17 of them reach 170 ≥ 167.5, 16 do not.
    text = " ".join(["One two three four five six seven eight nine."] * 40)
    sizes = [passage.count(".") for passage in CAST2021.cut(text)]
    assert sizes == [17, 17, 6]


def test_cast2022_fills_a_passage_and_leaves_long_sentences_alone() -> None:
    ten = "One two three four five six seven eight nine."
    long = "Long " + "word " * 298 + "end."
    cut = list(CAST2022.cut(" ".join([ten] * 26 + [long] + [ten] * 2)))
    assert [passage.count(".") for passage in cut] == [25, 1, 1, 2]
    assert cut[2] == long
    assert len(re.findall(r"\w+|[^\w\s]", cut[0])) == 250


def test_windows_keep_the_last_words() -> None:
    words = [f"w{n}" for n in range(160)]
    cut = list(Sliding(150, 75).cut(" ".join(words)))
    assert [passage.split() for passage in cut] == [words[:150], words[75:]]
    assert len(list(Sliding(150, 75).cut(" ".join(words[:150])))) == 1
    assert [len(passage.split()) for passage in Sliding(2, 2).cut("a b c")] == [2, 1]


@pytest.mark.parametrize("name", POLICIES)
def test_title_and_body_are_joined_first(name: str) -> None:
    policy = policy_named(name)
    assert passages("A title", "the body", policy) == ("A title the body",)
    assert passages("A title", "", policy) == ("A title",)
    assert passages("", "", policy) == ("",)
    assert policy_named(policy.name) == policy


@given(TEXTS, st.sampled_from(SMALL))
def test_no_word_is_lost_or_moved(text: str, policy: Sliding) -> None:
    cut = list(policy.cut(text))
    assert cut
    position = 0
    for passage in cut:
        assert passage == passage.strip()
        assert passage in text
    if isinstance(policy, Sliding):
        for number, passage in enumerate(cut):
            start = number * policy.stride
            assert passage.split() == text.split()[start : start + policy.words]
            position = start + policy.words
        assert position >= len(text.split())
    else:
        assert "".join("".join(cut).split()) == "".join(text.split())


@given(TEXTS)
def test_the_fitting_rule_holds(text: str) -> None:
    policy = Sentences(5, "fit", "fit")
    for passage in policy.cut(text):
        assert len(re.findall(r"\w+|[^\w\s]", passage)) <= 5 or len(found(passage)) == 1


def test_names_that_are_no_policies_are_refused() -> None:
    for name in ("", "cast", "sliding:", "sliding:0", "sliding:5:6", "sliding:5:0", "sliding:5:2:1", "sliding:٣"):
        with pytest.raises(InputError, match="split"):
            policy_named(name)
    assert policy_named("sliding") == Sliding(150, 75)
    assert policy_named("sliding:1") == Sliding(1, 1)


def test_a_long_text_is_cut_in_time_that_grows_with_it() -> None:
    # Without a bound on looking back this would take minutes.
    assert len(list(CAST2022.cut("Xx. " * 200_000))) == 1600
    assert len(list(CAST2021.cut("." * 500_000))) == 1

"""Folds of topics: balanced, the same on every machine, and faults as one line."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.measures.folds import folds

TOPICS = [str(number) for number in range(301, 321)]


def test_folds_are_balanced_and_do_not_depend_on_the_order():
    found = folds(TOPICS, 5)
    assert [len(fold) for fold in found] == [4] * 5
    assert sorted(topic for fold in found for topic in fold) == TOPICS
    assert folds(reversed(TOPICS), 5) == found == folds(TOPICS, 5, 0)
    assert folds(TOPICS, 5, seed=1) != found
    # The division is a promise: published folds can be made again.
    assert found[0] == ("305", "310", "314", "319")


@settings(max_examples=40)
@given(st.sets(st.text(min_size=1, max_size=4), min_size=2, max_size=40), st.integers(2, 7), st.integers(0, 9))
def test_every_topic_is_in_one_fold(topics, k, seed):
    if len(topics) < k:
        with pytest.raises(InputError, match="make no"):
            folds(topics, k, seed)
        return
    found = folds(topics, k, seed)
    assert Counter(t for fold in found for t in fold) == Counter(topics)
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_faulty_folds():
    with pytest.raises(InputError, match="the topic 7 is there twice"):
        folds(["7", "8", "7"], 2)
    with pytest.raises(InputError, match="needs 2 folds or more"):
        folds(TOPICS, 1)

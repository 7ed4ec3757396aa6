"""Batches, scores as they are stored, and rankers as values."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.rankers.base import RankerSpec, Runtime, rounded, spec_of
from truerank.rankers.batches import length_batches, padded, restore

LENGTHS = st.lists(st.integers(0, 40), max_size=60)


@given(LENGTHS, st.integers(1, 100), st.sampled_from([0.0, 0.1, 0.5]))
def test_batches_hold_every_row_once_within_their_bounds(lengths: list[int], tokens: int, waste: float) -> None:
    sizes = np.array(lengths, np.int64)
    batches = length_batches(sizes, tokens=tokens, waste=waste)
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(len(lengths)))
    for batch in batches:
        held = np.maximum(sizes[batch], 1)
        assert len(batch) == 1 or len(batch) * held.max() <= tokens
        assert held.min() >= held.max() * (1 - waste)
    longest = [int(sizes[batch].max()) for batch in batches]
    assert longest == sorted(longest, reverse=True)


@given(LENGTHS)
def test_values_come_back_in_the_order_of_the_rows(lengths: list[int]) -> None:
    sizes = np.array(lengths, np.int64)
    batches = length_batches(sizes, tokens=50)
    values = restore(batches, [batch.astype(np.float32) for batch in batches])
    assert values.tolist() == list(range(len(lengths)))


def test_batches_without_padding_are_full() -> None:
    # 10 rows of 5 tokens fit 4 to a batch, and a row that is too long stands alone.
    batches = length_batches(np.array([5] * 10 + [99]), tokens=20)
    assert [len(batch) for batch in batches] == [1, 4, 4, 2]


def test_padding_stands_on_the_right() -> None:
    ids, mask = padded([[7, 8, 9], [], [5]], padding=1)
    assert ids.tolist() == [[7, 8, 9], [1, 1, 1], [5, 1, 1]]
    assert mask.tolist() == [[1, 1, 1], [0, 0, 0], [1, 0, 0]]
    assert padded([[7]], padding=0, length=3)[0].tolist() == [[7, 0, 0]]


def test_scores_have_six_decimals_and_no_negative_zero() -> None:
    scores = rounded(np.array([0.1234567, -1e-9, -1e-6]))
    assert scores.dtype == np.float32
    assert scores.tolist() == [np.float32(0.123457), 0.0, np.float32(-1e-6)]
    assert not np.signbit(scores[1])


def test_a_spec_travels_and_reads_its_settings() -> None:
    spec = spec_of("monot5:x", Runtime("cpu"), {"b": "true", "a": "3", "d": "0.5", "c": "x"})
    assert spec.settings == (("a", 3), ("b", True), ("c", "x"), ("d", 0.5))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert len({spec, pickle.loads(pickle.dumps(spec))}) == 1


@pytest.mark.parametrize("name", ["bm25", "bm25:no/index/here", "monobert:", "no such model", ""])
def test_names_of_nothing_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(InputError) as refused:
        RankerSpec(name).open()
    assert len(str(refused.value).splitlines()) == 1

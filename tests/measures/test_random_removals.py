"""Random removals within strata: as many of each, every choice as often, and every other choice where there are few."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from truerank.measures.placebo import removal_choices, removal_draws

items = st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=30)


@given(items, st.integers(1, 40), st.integers(0, 9))
def test_as_many_of_each_stratum_go(given_items: list[tuple[bool, int]], draws: int, seed: int) -> None:
    removed = np.array([one for one, _ in given_items])
    strata = np.array([stratum for _, stratum in given_items])
    ways = math.prod(math.comb(int((strata == s).sum()), int(removed[strata == s].sum())) for s in set(strata.tolist()))
    few = ways <= draws + 1
    found = removal_choices(removed, strata, draws + 1)
    assert found == ways if few else found > draws + 1
    chosen = np.concatenate(list(removal_draws(removed, strata, draws, seed)))
    assert len(chosen) == (ways - 1 if few else draws)
    for stratum in set(strata.tolist()):
        own = strata == stratum
        assert (chosen[:, own].sum(axis=1) == removed[own].sum()).all()
    if few:
        assert len({tuple(row) for row in chosen}) == ways - 1 and not (chosen == removed).all(axis=1).any()


def test_every_choice_is_drawn_as_often() -> None:
    """Six choices of two of four, beside strata that go and stay as a whole, and one with many choices."""
    strata = np.array([0, 1, 0, 2, 0, 0, *[3] * 60])
    removed = np.isin(np.arange(len(strata)), [0, 1, 2, 6, 7, 8])
    (chosen,) = removal_draws(removed, strata, 6_000, 1)
    assert (chosen[:, 1] == 1).all() and (chosen[:, 3] == 0).all()
    counts = Counter(tuple(row) for row in chosen[:, [0, 2, 4, 5]].astype(int).tolist())
    # Binomial with 6,000 and 1/6: a standard deviation of 29.
    assert len(counts) == 6 and all(abs(count - 1_000) < 150 for count in counts.values())
    assert np.abs(chosen[:, 6:].sum(axis=0) - 300).max() < 100


def test_one_stratum_has_the_draws_of_its_seed() -> None:
    removed = np.arange(50) < 7
    alone, named = (next(removal_draws(removed, strata, 20, 3)) for strata in (None, np.full(50, 8)))
    assert (alone == named).all() and not (alone == next(removal_draws(removed, None, 20, 4))).all()

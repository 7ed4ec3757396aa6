"""Memorisation: a hand-computed example, a perfect memoriser, a model that ignores its training, and faults."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.measures import Significance
from truerank_lab.reporting.memorisation import (
    SCORE_SCHEMA,
    TOPIC_VALUES,
    insertion_ranks,
    memorisation,
    spread,
)

LEAKED = {"topic_id": ["1", "1", "1", "2", "2"], "doc_id": ["a", "x", "d", "b", "y"]}
FEW = Significance(resamples=500, seed=3)


def frame(rows: list[tuple[int, str, str, float, bool]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCORE_SCHEMA, orient="row")


def ranking(topic: str, seed: int = 0, outside: str = "", **scores: float) -> list[tuple[int, str, str, float, bool]]:
    return [(seed, topic, doc, score, doc not in outside.split()) for doc, score in scores.items()]


@pytest.fixture(scope="module")
def leaked() -> pl.DataFrame:
    return pl.DataFrame({**LEAKED, "relevant": [True, True, False, True, False]})


@pytest.fixture(scope="module")
def example() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Topic 1 reranks a, b, c, d; x is outside it. Topic 2 reranks a, b, c; y is outside it."""
    without = [
        *ranking("1", outside="x", a=1.0, b=4.0, c=3.0, d=2.0, x=0.5),
        *ranking("2", outside="y", a=3.0, b=2.0, c=1.0, y=2.0),
    ]
    with_leak = [
        *ranking("1", outside="x", a=5.0, b=4.0, c=3.0, d=0.0, x=4.0),
        *ranking("2", outside="y", a=3.0, b=3.0, c=1.0, y=1.0),
    ]
    other_seed = [(1, *row[1:]) for row in without]
    return frame([*with_leak, *other_seed]), frame([*without, *other_seed])


def test_a_hand_computed_example(example, leaked) -> None:
    with_leak, without = example
    ranks = insertion_ranks(without.filter(pl.col("seed") == 0)).rows_by_key(["topic_id", "doc_id"], named=True)
    # Inserted: x after all four (rank 5 of at most 5), y at the score of b and after it, before c.
    found = {key: rows[0]["rank"] for key, rows in ranks.items()}
    assert found["1", "x"] == 5 and found["1", "a"] == 4 and found["1", "d"] == 3
    assert found["2", "b"] == 2 and found["2", "y"] == 3 and found["2", "c"] == 3
    result = memorisation(with_leak, without, leaked)
    assert result.seeds == (0, 1) and result.unscored == 0
    one, two = result.topics.rows(named=True)
    # Topic 1, seed 0, with: a 1, x 3 (after b, which has its score), d 4 (x is outside and is not counted).
    # Without: a 4, x 5, d 3. Seed 1 is the same with and without: the means of both seeds stand half way.
    assert (one["rank_with"], one["rank_without"]) == ((2.0 + 4.5) / 2, 4.5)
    assert (one["score_with"], one["score_without"]) == ((4.5 + 0.75) / 2, 0.75)
    assert (one["relevant"], one["non_relevant"]) == (2, 1)
    assert (one["gain"], one["loss"], one["increase"]) == (1.25, 0.5, 1.75)
    # Topic 2, seed 0, with: b 2 (a has its score and comes first), y 4 - c has its score and comes first.
    assert (two["rank_with"], two["rank_without"]) == (2.0, 2.0)
    assert (two["gain"], two["loss"], two["increase"]) == (0.0, 0.5, 0.5)
    change = result.change("rank", FEW)
    assert change.with_leak.mean == pytest.approx((3.25 + 2.0) / 2)
    assert change.without.sd == pytest.approx(np.std([4.5, 2.0], ddof=1))
    assert change.difference.mean == pytest.approx(-0.625) and change.difference.n == 2
    assert change.difference.low <= -0.625 <= change.difference.high
    assert result.change("offset", FEW).difference.mean == pytest.approx((1.75 + 0.5) / 2)
    assert result.spread("gain", FEW).mean == pytest.approx(0.625)


def test_topics_without_both_kinds_have_no_offset(example, leaked) -> None:
    result = memorisation(*example, leaked.filter(pl.col("relevant") | (pl.col("topic_id") == "1")))
    assert result.values("rank_with")[0] == ("1", "2")
    assert result.values("increase")[0] == ("1",) and result.change("offset", FEW).difference.sd is None
    absent = pl.concat([leaked, pl.DataFrame({"topic_id": ["1"], "doc_id": ["nowhere"], "relevant": [True]})])
    assert memorisation(*example, absent).unscored == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.with_columns(pl.lit(float("nan")).alias("score")), "nan as its score"),
        (lambda f: pl.concat([f, f.head(1)]), "occurs twice"),
        (lambda f: f.with_columns(pl.lit(7).alias("seed")), "share no seed"),
    ],
    ids=["nan", "twice", "seeds"],
)
def test_faults_are_named(example, leaked, change, words) -> None:
    with pytest.raises(InputError, match=words):
        memorisation(change(example[0]), example[1], leaked)
    both = leaked.with_columns(~pl.col("relevant"))
    with pytest.raises(InputError, match="both as relevant and as non-relevant"):
        memorisation(*example, pl.concat([leaked, both]))


def test_few_topics_have_no_interval() -> None:
    assert spread(np.array([])) == (0, None, None, None, None)
    assert spread(np.array([2.0])) == (1, 2.0, None, None, None)


DOCUMENTS = [f"d{number:02d}" for number in range(12)]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Scores of a model without the leak, what leaked, and the depth; few score values, so that many are tied."""
    depth = draw(st.integers(1, 8))
    rows, leaked = [], []
    for topic in ("1", "2", "10"):
        documents = draw(st.permutations(DOCUMENTS))
        wanted = draw(st.lists(st.sampled_from(DOCUMENTS), min_size=2, max_size=4, unique=True))
        leaked += [(topic, doc, place % 2 == 0) for place, doc in enumerate(wanted)]
        candidates = set(documents[:depth])
        for seed in (0, 1):
            held = sorted(candidates | set(wanted))
            scores = draw(st.lists(st.integers(0, 3), min_size=len(held), max_size=len(held)))
            rows += [(seed, topic, doc, float(s), doc in candidates) for doc, s in zip(held, scores, strict=True)]
    schema = {"topic_id": pl.String, "doc_id": pl.String, "relevant": pl.Boolean}
    return frame(rows), pl.DataFrame(leaked, schema=schema, orient="row"), depth


@settings(max_examples=60, deadline=None)
@given(worlds(), st.integers(0, 1000))
def test_properties(world, seed) -> None:
    without, leaked, depth = world
    ranks = insertion_ranks(without, ("seed", "topic_id"))
    assert ranks["rank"].min() >= 1 and ranks["rank"].max() <= depth + 1
    assert ranks.filter("candidate")["rank"].max() <= depth
    naive = [
        1 + sum((-s, d) < (-row["score"], row["doc_id"]) for q, t, d, s, c in without.rows() if c and (q, t) == key)
        for row in ranks.iter_rows(named=True)
        for key in [(row["seed"], row["topic_id"])]
    ]
    assert ranks["rank"].to_list() == naive
    # A model that ignores its training has no differences.
    same = memorisation(without, without, leaked)
    for name in ("gain", "loss", "increase"):
        assert not np.any(same.values(name)[1])
    assert same.change("rank", Significance(resamples=10)).difference.mean == 0.0
    # The order of the rows does not matter, to the last bit.
    shuffled = memorisation(without, without.sample(fraction=1, shuffle=True, seed=seed), leaked.reverse())
    assert shuffled.topics.equals(same.topics)
    # A perfect memoriser: leaked relevant documents first, leaked non-relevant ones last.
    marked = without.join(leaked, on=["topic_id", "doc_id"], how="left")
    # The inserted ones go further: they then push no other leaked document, which gives the largest offset there is.
    end = pl.when("candidate").then(9.0).otherwise(10.0)
    score = pl.when(pl.col("relevant")).then(end).when(~pl.col("relevant")).then(-end).otherwise("score")
    perfect = marked.with_columns(score.fill_null(pl.col("score")).alias("score")).drop("relevant")
    found = memorisation(perfect, without, leaked)
    assert TOPIC_VALUES[0] == "rank_with"
    for row in found.topics.iter_rows(named=True):
        mine = perfect.filter((pl.col("topic_id") == row["topic_id"]) & (pl.col("seed") == 0))
        inside = mine.join(leaked, on=["topic_id", "doc_id"]).filter(pl.col("relevant"))
        # Several that were reranked stand behind each other.
        if len(inside.filter("candidate")) <= 1:
            assert row["rank_with"] == 1
        assert row["increase"] == pytest.approx(row["gain"] + row["loss"])
        assert row["offset_with"] >= row["offset_without"] and row["increase"] >= 0
        best = largest_offset(mine.join(leaked, on=["topic_id", "doc_id"]), int(mine["candidate"].sum()))
        assert row["offset_with"] == pytest.approx(best)


def largest_offset(leaked: pl.DataFrame, depth: int) -> float:
    """The largest offset that any scores can give: ranks 1, 2, … of the relevant, depth, depth − 1, … of the others."""
    total = {}
    for relevant, first, step, outside in ((True, 1, 1, 1), (False, depth, -1, depth + 1)):
        inside = leaked.filter(pl.col("relevant") == relevant)["candidate"].to_list()
        places = [first + step * place for place in range(sum(inside))] + [outside] * (len(inside) - sum(inside))
        total[relevant] = sum(places) / len(places)
    return total[False] - total[True]

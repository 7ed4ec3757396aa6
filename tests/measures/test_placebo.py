"""Placebo: the level of the test under no effect, power for planted ones, and agreement with other computations."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from truerank.errors import OptionError
from truerank.measures import evaluate, kendall
from truerank.measures.placebo import (
    JudgmentPlacebo,
    _taus,
    edited,
    edits_between,
    placebo_changes,
    placebo_removal,
    random_edits,
    removal_draws,
)
from truerank.measures.resampling import shuffle_p
from truerank.options import Scoring


def _scores(rng: np.random.Generator, systems: int, topics: int) -> dict[str, np.ndarray]:
    difficulty = rng.beta(1, 2, topics)
    return {f"s{i}": np.clip(difficulty + rng.normal(0, 0.15, topics), 0, 1) for i in range(systems)}


@pytest.mark.parametrize("matched", [False, True])
def test_the_level_of_the_test_is_kept(matched: bool) -> None:
    """Without an effect 5% of the removals are called more than chance: 400 simulations, bounds of a binomial."""
    rng = np.random.default_rng(3)
    values = _scores(rng, 4, 40)
    strata = np.argsort(np.argsort(np.mean(list(values.values()), axis=0))) // 14 if matched else None
    refused = 0
    for trial in range(400):
        removed = np.zeros(40, bool)
        removed[rng.choice(40, 6, replace=False)] = True
        found = placebo_removal(values, removed, strata=strata, draws=199, seed=trial)
        refused += found.word == "moved more than chance"
    # 400 trials at 0.05: more than 38 or fewer than 6 in one of a thousand repetitions.
    assert 6 <= refused <= 38


def test_planted_effects_are_found_and_named() -> None:
    rng = np.random.default_rng(5)
    values = _scores(rng, 3, 60)
    removed = np.zeros(60, bool)
    removed[np.argsort(values["s0"])[-10:]] = True
    found = placebo_removal(values, removed, draws=499)
    assert found.word == "moved more than chance" and found.p <= 0.05
    assert all(one.change < one.low for one in found.systems)
    assert "moved by" in found.reason and found.what == "10 of 60 topics removed"


def test_few_topics_cannot_tell_and_many_topics_can() -> None:
    rng = np.random.default_rng(7)
    few, many = _scores(rng, 2, 12), _scores(rng, 2, 20_000)
    some = np.arange(12) % 4 == 0
    assert placebo_removal(few, some, draws=199).word == "cannot tell"
    assert placebo_removal(few, some, draws=9).word == "cannot tell"
    tenth = np.arange(20_000) % 10 == 0
    assert placebo_removal(many, tenth, draws=199).word == "no more than chance"


def test_one_system_has_the_p_of_a_permutation_test() -> None:
    """Removing topics and comparing removed with kept topics are one test, up to the centre and the draws."""
    rng = np.random.default_rng(11)
    scores = rng.random(50)
    removed = np.zeros(50, bool)
    removed[np.argsort(scores)[20:30]] = True
    removed[np.argsort(scores)[-2:]] = True
    found = placebo_removal({"a": scores}, removed, draws=4000)
    p = shuffle_p(scores[:, None], removed, permutations=4000, seed=1).p[0]
    assert found.systems[0].p == pytest.approx(p, abs=0.03)
    assert found.systems[0].p_corrected == found.systems[0].p


def test_random_removals_take_as_many_topics_of_each_stratum() -> None:
    removed = np.array([True, False, False, True, True, False, False, False])
    strata = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    (chosen,) = removal_draws(removed, strata, 6, 0)
    assert (chosen[:, strata == 0].sum(axis=1) == 1).all() and (chosen[:, strata == 1].sum(axis=1) == 2).all()
    assert not chosen[:, strata == 2].any() and len({tuple(row) for row in chosen.tolist()}) > 2


def test_taus_are_those_of_kendall() -> None:
    rng = np.random.default_rng(2)
    first, others = rng.integers(0, 6, 9).astype(float), rng.integers(0, 6, (20, 9)).astype(float)
    assert _taus(first, others) == pytest.approx([kendall(first, one).tau for one in others])
    assert np.isnan(_taus(first, np.ones((1, 9)))[0])


def _judgments(rng: np.random.Generator, topics: int) -> pl.DataFrame:
    rows = [(f"t{t}", f"d{t}-{d}", int(rng.integers(0, 3))) for t in range(topics) for d in range(12)]
    return pl.DataFrame(rows, schema={"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}, orient="row")


def _runs(rng: np.random.Generator, pairs: pl.DataFrame, names: int) -> dict[str, pl.DataFrame]:
    topics = pairs["topic_id"].unique(maintain_order=True)
    runs = {}
    for name in range(names):
        rows = [
            (topic, f"d{topic[1:]}-{doc}", 20.0 - rank, rank + 1)
            for topic in topics
            for rank, doc in enumerate(rng.permutation(16)[:10])
        ]
        runs[f"r{name}"] = pl.DataFrame(rows, schema=["topic_id", "doc_id", "score", "rank"], orient="row")
    return runs


def test_edits_lead_from_one_version_to_the_other_and_random_ones_are_as_many() -> None:
    rng = np.random.default_rng(13)
    before = _judgments(rng, 5)
    after = before.filter(pl.col("doc_id") != "d0-1").with_columns(
        pl.when(pl.col("doc_id").is_in(["d1-1", "d2-2"]))
        .then(9)
        .otherwise("relevance")
        .cast(pl.Int32)
        .alias("relevance")
    )
    after = pl.concat([after, after[:1].with_columns(pl.lit("new").alias("doc_id"))])
    edits = edits_between(before, after)
    assert len(edits) == 4
    assert edited(before, edits).sort(pl.all()).equals(after.sort(pl.all()))
    pool = pl.DataFrame({"topic_id": ["t1", "t2"], "doc_id": ["x", "y"]})
    drawn = random_edits(before, edits, pool, rng)
    count = ["old", "new"]
    assert drawn.group_by(count).len().sort(count).equals(edits.group_by(count).len().sort(count))
    assert drawn.select("topic_id", "doc_id").is_unique().all()


@pytest.mark.parametrize(
    ("measure", "scoring"),
    [
        ("nDCG@5", Scoring()),
        ("AP", Scoring(ties="rank", rel=2)),
        ("R@10", Scoring(ties="ascending", depth=7)),
        ("Bpref", Scoring()),
        ("nDCG(gains={1:3,2:1})@5", Scoring()),
        ("SetF(beta=2.0)", Scoring()),
        ("P@3", Scoring(missing="skip")),
    ],
)
def test_random_judgments_are_scored_as_by_evaluate(measure: str, scoring: Scoring) -> None:
    rng = np.random.default_rng(17)
    # Topics do not stand together.
    pairs = _judgments(rng, 12).sample(fraction=1, shuffle=True, seed=1)
    runs, gone = _runs(rng, pairs, 2), pairs[:9]
    changed = gone[:5].with_columns((2 - pl.col("relevance")).cast(pl.Int32).alias("relevance"))
    new = runs["r0"].join(pairs, on=["topic_id", "doc_id"], how="anti")[:3].select("topic_id", "doc_id", relevance=1)
    after = pairs.join(gone, on=["topic_id", "doc_id"], how="anti")
    edits = edits_between(pairs, pl.concat([after, changed, new.cast(pairs.schema)]))
    assert edits["old"].null_count() == 3 and edits["new"].null_count() == 4
    found = JudgmentPlacebo(runs, pairs, edits, measure, scoring, {"r0": 4}).means(np.random.default_rng(0), 3)
    pool = pl.concat([run.select("topic_id", "doc_id") for run in runs.values()]).unique(maintain_order=True)
    pool, rng = pool.join(pairs, on=["topic_id", "doc_id"], how="anti", maintain_order="left"), np.random.default_rng(0)
    drawn = [edited(pairs, random_edits(pairs, edits, pool, rng)) for _ in range(3)]
    lost = [[rng.choice(len(run), 4 * (name == "r0"), replace=False) for _ in drawn] for name, run in runs.items()]
    for at, judged in enumerate(drawn):
        rest = {
            name: run.with_row_index("row").filter(~pl.col("row").is_in(rows[at].tolist())).drop("row")
            for (name, run), rows in zip(runs.items(), lost, strict=True)
        }
        assert found[at].tolist() == pytest.approx(evaluate(judged, rest, measure, scoring).mean[:, 0], abs=1e-15)


def test_random_changes_of_judgments_keep_the_level() -> None:
    """Edits that are drawn like the random ones are called more than chance in about 5% of 40 trials."""
    rng = np.random.default_rng(19)
    pairs = _judgments(rng, 12)
    runs = _runs(rng, pairs, 2)
    wanted = pairs.filter(pl.col("relevance") == 2)[:6].with_columns(pl.lit(0).cast(pl.Int32).alias("relevance"))
    edits = edits_between(pairs, pl.concat([pairs.join(wanted, on=["topic_id", "doc_id"], how="anti"), wanted]))
    before = dict(zip(runs, evaluate(pairs, runs, "nDCG@5").mean[:, 0].tolist(), strict=True))
    refused = 0
    for trial in range(40):
        own = random_edits(pairs, edits, pool=pairs.clear().select("topic_id", "doc_id"), rng=rng)
        scores = evaluate(edited(pairs, own), runs, "nDCG@5").mean[:, 0]
        placebo = JudgmentPlacebo(runs, pairs, edits, "nDCG@5", Scoring(), {})
        after = dict(zip(runs, scores.tolist(), strict=True))
        found = placebo_changes(before, after, placebo.means, draws=19, seed=trial)
        refused += found.word == "moved more than chance"
    assert refused <= 8


def test_what_cannot_be_compared_is_an_error() -> None:
    with pytest.raises(OptionError, match="no system"):
        placebo_removal({}, np.zeros(3, bool))

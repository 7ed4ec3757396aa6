"""The trigram filter: scores as scikit-learn computes them, cuts, samples and the recall they show."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.feature_extraction.text import TfidfVectorizer

from toy_encoder import Opener, TrigramEncoder
from truerank.vectors.prefilter import FilterPlan, TrigramScorer, _poisson_quantile, estimate_recall
from truerank.vectors.search import SearchPlan, search
from truerank.work.jobs import Job

TITLES = ["Lyme disease", "black bear attacks", "Café society"]
DESCRIPTIONS = ["What is done against ticks that carry the disease?"]


def log(count: int) -> list[str]:
    draw = random.Random(7)
    words = "lyme disease ticks bears attack black society cafés what is against winter house cheap flights".split()
    return [" ".join(draw.choices(words, k=draw.randint(1, 6))) + f" {number}" for number in range(count)]


def test_scores_equal_scikit_learn() -> None:
    texts, sample = log(200), log(50)
    scorer = TrigramScorer([*TITLES, *DESCRIPTIONS], ["title"] * 3 + ["description"], sample)
    # The same tokens by an independent route: letters only, lower case, trigrams within words.
    reference = TfidfVectorizer(
        analyzer="char_wb",
        ngram_range=(3, 3),
        sublinear_tf=True,
        preprocessor=lambda text: "".join(c if c.isalnum() or ord(c) > 127 else " " for c in text.lower()),
    ).fit([*sample, *TITLES, *DESCRIPTIONS])
    vectors = reference.transform(texts)
    # Norms count trigrams that scikit-learn's vocabulary lacks, so the texts are compared where it knows all of them.
    known = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), preprocessor=reference.preprocessor).fit(texts)
    complete = [
        place for place, text in enumerate(texts) if set(known.build_analyzer()(text)) <= set(reference.vocabulary_)
    ]
    assert len(complete) > 20
    wanted = np.stack(
        [
            (vectors @ reference.transform(TITLES).T).toarray().max(axis=1),
            (vectors @ reference.transform(DESCRIPTIONS).T).toarray().max(axis=1),
        ],
        axis=1,
    )
    np.testing.assert_allclose(scorer.scores(texts)[complete], wanted[complete], atol=1e-4)


def search_filtered(tmp_path: Path, texts: list[str], cut: float, floor: float = 0.8):
    fields = ("title",) * 3
    plan = SearchPlan(
        open_exact=Opener(),
        topic_vectors=lambda: TrigramEncoder().encode(TITLES),
        floor=floor,
        top_k=5,
        prefilter=FilterPlan(tuple(TITLES), fields, {"title": cut}, block_size=700),
        block_size=100,
    )

    def rows():
        for position, text in enumerate(texts):
            yield position, f"q{position}", text, text

    return search(rows, plan, Job(tmp_path))


def test_filter_keeps_the_pairs_and_encodes_less(tmp_path: Path) -> None:
    texts = log(10_000)
    exact = search_filtered(tmp_path / "all", texts, 0.0)
    cut = search_filtered(tmp_path / "cut", texts, 0.35)
    above = pl.col("similarity") > 0.8
    assert set(exact.pairs.filter(above)["query_id"]) == set(cut.pairs.filter(above)["query_id"])
    assert exact.filtered.passed_count == 10_000 > 2 * cut.filtered.passed_count
    assert int(cut.filtered.strata["size"].sum()) == 10_000 - cut.filtered.passed_count
    recall = estimate_recall([(cut.filtered, cut.pairs.filter(above))])
    assert recall.missed_in_sample == 0
    assert recall.low <= recall.recall <= recall.high <= 1
    assert recall.recall > 0.99 > recall.unmodelled_low


def test_filter_that_drops_leaks_is_found_out(tmp_path: Path) -> None:
    texts = log(5000)
    exact = search_filtered(tmp_path / "all", texts, 0.0, floor=0.6)
    blunt = search_filtered(tmp_path / "cut", texts, 0.6, floor=0.6)
    above = pl.col("similarity") > 0.6
    everything = exact.pairs.filter(above).height
    passed = blunt.pairs.filter(above).join(blunt.filtered.sample.select("position"), on="position", how="anti").height
    recall = estimate_recall([(blunt.filtered, blunt.pairs.filter(above))])
    assert recall.true_pairs == passed < everything
    assert recall.missed_in_sample > 0
    assert recall.low - 0.02 <= passed / everything <= recall.high + 0.02


def test_without_a_pair_nothing_tells_the_recall(tmp_path: Path) -> None:
    found = search_filtered(tmp_path, log(3000), 0.6, floor=0.999)
    none = found.pairs.clear()
    recall = estimate_recall([(found.filtered.with_sample(none), none)])
    assert (recall.recall, recall.low, recall.high) == (None, 0, 1)
    missed = found.filtered.sample.select(pl.col("position")).head(1).join(found.pairs, on="position", how="left")
    seen = estimate_recall([(found.filtered.with_sample(missed), none)])
    assert (seen.recall, seen.low, seen.high) == (0, 0, 0)


def test_sample_is_dense_below_the_cut_and_the_same_for_any_block_size(tmp_path: Path) -> None:
    filtered = search_filtered(tmp_path, log(5000), 0.4).filtered
    share = filtered.strata["sampled"] / filtered.strata["size"]
    assert share[0] >= share[3]
    assert (
        filtered.strata["sampled"].to_list()
        == filtered.sample.group_by("stratum").len().sort("stratum")["len"].to_list()
    )


@pytest.mark.parametrize("mean", [0.0, 1e-9, 0.02, 0.7, 3.0, 41.5, 12345.6])
@pytest.mark.parametrize("share", [0.0125, 0.5, 0.9875])
def test_quantiles_are_those_of_scipy(mean: float, share: float) -> None:
    assert _poisson_quantile(share, mean) == stats.poisson.ppf(share, mean)

"""PACRR against a loop over n-grams, filters and words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from small_rankers import pairs, vocabulary
from truerank.errors import InputError
from truerank_lab.rankers.pacrr import Pacrr


def by_hand(ranker, pair):
    settings = ranker.settings
    masked = settings.padding == "masked"
    vectors = ranker.vocabulary.vectors.astype(np.float64)
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    query, document = (ranker.vocabulary.ids([text])[0] for text in pair)
    query, document = query[: settings.max_query], document[: settings.max_document]
    places = len(document) if masked else settings.max_document
    square = np.zeros((settings.max_query + 3, places + 3))
    for row, word in enumerate(query):
        for column, other in enumerate(document):
            square[row, column] = units[word] @ units[other]
    state = {name: value.double().cpu().numpy() for name, value in ranker.module.state_dict().items()}
    rows = len(query) if masked else settings.max_query
    idf = [0.0 if settings.idf == "zero" else float(ranker.vocabulary.idf[word]) for word in query]
    idf += [0.0] * (rows - len(query))
    features = np.zeros((settings.max_query, settings.longest * settings.strongest + 1))
    for row in range(rows):
        found = []
        for size in range(1, settings.longest + 1):
            weight, bias = (state[f"convolutions.{size - 1}.{part}"] for part in ("weight", "bias"))
            patches = [square[row : row + size, column : column + size] for column in range(places)]
            signals = [
                max(max(0.0, float((one[0] * patch).sum() + shift)) for one, shift in zip(weight, bias, strict=True))
                for patch in patches
            ]
            found += sorted([*signals, *[0.0] * settings.strongest], reverse=True)[: settings.strongest]
        features[row] = [*found, math.exp(idf[row]) / sum(map(math.exp, idf))]
    layer = features.reshape(-1)
    for number in (0, 2, 4):
        layer = state[f"combine.{number}.weight"] @ layer + state[f"combine.{number}.bias"]
        layer = np.maximum(layer, 0) if number < 4 else layer
    return float(layer[0])


def test_parameters():
    ranker = Pacrr.create(vocabulary(300), **Pacrr.capreolus)
    assert ranker.parameters == 2561
    assert ranker.settings.idf == "zero"


@pytest.mark.parametrize(
    "settings",
    [
        {"max_query": 6},
        {"max_query": 3, "max_document": 20, "padding": "zero"},
        {"max_query": 3, "max_document": 20, "padding": "zero", "idf": "zero"},
        {"max_query": 5, "longest": 2, "strongest": 3, "filters": 4, "hidden": 8},
    ],
    ids=["masked", "filled", "without idf", "other sizes"],
)
def test_scores_are_those_of_the_formula(settings):
    ranker = Pacrr.create(vocabulary(), seed=3, **settings)
    given = pairs(6)
    np.testing.assert_allclose(ranker.score(given), [by_hand(ranker, pair) for pair in given], atol=2e-6)


def test_idf_counts_only_where_it_is_filled():
    given = pairs(6)
    filled, zero = (Pacrr.create(vocabulary(), seed=3, idf=idf).score(given) for idf in ("filled", "zero"))
    assert (filled != zero).sum() > 3


def test_faults():
    with pytest.raises(InputError, match="no idf 'half'"):
        Pacrr.create(vocabulary(), idf="half")

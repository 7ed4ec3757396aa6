"""DUET against a loop over filters and places."""

from __future__ import annotations

import numpy as np
import pytest

from small_rankers import pairs, vocabulary
from truerank.errors import InputError
from truerank.rankers.base import Pair
from truerank_lab.rankers.duet import Duet

SETTINGS = {"max_query": 5, "max_document": 24, "pool": 6, "filters": 4, "hidden": 7}


def convolved(texts, weight, bias):
    """tanh of a convolution over words; texts (words, e), weight (filters, e, window)."""
    window = weight.shape[2]
    return np.tanh(
        [
            [
                float((weight[number] * texts[at : at + window].T).sum() + bias[number])
                for at in range(len(texts) - window + 1)
            ]
            for number in range(len(weight))
        ]
    )


def by_hand(ranker, pair):
    settings, vocabulary = ranker.settings, ranker.vocabulary
    state = {name: value.double().cpu().numpy() for name, value in ranker.module.state_dict().items()}
    query, document = np.zeros(settings.max_query, int), np.zeros(settings.max_document, int)
    for row, text in ((query, pair.query), (document, pair.document)):
        ids = vocabulary.ids([text])[0][: len(row)]
        row[: len(ids)] = ids
    exact = np.array([[vocabulary.idf[one] if one and one == other else 0.0 for other in document] for one in query])
    weight, bias = state["local.convolution.weight"], state["local.convolution.bias"]
    local = np.tanh(
        [[weight[number, 0, 0] @ row + bias[number] for row in exact] for number in range(settings.filters)]
    )
    local = np.tanh(state["local.combine.3.weight"] @ local.reshape(-1) + state["local.combine.3.bias"])
    local = state["local.combine.6.weight"] @ local + state["local.combine.6.bias"]
    part = {name.removeprefix("distributed."): value for name, value in state.items()}
    vectors = vocabulary.vectors.astype(np.float64)
    of_query = convolved(vectors[query], part["query_words.weight"], part["query_words.bias"]).max(axis=1)
    of_query = np.tanh(part["query.3.weight"] @ of_query + part["query.3.bias"])
    found = convolved(vectors[document], part["document_words.weight"], part["document_words.bias"])
    pooled = np.array(
        [[row[at : at + settings.pool].max() for at in range(len(row) - settings.pool + 1)] for row in found]
    )
    of_document = np.tanh(part["document.2.weight"][:, :, 0] @ pooled + part["document.2.bias"][:, None])
    assert of_document.shape[1] == settings.places
    product = np.tanh((of_query[:, None] * of_document) @ part["places.0.weight"][0] + part["places.0.bias"])
    return float((local + part["combine.1.weight"] @ product + part["combine.1.bias"])[0])


def test_parameters():
    ranker = Duet.create(vocabulary(300), **Duet.capreolus)
    assert ranker.parameters == 28222
    assert ranker.settings.places == 699


def test_scores_are_those_of_the_formula():
    ranker = Duet.create(vocabulary(), seed=3, **SETTINGS)
    given = pairs(6)
    np.testing.assert_allclose(ranker.score(given), [by_hand(ranker, pair) for pair in given], atol=2e-6)


def test_exact_matches_count_also_without_vectors():
    ranker = Duet.create(vocabulary(), seed=3, **SETTINGS)
    same, other = ranker.score([Pair("unseen", "unseen w01"), Pair("unseen", "never w01")])
    assert same != other


def test_dropout_is_for_training_only():
    ranker = Duet.create(vocabulary(), seed=3, **SETTINGS)
    ranker.module.train()
    np.testing.assert_array_equal(ranker.score(pairs()), ranker.score(pairs()))
    assert ranker.module.training


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_document": 50}, "give 102 or more"),
        ({"padding": "masked"}, "leave padding=zero"),
        ({"max_query": 2}, "below the window of 3"),
        ({"dropout": 1.0}, "dropout is 1.0"),
    ],
)
def test_faults(settings, message):
    with pytest.raises(InputError, match=message):
        Duet.create(vocabulary(), **settings)

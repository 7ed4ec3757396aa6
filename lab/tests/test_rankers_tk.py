"""TK against a loop over words, heads and kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from small_rankers import instances, pairs, vocabulary
from truerank.errors import InputError
from truerank.rankers.base import open_ranker
from truerank_lab.rankers.fitting import fit
from truerank_lab.rankers.recipes import RECIPES
from truerank_lab.rankers.tk import Tk

SETTINGS = {"heads": 3, "projection": 5, "feed_forward": 7}


def normalised(rows, weight, bias):
    mean, variance = rows.mean(axis=1, keepdims=True), rows.var(axis=1, keepdims=True)
    return (rows - mean) / np.sqrt(variance + 1e-5) * weight + bias


def in_context(state, settings, words):
    """The words of one text, shape (w, e), without padding."""
    length, dimension = words.shape
    half = dimension // 2
    rates = [10_000 ** (-step / (half - 1)) for step in range(half)]
    places = [[f(place * rate) for f in (math.sin, math.cos) for rate in rates] for place in range(length)]
    context = words + np.array(places)
    size, heads = settings.projection, settings.heads
    for number in range(settings.layers):
        part = {name.removeprefix(f"layers.{number}."): value for name, value in state.items()}
        asked = context @ part["attended.weight"].T + part["attended.bias"]
        found = []
        for head in range(heads):
            query, key, value = (
                asked[:, (kind * heads + head) * size : (kind * heads + head + 1) * size] for kind in range(3)
            )
            weights = np.exp(query @ key.T / math.sqrt(size))
            found.append(weights / weights.sum(axis=1, keepdims=True) @ value)
        joined = np.concatenate(found, axis=1) @ part["joined.weight"].T + part["joined.bias"]
        context = normalised(context + joined, part["norms.0.weight"], part["norms.0.bias"])
        hidden = np.maximum(context @ part["forwarded.0.weight"].T + part["forwarded.0.bias"], 0)
        forwarded = hidden @ part["forwarded.2.weight"].T + part["forwarded.2.bias"]
        context = normalised(context + forwarded, part["norms.1.weight"], part["norms.1.bias"])
    mixed = state["mixing"] * words + (1 - state["mixing"]) * context
    return mixed / np.linalg.norm(mixed, axis=1, keepdims=True)


def by_hand(ranker, pair):
    state = {name: value.double().cpu().numpy() for name, value in ranker.module.state_dict().items()}
    vectors = ranker.vocabulary.vectors.astype(np.float64)
    query, document = (
        in_context(state, ranker.settings, vectors[ranker.vocabulary.ids([text])[0][:longest]])
        for text, longest in zip(pair, (ranker.settings.max_query, ranker.settings.max_document), strict=True)
    )
    logarithms = lengths = 0.0
    for number, (centre, width) in enumerate(zip(state["kernels.centres"], state["kernels.widths"], strict=True)):
        for word in query:
            count = sum(math.exp(-((word @ other - centre) ** 2) / (2 * width**2)) for other in document)
            logarithms += state["of_logarithms.weight"][0, number] * math.log2(max(count, 1e-10))
            lengths += state["of_lengths.weight"][0, number] * count / len(document)
    return state["combine.weight"][0, 0] * logarithms + state["combine.weight"][0, 1] * lengths


def test_scores_are_those_of_the_formula():
    ranker = Tk.create(vocabulary(), seed=3, **SETTINGS)
    given = pairs(12)[3:]
    expected = [by_hand(ranker, pair) for pair in given]
    np.testing.assert_allclose(ranker.score(given), expected, atol=3e-6)
    assert np.std(expected) > 1e-3


def test_texts_without_words_and_the_order_of_pairs():
    ranker = Tk.create(vocabulary(15), seed=3, **SETTINGS)
    scores = ranker.score(pairs(20))
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(ranker.score(pairs(20)[::-1])[::-1], scores)
    np.testing.assert_array_equal([ranker.score([pair])[0] for pair in pairs(20)], scores)


def test_trained_and_saved(tmp_path):
    recipe = RECIPES["truerank"].changed({"batch": 8, "lr": 0.005})
    rankers = [Tk.create(vocabulary(), seed=3, **SETTINGS) for _ in range(2)]
    fitted = [fit(ranker, instances(160), recipe, seed=1, folder=tmp_path) for ranker in rankers]
    assert rankers[0].fingerprint == rankers[1].fingerprint
    assert np.mean(fitted[0].losses[-5:]) < 0.7 * np.mean(fitted[0].losses[:5])
    rankers[0].save(tmp_path / "saved")
    opened = open_ranker(str(tmp_path / "saved"), device="cpu")
    np.testing.assert_array_equal(opened.score(pairs()), rankers[0].score(pairs()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"padding": "zero"}, "leave padding=masked"), ({"mixing": 1.5}, "mixing is 1.5"), ({"heads": 0}, "heads is 0")],
)
def test_faults(settings, message):
    with pytest.raises(InputError, match=message):
        Tk.create(vocabulary(), **settings)

"""HINT against a loop over cells and passages."""

from __future__ import annotations

import numpy as np
import pytest

from small_rankers import instances, pairs, vocabulary
from truerank.errors import InputError
from truerank.rankers.base import open_ranker
from truerank_lab.rankers.fitting import fit
from truerank_lab.rankers.hint import Hint
from truerank_lab.rankers.recipes import RECIPES

SETTINGS = {"passage": 10, "max_query": 6, "max_document": 80, "strongest": 4, "memory": 3}


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def last_cell(part, grid, size):
    """A spatial GRU cell by cell; grid (q, p, 3)."""
    height, width, _ = grid.shape
    states = np.zeros((height + 1, width + 1, size))
    for row in range(height):
        for column in range(width):
            around = np.concatenate([states[row + 1, column], states[row, column + 1], states[row, column]])
            everything = np.concatenate([around, grid[row, column]])
            kept = sigmoid(part["reset.weight"] @ everything + part["reset.bias"]) * around
            new = (
                part["new_given.weight"] @ grid[row, column] + part["new_given.bias"] + part["new_before.weight"] @ kept
            )
            shares = np.exp(part["update.weight"] @ everything + part["update.bias"]).reshape(4, size)
            choices = np.stack([*around.reshape(3, size), np.tanh(new)])
            states[row + 1, column + 1] = (shares / shares.sum(axis=0) * choices).sum(axis=0)
    return states[-1, -1]


def lstm(state, evidence, size, reverse):
    end = "_reverse" if reverse else ""
    weights = [state[f"memory.{name}_l0{end}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    hidden, cell, found = np.zeros(size), np.zeros(size), []
    for row in evidence[::-1] if reverse else evidence:
        gates = weights[0] @ row + weights[2] + weights[1] @ hidden + weights[3]
        into, forget, new, out = gates.reshape(4, size)
        cell = sigmoid(forget) * cell + sigmoid(into) * np.tanh(new)
        hidden = sigmoid(out) * np.tanh(cell)
        found.append(hidden)
    return np.array(found[::-1] if reverse else found)


def by_hand(ranker, pair):
    settings, vectors = ranker.settings, ranker.vocabulary.vectors.astype(np.float64)
    state = {name: value.double().cpu().numpy() for name, value in ranker.module.state_dict().items()}
    query, document = (ranker.vocabulary.ids([text])[0] for text in pair)
    query, document = query[: settings.max_query], document[: settings.max_document]
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    evidence = []
    for start in range(0, len(document), settings.passage):
        passage = document[start : start + settings.passage]
        found = []
        for place, match in enumerate((lambda one, other: units[one] @ units[other], lambda one, other: one == other)):
            of_words = [
                [state[f"of_{kind}.weight"][0] @ vectors[word] + state[f"of_{kind}.bias"][0] for word in words]
                for kind, words in (("query", query), ("document", passage))
            ]
            grid = np.array(
                [
                    [[match(one, other), of_words[0][row], of_words[1][column]] for column, other in enumerate(passage)]
                    for row, one in enumerate(query)
                ],
                dtype=np.float64,
            )
            for turned in (False, True):
                prefix = f"grids.{2 * place + turned}."
                part = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
                found.append(last_cell(part, grid[::-1, ::-1] if turned else grid, settings.grid))
        evidence.append(np.concatenate(found))
    evidence = np.array(evidence)
    single = np.tanh(evidence @ state["single.weight"].T + state["single.bias"])
    memory = [lstm(state, evidence, settings.memory, reverse) for reverse in (False, True)]
    signals = np.concatenate([single, *memory], axis=1)
    strongest = np.zeros((settings.strongest, signals.shape[1]))
    kept = -np.sort(-signals, axis=0)[: settings.strongest]
    strongest[: len(kept)] = kept
    return float(state["combine.weight"][0] @ strongest.reshape(-1) + state["combine.bias"][0])


def test_scores_are_those_of_the_formula():
    ranker = Hint.create(vocabulary(), seed=3, **SETTINGS)
    given = pairs(12)[3:]
    expected = [by_hand(ranker, pair) for pair in given]
    np.testing.assert_allclose(ranker.score(given), expected, atol=3e-6)
    assert np.std(expected) > 1e-3


def test_texts_without_words_and_the_order_of_pairs():
    ranker = Hint.create(vocabulary(), seed=3, **SETTINGS)
    scores = ranker.score(pairs(15))
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(ranker.score(pairs(15)[::-1])[::-1], scores)
    np.testing.assert_array_equal([ranker.score([pair])[0] for pair in pairs(15)], scores)


@pytest.mark.slow
def test_trained_and_saved(tmp_path):
    recipe = RECIPES["truerank"].changed({"batch": 8, "lr": 0.02})
    rankers = [Hint.create(vocabulary(), seed=3, **SETTINGS) for _ in range(2)]
    fitted = [fit(ranker, instances(160), recipe, seed=1, folder=tmp_path) for ranker in rankers]
    assert rankers[0].fingerprint == rankers[1].fingerprint
    assert np.mean(fitted[0].losses[-5:]) < 0.8 * np.mean(fitted[0].losses[:5])
    rankers[0].save(tmp_path / "saved")
    opened = open_ranker(str(tmp_path / "saved"), device="cpu")
    np.testing.assert_array_equal(opened.score(pairs()), rankers[0].score(pairs()))


@pytest.mark.parametrize(
    ("settings", "message"), [({"padding": "zero"}, "leave padding=masked"), ({"passage": 0}, "passage is 0")]
)
def test_faults(settings, message):
    with pytest.raises(InputError, match=message):
        Hint.create(vocabulary(), **settings)

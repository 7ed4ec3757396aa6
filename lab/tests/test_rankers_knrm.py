"""KNRM against a loop over words and kernels; and what all small rankers promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from small_rankers import pairs, vocabulary
from truerank.errors import InputError
from truerank.rankers.base import Pair, Ranker, Runtime, open_ranker
from truerank_lab.rankers.duet import Duet
from truerank_lab.rankers.knrm import Knrm
from truerank_lab.rankers.pacrr import Pacrr

SMALL = ((Knrm, {}), (Pacrr, {}), (Duet, {"max_query": 5, "max_document": 30, "pool": 10}))


def cosine(one, other):
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def by_hand(ranker, pair, *, query_length=None, document_length=None):
    """KNRM word by word; where lengths are given, padding has the similarity 0 and is counted."""
    vectors = ranker.vocabulary.vectors.astype(np.float64)
    query, document = (ranker.vocabulary.ids([text])[0] for text in pair)
    query, document = query[: ranker.settings.max_query], document[: ranker.settings.max_document]
    state = {name: value.double().cpu().numpy() for name, value in ranker.module.state_dict().items()}
    score = float(state["combine.bias"][0])
    for number, (centre, width) in enumerate(zip(state["kernels.centres"], state["kernels.widths"], strict=True)):
        total = 0.0
        for word in query:
            similarities = [cosine(vectors[word], vectors[other]) for other in document]
            if document_length is not None:
                similarities += [0.0] * (document_length - len(document))
            count = sum(math.exp(-((one - centre) ** 2) / (2 * width**2)) for one in similarities)
            total += math.log(count + 1e-6)
        score += state["combine.weight"][0, number] * total
    return score


def test_parameters():
    assert Knrm.create(vocabulary(300), **Knrm.capreolus).parameters == 34
    ranker = Knrm.create(vocabulary())
    np.testing.assert_allclose(
        ranker.module.kernels.centres.detach().cpu(), [-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
    )
    np.testing.assert_allclose(ranker.module.kernels.widths.detach().cpu(), [0.1] * 10 + [0.001])


def test_scores_are_those_of_the_formula():
    ranker = Knrm.create(vocabulary(), seed=2)
    # float32 unit vectors: the narrow kernel at 1 sees their rounding.
    np.testing.assert_allclose(ranker.score(pairs()), [by_hand(ranker, pair) for pair in pairs()], rtol=1e-4, atol=1e-4)


def test_padding_of_the_capreolus_recipe_is_counted():
    ranker = Knrm.create(vocabulary(), seed=2, max_query=4, max_document=60, padding="zero")
    expected = [by_hand(ranker, pair, document_length=60) for pair in pairs()]
    np.testing.assert_allclose(ranker.score(pairs()), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "settings"), SMALL)
def test_scores_do_not_depend_on_order_or_company(kind, settings):
    ranker = kind.create(vocabulary(), seed=4, **settings)
    given = pairs(30)
    scores = ranker.score(given)
    order = np.random.default_rng(0).permutation(len(given))
    np.testing.assert_array_equal(ranker.score([given[number] for number in order]), scores[order])
    np.testing.assert_array_equal([ranker.score([pair])[0] for pair in given], scores)
    assert scores.dtype == np.float32 and np.isfinite(scores).all()
    assert len(np.unique(scores)) > 25
    assert ranker.score([]).shape == (0,)


@pytest.mark.parametrize(("kind", "settings"), SMALL)
def test_training_sees_the_same_scores(kind, settings):
    """What is trained in single precision is what is scored in double."""
    ranker = kind.create(vocabulary(), seed=4, **settings)
    ranker.module.eval()
    with torch.inference_mode():
        trained = ranker.logits(ranker.rows(pairs())).cpu().numpy()
    np.testing.assert_allclose(trained, ranker.score(pairs()), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("kind", "settings"), SMALL)
def test_saved_and_opened(kind, settings, tmp_path):
    ranker = kind.create(vocabulary(), seed=4, **settings)
    assert isinstance(ranker, Ranker)
    ranker.save(tmp_path)
    opened = open_ranker(str(tmp_path), device="cpu")
    np.testing.assert_array_equal(opened.score(pairs()), ranker.score(pairs()))
    assert opened.fingerprint == ranker.fingerprint != kind.create(vocabulary(), seed=5, **settings).fingerprint


@pytest.mark.parametrize(("kind", "settings"), SMALL)
def test_a_long_document_is_cut(kind, settings):
    ranker = kind.create(vocabulary(), **{**settings, "max_document": 30})
    text = " ".join(f"w{number % 40:02d}" for number in range(30))
    one, other = ranker.score([Pair("w01 w02", text), Pair("w01 w02", f"{text} {'w01 ' * 10_000}")])
    assert one == other


def test_faults(tmp_path):
    with pytest.raises(InputError, match="no setting 'depth'"):
        Knrm.create(vocabulary(), depth=3)
    with pytest.raises(InputError, match="no padding 'some'"):
        Knrm.create(vocabulary(), padding="some")
    with pytest.raises(InputError, match="full precision"):
        Knrm.create(vocabulary(), Runtime(precision="bf16"))
    with pytest.raises(InputError, match="no trained knrm here"):
        Knrm.open(str(tmp_path))
    Knrm.create(vocabulary()).save(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(InputError, match="weights that do not fit"):
        Knrm.open(str(tmp_path))

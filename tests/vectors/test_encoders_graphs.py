"""Graphs built from safetensors against transformers and sentence-transformers, on tiny random models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from truerank.errors import InputError
from truerank.vectors.encoders import open_encoder
from truerank.vectors.encoders.bert_graph import _relative_buckets
from truerank.vectors.encoders.graph_encoder import build_graph, encoder_graph
from truerank.vectors.encoders.model_folder import read_model_folder
from truerank.vectors.encoders.weights import open_weights

torch = pytest.importorskip("torch", reason="torch is not installed: graphs are not compared with transformers")
transformers = pytest.importorskip("transformers", reason="transformers is not installed: no peer to compare with")

SIZES = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 50}
FAMILIES = {
    "bert": ("BertConfig", SIZES),
    "bert-tanh-gelu": ("BertConfig", {**SIZES, "hidden_act": "gelu_new"}),
    "bert-silu": ("BertConfig", {**SIZES, "hidden_act": "silu"}),
    "roberta": ("RobertaConfig", {**SIZES, "pad_token_id": 1}),
    "xlm-roberta": ("XLMRobertaConfig", {**SIZES, "pad_token_id": 1}),
    "camembert": ("CamembertConfig", {**SIZES, "pad_token_id": 1}),
    "electra": ("ElectraConfig", {**SIZES, "embedding_size": 16}),
    "mpnet": ("MPNetConfig", {**SIZES, "pad_token_id": 1, "max_position_embeddings": 200}),
    "distilbert": (
        "DistilBertConfig",
        {"vocab_size": 40, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 50, "activation": "gelu"},
    ),
}
WORDS = "the quick brown fox jumps over a lazy dog who reads query logs of search engines in train test data".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path / "cache"))


def random_model(config_name: str, options: dict, seed: int = 0):
    torch.manual_seed(seed)
    config = getattr(transformers, config_name)(**options)
    model = transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms too: they begin as zeros and ones
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def run(model, ids: np.ndarray) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"input_ids": ids})[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_mean_of_token_vectors_is_that_of_transformers(family: str, tmp_path: Path) -> None:
    model = random_model(*FAMILIES[family])
    model.save_pretrained(tmp_path)
    graph, dimension = build_graph(read_model_folder(tmp_path, "tiny"))
    assert dimension == 24
    for length in (1, 7, 150):
        ids = np.random.default_rng(length).integers(0, 40, (3, length))  # padding ids in the middle too
        with torch.no_grad():
            mask = torch.ones((3, length), dtype=torch.int64)
            wanted = model(torch.tensor(ids), attention_mask=mask).last_hidden_state.mean(1).numpy()
        assert np.abs(run(graph, ids) - wanted).max() < 5e-6


def test_relative_buckets_of_mpnet_are_those_of_transformers() -> None:
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    distances = np.arange(-600, 601)
    wanted = MPNetEncoder.relative_position_bucket(torch.tensor(distances)).numpy()
    assert _relative_buckets(distances).tolist() == wanted.tolist()


def tokenizer_of(folder: Path) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(SPECIAL + WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL, strict=True))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=12, **{f"{key}_token": value for key, value in names.items()}
    ).save_pretrained(folder)


def sentence_model(folder: Path, *modules, config: str = "bert", **settings):
    """Saves a sentence-transformers model of a tiny transformer and the given modules, and opens it again."""
    st = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed: no peer")
    base = folder.with_name(folder.name + "-base")
    random_model(*FAMILIES[config]).save_pretrained(base)
    tokenizer_of(base)
    model = st.SentenceTransformer(modules=[st.models.Transformer(str(base)), *modules], device="cpu", **settings)
    model.save(str(folder))
    return st.SentenceTransformer(str(folder), device="cpu")


TEXTS = [
    "the quick brown fox",
    "a lazy dog",
    "",
    "search",
    "who reads query logs of search engines in train test data a a",
]


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    "mode", ["mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", ("cls", "mean", "max")]
)
def test_pooling_is_that_of_sentence_transformers(mode: str | tuple[str, ...], tmp_path: Path) -> None:
    from sentence_transformers import models

    peer = sentence_model(tmp_path / "m", models.Pooling(24, pooling_mode=mode))
    encoder = open_encoder(str(tmp_path / "m"), backend="onnx")
    assert encoder.dimension == (72 if isinstance(mode, tuple) else 24)
    assert np.abs(encoder.encode(TEXTS) - unit(peer.encode(TEXTS))).max() < 2e-6


def test_dense_layer_norm_and_normalise_follow_pooling_in_their_order(tmp_path: Path) -> None:
    from sentence_transformers import models

    torch.manual_seed(3)
    dense = [
        models.Dense(24, 10),
        models.Dense(10, 10, activation_function=torch.nn.Identity(), bias=False, use_residual=True),
        models.Dense(10, 7, activation_function=torch.nn.ReLU(), use_residual=True),
    ]
    norm = models.LayerNorm(24)
    with torch.no_grad():
        norm.norm.weight.add_(torch.randn(24))
    peer = sentence_model(tmp_path / "m", models.Pooling(24), norm, models.Normalize(), *dense)
    encoder = open_encoder(str(tmp_path / "m"), backend="onnx")
    assert encoder.dimension == 7
    assert np.abs(encoder.encode(TEXTS) - unit(peer.encode(TEXTS))).max() < 2e-6


@pytest.mark.parametrize("include", [True, False])
def test_default_prompt_is_honoured_and_pooled_only_if_the_model_says_so(include: bool, tmp_path: Path) -> None:
    from sentence_transformers import models

    pooling = models.Pooling(24, include_prompt=include)
    prompts = {"query": "search query ", "document": "data "}
    peer = sentence_model(tmp_path / "m", pooling, prompts=prompts, default_prompt_name="query")
    got = open_encoder(str(tmp_path / "m"), backend="onnx").encode(TEXTS)
    assert np.abs(got - unit(peer.encode(TEXTS))).max() < 2e-6
    assert np.abs(got - unit(peer.encode(TEXTS, prompt=""))).max() > 0.01


def test_lower_casing_of_the_sentence_config_is_honoured(tmp_path: Path) -> None:
    from sentence_transformers import models

    sentence_model(tmp_path / "m", models.Pooling(24))
    encoder = open_encoder(str(tmp_path / "m"), backend="onnx")
    assert np.abs(encoder.encode(["THE Fox"]) - encoder.encode(["the fox"])).max() > 0.01
    file = tmp_path / "m" / "sentence_bert_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "do_lower_case": True}))
    lowering = open_encoder(str(tmp_path / "m"), backend="onnx")
    assert lowering.encode(["THE Fox"]).tobytes() == encoder.encode(["the fox"]).tobytes()
    assert lowering.fingerprint != encoder.fingerprint


def test_pieces_are_the_tokens_without_special_ones(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer, models

    sentence_model(tmp_path / "m", models.Pooling(24))
    tokenizer = SentenceTransformer(str(tmp_path / "m"), device="cpu").tokenizer
    texts = ["", "the fox", "the quick brown fox"]
    wanted = [len(tokenizer.tokenize(text)) for text in texts]
    assert wanted[0] == 0 < wanted[1] < wanted[2]
    for backend in ("onnx", "torch"):
        assert open_encoder(str(tmp_path / "m"), backend=backend).pieces(texts) == [(count, 0) for count in wanted]


@pytest.mark.parametrize("family", ["roberta", "mpnet"])
def test_foreign_graph_with_mask_gives_the_same_vectors(family: str, tmp_path: Path) -> None:
    """A model that brings an ONNX file with mask and token types, and no weights."""
    import onnx
    from onnx import TensorProto, helper
    from sentence_transformers import models

    sentence_model(tmp_path / "m", models.Pooling(24, pooling_mode="mean"), models.Dense(24, 5), config=family)
    own = open_encoder(str(tmp_path / "m"), backend="onnx")
    wanted = own.encode(TEXTS)
    # The foreign file: token vectors of the same model times the mask, plus the token types.
    from truerank.vectors.encoders.bert_graph import GraphWriter, write_encoder

    folder = read_model_folder(tmp_path / "m", "tiny")
    graph = GraphWriter()
    weights = tmp_path / "m" / "model.safetensors"
    tokens, _ = write_encoder(graph, folder.config, open_weights([weights]), "config.json")
    for name in ("attention_mask", "token_type_ids"):
        value = graph.op("Unsqueeze", graph.op("Cast", name, to=TensorProto.FLOAT), graph.integers(2))
        tokens = graph.op("Mul" if name == "attention_mask" else "Add", tokens, value)
    nodes = [*graph.nodes, helper.make_node("Identity", [tokens], ["last_hidden_state"])]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "l"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "l", 24])
    made = helper.make_graph(nodes, "foreign", inputs, [output], graph.constants)
    (tmp_path / "m" / "onnx").mkdir()
    foreign = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(foreign, tmp_path / "m" / "onnx" / "model.onnx")
    weights.unlink()
    other = open_encoder(str(tmp_path / "m"), backend="onnx")
    assert np.abs(other.encode(TEXTS) - wanted).max() < 2e-6
    assert other.fingerprint != own.fingerprint


def test_half_precision_shards_and_old_norm_names_are_read(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    model = random_model(*FAMILIES["bert"])
    model.config.save_pretrained(tmp_path)
    old = {"weight": "gamma", "bias": "beta"}
    tensors = {
        "bert." + (name.rpartition(".")[0] + "." + old[name.rpartition(".")[2]] if "LayerNorm" in name else name): value
        for name, value in model.state_dict().items()
    }
    names = sorted(tensors)
    halves = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for (file, part), kind in zip(halves.items(), (torch.float16, torch.bfloat16), strict=True):
        save_file({name: tensors[name].to(kind).contiguous() for name in part}, tmp_path / file)
    index = {"weight_map": {name: file for file, part in halves.items() for name in part}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    for number, name in enumerate(names):
        kind = torch.bfloat16 if number % 2 else torch.float16
        tensors[name] = tensors[name].to(kind).float()
    plain = {
        name.removeprefix("bert.").replace("gamma", "weight").replace("beta", "bias"): v for name, v in tensors.items()
    }
    model.load_state_dict(plain)
    ids = np.array([[2, 8, 9, 3]])
    with torch.no_grad():
        wanted = model(torch.tensor(ids)).last_hidden_state.mean(1).numpy()
    assert np.abs(run(build_graph(read_model_folder(tmp_path, "tiny"))[0], ids) - wanted).max() < 5e-6


def test_a_graph_is_built_once_and_again_when_it_is_damaged(tmp_path: Path) -> None:
    random_model(*FAMILIES["bert"]).save_pretrained(tmp_path / "m")
    model = read_model_folder(tmp_path / "m", "tiny")
    first = encoder_graph(model)
    content, made = first.file.read_bytes(), first.file.stat().st_mtime_ns
    assert encoder_graph(model).file.stat().st_mtime_ns == made
    first.file.write_bytes(content[: len(content) // 2])
    assert encoder_graph(model).file.read_bytes() == content
    assert [path.name for path in first.file.parent.parent.iterdir()] == [first.file.parent.name]


def change(file: Path, **values: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "t5"}, "model type 't5' has no built-in graph"),
        ({"hidden_act": "xielu"}, "activation 'xielu' has no built-in graph"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key' has no built-in graph"),
        ({"is_decoder": True}, "'is_decoder' is set"),
    ],
)
def test_what_has_no_graph_is_named_with_the_remedy(values: dict, message: str, tmp_path: Path) -> None:
    random_model(*FAMILIES["bert"]).save_pretrained(tmp_path)
    change(tmp_path / "config.json", **values)
    with pytest.raises(InputError) as caught:
        build_graph(read_model_folder(tmp_path, "tiny"))
    assert message in str(caught.value)
    assert "use --backend torch" in str(caught.value)
    assert "config.json" in str(caught.value)


def test_missing_tensor_and_wrong_shape_are_named(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    random_model(*FAMILIES["bert"]).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    name = "encoder.layer.1.intermediate.dense.bias"
    save_file({key: value for key, value in tensors.items() if key != name}, file)
    with pytest.raises(InputError, match=f"tensor '{name}' is missing. use --backend torch"):
        build_graph(read_model_folder(tmp_path, "tiny"))
    save_file({**tensors, name: tensors[name][:-1].contiguous()}, file)
    with pytest.raises(InputError, match=rf"tensor '{name}' has shape \[49\], config.json implies \[50\]"):
        build_graph(read_model_folder(tmp_path, "tiny"))


def test_torn_weights_are_named(tmp_path: Path) -> None:
    random_model(*FAMILIES["bert"]).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    whole = file.read_bytes()
    for content, fault in (
        (whole[:-100], "cut off: "),
        (whole[:50], "not a safetensors file"),
        (b"", "not a safetensors"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=f"model.safetensors: {fault}"):
            build_graph(read_model_folder(tmp_path, "tiny"))


def test_folders_that_are_no_models_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json here"):
        read_model_folder(tmp_path, "tiny")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config.json:1: no valid JSON"):
        read_model_folder(tmp_path, "tiny")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match=r"neither model\.safetensors nor an ONNX file here"):
        build_graph(read_model_folder(tmp_path, "tiny"))
    modules = [{"type": "sentence_transformers.models.Transformer", "path": ""}, {"type": "x.LSTM", "path": "1_LSTM"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match=r"module of kind 'LSTM'.*use --backend torch"):
        read_model_folder(tmp_path, "tiny")

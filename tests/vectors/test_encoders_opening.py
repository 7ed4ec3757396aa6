"""Names of encoders, models from Hugging Face (a real server on this machine) and its cache, and what goes wrong."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from truerank.errors import InputError
from truerank.vectors.encoders import open_encoder

MODEL = "someone/tiny-model"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "tax", "law", "penguins"]
CONFIG = {
    "model_type": "bert",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
}


def tiny_model(folder: Path) -> Path:
    """A model folder made of random numbers, without torch."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    shapes = {"embeddings.word_embeddings": (7, 8), "embeddings.position_embeddings": (32, 8)}
    shapes |= {"embeddings.token_type_embeddings": (2, 8)}
    tensors = {f"{name}.weight": random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    layer = "encoder.layer.0."
    linear = {f"{layer}attention.self.{part}": (8, 8) for part in ("query", "key", "value")}
    linear |= {f"{layer}attention.output.dense": (8, 8), f"{layer}intermediate.dense": (16, 8)}
    linear |= {f"{layer}output.dense": (8, 16)}
    for name, shape in linear.items():
        tensors[f"{name}.weight"] = random.normal(size=shape).astype(np.float32)
        tensors[f"{name}.bias"] = random.normal(size=shape[:1]).astype(np.float32)
    for name in ("embeddings", f"{layer}attention.output", f"{layer}output"):
        tensors[f"{name}.LayerNorm.weight"] = random.normal(size=8).astype(np.float32)
        tensors[f"{name}.LayerNorm.bias"] = random.normal(size=8).astype(np.float32)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUERANK_CACHE", str(tmp_path / "cache"))


class Hub(ThreadingHTTPServer):
    """Serves one folder as Hugging Face does, as far as its client asks."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), HubRequest)
        self.folder = folder
        self.served: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class HubRequest(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.do_GET(body=False)

    def do_GET(self, *, body: bool = True) -> None:
        path = self.path.partition("?")[0]
        folder = self.server.folder
        names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
        if path.startswith(f"/api/models/{MODEL}/tree/"):
            tree = [
                {"type": "file", "path": name, "size": (folder / name).stat().st_size, "oid": COMMIT} for name in names
            ]
            self.answer(200, json.dumps(tree).encode(), body=body)
        elif path.startswith(f"/api/models/{MODEL}"):
            content = {"id": MODEL, "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
            self.answer(200, json.dumps(content).encode(), body=body)
        elif path.startswith(f"/{MODEL}/resolve/") and path.split("/", 5)[5] in names:
            name = path.split("/", 5)[5]
            if body:
                self.server.served.append(name)
            self.answer(200, (folder / name).read_bytes(), body=body)
        else:
            self.answer(404, b"", body=body, code="RepoNotFound")

    def answer(self, status: int, content: bytes, *, body: bool, code: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        if code is not None:
            self.send_header("X-Error-Code", code)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    folder = tiny_model(tmp_path / "hub")
    (folder / "pytorch_model.bin").write_bytes(b"not wanted")
    server = Hub(folder)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def open_in_process(name: str, home: Path, endpoint: str) -> str:
    """Opens an encoder where Hugging Face is at `endpoint`; returns its vectors' hash or the error's sentence."""
    code = (
        "import hashlib, sys; from truerank.errors import TruerankError\n"
        "from truerank.vectors.encoders import open_encoder\n"
        "try:\n e = open_encoder(sys.argv[1], backend='onnx')\n"
        "except TruerankError as error: print(error)\n"
        "else: print(e.name, hashlib.sha256(e.encode(['tax law', 'penguins']).tobytes()).hexdigest())"
    )
    settings = {"HF_HOME": str(home), "HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1"}
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, "-c", code, name], capture_output=True, text=True, check=False, env=environment | settings
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_model_is_fetched_once_and_then_read_from_the_cache(hub: Hub, tmp_path: Path) -> None:
    vectors = open_encoder(str(hub.folder), backend="onnx").encode(["tax law", "penguins"])
    wanted = f"{MODEL} {hashlib.sha256(vectors.tobytes()).hexdigest()}"
    assert open_in_process(MODEL, tmp_path / "home", hub.url) == wanted
    assert sorted(hub.served) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert open_in_process(MODEL, tmp_path / "home", "http://127.0.0.1:9") == wanted  # nobody answers there


def test_without_network_and_cache_the_message_says_how_to_get_it(tmp_path: Path) -> None:
    message = open_in_process("sentence-transformers/paraphrase-MiniLM-L6-v2", tmp_path, "http://127.0.0.1:9")
    assert message.startswith(
        "encoder: 'sentence-transformers/paraphrase-MiniLM-L6-v2' is not in the local cache and Hugging Face cannot "
        "be reached"
    )
    assert "run 'hf download sentence-transformers/paraphrase-MiniLM-L6-v2' where there is a network" in message
    assert "'packaged'" in message


def test_a_model_that_does_not_exist_is_named(hub: Hub, tmp_path: Path) -> None:
    message = open_in_process("someone/else", tmp_path / "home", hub.url)
    assert message.startswith("encoder: Hugging Face has no model 'someone/else'. check the name")


def test_a_folder_is_called_by_its_last_part_or_its_id(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "my-model")
    assert open_encoder(str(folder), backend="onnx").name == "my-model"
    kept = tmp_path / "models--org--some-name" / "snapshots" / COMMIT
    tiny_model(kept)
    assert open_encoder(str(kept), backend="onnx").name == "org/some-name"


def test_equal_folders_have_equal_fingerprints_and_changed_ones_others(tmp_path: Path) -> None:
    one, other = tiny_model(tmp_path / "one"), tiny_model(tmp_path / "other")
    first = open_encoder(str(one), backend="onnx").fingerprint
    assert open_encoder(str(other), backend="onnx").fingerprint == first
    (other / "sentence_bert_config.json").write_text('{"max_seq_length": 5}')
    assert open_encoder(str(other), backend="onnx").fingerprint != first
    (one / "config.json").write_text(json.dumps({**CONFIG, "layer_norm_eps": 1e-5}))
    assert open_encoder(str(one), backend="onnx").fingerprint != first


def test_texts_are_cut_to_the_models_length(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "m")
    long = open_encoder(str(folder), backend="onnx")
    assert long.encode(["tax law " * 100]).tobytes() == long.encode(["tax law " * 15]).tobytes()  # 32 positions
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 5}')
    short = open_encoder(str(folder), backend="onnx")
    assert short.encode(["tax law tax penguins"]).tobytes() == long.encode(["tax law tax"]).tobytes()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("./no/such/folder", {}, "encoder: no folder './no/such/folder', and it is not a Hugging Face id"),
        ("m", {"backend": "tensorflow"}, "backend: no backend 'tensorflow'"),
        ("m", {"backend": "onnx", "precision": "fp64"}, "precision: no precision 'fp64'"),
        ("m", {"backend": "onnx", "precision": "int8"}, "precision: backend 'onnx' runs fp32, not int8"),
        ("m", {"backend": "onnx", "device": "cuda"}, "device: backend 'onnx' runs on the CPU, not on 'cuda'"),
        ("m", {"threads": 0}, "threads: 0 threads. give at least 1"),
    ],
)
def test_what_cannot_be_is_said(
    name: str, options: dict, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        open_encoder(name, **options)
    assert str(caught.value).startswith(message)


def test_a_missing_or_broken_tokenizer_is_named(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "m")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer\.json: not a tokenizer"):
        open_encoder(str(folder), backend="onnx")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"no tokenizer\.json here. use --backend torch"):
        open_encoder(str(folder), backend="onnx")
